package graph

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/catalog"
)

// literalPrefix begins the names of the variables that stand for literals; no
// document can name such a variable.
const literalPrefix = "="

// keepLiterals keeps the text of values that a valid document writes out for the
// scalar JSON, where reading them as numbers of Go would round 1.50 and lose the
// digits of long integers: each becomes a variable, named after its text. It
// gives the values of those variables.
func keepLiterals(document *ast.QueryDocument) map[string]any {
	kept := literals{}
	for _, operation := range document.Operations {
		for _, variable := range operation.VariableDefinitions {
			kept.value(variable.DefaultValue)
		}
		kept.selections(operation.SelectionSet)
	}
	for _, fragment := range document.Fragments {
		kept.selections(fragment.SelectionSet)
	}
	return kept
}

type literals map[string]any

func (l literals) selections(set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			for _, argument := range selection.Arguments {
				l.value(argument.Value)
			}
			l.selections(selection.SelectionSet)
		case *ast.InlineFragment:
			l.selections(selection.SelectionSet)
		}
	}
}

// value keeps a literal of the scalar JSON, and those within an input. A null
// stays one, which an input tells from a value.
func (l literals) value(value *ast.Value) {
	if value == nil {
		return
	}
	isJSON := value.Definition != nil && value.Definition.Name == "JSON"
	isList := value.ExpectedType != nil && value.ExpectedType.Elem != nil && value.Kind == ast.ListValue
	if !isJSON || isList {
		for _, child := range value.Children {
			l.value(child.Value)
		}
		return
	}
	if value.Kind == ast.NullValue || value.Kind == ast.Variable {
		return
	}
	if text, ok := jsonText(value); ok {
		name := literalPrefix + text
		l[name] = catalog.JSON(text)
		value.Kind, value.Raw, value.Children = ast.Variable, name, nil
	}
}

// jsonText is a literal as JSON; false where it holds a variable.
func jsonText(value *ast.Value) (string, bool) {
	switch value.Kind {
	case ast.IntValue, ast.FloatValue, ast.BooleanValue, ast.NullValue:
		return value.Raw, true
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		return quoted(value.Raw), true
	case ast.ListValue, ast.ObjectValue:
		parts := make([]string, len(value.Children))
		for i, child := range value.Children {
			text, ok := jsonText(child.Value)
			if !ok {
				return "", false
			}
			if value.Kind == ast.ObjectValue {
				text = strconv.Quote(child.Name) + ":" + text
			}
			parts[i] = text
		}
		if value.Kind == ast.ListValue {
			return "[" + strings.Join(parts, ",") + "]", true
		}
		return "{" + strings.Join(parts, ",") + "}", true
	}
	return "", false
}

func quoted(text string) string {
	var value catalog.JSON
	if err := value.UnmarshalGQL(text); err != nil {
		panic(err) // texts always have JSON
	}
	return string(value)
}
