package resource

import (
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Filter chooses resources; every condition given must hold. A nil list is no
// condition; an empty list of types, projects or uuids matches nothing, an empty
// list of pairs is no condition. Pairs of one key are alternatives.
type Filter struct {
	Types        []string
	ProjectID    *string
	ProjectIDs   []string
	Visibility   *access.Visibility
	Name         *string
	NameContains *string // whatever its case
	Search       *string // whatever its case, in names, descriptions and metadata values
	UpdatedSince *time.Time
	UUIDs        []string
	Parent       *string // a uuid
	Ancestor     *string // a uuid
	Tags         []TagFilter
	AnyTags      []TagFilter
	Metadata     []metadef.KeyValue
	Requirements []Requirement
	UnknownKeys  UnknownKeys // in requirements
	Matching     *string     // a matching expression
	Where        *ConditionInput
}

// OrderField is what resources are ordered by. The uuid breaks ties.
type OrderField string

// The orders.
const (
	OrderByName    OrderField = "NAME"
	OrderByCreated OrderField = "CREATED_AT"
	OrderByUpdated OrderField = "UPDATED_AT"
	OrderByType    OrderField = "TYPE"    // the name of the type
	OrderByProject OrderField = "PROJECT" // the id of the project
)

// TagFilter asks for a tag, whatever its case, and on demand for those that the
// definitions place below it.
type TagFilter struct {
	Name               string
	IncludeDescendants bool
}

// MaxFilterTags bounds the tags that one filter asks for.
const MaxFilterTags = 64

// Check adds what is wrong with the filter.
func (f Filter) Check(problems *problem.Problems, path string) {
	text.CheckOptional(problems, problem.Join(path, "projectId"), f.ProjectID, 0, metadef.MaxMetadataValue)
	text.CheckOptional(problems, problem.Join(path, "name"), f.Name, 0, metadef.MaxMetadataValue)
	text.CheckOptional(problems, problem.Join(path, "nameContains"), f.NameContains, 0, metadef.MaxMetadataValue)
	text.CheckOptional(problems, problem.Join(path, "search"), f.Search, 0, metadef.MaxSearch)
	text.CheckList(problems, problem.Join(path, "projectIds"), f.ProjectIDs, text.MaxFilterList)
	text.CheckList(problems, problem.Join(path, "types"), f.Types, text.MaxFilterList)
	text.CheckCount(problems, problem.Join(path, "uuids"), len(f.UUIDs), text.MaxFilterList)
	if text.CheckCount(problems, problem.Join(path, "metadata"), len(f.Metadata), MaxFilterPairs) {
		for i, pair := range f.Metadata {
			pair.Check(problems, problem.Index(problem.Join(path, "metadata"), i))
		}
	}
	checkTagFilters(problems, problem.Join(path, "tags"), f.Tags)
	checkTagFilters(problems, problem.Join(path, "anyTags"), f.AnyTags)
	text.CheckCount(problems, problem.Join(path, "requirements"), len(f.Requirements), MaxRequirements)
}

// Mentions returns the names in the filter, which is at a path.
func (f Filter) Mentions(path string) []metadef.Mention {
	return []metadef.Mention{metadef.MentionOf(metadef.NameOfResourceType, problem.Join(path, "types"), f.Types)}
}

// OfType returns the filter with one more type that resources must be of; nil is
// no condition.
func (f Filter) OfType(name *string) Filter {
	switch {
	case name == nil:
	case f.Types == nil || slices.Contains(f.Types, *name):
		f.Types = []string{*name}
	default:
		f.Types = []string{}
	}
	return f
}

// MetadataByKey returns the keys of the pairs that the filter asks for, each
// once and in their order, and the values that are asked for of each.
func (f Filter) MetadataByKey() (keys []string, values map[string][]string) {
	values = map[string][]string{}
	for _, pair := range f.Metadata {
		if values[pair.Key] == nil {
			keys = append(keys, pair.Key)
		}
		values[pair.Key] = append(values[pair.Key], pair.Value)
	}
	return keys, values
}

func checkTagFilters(problems *problem.Problems, path string, tags []TagFilter) {
	if text.CheckCount(problems, path, len(tags), MaxFilterTags) {
		for i, tag := range tags {
			text.Check(problems, problem.Join(problem.Index(path, i), "name"), tag.Name, 1, text.MaxName)
		}
	}
}

// MaxFilterPairs bounds the pairs of metadata that one filter asks for.
const MaxFilterPairs = 64

// MaxHostSets bounds the lists of requirements whose hosts are looked up together.
const MaxHostSets = 100

// Scope is what the lists of resources asked for together are children of:
// there is one list for each key.
type Scope string

// The scopes.
const (
	EveryResource      Scope = ""          // all resources: the one key is 0
	ChildrenOfResource Scope = "children"  // the key is the row id of a resource
	ResourcesOfType    Scope = "resources" // the key is the row id of a resource type
)

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
	Kind      string // the field of the filter
	Path      string // of the argument
	Clause    string
	Passing   int  // resources that it holds of
	Remaining int  // resources that it and all before it hold of
	Ignored   bool // it asks for no capability, so it holds of every resource
	// NotNumbers is how many resources have a value that is no number where the
	// condition compares numbers, so that it cannot hold of that value.
	NotNumbers int
}
