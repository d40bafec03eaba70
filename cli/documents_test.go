package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
)

// generatedBelow is the line of docs/cli.md above the generated reference.
const generatedBelow = "<!-- What follows is made by: make generate -->\n"

// TestDocumentedCommands runs the client commands of README, the pages of docs
// and the page of the IDE. Each has a folder of definitions if it needs one.
// Other tests compare the commands that have their output on the page. The
// commands of docs/cli.md are the examples of the help.
func TestDocumentedCommands(t *testing.T) {
	lines := documentedCommands(t)
	if len(lines) < 10 {
		t.Fatalf("the documents show %q only", lines)
	}
	address := demotest.Serve(t)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	t.Setenv("CADASTRE_CONFIG", filepath.Join(t.TempDir(), "contexts.yaml"))
	t.Chdir(t.TempDir())
	identity(t)
	tokenFile(t)
	if printed, status := shell(t, "cadastre metadefs export definitions"); status != 0 {
		t.Fatal(printed)
	}
	// Commands that are incomplete in documents, and the arguments to add.
	completed := map[string]string{
		"metadefs load --dry-run": "metadefs load definitions --dry-run",
		"metadefs unload NAME":    "metadefs unload Lab --yes",
		"login --os-cloud NAME":   "login --os-cloud prod",
		"context use NAME":        "context use demo",
		"fits --from-flavor NAME": "fits --from-flavor m1.small",
		"login NAME":              "login demo",
		"metadefs unload --origin cadastre --include-protected": "metadefs unload --origin cadastre --include-protected --yes",
		"token revoke ID": "token revoke 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b --yes",
		"watch resource":  "watch resource --kept --limit 1",
		// it does not end
		"sync openstack --cloud prod --follow --interval servers=30s --interval images=1h": "sync openstack --cloud prod --kinds flavors",
		"sync openstack --allow-deletes KIND":                                              "sync openstack --cloud prod --kinds flavors --allow-deletes flavors",
	}
	for _, preparation := range []string{"cadastre namespace create Lab -q", "cadastre login demo -q"} {
		if printed, status := shell(t, preparation); status != 0 {
			t.Fatal(printed)
		}
	}
	plan, status := shell(t, "cadastre drain plan compute-02 -o json")
	if err := os.WriteFile("plan.json", []byte(plan), 0o600); err != nil || status != 0 {
		t.Fatal(err, plan)
	}
	for _, line := range lines {
		run := line
		if of, ok := completed[line]; ok {
			run = of
		}
		run, _, _ = strings.Cut(run, "  ")
		run = strings.NewReplacer("DIRECTORY", "definitions", "DIR", "definitions", "PATH", "definitions",
			"http://127.0.0.1:8080", address).Replace(run)
		run, _, _ = strings.Cut(run, " > ")
		if printed, status := shell(t, "cadastre "+run); status != 0 {
			t.Errorf("cadastre %s ends with %d and prints\n%s", line, status, printed)
		}
	}
}

// documentedCommands returns the commands in the pages, without duplicates.
func documentedCommands(t *testing.T) (lines []string) {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"../docs/*.md", "../docs/howto/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	found := map[string]bool{}
	for _, page := range append(pages, "../README.md", "../web/ide/index.html") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(page, "/cli.md") {
			text, _, _ = cutBytes(text, generatedBelow)
		}
		for _, match := range regexp.MustCompile("(?m)^cadastre ([a-z].*)$|`cadastre ([a-z][^`]*)`|<code>cadastre ([a-z][^<]*)<").FindAllStringSubmatch(string(text), -1) {
			line := strings.TrimSpace(match[1] + match[2] + match[3])
			if !strings.HasPrefix(line, "serve") && !found[line] {
				found[line] = true
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// cutBytes returns the text before and after a string.
func cutBytes(text []byte, around string) (before, after []byte, ok bool) {
	first, rest, ok := strings.Cut(string(text), around)
	return []byte(first), []byte(rest), ok
}
