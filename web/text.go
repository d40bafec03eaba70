package web

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
)

// refuseTexts refuses texts that no database keeps: U+0000, and half a surrogate
// pair, in the variables and in the literals of a document. (Bytes that are no
// UTF-8 were refused with the body.)
func refuseTexts(request *request, document *ast.QueryDocument) *refusal {
	if field, found := zeroIn("", request.variables); found {
		return withZero(field)
	}
	l := literals{lone: !strings.Contains(request.query, "\uFFFD") && !strings.Contains(strings.ToLower(request.query), `\ufffd`)}
	for _, operation := range document.Operations {
		l.selections(operation.SelectionSet)
		l.directives(operation.Directives)
		for _, variable := range operation.VariableDefinitions {
			l.value(variable.Variable, variable.DefaultValue)
			l.directives(variable.Directives)
		}
	}
	for _, fragment := range document.Fragments {
		l.selections(fragment.SelectionSet)
		l.directives(fragment.Directives)
	}
	return l.problem
}

func withZero(field string) *refusal {
	field = clip(field, 255)
	return &refusal{code: graph.CodeBadUserInput, field: field, message: field + ": the character U+0000 is not allowed"}
}

// zeroIn finds the path of a text with U+0000 in a value of JSON.
func zeroIn(path string, value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return path, strings.Contains(value, "\x00")
	case []any:
		for i, member := range value {
			if found, there := zeroIn(path+"["+strconv.Itoa(i)+"]", member); there {
				return found, true
			}
		}
	case map[string]any:
		for name, member := range value {
			if strings.Contains(name, "\x00") {
				return path, true
			}
			at := name
			if path != "" {
				at = path + "." + name
			}
			if found, there := zeroIn(at, member); there {
				return found, true
			}
		}
	}
	return "", false
}

// literals looks for texts to refuse in the literals of a document. lone is
// whether a replacement character in a literal can only stand for half a
// surrogate pair, because the document itself holds none.
type literals struct {
	lone    bool
	problem *refusal
}

func (l *literals) selections(set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			for _, argument := range selection.Arguments {
				l.value(argument.Name, argument.Value)
			}
			l.directives(selection.Directives)
			l.selections(selection.SelectionSet)
		case *ast.InlineFragment:
			l.directives(selection.Directives)
			l.selections(selection.SelectionSet)
		case *ast.FragmentSpread:
			l.directives(selection.Directives)
		}
	}
}

func (l *literals) directives(list ast.DirectiveList) {
	for _, directive := range list {
		for _, argument := range directive.Arguments {
			l.value(argument.Name, argument.Value)
		}
	}
}

func (l *literals) value(path string, value *ast.Value) {
	if value == nil || l.problem != nil {
		return
	}
	switch {
	case strings.Contains(value.Raw, "\x00"):
		l.problem = withZero(path)
	case l.lone && strings.Contains(value.Raw, "\uFFFD"):
		l.problem = notText(path)
	}
	for i, child := range value.Children {
		if value.Kind == ast.ListValue {
			l.value(path+"["+strconv.Itoa(i)+"]", child.Value)
		} else {
			l.value(path+"."+child.Name, child.Value)
		}
	}
}
