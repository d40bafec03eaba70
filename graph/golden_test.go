package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"golang.org/x/tools/txtar"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// The goldens are testdata/*.txtar. A file named *.graphql is an operation. The
// operations run in the order of the archive. Their first lines can be
// comments:
//
//	# viewer: admin | service | member | reader | foreign | nobody   (admin when absent)
//	# variables: {"name": "x"}
//
// The file with the same name and the suffix .json is the answer. Its last
// line, outside of the JSON, is the number of SQL statements. Both databases
// must return the same bytes. `go test ./graph -update` rewrites the answers.
var update = flag.Bool("update", false, "rewrite the answers in testdata")

func TestMain(m *testing.M) { storetest.Main(m) }

func TestGoldens(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				answers := replay(t, openFor(t, storetest.SQLite(t), archive), archive)
				if err := os.WriteFile(file, txtar.Format(withAnswers(archive, answers)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			storetest.EachURL(t, func(t *testing.T, url string) {
				wanted := map[string]string{}
				for _, file := range archive.Files {
					if strings.HasSuffix(file.Name, ".json") {
						wanted[file.Name] = string(file.Data)
					}
				}
				if *update {
					wanted = replay(t, openFor(t, storetest.SQLite(t), archive), archive)
				}
				for name, answer := range replay(t, openFor(t, url, archive), archive) {
					if answer != wanted[name] {
						t.Errorf("%s: got\n%s\nwant\n%s", name, answer, wanted[name])
					}
				}
			})
		})
	}
}

// oneForEach is so few connections that an operation with one connection waits
// forever if it takes a second.
const oneForEach = 2

// openFor opens a store with the options in the comment of an archive:
// `discovery: everyone` opens the discovery of capabilities.
func openFor(t *testing.T, url string, archive *txtar.Archive) *store.Store {
	t.Helper()
	options := store.Options{URL: url, Log: slog.New(slog.DiscardHandler), Connections: oneForEach}
	for line := range strings.Lines(string(archive.Comment)) {
		if value, ok := strings.CutPrefix(line, "discovery: "); ok {
			options.Resources.CapabilityDiscovery = resource.CapabilityDiscovery(strings.TrimSpace(value))
		}
	}
	s, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// replay runs the operations of an archive and returns their answers by file
// name.
func replay(t *testing.T, s *store.Store, archive *txtar.Archive) map[string]string {
	t.Helper()
	executor := executorOf(t, s)
	answers := map[string]string{}
	saved := map[string]string{}
	for _, file := range archive.Files {
		name, ok := strings.CutSuffix(file.Name, ".graphql")
		if !ok {
			continue
		}
		answer, statements := run(t, executor, string(file.Data), saved)
		answers[name+".json"] = fmt.Sprintf("%s\nSQL statements: %d\n", answer, statements)
	}
	return answers
}

// run runs one operation and returns its answer and number of statements. Ids,
// cursors and times differ from run to run, so they appear as `<id 1>`,
// `<cursor>` and `<time>`. Ids are numbered by their first appearance in the
// archive. An operation refers to such an id with `$<id 1>`.
func run(t *testing.T, executor *graph.Executor, text string, saved map[string]string) (string, int) {
	t.Helper()
	viewer, variables := "admin", ""
	for _, line := range strings.Split(text, "\n") {
		if value, ok := strings.CutPrefix(line, "# viewer: "); ok {
			viewer = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, "# variables: "); ok {
			variables = value
		}
	}
	text, variables = restored(text, saved), restored(variables, saved)
	params := &graphql.RawParams{Query: text}
	if variables != "" {
		decoder := json.NewDecoder(strings.NewReader(variables))
		decoder.UseNumber()
		if err := decoder.Decode(&params.Variables); err != nil {
			t.Fatalf("variables %s: %v", variables, err)
		}
	}
	ctx := access.WithViewer(graph.WithRequestID(context.Background(), "request"), viewers[viewer])
	ctx, statements := store.CountStatements(ctx)
	response := executor.Execute(ctx, params)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(response); err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, bytes.TrimSpace(out.Bytes()), "", "  "); err != nil {
		t.Fatal(err)
	}
	return hidden(pretty.String(), saved), statements()
}

var viewers = map[string]access.Viewer{
	"admin":   {UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}},
	"service": {UserID: "agent", ProjectID: "services", Roles: []string{access.RoleService}},
	"member":  {UserID: "mel", ProjectID: "demo", Roles: []string{access.RoleMember, access.RoleReader}},
	"reader":  {UserID: "rae", ProjectID: "demo", Roles: []string{access.RoleReader}},
	"foreign": {UserID: "fay", ProjectID: "elsewhere", Roles: []string{access.RoleMember, access.RoleReader}},
	"nobody":  {},
}

var (
	idField     = regexp.MustCompile(`"(?:id|[a-z]+Id)": "([A-Za-z0-9_-]{12,})"`)
	cursorField = regexp.MustCompile(`"(cursor|startCursor|endCursor|latest)": "([A-Za-z0-9_.-]+)"`)
	timeField   = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)
	restoring   = regexp.MustCompile(`\$<((?:id|cursor) \d+)>`)
)

func hidden(answer string, saved map[string]string) string {
	answer = replaced(answer, "id", idField, 1, saved)
	answer = replaced(answer, "cursor", cursorField, 2, saved)
	return timeField.ReplaceAllStringFunc(answer, func(text string) string {
		if _, err := time.Parse(time.RFC3339Nano, strings.Trim(text, `"`)); err != nil {
			return text
		}
		return `"<time>"`
	})
}

// replaced replaces the matches of a pattern's group with names. Equal strings
// get the same name.
func replaced(answer, kind string, pattern *regexp.Regexp, group int, saved map[string]string) string {
	var out strings.Builder
	end := 0
	for _, match := range pattern.FindAllStringSubmatchIndex(answer, -1) {
		from, to := match[2*group], match[2*group+1]
		value := answer[from:to]
		name, ok := saved[kind+"="+value]
		if !ok {
			name = kind + " " + strconv.Itoa(count(saved, kind)+1)
			saved[kind+"="+value], saved[name] = name, value
		}
		out.WriteString(answer[end:from] + "<" + name + ">")
		end = to
	}
	return out.String() + answer[end:]
}

func count(saved map[string]string, kind string) int {
	n := 0
	for key := range saved {
		if strings.HasPrefix(key, kind+"=") {
			n++
		}
	}
	return n
}

func restored(text string, saved map[string]string) string {
	return restoring.ReplaceAllStringFunc(text, func(reference string) string {
		return saved[strings.Trim(reference, "$<>")]
	})
}

func withAnswers(archive *txtar.Archive, answers map[string]string) *txtar.Archive {
	out := &txtar.Archive{Comment: archive.Comment}
	for _, file := range archive.Files {
		if strings.HasSuffix(file.Name, ".json") {
			continue
		}
		out.Files = append(out.Files, file)
		if name, ok := strings.CutSuffix(file.Name, ".graphql"); ok {
			out.Files = append(out.Files, txtar.File{Name: name + ".json", Data: []byte(answers[name+".json"])})
		}
	}
	return out
}

// executorOf returns an executor of a store that logs to the test.
func executorOf(t *testing.T, s *store.Store) *graph.Executor {
	return graph.NewExecutor(&graph.Resolver{Store: s}, slog.New(slog.NewTextHandler(testWriter{t}, nil)))
}

// testWriter writes a log to the log of the test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Helper()
	if bytes.Contains(line, []byte("read at several instants")) {
		w.t.Errorf("%s", line)
	}
	w.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}
