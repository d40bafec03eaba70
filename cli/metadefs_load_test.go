package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// Two namespaces that differ only in case, with one display name: case 56 of
// the reference system.
const (
	sameName = `{"namespace": "Same: name", "display_name": "Same", "visibility": "public", "protected": true, "properties": {"p": {"title": "P", "type": "number", "default": 1.50}}}`
	sameCase = `{"namespace": "same: Name", "display_name": "Same", "visibility": "private"}`
)

// TestLoad loads valid and invalid files in every mode.
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
			"4 namespaces: 2 created, 0 updated, 0 unchanged, 0 skipped, 2 failed (dry run, nothing was changed)\n",
			"a.json: created Same: name\n", "broken.json: $: is not text in UTF-8\n")
		c.fails("admin", "2 of 4 files failed: ", load(in), "bad.json: $.properties.p.type: ",
			"4 namespaces: 2 created, 0 updated, 0 unchanged, 0 skipped, 2 failed\n")
		c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed", load(a)...)
		c.file("in/a.json", `{"namespace": "Same: name", "visibility": "public"}`)
		c.prints("admin", "1 namespace: 0 created, 0 updated, 0 unchanged, 1 skipped, 0 failed", load(a)...)
		c.fails("admin", "1 of 1 file failed", load(a, "--mode", "overwrite", "--yes"), "a.json: $: PROTECTED: ")
		c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed",
			load(a, "--mode", "merge")...)
		c.notes("admin", "a.json: updated Same: name\n    ",
			load(a, "--mode", "overwrite", "--include-protected", "--yes")...)
		c.fails("member", "4 of 4 files failed", load(in),
			"a.json: $: FORBIDDEN: importNamespaces needs the role admin",
			"b.json: $: FORBIDDEN: importNamespaces needs the role admin")
		c.fails("reader", "FORBIDDEN: importNamespaces needs the role admin", load(in))

		c.file("twice/a.json", `{"namespace": "Twice", "visibility": "public"}`)
		twice := filepath.Dir(c.file("twice/b.json", `{"namespace": "Twice", "visibility": "private"}`))
		c.fails("admin", "1 of 2 files failed", load(twice, "--dry-run"),
			"b.json: $.namespace: is also defined by "+filepath.Join(twice, "a.json")+"\n")
	})
}

// TestLoadBuiltin loads the built-in definitions twice, and unloads them by
// their origin.
func TestLoadBuiltin(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	first, _, err := c.run("admin", "", "metadefs", "load", "--builtin")
	total, _, _ := strings.Cut(first, " ")
	if err != nil ||
		first != fmt.Sprintf("%[1]s namespaces: %[1]s created, 0 updated, 0 unchanged, 0 skipped, 0 failed\n", total) {
		t.Errorf("got %q, %v", first, err)
	}
	c.prints("admin", fmt.Sprintf("%[1]s namespaces: 0 created, 0 updated, %[1]s unchanged, 0 skipped, 0 failed",
		total), "metadefs", "load", "--builtin")
	c.prints("admin", total+" namespaces unloaded, 0 failed", "metadefs", "unload", "--origin",
		"cadastre", "--include-protected", "--yes")
	c.prints("admin", fmt.Sprintf("%[1]s namespaces: 0 created, 0 updated, 0 unchanged, %[1]s skipped, 0 failed",
		total), "metadefs", "load", "--builtin")
}

// TestUnloadedStaysAway unloads a built-in namespace, loads all others again,
// then this one by name.
func TestUnloadedStaysAway(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		const name, other = "Cadastre::VirtualCPUTopology", "Cadastre::Watchdog"
		only := func(counts string) string { return "1 namespace: " + counts + ", 0 failed" }
		c.prints("admin", only("1 created, 0 updated, 0 unchanged, 0 skipped"),
			command("metadefs load --builtin", name)...)
		c.prints("admin", "1 namespace unloaded, 0 failed",
			command("metadefs unload --yes --include-protected", name)...)
		for _, more := range []string{"--dry-run", "", "--mode=merge", "--mode=overwrite --yes"} {
			stdout, stderr, err := c.run("admin", "", command("metadefs load --builtin "+more)...)
			if err != nil || !strings.Contains(stdout, " 1 skipped, 0 failed") ||
				!strings.Contains(stderr,
					name+": skipped: it was unloaded or deleted here; --name \""+name+"\" loads it again\n") {
				t.Errorf("%s: %v\n%s%s", more, err, stdout, stderr)
			}
		}
		c.fails("admin", "NOT_FOUND: ", command("metadefs export --name "+name, c.folder))
		c.prints("admin", only("1 created, 0 updated, 0 unchanged, 0 skipped"),
			command("metadefs load --builtin --name", name)...)
		c.prints("admin", only("0 created, 0 updated, 1 unchanged, 0 skipped"),
			command("metadefs load --builtin", name)...)
		if _, stderr, err := c.run("admin", "", command("metadefs load --builtin")...); err != nil ||
			strings.Contains(stderr, "unloaded") {
			t.Errorf("%v: %s", err, stderr)
		}
		file := c.file("w.json", `{"namespace": "Cadastre::Watchdog", "visibility": "public"}`)
		c.prints("admin", "1 namespace unloaded, 0 failed",
			command("metadefs unload --yes --include-protected", other)...)
		// without an origin
		c.prints("admin", only("1 created, 0 updated, 0 unchanged, 0 skipped"), command("metadefs load", file)...)
	})
}

