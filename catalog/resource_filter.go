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
	Metadata     []KeyValue
}

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
	for i, name := range f.Types {
		CheckText(problems, indexed(joined(path, "types"), i), name, 0, MaxMetadataValue)
	}
	if len(f.Metadata) > MaxFilterPairs {
		problems.Add(joined(path, "metadata"), "must have at most %d pairs, has %d", MaxFilterPairs, len(f.Metadata))
		return
	}
	for i, pair := range f.Metadata {
		pair.check(problems, indexed(joined(path, "metadata"), i))
	}
}

// MaxFilterPairs bounds the pairs of metadata that one filter asks for.
const MaxFilterPairs = 64

// ResourceScope is how a list of resources hangs off something else.
type ResourceScope string

const (
	ChildrenOfResource ResourceScope = "children"  // the key is the row of a resource
	ResourcesOfType    ResourceScope = "resources" // the key is the row of a resource type
)
