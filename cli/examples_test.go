package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/internal/patience"
)

var update = flag.Bool("update", false, "write the goldens anew")

// identity serves Keystone's API for one user, who gets the token of the demo's
// administrator, and Nova's for a flavor and more of them. It writes a clouds.yaml
// for it into the working folder, and returns the address.
func identity(t *testing.T, more ...func() string) string {
	t.Helper()
	mux := http.NewServeMux()
	keystone := httptest.NewServer(mux)
	t.Cleanup(keystone.Close)
	mux.HandleFunc("GET /v3/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w,
			`{"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": %q}]}}`,
			keystone.URL+"/v3/")
	})
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(text), `"password":"secret"`) ||
			!strings.Contains(string(text), `"domain":{"name":"Default"},"name":"ada"`) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Subject-Token", demo.AdminToken)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": {"methods": ["password"], "expires_at": "2036-01-31T12:00:00.000000Z", "project": {"id": "operations"}, "catalog": [{"type": "compute", "name": "nova",
			"endpoints": [{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": %q}]}]}}`,
			keystone.URL+"/compute/v2.1")
	})
	mux.HandleFunc("GET /compute/v2.1/flavors/detail", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"flavors": [{"id": "1", "name": "m1.tiny", "ram": 512, "disk": 1, "vcpus": 1, "swap": "", "OS-FLV-EXT-DATA:ephemeral": 0,
			"os-flavor-access:is_public": true, "description": null, "extra_specs": {"hw:cpu_policy": "dedicated"}}`)
		for _, flavors := range more {
			_, _ = io.WriteString(w, flavors())
		}
		_, _ = io.WriteString(w, "]}")
	})
	file := `clouds:
  prod:
    region_name: RegionOne
    auth: {auth_url: "` + keystone.URL + `/v3", username: ada, password: secret, project_name: operations, user_domain_name: Default, project_domain_name: Default}
  wrong:
    auth: {auth_url: "` + keystone.URL + `/v3", username: ada, password: forgotten, project_name: operations, user_domain_name: Default, project_domain_name: Default}
`
	if err := os.WriteFile("clouds.yaml", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return keystone.URL + "/v3"
}

// tokenFile writes a token file into the working folder.
func tokenFile(t *testing.T) {
	t.Helper()
	const tokens = "tokens:\n- {token: first, user: sue, project: demo, roles: [admin]}\n" +
		"- {token: secret, user: tom, project: demo, roles: [reader], expires: 2026-01-31T12:00:00Z}\n"
	if err := os.WriteFile("tokens.yaml", []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
}

// preparations are commands that must run before the examples of a command.
var preparations = map[string][]string{
	"property list": {"cadastre namespace create Lab::Racks --visibility public -q"},
}

// TestExamples runs the examples of every command, in the order of the grammar,
// as an administrator of one new demo. It compares their output with a golden
// file for each command.
func TestExamples(t *testing.T) {
	goldens, err := filepath.Abs("testdata/commands")
	if err != nil {
		t.Fatal(err)
	}
	address := demotest.Serve(t)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	t.Setenv("CADASTRE_CONFIG", filepath.Join(t.TempDir(), "contexts.yaml"))
	t.Chdir(t.TempDir())
	identity(t)
	tokenFile(t)
	known := map[string]bool{}
	for _, command := range cli.Commands() {
		if command.Path == "login" { // from here on a context has the server and the token
			t.Setenv("CADASTRE_SERVER", "")
			t.Setenv("CADASTRE_TOKEN", "")
		}
		for _, example := range preparations[command.Path] {
			if _, status := shell(t, example); status != 0 {
				t.Fatalf("%s ends with %d", example, status)
			}
		}
		golden := examples(t, address, command)
		name := strings.ReplaceAll(command.Path, " ", "-") + ".txt"
		known[name] = true
		compare(t, filepath.Join(goldens, name), golden)
	}
	files, err := os.ReadDir(goldens)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file.Name()] {
			t.Errorf("%s is the golden of no command", file.Name())
		}
	}
}

// examples runs the examples of a command and returns their output.
func examples(t *testing.T, address string, command cli.Command) string {
	t.Helper()
	if len(command.Examples) == 0 {
		t.Errorf("%s has no example", command.Path)
	}
	var golden strings.Builder
	for _, example := range command.Examples {
		printed, status := shell(t, strings.NewReplacer("127.0.0.1:8080", address, "cadastre.example.org", address).
			Replace(example))
		if !strings.HasPrefix(example+" ", "cadastre "+command.Path+" ") &&
			!strings.Contains(example, "cadastre help") && !strings.Contains(example, "| cadastre "+command.Path+" ") &&
			!strings.HasSuffix(example, "| cadastre "+command.Path) {
			t.Errorf("%s has an example of another command: %s", command.Path, example)
		}
		fmt.Fprintf(&golden, "$ %s\n%s", example, normal(address, printed))
		if status != 0 {
			fmt.Fprintf(&golden, "[ends with %d]\n", status)
		}
		golden.WriteString("\n")
	}
	return golden.String()
}

// compare compares a string with a golden file, or writes the file with
// -update.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s: %v\ngot\n%s\nwant\n%s", filepath.Base(path), err, got, want)
	}
}

// shell runs a line like a shell, and returns its output and exit status. It
// ends a command that does not end on its own, and fails the test.
func shell(t *testing.T, line string) (printed string, status int) {
	t.Helper()
	var out strings.Builder
	typed, command, ok := strings.Cut(line, " | ")
	if !ok || !strings.HasPrefix(line, "echo ") {
		typed, command = "", line
	}
	program := cli.Program{Stdin: strings.NewReader(strings.Trim(strings.TrimSpace(strings.TrimPrefix(typed, "echo")),
		"'") + "\n"), Version: "1.2.3", Commit: "abc", SDL: "type Query {\n  viewer: Viewer\n}\n",
		Serve: func(_ context.Context, options cli.ServeOptions) error {
			_, err := fmt.Fprintf(&out, "serves on %s\n", options.Listen)
			return err
		}, Dump: func(_ context.Context, database string, to io.Writer) (string, error) {
			_, err := fmt.Fprintf(to, "the rows of %s\n", database)
			return "the rows", err
		}, Restore: func(_ context.Context, _ string, from io.Reader) (string, error) {
			text, err := io.ReadAll(from)
			return strings.TrimSpace(string(text)), err
		}, Migrations: func(_ context.Context, _ string, apply bool) ([]map[string]any, error) {
			return []map[string]any{{"version": 1, "name": "00001_initial.sql", "applied": true},
				{"version": 2, "name": "00002_next.sql", "applied": apply}}, nil
		}, Doctor: func(_ context.Context, database string, report func(map[string]any) error) (string, int, error) {
			if !strings.Contains(database, "damaged") {
				return database, 0, nil
			}
			return database, 3, report(map[string]any{"kind": "invalid", "check": "a thing holds", "table": "things",
				"id": 1, "is": "else", "mend": "do it"})
		}}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Of(t, 2*time.Minute))
	defer cancel()
	err := cli.Run(ctx, program, words(t, command)[1:], &out, &out)
	if ctx.Err() != nil {
		t.Errorf("%s does not end", line)
	}
	if err != nil {
		fmt.Fprintln(&out, "cadastre:", err)
	}
	return out.String(), cli.ExitStatus(err)
}

// words splits a line into words like a shell: by blanks outside quotation
// marks. It replaces $(...) with its output.
func words(t *testing.T, line string) (all []string) {
	t.Helper()
	var word strings.Builder
	quote, begun := rune(0), false
	for i := 0; i < len(line); i++ {
		r := rune(line[i])
		switch {
		case strings.HasPrefix(line[i:], "$(") && quote != '\'':
			end := strings.Index(line[i:], ")")
			printed, status := shell(t, line[i+2:i+end])
			if status != 0 {
				t.Fatalf("%s: %s", line, printed)
			}
			word.WriteString(strings.TrimRight(printed, "\n"))
			i, begun = i+end, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				all = append(all, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteByte(line[i])
			begun = true
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}

var (
	times = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z)?`)
	token = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	id    = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	made  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// normal replaces the parts of a string that differ between runs: the address,
// times, random uuids, and new tokens with their ids.
func normal(address, text string) string {
	text = strings.ReplaceAll(text, address, "http://127.0.0.1:8080")
	if here, err := os.Getwd(); err == nil {
		text = strings.ReplaceAll(text, here, "/here")
	}
	text = times.ReplaceAllStringFunc(text, func(at string) string {
		if strings.Contains(at, "T") {
			return "2026-01-31T12:00:00Z"
		}
		return "2026-01-31 12:00:00"
	})
	text = made.ReplaceAllString(text, "00000000-0000-4000-8000-00000000000d")
	text = token.ReplaceAllString(text, "ANEWRANDOMTOKENTEXTABCDEFG")
	if strings.Contains(text, "SIGHUP") || strings.Contains(text, "ROLES") || strings.Contains(text, `"roles"`) {
		text = id.ReplaceAllString(text, "2bb80d537b1d")
	}
	const longest = 200
	if lines := strings.SplitAfter(text, "\n"); len(lines) > longest {
		text = strings.Join(lines[:20], "") + fmt.Sprintf("[and %d more lines]\n", len(lines)-20)
	}
	return text
}
