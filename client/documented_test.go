package client_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/Khan/genqlient/generate"

	"github.com/cadastre-dev/cadastre/demo/demotest"
)

// TestTheDocumentedSettingsCompile generates a client as docs/clients.md
// describes, from the served schema and the operations of this client and of the
// IDE, and compiles it.
func TestTheDocumentedSettingsCompile(t *testing.T) {
	t.Parallel()
	page := read(t, "../docs/clients.md")
	settings := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	folder := filepath.Join(t.TempDir(), "app")
	write(t, filepath.Join(folder, "genqlient.yaml"), settings[1])
	write(t, filepath.Join(folder, "schema.graphql"), read(t, "../schema/merged/schema.graphql"))
	for _, pattern := range []string{"operations/*.graphql", "../web/ide/queries/*.graphql"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 3 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			write(t, filepath.Join(folder, "operations", filepath.Base(filepath.Dir(file))+"-"+filepath.Base(file)),
				read(t, file))
		}
	}
	config, err := generate.ReadAndValidateConfig(filepath.Join(folder, "genqlient.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := generate.Generate(config)
	if err != nil || len(made[config.Generated]) < 10_000 {
		t.Fatalf("%v: made %d bytes", err, len(made[config.Generated]))
	}
	write(t, config.Generated, made[config.Generated])
	overlaid(t, config.Generated, "build")
}

// overlaid runs a go command on a package of one file, as if the file were in a
// folder here, with the modules of this one. It returns the output.
func overlaid(t *testing.T, file, command string) string {
	t.Helper()
	here, err := filepath.Abs("documented/documented.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{here: file}})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(filepath.Dir(file), "overlay.json")
	write(t, at, overlay)
	out, err := exec.CommandContext(t.Context(), "go", command, "-overlay", at, "./documented").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

// TestTheSampleInGoRuns runs the sample of docs/clients.md against the demo cloud.
func TestTheSampleInGoRuns(t *testing.T) {
	t.Parallel()
	sample := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(read(t, "../docs/clients.md"))
	text := strings.Replace(string(sample[1]), "https://cadastre.example.org", demotest.Serve(t), 1)
	file := filepath.Join(t.TempDir(), "documented.go")
	write(t, file, []byte(`package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

func main() {
	if err := run(context.Background(), "demo-reader"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, token string) error {
`+text+`	return nil
}
`))
	if printed := overlaid(t, file, "run"); strings.Count(printed, "\n") < 5 {
		t.Errorf("it prints %q", printed)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
