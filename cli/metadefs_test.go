package cli

import (
	"maps"
	"strings"
	"testing"
)

// TestFileNamesAreDistinctAndHarmless checks that two names never share a file,
// even on a case-insensitive file system, and that no file is hidden or looks
// like an option.
func TestFileNamesAreDistinctAndHarmless(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 150)
	got := fileNames([]string{"OS::Compute::Quota", "a b", "a:b", "A-B", "..", ".git", "--all", "%", "Größe", long})
	want := map[string]string{
		"OS::Compute::Quota": "OS--Compute--Quota.json", "Größe": "Größe.json",
		"a b": "a-b-c8687a08.json", "a:b": "a-b-6783a31e.json", "A-B": "A-B-77101aaa.json",
		"..": "_...json", ".git": "_.git.json", "--all": "_--all.json", "%": "_-.json",
		long: strings.Repeat("ä", 100) + "-a9f41bcd.json",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
