package placement

// Limits of a request and of the inputs that write. They bound the cost of a
// single request and the length of a position; no scheduler's requests come
// near them.
const (
	MaxGroups      = 64   // suffixed groups
	MaxResources   = 64   // resource classes in one group
	MaxTraits      = 256  // traits in one list
	MaxTraitSets   = 64   // any-of sets in one group
	MaxMemberOf    = 64   // aggregate filters in one group
	MaxAggregates  = 1000 // aggregates in one list
	MaxSameSubtree = 64   // same-subtree constraints
	MaxSearch      = 200  // code points of a text that is searched
	MaxFilterList  = 250  // uuids or names in one list of a filter
	MaxInventories = 1000 // inventories of one provider in one input
	MaxConsumers   = 1000 // consumers in one claim
	MaxAllocations = 1000 // providers in one consumer's claim
	MaxAmount      = 1<<31 - 1
)

// Request asks for allocation candidates. Its fields follow the arguments of
// `allocationCandidates` one to one; order and duplicates within lists of
// traits, aggregates and suffixes mean nothing. Validate returns its problems;
// the other functions expect a valid Request.
type Request struct {
	// Unsuffixed is the group without a suffix: the arguments beside `groups`.
	// It is absent when it asks for no resources. Its Suffix is "".
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
	// Hosts restricts the anchor roots to some; nil allows every root.
	Hosts *Hosts
	// Order is the order of the candidates.
	Order CandidateOrder
}

// Hosts are the roots that something beside the world chose: what they are linked
// to meets a filter.
type Hosts struct {
	// Filter is what they were chosen by. A position in the candidates of one
	// filter is none in those of another, whatever roots the two choose.
	Filter string
	// Resources are the row ids of the resources that meet it
	// (Provider.ResourceRow), in any order. One that no root is linked to chooses
	// nothing.
	Resources []int64
}

// Group is one request group: amounts, and the constraints on the providers
// that serve them.
//
// A suffixed group is served by exactly one provider, which meets every
// constraint. The resource classes of the unsuffixed group may be served by
// several providers of the anchor's tree and of those sharing with it: each
// alone must be free of Forbidden, lie in InTree and meet MemberOf (itself or
// through the anchor root); the required traits must be met by the union of the
// traits of the providers that serve this group (as the Placement reference has
// it; the any-traits specification speaks of the whole candidate).
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

// GroupPolicy is whether suffixed groups may share a provider.
type GroupPolicy int

const (
	// GroupPolicyNone lets one provider serve several suffixed groups.
	GroupPolicyNone GroupPolicy = iota
	// GroupPolicyIsolate demands a provider of its own for every suffixed
	// group, also for those without resources.
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
