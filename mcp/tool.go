package mcp

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/cadastre-dev/cadastre/internal/fill"
)

// Tool is a tool for agents.
type Tool struct {
	Name, Description string
	Arguments         []Argument
	// Writes is whether the document of the tool is a mutation.
	Writes bool

	document string
	words    *fill.Template
	schema   map[string]any    // the JSON Schema of the arguments
	sources  map[string]string // the tool's argument for each path in the arguments of fields
	declared map[string]bool   // the variables of the document
	needs    []string          // at least one of these arguments is required
}

// files has a file for each tool, with three parts: the description and a line
// for each argument, the document, and the template of the answer. The lines of
// arguments are `- name kind bounds... | help`. The line `! name name...`
// requires at least one of the named arguments.
//
//go:embed tools
var files embed.FS

// order is the order of the list of tools.
var order = []string{"find_definitions", "check_metadata", "find_resources", "explain_resources", "show", "capacity",
	"find_candidates", "why_not", "metadata_drift", "recent_changes", "check_claim", "claim"}

// Tools returns all tools that read and, on request, the tools that write.
func Tools(write bool) []*Tool {
	return slices.DeleteFunc(slices.Clone(table()), func(t *Tool) bool { return t.Writes && !write })
}

var table = sync.OnceValue(func() (all []*Tool) {
	for _, name := range order {
		text, err := files.ReadFile("tools/" + name + ".tool")
		if err == nil {
			var t *Tool
			t, err = parseTool(name, string(text))
			all = append(all, t)
		}
		if err != nil {
			panic(fmt.Sprintf("mcp: the tool %s: %v", name, err)) // the files are embedded
		}
	}
	return all
})

// parseTool parses the file of a tool.
func parseTool(name, text string) (*Tool, error) {
	parts := strings.SplitN(text, "\n---\n", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("%d parts, not 3", len(parts))
	}
	t := &Tool{Name: name, document: parts[1], sources: map[string]string{}, declared: map[string]bool{}}
	for line := range strings.Lines(parts[0]) {
		line = strings.TrimSpace(line)
		if needs, ok := strings.CutPrefix(line, "! "); ok {
			t.needs = strings.Fields(needs)
		} else if of, ok := strings.CutPrefix(line, "- "); ok {
			argument, err := parseArgument(of)
			if err != nil {
				return nil, err
			}
			t.Arguments = append(t.Arguments, argument)
		} else {
			t.Description = strings.TrimSpace(t.Description + " " + line)
		}
	}
	document, err := parser.ParseQuery(&ast.Source{Name: name, Input: t.document})
	if err != nil {
		return nil, err
	}
	t.note(document.Operations[0])
	t.schema = t.schemaOf()
	t.words, err = fill.Parse(name, parts[2], functions)
	return t, err
}

// note notes whether the document writes, its variables, and which argument of
// the tool sets the value at each path in the arguments of its fields.
func (t *Tool) note(operation *ast.OperationDefinition) {
	t.Writes = operation.Operation == ast.Mutation
	for _, variable := range operation.VariableDefinitions {
		t.declared[variable.Variable] = true
	}
	var value func(path string, of *ast.Value)
	value = func(path string, of *ast.Value) {
		if of.Kind == ast.Variable {
			t.sources[path] = t.argumentOf(of.Raw)
			t.sources["variable."+of.Raw] = t.argumentOf(of.Raw)
		}
		for i, child := range of.Children {
			at := path + "." + child.Name
			if of.Kind == ast.ListValue {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			value(at, child.Value)
		}
	}
	var fields func(set ast.SelectionSet)
	fields = func(set ast.SelectionSet) {
		for _, selected := range set {
			if field, ok := selected.(*ast.Field); ok {
				for _, argument := range field.Arguments {
					value(argument.Name, argument.Value)
				}
				fields(field.SelectionSet)
			}
		}
	}
	fields(operation.SelectionSet)
}

// argumentOf returns the name of the argument that sets a variable of the
// document: the name of the variable, except for also and claims.
func (t *Tool) argumentOf(variable string) string {
	for _, argument := range t.Arguments {
		if argument.also == variable || argument.kind == kindClaims && len(variable) == 1 {
			return argument.Name
		}
	}
	return variable
}
