package graph_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestEveryCodeIsDocumented compares the codes of errors with the table in
// docs/errors.md.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	named := func(file, pattern string) (codes []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			codes = append(codes, string(match[1]))
		}
		return slices.Sorted(slices.Values(codes))
	}
	written := named("errors.go", `Code = "([A-Z_]+)"`)
	documented := named("../docs/errors.md", "(?m)^\\| `([A-Z_]+)` \\|")
	if !slices.Equal(written, documented) || len(written) < 20 {
		t.Errorf("the codes are %q, those of docs/errors.md %q", written, documented)
	}
}
