package document

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// enumName is the name of an enum value in a document. A quoted string is not
// an enumName.
type enumName string

// variable replaces a variable within a literal. Its value is checked
// separately.
type variable struct{}

// withFields returns the validation errors of a document with paths. An error
// in a literal of an argument or a default value reads like the error of a
// variable, with the path of the value.
func withFields(schema *ast.Schema, document *ast.QueryDocument, refused gqlerror.List) gqlerror.List {
	if !slices.ContainsFunc(refused, isOfValue) {
		return refused
	}
	l := &literals{schema: schema, wrong: map[gqlerror.Location]*gqlerror.Error{},
		paths: map[gqlerror.Location]*path{}, told: map[gqlerror.Location]bool{}}
	for _, err := range refused {
		if isOfValue(err) && len(err.Locations) > 0 {
			l.wrong[err.Locations[0]] = err
		}
	}
	for _, operation := range document.Operations {
		for _, variable := range operation.VariableDefinitions {
			if variable.DefaultValue != nil {
				l.argument(&path{name: variable.Variable}, variable.DefaultValue, variable.Type, operation)
			}
		}
		l.selections(operation.SelectionSet)
	}
	for _, fragment := range document.Fragments {
		l.selections(fragment.SelectionSet)
	}
	var others gqlerror.List
	for _, err := range refused {
		if isOfValue(err) && len(err.Locations) > 0 {
			at := err.Locations[0]
			if l.told[at] {
				continue
			}
			if value, ok := l.paths[at]; ok {
				field := value.String()
				err.Message, err.Extensions = field+": "+err.Message, naming(field, value.coordinate())
			}
		}
		others = append(others, err)
	}
	return append(l.refused, others...)
}

// isOfValue reports whether an error is about the value of a literal.
func isOfValue(err *gqlerror.Error) bool {
	return err.Rule == "" || strings.HasPrefix(err.Rule, rules.ValuesOfCorrectTypeRule.Name)
}

// literals explains the errors of literals in arguments and default values.
type literals struct {
	schema  *ast.Schema
	wrong   map[gqlerror.Location]*gqlerror.Error // the validation errors about values
	paths   map[gqlerror.Location]*path           // the paths of argument values
	told    map[gqlerror.Location]bool            // locations inside a refused argument
	refused gqlerror.List
}

func (l *literals) selections(set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			for _, argument := range selection.Arguments {
				if selection.Definition == nil {
					continue
				}
				if definition := selection.Definition.Arguments.ForName(argument.Name); definition != nil {
					l.argument(&path{name: argument.Name, of: coordinateOf(selection)},
						argument.Value, definition.Type, nil)
				}
			}
			l.selections(selection.SelectionSet)
		case *ast.InlineFragment:
			l.selections(selection.SelectionSet)
		}
	}
}

// argument checks an argument, or the default value of a variable of an
// operation, like the value of a variable. It skips literals without a
// validation error. Operation is nil for an argument.
func (l *literals) argument(root *path, literal *ast.Value, of *ast.Type, operation *ast.OperationDefinition) {
	var places []gqlerror.Location
	value := l.read(root, literal, &places)
	if !slices.ContainsFunc(places, func(at gqlerror.Location) bool { return l.wrong[at] != nil }) {
		return
	}
	judge := &coercion{schema: l.schema, isLiteral: true, operation: operation}
	judge.value(root, of, value)
	for _, err := range judge.refused {
		if len(l.refused) >= MaxErrors {
			break
		}
		at := l.placeOf(err, places)
		err.Locations = []gqlerror.Location{at}
		if known := l.wrong[at]; known != nil {
			if _, hint, ok := strings.Cut(known.Message, "Did you mean "); ok {
				err.Message += "; did you mean " + hint
			}
		}
		l.refused = append(l.refused, err)
	}
	for _, place := range places {
		l.told[place] = l.told[place] || len(judge.refused) > 0
	}
}

// placeOf returns the location within an argument that an error is about: an
// unknown field of an input, the value at the error's path, or the nearest
// value around it.
func (l *literals) placeOf(err *gqlerror.Error, places []gqlerror.Location) gqlerror.Location {
	field, _ := err.Extensions["field"].(string)
	at, nearest := places[0], 0
	for _, place := range places {
		if known := l.wrong[place]; known != nil {
			name, _, unknown := strings.Cut(strings.TrimPrefix(known.Message, "Field "), " is not defined by")
			if unknown && strings.HasPrefix(err.Message, field+": unknown field "+name+" of") {
				return place
			}
		}
		if value, ok := l.paths[place]; ok {
			if path := value.String(); strings.HasPrefix(field, path) && len(path) > nearest {
				at, nearest = place, len(path)
			}
		}
	}
	return at
}

// read returns a literal in the form of the value of a variable, and records
// the locations of its parts.
func (l *literals) read(at *path, value *ast.Value, places *[]gqlerror.Location) any {
	place := locationOf(value)
	*places = append(*places, place)
	if _, ok := l.paths[place]; !ok {
		l.paths[place] = at
	}
	switch value.Kind {
	case ast.Variable:
		return variable{}
	case ast.IntValue, ast.FloatValue:
		return json.Number(value.Raw)
	case ast.BooleanValue:
		return value.Raw == "true"
	case ast.NullValue:
		return nil
	case ast.EnumValue:
		return enumName(value.Raw)
	case ast.ListValue:
		list := make([]any, len(value.Children))
		for i, child := range value.Children {
			list[i] = l.read(&path{parent: at, index: i}, child.Value, places)
		}
		return list
	case ast.ObjectValue:
		object := map[string]any{}
		for _, child := range value.Children {
			// validation reports an unknown field at its name
			*places = append(*places, gqlerror.Location{Line: child.Position.Line, Column: child.Position.Column})
			member := &path{parent: at, name: child.Name}
			if of := value.Definition; of != nil && of.Fields.ForName(child.Name) != nil {
				member.of = of.Name
			}
			object[child.Name] = l.read(member, child.Value, places)
		}
		return object
	}
	return value.Raw
}

func locationOf(value *ast.Value) gqlerror.Location {
	return gqlerror.Location{Line: value.Position.Line, Column: value.Position.Column}
}
