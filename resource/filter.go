package resource

import (
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Filter selects resources that meet every given condition. A nil list is no
// condition. An empty list of types, projects, uuids or AnyTags matches nothing;
// any other empty list is no condition. Metadata pairs with the same key are
// alternatives.
type Filter struct {
	Types        []string
	ProjectID    *string
	ProjectIDs   []string
	Visibility   *access.Visibility
	Name         *string
	NameContains *string // ignoring case
	Search       *string // in names, descriptions and metadata values, ignoring case
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

// OrderField is the sort key of resources. The uuid breaks ties.
type OrderField string

// The orders.
const (
	OrderByName    OrderField = "NAME"
	OrderByCreated OrderField = "CREATED_AT"
	OrderByUpdated OrderField = "UPDATED_AT"
	OrderByType    OrderField = "TYPE"    // the name of the type
	OrderByProject OrderField = "PROJECT" // the id of the project
)

// TagFilter selects resources with a tag, ignoring case. With
// IncludeDescendants, it includes the tags that definitions place below it.
type TagFilter struct {
	Name               string
	IncludeDescendants bool
}

// maxFilterTags is the maximum number of tags in one filter.
const maxFilterTags = 64

// Check adds the problems of the filter, except the problems of Matching, Where
// and the keys of Requirements, which Plan adds.
func (f Filter) Check(problems *problem.Problems, path string) {
	text.CheckOptional(problems, problem.Join(path, "projectId"), f.ProjectID, 0, metadef.MaxMetadataValue)
	text.CheckOptional(problems, problem.Join(path, "name"), f.Name, 0, metadef.MaxMetadataValue)
	text.CheckOptional(problems, problem.Join(path, "nameContains"), f.NameContains, 0, metadef.MaxMetadataValue)
	text.CheckOptional(problems, problem.Join(path, "search"), f.Search, 0, metadef.MaxSearch)
	text.CheckList(problems, problem.Join(path, "projectIds"), f.ProjectIDs, text.MaxFilterList)
	text.CheckList(problems, problem.Join(path, "types"), f.Types, text.MaxFilterList)
	text.CheckCount(problems, problem.Join(path, "uuids"), len(f.UUIDs), text.MaxFilterList)
	if text.CheckCount(problems, problem.Join(path, "metadata"), len(f.Metadata), maxFilterPairs) {
		for i, pair := range f.Metadata {
			at := problem.Index(problem.Join(path, "metadata"), i)
			text.Check(problems, problem.Join(at, "key"), pair.Key, 1, metadef.MaxMetadataKey)
			text.Check(problems, problem.Join(at, "value"), pair.Value, 0, metadef.MaxSyncedValue)
		}
	}
	checkTagFilters(problems, problem.Join(path, "tags"), f.Tags)
	checkTagFilters(problems, problem.Join(path, "anyTags"), f.AnyTags)
	text.CheckCount(problems, problem.Join(path, "requirements"), len(f.Requirements), maxRequirements)
}

// Mentions returns the names of resource types in the filter at a path.
func (f Filter) Mentions(path string) []metadef.Mention {
	return []metadef.Mention{metadef.MentionOf(metadef.NameOfResourceType, problem.Join(path, "types"), f.Types)}
}

// OfType returns the filter restricted to one resource type. A nil name is no
// condition.
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

// metadataByKey returns the keys of the filter's pairs, in their order and
// without duplicates, and the values of each.
func (f Filter) metadataByKey() (keys []string, values map[string][]string) {
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
	if text.CheckCount(problems, path, len(tags), maxFilterTags) {
		for i, tag := range tags {
			text.Check(problems, problem.Join(problem.Index(path, i), "name"), tag.Name, 1, text.MaxName)
		}
	}
}

// maxFilterPairs is the maximum number of metadata pairs in one filter.
const maxFilterPairs = 64

// MaxHostSets is the maximum number of requirement lists in one lookup of
// hosts.
const MaxHostSets = 100

// Scope is the kind of the keys for which resources are listed: one list for each
// key.
type Scope string

// The scopes.
const (
	EveryResource      Scope = ""          // all resources; 0 is the only key
	ChildrenOfResource Scope = "children"  // a key is the row id of a parent
	ResourcesOfType    Scope = "resources" // a key is the row id of a resource type
)

// MetadataFacet is the values in use of one metadata key on some resources.
type MetadataFacet struct {
	Key    string
	Values []MetadataFacetValue
}

// MetadataFacetValue is a value in use, with the number of resources that have
// it.
type MetadataFacetValue struct {
	Value         string
	ResourceCount int
}

// Limits of facets.
const (
	MaxFacetKeys       = 20
	DefaultFacetValues = 100
	MaxFacetValues     = 1000
)

// MetadataKey is a metadata key in use, with the number of resources that have
// it.
type MetadataKey struct {
	Key           string
	ResourceCount int
}

// Explanation shows the effect of each condition of a filter.
type Explanation struct {
	Considered int // resources that the viewer may see
	Clauses    []Clause
}

// Clause is one condition of a filter.
type Clause struct {
	Kind      string // the field of the filter
	Path      string // of the argument
	Clause    string
	Passing   int  // resources that meet it
	Remaining int  // resources that meet it and all before it
	Ignored   bool // it does not concern capabilities, so every resource meets it
	// NotNumbers is the number of resources with a value that is not a number,
	// if the condition compares numbers. The condition cannot hold for such a
	// value.
	NotNumbers int
}
