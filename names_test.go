package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoTwoNamesDifferByCaseAlone checks the handwritten code: the identifiers
// of each package, and the fields and methods of each type.
func TestNoTwoNamesDifferByCaseAlone(t *testing.T) {
	t.Parallel()
	declared := map[string]string{} // the spelling of each scope and folded name
	check := func(scope string, names ...*ast.Ident) {
		for _, name := range names {
			key := scope + " " + strings.ToLower(name.Name)
			if other, ok := declared[key]; ok && other != name.Name {
				t.Errorf("%s: %s and %s differ by case alone", scope, other, name.Name)
			}
			declared[key] = name.Name
		}
	}
	for path, file := range handWritten(t) {
		scope := filepath.ToSlash(filepath.Dir(path))
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					check(scope, d.Name)
				} else {
					check(scope+"."+receiver(d.Recv.List[0].Type), d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						check(scope, s.Names...)
					case *ast.TypeSpec:
						check(scope, s.Name)
						ast.Inspect(s.Type, func(node ast.Node) bool {
							if structure, ok := node.(*ast.StructType); ok {
								for _, field := range structure.Fields.List {
									check(scope+"."+s.Name.Name, field.Names...)
								}
							}
							return true
						})
					}
				}
			}
		}
	}
}

// handWritten returns the files of the module by path, without tests and
// generated code.
func handWritten(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		head, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil || ast.IsGenerated(head) {
			return err
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// receiver returns the type name of a method's receiver.
func receiver(of ast.Expr) string {
	switch e := of.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
