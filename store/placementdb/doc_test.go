package placementdb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheProtocolNamesItsTests checks that the protocol pages name only
// existing tests, and at least one for each invariant.
func TestTheProtocolNamesItsTests(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	files, err := filepath.Glob("../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("../*/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, below...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			declared[match[1]] = true
		}
	}
	for file, least := range map[string]int{"doc.go": 8, "../resident/doc.go": 7} {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkProtocol(t, file, string(page), least, declared)
	}
}

// checkProtocol checks the text of a file: its test names must be declared,
// each invariant must name a test, and it must have at least the given number
// of invariants.
func checkProtocol(t *testing.T, file, text string, least int, declared map[string]bool) {
	t.Helper()
	name := regexp.MustCompile(`\bTest\w+`)
	for _, test := range name.FindAllString(text, -1) {
		if !declared[test] {
			t.Errorf("%s names %s, which is not there", file, test)
		}
	}
	invariants := regexp.MustCompile(`\n//\t[CI]\d  `).Split(text, -1)[1:]
	for _, invariant := range invariants {
		held, _, _ := strings.Cut(invariant, "\n//\n")
		if !name.MatchString(held) {
			t.Errorf("%s names no test of: %s", file, held)
		}
	}
	if len(invariants) < least {
		t.Errorf("%s has %d invariants", file, len(invariants))
	}
}
