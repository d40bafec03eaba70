package web_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestEveryAuditOfGraphQLOverHTTPIsOK runs the audits of the npm package
// graphql-http against the open profile. It needs node and the packages of
// testdata/audit: npm ci --prefix web/testdata/audit.
func TestEveryAuditOfGraphQLOverHTTPIsOK(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat("testdata/audit/node_modules/graphql-http")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the audits need node and `npm ci --prefix web/testdata/audit`: %v", err)
		}
		t.Skipf("the audits need node and `npm ci --prefix web/testdata/audit`: %v", err)
	}
	s := start(t, nil)
	command := exec.Command(node, "audit.js", s.url+"/graphql", "admin-token")
	command.Dir = "testdata/audit"
	command.WaitDelay = time.Minute
	out, err := command.Output()
	if err != nil {
		t.Fatalf("audit.js: %v", err)
	}
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
