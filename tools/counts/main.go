// Counts prints the size of the project and fails if a figure exceeds its bound
// in counts/bounds.txt or has none. A commit that raises a bound must say why.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
)

// notProgram matches the folders of code that is not in the program: test help,
// benchmarks, generators and tools.
var notProgram = regexp.MustCompile(`(^|/)[a-z]*test$|^internal/(generate|patience|pgproxy|pgserver|soak)$|^(bench|tools)(/|$)`)

// serveFlag matches the beginning of each flag in the help of `serve`.
var serveFlag = regexp.MustCompile(`(?m)^\s+(?:-[a-zA-Z], )?--`)

// maxColumns is how wide a line of code may be. A tab counts as four columns.
const maxColumns = 120

func main() {
	root, bounds := os.Args[1], os.Args[2]
	text, err := os.ReadFile(bounds)
	if err != nil {
		fail(err)
	}
	if err := os.Chdir(root); err != nil {
		fail(err)
	}
	found, err := count()
	if err != nil {
		fail(err)
	}
	grown := false
	for line := range strings.Lines(string(text)) {
		var bound int
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if _, err := fmt.Sscan(rest, &bound); err != nil || !ok {
			fail(fmt.Errorf("%s: %q is not a name and a bound", bounds, line))
		}
		fmt.Printf("%-44s %7d  at most %7d\n", name, found[name], bound)
		if found[name] > bound {
			grown = true
			fmt.Printf("%s grew: make it smaller, or raise the bound in %s and say why in the commit\n", name, bounds)
		}
		delete(found, name)
	}
	for name := range found {
		grown = true
		fmt.Printf("%s has no bound in %s\n", name, bounds)
	}
	if grown {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "counts:", err)
	os.Exit(1)
}

// count returns each figure by its name.
func count() (map[string]int, error) {
	listed, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	found := map[string]int{}
	sources, all := map[string]int{}, map[string]int{} // files by folder
	for name := range strings.FieldsSeq(string(listed)) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // deleted, and not committed yet
		}
		switch {
		case path.Ext(name) == ".md":
			found["words in documents"] += len(bytes.Fields(text))
		case path.Ext(name) == ".go" && !strings.Contains(name, "/testdata/"):
			if err := countGo(found, sources, all, name, text); err != nil {
				return nil, err
			}
		}
	}
	for folder := range all {
		found["files in the largest folder"] = max(found["files in the largest folder"], sources[folder])
		found["files in the largest folder, with tests"] = max(found["files in the largest folder, with tests"],
			all[folder])
	}
	help, err := exec.Command("go", "run", ".", "serve", "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("serve --help: %w", err)
	}
	found["flags of serve"] = len(serveFlag.FindAll(help, -1))
	return found, nil
}

// countGo adds the figures of one Go file that is written by hand.
func countGo(found, sources, all map[string]int, name string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	folder := path.Dir(name)
	all[folder]++
	lines := bytes.Count(text, []byte("\n"))
	found["lines wider than 120 columns"] += wideLines(file, text)
	if strings.HasSuffix(name, "_test.go") {
		found["lines of tests"] += lines
		return nil
	}
	sources[folder]++
	found["files"]++
	found["lines"] += lines
	found["lines of code"] += codeLines(text)
	found["exported names"] += exportedNames(file)
	if !notProgram.MatchString(folder) {
		found["lines of the program"] += lines
	}
	return nil
}

// wideLines returns the number of lines wider than maxColumns. It does not
// count lines with a string across the last column.
func wideLines(file *ast.File, text []byte) (wide int) {
	isString := make([]bool, len(text))
	ast.Inspect(file, func(n ast.Node) bool {
		if of, ok := n.(*ast.BasicLit); ok && of.Kind == token.STRING {
			for at := of.Pos() + 1; at < of.End(); at++ {
				isString[at-file.FileStart] = true
			}
		}
		return true
	})
	columns := 0
	for at, letter := range string(text) {
		switch letter {
		case '\n':
			columns = 0
			continue
		case '\t':
			columns += 4
		default:
			columns++
		}
		if columns > maxColumns {
			if !isString[at] {
				wide++
			}
			columns = -len(text) // counts the line once
		}
	}
	return wide
}

// codeLines returns the number of lines with code other than imports.
func codeLines(text []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	has, imports, parentheses := map[int]bool{}, false, 0
	for {
		position, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return len(has)
		case token.IMPORT:
			imports = true
		case token.LPAREN:
			parentheses++
		case token.RPAREN:
			parentheses--
		case token.SEMICOLON:
			imports = imports && parentheses > 0
		}
		if imports || kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(position)
		for line := range strings.Count(literal, "\n") + 1 {
			has[first+line] = true
		}
	}
}

// exportedNames returns how many functions, methods, types, constants and
// variables other packages can name.
func exportedNames(file *ast.File) int {
	total := 0
	add := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				total++
			}
		}
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			add(d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					add(s.Names...)
				case *ast.TypeSpec:
					add(s.Name)
				}
			}
		}
	}
	return total
}
