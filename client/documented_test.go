package client_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/Khan/genqlient/generate"
)

// TestTheDocumentedSettingsCompile generates a client as docs/clients.md says,
// from the schema that servers give, the operations of this client and those of
// the IDE, and compiles it.
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
			write(t, filepath.Join(folder, "operations", filepath.Base(filepath.Dir(file))+"-"+filepath.Base(file)), read(t, file))
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
	// It is compiled as if it were a folder here, with the modules of this one.
	here, err := filepath.Abs("documented/generated.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{here: config.Generated}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "overlay.json"), overlay)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(folder, "overlay.json"), "./documented").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
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
