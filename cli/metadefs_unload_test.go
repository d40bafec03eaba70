package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestUnload deletes namespaces by name and all of them. It deletes protected
// ones only with the flag.
func TestUnload(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		in := filepath.Dir(c.file("in/a.json", sameName))
		c.file("in/b.json", sameCase)
		const loaded = "2 namespaces: 2 created, 0 updated, 0 unchanged, 0 skipped, 0 failed"
		c.prints("admin", loaded, "metadefs", "load", in)
		c.fails("admin", "1 namespace not unloaded: Same: name", command("metadefs unload --yes", "Same: name"),
			"Same: name: PROTECTED: ", "0 namespaces unloaded, 1 failed\n")
		c.prints("admin", "1 namespace unloaded, 0 failed", "metadefs", "unload", "--yes", "same: Name")
		c.prints("admin", "1 namespace unloaded, 0 failed", "metadefs", "unload",
			"--all", "--yes", "--include-protected")
		c.prints("admin", loaded, "metadefs", "load", in)
		c.fails("member", "FORBIDDEN: unloadNamespaces needs the role admin",
			command("metadefs unload --yes", "Same: name"))
		c.fails("admin", "BAD_USER_INPUT: input.origin: ", command("metadefs unload --yes --origin", ""))
		c.fails("wrong", "unknown token", command("metadefs unload --yes", "Same: name"))
	})
}

// TestUnloadAllAsks answers the question in several ways.
func TestUnloadAllAsks(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	path := c.file("n.json", `{"namespace": "N", "visibility": "public"}`)
	c.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed", "metadefs", "load", path)
	for _, answer := range []string{"", "\n", "no\n", "ALL\n", "all of them\n", "all\n"} {
		stdout, stderr, err := c.run("admin", answer, "metadefs", "unload", "--all")
		confirmed := answer == "all\n"
		if !strings.Contains(stderr, "Delete all namespaces of "+c.address) || (err == nil) != confirmed ||
			confirmed != (stdout == "1 namespace unloaded, 0 failed\n") ||
			!confirmed && !strings.Contains(err.Error(), "nothing was deleted") {
			t.Errorf("the answer %q: %v\n%s%s", answer, err, stdout, stderr)
		}
	}
}

func TestUnloadRefused(t *testing.T) {
	t.Parallel()
	refuse(t, map[string]string{
		"metadefs unload":                                 "nothing to unload",
		"metadefs unload --all N":                         "--all cannot be combined with names",
		"metadefs unload --all --origin cadastre":         "--all cannot be combined with names",
		"metadefs unload --all --resource-type x":         "--all cannot be combined with names",
		"metadefs unload --all":                           "nothing was deleted", // no answer
		"metadefs unload --all --yes --mode=merge":        "unknown flag --mode",
		"metadefs unload --yes":                           "nothing to unload",
		"metadefs unload --resource-type":                 "--resource-type",
		"metadefs unload --include-protected=perhaps all": "include-protected",
	})
}

// TestUnloadAllGoesInParts counts the deletions of each request.
func TestUnloadAllGoesInParts(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	for i := range 45 {
		c.file(fmt.Sprintf("in/%d.json", i), fmt.Sprintf(`{"namespace": "N%d", "visibility": "public"}`, i))
	}
	c.file("in/kept.json", sameName)
	if _, stderr, err := c.run("admin", "", "metadefs", "load", filepath.Join(c.folder, "in")); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	target, err := url.Parse(c.address)
	if err != nil {
		t.Fatal(err)
	}
	var parts []int
	proxy := httputil.NewSingleHostReverseProxy(target)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct {
			OperationName string
			Variables     struct {
				Input struct {
					All   bool
					Names []string
				}
			}
		}
		if json.Unmarshal(body, &asked) == nil && asked.OperationName == "UnloadNamespaces" {
			parts = append(parts, len(asked.Variables.Input.Names))
			if asked.Variables.Input.All {
				t.Error("one request deletes all namespaces")
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	defer between.Close()
	c.address = between.URL
	c.fails("admin", "1 namespace not unloaded: Same: name", command("metadefs unload --all --yes"),
		"45 namespaces unloaded, 1 failed\n", "Same: name: PROTECTED: ")
	if fmt.Sprint(parts) != "[20 20 6]" {
		t.Errorf("the requests delete %v namespaces", parts)
	}
}
