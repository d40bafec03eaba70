package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/cadastre-dev/cadastre"

// mayImport is the drawing of ARCHITECTURE.md: for each package, the packages
// that it may import. "" is the program itself, server.go.
var mayImport = map[string][]string{
	"": {"access", "auth", "cli", "client", "demo", "graph", "internal/lists",
		"internal/pause", "origin", "page", "placement", "problem", "resource", "rest", "rest/image", "rest/placement",
		"rest/reservation", "rest/share", "schema", "store", "store/sqldb", "store/upkeep", "sync", "text", "web"},
	"access": {"problem"},
	"audit":  {"page", "text"},
	"auth":   {"access", "internal/lru", "internal/wholefile", "problem", "text"},
	"change": {"problem", "text"},
	"cli": {"access", "auth", "client", "client/operations", "defaults", "internal/lists",
		"internal/wholefile", "mcp", "metadef", "problem", "schema", "sync", "text"},
	"client":            {"client/optional", "internal/pause"},
	"client/operations": {},
	"client/optional":   {},
	"defaults":          {},
	"demo":              {"access", "defaults", "metadef", "placement", "resource", "store"},
	"demo/demotest": {"auth", "demo", "graph", "internal/patience",
		"resource", "store", "store/storetest", "web"},
	"ent": {},
	"graph": {"access", "audit", "change", "graph/dataloader", "graph/document",
		"graph/generated", "graph/model", "graph/writer", "internal/lists", "internal/pause", "internal/tracing",
		"metadef", "origin", "page", "placement", "problem", "resource", "store", "text"},
	"graph/dataloader":            {"graph/document", "graph/writer", "internal/tracing", "problem"},
	"graph/document":              {"graph/model", "internal/lru", "problem", "text"},
	"graph/document/documenttest": {},
	"graph/generated": {"access", "audit", "change", "graph/document", "graph/model", "graph/writer",
		"metadef", "origin", "placement", "resource", "text"},
	"graph/model":                {"access", "audit", "change", "metadef", "page", "placement", "problem", "resource"},
	"graph/writer":               {"graph/document", "internal/tracing", "problem", "text"},
	"internal/fill":              {},
	"internal/generate":          {"access"}, // for names of operations
	"internal/generate/commands": {"cli"},
	"internal/lists":             {},
	"internal/lru":               {},
	"internal/patience":          {},
	"internal/pause":             {},
	"internal/wholefile":         {},
	"internal/pgproxy":           {},
	"internal/pgserver":          {},
	"internal/soak":              {},
	"internal/tracing":           {},
	"mcp":                        {"internal/fill", "internal/lists"},
	"metadef": {"access", "internal/lists", "metadef/internal/jsonvalue",
		"page", "placement", "problem", "text"},
	"metadef/internal/jsonvalue": {"internal/lists", "problem", "text"},
	"metadef/metadeftest":        {"metadef"},
	"origin":                     {"access", "internal/lists", "metadef", "problem", "resource", "text"},
	"page":                       {"problem"},
	"placement":                  {},
	"placement/placementtest":    {"placement"},
	"problem":                    {},
	"query":                      {"resource"},
	"resource":                   {"access", "internal/lists", "metadef", "page", "problem", "text"},
	"resource/resident":          {"internal/lists", "resource", "text"},
	"resource/resourcetest":      {"access", "metadef", "problem", "resource", "text"},
	"rest":                       {"access", "page", "problem", "store"},
	"rest/image": {"access", "internal/lists", "metadef", "page", "problem", "rest",
		"store", "store/metadefdb", "text"},
	"rest/placement": {"access", "internal/lists", "page", "placement", "problem",
		"rest", "rest/placement/search", "store"},
	"rest/placement/search": {"internal/lists", "placement", "rest"},
	"rest/reservation":      {"page", "problem", "resource", "rest", "store"},
	"rest/share": {"access", "internal/lists", "metadef", "page",
		"problem", "resource", "rest", "store"},
	"schema": {},
	"store": {"access", "defaults", "ent", "internal/lists", "metadef", "placement", "problem",
		"resource", "store/auditdb", "store/changedb", "store/metadefdb", "store/placementdb", "store/resident",
		"store/resourcedb", "store/sqldb", "store/sqldb/paging"},
	"store/auditdb": {"audit", "ent", "page", "store/sqldb",
		"store/sqldb/paging", "store/visible", "text"},
	"store/changedb": {"access", "change", "ent", "internal/pause", "problem", "store/sqldb",
		"store/sqldb/changelog", "store/visible"},
	"store/metadefdb": {"access", "change", "defaults", "ent", "internal/lists", "internal/lru", "metadef",
		"page", "problem", "store/resident", "store/sqldb", "store/sqldb/changelog", "store/sqldb/paging",
		"store/sqldb/textindex", "store/visible", "text"},
	"store/placementdb": {"access", "change", "ent", "internal/lists", "internal/pause", "page", "placement",
		"problem", "store/sqldb", "store/sqldb/changelog", "store/sqldb/paging", "store/visible", "text"},
	"store/resident": {"internal/pause", "store/sqldb", "store/sqldb/changelog"},
	"store/resourcedb": {"access", "change", "defaults", "ent", "internal/lists", "metadef", "origin",
		"page", "problem", "query", "resource", "resource/resident", "store/metadefdb", "store/resident", "store/sqldb",
		"store/sqldb/changelog", "store/sqldb/paging", "store/sqldb/textindex", "store/visible", "text"},
	"store/sqldb": {"access", "change", "ent", "internal/lists", "internal/pause", "internal/tracing",
		"problem", "store/sqldb/changelog", "store/sqldb/textindex", "text"},
	"store/sqldb/changelog": {"change"},
	"store/sqldb/paging":    {"internal/lists", "page", "problem", "store/sqldb"},
	"store/sqldb/textindex": {"text"},
	"store/storetest": {"access", "internal/patience", "internal/pgserver",
		"placement", "problem", "store", "store/sqldb"},
	"store/upkeep": {"change", "defaults", "metadef", "placement", "resource", "store/sqldb",
		"store/sqldb/changelog", "store/sqldb/textindex", "text"},
	"store/visible": {"access", "change", "ent", "metadef", "resource"},
	"sync": {"client", "client/optional", "internal/lists",
		"internal/pause", "metadef", "origin", "resource"},
	"text": {"problem"},
	"web": {"access", "graph", "graph/document", "internal/lru", "internal/pause",
		"internal/tracing", "mcp", "problem", "rest", "schema", "web/admission"},
	"web/admission": nil,
}

