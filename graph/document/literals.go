package document

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/text"
)

// literalPrefix begins the names of variables that replace literals. No
// document can contain such a name.
const literalPrefix = "="

// checkValues checks the values of custom scalars in a document, which
// validation does not check. It also preserves the digits of JSON literals,
// because Go numbers would turn 1.50 into 1.5 and round long integers. Each
// JSON literal, unless it is null or has a variable inside, becomes a variable
// with its JSON in the name. checkValues returns the values of these variables,
// and at most MaxErrors errors.
func checkValues(values []noted) (literals map[string]any, refused gqlerror.List) {
	judged := 0 // index of the first value outside of the last JSON literal
	for i, one := range values {
		if wrong := literalProblem(one.value); wrong != "" && len(refused) < MaxErrors {
			refused = append(refused, gqlerror.ErrorPosf(one.value.Position, "Expected value of type %q, found %s: %s.",
				one.value.ExpectedType, one.value, wrong))
		}
		if i < judged || !isJSON(one.value) {
			continue
		}
		judged = i + one.count
		if one.value.Kind == ast.NullValue {
			continue // stays null, so that an input distinguishes it from a value
		}
		if encoded, ok := jsonText(one.value); ok {
			one.value.Kind, one.value.Raw, one.value.Children = ast.Variable, literalPrefix+encoded, nil
			if literals == nil {
				literals = map[string]any{}
			}
			literals[one.value.Raw] = text.JSON(encoded)
		}
	}
	return literals, refused
}

// literalProblem returns the problem of a literal of a custom scalar, or the
// empty string.
func literalProblem(value *ast.Value) string {
	if value.Definition == nil || value.Definition.Kind != ast.Scalar || value.Kind == ast.Variable ||
		value.Kind == ast.NullValue || value.Kind == ast.ListValue {
		return ""
	}
	literal, err := value.Value(nil)
	if err != nil {
		return "" // a number out of range, which its field refuses
	}
	return model.ScalarProblem(value.Definition.Name, literal)
}

// isJSON reports whether a value is of the scalar JSON. A list of such values
// is not.
func isJSON(value *ast.Value) bool {
	isList := value.ExpectedType != nil && value.ExpectedType.Elem != nil && value.Kind == ast.ListValue
	return value.Definition != nil && value.Definition.Name == "JSON" && !isList
}

// jsonText returns a literal as JSON. It returns false for a literal with a
// variable.
func jsonText(value *ast.Value) (string, bool) {
	switch value.Kind {
	case ast.IntValue, ast.FloatValue, ast.BooleanValue, ast.NullValue:
		return value.Raw, true
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		return quoted(value.Raw), true
	case ast.ListValue, ast.ObjectValue:
		parts := make([]string, len(value.Children))
		for i, child := range value.Children {
			part, ok := jsonText(child.Value)
			if !ok {
				return "", false
			}
			if value.Kind == ast.ObjectValue {
				part = strconv.Quote(child.Name) + ":" + part
			}
			parts[i] = part
		}
		if value.Kind == ast.ListValue {
			return "[" + strings.Join(parts, ",") + "]", true
		}
		return "{" + strings.Join(parts, ",") + "}", true
	}
	return "", false
}

func quoted(unquoted string) string {
	var value text.JSON
	if err := value.UnmarshalGQL(unquoted); err != nil {
		panic(err) // every string has a JSON form
	}
	return string(value)
}