// TestLoadInSeveralRequests loads more files than one request takes. One of
// them is larger than any request may be, and another is large only by its
// white space.
func TestLoadInSeveralRequests(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	for i := range 60 {
		c.file(fmt.Sprintf("in/%02d.json", i), fmt.Sprintf(`{"namespace": "N%d", "visibility": "public"}`, i))
	}
	c.file("in/large.json",
		`{"namespace": "Large", "visibility": "public", "description": "`+strings.Repeat("d", 2<<20)+`"}`)
	c.file("in/wide.json", `{"namespace": "Wide", "visibility": "public",`+
		strings.Repeat(" \n", 1<<20)+`"tags": [{"name": "a b"}]}`)
	half := fmt.Sprintf(`{"title": "P", "type": "string", "description": "%s"}`, strings.Repeat("d", 50_000))
	for i := range 8 { // 100 kB each, so that two of them fill a request
		c.file(fmt.Sprintf("in/x%d.json", i),
			fmt.Sprintf(`{"namespace": "X%d", "visibility": "public", "properties": {"a": %s, "b": %s}}`, i, half,
				half))
	}
	c.fails("admin", "1 of 70 files failed: "+filepath.Join(c.folder, "in", "large.json"),
		command("metadefs load", filepath.Join(c.folder, "in")),
		"large.json: $.description: must have at most 500 characters, has 2097152\n",
		"70 namespaces: 69 created, 0 updated, 0 unchanged, 0 skipped, 1 failed\n")
}

func TestLoadRefused(t *testing.T) {
	t.Parallel()
	empty, none := t.TempDir(), filepath.Join(t.TempDir(), "none.json")
	refuse(t, map[string]string{
		"metadefs load":                "nothing to load",
		"metadefs load --builtin None": `no file defines the namespace "None"`,
		"metadefs load --include-protected " +
			empty: "--include-protected needs --mode overwrite or --mode prefer-new",
		"metadefs load --mode replace " + empty:           "--mode must be one of",
		"metadefs load " + empty:                          "no *.json file in " + empty,
		"metadefs load " + none:                           "no such file",
		"metadefs load " + none + " " + empty:             "no such file",
		"metadefs load --mode=merge --include-protected=": "include-protected",
	})
}

// TestLoadOfSome loads some of the files by name, and reports the outcome of
// each.
func TestLoadOfSome(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	a, b := c.file("in/a.json", `{"namespace": "A", "visibility": "public"}`),
		c.file("in/b.json", `{"namespace": "B", "visibility": "public"}`)
	const one = "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed"
	c.prints("admin", one, "metadefs", "load", filepath.Dir(a), "--name", "A")
	c.prints("admin", "2 namespaces: 1 created, 0 updated, 1 unchanged, 0 skipped, 0 failed", "metadefs", "load", a, b)
	c.notes("admin", "a.json: unchanged A\n"+b+": unchanged B\n", command("metadefs load -v", a, b)...)
	c.file("in/a.json", `{"namespace": "A", "visibility": "private"}`)
	c.notes("admin", a+": skipped A\n", command("metadefs load", filepath.Dir(a))...)
	c.fails("admin", `no file defines the namespace "C"`, command("metadefs load --name A --name C", a, b))
	c.prints("admin", one, "metadefs", "load", "--builtin", "Cadastre::VirtualCPUTopology")
	c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed", "metadefs", "load",
		"--builtin", "--name", "Cadastre::VirtualCPUTopology")
}

