package resource

import (
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// Condition is a condition on resources: a tree of tests. A filter, the typed
// tree of the API, the requirements of schedulers and the expressions of
// reservations all become this one type. One compiler turns it into SQL,
// another into sets. Package resourcetest has the oracle, which evaluates it
// directly.
type Condition struct {
	Kind    ConditionKind
	Members []Condition // of ConditionAll and ConditionAny; one of ConditionNot
	// Test is the whole test of ConditionMetadata and ConditionCapability. For
	// other kinds, its operands are the alternative values.
	Test  Test
	Since time.Time // of ConditionUpdatedSince
	Below bool      // of ConditionTag: includes tags that definitions place below it
	Path  string    // of ConditionCapability: the argument with its name, "" in an expression
}

// ConditionKind is the kind of a condition.
type ConditionKind int

// The kinds of conditions.
const (
	ConditionAll          ConditionKind = iota // every member holds; always true without members
	ConditionAny                               // some member holds; never true without members
	ConditionNot                               // the member does not hold; true if the tested item is absent
	ConditionMetadata                          // the test holds for a metadata item
	ConditionCapability                        // the test holds for a capability
	ConditionNever                             // never holds
	ConditionType                              // the type has one of the names
	ConditionProject                           // the project has one of the ids
	ConditionVisibility                        // the visibility is one of the operands
	ConditionName                              // the name is one of the operands
	ConditionNameContains                      // the folded name contains the operand
	ConditionSearch                            // the folded name, description or value of an item contains the operand
	ConditionUpdatedSince                      // the last update is not before a time
	ConditionUUID                              // the uuid is one of the operands
	ConditionParent                            // the parent has the uuid, and the viewer may see it
	// an ancestor has the uuid, and the viewer may see every resource on the way to it
	ConditionAncestor
	ConditionTag // a tag has one of the folded names
)

// Test is a test of one metadata item or one capability. It never holds if the
// item or capability is absent, even with Differs. For a list, it holds if it
// holds for any member, except with HasAll.
type Test struct {
	Name       string
	Operator   Operator
	Comparison Comparison
	Operands   []string // one is enough, except for HasAll
}

// Operator is the operator of a test.
type Operator int

// The operators. A resource without the item or capability satisfies none.
const (
	Exists  Operator = iota
	Equals           // is one of the operands
	Differs          // differs from the operand
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
	HasPrefix // begins with the operand
	Has       // a list has the operand as a member, or a string contains it
	HasAll    // a list or string has every operand
)

// Comparison says how to compare a value and an operand.
type Comparison int

// The comparisons.
const (
	// Pairwise compares two numbers as numbers and two other strings as text. A
	// number and another string never match.
	Pairwise Comparison = iota
	// AsText compares by code point.
	AsText
	// AsNumbers compares numbers. Other strings never match.
	AsNumbers
)

// ComparesNumbers reports whether the test compares its operand as a number.
func (t Test) ComparesNumbers() bool {
	if t.Operator < Equals || t.Operator > GreaterOrEqual || t.Comparison == AsText || len(t.Operands) != 1 {
		return false
	}
	_, isNumber := NumberKey(t.Operands[0])
	return isNumber
}

// CapabilityNames returns the name of every capability that the condition tests,
// sorted and without duplicates.
func (c Condition) CapabilityNames() []string {
	var names []string
	c.capabilities(func(test Condition) { names = append(names, test.Test.Name) })
	return lists.Distinct(names)
}

// capabilities calls visit with every test of a capability, in order.
func (c Condition) capabilities(visit func(Condition)) {
	if c.Kind == ConditionCapability {
		visit(c)
	}
	for _, member := range c.Members {
		member.capabilities(visit)
	}
}
