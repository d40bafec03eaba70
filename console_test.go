package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestACommandIsSeenInAnOpenConsole creates a resource with the command line at
// one server. A browser shows the console of another server on the same
// database. The page must show the resource.
func TestACommandIsSeenInAnOpenConsole(t *testing.T) {
	t.Parallel()
	browser, node := toolAt(t, "chromium"), toolAt(t, "node")
	if _, err := os.Stat("web/testdata/clients/node_modules/playwright-core"); err != nil {
		unequipped(t, "the packages that `npm ci --prefix web/testdata/clients` brings")
	}
	program, database, tokens := built(t), storetest.Postgres(t), tokenFile(t, anAdmin)
	var addresses [2]string
	for i := range addresses {
		server, _ := spawn(t, program, "--database", database, "--tokens", tokens)
		addresses[i] = server.address
	}
	page := exec.CommandContext(t.Context(), node, "web/testdata/clients/seen.js", addresses[0], browser,
		"secret", "/console/resources", "web-1")
	var failed bytes.Buffer
	page.Stderr = &failed
	out, err := page.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := page.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Wait() })
	says := bufio.NewScanner(out)
	awaits := func(line string) {
		t.Helper()
		if !says.Scan() || says.Text() != line {
			t.Fatalf("it says %q, want %q: %v", says.Text(), line, failed.String())
		}
	}
	awaits("live")
	command := exec.CommandContext(t.Context(), program, "resource", "create", "web-1", "--type", "physical:host")
	command.Env = append(os.Environ(), "CADASTRE_SERVER="+addresses[1], "CADASTRE_TOKEN=secret")
	if printed, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	ended := time.Now()
	awaits("seen")
	t.Logf("seen %v after the command has ended", time.Since(ended))
}

// toolAt returns the path of a tool. It skips the test if the tool is missing,
// except in CI.
func toolAt(t *testing.T, name string) string {
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
