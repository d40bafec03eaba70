package web_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/web"
)

// TestTheTabsOfTheIDEWorkOnTheDemo runs the queries of every tab over the demo
// cloud. None fails, and none returns an empty answer.
func TestTheTabsOfTheIDEWorkOnTheDemo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if err := demo.Fill(context.Background(), s.store); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("ide/queries/*.graphql")
	if err != nil || len(files) != 6 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(document), "\nsubscription ") {
			continue // the browser runs it
		}
		operations := regexp.MustCompile(`(?m)^query (\w+)`).FindAllStringSubmatch(string(document), -1)
		if len(operations) == 0 {
			t.Errorf("%s names no query", file)
		}
		for _, operation := range operations {
			got := s.ask(map[string]any{"query": string(document), "operationName": operation[1]})
			if got.status != 200 || got.code() != "" || strings.Contains(got.body, `"nodes":[]`) ||
				strings.Contains(got.body, `"resourceType":null`) {
				t.Errorf("%s, %s: %.500s", file, operation[1], got.body)
			}
		}
	}
}

// TestThePageOfTheIDEIsProtected checks that the page names no other host and
// runs only its own script.
func TestThePageOfTheIDEIsProtected(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.DemoRoles = demoRoles })
	page := s.send("GET", "/", "", "X-Auth-Token", "")
	policy := page.header.Get("Content-Security-Policy")
	nonce := regexp.MustCompile(`'nonce-([A-Z0-9]{20,})'`).FindStringSubmatch(policy)
	if len(nonce) != 2 || !strings.Contains(page.body, `<script nonce="`+nonce[1]+`">`) ||
		!strings.Contains(policy, "default-src 'self'") {
		t.Errorf("policy %s", policy)
	}
	if again := s.send("GET", "/", ""); again.header.Get("Content-Security-Policy") == policy {
		t.Error("the nonce is used twice")
	}
	if strings.Contains(page.body, "://") {
		t.Errorf("the page names another host:\n%s", page.body)
	}
	if got := s.send("GET", "/ide/assets/0/../../../go.mod", ""); got.status == 200 {
		t.Errorf("a file outside of the assets: %s", got.body)
	}
}

// TestTheAssetsOfTheIDEAreServed requests every address on the page.
func TestTheAssetsOfTheIDEAreServed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	page := s.send("GET", "/", "", "X-Auth-Token", "")
	addresses := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(page.body, -1)
	if len(addresses) != 6 {
		t.Fatalf("got %v", addresses)
	}
	for _, address := range addresses {
		bodies := map[string]string{}
		for _, encoding := range []string{"gzip", "identity"} {
			got := s.send("GET", address[1], "", "Accept-Encoding", encoding, "X-Auth-Token", "")
			if got.status != 200 || !strings.Contains(got.header.Get("Cache-Control"), "immutable") ||
				(got.header.Get("Content-Encoding") == "gzip") != (encoding == "gzip") {
				t.Errorf("%s: %d %v", address[1], got.status, got.header)
			}
			if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/javascript") &&
				!strings.HasPrefix(kind, "text/css") {
				t.Errorf("%s is %s", address[1], kind)
			}
			bodies[encoding] = got.body
		}
		reader, err := gzip.NewReader(strings.NewReader(bodies["gzip"]))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(reader); err != nil || string(plain) != bodies["identity"] || len(plain) == 0 {
			t.Errorf("%s: %d bytes, and compressed %d (%v)", address[1], len(bodies["identity"]), len(plain), err)
		}
	}
}

// TestTheIDEHasATokenInADemoOnly reads the settings on the page.
func TestTheIDEHasATokenInADemoOnly(t *testing.T) {
	t.Parallel()
	settings := func(change func(*web.Options)) (of struct {
		Roles []web.DemoRole
		Tabs  []string
	}) {
		page := start(t, change).send("GET", "/", "", "X-Auth-Token", "")
		text := regexp.MustCompile(`const settings = (\{.*\});`).FindStringSubmatch(page.body)
		if len(text) != 2 || json.Unmarshal([]byte(text[1]), &of) != nil || len(of.Tabs) != 6 {
			t.Errorf("settings %v", text)
		}
		return of
	}
	if got := settings(func(o *web.Options) { o.DemoRoles = demoRoles }).Roles; !slices.Equal(got, demoRoles) {
		t.Errorf("a demo has the roles %v", got)
	}
	if got := settings(nil).Roles; len(got) != 0 {
		t.Errorf("a server that is no demo has the roles %v", got)
	}
}

// TestTheRootSaysWhereTheIDEIsHidden asks for the page in both profiles.
func TestTheRootSaysWhereTheIDEIsHidden(t *testing.T) {
	t.Parallel()
	locked := start(t, func(o *web.Options) { o.Profile = web.Locked }).send("GET", "/", "", "X-Auth-Token", "")
	if locked.status != http.StatusNotFound || !strings.Contains(locked.body, "locked") ||
		!strings.Contains(locked.body, "--profile open") {
		t.Errorf("%d %s", locked.status, locked.body)
	}
	if other := start(t, nil).send("GET", "/else", "", "X-Auth-Token", ""); other.status != http.StatusNotFound {
		t.Errorf("another path is %d", other.status)
	}
}

// TestTheSchemaHasATag requests the schema again with its ETag.
func TestTheSchemaHasATag(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.send("GET", "/schema.graphql", "")
	tag := first.header.Get("ETag")
	if again := s.send("GET", "/schema.graphql", "", "If-None-Match", tag); tag == "" ||
		again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("%q: %d, %d bytes", tag, again.status, len(again.body))
	}
	if other := s.send("GET", "/schema.graphql", "", "If-None-Match", `"other"`); other.status != http.StatusOK ||
		other.body != first.body {
		t.Errorf("another tag: %d", other.status)
	}
}
