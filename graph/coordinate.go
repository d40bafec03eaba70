package graph

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/document"
)

// coordinateExtension has the schema coordinate of the input that an error
// names: `Type.field(argument:)` or `Input.field`, the forms of the GraphQL
// specification of September 2025.
const coordinateExtension = "coordinate"

// inputSegment is one name of a path in an input, with the indexes after it.
var inputSegment = regexp.MustCompile(`^\.?([_A-Za-z][_0-9A-Za-z]*)(?:\[(?:[0-9]+|'[^']*')\])*`)

// errorsOf returns the errors of an operation as clients get them: the errors
// of PresentErrors with the coordinates of inputs.
func (e *Executor) errorsOf(ctx context.Context, plan *document.Plan, list gqlerror.List) gqlerror.List {
	list = PresentErrors(ctx, e.log, list)
	for _, err := range list {
		input, _ := err.Extensions["field"].(string)
		if coordinate := coordinateOf(e.Schema(), fieldAt(plan, err.Path), input); coordinate != "" {
			err.Extensions[coordinateExtension] = coordinate
		}
	}
	return list
}

// fieldAt returns the field of a plan at the path of an error, or nil.
func fieldAt(plan *document.Plan, path ast.Path) (found *document.Field) {
	within := []*document.Selection{plan.Root}
	for _, element := range path {
		name, ok := element.(ast.PathName)
		if !ok {
			continue
		}
		found = nil
		for _, selection := range within {
			for _, field := range selection.Fields {
				if found == nil && field.AST.Alias == string(name) {
					found = field
				}
			}
		}
		if found == nil {
			return nil
		}
		within = nil
		for _, name := range slices.Sorted(maps.Keys(found.Types)) {
			within = append(within, found.Types[name])
		}
		if found.Below != nil {
			within = append(within, found.Below)
		}
	}
	return found
}

// coordinateOf returns the coordinate of the input at a path in the arguments
// of a field. For a path into a scalar it is the coordinate of the scalar, and
// for a path that does not begin with an argument it is empty.
func coordinateOf(schema *ast.Schema, field *document.Field, path string) string {
	match := inputSegment.FindStringSubmatch(path)
	if field == nil || match == nil || field.AST.Definition == nil {
		return ""
	}
	argument := field.AST.Definition.Arguments.ForName(match[1])
	if argument == nil {
		return ""
	}
	coordinate, typ := field.Of+"."+field.AST.Name+"("+argument.Name+":)", argument.Type
	for {
		path = path[len(match[0]):]
		of := schema.Types[typ.Name()]
		if match = inputSegment.FindStringSubmatch(path); match == nil || of.Kind != ast.InputObject {
			return coordinate
		}
		member := of.Fields.ForName(match[1])
		if member == nil {
			return coordinate
		}
		coordinate, typ = of.Name+"."+member.Name, member.Type
	}
}
