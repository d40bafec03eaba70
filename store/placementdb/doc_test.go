package placementdb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheProtocolNamesItsTests finds a test that the package comment names and
// that is not there, and an invariant that names none.
func TestTheProtocolNamesItsTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	files, err := filepath.Glob("../*db/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			declared[match[1]] = true
		}
	}
	name := regexp.MustCompile(`\bTest\w+`)
	for _, test := range name.FindAllString(string(page), -1) {
		if !declared[test] {
			t.Errorf("doc.go names %s, which is not there", test)
		}
	}
	invariants := regexp.MustCompile(`\n//\tI\d  `).Split(string(page), -1)
	for _, invariant := range invariants[1:] {
		held, _, _ := strings.Cut(invariant, "\n//\n")
		if !name.MatchString(held) {
			t.Errorf("doc.go names no test of: %s", held)
		}
	}
	if len(invariants) < 9 {
		t.Errorf("doc.go has %d invariants", len(invariants)-1)
	}
}
