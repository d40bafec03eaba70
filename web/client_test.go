package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/web"
)

// client runs a program of testdata/clients and returns its output. It skips
// the test if node or its packages are missing, except in CI.
func client(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	node := tool(t, "node")
	if _, err := os.Stat("testdata/clients/node_modules/axe-core"); err != nil {
		unequipped(t, "the packages that `npm ci --prefix web/testdata/clients` brings")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.Of(t, 5*time.Minute))
	defer cancel()
	command := exec.CommandContext(ctx, node, append([]string{program}, args...)...)
	command.Dir = "testdata/clients"
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) } // it says which step it is in
	command.WaitDelay = 10 * time.Second
	out, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Fatalf("%s: %v: %s", program, err, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestToolsOfClientsCompileTheSchema has graphql-js, relay-compiler and
// graphql-codegen read the schema that a server serves, and compile the
// operations of the Go client and of the IDE with it.
func TestToolsOfClientsCompileTheSchema(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	args := append([]string{s.url, "admin-token"}, operations(t, "../client/operations", "ide/queries")...)
	var said map[string]string
	if err := json.Unmarshal(client(t, "compile.js", args...), &said); err != nil || len(said) != 3 {
		t.Fatalf("%v in %v", err, said)
	}
	for tool, complaint := range said {
		if complaint != "" {
			t.Errorf("%s: %s", tool, complaint)
		}
	}
}

// TestANormalisedCacheHasNoWarning runs the queries of the IDE's tabs over the
// demo cloud through a normalised cache, with the keys of docs/clients.md. The
// cache gives no warning, and answers each query again without a request.
func TestANormalisedCacheHasNoWarning(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if err := demo.Fill(context.Background(), s.store); err != nil {
		t.Fatal(err)
	}
	var got struct{ Complaints, Ran []string }
	if err := json.Unmarshal(client(t, "urql.mjs",
		append([]string{s.url, "admin-token"}, operations(t, "ide/queries")...)...), &got); err != nil {
		t.Fatal(err)
	}
	for _, complaint := range got.Complaints {
		t.Errorf("%.1000s", complaint)
	}
	if len(got.Ran) < 5 {
		t.Errorf("ran %q only", got.Ran)
	}
}

// operations returns the absolute paths of the operation files in folders.
func operations(t *testing.T, folders ...string) (paths []string) {
	t.Helper()
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*.graphql")
		if err != nil || len(files) < 3 {
			t.Fatalf("got %v, %v", files, err)
		}
		for _, file := range files {
			whole, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, whole)
		}
	}
	return paths
}

// tool returns the path of a program on this machine.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		unequipped(t, name)
	}
	return path
}

func unequipped(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("needs %s", what)
}

// demoRoles are the roles of the demo.
var demoRoles = []web.DemoRole{{Name: "admin", Token: demo.AdminToken}, {Name: "member", Token: demo.MemberToken},
	{Name: "reader", Token: demo.ReaderToken}}

// TestTheIDERunsInABrowser opens the IDE over the demo cloud and runs each
// query of each tab like a user. Each query has an answer, the browser reports
// no problem (the content security policy included), and the page requests no
// other host. One token serves all tabs, links and commands can be shared, and
// everything fits on a desktop and a phone, by day and by night.
// CADASTRE_TEST_PICTURES names a folder for screenshots.
func TestTheIDERunsInABrowser(t *testing.T) {
	t.Parallel()
	browser := tool(t, "chromium")
	s := start(t, func(o *web.Options) {
		o.DemoRoles = demoRoles
		o.Authenticate = auth.New(auth.Tokens(auth.TokensOf(demo.Viewers()))).Authenticate
	})
	if err := demo.Fill(context.Background(), s.store); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Answers []struct {
			Operation string
			Answer    struct{ Data, Errors json.RawMessage }
		}
		Complaints, Wrong []string
	}
	args := []string{s.url + "/", browser, start(t, nil).url + "/", "admin-token"}
	if pictures := os.Getenv("CADASTRE_TEST_PICTURES"); pictures != "" {
		args = append(args, pictures)
	}
	if err := json.Unmarshal(client(t, "ide.js", args...), &got); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range got.Wrong {
		t.Error(wrong)
	}
	var ran []string
	for _, one := range got.Answers {
		ran = append(ran, strings.TrimPrefix(strings.TrimPrefix(one.Operation, "query "), "subscription "))
		if one.Answer.Errors != nil || !strings.Contains(string(one.Answer.Data), "name") {
			t.Errorf("%s: data %.300s, errors %s", one.Operation, one.Answer.Data, one.Answer.Errors)
		}
	}
	if want := "Definitions Resources Capabilities Placement PlacementMixed FlavorToHosts OnHostsThatCan Live"; strings.Join(ran, " ") != want {
		t.Errorf("ran %v, want %s", ran, want)
	}
	for _, complaint := range got.Complaints {
		t.Errorf("the browser: %s", complaint)
	}
}
