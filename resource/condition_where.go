package resource

import (
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Limits of conditions.
const (
	maxConditionTests    = 50  // tests in one field of a filter
	maxConditionDepth    = 5   // nesting of all, any and not
	maxConditionOperands = 100 // values of one test
)

// ConditionInput is a condition in the typed tree of the API. Exactly one of
// its fields must be set.
type ConditionInput struct {
	All        []ConditionInput // all of them hold
	Any        []ConditionInput // at least one of them holds
	Not        *ConditionInput  // the condition does not hold
	Metadata   *MetadataCondition
	Capability *CapabilityCondition
}

// MetadataCondition tests one metadata item. Exactly one operator must be set.
type MetadataCondition struct {
	Key      string
	Exists   *bool
	Equals   *string
	In       []string
	Prefix   *string
	Contains *string
}

// CapabilityCondition tests one capability. Exactly one operator must be set.
type CapabilityCondition struct {
	Name     string
	Exists   *bool
	Equals   *string
	In       []string
	Gte      *string
	Lte      *string
	Contains *string
}

// Condition returns the condition of the tree and adds the tree's problems.
func (c ConditionInput) Condition(problems *problem.Problems, path string) Condition {
	r := conditionReader{problems: problems}
	return r.where(c, path, 1)
}

// conditionReader reads the conditions of one field of a filter.
type conditionReader struct {
	problems *problem.Problems
	tests    int // number of tests so far
}

// refuse adds a problem and returns a condition that never holds.
func (r *conditionReader) refuse(path, format string, args ...any) Condition {
	r.problems.Add(path, format, args...)
	return Condition{Kind: ConditionNever}
}

// count counts one more test, and adds a problem for the first one beyond
// maxConditionTests.
func (r *conditionReader) count(path string) {
	if r.tests++; r.tests == maxConditionTests+1 {
		r.problems.Add(path, "must have at most %d conditions", maxConditionTests)
	}
}

func (r *conditionReader) where(c ConditionInput, path string, depth int) Condition {
	given := 0
	for _, isGiven := range []bool{c.All != nil, c.Any != nil, c.Not != nil, c.Metadata != nil, c.Capability != nil} {
		if isGiven {
			given++
		}
	}
	switch {
	case given != 1:
		return r.refuse(path, "must have exactly one of all, any, not, metadata, capability")
	case c.Metadata != nil:
		r.count(path)
		return r.metadata(*c.Metadata, problem.Join(path, "metadata"))
	case c.Capability != nil:
		r.count(path)
		return r.capability(*c.Capability, problem.Join(path, "capability"))
	case depth > maxConditionDepth:
		return r.refuse(path, "is nested too deeply, at most %d levels are allowed", maxConditionDepth)
	case c.Not != nil:
		return negated(r.where(*c.Not, problem.Join(path, "not"), depth+1))
	}
	condition, members, at := Condition{Kind: ConditionAll}, c.All, problem.Join(path, "all")
	if c.Any != nil {
		condition, members, at = Condition{Kind: ConditionAny}, c.Any, problem.Join(path, "any")
	}
	for i, member := range members {
		condition.Members = append(condition.Members, r.where(member, problem.Index(at, i), depth+1))
	}
	return condition
}

func negated(c Condition) Condition { return Condition{Kind: ConditionNot, Members: []Condition{c}} }

func (r *conditionReader) metadata(c MetadataCondition, path string) Condition {
	text.Check(r.problems, problem.Join(path, "key"), c.Key, 1, metadef.MaxMetadataKey)
	return r.test(Condition{Kind: ConditionMetadata, Test: Test{Name: c.Key, Comparison: AsText}}, path, c.Exists,
		givenOperator{"equals", Equals, one(c.Equals)}, givenOperator{"in", Equals, c.In},
		givenOperator{"prefix", HasPrefix, one(c.Prefix)}, givenOperator{"contains", Has, one(c.Contains)})
}

func (r *conditionReader) capability(c CapabilityCondition, path string) Condition {
	text.Check(r.problems, problem.Join(path, "name"), c.Name, 1, MaxCapabilityName)
	return r.test(Condition{Kind: ConditionCapability, Test: Test{Name: c.Name, Comparison: Pairwise},
		Path: problem.Join(path, "name")}, path, c.Exists,
		givenOperator{"equals", Equals, one(c.Equals)}, givenOperator{"in", Equals, c.In},
		givenOperator{"gte", GreaterOrEqual, one(c.Gte)}, givenOperator{"lte", LessOrEqual, one(c.Lte)},
		givenOperator{"contains", Has, one(c.Contains)})
}

func one(operand *string) []string {
	if operand == nil {
		return nil
	}
	return []string{*operand}
}

// givenOperator is a possible operator of a test. operands is nil if it is not
// set.
type givenOperator struct {
	field    string
	operator Operator
	operands []string
}

// test returns condition with the operator that is set: exists, which negates the
// condition if it is false, or one of operators. Exactly one must be set.
func (r *conditionReader) test(condition Condition, path string, exists *bool, operators ...givenOperator) Condition {
	fields, given := "exists", 0
	if exists != nil {
		given++
	}
	for _, of := range operators {
		fields += ", " + of.field
		if of.operands == nil {
			continue
		}
		given++
		at := problem.Join(path, of.field)
		if len(of.operands) > maxConditionOperands {
			r.problems.Add(at, "must have at most %d values, has %d", maxConditionOperands, len(of.operands))
		}
		for _, operand := range of.operands {
			text.Check(r.problems, at, operand, 0, MaxCapabilityValue)
		}
		condition.Test.Operator, condition.Test.Operands = of.operator, of.operands
	}
	switch {
	case given != 1:
		return r.refuse(path, "must have exactly one of %s", fields)
	case exists != nil && !*exists:
		return negated(condition)
	}
	return condition
}
