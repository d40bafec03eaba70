package document

import (
	"errors"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/problem"
)

const (
	// nameBytes bounds a name in a document: names come back in answers, once for
	// every row, and in errors.
	nameBytes = 255
	// nesting bounds how deep lists and objects lie in each other in variables.
	nesting = 100
	// fieldBytes bounds a path in extensions.field.
	fieldBytes = 255
)

// place is where a value stands in variables or in a literal: a member of what
// stands above it. A path is made of it only when something is wrong there: the
// names of a request can be long and its members many.
type place struct {
	above *place
	name  string // "" for a member of a list
	index int
}

func (p *place) String() string {
	var parts []string
	for ; p != nil; p = p.above {
		switch {
		case p.name == "":
			parts = append(parts, "["+strconv.Itoa(p.index)+"]")
		case p.above == nil:
			parts = append(parts, clip(p.name, 100))
		default:
			parts = append(parts, "."+clip(p.name, 100))
		}
	}
	var path strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		path.WriteString(parts[i])
	}
	return clip(path.String(), fieldBytes)
}

func (p *place) refuse(format string, args ...any) error {
	return problem.Invalid(p.String(), format, args...)
}

// ErrNotUnicode is the cause of the refusal of a literal with half a surrogate
// pair.
var ErrNotUnicode = errors.New("half of a surrogate pair")

func notUnicode(field string) error {
	return problem.Refuse(problem.ErrInvalidInput, "the request is not valid Unicode: invalid UTF-8 or half of a surrogate pair").
		On(field).Because(ErrNotUnicode)
}

// refuseVariables refuses what no variable may hold: U+0000, which no database
// keeps, a list that is too long, and values nested too deeply.
func refuseVariables(variables map[string]any, listMembers int) error {
	for name, value := range variables {
		if problem := refuseValue(&place{name: clip(name, nameBytes)}, value, listMembers, nesting); problem != nil {
			return problem
		}
	}
	return nil
}

func refuseValue(at *place, value any, listMembers, depth int) error {
	if depth == 0 {
		return at.refuse("lists and objects lie in each other at most %d deep", nesting)
	}
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "\x00") {
			return at.refuse("the character U+0000 is not allowed")
		}
	case []any:
		if listMembers > 0 && len(value) > listMembers {
			return at.refuse("a list has at most %d members", listMembers)
		}
		for i, member := range value {
			if problem := refuseValue(&place{above: at, index: i}, member, listMembers, depth-1); problem != nil {
				return problem
			}
		}
	case map[string]any:
		for name, member := range value {
			if strings.Contains(name, "\x00") {
				return at.refuse("the character U+0000 is not allowed")
			}
			if problem := refuseValue(&place{above: at, name: name}, member, listMembers, depth-1); problem != nil {
				return problem
			}
		}
	}
	return nil
}

// refuseNames refuses a document with a name that is too long, before it is even
// parsed.
func refuseNames(document string) error {
	run := 0
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case isNameByte(c):
			if run++; run > nameBytes {
				return tooComplex("a name in a document has at most %d characters", nameBytes)
			}
			continue
		case c == '#':
			for i+1 < len(document) && document[i+1] != '\n' && document[i+1] != '\r' {
				i++
			}
		case strings.HasPrefix(document[i:], `"""`):
			i += 2
			for i++; i < len(document) && !strings.HasPrefix(document[i:], `"""`); i++ {
				if strings.HasPrefix(document[i:], `\"""`) {
					i += 3
				}
			}
			i += 2
		case c == '"':
			for i++; i < len(document) && document[i] != '"' && document[i] != '\n'; i++ {
				if document[i] == '\\' {
					i++
				}
			}
		}
		run = 0
	}
	return nil
}

// refuseLiterals refuses texts that no database keeps in the literals of a
// document: U+0000, and half a surrogate pair. (Bytes that are no UTF-8 were
// refused with the body.)
func refuseLiterals(text string, document *ast.QueryDocument) error {
	l := literals{lone: !strings.Contains(text, "\uFFFD") && !strings.Contains(strings.ToLower(text), `\ufffd`)}
	if !strings.Contains(text, `\u`) && !strings.Contains(text, "\x00") {
		return nil
	}
	for _, operation := range document.Operations {
		l.selections(operation.SelectionSet)
		l.directives(operation.Directives)
		for _, variable := range operation.VariableDefinitions {
			l.value(&place{name: variable.Variable}, variable.DefaultValue)
			l.directives(variable.Directives)
		}
	}
	for _, fragment := range document.Fragments {
		l.selections(fragment.SelectionSet)
		l.directives(fragment.Directives)
	}
	return l.problem
}

// literals looks for texts to refuse in the literals of a document. lone is
// whether a replacement character in a literal can only stand for half a
// surrogate pair, because the document itself holds none.
type literals struct {
	lone    bool
	problem error
}

func (l *literals) selections(set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			for _, argument := range selection.Arguments {
				l.value(&place{name: argument.Name}, argument.Value)
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
			l.value(&place{name: argument.Name}, argument.Value)
		}
	}
}

func (l *literals) value(at *place, value *ast.Value) {
	if value == nil || l.problem != nil {
		return
	}
	switch {
	case strings.Contains(value.Raw, "\x00"):
		l.problem = at.refuse("the character U+0000 is not allowed")
	case l.lone && strings.Contains(value.Raw, "\uFFFD"):
		l.problem = notUnicode(at.String())
	}
	for i, child := range value.Children {
		if value.Kind == ast.ListValue {
			l.value(&place{above: at, index: i}, child.Value)
		} else {
			l.value(&place{above: at, name: child.Name}, child.Value)
		}
	}
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func clip(text string, most int) string {
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
