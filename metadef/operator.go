package metadef

import (
	"strings"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/text"
)

// The operators that the scheduler knows and definitions offer (multivalue
// operators specification).
const (
	OperatorIn    = "<in>"
	OperatorOr    = "<or>"
	OperatorAllIn = "<all-in>"
)

func isOperator(text string) bool {
	return text == OperatorIn || text == OperatorOr || text == OperatorAllIn
}

// SplitOperator reads a value with an operator: `<in> a`, `<or> a <or> b`,
// `<all-in> a b`, and the comma form of each, `<or> a,b`. Operators are the
// three known ones and those that the definition offers; without one in front
// the operator is empty and the text is for the caller to split.
func SplitOperator(text string, offered []string) (operator string, values []string) {
	text = strings.TrimSpace(text)
	for _, candidate := range append([]string{OperatorIn, OperatorOr, OperatorAllIn}, offered...) {
		rest, ok := strings.CutPrefix(text, candidate)
		if !ok || len(candidate) <= len(operator) {
			continue
		}
		// A known operator needs no space after it; a word does.
		if isOperator(candidate) || rest == "" || strings.TrimLeft(rest, " \t") != rest {
			operator = candidate
		}
	}
	if operator == "" {
		return "", nil
	}
	rest := strings.TrimPrefix(text, operator)
	pieces := []string{rest}
	switch {
	case strings.Contains(rest, operator):
		pieces = strings.Split(rest, operator)
	case operator == OperatorAllIn:
		pieces = strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	case strings.Contains(rest, ","):
		pieces = strings.Split(rest, ",")
	}
	for _, piece := range pieces {
		if piece = strings.TrimSpace(piece); piece != "" {
			values = append(values, piece)
		}
	}
	return operator, values
}

// splitList reads the values of an array that stand without an operator: a JSON
// list, or text with commas.
func splitList(input string) []string {
	var values []string
	if list := jsonvalue.Of(text.JSON(input)); list.Kind == jsonvalue.KindList {
		for _, item := range list.List {
			if item.Kind != jsonvalue.KindText {
				item.Text = string(item.Raw)
			}
			values = append(values, item.Text)
		}
		return values
	}
	for piece := range strings.SplitSeq(input, ",") {
		if piece = strings.TrimSpace(piece); piece != "" {
			values = append(values, piece)
		}
	}
	return values
}
