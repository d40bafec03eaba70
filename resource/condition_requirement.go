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

// UnknownKeys is what becomes of a requirement whose key names no capability that
// the viewer may know of.
type UnknownKeys int

// What becomes of it.
const (
	RefuseUnknownKeys UnknownKeys = iota // the default
	// IgnoreUnknownKeys is the rule of Nova: another filter of the scheduler may
	// read the key. In the scope of capabilities, the requirement is never met.
	IgnoreUnknownKeys
)

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

// CapabilitiesOf returns the names of the capabilities that requirements mean, each
// once and sorted.
func CapabilitiesOf(requirements []Requirement) []string {
	names := make([]string, len(requirements))
	for i, requirement := range requirements {
		names[i], _ = requirement.Capability()
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// requirementOperators are the operators of a requirement and how each compares
// its operands; the empty one is that of a plain text.
var requirementOperators = map[string]struct {
	operator   Operator
	comparison Comparison
}{
	"":   {Equals, Pairwise},
	"=":  {GreaterOrEqual, AsNumbers}, // historical: at least
	"==": {Equals, AsNumbers}, "!=": {Differs, AsNumbers},
	">=": {GreaterOrEqual, AsNumbers}, "<=": {LessOrEqual, AsNumbers}, ">": {Greater, AsNumbers}, "<": {Less, AsNumbers},
	"s==": {Equals, AsText}, "s!=": {Differs, AsText},
	"s<": {Less, AsText}, "s<=": {LessOrEqual, AsText}, "s>": {Greater, AsText}, "s>=": {GreaterOrEqual, AsText},
	metadef.OperatorIn: {Has, AsText}, metadef.OperatorOr: {Equals, Pairwise}, metadef.OperatorAllIn: {HasAll, AsText},
}

// Condition returns what the requirement means; what is wrong with its text is
// added to the problems, with a hint. A text without operator is to be the
// whole value, as the same number where both are numbers.
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
	if len(*problems) > before {
		return Test{}
	}
	expression, wrong := metadef.ParseExpression(r.Requirement)
	if wrong != "" {
		problems.Add(path, "%s", wrong)
	}
	meaning := requirementOperators[expression.Operator]
	return Test{Operator: meaning.operator, Comparison: meaning.comparison, Operands: expression.Operands}
}
