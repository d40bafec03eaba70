package placement

import "slices"

// Limits of alternatives.
const (
	MaxAlternatives = 8  // of a group
	MaxCombinations = 64 // of the alternatives of all groups
)

// Alternative is one way to meet a group with Group.FirstOf: its amounts and
// constraints are added to the group's. It follows `GroupAlternativeInput`.
type Alternative struct {
	Resources       []Amount
	RequiredAll     []string
	RequiredAny     []string
	RequiredAnySets []TraitSet
	Forbidden       []string
	MemberOf        []AggregateFilter
}

// GroupAlternative is the alternative that a candidate has for a group.
type GroupAlternative struct {
	Suffix string
	Index  int // in Group.FirstOf
}

// with returns the group with an alternative added, and without FirstOf.
func (g Group) with(a *Alternative) Group {
	g.FirstOf = nil
	g.Resources = slices.Concat(g.Resources, a.Resources)
	g.RequiredAll = slices.Concat(g.RequiredAll, a.RequiredAll)
	g.RequiredAnySets = slices.Concat(g.RequiredAnySets, a.RequiredAnySets)
	if len(a.RequiredAny) > 0 {
		g.RequiredAnySets = append(g.RequiredAnySets, TraitSet{AnyOf: a.RequiredAny})
	}
	g.Forbidden = slices.Concat(g.Forbidden, a.Forbidden)
	g.MemberOf = slices.Concat(g.MemberOf, a.MemberOf)
	return g
}

// combination is a request with one alternative for each group that has some.
type combination struct {
	Request
	alternatives []GroupAlternative
}

// combinations returns the requests that a request tries one after the other.
// They are in lexicographic order of the indices: of the unsuffixed group first,
// then of the other groups by suffix.
func (r *Request) combinations() []combination {
	all := []combination{{Request: *r}}
	if len(r.ownFirstOf()) == 0 {
		return all
	}
	all = expand(all, r.Unsuffixed, func(c *combination, g Group) { c.Unsuffixed = g })
	for _, g := range bySuffix(r.Groups) {
		i := slices.IndexFunc(r.Groups, func(of Group) bool { return of.Suffix == g.Suffix })
		all = expand(all, g, func(c *combination, g Group) {
			c.Groups = slices.Clone(c.Groups)
			c.Groups[i] = g
		})
	}
	return all
}

// expand returns each combination with each alternative of a group.
func expand(all []combination, g Group, set func(*combination, Group)) []combination {
	if len(g.FirstOf) == 0 {
		return all
	}
	var expanded []combination
	for _, c := range all {
		for i := range g.FirstOf {
			one := combination{c.Request, append(slices.Clone(c.alternatives), GroupAlternative{g.Suffix, i})}
			set(&one, g.with(&g.FirstOf[i]))
			expanded = append(expanded, one)
		}
	}
	return expanded
}

// ownFirstOf returns the path of `firstOf` for each group with alternatives.
func (r *Request) ownFirstOf() (paths []string) {
	if len(r.Unsuffixed.FirstOf) > 0 {
		paths = append(paths, "firstOf")
	}
	for i := range r.Groups {
		if len(r.Groups[i].FirstOf) > 0 {
			paths = append(paths, under(at("groups", i), "firstOf"))
		}
	}
	return paths
}

// CheckPlain returns a problem for each group with alternatives, for callers
// that do not support them.
func (r *Request) CheckPlain() []Problem {
	var v validator
	for _, path := range r.ownFirstOf() {
		v.add(path, "is only allowed where candidates are chosen: allocationCandidates and place")
	}
	return v.problems
}

// first returns the request with the first alternative of each group.
func (r *Request) first() *Request { return &r.combinations()[0].Request }

func (v *validator) checkCombinations(r *Request) {
	number := max(1, len(r.Unsuffixed.FirstOf))
	for i := range r.Groups {
		number = min(number*max(1, len(r.Groups[i].FirstOf)), MaxCombinations+1)
	}
	if number > MaxCombinations {
		for _, path := range r.ownFirstOf() {
			v.add(path, "the alternatives of all groups have more than 64 combinations")
		}
	}
}

// checkAlternatives checks the alternatives of a group, each in combination
// with the group.
func (v *validator) checkAlternatives(path string, g *Group) {
	v.atMost(MaxAlternatives, under(path, "firstOf"), len(g.FirstOf))
	for i := range g.FirstOf {
		a, path := &g.FirstOf[i], at(under(path, "firstOf"), i)
		v.checkConstraints(path, &Group{Resources: a.Resources, RequiredAll: a.RequiredAll, RequiredAny: a.RequiredAny,
			RequiredAnySets: a.RequiredAnySets, Forbidden: a.Forbidden, MemberOf: a.MemberOf})
		for k, amount := range a.Resources {
			has := slices.ContainsFunc(g.Resources, func(own Amount) bool {
				return own.ResourceClass == amount.ResourceClass
			})
			v.require(!has, under(at(under(path, "resources"), k), "resourceClass"), "must not also be in the group")
		}
		v.require(len(g.Resources)+len(a.Resources) <= MaxResources, under(path, "resources"),
			"has more than 64 resource classes with the group's")
		forbidden := sortedSet(slices.Concat(g.Forbidden, a.Forbidden))
		v.checkForbidden(path, &Group{RequiredAll: a.RequiredAll, RequiredAny: a.RequiredAny,
			RequiredAnySets: a.RequiredAnySets, Forbidden: forbidden})
		v.require(len(a.Forbidden) == 0 || !slices.ContainsFunc(g.clauses(), func(clause []string) bool {
			return areAllIn(clause, forbidden)
		}), under(path, "forbidden"), "must not have all traits of a requirement of the group")
	}
}

// hasAmounts reports whether the group asks for amounts with each alternative.
func (g *Group) hasAmounts() bool {
	return len(g.Resources) > 0 || len(g.FirstOf) > 0 &&
		!slices.ContainsFunc(g.FirstOf, func(a Alternative) bool { return len(a.Resources) == 0 })
}
