package resource

import (
	"encoding/json"
	"strings"

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

// maxMatching is the maximum length of a matching expression in code points.
const maxMatching = 65536

// The keywords of matching expressions: comparisons, and kinds of conditions.
var (
	matchingOperators = map[string]Operator{
		"=": Equals, "==": Equals, "!=": Differs, ">=": GreaterOrEqual, "<=": LessOrEqual, ">": Greater, "<": Less,
	}
	matchingKinds = map[string]ConditionKind{"and": ConditionAll, "or": ConditionAny, "not": ConditionNot}
)

// ParseMatching returns the condition of a matching expression. Reservations
// ask for hosts by these JSON expressions: ["==", "$arch", "x86_64"], and
// combinations ["and", A, B, ...], ["or", A, B, ...] and ["not", A]. The empty
// string and [] are no condition. ParseMatching adds the expression's problems.
func ParseMatching(input string, problems *problem.Problems, path string) Condition {
	if input == "" {
		return Condition{Kind: ConditionAll}
	}
	text.Check(problems, path, input, 0, maxMatching)
	r := conditionReader{problems: problems}
	var value any
	if err := json.Unmarshal([]byte(input), &value); err != nil {
		return r.refuse(path, "is not JSON")
	}
	if members, isList := value.([]any); isList && len(members) == 0 {
		return Condition{Kind: ConditionAll}
	}
	return r.matching(value, path, 1)
}

func (r *conditionReader) matching(value any, path string, depth int) Condition {
	members, _ := value.([]any)
	if len(members) == 0 {
		return r.refuse(path, `must be a list such as ["==", "$name", "value"] or ["and", ...]`)
	}
	word, isText := members[0].(string)
	kind, combines := matchingKinds[word]
	operator, compares := matchingOperators[word]
	switch {
	case !isText:
		return r.refuse(path, "must begin with an operator: = == != >= <= > < and or not")
	case combines:
		return r.combined(kind, members, path, depth)
	case !compares:
		return r.refuse(path, "unknown operator %q; the operators are = == != >= <= > < and or not",
			metadef.Shorten(word))
	case len(members) != 3:
		return r.refuse(path, "%q takes a name and a value", word)
	}
	r.count(path)
	name, _ := members[1].(string)
	name, marked := strings.CutPrefix(name, "$")
	if !marked || name == "" {
		return r.refuse(path, `the name must be a string such as "$memory_mb"`)
	}
	operand, _ := members[2].(string)
	if operand == "" {
		return r.refuse(path, "the value must be a non-empty string; write numbers as strings")
	}
	return Condition{Kind: ConditionCapability, Test: Test{name, operator, Pairwise, []string{operand}}}
}

// combined reads the expressions after a keyword that combines them.
func (r *conditionReader) combined(kind ConditionKind, members []any, path string, depth int) Condition {
	switch {
	case depth > maxConditionDepth:
		return r.refuse(path, "is nested too deeply, at most %d levels are allowed", maxConditionDepth)
	case len(members) == 1:
		return r.refuse(path, "%q takes an expression", members[0])
	case kind == ConditionNot && len(members) > 2:
		return r.refuse(path, "%q takes one expression", members[0])
	}
	condition := Condition{Kind: kind}
	for i, member := range members[1:] {
		condition.Members = append(condition.Members, r.matching(member, problem.Index(path, i+1), depth+1))
	}
	return condition
}
