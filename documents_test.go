package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/schema"
)

// documents returns the pages of the documentation by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir("docs", func(page string, _ fs.DirEntry, err error) error {
		if page == "docs/reference" { // made for the site by `make docs`
			return fs.SkipDir
		}
		if filepath.Ext(page) == ".md" {
			pages = append(pages, page)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, page := range append(pages, "README.md", "ARCHITECTURE.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	return texts
}

// help returns the help of a command.
func help(t *testing.T, command string) string {
	t.Helper()
	helps.Lock()
	defer helps.Unlock()
	if text, ok := helps.of[command]; ok {
		return text
	}
	var out strings.Builder
	if err := run(t.Context(), append(strings.Fields(command), "--help"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	helps.of[command] = out.String()
	return out.String()
}

// helps caches the help of commands, because each needs a start of the program.
var helps = struct {
	sync.Mutex
	of map[string]string
}{of: map[string]string{}}

// commands returns the commands in the help of the program and of each noun,
// such as `metadefs load`.
func commands(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, noun := range regexp.MustCompile(`(?m)^  ([a-z-]+)  `).FindAllStringSubmatch(help(t, ""), -1) {
		verbs := regexp.MustCompile(`(?m)^  (`+noun[1]+` [a-z-]+)(?: \(|  )`).
			FindAllStringSubmatch(help(t, noun[1]), -1)
		for _, verb := range verbs {
			found = append(found, verb[1])
		}
		if verbs == nil {
			found = append(found, noun[1])
		}
	}
	if len(found) < 10 {
		t.Fatalf("the help shows the commands %q only", found)
	}
	return found
}

// eachNamed calls check with every match of a pattern in every page: the first
// group of the pattern, if it has one.
func eachNamed(t *testing.T, pattern string, check func(page, name string)) {
	t.Helper()
	texts := documents(t)
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(texts[page], -1) {
			check(page, match[len(match)-1])
		}
	}
}

// TestDocumentsNameFlagsThatExist finds flags and variables that a document
// names but no command has.
func TestDocumentsNameFlagsThatExist(t *testing.T) {
	t.Parallel()
	const flag, variable = `--[a-z][a-z-]*`, `CADASTRE_[A-Z_]+`
	var helps strings.Builder
	for _, command := range commands(t) {
		helps.WriteString(help(t, command))
	}
	known := regexp.MustCompile(flag).FindAllString(helps.String(), -1)
	for _, negatable := range regexp.MustCompile(`--\[no-\]([a-z-]+)`).FindAllStringSubmatch(helps.String(), -1) {
		known = append(known, "--"+negatable[1], "--no-"+negatable[1])
	}
	eachNamed(t, flag, func(page, name string) {
		prefix := strings.HasSuffix(name, "-") &&
			slices.ContainsFunc(known, func(flag string) bool { return strings.HasPrefix(flag, name) })
		// Of curl, npm, openstack, sha256sum and nova-manage.
		others := []string{"--data-urlencode", "--prefix", "--url", "--check", "--ignore-missing", "--delete",
			"--retry", "--retry-connrefused", "--service", "--vcpus", "--ram", "--disk", "--image", "--nic", "--wait"}
		if !prefix && !slices.Contains(known, name) && !slices.Contains(others, name) {
			t.Errorf("%s names the flag %s, which no command has", page, name)
		}
	})
	set := regexp.MustCompile(variable).FindAllString(helps.String()+printed(t), -1)
	// only for tests
	set = append(set, "CADASTRE_TEST_POSTGRES", "CADASTRE_TEST_PATIENCE",
		"CADASTRE_TEST_DEFINITIONS", "CADASTRE_TEST_PART")
	eachNamed(t, variable, func(page, name string) {
		if !slices.Contains(set, name) {
			t.Errorf("%s names the variable %s, which no command reads", page, name)
		}
	})
}

// printed returns the configuration of a server without flags.
func printed(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), []string{"serve", "--tokens", tokenFile(t, anAdmin), "--print-config"}, &out,
		io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// settings returns the defaults of `cadastre serve` by their keys.
func settings(t *testing.T) map[string]string {
	t.Helper()
	var top map[string]any
	if err := yaml.Unmarshal([]byte(printed(t)), &top); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for key, value := range top {
		group, ok := value.(map[string]any)
		if !ok {
			found[key] = fmt.Sprint(value)
		}
		for inner, value := range group {
			found[key+"."+inner] = fmt.Sprint(value)
		}
	}
	return found
}

// TestDocumentsNameSettingsThatExist finds keys of the --config file that a
// document names but no setting has. Rules of permissions have names of the same
// form.
func TestDocumentsNameSettingsThatExist(t *testing.T) {
	t.Parallel()
	known := settings(t)
	eachNamed(t, "`((?:limits|oidc|keystone)\\.[a-z-]+)`", func(page, name string) {
		if _, ok := known[name]; !ok && !slices.Contains(access.AllRules(), access.Rule(name)) {
			t.Errorf("%s names the setting %s, which does not exist", page, name)
		}
	})
}

// TestDocumentsNameWhatExists finds files, make targets and pages that a
// document names but that do not exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	file := "`((?:[a-zA-Z_][A-Za-z0-9_*-]*/)*[A-Za-z0-9_*.-]+\\.(?:go|graphql|md|sh|sql|txtar|yaml|yml)|(?:[a-z]+/)+)`"
	eachNamed(t, file, func(page, name string) {
		if there, err := filepath.Glob(name); err != nil || len(there) == 0 {
			t.Errorf("%s names the file %s, which is not there", page, name)
		}
	})
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	eachNamed(t, "`make ([a-z-]+)", func(page, name string) {
		if !strings.Contains(string(makefile), "\n"+name+":") {
			t.Errorf("%s names make %s, which the Makefile lacks", page, name)
		}
	})
}

// TestDocumentsShowValidOperations validates every operation that a document
// shows against the schema.
func TestDocumentsShowValidOperations(t *testing.T) {
	t.Parallel()
	language, err := gqlparser.LoadSchema(&ast.Source{Input: schema.SDL()})
	if err != nil {
		t.Fatal(err)
	}
	shown, texts := 0, documents(t)
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		for _, block := range regexp.MustCompile("(?s)```graphql\n(.*?)```").FindAllStringSubmatch(texts[page], -1) {
			if _, errs := gqlparser.LoadQueryWithRules(language, block[1], rules.NewDefaultRules()); len(errs) > 0 {
				t.Errorf("%s shows an operation that is not valid: %v\n%s", page, errs, block[1])
			}
			shown++
		}
	}
	if shown < 5 {
		t.Errorf("the documents show %d operations, want 5 at least", shown)
	}
}

