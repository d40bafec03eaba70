package placement

import (
	"fmt"
	"slices"
)

// Problem is one thing wrong with an input. Path names the argument or field as
// the GraphQL API does (`groups[1].requiredAny[0]`). Message describes the
// problem, without a period.
type Problem struct {
	Path    string
	Message string
	// Trait or ResourceClass is the unknown name of the problem; empty for
	// other problems.
	Trait, ResourceClass string
	// Taken means that another provider has the value already.
	Taken bool
}

func (p Problem) String() string { return p.Path + ": " + p.Message }

// validator collects every problem of an input, so that one answer can name
// them all. Its world knows which traits and resource classes exist; with a nil
// world existence is not checked.
type validator struct {
	world    *World
	problems []Problem
}

func (v *validator) add(path, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) checkTrait(path, name string) {
	if !isName(name) {
		v.add(path, nameRule)
	} else if !v.world.HasTrait(name) {
		v.problems = append(v.problems, UnknownTrait(path, name))
	}
}

func (v *validator) checkClass(path, name string) {
	if !isName(name) {
		v.add(path, nameRule)
	} else if !v.world.HasResourceClass(name) {
		v.unknownClass(path, name)
	}
}

func (v *validator) unknownClass(path, name string) {
	v.problems = append(v.problems, UnknownClass(path, name))
}

// UnknownClass returns the problem of a resource class that does not exist.
func UnknownClass(path, name string) Problem {
	return Problem{Path: path, Message: fmt.Sprintf("unknown resource class %q", name), ResourceClass: name}
}

// UnknownTrait returns the problem of a trait that does not exist.
func UnknownTrait(path, name string) Problem {
	return Problem{Path: path, Message: fmt.Sprintf("unknown trait %q", name), Trait: name}
}

// require adds a problem unless the rule holds.
func (v *validator) require(holds bool, path, rule string) {
	if !holds {
		v.problems = append(v.problems, Problem{Path: path, Message: rule})
	}
}

// atMost checks the length of a list.
func (v *validator) atMost(limit int, path string, length int) {
	if length > limit {
		v.add(path, "has %d entries, at most %d are allowed", length, limit)
	}
}

// duplicate reports whether the key of a list's entry was seen before, and adds
// a problem if it was; format takes the key.
func (v *validator) duplicate(seen map[string]bool, path, format, key string) bool {
	if seen[key] {
		v.add(path, format, key)
		return true
	}
	seen[key] = true
	return false
}

func (v *validator) checkUUID(path, text string) {
	_, ok := CanonicalUUID(text)
	v.require(ok, path, uuidRule)
}

// checkDistinctUUID checks that a string is a UUID and not, in any spelling,
// one seen before.
func (v *validator) checkDistinctUUID(seen map[string]bool, path, text string) {
	if canonical, ok := CanonicalUUID(text); ok {
		v.duplicate(seen, path, "duplicate uuid %s", canonical)
	} else {
		v.add(path, uuidRule)
	}
}

// at returns the path of an element of the list at path.
func at(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }

// under returns the path of a field of the object at path.
func under(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// sortedSet returns the list without duplicates, sorted by code point.
func sortedSet(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
