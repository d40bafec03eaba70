package placement

import "slices"

// Limits of requests and inputs. They bound the cost of a single request and
// the length of a position. Requests of schedulers stay far below them.
const (
	MaxGroups      = 64   // suffixed groups
	MaxResources   = 64   // resource classes in one group
	MaxTraits      = 256  // traits in one list
	MaxTraitSets   = 64   // any-of sets in one group
	MaxMemberOf    = 64   // aggregate filters in one group
	MaxAggregates  = 1000 // aggregates in one list
	MaxSameSubtree = 64   // same-subtree constraints
	MaxSearch      = 200  // code points of a search string
	MaxFilterList  = 250  // uuids or names in one list of a filter
	MaxInventories = 1000 // inventories of one provider in one input
	MaxConsumers   = 1000 // consumers in one claim
	MaxAllocations = 1000 // providers in one consumer's claim
	MaxAmount      = 1<<31 - 1
)

// Request asks for allocation candidates. Its fields follow the arguments of
// `allocationCandidates` one to one. Order and duplicates in lists of traits,
// aggregates and suffixes have no meaning. Validate returns the problems of a
// Request; the other functions expect a valid one.
type Request struct {
	// Unsuffixed is the group without a suffix, from the arguments next to
	// `groups`. It is absent if it asks for no resources. Its Suffix is "".
	Unsuffixed Group
	// Groups are the suffixed groups.
	Groups []Group
	Policy GroupPolicy
	// SameSubtree lists constraints: of the providers serving the named groups,
	// one must be an ancestor of all the others or the same provider.
	SameSubtree []Subtree
	// RootRequired and RootForbidden are traits that the anchor root itself
	// must have, and must not have.
	RootRequired  []string
	RootForbidden []string
	// Tolerates are taints that repel no provider from the request. The request
	// also tolerates the taints that it requires.
	Tolerates []string
	// Hosts restricts the anchor roots; nil allows every root.
	Hosts *Hosts
	// Order is the order of the candidates.
	Order CandidateOrder
	// Seed decides the order Random.
	Seed int
	// Shapes are the requests that LeastFragmenting keeps room for. Empty means
	// the request itself.
	Shapes []Shape
	// Preferences order the roots before Order does, the highest score first. They
	// exclude nothing.
	Preferences []Preference
	// Distinct decides which candidates are listed, and Alternatives how many of
	// each shape, 1 to MaxOfShape.
	Distinct     CandidateDistinct
	Alternatives int
}

// Hosts are roots chosen by a filter that the world cannot evaluate: roots
// linked to a resource that meets the filter.
type Hosts struct {
	// Filter identifies the filter. A position in the candidates of one filter
	// is invalid for another, even if both choose the same roots.
	Filter string
	// Resources are the row ids of the resources that meet the filter
	// (Provider.ResourceRow), in any order. A resource that no root is linked
	// to chooses nothing.
	Resources []int64
}

// Group is one request group: amounts, and the constraints on the providers
// that serve them.
//
// A suffixed group is served by exactly one provider, which meets every
// constraint. The resource classes of the unsuffixed group may be served by
// several providers: of the anchor's tree, and sharing with it. Each of them
// must be free of Forbidden, lie in InTree and meet MemberOf (itself or, in the
// anchor's tree, by its root). The required traits must be met by the union of
// the traits of the providers that serve this group, as in the Placement
// reference; the any-traits specification refers to the whole candidate.
type Group struct {
	Suffix    string
	Resources []Amount
	// RequiredAll demands every trait, RequiredAny at least one (empty is no
	// constraint), and RequiredAnySets at least one of each set.
	RequiredAll     []string
	RequiredAny     []string
	RequiredAnySets []TraitSet
	Forbidden       []string
	MemberOf        []AggregateFilter
	// InTree is the uuid of any provider of the tree that must be used, "" for
	// any tree.
	InTree string
	// FirstOf are alternatives that are tried in order over all hosts; empty means
	// that the group is as it is.
	FirstOf []Alternative
}

// Amount is a quantity of one resource class, in units of that class.
type Amount struct {
	ResourceClass string
	Amount        int64
}

// TraitSet is met by a provider with at least one of its traits.
type TraitSet struct {
	AnyOf []string
}

// AggregateFilter is met by a provider in at least one aggregate of AnyOf
// (empty is no constraint) and in none of NoneOf.
type AggregateFilter struct {
	AnyOf  []string
	NoneOf []string
}

// GroupPolicy decides whether several suffixed groups may use one provider.
type GroupPolicy int

const (
	// GroupPolicyNone lets one provider serve several suffixed groups.
	GroupPolicyNone GroupPolicy = iota
	// GroupPolicyIsolate requires a different provider for every suffixed
	// group, including groups without resources.
	GroupPolicyIsolate
)

// Subtree is one same-subtree constraint over groups, by suffix.
type Subtree struct {
	Suffixes []string
}

// clauses returns the required traits of the group as a list of sets, each to
// be met by any of its traits.
func (g *Group) clauses() [][]string {
	var clauses [][]string
	for _, trait := range g.RequiredAll {
		clauses = append(clauses, []string{trait})
	}
	if len(g.RequiredAny) > 0 {
		clauses = append(clauses, g.RequiredAny)
	}
	for _, set := range g.RequiredAnySets {
		clauses = append(clauses, set.AnyOf)
	}
	return clauses
}

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
