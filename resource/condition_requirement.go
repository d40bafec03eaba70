package resource

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Requirement is what a scheduler requires of a capability: a key and
// a text with an operator, as in the extra specs of a flavor.
type Requirement struct {
	Key         string
	Requirement string
}

// Limits of requirements, the text in code points.
const (
	MaxRequirements = 64
	MaxRequirement  = 4096
)

// Capability returns the name of the capability that is meant, without the
// scope of capabilities before it, and reports whether that was there.
func (r Requirement) Capability() (name string, scoped bool) {
	return strings.CutPrefix(r.Key, metadef.CapabilitiesScope)
}

// requirementOperators are the operators of a requirement and how each compares
// its operand.
var requirementOperators = map[string]struct {
	operator   Operator
	comparison Comparison
}{
	"=":  {GreaterOrEqual, AsNumbers}, // historical: at least
	"==": {Equals, AsNumbers}, "!=": {Differs, AsNumbers},
	">=": {GreaterOrEqual, AsNumbers}, "<=": {LessOrEqual, AsNumbers},
	"s==": {Equals, AsText}, "s!=": {Differs, AsText},
	"s<": {Less, AsText}, "s<=": {LessOrEqual, AsText}, "s>": {Greater, AsText}, "s>=": {GreaterOrEqual, AsText},
	metadef.OperatorIn: {Has, AsText}, metadef.OperatorOr: {Equals, AsText}, metadef.OperatorAllIn: {HasAll, AsText},
}

// requirementOperatorList is the operators as a refusal lists them.
const requirementOperatorList = "= == != >= <= s== s!= s< s<= s> s>= <in> <or> <all-in>"

// Condition returns what the requirement means; what is wrong with its text is
// added to the problems, with a hint. A text without operator is to be the
// whole value.
func (r Requirement) Condition(problems *problem.Problems, path string) Condition {
	before := len(*problems)
	test := r.test(problems, problem.Join(path, "requirement"))
	if len(*problems) > before {
		return Condition{Kind: ConditionNever}
	}
	test.Name, _ = r.Capability()
	return Condition{Kind: ConditionCapability, Test: test}
}

func (r Requirement) test(problems *problem.Problems, path string) Test {
	before := len(*problems)
	text.Check(problems, path, r.Requirement, 0, MaxRequirement)
	words := strings.Fields(r.Requirement)
	if len(*problems) > before || len(words) == 0 {
		return wholeValue(r.Requirement)
	}
	word, operands := words[0], words[1:]
	if n := len(operands); word == metadef.OperatorIn && n > 0 && operands[n-1] == word {
		operands = operands[:n-1] // as <or> may stand at the end
	}
	meaning, known := requirementOperators[word]
	switch {
	case !known:
		if hint := operatorHint(word); hint != "" {
			problems.Add(path, "%s", hint)
		}
		return wholeValue(r.Requirement)
	case len(operands) == 0:
		problems.Add(path, "%q has no operand", word)
	case word == metadef.OperatorOr:
		operands = alternatives(words, problems, path)
	case word == metadef.OperatorAllIn:
		if _, operands = metadef.SplitOperator(r.Requirement, nil); len(operands) == 0 {
			problems.Add(path, "%q has no operand", word)
		}
	default:
		checkOneOperand(word, operands, meaning.comparison, problems, path)
	}
	return Test{Operator: meaning.operator, Comparison: meaning.comparison, Operands: operands}
}

// checkOneOperand adds what is wrong with the operands of an operator that
// takes one.
func checkOneOperand(word string, operands []string, comparison Comparison, problems *problem.Problems, path string) {
	_, isNumber := NumberKey(operands[0])
	switch {
	case slices.Contains(operands, word):
		problems.Add(path, "%q appears twice; for several values there are <or> and <all-in>", word)
	case len(operands) > 1:
		problems.Add(path, "%q takes one word, %q is one too many", word, metadef.Shorten(operands[1]))
	case comparison == AsNumbers && !isNumber:
		problems.Add(path, "%q is not a number; texts are compared by s==, s>= and their like", metadef.Shorten(operands[0]))
	}
}

// wholeValue returns the test that the value is exactly a text.
func wholeValue(text string) Test {
	return Test{Operator: Equals, Comparison: AsText, Operands: []string{text}}
}

// alternatives returns the values of `<or> a <or> b`, with an <or> at the end
// or not, and the comma form, `<or> a,b`.
func alternatives(words []string, problems *problem.Problems, path string) []string {
	var list []string
	for i, word := range words {
		switch isOr := word == metadef.OperatorOr; {
		case i%2 == 0 && !isOr:
			problems.Add(path, "%s is expected before %q", metadef.OperatorOr, metadef.Shorten(word))
			return nil
		case i%2 == 1 && isOr:
			problems.Add(path, "%s has no value after it", metadef.OperatorOr)
			return nil
		case !isOr:
			list = append(list, word)
		}
	}
	if len(list) == 1 && strings.Contains(list[0], ",") {
		list = strings.FieldsFunc(list[0], func(r rune) bool { return r == ',' })
	}
	if len(list) == 0 {
		problems.Add(path, "%s has no value after it", metadef.OperatorOr)
	}
	return list
}

// operatorHint returns what may be meant by a first word that looks like an
// operator but is not; empty where it does not look like one.
func operatorHint(word string) string {
	for _, operator := range []string{"s==", "s!=", "s<=", "s>=", "==", "!=", ">=", "<=", metadef.OperatorAllIn, metadef.OperatorIn, metadef.OperatorOr, "s<", "s>", "="} {
		if strings.HasPrefix(word, operator) {
			return "a space is needed after " + operator
		}
	}
	if strings.HasPrefix(word, ">") || strings.HasPrefix(word, "<") {
		return "unknown operator " + metadef.Shorten(word) + ", known are " + requirementOperatorList
	}
	return ""
}
