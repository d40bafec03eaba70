package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestExport checks that an exported file changes nothing when it is loaded
// again.
func TestExport(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		in, out := filepath.Dir(c.file("in/a.json", sameName)), filepath.Join(c.folder, "deep", "out")
		c.file("in/b.json", sameCase)
		c.prints("admin", "2 namespaces: 2 created, 0 updated, 0 unchanged, 0 skipped, 0 failed", "metadefs", "load",
			in)
		c.prints("admin", "2 namespaces exported to "+out, "metadefs", "export", out)
		if files := filesIn(t, out); len(files) != 2 {
			t.Errorf("the export wrote %q", files)
		}
		c.prints("admin", "2 namespaces: 0 created, 0 updated, 2 unchanged, 0 skipped, 0 failed", "metadefs", "load",
			out)
		c.fails("admin", "NOT_FOUND: ", command("metadefs export", out, "--name", "None"))
		c.fails("wrong", "unknown token", command("metadefs export", out))
	})
}

func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestExportOfSome exports more namespaces than one request returns, and then a
// few of them by name and by resource type.
func TestExportOfSome(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	const namespaces = 45
	for i := range namespaces {
		resourceType := []string{"OS::Nova::Flavor", "OS::Glance::Image"}[i%2]
		c.file(fmt.Sprintf("in/%d.json", i),
			fmt.Sprintf(`{"namespace": "N%d", "visibility": "public", "resource_type_associations": [{"name": %q}]}`,
				i, resourceType))
	}
	if _, stderr, err := c.run("admin", "", "metadefs", "load", filepath.Join(c.folder, "in")); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for name, of := range map[string]struct {
		flags []string
		want  int
	}{
		"all":             {nil, namespaces},
		"names":           {[]string{"--name", "N1", "--name", "N2", "--name", "N1"}, 2},
		"a type":          {[]string{"--resource-type", "OS::Nova::Flavor"}, 23},
		"a name and type": {[]string{"--resource-type", "OS::Nova::Flavor", "--name", "N1", "--name", "N2"}, 1},
		"nothing":         {[]string{"--resource-type", "physical:host"}, 0},
	} {
		out := filepath.Join(c.folder, name)
		if _, _, err := c.run("admin", "", append(command("metadefs export", out), of.flags...)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if files := filesIn(t, out); len(files) != of.want {
			t.Errorf("%s: wrote %q, want %d files", name, files, of.want)
		}
	}
}

func TestExportRefused(t *testing.T) {
	t.Parallel()
	refuse(t, map[string]string{
		"metadefs export":               "<dir>",
		"metadefs export out more":      "unexpected argument more",
		"metadefs export out --dry-run": "unknown flag --dry-run",
	})
	c := serve(t, storetest.SQLite(t))
	c.fails("admin", "not a directory", command("metadefs export", filepath.Join(c.file("file", ""), "out")))
	c.prints("admin", "0 namespaces exported to "+c.folder, "metadefs", "export", c.folder)
	readOnly := filepath.Join(c.folder, "in", "N.json")
	c.file("in/N.json/x", "")
	c.file("n.json", `{"namespace": "N", "visibility": "public"}`)
	c.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed", "metadefs",
		"load", filepath.Join(c.folder, "n.json"))
	c.fails("admin", "is a directory", command("metadefs export", filepath.Dir(readOnly)))
	if _, err := os.Stat(filepath.Join(readOnly, "x")); err != nil {
		t.Error(err)
	}
}

// TestPortableExport exports for an import elsewhere: the importing project
// becomes the owner.
func TestPortableExport(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c, elsewhere := serve(t, database), serve(t, storetest.SQLite(t))
		file, out := c.file("n.json", `{"namespace": "N", "visibility": "public", "owner": "demo"}`),
			filepath.Join(c.folder, "out")
		c.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed", "metadefs", "load",
			file)
		c.prints("admin", "1 namespace exported to "+out, "metadefs", "export", out)
		text, err := os.ReadFile(filepath.Join(out, "N.json"))
		if err != nil || !strings.Contains(string(text), `"owner": "demo"`) {
			t.Errorf("%s, %v", text, err)
		}
		c.prints("admin", "1 namespace exported to "+out, "metadefs", "export", "--portable", out)
		if text, err = os.ReadFile(filepath.Join(out, "N.json")); err != nil ||
			strings.Contains(string(text), "owner") {
			t.Errorf("%s, %v", text, err)
		}
		c.prints("admin", "1 namespace: 0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed", "metadefs", "load",
			out)
		elsewhere.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed", "metadefs",
			"load", out)
		elsewhere.prints("admin", "1 namespace exported to "+elsewhere.folder, "metadefs", "export", elsewhere.folder)
		if text, err = os.ReadFile(filepath.Join(elsewhere.folder, "N.json")); err != nil ||
			!strings.Contains(string(text), `"owner": "operations"`) {
			t.Errorf("%s, %v", text, err)
		}
		none := filepath.Join(c.folder, "none")
		c.fails("wrong", "unknown token", command("metadefs export --name N", none))
		if _, err := os.Stat(none); err == nil {
			t.Error("an export that failed made the folder")
		}
	})
}
