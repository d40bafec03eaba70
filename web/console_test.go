package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// TestTheConsoleIsBuiltFromItsSources rebuilds the console and compares it with
// the committed assets, byte for byte.
func TestTheConsoleIsBuiltFromItsSources(t *testing.T) {
	t.Parallel()
	built := t.TempDir()
	if out, err := script(t, "../console", "build", "CADASTRE_CONSOLE_OUT="+built).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	of := func(folder string) map[string]string {
		files := map[string]string{}
		err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(filepath.Join(folder, path))
			files[path] = string(content)
			return err
		})
		if err != nil || len(files) < 3 {
			t.Fatalf("%s has %d files, %v", folder, len(files), err)
		}
		return files
	}
	fresh, committed := of(built), of("console")
	for path, content := range fresh {
		if committed[path] != content {
			t.Errorf("%s is not what the sources make: run `make console` and commit web/console", path)
		}
	}
	for path := range committed {
		if _, ok := fresh[path]; !ok {
			t.Errorf("%s is made by no source: run `make console` and commit web/console", path)
		}
	}
}

// TestTheSourcesOfTheConsole runs the console's own tests.
func TestTheSourcesOfTheConsole(t *testing.T) {
	t.Parallel()
	if out, err := script(t, "../console", "test").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// consoleAssets matches the assets that the console's page refers to.
var consoleAssets = regexp.MustCompile(`(?:src|href)="(/console/assets/[^"]+)"`)

// TestTheConsoleIsProtected checks that the page names no other host and runs
// only its own script, with a separate nonce.
func TestTheConsoleIsProtected(t *testing.T) {
	t.Parallel()
	s := start(t, asDemo)
	page := s.send("GET", "/console", "", "X-Auth-Token", "")
	policy := page.header.Get("Content-Security-Policy")
	nonce := regexp.MustCompile(`'nonce-([A-Z0-9]{20,})'`).FindStringSubmatch(policy)
	if len(nonce) != 2 || !strings.Contains(page.body, `nonce="`+nonce[1]+`"`) ||
		!strings.Contains(policy, "default-src 'none'; script-src 'self' 'nonce-") ||
		strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
	if again := s.send("GET", "/console/definitions/any?view=it", "", "X-Auth-Token",
		""); again.status != http.StatusOK || again.header.Get("Content-Security-Policy") == policy {
		t.Errorf("a view is %d, with the policy %s", again.status, policy)
	}
	if strings.Contains(page.body, "://") || !strings.Contains(page.body, "demo-reader") {
		t.Errorf("the page is\n%s", page.body)
	}
	if bare := start(t, nil).send("GET", "/console", "", "X-Auth-Token", ""); !strings.Contains(bare.body,
		`{&#34;ide&#34;:true,&#34;keystone&#34;:false,&#34;oidc&#34;:null,&#34;roles&#34;:[]}`) {
		t.Errorf("a server that is no demo has the page\n%s", bare.body)
	}
}

// TestTheAssetsOfTheConsoleAreServed requests every asset on the page, and
// paths that are not assets.
func TestTheAssetsOfTheConsoleAreServed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/console/assets/", "/console/assets/none.js",
		"/console/assets/../../go.mod", "/consoles"} {
		if got := s.send("GET", path, "", "X-Auth-Token", ""); got.status == http.StatusOK {
			t.Errorf("%s is served: %.100s", path, got.body)
		}
	}
	assets := consoleAssets.FindAllStringSubmatch(s.send("GET", "/console", "", "X-Auth-Token", "").body, -1)
	if len(assets) < 2 {
		t.Fatalf("the page has the assets %v", assets)
	}
	for _, asset := range assets {
		got := s.send("GET", asset[1], "", "X-Auth-Token", "", "Accept-Encoding", "gzip")
		if got.status != http.StatusOK || !strings.Contains(got.header.Get("Cache-Control"), "immutable") ||
			got.header.Get("Content-Encoding") != "gzip" || len(got.body) > 256<<10 {
			t.Errorf("%s: %d, %d bytes, %v", asset[1], got.status, len(got.body), got.header)
		}
	}
}

