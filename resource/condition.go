package resource

import (
	"slices"
	"time"
)

// Condition is what a resource must satisfy: a tree of tests. A filter, the typed
// tree of the API, the requirements of schedulers and the expressions of
// reservations all become this one type. One compiler turns it into SQL, another
// into sets; package resourcetest has the oracle of what it means.
type Condition struct {
	Kind    ConditionKind
	Members []Condition // of ConditionAll and ConditionAny; ConditionNot has one
	// Test is the whole test of ConditionMetadata and ConditionCapability. Other
	// kinds have their values as its operands, of which one is enough.
	Test  Test
	Since time.Time // of ConditionUpdatedSince
	Below bool      // of ConditionTag: tags that definitions place below it, too
	Path  string    // of ConditionCapability: the argument that names it, "" for one in a text
}

// ConditionKind is the kind of a condition.
type ConditionKind int

// The kinds of conditions.
const (
	ConditionAll          ConditionKind = iota // every member holds; without members always
	ConditionAny                               // some member holds; without members never
	ConditionNot                               // the member does not hold, also where the thing tested is absent
	ConditionMetadata                          // the test holds of a metadata item
	ConditionCapability                        // the test holds of a capability
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
	ConditionAncestor                          // an ancestor has the uuid, and the viewer may see the way to it
	ConditionTag                               // a tag has one of the folded names
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
	Has       // a list has the operand as a member, a text has it somewhere
	HasAll    // a list or text has every operand
)

// Comparison is how a value and an operand are compared.
type Comparison int

// The comparisons.
const (
	// Pairwise compares numbers when both are, texts when neither is; a number
	// and a text never match.
	Pairwise Comparison = iota
	// AsText compares by code point.
	AsText
	// AsNumbers compares numbers; anything else never matches.
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

// CapabilityNames returns every capability that the condition tests, each once
// and sorted.
func (c Condition) CapabilityNames() []string {
	var names []string
	c.capabilities(func(test Condition) { names = append(names, test.Test.Name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// capabilities calls a function with every test of a capability, in order.
func (c Condition) capabilities(visit func(Condition)) {
	if c.Kind == ConditionCapability {
		visit(c)
	}
	for _, member := range c.Members {
		member.capabilities(visit)
	}
}
