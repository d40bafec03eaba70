package resource

import (
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Requirement is a scheduler's requirement on a capability: a key, and an
// operator with operands, as in the extra specs of a flavor.
type Requirement struct {
	Key         string
	Requirement string
}

// UnknownKeys says how to treat a requirement if the viewer may not know of a
// capability with its key.
type UnknownKeys int

// How to treat requirements with unknown keys.
const (
	RefuseUnknownKeys UnknownKeys = iota // the default
	// IgnoreUnknownKeys ignores the requirement, as Nova does: another filter
	// of the scheduler may read the key. With the capabilities scope, the
	// requirement is never met.
	IgnoreUnknownKeys
)

// Limits of requirements. maxRequirement is in code points.
const (
	maxRequirements = 64
	maxRequirement  = 4096
)

// Capability returns the name of the capability without the capabilities scope,
// and reports whether the key has the scope.
func (r Requirement) Capability() (name string, scoped bool) {
	return strings.CutPrefix(r.Key, metadef.CapabilitiesScope)
}

// CapabilitiesOf returns the names of the capabilities in requirements, sorted
// and without duplicates.
func CapabilitiesOf(requirements []Requirement) []string {
	return lists.Distinct(lists.Map(requirements, func(requirement Requirement) string {
		name, _ := requirement.Capability()
		return name
	}))
}

// requirementOperators are the operators of a requirement and the way in which
// each compares its operands. "" is for text without an operator.
var requirementOperators = map[string]struct {
	operator   Operator
	comparison Comparison
}{
	"":   {Equals, Pairwise},
	"=":  {GreaterOrEqual, AsNumbers}, // at least, for historical reasons
	"==": {Equals, AsNumbers}, "!=": {Differs, AsNumbers},
	">=": {GreaterOrEqual, AsNumbers}, "<=": {LessOrEqual, AsNumbers},
	">": {Greater, AsNumbers}, "<": {Less, AsNumbers},
	"s==": {Equals, AsText}, "s!=": {Differs, AsText},
	"s<": {Less, AsText}, "s<=": {LessOrEqual, AsText}, "s>": {Greater, AsText}, "s>=": {GreaterOrEqual, AsText},
	metadef.OperatorIn: {Has, AsText}, metadef.OperatorOr: {Equals, Pairwise}, metadef.OperatorAllIn: {HasAll, AsText},
}

// Condition returns the condition of the requirement, and adds the problems of
// its text, with hints; then the condition never holds. Text without an operator
// must equal the whole value or a member of a list, or be the same number if both
// are numbers.
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
	text.Check(problems, path, r.Requirement, 0, maxRequirement)
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