// TestDocumentsNameEveryCommand finds commands that no document names.
func TestDocumentsNameEveryCommand(t *testing.T) {
	t.Parallel()
	all := strings.Join(slices.Collect(maps.Values(documents(t))), "\n")
	for _, command := range commands(t) {
		words := strings.Fields(command)
		if !strings.Contains(all, "cadastre "+command) && (len(words) == 1 ||
			!strings.Contains(all, "`"+words[len(words)-1]+"`") && !strings.Contains(all, "`"+command)) {
			t.Errorf("no document names the command %s", command)
		}
	}
}

// TestDocumentsShowTheDefaults compares the defaults in the tables of
// docs/operations.md and docs/limits.md with the defaults of `cadastre serve`.
func TestDocumentsShowTheDefaults(t *testing.T) {
	t.Parallel()
	defaults := settings(t)
	texts, compared := documents(t), 0
	for _, table := range []struct{ page, row, prefix string }{
		{"docs/operations.md", "(?m)^\\| `(?:--)?([a-z.-]+)` \\| `([^`]+)` \\|", ""},
		{"docs/limits.md", "(?m)^\\| `([a-z-]+)` \\| ([^|]+) \\|", "limits."},
	} {
		for _, match := range regexp.MustCompile(table.row).FindAllStringSubmatch(texts[table.page], -1) {
			want, ok := defaults[table.prefix+match[1]]
			shown := strings.NewReplacer("64 MiB", "67108864", "16 MiB", "16777216", "1 MiB", "1048576", "64 KiB",
				"65536", ",", "", " s", "s").Replace(match[2])
			if !ok || shown != want && shown+"0m0s" != want {
				t.Errorf("%s shows the default %s of %s, which is %q", table.page, shown, match[1], want)
			}
			compared++
		}
	}
	if compared < 25 {
		t.Errorf("the tables show %d defaults, want 25 at least", compared)
	}
}

