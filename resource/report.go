package resource

// MetadataFacet is the values in use of one metadata key on some resources.
type MetadataFacet struct {
	Key    string
	Values []MetadataFacetValue
}

// MetadataFacetValue is a value in use and how many of the resources have it.
type MetadataFacetValue struct {
	Value         string
	ResourceCount int
}

// Bounds of facets.
const (
	MaxFacetKeys       = 20
	DefaultFacetValues = 100
	MaxFacetValues     = 1000
)

// MetadataKey is a metadata key in use and how many resources have it.
type MetadataKey struct {
	Key           string
	ResourceCount int
}

// Explanation is how a filter comes to its resources, condition by condition.
type Explanation struct {
	Considered int // resources that the viewer may see
	Clauses    []Clause
}

// Clause is one condition of a filter.
type Clause struct {
	Clause    string
	Passing   int  // resources that it holds of
	Remaining int  // resources that it and all before it hold of
	Ignored   bool // it asks for no capability, so it holds of every resource
	// NotNumbers is how many resources have a value that is no number where the
	// condition compares numbers, so that it cannot hold of that value.
	NotNumbers int
}
