package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"io/fs"
	"maps"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

var updateSamples = flag.Bool("update-samples", false,
	"write what operations answer into the pages, where an answer is below them")

// sample is one code block of a page.
type sample struct {
	page, language, text string
	answer               string // of a graphql sample: the JSON right below it
	before               string // the text before it in the page
}

// languages are the languages of code blocks. The blocks in JavaScript,
// TypeScript and Go are parts of programs that client tests run:
// client/documented_test.go, clients/typescript/scripts/documented.mjs and
// web/testdata/clients/urql.mjs.
var languages = []string{"graphql", "sh", "bash", "console", "json", "yaml", "python", "js", "ts", "go", "sql", "ini",
	"text"}

// samplePages returns the pages without generated parts.
func samplePages(t *testing.T) map[string]string {
	t.Helper()
	texts := documents(t)
	texts["docs/cli.md"], _, _ = strings.Cut(texts["docs/cli.md"], "<!-- What follows is made by")
	return texts
}

var (
	fence = regexp.MustCompile("(?ms)^[ \t]*```([a-z]*)\n(.*?)^[ \t]*```\n")
	below = regexp.MustCompile("^\n```json\n((?s).*?)```\n")
)

func samplesOf(page, text string) (all []sample) {
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		one := sample{page: page, language: text[at[2]:at[3]], text: text[at[4]:at[5]], before: text[:at[0]]}
		if answer := below.FindStringSubmatch(text[at[1]:]); answer != nil && one.language == "graphql" {
			one.answer = answer[1]
		}
		all = append(all, one)
	}
	return all
}

// TestSamplesHaveALanguage finds code blocks without a language, and data that
// cannot be parsed. Blocks that are not samples have the language `text`.
func TestSamplesHaveALanguage(t *testing.T) {
	t.Parallel()
	for page, text := range samplePages(t) {
		for _, one := range samplesOf(page, text) {
			var err error
			switch {
			case page == "ARCHITECTURE.md":
			case !slices.Contains(languages, one.language):
				t.Errorf("%s has a fence of the language %q\n%s", page, one.language, one.text)
			case one.language == "json":
				err = readsJSON(one.text)
			case one.language == "yaml":
				err = yaml.Unmarshal([]byte(one.text), new(any))
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, one.text)
			}
		}
	}
}

// TestSamplesOfSettings parses each sample with settings of a server.
func TestSamplesOfSettings(t *testing.T) {
	t.Parallel()
	shown, tokens := 0, tokenFile(t, anAdmin)
	for page, text := range samplePages(t) {
		for _, one := range samplesOf(page, text) {
			if one.language != "yaml" || !regexp.MustCompile(`(?m)^(limits|oidc|keystone):`).MatchString(one.text) {
				continue
			}
			shown++
			err := run(t.Context(), []string{"serve", "--tokens", tokens, "--print-config", configured(t, one.text)},
				io.Discard, io.Discard)
			if err != nil {
				t.Errorf("%s shows settings that are wrong: %v\n%s", page, err, one.text)
			}
		}
	}
	if shown < 3 {
		t.Errorf("the pages show %d samples of settings, want 3", shown)
	}
}

// readsJSON returns an error unless the text is one or more JSON values.
func readsJSON(text string) error {
	for values := json.NewDecoder(strings.NewReader(text)); ; {
		if err := values.Decode(new(any)); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestSamplesOfGraphQL sends every operation of every page to a demo as an
// administrator, in the order of the page, and compares the answer with the one
// below it. Each page with answers has a separate demo.
func TestSamplesOfGraphQL(t *testing.T) {
	t.Parallel()
	texts := samplePages(t)
	var plain, answered []string
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		if slices.ContainsFunc(samplesOf(page, texts[page]), func(one sample) bool { return one.answer != "" }) {
			answered = append(answered, page)
		} else if strings.Contains(texts[page], "```graphql") {
			plain = append(plain, page)
		}
	}
	if len(plain) < 8 || len(answered) < 3 {
		t.Fatalf("operations are in %q and with answers in %q", plain, answered)
	}
	for _, page := range answered {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			server, _ := boot(t, "--demo", "--database", storetest.SQLite(t))
			asked := &asker{t, server.address, ""}
			for _, one := range samplesOf(page, texts[page]) {
				asked.ask(one)
			}
		})
	}
	storetest.EachURL(t, func(t *testing.T, url string) {
		server, _ := boot(t, "--demo", "--database", url)
		asked := &asker{t, server.address, ""}
		for _, page := range plain {
			for _, one := range samplesOf(page, texts[page]) {
				asked.ask(one)
			}
		}
	})
}

// asker sends the operations of a page to a demo.
type asker struct {
	t        *testing.T
	address  string
	provider string // a provider of the demo, for samples that name PROVIDER
}

