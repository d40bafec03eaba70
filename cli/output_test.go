package cli

import (
	"bytes"
	"testing"
)

// TestItemsKeepWhatFollowsTheFirstSign holds that values can have a sign in
// them, be empty, which the server refuses, and have commas.
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
