package web_test

import (
	"encoding/json"
	"testing"
)

// TestEveryAuditOfGraphQLOverHTTPIsOK runs the audits of the npm package
// graphql-http against the open profile.
func TestEveryAuditOfGraphQLOverHTTPIsOK(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	out := client(t, "audit.js", s.url+"/graphql", "admin-token")
	var results []struct{ ID, Name, Status, Reason string }
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Status != "ok" {
			t.Errorf("%s %s: %s: %s", result.ID, result.Name, result.Status, result.Reason)
		}
	}
	if len(results) != 61 {
		t.Errorf("%d audits, want 61", len(results))
	}
	t.Logf("%d audits", len(results))
}
