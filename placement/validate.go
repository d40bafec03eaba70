package placement

import (
	"fmt"
	"slices"
)

// Validate returns every problem of a request, each at its argument. A trait or
// resource class must exist in the world. An aggregate or tree need not: an
// unknown one matches nothing. The rules follow the Placement reference for
// `GET /allocation_candidates`.
func Validate(w *World, r *Request) []Problem {
	v := validator{world: w}
	v.checkTaints("tolerates", r.Tolerates)
	v.atMost(MaxGroups, "groups", len(r.Groups))
	v.checkGroup("", &r.Unsuffixed)
	v.checkCombinations(r)
	if !r.Unsuffixed.hasAmounts() && r.Unsuffixed.isConstrained() {
		v.add("resources", "must name an amount when other arguments of the unsuffixed group are given")
	}
	suffixes := v.checkSuffixedGroups(r)
	if !r.Unsuffixed.hasAmounts() && !slices.ContainsFunc(r.Groups, func(g Group) bool { return g.hasAmounts() }) {
		v.add("resources", "must name an amount here or in a group")
	}
	if r.Policy != GroupPolicyNone && r.Policy != GroupPolicyIsolate {
		v.add("groupPolicy", "must be NONE or ISOLATE")
	}
	v.checkSameSubtree(r.SameSubtree, suffixes)
	v.checkTraits("rootRequired", r.RootRequired)
	v.checkTraits("rootForbidden", r.RootForbidden)
	for i, trait := range r.RootRequired {
		if slices.Contains(r.RootForbidden, trait) {
			v.add(at("rootRequired", i), "must not also be in rootForbidden")
		}
	}
	v.checkShapes(r.Shapes)
	v.checkPreferences(r.Preferences)
	v.require(r.Distinct.Allows(r.Alternatives), "alternatives", AlternativesRule)
	return v.problems
}

func (v *validator) checkShapes(shapes []Shape) {
	v.atMost(MaxShapes, "shapes", len(shapes))
	for i := range shapes {
		path := at("shapes", i)
		for _, p := range append(Validate(v.world, shapes[i].request()), shapes[i].request().CheckPlain()...) {
			p.Path = under(path, p.Path)
			v.problems = append(v.problems, p)
		}
		v.require(1 <= shapes[i].Weight && shapes[i].Weight <= MaxShapeWeight,
			under(path, "weight"), "must be between 1 and 1000000")
	}
}

// checkSuffixedGroups checks the groups with a suffix and returns the suffixes.
func (v *validator) checkSuffixedGroups(r *Request) map[string]bool {
	suffixes := map[string]bool{}
	for i := range r.Groups {
		g, path := &r.Groups[i], at("groups", i)
		if isSuffix(g.Suffix) {
			v.duplicate(suffixes, under(path, "suffix"), "duplicate suffix %q", g.Suffix)
		} else {
			v.add(under(path, "suffix"), suffixRule)
		}
		suffixes[g.Suffix] = true
		v.checkGroup(path, g)
		if !g.hasAmounts() && !r.inSameSubtree(g.Suffix) {
			v.add(under(path, "resources"), "must name an amount unless the group is named in sameSubtree")
		}
	}
	return suffixes
}

func (v *validator) checkSameSubtree(constraints []Subtree, suffixes map[string]bool) {
	v.atMost(MaxSameSubtree, "sameSubtree", len(constraints))
	for i, subtree := range constraints {
		path := under(at("sameSubtree", i), "suffixes")
		v.require(len(subtree.Suffixes) > 0, path, "must name at least one group")
		v.atMost(MaxGroups, path, len(subtree.Suffixes))
		for k, suffix := range subtree.Suffixes {
			v.require(suffixes[suffix], at(path, k), "must be the suffix of a group")
		}
	}
}

// checkGroup checks a group of a request, with its alternatives.
func (v *validator) checkGroup(path string, g *Group) {
	v.checkConstraints(path, g)
	v.checkForbidden(path, g)
	v.checkAlternatives(path, g)
}