// ask sends one operation. A subscription must have an event of a change that
// ask makes meanwhile.
func (a *asker) ask(one sample) {
	a.t.Helper()
	if one.language != "graphql" {
		return
	}
	if strings.Contains(one.text, `"PROVIDER"`) {
		one.text = strings.ReplaceAll(one.text, `"PROVIDER"`, strconv.Quote(a.roomyProvider()))
	}
	if strings.HasPrefix(one.text, "subscription") {
		a.follow(one)
		return
	}
	text := a.send(one.text)
	var got struct {
		Data   any
		Errors []any
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Errors) > 0 {
		a.t.Errorf("%s shows an operation that fails: %v\n%s\n%s", one.page, err, one.text, text)
		return
	}
	if one.answer == "" {
		return
	}
	var want any
	if err := json.Unmarshal([]byte(one.answer), &want); err != nil {
		a.t.Fatalf("the answer in %s is no JSON: %v\n%s", one.page, err, one.answer)
	}
	switch {
	case reflect.DeepEqual(got.Data, want):
	case *updateSamples:
		a.rewrite(one, text)
	default:
		a.t.Errorf("%s shows another answer to%s\ngot  %s\nwant %s", one.page, one.text, text, one.answer)
	}
}

func (a *asker) send(query string) string {
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		a.t.Fatal(err)
	}
	_, text := fetch(a.t, a.request(a.t.Context(), body))
	return text
}

func (a *asker) request(ctx context.Context, body []byte) *http.Request {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer demo-admin")
	request.Header.Set("Content-Type", "application/json")
	return request
}

// rewrite replaces the answer below a sample.
func (a *asker) rewrite(one sample, answer string) {
	var got struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		a.t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got.Data, "", "  "); err != nil {
		a.t.Fatal(err)
	}
	page, err := os.ReadFile(one.page)
	if err != nil {
		a.t.Fatal(err)
	}
	shown := "```graphql\n" + one.text + "```\n\n```json\n"
	page = bytes.Replace(page, []byte(shown+one.answer), []byte(shown+pretty.String()+"\n"), 1)
	if err := os.WriteFile(one.page, page, 0o644); err != nil {
		a.t.Fatal(err)
	}
}

func (a *asker) roomyProvider() string {
	if a.provider == "" {
		text := a.send(`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 4}], first: 1) { nodes { claim { allocations { provider } } } } }`)
		a.provider = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).FindString(text)
	}
	return a.provider
}

// follow waits for an event of a subscription while resources, namespaces and
// providers change.
func (a *asker) follow(one sample) {
	ctx, cancel := context.WithTimeout(a.t.Context(), patience.Of(a.t, 20*time.Second))
	defer cancel()
	body, err := json.Marshal(map[string]any{"query": one.text})
	if err != nil {
		a.t.Fatal(err)
	}
	request := a.request(ctx, body)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		if !strings.Contains(one.text, "resourceChanged") {
			return
		}
		// The change repeats until the stream has it, because the stream may
		// begin later.
		for ctx.Err() == nil {
			change, err := json.Marshal(map[string]any{"query": `mutation { createResource(input: {type: "OS::Manila::Share", name: "followed"}) { resource { uuid } } }`})
			if err != nil {
				return
			}
			if response, err := http.DefaultClient.Do(a.request(ctx, change)); err == nil {
				_ = response.Body.Close()
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	defer func() { <-changed }()
	defer cancel()
	events, chunk := "", make([]byte, 4096)
	for !strings.Contains(events, "event: next") || !strings.HasSuffix(events, "\n\n") {
		n, err := response.Body.Read(chunk)
		if events += string(chunk[:n]); err != nil {
			a.t.Errorf("%s shows a subscription that ends with %v\n%s\n%s", one.page, err, one.text, events)
			return
		}
	}
	if strings.Contains(events, `"errors"`) {
		a.t.Errorf("%s shows a subscription that fails\n%s\n%s", one.page, one.text, events)
	}
}

// TestSamplesOfShellAndPython runs the shell and Python samples of all pages
// against a demo. Each page has an empty folder with the program, a folder of
// definitions and the files for `serve`. `cadastre serve` only checks its
// flags, and `make` only prints its commands.
func TestSamplesOfShellAndPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	program, texts := built(t), samplePages(t)
	server, process := spawn(t, program, "--demo", "--database", storetest.SQLite(t))
	stand := standIns(t)
	ran := 0
	replaced := strings.NewReplacer("http://127.0.0.1:8080", server.address,
		"http://127.0.0.1:6060/debug", server.address+"/debug",
		"DIRECTORY", "definitions", "PATH", "definitions", "DIR\n", "definitions\n",
		"go tool pprof", "true", "./cadastre ", "cadastre ")
	environment := []string{"PATH=" + stand + ":" + os.Getenv("PATH"), "PROGRAM=" + program,
		"SERVER_PID=" + strconv.Itoa(process.Pid),
		"CADASTRE_SERVER=" + server.address, "CADASTRE_TOKEN=demo-admin", "CADASTRE_DATABASE=sqlite://cadastre.db"}
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		if page == "docs/tutorial.md" || page == "docs/cli.md" || page == "docs/performance.md" ||
			page == "docs/scale.md" || page == "CHANGELOG.md" {
			continue // the first two have their own tests, and the next two run for minutes
		}
		programs := slices.DeleteFunc(samplesOf(page, texts[page]), func(one sample) bool {
			return one.language != "sh" && one.language != "python"
		})
		if len(programs) == 0 {
			continue
		}
		folder := equipped(t, program)
		for _, one := range programs {
			if runs(t, one, replaced.Replace(one.text), folder, append(environment, "HOME="+folder)) {
				ran++
			}
		}
		serves(t, page, folder)
	}
	if ran < 20 {
		t.Errorf("the pages have %d programs for the shell and Python", ran)
	}
}

