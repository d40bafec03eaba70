package document

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/text"
)

// literalPrefix begins the names of the variables that stand for literals. No
// document can name such a variable.
const literalPrefix = "="

// keepLiterals keeps the text of literals of the scalar JSON in a valid
// document, where numbers of Go would round 1.50 and lose the digits of long
// integers: each becomes a variable, named after its text.
func keepLiterals(document *ast.QueryDocument) { walkValues(document, keepLiteral) }

// longIntegers makes floats of the integers that are longer than validation
// reads. Their text stays the same.
func longIntegers(document *ast.QueryDocument) {
	walkValues(document, func(value *ast.Value) bool {
		if _, err := strconv.ParseInt(value.Raw, 10, 64); err != nil && value.Kind == ast.IntValue {
			value.Kind = ast.FloatValue
		}
		return true
	})
}

// checkScalars returns what is wrong with the literals of the scalars that are
// our own, of which validation knows nothing.
func checkScalars(document *ast.QueryDocument) gqlerror.List {
	var refused gqlerror.List
	walkValues(document, func(value *ast.Value) bool {
		if value.Definition == nil || value.Definition.Kind != ast.Scalar || value.Kind == ast.Variable || value.Kind == ast.NullValue || value.Kind == ast.ListValue {
			return true
		}
		literal, err := value.Value(nil)
		if err != nil {
			return true // a number beyond all bounds, which its field refuses
		}
		if wrong := model.ScalarProblem(value.Definition.Name, literal); wrong != "" && len(refused) < MaxErrors {
			refused = append(refused, gqlerror.ErrorPosf(value.Position, "Expected value of type %q, found %s: %s.", value.ExpectedType, value, wrong))
		}
		return true
	})
	return refused
}

// literalsOf returns the values of the variables that keepLiterals made.
func literalsOf(document *ast.QueryDocument) map[string]any {
	literals := map[string]any{}
	walkValues(document, func(value *ast.Value) bool {
		if literal, ok := strings.CutPrefix(value.Raw, literalPrefix); ok && value.Kind == ast.Variable {
			literals[value.Raw] = text.JSON(literal)
		}
		return true
	})
	return literals
}

// walkValues calls visit with the values of a document, and with those within a
// value where visit returned true.
func walkValues(document *ast.QueryDocument, visit func(*ast.Value) (descend bool)) {
	var value func(*ast.Value)
	value = func(v *ast.Value) {
		if v == nil || !visit(v) {
			return
		}
		for _, child := range v.Children {
			value(child.Value)
		}
	}
	var selections func(ast.SelectionSet)
	selections = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch selection := selection.(type) {
			case *ast.Field:
				for _, argument := range selection.Arguments {
					value(argument.Value)
				}
				selections(selection.SelectionSet)
			case *ast.InlineFragment:
				selections(selection.SelectionSet)
			}
		}
	}
	for _, operation := range document.Operations {
		for _, variable := range operation.VariableDefinitions {
			value(variable.DefaultValue)
		}
		selections(operation.SelectionSet)
	}
	for _, fragment := range document.Fragments {
		selections(fragment.SelectionSet)
	}
}

// keepLiteral keeps a literal of the scalar JSON. A null stays a null, which an
// input distinguishes from a value.
func keepLiteral(value *ast.Value) (descend bool) {
	isJSON := value.Definition != nil && value.Definition.Name == "JSON"
	isList := value.ExpectedType != nil && value.ExpectedType.Elem != nil && value.Kind == ast.ListValue
	if !isJSON || isList {
		return true
	}
	if value.Kind == ast.NullValue || value.Kind == ast.Variable {
		return false
	}
	if encoded, ok := jsonText(value); ok {
		value.Kind, value.Raw, value.Children = ast.Variable, literalPrefix+encoded, nil
	}
	return false
}

// jsonText returns a literal as JSON, and false where it holds a variable.
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
