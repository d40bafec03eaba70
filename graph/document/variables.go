package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/model"
)

// coerceVariables gives the variables of an operation as values of their types,
// or everything that is wrong with them, each with its path. Numbers come as
// json.Number, so that none was rounded on its way. A value is never bent to a
// type: a number is no String and a text is no Int. Literals are what stands in
// default values for JSON that is written out.
func coerceVariables(schema *ast.Schema, document *ast.QueryDocument, operation *ast.OperationDefinition, given, literals map[string]any) (map[string]any, gqlerror.List) {
	c := &coercion{schema: schema}
	coerced := make(map[string]any, len(operation.VariableDefinitions))
	for _, variable := range operation.VariableDefinitions {
		value, there := given[variable.Variable]
		switch {
		case there:
			coerced[variable.Variable] = c.value(variable.Variable, variable.Type, value)
			if value == nil && variable.Type.NamedType == "Boolean" && isCondition(document, variable.Variable) {
				c.refuse(variable.Variable, "null is not allowed in @skip and @include")
			}
		case variable.DefaultValue != nil:
			value, err := variable.DefaultValue.Value(literals)
			if err != nil {
				c.refuse(variable.Variable, "the default value cannot be read")
			}
			coerced[variable.Variable] = value
		case variable.Type.NonNull:
			c.refuse(variable.Variable, "a value is required")
		}
	}
	return coerced, c.refused
}

// isCondition tells whether a variable stands in a @skip or @include. A variable
// with a default value may stand there and still be given as null, on which the
// library panics.
func isCondition(document *ast.QueryDocument, variable string) bool {
	var within func(set ast.SelectionSet) bool
	named := func(list ast.DirectiveList) bool {
		return slices.ContainsFunc(list, func(directive *ast.Directive) bool {
			argument := directive.Arguments.ForName("if")
			return argument != nil && argument.Value.Kind == ast.Variable && argument.Value.Raw == variable
		})
	}
	within = func(set ast.SelectionSet) bool {
		return slices.ContainsFunc(set, func(selection ast.Selection) bool {
			switch selection := selection.(type) {
			case *ast.Field:
				return named(selection.Directives) || within(selection.SelectionSet)
			case *ast.InlineFragment:
				return named(selection.Directives) || within(selection.SelectionSet)
			case *ast.FragmentSpread:
				return named(selection.Directives)
			}
			return false
		})
	}
	return slices.ContainsFunc(document.Operations, func(o *ast.OperationDefinition) bool { return within(o.SelectionSet) }) ||
		slices.ContainsFunc(document.Fragments, func(f *ast.FragmentDefinition) bool { return within(f.SelectionSet) })
}

// coercion collects what is wrong with variables.
type coercion struct {
	schema  *ast.Schema
	refused gqlerror.List
}

func (c *coercion) refuse(field, format string, args ...any) {
	if len(c.refused) >= MaxErrors {
		return
	}
	err := &gqlerror.Error{Message: field + ": " + fmt.Sprintf(format, args...), Extensions: map[string]any{"field": field}}
	errcode.Set(err, errcode.ValidationFailed)
	c.refused = append(c.refused, err)
}

func (c *coercion) value(field string, typ *ast.Type, value any) any {
	if value == nil {
		if typ.NonNull {
			c.refuse(field, "null is not allowed")
		}
		return nil
	}
	if typ.Elem != nil {
		list, isList := value.([]any)
		if !isList {
			return []any{c.value(field, typ.Elem, value)}
		}
		out := make([]any, len(list))
		for i, member := range list {
			out[i] = c.value(field+"["+strconv.Itoa(i)+"]", typ.Elem, member)
		}
		return out
	}
	switch definition := c.schema.Types[typ.NamedType]; definition.Kind {
	case ast.InputObject:
		return c.object(field, definition, value)
	case ast.Enum:
		name, isText := value.(string)
		if !isText || definition.EnumValues.ForName(name) == nil {
			c.refuse(field, "not a value of the enum %s", definition.Name)
		}
		return value
	default:
		return c.scalar(field, definition.Name, value)
	}
}

func (c *coercion) object(field string, definition *ast.Definition, value any) any {
	object, isObject := value.(map[string]any)
	if !isObject {
		c.refuse(field, "not an object, as %s is", definition.Name)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if definition.Fields.ForName(name) == nil {
			c.refuse(field, "%s has no field %q", definition.Name, name)
		}
	}
	out := make(map[string]any, len(object))
	for _, member := range definition.Fields {
		path := field + "." + member.Name
		given, there := object[member.Name]
		if there {
			out[member.Name] = c.value(path, member.Type, given)
		} else if member.Type.NonNull && member.DefaultValue == nil {
			c.refuse(path, "a value is required")
		}
	}
	if definition.Directives.ForName("oneOf") != nil {
		c.oneOf(field, definition.Name, object)
	}
	return out
}

// oneOf holds an object to its promise: exactly one field, and that not null.
func (c *coercion) oneOf(field, name string, object map[string]any) {
	if len(object) != 1 {
		c.refuse(field, "%s takes exactly one field, not %d", name, len(object))
		return
	}
	for only, value := range object {
		if value == nil {
			c.refuse(field+"."+only, "the one field of %s cannot be null", name)
		}
	}
}

func (c *coercion) scalar(field, name string, value any) any {
	_, isText := value.(string)
	number, isNumber := value.(json.Number)
	switch name {
	case "String":
		if !isText {
			c.refuse(field, "not a text")
		}
	case "ID":
		if !isText && !(isNumber && isWhole(number.String())) {
			c.refuse(field, "not an id")
		}
	case "Boolean":
		if _, isBoolean := value.(bool); !isBoolean {
			c.refuse(field, "neither true nor false")
		}
	case "Int":
		whole, ok := whole32(number)
		if !isNumber || !ok {
			c.refuse(field, "not a whole number of 32 bits")
		}
		return whole
	case "Float":
		float, err := number.Float64()
		if !isNumber || err != nil || math.IsInf(float, 0) {
			c.refuse(field, "not a number of 64 bits")
		}
	default:
		if problem := model.ScalarProblem(name, value); problem != "" {
			c.refuse(field, "%s", problem)
		}
	}
	return value
}

func isWhole(number string) bool { return !strings.ContainsAny(number, ".eE") }

// whole32 reads an Int; 1.0 is one as well.
func whole32(number json.Number) (int64, bool) {
	n, err := number.Int64()
	if err != nil {
		float, err := number.Float64()
		if err != nil || float != math.Trunc(float) || math.Abs(float) > math.MaxInt32+1 {
			return 0, false
		}
		n = int64(float)
	}
	return n, n >= math.MinInt32 && n <= math.MaxInt32
}
