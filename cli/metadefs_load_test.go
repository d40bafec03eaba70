package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// Two namespaces that differ in case alone, with one display name: case 56 of
// the reference system.
const (
	sameName = `{"namespace": "Same: name", "display_name": "Same", "visibility": "public", "protected": true, "properties": {"p": {"title": "P", "type": "number", "default": 1.50}}}`
	sameCase = `{"namespace": "same: Name", "display_name": "Same", "visibility": "private"}`
)

// TestLoad loads good and bad files in every mode.
func TestLoad(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		a := c.file("in/a.json", sameName)
		c.file("in/b.json", sameCase)
		c.file("in/bad.json", `{"namespace": "Bad", "properties": {"p": {"title": "P", "type": "banana"}}}`)
		c.file("in/broken.json", "{\"namespace\": \"\xff\"}")
		c.file("in/notes.txt", "not a definition")
		in := filepath.Dir(a)
		load := func(args ...string) []string { return append([]string{"metadefs", "load"}, args...) }

		c.fails("admin", "2 of 4 files failed: ", load(in, "--dry-run"),
			"4 namespaces: 2 created, 0 updated, 0 unchanged, 0 skipped, 2 failed (dry run, nothing was done)\n", "a.json: created Same: name\n", "broken.json: $: is not text in UTF-8\n")
		c.fails("admin", "2 of 4 files failed: ", load(in), "bad.json: $.properties.p.type: ", "4 namespaces: 2 created, 0 updated, 0 unchanged, 0 skipped, 2 failed\n")
		c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed", load(a)...)
		c.file("in/a.json", `{"namespace": "Same: name", "visibility": "public"}`)
		c.prints("admin", "1 namespace: 0 created, 0 updated, 0 unchanged, 1 skipped, 0 failed", load(a)...)
		c.fails("admin", "1 of 1 file failed", load(a, "--mode", "overwrite", "--yes"), "a.json: $: PROTECTED: ")
		c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed", load(a, "--mode", "merge")...)
		c.notes("admin", "a.json: updated Same: name\n    ", load(a, "--mode", "overwrite", "--include-protected", "--yes")...)
		c.fails("member", "FORBIDDEN: importNamespaces needs the role admin", load(in))

		c.file("twice/a.json", `{"namespace": "Twice", "visibility": "public"}`)
		twice := filepath.Dir(c.file("twice/b.json", `{"namespace": "Twice", "visibility": "private"}`))
		c.fails("admin", "1 of 2 files failed", load(twice, "--dry-run"), "b.json: $.namespace: is defined by "+filepath.Join(twice, "a.json")+" as well\n")
	})
}

// TestLoadBuiltin loads the product's own definitions, again, and takes them
// away by their origin.
func TestLoadBuiltin(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	first, _, err := c.run("admin", "", "metadefs", "load", "--builtin")
	total, _, _ := strings.Cut(first, " ")
	if err != nil || first != fmt.Sprintf("%[1]s namespaces: %[1]s created, 0 updated, 0 unchanged, 0 skipped, 0 failed\n", total) {
		t.Errorf("got %q, %v", first, err)
	}
	c.prints("admin", fmt.Sprintf("%[1]s namespaces: 0 created, 0 updated, %[1]s unchanged, 0 skipped, 0 failed", total), "metadefs", "load", "--builtin")
	c.prints("admin", total+" namespaces unloaded, 0 failed", "metadefs", "unload", "--origin", "cadastre", "--include-protected", "--yes")
}

// TestLoadInSeveralRequests loads more files than one request takes, one of
// them larger than any request may be, and one that is large by its white
// space.
func TestLoadInSeveralRequests(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	for i := range 60 {
		c.file(fmt.Sprintf("in/%02d.json", i), fmt.Sprintf(`{"namespace": "N%d", "visibility": "public"}`, i))
	}
	c.file("in/large.json", `{"namespace": "Large", "visibility": "public", "description": "`+strings.Repeat("d", 2<<20)+`"}`)
	c.file("in/wide.json", `{"namespace": "Wide", "visibility": "public",`+strings.Repeat(" \n", 1<<20)+`"tags": [{"name": "a b"}]}`)
	half := fmt.Sprintf(`{"title": "P", "type": "string", "description": "%s"}`, strings.Repeat("d", 50_000))
	for i := range 8 { // 100 kB each, so that two of them fill a request
		c.file(fmt.Sprintf("in/x%d.json", i), fmt.Sprintf(`{"namespace": "X%d", "visibility": "public", "properties": {"a": %s, "b": %s}}`, i, half, half))
	}
	c.fails("admin", "1 of 70 files failed: "+filepath.Join(c.folder, "in", "large.json"), command("metadefs load", filepath.Join(c.folder, "in")),
		"large.json: BAD_REQUEST: ", "70 namespaces: 69 created, 0 updated, 0 unchanged, 0 skipped, 1 failed\n")
}

func TestLoadRefused(t *testing.T) {
	t.Parallel()
	empty, none := t.TempDir(), filepath.Join(t.TempDir(), "none.json")
	refuse(t, map[string]string{
		"metadefs load":                                   "nothing to load",
		"metadefs load --builtin " + empty:                "--builtin and a path exclude each other",
		"metadefs load --include-protected " + empty:      "--include-protected needs --mode overwrite or --mode prefer-new",
		"metadefs load --mode replace " + empty:           "--mode must be one of",
		"metadefs load " + empty:                          "no *.json file in " + empty,
		"metadefs load " + none:                           "no such file",
		"metadefs load " + empty + " " + none:             "unexpected argument",
		"metadefs load --mode=merge --include-protected=": "include-protected",
	})
}