// TestTheProfileLockedHidesTheConsole requests the console's views and assets.
func TestTheProfileLockedHidesTheConsole(t *testing.T) {
	t.Parallel()
	asset := consoleAssets.FindStringSubmatch(start(t, nil).send("GET", "/console", "", "X-Auth-Token", "").body)
	locked := start(t, func(o *web.Options) { o.Profile = web.Locked })
	for _, path := range []string{"/console", "/console/", "/console/definitions", asset[1]} {
		if got := locked.send("GET", path, "", "X-Auth-Token", ""); got.status != http.StatusNotFound ||
			!strings.Contains(got.body, "serve --console") {
			t.Errorf("%s in the profile locked: %d %.200s", path, got.status, got.body)
		}
	}
}

// lockedDemo makes a server a demo that has only the console.
func lockedDemo(o *web.Options) {
	asDemo(o)
	o.Profile, o.Console, o.TrustedOnly = web.Locked, true, true
}

// withoutPoints lifts the limits of points, which are charged for time, too: a
// slow machine takes more.
func withoutPoints(o *web.Options) {
	o.Limits = web.DefaultLimits()
	o.Limits.AdminPoints, o.Limits.PrincipalPoints = 0, 0
}

// startDemo serves a database in which everyone discovers capabilities, as in a
// demo.
func startDemo(t *testing.T, url string, change func(*web.Options)) *server {
	t.Helper()
	opened, err := store.Open(t.Context(), store.Options{URL: url, Log: slog.New(slog.DiscardHandler),
		StatementTime: patience.Of(t, 10*time.Second),
		Resources:     store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	unlimited := func(o *web.Options) {
		change(o)
		withoutPoints(o)
		o.Limits.OperationTime = patience.Of(t, o.Limits.OperationTime)
	}
	return startWith(t, url, opened, unlimited, web.ServeOptions{ReadTime: patience.Of(t, 10*time.Second)})
}

// looked is the result of a program that used the console in a browser.
type looked struct {
	Wrong, Complaints []string
	Took              float64 // milliseconds until a change by another server was seen
	Seconds           map[string]float64
}

// inABrowser runs a program that uses the console of a demo on both databases,
// while another server changes the same database. The browser and axe report no
// problem, and every view fits on a phone, a desktop and a wall display, by day
// and by night. On PostgreSQL, the console is on a server in the locked profile
// with trusted documents only. With a ninth of the rounds, SQLite has console.js
// alone. CADASTRE_TEST_PICTURES names a folder for screenshots.
func inABrowser(t *testing.T, program string, judge func(*testing.T, looked)) {
	browser := tool(t, "chromium")
	isOnce := program != "console.js" && soak.Rounds(9) == 1
	storetest.EachURL(t, func(t *testing.T, url string) {
		if isOnce && strings.HasPrefix(url, "sqlite") {
			t.Skip("runs on PostgreSQL, and on SQLite too with CADASTRE_TEST_PART=3")
		}
		s := startDemo(t, url, asDemo)
		if err := demo.Fill(context.Background(), s.store); err != nil {
			t.Fatal(err)
		}
		recordHistory(t, s.store)
		console, views := s, "all"
		if strings.HasPrefix(url, "postgres") {
			console = startDemo(t, url, lockedDemo)
			if !isOnce {
				views = "some"
			}
		}
		args := []string{console.url, browser, s.url, views}
		if pictures := os.Getenv("CADASTRE_TEST_PICTURES"); pictures != "" {
			args = append(args, pictures)
		}
		var got looked
		if out := client(t, program, args...); json.Unmarshal(bytes.TrimSpace(out), &got) != nil {
			t.Fatalf("it printed %s", out)
		}
		t.Logf("seconds: %v", got.Seconds)
		for _, wrong := range got.Wrong {
			t.Error(wrong)
		}
		for _, complaint := range got.Complaints {
			t.Errorf("the browser: %s", complaint)
		}
		judge(t, got)
	})
}

// TestTheConsoleRunsInABrowser uses the console like a person.
func TestTheConsoleRunsInABrowser(t *testing.T) {
	t.Parallel()
	inABrowser(t, "console.js", func(t *testing.T, got looked) {
		t.Logf("a change was seen after %.0f ms", got.Took)
		if got.Took <= 0 {
			t.Error("a change by another client was not seen")
		}
	})
}

// TestFormsOfTheConsole uses all forms, and the pages of resources and providers.
func TestFormsOfTheConsole(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"console_forms.js", "console_hub.js"} {
		inABrowser(t, program, func(*testing.T, looked) {})
	}
}