// onlyStandardLibrary are the packages that import only the standard library,
// and libraries that replace own code.
var onlyStandardLibrary = []string{"access", "audit", "change", "defaults", "internal/lists", "internal/pause",
	"metadef", "page", "placement", "problem", "query", "resource", "resource/resident", "schema", "text"}

var libraries = []string{"github.com/go-json-experiment/json/jsontext", "github.com/google/uuid"}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestEveryArrowIsDrawn(t *testing.T) {
	t.Parallel()
	for _, of := range packages(t) {
		drawn, known := drawnPackage(of.ImportPath)
		if !known {
			t.Errorf("%s is not in the drawing: add it to ARCHITECTURE.md and here, or move it below a package that is",
				of.ImportPath)
			continue
		}
		for _, imported := range of.Imports {
			target, ours := drawnPackage(imported)
			switch {
			case ours && target != drawn && !slices.Contains(mayImport[drawn], target):
				t.Errorf("%s imports %s: an arrow from %q to %q is not drawn", of.ImportPath, imported, drawn, target)
			case !ours && strings.HasPrefix(imported, module):
				t.Errorf("%s imports %s, which is not in the drawing", of.ImportPath, imported)
			case !ours && slices.Contains(onlyStandardLibrary, drawn) && strings.Contains(imported, ".") &&
				!slices.Contains(libraries, imported):
				t.Errorf("%s imports %s: this package imports the standard library only", of.ImportPath, imported)
			}
		}
	}
}

// packages returns every package of the module with its imports, without tests.
func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// drawnPackage returns the longest path in the drawing that contains a package.
func drawnPackage(path string) (string, bool) {
	if path == module {
		return "", true
	}
	folder, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return "", false
	}
	for folder != "" {
		if _, ok := mayImport[folder]; ok {
			return folder, true
		}
		cut := strings.LastIndex(folder, "/")
		if cut < 0 {
			break
		}
		folder = folder[:cut]
	}
	return "", false
}
