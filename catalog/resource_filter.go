package catalog

// ResourceFilter chooses resources; every condition given must hold. A nil list
// is no condition; an empty list of types or uuids matches nothing, an empty
// list of pairs is no condition.
type ResourceFilter struct {
	Types        []string
	ProjectID    *string
	Name         *string
	NameContains *string // whatever its case
	UUIDs        []string
	Parent       *string // a uuid
	Tags         []TagFilter
	Metadata     []KeyValue
	Requirements []Requirement
	Matching     *string // a matching expression
	Where        *ResourceCondition
}

// TagFilter asks for a tag, whatever its case, and on demand for those that the
// definitions place below it.
type TagFilter struct {
	Name               string
	IncludeDescendants bool
}

// MaxFilterTags bounds the tags that one filter asks for.
const MaxFilterTags = 64

// Check notes what is wrong with the filter.
func (f ResourceFilter) Check(problems *Problems, path string) {
	text := func(field string, value *string) {
		if value != nil {
			CheckText(problems, joined(path, field), *value, 0, MaxMetadataValue)
		}
	}
	text("projectId", f.ProjectID)
	text("name", f.Name)
	text("nameContains", f.NameContains)
	checkEachText(problems, joined(path, "types"), f.Types, MaxFilterList)
	few(problems, joined(path, "uuids"), len(f.UUIDs), MaxFilterList)
	if few(problems, joined(path, "metadata"), len(f.Metadata), MaxFilterPairs) {
		for i, pair := range f.Metadata {
			pair.check(problems, indexed(joined(path, "metadata"), i))
		}
	}
	if few(problems, joined(path, "tags"), len(f.Tags), MaxFilterTags) {
		for i, tag := range f.Tags {
			CheckText(problems, joined(indexed(joined(path, "tags"), i), "name"), tag.Name, 1, MaxName)
		}
	}
	few(problems, joined(path, "requirements"), len(f.Requirements), MaxRequirements)
}

// few holds a list to a number of members.
func few(problems *Problems, field string, count, most int) bool {
	if count > most {
		problems.Add(field, "must have at most %d members, has %d", most, count)
	}
	return count <= most
}

// MaxFilterPairs bounds the pairs of metadata that one filter asks for.
const MaxFilterPairs = 64

// ResourceScope is how a list of resources hangs off something else.
type ResourceScope string

const (
	EveryResource      ResourceScope = ""          // of nothing: there is the one key 0
	ChildrenOfResource ResourceScope = "children"  // the key is the row of a resource
	ResourcesOfType    ResourceScope = "resources" // the key is the row of a resource type
)
