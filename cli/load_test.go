package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
)

// TestALoadOfManyLines loads a file that takes several requests. Children wait
// for their parents. A line that is malformed or refused fails alone. The same
// load again finds that all other lines exist.
func TestALoadOfManyLines(t *testing.T) {
	t.Setenv("CADASTRE_SERVER", demotest.Serve(t))
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	const hosts = 1300
	var lines strings.Builder
	for i := range hosts {
		fmt.Fprintf(&lines, `{"name": "many %d", "uuid": null, "traits": ["HW_CPU_X86_AVX2"]}`+"\n", i)
	}
	lines.WriteString("\nnot JSON\n" + `{"name": "odd", "colour": "red"}` + "\n" +
		`{"name": "many 7 below", "parentName": "none"}` + "\n")
	for i := range hosts {
		fmt.Fprintf(&lines, `{"name": "many %d below", "parentName": "many %[1]d"}`+"\n", i)
	}
	file := filepath.Join(t.TempDir(), "hosts.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2603 providers: 2600 created, 0 exist, 3 failed",
		"2603 providers: 0 created, 2600 exist, 3 failed"} {
		printed, status := shell(t, "cadastre provider load "+file)
		if status != 1 || !strings.Contains(printed, want) {
			t.Errorf("ends with %d: %s", status, printed)
		}
		for number, what := range map[int]string{hosts + 2: "is not a JSON object", hosts + 3: "colour",
			hosts + 4: "BAD_USER_INPUT: parentName: resource provider \"none\" does not exist"} {
			if !strings.Contains(printed, fmt.Sprintf("%s:%d: ", file, number)) || !strings.Contains(printed, what) {
				t.Errorf("line %d is not told to be wrong by %q: %s", number, what, printed)
			}
		}
	}
	if printed, status := shell(t, "cadastre provider load --update "+file); status != 1 ||
		!strings.Contains(printed, "2603 providers: 0 created, 1300 updated, 1300 exist, 3 failed") {
		t.Errorf("ends with %d: %s", status, printed)
	}
	if printed, _ := shell(t, `cadastre provider show "many 1299 below" -o value -c parent`); !strings.Contains(printed,
		"many 1299") {
		t.Error(printed)
	}
}

func TestALineThatIsTooLongIsNamed(t *testing.T) {
	t.Setenv("CADASTRE_SERVER", demotest.Serve(t))
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	file := filepath.Join(t.TempDir(), "long.jsonl")
	if err := os.WriteFile(file, []byte("{}\n"+strings.Repeat(" ", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if printed, status := shell(t, "cadastre provider load "+file); status != 1 ||
		!strings.Contains(printed, file+":2: longer than 819200 bytes") {
		t.Errorf("ends with %d: %s", status, printed)
	}
}