// link matches a Markdown link to a page or to a heading.
var link = regexp.MustCompile(`\]\(([^):]+)\)`)

// headings returns the anchors of the headings of a page.
func headings(text string) map[string]bool {
	found := map[string]bool{"": true}
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(heading[1]), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

// TestDocumentsLinkToWhatExists finds broken links, pages that cannot be
// reached by links from the README, and pictures that no page shows.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	t.Parallel()
	texts := documents(t)
	reached := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		page := queue[0]
		for _, match := range link.FindAllStringSubmatch(texts[page], -1) {
			path, _, _ := strings.Cut(match[1], "#")
			to := filepath.Join(filepath.Dir(page), path)
			if _, ok := texts[to]; ok && !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	files, err := filepath.Glob("docs/images/*")
	if err != nil {
		t.Fatal(err)
	}
	pictures := map[string]bool{} // pictures that no page shows
	for _, file := range files {
		pictures[file] = true
	}
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		if !reached[page] {
			t.Errorf("no way of links leads from README.md to %s", page)
		}
		for _, match := range link.FindAllStringSubmatch(texts[page], -1) {
			delete(pictures, filepath.Join(filepath.Dir(page), match[1]))
			path, heading, _ := strings.Cut(match[1], "#")
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			} else if text, ok := texts[to]; ok && !headings(text)[heading] {
				t.Errorf("%s links to %s, which has no such heading", page, match[1])
			}
		}
	}
	for picture := range pictures {
		t.Errorf("no page shows %s", picture)
	}
}

// TestDocumentsNameTheVersionsOfLibraries compares the table of docs/clients.md
// with the versions that the tests install and that the TypeScript client uses.
func TestDocumentsNameTheVersionsOfLibraries(t *testing.T) {
	t.Parallel()
	versions, from := map[string]string{}, map[string]string{}
	for _, folder := range []string{"clients/typescript", "web/testdata/clients"} {
		text, err := os.ReadFile(folder + "/package.json")
		if err != nil {
			t.Fatal(err)
		}
		var made struct{ Dependencies, DevDependencies, PeerDependencies map[string]string }
		if err := json.Unmarshal(text, &made); err != nil {
			t.Fatal(err)
		}
		maps.Copy(versions, made.Dependencies)
		maps.Copy(versions, made.DevDependencies)
		maps.Copy(from, made.PeerDependencies)
	}
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	versions["github.com/Khan/genqlient"] = regexp.MustCompile(`Khan/genqlient v(\S+)`).
		FindStringSubmatch(string(module))[1]
	rows := regexp.MustCompile("(?m)^\\| `([@a-zA-Z0-9./-]+)`[^|]* \\| (\\d*) ?\\| (\\d+\\.\\d+\\.\\d+) \\|$").
		FindAllStringSubmatch(documents(t)["docs/clients.md"], -1)
	if len(rows) < 10 {
		t.Fatalf("the table has %q only", rows)
	}
	for _, row := range rows {
		if versions[row[1]] != row[3] || strings.TrimPrefix(from[row[1]], ">=") != row[2] {
			t.Errorf("docs/clients.md has %q; tests run %s, and the client takes %s",
				row[0], versions[row[1]], from[row[1]])
		}
	}
}
