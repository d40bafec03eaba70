package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// section returns the part of ARCHITECTURE.md below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("ARCHITECTURE.md has no section %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

// declaredName matches a name of this module as ARCHITECTURE.md writes it: the
// folder of a package, then a declaration, then possibly a method of it.
var declaredName = regexp.MustCompile("`((?:[a-z][a-z0-9]*/)*[a-z][a-z0-9]*)\\.([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)?)`")

// extensions end file names that look like declared names.
var extensions = []string{"go", "graphql", "md", "sql", "tsx", "txt", "txtar", "yaml", "yml"}

// TestArchitectureNamesWhatIsDeclared finds functions, types or methods that
// ARCHITECTURE.md names but their package does not declare.
func TestArchitectureNamesWhatIsDeclared(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]map[string]bool{}
	for _, match := range declaredName.FindAllStringSubmatch(string(text), -1) {
		folder, name := match[1], match[2]
		if slices.Contains(extensions, name[strings.LastIndex(name, ".")+1:]) {
			continue
		}
		if declared[folder] == nil {
			declared[folder] = declarations(t, folder)
		}
		if !declared[folder][name] {
			t.Errorf("ARCHITECTURE.md names %s.%s, which %s does not declare", folder, name, folder)
		}
	}
	for _, heading := range []string{"The way of a query", "The way of a child field", "The way of a mutation"} {
		if names := declaredName.FindAllString(section(t, heading), -1); len(names) < 8 {
			t.Errorf("%q names only %q", heading, names)
		}
	}
}

// declarations returns the names that a package declares outside its tests:
// functions, types, variables and constants as they are, methods as
// Type.Method.
func declarations(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("ARCHITECTURE.md names the package %s, which has no files: %v", folder, err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				names[receiverPrefix(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names[name.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

// receiverPrefix returns "Type." for a method, and "" for a function.
func receiverPrefix(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "."
		default:
			return "?."
		}
	}
}

// TestArchitectureDrawsThePackages compares the drawing with the list of
// packages and arrows. The drawing must have every package except tests and
// internal ones, and only allowed arrows.
func TestArchitectureDrawsThePackages(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`^( *)([a-z_.]+) {2,}([^\n]+)$`)
	drawn := map[string]bool{}
	var above []string // the folders that contain the current line, by indentation
	for text := range strings.Lines(section(t, "The drawing")) {
		match := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if match == nil {
			continue
		}
		above = append(above[:min(len(match[1])/2, len(above))], match[2])
		folder := path.Join(above...)
		if _, err := os.Stat(folder); err != nil {
			t.Errorf("the drawing has %s: %v", folder, err)
		}
		drawn[folder] = true
		_, arrows, _ := strings.Cut(match[3], "; -> ")
		for target := range strings.SplitSeq(arrows, ", ") {
			if target != "" && !slices.Contains(mayImport[folder], target) {
				t.Errorf("the drawing has an arrow from %s to %s, which imports_test.go does not list", folder, target)
			}
		}
	}
	for folder := range mayImport {
		if folder != "" && !strings.Contains(folder, "internal/") &&
			!strings.HasSuffix(folder, "test") && !drawn[folder] {
			t.Errorf("the drawing lacks %s", folder)
		}
	}
}

// TestArchitectureHasAGlossary finds glossary terms that are duplicated or out
// of order, and a glossary without its terms.
func TestArchitectureHasAGlossary(t *testing.T) {
	t.Parallel()
	var terms []string
	for _, match := range regexp.MustCompile(`(?m)^- \*\*([a-z ]+)\*\*: [^\n]+\.$`).
		FindAllStringSubmatch(section(t, "Glossary"), -1) {
		terms = append(terms, match[1])
	}
	if len(terms) < 30 {
		t.Errorf("the glossary has %d terms, want 30 at least", len(terms))
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(terms))); !slices.Equal(terms, sorted) {
		t.Errorf("the terms are not sorted, each once: %q", terms)
	}
}
