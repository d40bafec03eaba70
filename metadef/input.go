package metadef

import (
	"encoding/json"
	"io"
	"reflect"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// PropertyInput is a new property.
type PropertyInput struct {
	Name string
	PropertyPatch
}

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
	DryRun    bool // nothing is stored
	PropertyPatch
}

// ObjectPatch is a change of an object. If Properties is set, it replaces all
// of the object's properties; if it is cleared, all of them are deleted.
type ObjectPatch struct {
	Description Change[*string]
	Required    Change[[]string]
	Properties  Change[[]PropertyInput]
	Level       Strictness // how the names of required properties are checked
}

// ObjectInput is a new object.
type ObjectInput struct {
	Name string
	ObjectPatch
}

// NewObject is an object to define in a namespace.
type NewObject struct {
	Namespace string
	Revision  *int
	ObjectInput
}

// ObjectChange is a change of an object.
type ObjectChange struct {
	Namespace string
	Name      string
	NewName   Change[*string]
	Revision  *int
	DryRun    bool // nothing is stored
	ObjectPatch
}

// NamespacePatch is a change of the fields of a namespace itself.
type NamespacePatch struct {
	DisplayName Change[*string]
	Description Change[*string]
	Visibility  Change[*access.Visibility] // cleared: private
	Protected   Change[*bool]              // cleared: false
	Owner       Change[*string]            // cleared in a new namespace: the viewer's project
}

// NamespaceInput is a new namespace with its contents.
type NamespaceInput struct {
	Name string
	NamespacePatch
	Properties               []PropertyInput
	Objects                  []ObjectInput
	Tags                     []TagInput
	ResourceTypeAssociations []DocumentAssociation
}

// NamespaceChange is a change of the fields of a namespace itself.
type NamespaceChange struct {
	Name     string
	NewName  Change[*string]
	Revision *int
	DryRun   bool // nothing is stored
	NamespacePatch
}

// TagInput is a new tag. Parent names another tag of the namespace.
type TagInput struct {
	Name   string
	Parent *string
}

// TagsChange sets the tags of a namespace.
type TagsChange struct {
	Namespace string
	Tags      []TagInput
	Append    bool // adds to the existing tags instead of replacing them
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

// NewAssociation is a new association of a namespace with a resource type.
type NewAssociation struct {
	Namespace string
	Revision  *int
	AnyPrefix bool // accepts a prefix without a separator, as files do
	DocumentAssociation
}

// AssociationName has the names of an association. If several associations of
// the namespace have the type, Prefix and PropertiesTarget select one. Nil
// matches any prefix or target, "" only an association without one.
type AssociationName struct {
	Namespace        string
	ResourceType     string
	Prefix           *string
	PropertiesTarget *string
}

// AssociationRef refers to an association: by its names if Name is set,
// otherwise by its uuid.
type AssociationRef struct {
	UUID string
	Name *AssociationName
}

// Matches reports whether the reference is to an association. If Name is set,
// the association must be in the namespace of Name.
func (r AssociationRef) Matches(a *ResourceTypeAssociation) bool {
	if r.Name == nil {
		return a.UUID == r.UUID
	}
	filter := AssociationFilter{ResourceTypes: []string{r.Name.ResourceType}, Prefix: r.Name.Prefix,
		PropertiesTarget: r.Name.PropertiesTarget}
	return filter.matches(r.Name.Namespace, a)
}

// AssociationChange changes an association. A prefix or a target that is
// cleared becomes null.
type AssociationChange struct {
	Ref              AssociationRef
	Prefix           Change[*string]
	PropertiesTarget Change[*string]
	Revision         *int
}

// ContentKind is a kind of contents of a namespace.
type ContentKind string

const (
	ContentProperties ContentKind = "PROPERTIES"
	ContentObjects    ContentKind = "OBJECTS"
	ContentTags       ContentKind = "TAGS"
)

// CheckContentKinds refuses repeated kinds.
func CheckContentKinds(path string, kinds []ContentKind) error {
	var problems problem.Problems
	text.CheckDistinct(&problems, path, kinds)
	return problems.Err()
}

// ResourceTypeChange is a change of a resource type. Strict and Protected become
// false if they are cleared.
type ResourceTypeChange struct {
	Name      string
	NewName   Change[*string]
	Strict    Change[*bool]
	Protected Change[*bool]
	DryRun    bool // nothing is stored
}

// Change is an optional field of an input. The zero Change keeps the field. A
// set Change replaces it, or clears it if the value is nil. T is a pointer or a
// slice. A new object is a change of an empty one.
type Change[T any] struct {
	Set   bool
	Value T
}

// jsonChange is a Change of any type.
type jsonChange interface {
	// json returns the value as JSON, "" if it is nil.
	json() (value text.JSON, set bool, err error)
}

func (c Change[T]) json() (value text.JSON, set bool, err error) {
	if err := value.UnmarshalGQL(c.Value); err != nil || value == "null" {
		return "", c.Set, err
	}
	return value, c.Set, nil
}

// MarshalGQL writes the value as JSON.
func (c Change[T]) MarshalGQL(w io.Writer) {
	value, _, _ := c.json() // cannot fail for a value that was read
	value.MarshalGQL(w)
}

// UnmarshalGQL reads a field of the input after its type was checked.
func (c *Change[T]) UnmarshalGQL(v any) error {
	var value text.JSON
	if err := value.UnmarshalGQL(withEmptyLists(v)); err != nil {
		return err
	}
	return c.UnmarshalJSON([]byte(value))
}

// withEmptyLists returns the value of a literal with its nil lists made empty.
// The parser of literals returns nil for an empty list.
func withEmptyLists(v any) any {
	switch v := v.(type) {
	case []any:
		return lists.Map(v, withEmptyLists)
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, value := range v {
			object[key] = withEmptyLists(value)
		}
		return object
	}
	return v
}

// UnmarshalJSON reads a field of the input. As in GraphQL, a single value
// counts as a list of one.
func (c *Change[T]) UnmarshalJSON(value []byte) error {
	c.Set = true
	isList := reflect.TypeFor[T]().Kind() == reflect.Slice
	if isList && value[0] != '[' && string(value) != "null" {
		value = append(append([]byte{'['}, value...), ']')
	}
	return json.Unmarshal(value, &c.Value)
}

// RenamedAs returns the new name of an object, or its current name if the
// change keeps it. It adds a problem for a name that is null or invalid.
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