// TestIdenticalProtectedNamespacesAreUnchanged loads an unchanged protected
// namespace in every mode.
func TestIdenticalProtectedNamespacesAreUnchanged(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		file := c.file("a.json", sameName)
		c.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed", "metadefs", "load",
			file)
		for _, mode := range []string{"skip", "merge", "prefer-new", "overwrite"} {
			c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed", "metadefs",
				"load", "--yes", "--mode", mode, file)
		}
	})
}

// TestEditorsImport has a member import into a namespace that its project may
// edit, and into others.
func TestEditorsImport(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		for _, name := range []string{"Edited", "Public", "Hidden"} {
			visibility := map[string]string{"Public": "public"}[name]
			if visibility == "" {
				visibility = "private"
			}
			file := c.file(name+".json",
				fmt.Sprintf(`{"namespace": %q, "visibility": %q, "resource_type_associations": [{"name": "OS::Nova::Flavor"}], "properties": {"p": {"title": "P", "type": "string"}}}`, name, visibility))
			c.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed", "metadefs", "load",
				file)
		}
		request := &graphql.Request{OpName: "Share",
			Query: `mutation Share { shareNamespace(input: {namespace: "Edited", projectId: "demo", role: EDITOR}) { namespace { name } } }`}
		if err := client.New(c.address, client.WithToken("admin")).
			MakeRequest(t.Context(), request, &graphql.Response{}); err != nil {
			t.Fatal(err)
		}
		load := func(name, rest string) []string {
			return command("metadefs load --yes --mode overwrite",
				c.file("new/"+name+".json", fmt.Sprintf(`{"namespace": %q, "display_name": "Changed"%s}`, name, rest)))
		}
		const kept = `, "visibility": "private", "resource_type_associations": [{"name": "OS::Nova::Flavor"}]`
		c.notes("member", "Edited.json: updated Edited\n",
			load("Edited", kept+`, "properties": {"q": {"title": "Q", "type": "string"}}`)...)
		c.notes("member", "Edited.json: unchanged Edited\n",
			append(load("Edited", kept+`, "properties": {"q": {"title": "Q", "type": "string"}}`), "-v")...)
		for rest, want := range map[string]string{
			`, "visibility": "public", "resource_type_associations": [{"name": "OS::Nova::Flavor"}]`: "$: FORBIDDEN: an import that changed $.visibility",
			"":                         "$: FORBIDDEN: an import that removed $.resource_type_associations",
			kept + `, "owner": "demo"`: "$: FORBIDDEN: an import that changed $.owner",
			kept +
				`, "owner": "else"`: "$: FORBIDDEN: making another project the owner of a namespace needs the role admin",
			kept + `, "protected": true`: "$: FORBIDDEN: an import that changed $.protected",
		} {
			c.fails("member", "1 of 1 file failed", load("Edited", rest), want)
		}
		c.fails("member", "1 of 1 file failed", load("Public", kept),
			"$: FORBIDDEN: importNamespaces needs the role admin, or the role member in a project that the namespace is shared with as EDITOR")
		const hidden = "json: $: FORBIDDEN: importNamespaces needs the role admin\n"
		c.fails("member", "1 of 1 file failed", load("Hidden", kept+`, "owner": "operations"`), hidden)
		c.fails("member", "1 of 1 file failed", load("Absent", kept+`, "owner": "operations"`), hidden)
	})
}

