package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// audience is the audience of the provider's tokens. It is a URL, by which the
// provider knows it.
const audience = "https://cadastre.example.org"

// TestSigningInByOpenID signs in at the console of the built program as three
// roles, at a provider with short-lived tokens: with refresh tokens on SQLite,
// and without on PostgreSQL. With a patience of 1 members and readers lack points,
// and their pages wait for them.
func TestSigningInByOpenID(t *testing.T) {
	t.Parallel()
	program := built(t)
	points := patience.Of(t, 300*time.Second).Seconds() // a slow operation costs more
	databases := map[string]func(testing.TB) string{"refresh": storetest.EmptySQLite, "frame": storetest.Postgres}
	for way, scopes := range map[string]string{"refresh": "[openid, offline_access]", "frame": "[openid]"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			issuer, serves := startProvider(t, patience.Of(t, 15*time.Second))
			server, _ := spawn(t, program, "--console", "--database", databases[way](t), "--oidc-issuer", issuer,
				"--oidc-audience", audience,
				configured(t, fmt.Sprintf("console-client-id: console\nconsole-scopes: %s\n"+
					"limits: {principal-points: %.0f}\n", scopes, points)))
			serves(server.address)
			signIn(t, server.address, way, issuer)
		})
	}
}

// startProvider starts an OpenID Connect provider and returns its issuer. It
// serves the console at the address that the caller names.
func startProvider(t *testing.T, lifetime time.Duration) (issuer string, serves func(address string)) {
	t.Helper()
	node := toolAt(t, "node")
	if _, err := os.Stat("web/testdata/clients/node_modules/oidc-provider"); err != nil {
		unequipped(t, "the packages that `npm ci --prefix web/testdata/clients` brings")
	}
	command := exec.CommandContext(t.Context(), node, "web/testdata/clients/provider.mjs",
		fmt.Sprint(int(lifetime.Seconds())), audience)
	var failed bytes.Buffer
	command.Stderr = &failed
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	says := bufio.NewScanner(out)
	if !says.Scan() {
		t.Fatalf("the provider says nothing: %s", failed.String())
	}
	return says.Text(), func(address string) {
		t.Helper()
		if _, err := fmt.Fprintln(in, address); err != nil || !says.Scan() {
			t.Fatalf("the provider does not serve %s: %v %s", address, err, failed.String())
		}
	}
}

// signIn signs in in a browser.
func signIn(t *testing.T, address, way string, args ...string) {
	t.Helper()
	browser, node := toolAt(t, "chromium"), toolAt(t, "node")
	if _, err := os.Stat("web/testdata/clients/node_modules/playwright-core"); err != nil {
		unequipped(t, "the packages that `npm ci --prefix web/testdata/clients` brings")
	}
	command := exec.CommandContext(t.Context(), node,
		append([]string{"web/testdata/clients/signin.js", address, browser, way}, args...)...)
	var failed bytes.Buffer
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, failed.String())
	}
	var wrong []string
	if err := json.Unmarshal(out, &wrong); err != nil {
		t.Fatalf("it printed %s", out)
	}
	for _, one := range wrong {
		t.Error(one)
	}
}

// TestSigningInByKeystone signs in at the console with the password of a user of
// a real Keystone. It needs Debian's package python3-keystone.
func TestSigningInByKeystone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"keystone-manage", "keystone-wsgi-public"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("needs Keystone: apt-get install python3-keystone")
		}
	}
	address := startKeystone(t)
	server, _ := spawn(t, built(t), "--console", "--trusted-only", "--database",
		"sqlite://"+filepath.Join(t.TempDir(), "c.db"), "--keystone-url", address,
		"--keystone-user", "admin", "--keystone-password", "swordfish", "--keystone-project", "admin")
	signIn(t, server.address, "keystone", "admin", "swordfish", "admin")
}

// startKeystone starts a Keystone with one user, admin, and returns its URL.
func startKeystone(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	configuration := "[DEFAULT]\nlog_file = " + folder + "/keystone.log\n[database]\nconnection = sqlite:///" + folder +
		"/keystone.db\n[identity]\npassword_hash_rounds = 4\n" +
		"[fernet_tokens]\nkey_repository = " + folder +
		"/fernet\n[credential]\nkey_repository = " + folder + "/credential\n"
	if err := os.WriteFile(folder+"/keystone.conf", []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "OS_KEYSTONE_CONFIG_DIR="+folder,
		"OS_KEYSTONE_CONFIG_FILES="+folder+"/keystone.conf", "PYTHONWARNINGS=ignore")
	user := fmt.Sprint(os.Getuid())
	for _, args := range [][]string{
		{"db_sync"}, {"fernet_setup", "--keystone-user", user, "--keystone-group", user},
		{"credential_setup", "--keystone-user", user, "--keystone-group", user},
		{"bootstrap", "--bootstrap-password", "swordfish"},
	} {
		command := exec.CommandContext(t.Context(), "keystone-manage",
			append([]string{"--config-file", folder + "/keystone.conf"}, args...)...)
		command.Env = environment
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("keystone-manage %v: %v\n%s", args, err, out)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = free.Close()
	command := exec.CommandContext(t.Context(), "keystone-wsgi-public", "--host", "127.0.0.1", "--port", port)
	command.Env = environment
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	url := "http://" + address + "/v3"
	if !patience.Until(t, time.Minute, func() bool {
		answer, err := http.Get(url)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	}) {
		t.Fatal("Keystone does not answer")
	}
	return url
}
