package resource

import (
	"slices"
	"strings"
)

// Condition is what a resource must satisfy: a tree of tests. The typed tree of
// the API, the requirements of schedulers and the expressions of reservations
// all come to this one type. Matches says what it means; the store asks the
// database the same.
type Condition struct {
	Kind    ConditionKind
	Members []Condition // of ConditionAll and ConditionAny; ConditionNot has one
	Test    Test        // of ConditionMetadata and ConditionCapability
}

// ConditionKind says which condition it is.
type ConditionKind int

const (
	ConditionAll        ConditionKind = iota // every member holds; without members always
	ConditionAny                             // some member holds; without members never
	ConditionNot                             // the member does not hold, also where the thing tested is absent
	ConditionMetadata                        // the test holds of a metadata item
	ConditionCapability                      // the test holds of a capability
	ConditionNever                           // never holds
)

// Test is a question about one metadata item or one capability. It never holds
// where that is absent, whatever the operator. It holds of a list when it holds
// of any member.
type Test struct {
	Name       string
	Operator   Operator
	Comparison Comparison
	Operands   []string // one is enough, except for HasAll
}

// Operator is what a test asks.
type Operator int

const (
	Exists         Operator = iota
	Equals                  // is one of the operands
	Differs                 // differs from the operand
	Less                    //
	LessOrEqual             //
	Greater                 //
	GreaterOrEqual          //
	HasPrefix               // begins with the operand
	Has                     // a list has the operand as a member, a text has it somewhere
	HasAll                  // a list or text has every operand
)

// Comparison is how a value and an operand are compared.
type Comparison int

const (
	// Pairwise compares numbers when both are, texts when neither is; a number
	// and a text never match.
	Pairwise Comparison = iota
	// AsText compares by code point.
	AsText
	// AsNumbers compares numbers; what is none never matches.
	AsNumbers
)

// Facts is what is known of a resource: the values of its metadata and
// capabilities by name.
type Facts struct {
	Metadata     map[string]string
	Capabilities map[string]string
}

// Matches tells whether the condition holds of a resource. It is the oracle of
// what the database is asked.
func (c Condition) Matches(facts Facts) bool {
	matches := func(member Condition) bool { return member.Matches(facts) }
	switch c.Kind {
	case ConditionAll:
		return !slices.ContainsFunc(c.Members, func(member Condition) bool { return !member.Matches(facts) })
	case ConditionAny:
		return slices.ContainsFunc(c.Members, matches)
	case ConditionNot:
		return !c.Members[0].Matches(facts)
	case ConditionMetadata:
		value, there := facts.Metadata[c.Test.Name]
		return there && c.Test.holds([]string{value}, false)
	case ConditionCapability:
		value, there := facts.Capabilities[c.Test.Name]
		members, inList := CapabilityMembers(value)
		return there && c.Test.holds(members, inList)
	}
	return false
}

func (t Test) holds(members []string, inList bool) bool {
	of := func(holds func(member, operand string) bool) func(operand string) bool {
		return func(operand string) bool {
			return slices.ContainsFunc(members, func(member string) bool { return holds(member, operand) })
		}
	}
	has := of(func(member, operand string) bool {
		return member == operand || !inList && strings.Contains(member, operand)
	})
	switch t.Operator {
	case Exists:
		return true
	case HasPrefix:
		return slices.ContainsFunc(t.Operands, of(strings.HasPrefix))
	case Has:
		return slices.ContainsFunc(t.Operands, has)
	case HasAll:
		return !slices.ContainsFunc(t.Operands, func(operand string) bool { return !has(operand) })
	}
	return slices.ContainsFunc(t.Operands, of(t.compares))
}

// compares tells whether a value and an operand compare as the operator wants.
func (t Test) compares(value, operand string) bool {
	order, comparable := t.Comparison.compare(value, operand)
	if !comparable {
		return false
	}
	switch t.Operator {
	case Equals:
		return order == 0
	case Differs:
		return order != 0
	case Less:
		return order < 0
	case LessOrEqual:
		return order <= 0
	case Greater:
		return order > 0
	}
	return order >= 0
}

// compare is negative when a is less than b; false means that they do not
// compare.
func (c Comparison) compare(a, b string) (int, bool) {
	if c == AsText {
		return strings.Compare(a, b), true
	}
	x, xIsNumber := NumberKey(a)
	y, yIsNumber := NumberKey(b)
	switch {
	case xIsNumber && yIsNumber:
		return strings.Compare(x, y), true
	case c == Pairwise && !xIsNumber && !yIsNumber:
		return strings.Compare(a, b), true
	}
	return 0, false
}

// ComparesNumbers tells whether the test compares its operand as a number.
func (t Test) ComparesNumbers() bool {
	if t.Operator < Equals || t.Operator > GreaterOrEqual || t.Comparison == AsText || len(t.Operands) != 1 {
		return false
	}
	_, isNumber := NumberKey(t.Operands[0])
	return isNumber
}

// CapabilityNames is every capability that the condition tests, each once and
// sorted.
func (c Condition) CapabilityNames() []string {
	var names []string
	if c.Kind == ConditionCapability {
		names = append(names, c.Test.Name)
	}
	for _, member := range c.Members {
		names = append(names, member.CapabilityNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
