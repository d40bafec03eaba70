package document

import (
	"regexp"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// nameInMessage finds the name of an argument in a validation error.
var nameInMessage = regexp.MustCompile(`argument "(\w+)"`)

// nameArguments replaces the rules for missing and unknown arguments. The new
// ones add the argument's name and coordinate to errors about arguments of
// fields. An unknown argument has the coordinate of its field.
func nameArguments(of *rules.Rules) {
	for name, rule := range of.GetInner() {
		switch name {
		case rules.ProvidedRequiredArgumentsRule.Name,
			rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.Name:
			of.ReplaceRule(name, namingArguments(rule))
		}
	}
}

// namingArguments returns a rule whose errors about arguments of fields name
// the argument and its coordinate.
func namingArguments(rule core.RuleFunc) core.RuleFunc {
	return func(observers *core.Events, addError core.AddErrFunc) {
		var at *ast.Field // nil at a directive
		observers.OnField(func(_ *core.Walker, field *ast.Field) { at = field })
		observers.OnDirective(func(*core.Walker, *ast.Directive) { at = nil })
		rule(observers, func(options ...core.ErrorOption) {
			addError(append(options, func(err *gqlerror.Error) {
				if named := nameInMessage.FindStringSubmatch(err.Message); at != nil && named != nil {
					err.Extensions = naming(named[1], coordinateIn(at, named[1]))
				}
			})...)
		})
	}
}

// naming returns the extensions of an error that name an input and, if it is
// known, its coordinate.
func naming(field, coordinate string) map[string]any {
	named := map[string]any{"field": field}
	if coordinate != "" {
		named["coordinate"] = coordinate
	}
	return named
}

// coordinateIn returns the coordinate of an argument of a field, or of the
// field if it has no such argument.
func coordinateIn(field *ast.Field, argument string) string {
	of := coordinateOf(field)
	if field.Definition.Arguments.ForName(argument) == nil {
		return of
	}
	return (&path{name: argument, of: of}).coordinate()
}

func coordinateOf(field *ast.Field) string { return field.ObjectDefinition.Name + "." + field.Name }

// user finds the first input that uses a variable.
type user struct {
	variable string
	seen     map[*ast.FragmentDefinition]bool
}

// in returns the coordinate of the first argument or input field that uses the
// variable, alone or in a list, or "" if a selection set has none. The document
// may be invalid.
func (u *user) in(set ast.SelectionSet) (coordinate string) {
	for i := 0; i < len(set) && coordinate == ""; i++ {
		switch selection := set[i].(type) {
		case *ast.Field:
			for _, argument := range selection.Arguments {
				if coordinate == "" && selection.Definition != nil {
					coordinate = u.within(argument.Value, coordinateIn(selection, argument.Name))
				}
			}
			if coordinate == "" {
				coordinate = u.in(selection.SelectionSet)
			}
		case *ast.InlineFragment:
			coordinate = u.in(selection.SelectionSet)
		case *ast.FragmentSpread:
			if selection.Definition != nil && !u.seen[selection.Definition] {
				u.seen[selection.Definition] = true
				coordinate = u.in(selection.Definition.SelectionSet)
			}
		}
	}
	return coordinate
}

// within returns the coordinate of the first input in a value that uses the
// variable, or "". The value itself has the given coordinate.
func (u *user) within(value *ast.Value, coordinate string) string {
	if value.Kind == ast.Variable && value.Raw == u.variable {
		return coordinate
	}
	for _, child := range value.Children {
		of := coordinate
		if value.Definition != nil && value.Definition.Fields.ForName(child.Name) != nil {
			of = value.Definition.Name + "." + child.Name
		}
		if found := u.within(child.Value, of); found != "" {
			return found
		}
	}
	return ""
}
