package catalog

import (
	"slices"
	"strings"
)

// Requirement is what a scheduler is told to require of a capability: a key and
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

// Capability is the name of the capability that is meant: the scope of
// capabilities before it is dropped. Scoped tells whether it was there.
func (r Requirement) Capability() (name string, scoped bool) {
	return strings.CutPrefix(r.Key, capabilitiesScope)
}

// The operators of a requirement and how each compares its operand.
var requirementOperators = map[string]struct {
	operator   Operator
	comparison Comparison
}{
	"=":  {GreaterOrEqual, AsNumbers}, // historical: at least
	"==": {Equals, AsNumbers}, "!=": {Differs, AsNumbers},
	">=": {GreaterOrEqual, AsNumbers}, "<=": {LessOrEqual, AsNumbers},
	"s==": {Equals, AsText}, "s!=": {Differs, AsText},
	"s<": {Less, AsText}, "s<=": {LessOrEqual, AsText}, "s>": {Greater, AsText}, "s>=": {GreaterOrEqual, AsText},
	operatorIn: {Has, AsText}, operatorOr: {Equals, AsText}, operatorAllIn: {HasAll, AsText},
}

// requirementOperatorList is the operators as a refusal lists them.
const requirementOperatorList = "= == != >= <= s== s!= s< s<= s> s>= <in> <or> <all-in>"

// Condition is what the requirement means; what is wrong with its text is noted,
// with a hint. A text without operator is to be the whole value.
func (r Requirement) Condition(problems *Problems, path string) Condition {
	before := len(*problems)
	test := r.test(problems, joined(path, "requirement"))
	if len(*problems) > before {
		return Condition{Kind: ConditionNever}
	}
	test.Name, _ = r.Capability()
	return Condition{Kind: ConditionCapability, Test: test}
}

func (r Requirement) test(problems *Problems, path string) Test {
	before := len(*problems)
	CheckText(problems, path, r.Requirement, 0, MaxRequirement)
	if len(*problems) > before {
		return Test{}
	}
	words := strings.Fields(r.Requirement)
	if len(words) == 0 {
		return wholeValue(r.Requirement)
	}
	word, operands := words[0], words[1:]
	if n := len(operands); word == operatorIn && n > 0 && operands[n-1] == word {
		operands = operands[:n-1] // as <or> may stand at the end
	}
	meaning, known := requirementOperators[word]
	test := Test{Operator: meaning.operator, Comparison: meaning.comparison, Operands: operands}
	switch {
	case !known:
		if hint := operatorHint(word); hint != "" {
			problems.Add(path, "%s", hint)
		}
		return wholeValue(r.Requirement)
	case len(operands) == 0:
		problems.Add(path, "%q has no operand", word)
	case word == operatorOr:
		test.Operands = alternatives(words, problems, path)
	case word == operatorAllIn:
		_, test.Operands = splitOperator(r.Requirement, nil)
		if len(test.Operands) == 0 {
			problems.Add(path, "%q has no operand", word)
		}
	case slices.Contains(operands, word):
		problems.Add(path, "%q stands twice; for several values there are <or> and <all-in>", word)
	case len(operands) > 1:
		problems.Add(path, "%q takes one word, %q is one too many", word, shorten(operands[1]))
	case meaning.comparison == AsNumbers:
		if _, ok := NumberKey(operands[0]); !ok {
			problems.Add(path, "%q is not a number; texts are compared by s==, s>= and their like", shorten(operands[0]))
		}
	}
	return test
}

// wholeValue wants the value to be exactly a text.
func wholeValue(text string) Test {
	return Test{Operator: Equals, Comparison: AsText, Operands: []string{text}}
}

// alternatives reads `<or> a <or> b`, with an <or> at the end or not, and the
// comma form, `<or> a,b`.
func alternatives(words []string, problems *Problems, path string) []string {
	var list []string
	for i, word := range words {
		switch isOr := word == operatorOr; {
		case i%2 == 0 && !isOr:
			problems.Add(path, "%s is expected before %q", operatorOr, shorten(word))
			return nil
		case i%2 == 1 && isOr:
			problems.Add(path, "%s has no value after it", operatorOr)
			return nil
		case !isOr:
			list = append(list, word)
		}
	}
	if len(list) == 1 && strings.Contains(list[0], ",") {
		list = strings.FieldsFunc(list[0], func(r rune) bool { return r == ',' })
	}
	if len(list) == 0 {
		problems.Add(path, "%s has no value after it", operatorOr)
	}
	return list
}

// operatorHint tells what may be meant by a first word that looks like an
// operator and is none; empty where it does not look like one.
func operatorHint(word string) string {
	for _, operator := range []string{"s==", "s!=", "s<=", "s>=", "==", "!=", ">=", "<=", operatorAllIn, operatorIn, operatorOr, "s<", "s>", "="} {
		if strings.HasPrefix(word, operator) {
			return "a space is needed after " + operator
		}
	}
	unknown := strings.HasPrefix(word, ">") || strings.HasPrefix(word, "<")
	if !unknown {
		return ""
	}
	return shorten(word) + " is no operator; there are " + requirementOperatorList
}