// checkForbidden checks that a group does not require a trait that it forbids.
func (v *validator) checkForbidden(path string, g *Group) {
	forbidden := sortedSet(g.Forbidden)
	for i, trait := range g.RequiredAll {
		v.require(!areAllIn([]string{trait}, forbidden), at(under(path, "requiredAll"), i),
			"must not also be forbidden in the same group")
	}
	const rule = "must not consist of traits forbidden in the same group"
	v.require(!areAllIn(g.RequiredAny, forbidden), under(path, "requiredAny"), rule)
	for i, set := range g.RequiredAnySets {
		v.require(!areAllIn(set.AnyOf, forbidden), at(under(path, "requiredAnySets"), i), rule)
	}
}

// areAllIn reports whether there are traits and a sorted list has all of them.
func areAllIn(traits, list []string) bool {
	return len(traits) > 0 && !slices.ContainsFunc(traits, func(trait string) bool {
		_, ok := slices.BinarySearch(list, trait)
		return !ok
	})
}

// checkConstraints checks each argument of a group or filter on its own.
func (v *validator) checkConstraints(path string, g *Group) {
	v.checkAmounts(under(path, "resources"), g.Resources)
	v.checkTraits(under(path, "requiredAll"), g.RequiredAll)
	v.checkTraits(under(path, "requiredAny"), g.RequiredAny)
	v.atMost(MaxTraitSets, under(path, "requiredAnySets"), len(g.RequiredAnySets))
	for i, set := range g.RequiredAnySets {
		path := under(at(under(path, "requiredAnySets"), i), "anyOf")
		v.require(len(set.AnyOf) > 0, path, "must name at least one trait")
		v.checkTraits(path, set.AnyOf)
	}
	v.checkTraits(under(path, "forbidden"), g.Forbidden)
	v.atMost(MaxMemberOf, under(path, "memberOf"), len(g.MemberOf))
	for i, filter := range g.MemberOf {
		path := at(under(path, "memberOf"), i)
		v.checkUUIDs(MaxAggregates, under(path, "anyOf"), filter.AnyOf)
		v.checkUUIDs(MaxAggregates, under(path, "noneOf"), filter.NoneOf)
	}
	if g.InTree != "" {
		v.checkUUID(under(path, "inTree"), g.InTree)
	}
}

func (v *validator) checkAmounts(path string, resources []Amount) {
	v.atMost(MaxResources, path, len(resources))
	seen := map[string]bool{}
	for i, amount := range resources {
		name, path := amount.ResourceClass, at(path, i)
		switch class := under(path, "resourceClass"); {
		case !isName(name):
			v.add(class, nameRule)
		case v.duplicate(seen, class, "duplicate resource class %q", name):
		case v.world != nil && !v.world.HasResourceClass(name):
			v.unknownClass(class, name)
		}
		v.require(1 <= amount.Amount && amount.Amount <= MaxAmount,
			under(path, "amount"), "must be between 1 and 2147483647")
	}
}

func (v *validator) checkTraits(path string, traits []string) {
	v.atMost(MaxTraits, path, len(traits))
	for i, trait := range traits {
		v.checkTrait(at(path, i), trait)
	}
}

func (v *validator) checkUUIDs(limit int, path string, uuids []string) {
	v.atMost(limit, path, len(uuids))
	for i, uuid := range uuids {
		v.checkUUID(at(path, i), uuid)
	}
}

// isConstrained reports whether the group has constraints besides resources.
func (g *Group) isConstrained() bool {
	return len(g.RequiredAll)+len(g.RequiredAny)+len(g.RequiredAnySets)+len(g.Forbidden)+
		len(g.MemberOf)+len(g.FirstOf) > 0 ||
		g.InTree != ""
}

// inSameSubtree reports whether a same-subtree constraint names the suffix.
func (r *Request) inSameSubtree(suffix string) bool {
	return slices.ContainsFunc(r.SameSubtree, func(s Subtree) bool { return slices.Contains(s.Suffixes, suffix) })
}

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
