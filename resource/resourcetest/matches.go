// Package resourcetest has the oracle for the meaning of conditions, for the
// tests of any package.
package resourcetest

import (
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
)

// Facts are the known facts of a resource: the values of its metadata and
// capabilities by name.
type Facts struct {
	Metadata     map[string]string
	Capabilities map[string]string
	// Plain evaluates all other conditions. It may be nil if there are none.
	Plain func(resource.Condition) bool
}

// Matches reports whether a resource meets a condition.
func Matches(c resource.Condition, facts Facts) bool {
	matches := func(member resource.Condition) bool { return Matches(member, facts) }
	switch c.Kind {
	case resource.ConditionAll:
		return !slices.ContainsFunc(c.Members, func(member resource.Condition) bool { return !matches(member) })
	case resource.ConditionAny:
		return slices.ContainsFunc(c.Members, matches)
	case resource.ConditionNot:
		return !matches(c.Members[0])
	case resource.ConditionMetadata:
		value, ok := facts.Metadata[c.Test.Name]
		return ok && holds(c.Test, []string{value}, false)
	case resource.ConditionCapability:
		value, ok := facts.Capabilities[c.Test.Name]
		members, inList := resource.CapabilityMembers(value)
		return ok && holds(c.Test, members, inList)
	case resource.ConditionNever:
		return false
	}
	return facts.Plain(c)
}

// holds reports whether a test holds for a value, given its members.
func holds(t resource.Test, members []string, inList bool) bool {
	of := func(holds func(member, operand string) bool) func(operand string) bool {
		return func(operand string) bool {
			return slices.ContainsFunc(members, func(member string) bool { return holds(member, operand) })
		}
	}
	has := of(func(member, operand string) bool {
		return member == operand || !inList && strings.Contains(member, operand)
	})
	switch t.Operator {
	case resource.Exists:
		return true
	case resource.HasPrefix:
		return slices.ContainsFunc(t.Operands, of(strings.HasPrefix))
	case resource.Has:
		return slices.ContainsFunc(t.Operands, has)
	case resource.HasAll:
		return !slices.ContainsFunc(t.Operands, func(operand string) bool { return !has(operand) })
	}
	return slices.ContainsFunc(t.Operands, of(func(value, operand string) bool { return compares(t, value, operand) }))
}

// compares reports whether a value and an operand compare as the operator wants.
func compares(t resource.Test, value, operand string) bool {
	order, comparable := compare(t.Comparison, value, operand)
	if !comparable {
		return false
	}
	switch t.Operator {
	case resource.Equals:
		return order == 0
	case resource.Differs:
		return order != 0
	case resource.Less:
		return order < 0
	case resource.LessOrEqual:
		return order <= 0
	case resource.Greater:
		return order > 0
	}
	return order >= 0
}

// compare returns -1, 0 or 1 if a is less than, equal to or greater than b, and
// false if they do not compare.
func compare(c resource.Comparison, a, b string) (int, bool) {
	if c == resource.AsText {
		return strings.Compare(a, b), true
	}
	x, xIsNumber := resource.NumberKey(a)
	y, yIsNumber := resource.NumberKey(b)
	switch {
	case xIsNumber && yIsNumber:
		return strings.Compare(x, y), true
	case c == resource.Pairwise && !xIsNumber && !yIsNumber:
		return strings.Compare(a, b), true
	}
	return 0, false
}

// Value is a value of metadata and where it is from, see
// resource.MetadataItem.DerivedFrom.
type Value struct {
	Value       string
	DerivedFrom int64
}

// Values returns items by key.
func Values(items []*resource.MetadataItem) map[string]Value {
	values := map[string]Value{}
	for _, item := range items {
		values[item.Key] = Value{item.Value, item.DerivedFrom}
	}
	return values
}

// WithDefaults returns the metadata of a resource after default rules, by their
// definition. First the values of the namespace are removed. Then the matching
// rules set their keys, from the last to the first. All other items stay.
func WithDefaults(namespace int64, rules []metadef.DefaultRule, of resource.Resource, resourceType string,
	items []*resource.MetadataItem) map[string]Value {
	others := Values(slices.DeleteFunc(slices.Clone(items), func(item *resource.MetadataItem) bool {
		return item.DerivedFrom == namespace
	}))
	after := map[string]Value{}
	for _, rule := range slices.Backward(rules) {
		isMet := rule.HasKey == nil
		for key, has := range others {
			isMet = isMet || key == *rule.HasKey && has.Value == *rule.HasValue
		}
		if isMet && rule.ResourceType == resourceType && (rule.ProjectID == nil || *rule.ProjectID == of.ProjectID) {
			after[rule.Key] = Value{rule.Value, namespace}
		}
	}
	maps.Copy(after, others)
	return after
}

// DrawRules draws up to 5 default rules with keys, values, types and projects from
// the lists. The id of a type is its index.
func DrawRules(intN func(int) int, types, projects, keys, values []string) []metadef.DefaultRule {
	rules := make([]metadef.DefaultRule, intN(6))
	for i := range rules {
		kind := intN(len(types))
		rules[i] = metadef.DefaultRule{TypeID: int64(kind), ResourceType: types[kind],
			Key: keys[intN(len(keys))], Value: values[intN(len(values))]}
		if intN(3) == 0 {
			rules[i].ProjectID = &projects[intN(len(projects))]
		}
		if intN(2) == 0 {
			rules[i].HasKey, rules[i].HasValue = &keys[intN(len(keys))], &values[intN(len(values))]
		}
	}
	return rules
}