// standIns returns a folder with replacements for programs that would do too
// much in a test.
func standIns(t *testing.T) string {
	t.Helper()
	stand := t.TempDir()
	repository, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"cadastre": `if [ "$1" = serve ]; then shift; printf '%s\n' "$@" ${CADASTRE_KEYSTONE_PASSWORD:+--keystone-password=$CADASTRE_KEYSTONE_PASSWORD} '' >>serves; exit; fi
			case " $* " in *" --follow "*) exec timeout --foreground --preserve-status -s INT 3 "$PROGRAM" "$@";; esac; exec "$PROGRAM" "$@"`,
		"make":    `exec env make -n -C "` + repository + `" "$@" >/dev/null`,
		"pidof":   `echo "$SERVER_PID"`,
		"sqlite3": `[ -x /usr/bin/sqlite3 ] || exit 0; exec /usr/bin/sqlite3 "$@"`,
		"curl":    `case " $* " in *" -N "*) timeout 3 /usr/bin/curl "$@"; [ $? = 124 ];; *) exec /usr/bin/curl --fail-with-body "$@";; esac`,
	} {
		script = strings.ReplaceAll(script, "env make", "/usr/bin/make")
		if err := os.WriteFile(filepath.Join(stand, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return stand
}

// runs runs a sample's program with this text, and reports whether it ran. It
// fails the test on errors. Python may lack the packages of the program.
func runs(t *testing.T, one sample, text, folder string, environment []string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Of(t, time.Minute))
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	if one.language == "python" {
		command = python(ctx, t, text)
	}
	if command == nil {
		return false
	}
	command.Dir, command.Env, command.Stdin = folder, environment, strings.NewReader("yes\n")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s shows what fails: %v\n%s\n%s", one.page, err, one.text, out)
	}
	return true
}

// equipped returns a folder with the files that samples read: the program,
// definitions, a cloud, and the files for flags of `serve`.
func equipped(t *testing.T, program string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(program, filepath.Join(folder, "cadastre")); err != nil {
		t.Fatal(err)
	}
	certificate, key := selfSigned(t)
	hash := sha256.Sum256([]byte("{ viewer { userId } }"))
	for name, text := range map[string]string{
		"tokens.yaml":             "tokens: [{token: a-long-random-text, user: ada, project: operations, roles: [admin]}]\n",
		"cadastre.yaml":           "tokens: tokens.yaml\n",
		"clouds.yaml":             cloudsFile(t, "os-hypervisors/detail", "servers/detail", "os-services"),
		"documents.json":          `{"` + hex.EncodeToString(hash[:]) + `": "{ viewer { userId } }"}`,
		"cert.pem":                certificate,
		"key.pem":                 key,
		"definitions/sample.json": `{"namespace": "Sample::Loaded", "visibility": "public", "properties": {"a": {"title": "A", "type": "string"}}}`,
	} {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
			os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// selfSigned returns a certificate of this machine and its key, both as PEM.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().
		Add(time.Hour), DNSNames: []string{"localhost"}}
	made, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	of, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: of}))
}

// serves checks the flags of each `cadastre serve` that the samples of a page
// ran in a folder. `...` stands for omitted flags, such as the sources of
// tokens.
func serves(t *testing.T, page, folder string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "serves"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, lines := range strings.Split(strings.TrimSuffix(string(text), "\n\n"), "\n\n") {
		args := append([]string{"serve"}, strings.Split(lines, "\n")...)
		for i, value := range args {
			if i > 0 &&
				slices.Contains([]string{"--config", "--tokens", "--trusted-documents", "--tls-cert", "--tls-key"},
					args[i-1]) {
				args[i] = filepath.Join(folder, value)
			}
		}
		if at := slices.Index(args, "..."); at >= 0 {
			args = slices.Replace(args, at, at+1, "--tokens", filepath.Join(folder, "tokens.yaml"))
		}
		program := cli.Program{Serve: func(_ context.Context, options cli.ServeOptions) error {
			options.Sync = "" // clouds.yaml is in the folder
			_, err := configure(options)
			return err
		}}
		if err := cli.Run(t.Context(), program, args, io.Discard, io.Discard); err != nil {
			t.Errorf("%s shows %q: %v", page, args, err)
		}
	}
}

// python returns a command that runs a program, or only parses it if its
// packages are missing. It returns nil without Python.
func python(ctx context.Context, t *testing.T, program string) *exec.Cmd {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if strings.Contains(program, "from gql ") && exec.CommandContext(ctx, path, "-c", "import gql").Run() != nil {
			return exec.CommandContext(ctx, path, "-c", "import ast, sys; ast.parse(sys.argv[1])", program)
		}
		return exec.CommandContext(ctx, path, "-c", program)
	}
	return nil
}
