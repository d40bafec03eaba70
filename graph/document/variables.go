package document

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/model"
)

// coerce returns the variables of an operation as values of their types, or the
// first MaxErrors errors, each with its path. An Int becomes an int64; other
// numbers stay json.Number, which keeps their digits. A single value for a list
// type becomes a list of one. No other value is converted: a number is not a
// String.
func (d *document) coerce(operation *ast.OperationDefinition,
	variables map[string]any) (map[string]any, gqlerror.List) {
	c := &coercion{schema: d.schema, operation: operation}
	coerced := make(map[string]any, len(operation.VariableDefinitions)+len(d.literals))
	for _, variable := range operation.VariableDefinitions {
		value, ok := variables[variable.Variable]
		switch {
		case ok:
			coerced[variable.Variable] = c.value(&path{name: variable.Variable}, variable.Type, value)
			// A variable with a default value is valid in @skip and @include,
			// but a client may still send null for it.
			if value == nil && variable.Type.NamedType == "Boolean" &&
				slices.Contains(d.conditions, variable.Variable) {
				c.refuse(&path{name: variable.Variable}, "null is not allowed in @skip and @include")
			}
		case variable.DefaultValue != nil:
			value, err := variable.DefaultValue.Value(d.literals)
			if err != nil {
				c.refuse(&path{name: variable.Variable}, "the default value cannot be read")
			}
			coerced[variable.Variable] = value
		case variable.Type.NonNull:
			c.refuse(&path{name: variable.Variable}, "a value is required")
		}
	}
	return coerced, c.refused
}

// coercion collects the errors of variables or literals.
type coercion struct {
	schema    *ast.Schema
	isLiteral bool                     // enum values are enumName, and variables inside are variable
	operation *ast.OperationDefinition // that has the variables; nil for arguments
	refused   gqlerror.List
}

func (c *coercion) refuse(at *path, format string, args ...any) {
	if len(c.refused) >= MaxErrors {
		return
	}
	field := at.String()
	coordinate := at.coordinate()
	if coordinate == "" && c.operation != nil {
		of := &user{variable: at.root().name, seen: map[*ast.FragmentDefinition]bool{}}
		coordinate = of.in(c.operation.SelectionSet)
	}
	err := &gqlerror.Error{Message: field + ": " + fmt.Sprintf(format, args...), Extensions: naming(field, coordinate)}
	errcode.Set(err, errcode.ValidationFailed)
	c.refused = append(c.refused, err)
}

func (c *coercion) value(at *path, typ *ast.Type, value any) any {
	if value == (variable{}) {
		return nil
	}
	if value == nil {
		if typ.NonNull {
			c.refuse(at, "null is not allowed")
		}
		return nil
	}
	if typ.Elem != nil {
		list, ok := value.([]any)
		if !ok {
			return []any{c.value(at, typ.Elem, value)}
		}
		out := make([]any, len(list))
		for i, member := range list {
			out[i] = c.value(&path{parent: at, index: i}, typ.Elem, member)
		}
		return out
	}
	switch definition := c.schema.Types[typ.NamedType]; definition.Kind {
	case ast.InputObject:
		return c.object(at, definition, value)
	case ast.Enum:
		name, ok := c.enumName(value)
		if !ok || definition.EnumValues.ForName(name) == nil {
			c.refuse(at, "not a value of the enum %s", definition.Name)
		}
		return value
	default:
		return c.scalar(at, definition.Name, value)
	}
}

func (c *coercion) enumName(value any) (name string, ok bool) {
	if c.isLiteral {
		name, ok := value.(enumName)
		return string(name), ok
	}
	name, ok = value.(string)
	return name, ok
}

func (c *coercion) object(at *path, definition *ast.Definition, value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		c.refuse(at, "not an object of the type %s", definition.Name)
		return nil
	}
	var unknown []string
	for name := range object {
		if definition.Fields.ForName(name) == nil {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		c.refuse(at, "unknown field %q of %s", name, definition.Name)
	}
	out := make(map[string]any, len(object))
	for _, member := range definition.Fields {
		value, ok := object[member.Name]
		if ok {
			out[member.Name] = c.value(&path{parent: at, name: member.Name, of: definition.Name}, member.Type, value)
		} else if member.Type.NonNull && member.DefaultValue == nil {
			c.refuse(&path{parent: at, name: member.Name, of: definition.Name}, "a value is required")
		}
	}
	if definition.Directives.ForName("oneOf") != nil {
		c.oneOf(at, definition, object)
	}
	return out
}

// oneOf checks that an object has exactly one field, and that it is not null.
func (c *coercion) oneOf(at *path, definition *ast.Definition, object map[string]any) {
	if len(object) != 1 {
		c.refuse(at, "%s must have exactly one field, has %d", definition.Name, len(object))
		return
	}
	for only, value := range object {
		if value == nil {
			c.refuse(&path{parent: at, name: only, of: definition.Name}, "null is not allowed in %s", definition.Name)
		}
	}
}

func (c *coercion) scalar(at *path, name string, value any) any {
	if name == "Int" {
		number, _ := value.(json.Number)
		integer, ok := int32Of(number)
		if !ok {
			c.refuse(at, "not a 32-bit integer")
		}
		return integer
	}
	if wrong := scalarProblem(name, value); wrong != "" {
		c.refuse(at, "%s", wrong)
	}
	return value
}

// scalarProblem returns the problem of a value of a scalar other than Int, or
// the empty string.
func scalarProblem(name string, value any) string {
	switch name {
	case "String":
		if _, ok := value.(string); !ok {
			return "not a string"
		}
	case "ID":
		if !isID(value) {
			return "not an id"
		}
	case "Boolean":
		if _, ok := value.(bool); !ok {
			return "not a boolean"
		}
	case "Float":
		number, _ := value.(json.Number)
		if float, err := number.Float64(); err != nil || math.IsInf(float, 0) {
			return "not a double-precision number"
		}
	default:
		return model.ScalarProblem(name, value)
	}
	return ""
}

// isID reports whether a value is an ID: a string, or a number without fraction
// and exponent.
func isID(value any) bool {
	switch value := value.(type) {
	case string:
		return true
	case json.Number:
		return !strings.ContainsAny(value.String(), ".eE")
	}
	return false
}

// int32Of returns the integer of a number that is an Int, as 1.0 is, too. It
// returns false for a fraction and for a number that exceeds 32 bits.
func int32Of(number json.Number) (int64, bool) {
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
