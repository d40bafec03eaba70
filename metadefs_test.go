package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestMetadefsFromTheCommandLine loads, exports and unloads definitions as an
// operator does. Two namespaces of one display name are case 56.
func TestMetadefsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, testMetadefs)
}

func testMetadefs(t *testing.T, url string) {
	folder := t.TempDir()
	write := func(path, text string) string {
		t.Helper()
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tokens := write("tokens.yaml", "tokens:\n  - {token: secret, user: ada, project: operations, roles: [admin]}\n  - {token: member, user: mel, project: demo, roles: [member]}\n")
	address, _, _ := boot(t, "--database", url, "--tokens", tokens)
	write("in/a.json", `{"namespace": "Same: name", "display_name": "Same", "visibility": "public", "protected": true, "properties": {"p": {"title": "P", "type": "number", "default": 1.50}}}`)
	write("in/b.json", `{"namespace": "same: Name", "display_name": "Same", "visibility": "private"}`)
	write("in/bad.json", `{"namespace": "Bad", "properties": {"p": {"title": "P", "type": "banana"}}}`)
	write("in/broken.json", "{\"namespace\": \"\xff\"}")
	write("in/notes.txt", "not a definition")
	metadefs := func(wantErr string, wants ...string) {
		t.Helper()
		arguments, wanted := wants[:len(wants)-1], wants[len(wants)-1]
		var out bytes.Buffer
		command := append([]string{"metadefs"}, arguments...)
		if arguments[0] != "schema" && !slices.Contains(arguments, "--token") {
			command = append(command, "--token", "secret")
		}
		if arguments[0] != "schema" {
			command = append(command, "--server", address)
		}
		err := run(t.Context(), command, &out, &out)
		switch {
		case wantErr == "" && err != nil, wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("%q: got the error %v, want %q\n%s", arguments, err, wantErr, out.String())
		case !strings.Contains(out.String(), wanted):
			t.Errorf("%q says\n%s\nwant %q", arguments, out.String(), wanted)
		}
	}
	in, out := filepath.Join(folder, "in"), filepath.Join(folder, "out")
	write("twice/a.json", `{"namespace": "Twice", "visibility": "public"}`)
	write("twice/b.json", `{"namespace": "Twice", "visibility": "private"}`)
	metadefs("1 of 2 files failed", "load", filepath.Join(folder, "twice"), "--dry-run", "b.json: $.namespace: is named twice: "+filepath.Join(folder, "twice", "a.json"))

	metadefs("2 of 4 files failed: ", "load", in, "--dry-run", "4 namespaces: 2 created, 0 updated, 0 unchanged, 0 skipped, 2 failed (dry run, nothing was done)\n")
	metadefs("2 of 4 files failed: ", "load", in, "bad.json: $.properties.p.type: must be one of string, integer, number, boolean, array, is banana\n")
	metadefs("", "load", filepath.Join(in, "a.json"), "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed\n")
	write("in/a.json", `{"namespace": "Same: name", "visibility": "public"}`)
	metadefs("", "load", filepath.Join(in, "a.json"), "1 skipped")
	metadefs("1 of 1 file failed", "load", filepath.Join(in, "a.json"), "--mode", "overwrite", "PROTECTED: ")
	metadefs("", "load", filepath.Join(in, "a.json"), "--mode", "merge", "1 unchanged")

	metadefs("", "export", out, "2 namespaces exported to ")
	files, err := filepath.Glob(filepath.Join(out, "*.json"))
	if err != nil || len(files) != 2 {
		t.Errorf("the export wrote %q (%v)", files, err)
	}
	metadefs("", "load", out, "2 namespaces: 0 created, 0 updated, 2 unchanged")
	metadefs(`: NOT_FOUND: there is no namespace "None"`, "export", out, "--name", "None", "")

	metadefs("1 namespace stayed: Same: name", "unload", "Same: name", "PROTECTED: ")
	metadefs("nothing was deleted", "unload", "--all", "Type all")
	metadefs("", "unload", "--all", "--yes", "--include-protected", "2 namespaces unloaded, 0 failed\n")
	metadefs("", "load", out, "2 created")

	metadefs("", "load", "--builtin", "created, 0 updated, 0 unchanged, 0 skipped, 0 failed\n")
	metadefs("", "load", "--builtin", "0 created, 0 updated, ")
	metadefs("", "unload", "--origin", "cadastre", "--include-protected", "unloaded, 0 failed\n")

	metadefs(": FORBIDDEN: only an administrator may import namespaces", "load", in, "--token", "member", "")
	metadefs(": FORBIDDEN: only an administrator may unload namespaces", "unload", "Same: name", "--token", "member", "")
	metadefs(": BAD_USER_INPUT: input.origin: must not be empty", "unload", "--origin", "", "")
	metadefs("does not know the token", "unload", "Same: name", "--token", "wrong", "")
	wide := write("wide.json", `{"namespace": "Wide", "visibility": "public",`+strings.Repeat(" \n", 1<<20)+`"tags": [{"name": "a b"}]}`)
	metadefs("", "load", wide, "1 created")
	metadefs("", "unload", "Wide", "1 namespace unloaded")
	metadefs("takes no path", "load", "--builtin", in, "")
	metadefs("name a definition file", "load", "")
	metadefs("--mode overwrite and --mode prefer-new only", "load", in, "--include-protected", "")
	metadefs("must be one of", "load", in, "--mode", "replace", "")
	metadefs("holds no *.json file", "load", t.TempDir(), "")
	metadefs("no such file", "load", filepath.Join(in, "none.json"), "")
	metadefs("goes without names", "unload", "--all", "N", "")
	metadefs("say --all", "unload", "")
	metadefs("", "schema", `"$schema"`)
}
