package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/web"
)

// examplesRun builds the examples, which first checks their types, and uses
// them in a browser with a demo. The TypeScript client is built already.
func examplesRun(t *testing.T) {
	browser := tool(t, "chromium")
	var pages, origins []string
	for _, name := range []string{"dashboard", "relay"} {
		folder := filepath.Join("../examples", name)
		if out, err := script(t, folder, "build").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		site := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(folder, "dist"))))
		t.Cleanup(site.Close)
		pages, origins = append(pages, site.URL+"/"), append(origins, site.URL)
	}
	s := start(t, func(o *web.Options) {
		asDemo(o)
		o.AllowedOrigins = origins
	})
	if err := demo.Fill(context.Background(), s.store); err != nil {
		t.Fatal(err)
	}
	var got struct{ Wrong, Complaints []string }
	if out := client(t, "examples.js", s.url, browser, pages[0],
		pages[1]); json.Unmarshal(bytes.TrimSpace(out), &got) != nil {
		t.Fatalf("it printed %s", out)
	}
	for _, wrong := range got.Wrong {
		t.Error(wrong)
	}
	for _, complaint := range got.Complaints {
		t.Errorf("the browser: %s", complaint)
	}
}

// TestTheDashboardIsShort checks the length that docs/clients.md states for the
// example's screens.
func TestTheDashboardIsShort(t *testing.T) {
	t.Parallel()
	lines := 0
	for _, screen := range []string{"list", "editor", "capacity"} {
		text, err := os.ReadFile("../examples/dashboard/src/" + screen + ".tsx")
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	if lines >= 150 {
		t.Errorf("its screens have %d lines", lines)
	}
}

// TestTheSchemaBreaksNoClient compares the schema with the schema of the last
// release. A definition of the last release may disappear only if it was
// deprecated there.
func TestTheSchemaBreaksNoClient(t *testing.T) {
	t.Parallel()
	compare := func(before, after string) (string, error) {
		inspector, err := filepath.Abs("testdata/clients/node_modules/@graphql-inspector/cli/cjs/index.js")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(inspector); err != nil {
			unequipped(t, "the packages that `npm ci --prefix web/testdata/clients` brings")
		}
		command := exec.CommandContext(t.Context(), tool(t, "node"), inspector, "diff", before, after,
			"--rule", "suppressRemovalOfDeprecatedField")
		command.Dir = "testdata/clients"
		out, err := command.CombinedOutput()
		return string(out), err
	}
	const released, now = "../../../schema/released/schema.graphql", "../../../schema/merged/schema.graphql"
	if out, err := compare(released, now); err != nil {
		t.Errorf("%v: deprecate it for a release before you take it away\n%s", err, out)
	}
	// Check that the comparison finds removed definitions.
	text, err := os.ReadFile("../schema/merged/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	renamed := filepath.Join(t.TempDir(), "schema.graphql")
	if err := os.WriteFile(renamed, bytes.Replace(text, []byte("  shareUsed: Float\n"), []byte("  share: Float\n"), 1),
		0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := compare(released, renamed); err == nil || !strings.Contains(out, "shareUsed") {
		t.Errorf("with a field renamed: %v\n%s", err, out)
	}
}
