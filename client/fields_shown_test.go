package client_test

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// isIdentity reports whether a field identifies the object to change or states
// a precondition, so that no answer shows it.
func isIdentity(mutation string, fields []*ast.FieldDefinition, base object) bool {
	name := fields[len(fields)-1].Name
	if slices.Contains(conditions, name) {
		return true
	}
	_, names := base[name]
	if strings.HasPrefix(mutation, "update") && slices.Contains(identities, fields[0].Name) {
		return true
	}
	return len(fields) == 1 && names && !strings.HasPrefix(mutation, "create")
}

// pathsOf returns the paths to the fields of an input with values.
func (w *writer) pathsOf(input *ast.Definition, below []*ast.FieldDefinition) [][]*ast.FieldDefinition {
	var paths [][]*ast.FieldDefinition
	for _, field := range input.Fields {
		path := append(slices.Clone(below), field)
		if of := w.schema.Types[field.Type.Name()]; of.Kind == ast.InputObject {
			paths = append(paths, w.pathsOf(of, path)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// nounOf returns the noun in a payload that shows a field of the input, and its
// path.
func (w *writer) nounOf(payload *ast.Definition, field string) (*ast.Definition, []string) {
	results := payload.Fields.ForName("results")
	if results != nil {
		noun, path := w.nounOf(w.schema.Types[results.Type.Name()], field)
		return noun, append([]string{"results"}, path...)
	}
	first := payload.Fields[0]
	if of := payload.Fields.ForName(field); of != nil && of.Type.Elem != nil {
		first = of
	}
	return w.schema.Types[first.Type.Name()], []string{first.Name}
}

// shown returns the selection in a noun that shows a field of an input.
func (w *writer) shown(noun *ast.Definition, fields []*ast.FieldDefinition, isBulk bool) (string, bool) {
	if isBulk && fields[0].Name == "items" || noun.Name == fields[0].Type.Name() ||
		shownByItself[fields[0].Type.Name()] == noun.Name {
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return w.leaves(noun), true
	}
	if slices.Contains(flat, fields[0].Name) && len(fields) > 1 {
		return w.shown(noun, fields[1:], false)
	}
	if below, ok := shownBelow[fields[0].Name]; ok && len(fields) == 1 {
		return below, true
	}
	for _, name := range namesOf(fields[0].Name) {
		of := noun.Fields.ForName(name)
		if of == nil ||
			slices.ContainsFunc(of.Arguments, func(a *ast.ArgumentDefinition) bool { return a.Type.NonNull }) {
			continue
		}
		if selection, ok := w.shownBy(name, w.schema.Types[of.Type.Name()], fields[1:]); ok {
			return selection, true
		}
	}
	return "", false
}

// shownBy returns the selection of a field of a noun that shows the rest of an
// input path.
func (w *writer) shownBy(name string, of *ast.Definition, rest []*ast.FieldDefinition) (string, bool) {
	if of.Kind != ast.Object {
		return name, len(rest) == 0
	}
	below, found := w.leaves(of), true
	if len(rest) > 0 {
		below, found = w.shown(of, rest, false)
	}
	return name + " { " + below + " }", found
}

// leaves returns the fields of a type with scalar values.
func (w *writer) leaves(of *ast.Definition) string {
	var names []string
	for _, field := range of.Fields {
		if kind := w.schema.Types[field.Type.Name()].Kind; (kind == ast.Scalar || kind == ast.Enum) &&
			len(field.Arguments) == 0 && !strings.HasPrefix(field.Name, "__") {
			names = append(names, field.Name)
		}
	}
	return strings.Join(names, " ")
}

// namesOf returns the possible names in the noun for a field of an input.
func namesOf(field string) []string {
	names := []string{field}
	if rest, ok := strings.CutPrefix(field, "new"); ok {
		names = append(names, strings.ToLower(rest[:1])+rest[1:])
	}
	return append(names, renames[field]...)
}

func dotted(fields []*ast.FieldDefinition) string {
	var names []string
	for _, field := range fields {
		names = append(names, field.Name)
	}
	return strings.Join(names, ".")
}
