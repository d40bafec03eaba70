package placement

// Amount is a quantity of one resource class, in units of that class.
type Amount struct {
	ResourceClass string
	Amount        int64
}

// GroupPolicy says whether suffixed groups may share a provider.
type GroupPolicy int

const (
	// GroupPolicyNone lets suffixed groups be served by the same provider.
	GroupPolicyNone GroupPolicy = iota
	// GroupPolicyIsolate gives every suffixed group, resourceless ones included, a provider of its own.
	GroupPolicyIsolate
)

// Request asks for allocation candidates. Its fields follow the arguments of `allocationCandidates` one to
// one; order and duplicates within lists of traits, aggregates and suffixes mean nothing. Validate says
// what is wrong with it; the other functions expect a valid Request.
type Request struct {
	// Unsuffixed is the group without a suffix: the arguments beside `groups`. It is absent when it asks
	// for no resources. Its Suffix is "".
	Unsuffixed Group
	// Groups are the suffixed groups.
	Groups []Group
	Policy GroupPolicy
	// SameSubtree lists constraints: of the providers serving the named groups, one must be an ancestor of
	// all the others or the same provider.
	SameSubtree []Subtree
	// RootRequired and RootForbidden are traits the anchor root itself must have, must not have.
	RootRequired  []string
	RootForbidden []string
}

// Group is one request group: amounts and what must hold for the providers that give them.
//
// A suffixed group is served by exactly one provider, which meets everything in it. The unsuffixed group's
// classes may come from several providers of the anchor's tree and of those sharing with it: each alone
// must be free of Forbidden, lie in InTree and fit MemberOf (itself or through the anchor root); the
// required traits must be met by the union of the traits of the providers that serve this group (as the
// Placement reference has it; the any-traits specification speaks of the whole candidate).
type Group struct {
	Suffix    string
	Resources []Amount
	// RequiredAll demands every trait, RequiredAny at least one (empty is no constraint), and
	// RequiredAnySets at least one of each set.
	RequiredAll     []string
	RequiredAny     []string
	RequiredAnySets []TraitSet
	Forbidden       []string
	MemberOf        []AggregateFilter
	// InTree is the uuid of any provider of the tree that must be used, "" for any tree.
	InTree string
}

// TraitSet is met by a provider with at least one of its traits.
type TraitSet struct {
	AnyOf []string
}

// AggregateFilter is met by a provider in at least one aggregate of AnyOf (empty is no constraint) and in
// none of NoneOf.
type AggregateFilter struct {
	AnyOf  []string
	NoneOf []string
}

// Subtree is one same-subtree constraint over groups, by suffix.
type Subtree struct {
	Suffixes []string
}

// ProviderFilter selects providers, each judged alone: its own inventories, traits and aggregates, without
// sharing, tree or root. All fields are ANDed. The zero value selects every provider.
type ProviderFilter struct {
	Name *string
	// UUIDs selects among these uuids; nil is no constraint, an empty list selects nothing.
	UUIDs           []string
	InTree          string
	MemberOf        []AggregateFilter
	RequiredAll     []string
	RequiredAny     []string
	RequiredAnySets []TraitSet
	Forbidden       []string
	Resources       []Amount
}

// Limits of a request. They keep a single request's cost and a cursor's length bounded; none is reached by
// the requests of schedulers.
const (
	MaxGroups      = 64   // suffixed groups
	MaxResources   = 64   // resource classes in one group
	MaxTraits      = 256  // traits in one list
	MaxTraitSets   = 64   // any-of sets in one group
	MaxMemberOf    = 64   // aggregate filters in one group
	MaxAggregates  = 1000 // aggregates in one list
	MaxSameSubtree = 64   // same-subtree constraints
	MaxFilterList  = 250  // uuids or names in one list of a filter
	MaxInventories = 1000 // inventories of one provider in one input
	MaxConsumers   = 1000 // consumers in one claim
	MaxAllocations = 1000 // providers in one consumer's claim
	MaxAmount      = 1<<31 - 1
)
