package cli

import (
	"bytes"
	"testing"
)

// TestVisibilityFlagsAreExclusive is B10: both flags or neither are a mistake of
// usage where one is needed.
func TestVisibilityFlagsAreExclusive(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{
		{"capability", "set", "physical:host", "arch"},
		{"capability", "set", "physical:host", "arch", "--private", "--public"},
		{"capability", "create", "physical:host", "arch", "--private", "--public"},
		{"metadata", "set", "00000000-0000-4000-8000-000000000001"},
		{"metadata", "unset", "00000000-0000-4000-8000-000000000001"},
		{"metadata", "set", "00000000-0000-4000-8000-000000000001", "no-value"},
	} {
		var stdout, stderr bytes.Buffer
		if err := Run(t.Context(), Program{}, arguments, &stdout, &stderr); err == nil {
			t.Errorf("%v is accepted", arguments)
		}
	}
}

// TestItemsKeepWhatFollowsTheFirstSign holds that values can have a sign in
// them, be empty for the server to refuse, and hold commas.
func TestItemsKeepWhatFollowsTheFirstSign(t *testing.T) {
	t.Parallel()
	items, err := keyValues([]string{"a=b=c", "empty=", "list=<or> a,b"})
	if err != nil || len(items) != 3 || items[0].Value != "b=c" || items[1].Value != "" || items[2].Value != "<or> a,b" {
		t.Errorf("%v, error %v", items, err)
	}
}

func TestTablesAndJSON(t *testing.T) {
	t.Parallel()
	things := []shownCapability{{Name: "arch\x1b[2J", Private: true}}
	row := func(of shownCapability) []string { return []string{of.Name, yesOrNo(of.Private)} }
	for form, want := range map[string]string{
		"table": "NAME      PRIVATE\narch�[2J  yes\n",
		"json":  "[\n  {\n    \"name\": \"arch\\u001b[2J\",\n    \"private\": true\n  }\n]\n",
	} {
		var out bytes.Buffer
		if err := show(&out, output{form}, things, []string{"NAME", "PRIVATE"}, row); err != nil || out.String() != want {
			t.Errorf("%s: %q, error %v", form, out.String(), err)
		}
	}
}
