package metadef

import (
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// NewProperty is a property to define in a namespace, or in an object of it.
type NewProperty struct {
	Namespace string
	Object    *string
	Revision  *int
	PropertyInput
}

// PropertyChange is a change of a property of a namespace, or of an object in
// it.
type PropertyChange struct {
	Namespace string
	Object    *string
	Name      string
	NewName   Change[*string]
	Revision  *int
	PropertyPatch
}

// NewObject is an object to define in a namespace.
type NewObject struct {
	Namespace string
	Revision  *int
	ObjectInput
}

// ObjectChange is a change of an object. Properties, where set, replace all of
// its properties; cleared, they take them away.
type ObjectChange struct {
	Namespace   string
	Name        string
	NewName     Change[*string]
	Description Change[*string]
	Required    Change[[]string]
	Properties  Change[[]PropertyInput]
	Revision    *int
}

// TagsChange sets the tags of a namespace.
type TagsChange struct {
	Namespace string
	Tags      []TagInput
	Append    bool // add them to those that are there; else they replace all
	Revision  *int
}

// TagChange is a change of a tag.
type TagChange struct {
	Namespace string
	Name      string
	NewName   Change[*string]
	Parent    Change[*string]
	Revision  *int
}

// NewAssociation is an association to make of a namespace with a resource type.
type NewAssociation struct {
	Namespace string
	Revision  *int
	ResourceTypeAssociationInput
}

// AssociationChange is a change of an association; cleared is none.
type AssociationChange struct {
	ID               int64
	Prefix           Change[*string]
	PropertiesTarget Change[*string]
	Revision         *int
}

// ContentKind is a kind of what a namespace holds.
type ContentKind string

const (
	ContentProperties ContentKind = "PROPERTIES"
	ContentObjects    ContentKind = "OBJECTS"
	ContentTags       ContentKind = "TAGS"
)

// CheckContentKinds refuses a kind that is named twice.
func CheckContentKinds(path string, kinds []ContentKind) error {
	var problems problem.Problems
	text.CheckDistinct(&problems, path, kinds)
	return problems.Err()
}

// ResourceTypeChange is a change of a resource type; cleared is false.
type ResourceTypeChange struct {
	Name      string
	NewName   Change[*string]
	Strict    Change[*bool]
	Protected Change[*bool]
}

// RenamedAs is the name that a thing is to have: the new one, or its own where
// the change keeps it.
func RenamedAs(problems *problem.Problems, field, name string, to Change[*string]) string {
	switch {
	case !to.Set:
		return name
	case to.Value == nil:
		problems.Add(field, "must not be null")
		return name
	}
	text.CheckName(problems, field, *to.Value)
	return *to.Value
}