// TestLargeFiles exports namespaces and loads them on another server. Each is
// larger than a request, and together they are larger than an answer.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c, elsewhere := serve(t, database), serve(t, storetest.SQLite(t))
		out, back := filepath.Join(c.folder, "out"), filepath.Join(c.folder, "back")
		for _, name := range []string{"A", "B"} {
			var properties, members []string
			for i := range 50 { // 4.4 MB for each namespace
				text := strings.Repeat(`\"ddddddd`, 4_900)
				properties = append(properties,
					fmt.Sprintf(`"p%d": {"title": "P", "type": "string", "description": "%s"}`, i, text))
				members = append(members,
					fmt.Sprintf(`"m%d": {"title": "M", "type": "string", "description": "%s"}`, i, text))
			}
			c.file("in/"+name+".json",
				fmt.Sprintf(`{"namespace": %q, "visibility": "public", "properties": {%s}, "objects": [{"name": "o", "required": ["m0", "m49"], "properties": {%s}}, {"name": "q"}], "tags": [{"name": "t"}]}`,
					name, strings.Join(properties, ", "), strings.Join(members, ", ")))
		}
		counts := func(text string) string { return "2 namespaces: " + text + ", 0 failed" }
		in := filepath.Join(c.folder, "in")
		c.prints("admin",
			"1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed (dry run, nothing was changed)",
			command("metadefs load --dry-run --name A", in)...)
		c.prints("admin", counts("2 created, 0 updated, 0 unchanged, 0 skipped"), command("metadefs load", in)...)
		c.prints("admin", "2 namespaces exported to "+out, command("metadefs export", out)...)
		elsewhere.prints("admin", counts("2 created, 0 updated, 0 unchanged, 0 skipped"),
			command("metadefs load", out)...)
		elsewhere.prints("admin", "2 namespaces exported to "+back, command("metadefs export", back)...)
		for _, name := range []string{"A.json", "B.json"} {
			first, err := os.ReadFile(filepath.Join(out, name))
			second, again := os.ReadFile(filepath.Join(back, name))
			if err != nil || again != nil || len(first) < 4<<20 || !bytes.Equal(first, second) {
				t.Errorf("%s has %d bytes, then %d: %v %v", name, len(first), len(second), err, again)
			}
		}
		c.fails("member", "1 of 1 file failed", command("metadefs load --name A", in),
			"A.json: $: FORBIDDEN: importNamespaces needs the role admin")
		c.fails("reader", "FORBIDDEN: importNamespaces needs the role admin", command("metadefs load", in))
	})
}

// TestLoadReportsEdits edits one string of a file at a time. The namespace is
// then not unchanged. Skip and a dry run of overwrite note what overwrite would
// change, and change nothing.
func TestLoadReportsEdits(t *testing.T) {
	t.Parallel()
	const content = `{"namespace": "N", "description": "of N", "display_name": "title of N", "visibility": "public",
		"properties": {"p": {"title": "title of p", "description": "of p", "type": "string"}},
		"objects": [{"name": "o", "description": "of o", "properties": {"q": {"title": "title of q", "description": "of q", "type": "string"}}}],
		"tags": [{"name": "t"}], "resource_type_associations": [{"name": "OS::Nova::Flavor", "prefix": "a:"}]}`
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		c.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed",
			command("metadefs load", c.file("n.json", content))...)
		var file string
		for text, difference := range map[string]string{
			`"of N"`:       `changed $.description: "of N" -> "of N edited"`,
			`"title of N"`: `changed $.display_name: "title of N" -> "title of N edited"`,
			`"title of p"`: `changed $.properties.p.title: "title of p" -> "title of p edited"`,
			`"of p"`:       `changed $.properties.p.description: "of p" -> "of p edited"`,
			`"of o"`:       `changed $.objects.o.description: "of o" -> "of o edited"`,
			`"title of q"`: `changed $.objects.o.properties.q.title: "title of q" -> "title of q edited"`,
			`"of q"`:       `changed $.objects.o.properties.q.description: "of q" -> "of q edited"`,
			`"t"`:          "added $.tags['t edited']\n    removed $.tags.t",
			`"a:"`:         "removed $.resource_type_associations['OS::Nova::Flavor, prefix a:']",
		} {
			file = c.file("edited.json", strings.Replace(content, text, strings.TrimSuffix(text, `"`)+` edited"`, 1))
			c.prints("admin", "1 namespace: 0 created, 0 updated, 0 unchanged, 1 skipped, 0 failed",
				command("metadefs load", file)...)
			c.prints("admin",
				"1 namespace: 0 created, 1 updated, 0 unchanged, 0 skipped, 0 failed (dry run, nothing was changed)",
				command("metadefs load --mode overwrite --dry-run", file)...)
			c.notes("admin", "    "+difference+"\n", command("metadefs load", file)...)
			c.notes("admin", "    "+difference+"\n", command("metadefs load --mode overwrite --dry-run", file)...)
		}
		c.notes("admin", "skipped N\n    removed $.description: \"of N\"\n",
			command("metadefs load",
				c.file("less.json", strings.Replace(content, `"description": "of N", `, "", 1)))...)
		c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed",
			command("metadefs load --mode overwrite --yes", filepath.Join(c.folder, "n.json"))...)
		c.prints("admin", "1 namespace: 0 created, 1 updated, 0 unchanged, 0 skipped, 0 failed",
			command("metadefs load --mode overwrite --yes", file)...)
		c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed",
			command("metadefs load --mode overwrite --yes", file)...)
	})
}
