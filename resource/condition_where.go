package resource

import (
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Bounds of conditions.
const (
	MaxConditionTests    = 50  // tests in one filter
	MaxConditionDepth    = 5   // all, any and not within one another
	MaxConditionOperands = 100 // values of one test
)

// Where is the typed tree of conditions: exactly one of its fields
// is given.
type Where struct {
	All        []Where // every one holds
	Any        []Where // some one holds
	Not        *Where  // it does not hold
	Metadata   *MetadataCondition
	Capability *CapabilityCondition
}

// MetadataCondition tests one metadata item; exactly one operator is given.
type MetadataCondition struct {
	Key      string
	Exists   *bool
	Equals   *string
	In       []string
	Prefix   *string
	Contains *string
}

// CapabilityCondition tests one capability; exactly one operator is given.
type CapabilityCondition struct {
	Name     string
	Exists   *bool
	Equals   *string
	In       []string
	Gte      *string
	Lte      *string
	Contains *string
}

// Condition is what the tree means; what is wrong with it is noted.
func (c Where) Condition(problems *problem.Problems, path string) Condition {
	tests := 0
	return c.condition(problems, path, 1, &tests)
}

func (c Where) condition(problems *problem.Problems, path string, depth int, tests *int) Condition {
	given := 0
	for _, there := range []bool{c.All != nil, c.Any != nil, c.Not != nil, c.Metadata != nil, c.Capability != nil} {
		if there {
			given++
		}
	}
	switch {
	case given != 1:
		problems.Add(path, "must have exactly one of all, any, not, metadata, capability")
	case c.Metadata == nil && c.Capability == nil && depth > MaxConditionDepth:
		problems.Add(path, "is deeper than %d conditions", MaxConditionDepth)
	case c.All != nil:
		return Condition{Kind: ConditionAll, Members: conditionsOf(c.All, problems, problem.Join(path, "all"), depth, tests)}
	case c.Any != nil:
		return Condition{Kind: ConditionAny, Members: conditionsOf(c.Any, problems, problem.Join(path, "any"), depth, tests)}
	case c.Not != nil:
		return negated(c.Not.condition(problems, problem.Join(path, "not"), depth+1, tests))
	case c.Metadata != nil:
		countTest(problems, path, tests)
		return c.Metadata.condition(problems, problem.Join(path, "metadata"))
	case c.Capability != nil:
		countTest(problems, path, tests)
		return c.Capability.condition(problems, problem.Join(path, "capability"))
	}
	return Condition{Kind: ConditionNever}
}

func conditionsOf(members []Where, problems *problem.Problems, path string, depth int, tests *int) []Condition {
	conditions := make([]Condition, len(members))
	for i, member := range members {
		conditions[i] = member.condition(problems, problem.Index(path, i), depth+1, tests)
	}
	return conditions
}

func countTest(problems *problem.Problems, path string, tests *int) {
	if *tests++; *tests == MaxConditionTests+1 {
		problems.Add(path, "is more than %d tests", MaxConditionTests)
	}
}

func negated(c Condition) Condition { return Condition{Kind: ConditionNot, Members: []Condition{c}} }

func (c MetadataCondition) condition(problems *problem.Problems, path string) Condition {
	text.Check(problems, problem.Join(path, "key"), c.Key, 1, metadef.MaxMetadataKey)
	return operators{
		{"exists", nil, c.Exists, Exists, AsText},
		{"equals", one(c.Equals), nil, Equals, AsText},
		{"in", c.In, nil, Equals, AsText},
		{"prefix", one(c.Prefix), nil, HasPrefix, AsText},
		{"contains", one(c.Contains), nil, Has, AsText},
	}.condition(ConditionMetadata, c.Key, problems, path)
}

func (c CapabilityCondition) condition(problems *problem.Problems, path string) Condition {
	text.Check(problems, problem.Join(path, "name"), c.Name, 1, MaxCapabilityName)
	return operators{
		{"exists", nil, c.Exists, Exists, Pairwise},
		{"equals", one(c.Equals), nil, Equals, Pairwise},
		{"in", c.In, nil, Equals, Pairwise},
		{"gte", one(c.Gte), nil, GreaterOrEqual, Pairwise},
		{"lte", one(c.Lte), nil, LessOrEqual, Pairwise},
		{"contains", one(c.Contains), nil, Has, Pairwise},
	}.condition(ConditionCapability, c.Name, problems, path)
}

func one(text *string) []string {
	if text == nil {
		return nil
	}
	return []string{*text}
}

// operators are those that a test can be given, with what was given.
type operators []struct {
	field      string
	operands   []string
	exists     *bool
	operator   Operator
	comparison Comparison
}

// condition is the test that was given, which must be one.
func (o operators) condition(kind ConditionKind, name string, problems *problem.Problems, path string) Condition {
	condition, given, names := Condition{Kind: ConditionNever}, 0, ""
	for i, operator := range o {
		if names += operator.field; i < len(o)-1 {
			names += ", "
		}
		if operator.operands == nil && operator.exists == nil {
			continue
		}
		given++
		if len(operator.operands) > MaxConditionOperands {
			problems.Add(problem.Join(path, operator.field), "must have at most %d values, has %d", MaxConditionOperands, len(operator.operands))
		}
		for _, operand := range operator.operands {
			text.Check(problems, problem.Join(path, operator.field), operand, 0, MaxCapabilityValue)
		}
		condition = Condition{Kind: kind, Test: Test{name, operator.operator, operator.comparison, operator.operands}}
		if operator.exists != nil && !*operator.exists {
			condition = negated(condition)
		}
	}
	if given != 1 {
		problems.Add(path, "must have exactly one of %s", names)
	}
	return condition
}
