package text

import "testing"

func TestHasTrigram(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "a": false, "ab": false, "abc": true, "a b": false, "ab cd ef": false,
		"ab-cde": true, "1.2.3": false, "x86": true,
		"日本": false, "日本語": true, "%%%": false, "a_b": false, "größe": true,
	} {
		if HasTrigram(text) != want {
			t.Errorf("%q: not %v", text, want)
		}
	}
}
