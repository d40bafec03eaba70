package web_test

import "testing"

// TestPlacingOnTheConsole previews, places, confirms and releases consumers of a
// flavor, and compares the page with the API.
func TestPlacingOnTheConsole(t *testing.T) {
	t.Parallel()
	inABrowser(t, "console_place.js", func(*testing.T, looked) {})
}
