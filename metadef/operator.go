package metadef

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/text"
)

// The operators on several values (multivalue operators specification).
const (
	OperatorIn    = "<in>"
	OperatorOr    = "<or>"
	OperatorAllIn = "<all-in>"
)

// numberOperators compare numbers. "=" means "at least", as schedulers have
// always read it. textOperators compare strings by code point.
func numberOperators() []string { return []string{"=", "==", "!=", ">=", "<=", ">", "<"} }
func textOperators() []string   { return []string{"s==", "s!=", "s<", "s<=", "s>", "s>="} }

// Operators returns the known operators of values and requirements.
func Operators() []string {
	return slices.Concat(numberOperators(), textOperators(), []string{OperatorIn, OperatorOr, OperatorAllIn})
}

func comparesNumbers(operator string) bool { return slices.Contains(numberOperators(), operator) }

// Expression is the meaning of a value in metadata or of a requirement on a
// capability: an operator and its operands. Without an operator, the whole
// string is the only operand.
type Expression struct {
	Operator string
	Operands []string
}

// ParseExpression parses an expression. If problem is not empty, the expression
// is the whole string as plain text.
//
// An operator comes first, followed by white space. A quoted operand may
// contain \" and \\ for " and \. An unquoted operand is one word, or, as one of
// several alternatives of <or>, everything up to the next <or>. A single <or>
// may also be followed by alternatives separated by commas. The words after
// <all-in> are separated by commas or white space.
func ParseExpression(input string) (expression Expression, problem string) {
	plain := Expression{Operands: []string{input}}
	word, rest := cutWord(strings.TrimLeftFunc(input, unicode.IsSpace))
	if !slices.Contains(Operators(), word) {
		return plain, operatorHint(word)
	}
	expression.Operator = word
	switch word {
	case OperatorOr:
		expression.Operands, problem = alternatives(rest)
	case OperatorAllIn:
		expression.Operands, problem = split(rest, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		expression.Operands = slices.DeleteFunc(expression.Operands, func(operand string) bool {
			return operand == word
		})
	default:
		expression.Operands, problem = oneOperand(word, rest)
	}
	if problem == "" && len(expression.Operands) == 0 {
		problem = fmt.Sprintf("%q has no operand", word)
	}
	if problem != "" {
		return plain, problem
	}
	return expression, ""
}

// cutWord returns the first word of a string and the rest.
func cutWord(input string) (word, rest string) {
	if end := strings.IndexFunc(input, unicode.IsSpace); end >= 0 {
		return input[:end], input[end:]
	}
	return input, ""
}

// oneOperand parses the operand of an operator that takes one.
func oneOperand(word, rest string) (operands []string, problem string) {
	operands, problem = split(rest, unicode.IsSpace)
	if n := len(operands); word == OperatorIn && n > 1 && operands[n-1] == word {
		operands = operands[:n-1] // optional at the end, as with <or>
	}
	switch {
	case problem != "" || len(operands) == 0:
	case slices.Contains(operands, word):
		problem = fmt.Sprintf("%q appears twice; use <or> or <all-in> for several values", word)
	case len(operands) > 1:
		problem = fmt.Sprintf("%q takes one word, but %q follows; put a value with spaces in quotation marks", word,
			Shorten(operands[1]))
	case comparesNumbers(word) && !isComparable(operands[0]):
		problem = fmt.Sprintf("%q is not a number; to compare strings, use s==, s>= etc.", Shorten(operands[0]))
	}
	return operands, problem
}

// Limits of comparable numbers.
const (
	MaxNumberDigits   = 64
	MaxNumberExponent = 4999
)

// isComparable reports whether a string is a number within the limits.
func isComparable(input string) bool {
	number, ok := text.ParseDecimal(input)
	return ok && len(number.Digits) <= MaxNumberDigits &&
		(number.Digits == "" || number.Exponent <= MaxNumberExponent && number.Exponent >= -MaxNumberExponent)
}

// alternatives parses the text after the first <or>: `a <or> b`, with an
// optional <or> at the end, or `a,b`.
func alternatives(rest string) (operands []string, problem string) {
	segments := segmentsOf(rest)
	if n := len(segments); n > 1 && segments[n-1] == "" {
		segments = segments[:n-1]
	}
	if len(segments) == 1 {
		_, after, _ := unquote(segments[0])
		isQuoted := strings.HasPrefix(segments[0], `"`)
		switch _, more := cutWord(segments[0]); {
		case isQuoted && strings.HasPrefix(strings.TrimSpace(after), ","),
			!isQuoted && strings.Contains(segments[0], ","):
			return split(segments[0], func(r rune) bool { return r == ',' })
		case !isQuoted && more != "":
			next, _ := cutWord(strings.TrimLeftFunc(more, unicode.IsSpace))
			return nil, fmt.Sprintf("expected %s before %q; put a value with spaces in quotation marks", OperatorOr,
				Shorten(next))
		}
	}
	for _, segment := range segments {
		if segment == "" {
			return nil, OperatorOr + " has no value after it"
		}
		operand, after, problem := unquote(segment)
		if problem == "" && strings.TrimSpace(after) != "" {
			problem = "text follows the closing quotation mark: " + Shorten(strings.TrimSpace(after))
		}
		if problem != "" {
			return nil, problem
		}
		operands = append(operands, operand)
	}
	return operands, ""
}

// segmentsOf splits a string at the words <or> and trims white space. It does
// not split inside a quoted string at the start of a segment.
func segmentsOf(rest string) []string {
	var segments []string
	begin, at := 0, 0
	for at < len(rest) {
		word, after := cutWord(rest[at:])
		switch {
		case word == "":
			at += len(rest[at:]) - len(strings.TrimLeftFunc(rest[at:], unicode.IsSpace))
		case word == OperatorOr:
			segments = append(segments, strings.TrimSpace(rest[begin:at]))
			at += len(word)
			begin = at
		case word[0] == ',':
			at++
		case word[0] == '"':
			if _, left, problem := unquote(rest[at:]); problem == "" {
				at = len(rest) - len(left)
				continue
			}
			at = len(rest) - len(after)
		default:
			at = len(rest) - len(after)
		}
	}
	return append(segments, strings.TrimSpace(rest[begin:]))
}

// split splits operands at separators. Quoted operands may contain separators.
// It trims white space around operands, and drops empty ones without quotes.
func split(input string, separates func(rune) bool) (operands []string, problem string) {
	skip := func(r rune) bool { return separates(r) || unicode.IsSpace(r) }
	for left := strings.TrimLeftFunc(input, skip); left != ""; left = strings.TrimLeftFunc(left, skip) {
		if left[0] == '"' {
			operand, after, problem := unquote(left)
			left = strings.TrimLeftFunc(after, func(r rune) bool { return unicode.IsSpace(r) && !separates(r) })
			if problem == "" && left != "" && strings.IndexFunc(left, separates) != 0 {
				problem = "text follows the closing quotation mark: " + Shorten(left)
			}
			if problem != "" {
				return nil, problem
			}
			operands = append(operands, operand)
			continue
		}
		end := strings.IndexFunc(left, separates)
		if end < 0 {
			end = len(left)
		}
		operands = append(operands, strings.TrimSpace(left[:end]))
		left = left[end:]
	}
	return operands, ""
}

// unquote returns the content of the quoted string at the start of input, and
// the rest. If input does not start with a quotation mark, operand is all of
// it.
func unquote(input string) (operand, after, problem string) {
	if input == "" || input[0] != '"' {
		return input, "", ""
	}
	var quoted strings.Builder
	for i := 1; i < len(input); i++ {
		switch {
		case input[i] == '"':
			return quoted.String(), input[i+1:], ""
		case input[i] == '\\' && i+1 < len(input):
			i++
		}
		quoted.WriteByte(input[i])
	}
	return "", "", "missing closing quotation mark: " + Shorten(input)
}

// operatorHint returns a hint for a first word that looks like an operator but
// is not one, and "" for other words.
func operatorHint(word string) string {
	for _, operator := range []string{"s==", "s!=", "s<=", "s>=", "==", "!=", ">=", "<=", OperatorAllIn,
		OperatorIn, OperatorOr, "s<", "s>", "="} {
		if strings.HasPrefix(word, operator) {
			return "missing space after " + operator
		}
	}
	if strings.HasPrefix(word, ">") || strings.HasPrefix(word, "<") {
		return "unknown operator " + Shorten(word) + "; the operators are " + strings.Join(Operators(), " ")
	}
	return ""
}

// ownOperator parses a value that begins with an offered operator that is not
// one of Operators, the longest if several match. The operands are the
// comma-separated parts of the rest. ok is false for any other value.
func ownOperator(value string, offered []string) (expression Expression, ok bool) {
	value = strings.TrimSpace(value)
	for _, operator := range offered {
		rest, found := strings.CutPrefix(value, operator)
		if !found || slices.Contains(Operators(), operator) || len(operator) <= len(expression.Operator) ||
			rest != "" && strings.TrimLeftFunc(rest, unicode.IsSpace) == rest {
			continue
		}
		expression.Operator = operator
	}
	if expression.Operator == "" {
		return expression, false
	}
	expression.Operands = commaPieces(strings.TrimPrefix(value, expression.Operator))
	return expression, true
}

// splitList splits the value of an array without an operator: a JSON list, or
// comma-separated text.
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
	return commaPieces(input)
}

// commaPieces splits a string at commas, trims the parts and drops empty ones.
func commaPieces(input string) []string {
	var pieces []string
	for piece := range strings.SplitSeq(input, ",") {
		if piece = strings.TrimSpace(piece); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}
