package web_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// asDemo makes a server know the users of the demo cloud.
func asDemo(o *web.Options) {
	o.DemoRoles = demoRoles
	service := auth.NewToken("demo-service",
		access.Viewer{UserID: "agent", ProjectID: "services", Roles: []string{access.RoleService}})
	o.Authenticate = auth.New(auth.Tokens(append(auth.TokensOf(demo.Viewers()), service))).Authenticate
}

// script returns a command that runs a script of an npm package in a folder. It
// skips the test if node or its packages are missing, except in CI.
func script(t *testing.T, folder, name string, environment ...string) *exec.Cmd {
	t.Helper()
	npm := tool(t, "npm")
	if _, err := os.Stat(filepath.Join(folder, "node_modules/.package-lock.json")); err != nil {
		unequipped(t, "the packages that `npm ci --prefix "+filepath.Clean(filepath.Join("web", folder))+"` brings")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.Of(t, 2*time.Minute))
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, npm, "run", "--silent", name)
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	return command
}

// TestTheTypeScriptClient regenerates the client from the schema and runs its
// tests against a server: typed operations, errors, caches, and subscriptions
// that miss nothing while connections are cut. Then it runs the examples, which
// use the client.
func TestTheTypeScriptClient(t *testing.T) {
	t.Parallel()
	s := startOn(t, storetest.Postgres(t), asDemo, web.ServeOptions{})
	if err := demo.Fill(context.Background(), s.store); err != nil {
		t.Fatal(err)
	}
	out, err := script(t, "../clients/typescript", "test", "CADASTRE_SERVER="+s.url).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	passed := regexp.MustCompile(`(?m)^(?:# |ℹ )pass (\d+)$`).FindSubmatch(out)
	if len(passed) != 2 {
		t.Fatalf("it says not how many tests passed:\n%s", out)
	}
	if n, err := strconv.Atoi(string(passed[1])); err != nil || n < 16 {
		t.Errorf("%s tests passed, %v", passed[1], err)
	}
	t.Run("examples", examplesRun)
}
