package placement

import "slices"

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
