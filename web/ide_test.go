package web_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/web"
)

// TestTheTabsOfTheIDEWorkOnTheDemo runs the queries of every tab over the demo
// cloud: none fails, and none comes back empty.
func TestTheTabsOfTheIDEWorkOnTheDemo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if err := demo.Fill(context.Background(), s.store); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("ide/queries/*.graphql")
	if err != nil || len(files) != 4 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		operations := regexp.MustCompile(`(?m)^query (\w+)`).FindAllStringSubmatch(string(document), -1)
		if len(operations) == 0 {
			t.Errorf("%s names no query", file)
		}
		for _, operation := range operations {
			got := s.ask(map[string]any{"query": string(document), "operationName": operation[1]})
			if got.status != 200 || got.code() != "" || strings.Contains(got.body, `"nodes":[]`) || strings.Contains(got.body, `"resourceType":null`) {
				t.Errorf("%s, %s: %.500s", file, operation[1], got.body)
			}
		}
	}
}

// TestThePageOfTheIDEIsProtected holds that the page names no other host, and
// runs no script but its own.
func TestThePageOfTheIDEIsProtected(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.DemoToken = "admin-token" })
	page := s.send("GET", "/", "", "X-Auth-Token", "")
	policy := page.header.Get("Content-Security-Policy")
	nonce := regexp.MustCompile(`'nonce-([A-Z0-9]{20,})'`).FindStringSubmatch(policy)
	if len(nonce) != 2 || !strings.Contains(page.body, `<script nonce="`+nonce[1]+`">`) || !strings.Contains(policy, "default-src 'self'") {
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
	if len(addresses) != 4 {
		t.Fatalf("got %v", addresses)
	}
	for _, address := range addresses {
		for _, encoding := range []string{"gzip", "identity"} {
			got := s.send("GET", address[1], "", "Accept-Encoding", encoding, "X-Auth-Token", "")
			if got.status != 200 || !strings.Contains(got.header.Get("Cache-Control"), "immutable") || (got.header.Get("Content-Encoding") == "gzip") != (encoding == "gzip") {
				t.Errorf("%s: %d %v", address[1], got.status, got.header)
			}
			if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/javascript") && !strings.HasPrefix(kind, "text/css") {
				t.Errorf("%s is %s", address[1], kind)
			}
		}
	}
}

// TestTheIDEHasATokenInADemoOnly reads the settings on the page.
func TestTheIDEHasATokenInADemoOnly(t *testing.T) {
	t.Parallel()
	page := start(t, func(o *web.Options) { o.DemoToken = "admin-token" }).send("GET", "/", "", "X-Auth-Token", "")
	var settings struct {
		DemoToken string
		Headers   string
		Tabs      []string
	}
	text := regexp.MustCompile(`const settings = (\{.*\});`).FindStringSubmatch(page.body)
	if len(text) != 2 || json.Unmarshal([]byte(text[1]), &settings) != nil || settings.DemoToken != "admin-token" || len(settings.Tabs) != 4 {
		t.Errorf("settings %v", text)
	}
	other := start(t, nil)
	if body := other.send("GET", "/", "").body; strings.Contains(body, "admin-token") || !strings.Contains(body, "your token") {
		t.Error("outside of a demo the page has a token, or no field for one")
	}
}
