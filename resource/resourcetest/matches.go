// Package resourcetest has the oracle for the meaning of conditions, for the
// tests of any package.
package resourcetest

import (
	"slices"
	"strings"

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
