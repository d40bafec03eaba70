// Package metadef has the types and the pure rules of metadata definitions:
// namespaces, objects, properties, tags and resource types, their documents,
// and the values that they allow. It uses no database, no HTTP and no clock.
package metadef

import (
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
)

// Limits of definitions, in code points (metadata definitions catalog
// specification, "Schema").
const (
	maxDescription = 500 // a namespace's description
	MaxOwner       = 255 // a project id
	MaxOrigin      = 255 // the name of a bundle of definitions
)

// Namespace is a set of definitions, with their audience and the resource types
// that they apply to.
type Namespace struct {
	ID          int64
	UUID        string
	Name        string
	Title       string // the stored display name; empty when none was given
	Description *string
	Visibility  access.Visibility
	Protected   bool
	Owner       string  // a project id
	Origin      *string // name of the bundle that it came from, nil without one
	Revision    int
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// NodeID returns the global id.
func (n *Namespace) NodeID() string { return page.GlobalID(page.KindNamespace, n.UUID, "") }

// DisplayName returns the title or, if there is none, the name. It is never
// empty.
func (n *Namespace) DisplayName() string {
	if n.Title == "" {
		return n.Name
	}
	return n.Title
}

// PropertyType is the type of a property's values.
type PropertyType string

const (
	String  PropertyType = "STRING"
	Integer PropertyType = "INTEGER"
	Number  PropertyType = "NUMBER"
	Boolean PropertyType = "BOOLEAN"
	Array   PropertyType = "ARRAY"
)

// PropertyDefinition defines one property of a namespace, or of an object in
// it. A property that is read through an association has the association's
// prefix in its Name, and a separate node id.
type PropertyDefinition struct {
	ID          int64
	UUID        string
	NamespaceID int64
	ObjectID    int64  // 0 for a property of the namespace itself
	Association string // uuid of the association that it is read through; "" for none
	Name        string
	BaseName    string // the name without the association's prefix
	Required    bool   // listed in `required` of its object
	PropertySchema
	CreatedAt time.Time
	UpdatedAt time.Time
	// In is its namespace, if the namespace was changed or read together with
	// it, and nil otherwise.
	In *Namespace
}

// Within sets In and returns the property.
func (p *PropertyDefinition) Within(namespace *Namespace) *PropertyDefinition {
	p.In = namespace
	return p
}

// NodeID returns the global id; it encodes definition and association.
func (p *PropertyDefinition) NodeID() string {
	return page.GlobalID(page.KindPropertyDefinition, p.UUID, p.Association)
}

// ObjectDefinition defines a group of properties.
type ObjectDefinition struct {
	ID          int64
	UUID        string
	NamespaceID int64
	Association string // uuid of the association that it is read through; "" for none
	Prefix      string // of that association; its properties have it, too
	Name        string
	Description *string
	Required    []string // names of its properties, with the association's prefix
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// In is its namespace, if the namespace was changed together with it, and
	// nil otherwise.
	In *Namespace
}

// Within sets In and returns the object.
func (o *ObjectDefinition) Within(namespace *Namespace) *ObjectDefinition {
	o.In = namespace
	return o
}

// NodeID returns the global id; it encodes definition and association.
func (o *ObjectDefinition) NodeID() string {
	return page.GlobalID(page.KindObjectDefinition, o.UUID, o.Association)
}

// Tag is a name to tag resources with. Names keep their case, but comparisons
// ignore it.
type Tag struct {
	ID          int64
	UUID        string
	NamespaceID int64
	ParentID    int64 // 0 for a tag without parent
	Name        string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// In is its namespace, if the namespace was changed together with it, and
	// nil otherwise.
	In *Namespace
}

// Within sets In and returns the tag.
func (t *Tag) Within(namespace *Namespace) *Tag {
	t.In = namespace
	return t
}

// NodeID returns the global id.
func (t *Tag) NodeID() string { return page.GlobalID(page.KindTag, t.UUID, "") }

// ResourceType is a kind of resource. It has Heat's name if Heat has that kind.
type ResourceType struct {
	ID        int64
	UUID      string
	Name      string
	Protected bool // cannot be deleted
	Strict    bool // metadata must satisfy its definitions
	CreatedAt time.Time
	UpdatedAt time.Time
}

// NodeID returns the global id.
func (t *ResourceType) NodeID() string { return page.GlobalID(page.KindResourceType, t.UUID, "") }

// ResourceTypeAssociation applies a namespace's definitions to a resource type.
type ResourceTypeAssociation struct {
	ID               int64
	UUID             string
	NamespaceID      int64
	ResourceTypeID   int64
	ResourceTypeName string
	Prefix           *string
	PropertiesTarget *string
	CreatedAt        time.Time
	UpdatedAt        time.Time
	// In is its namespace, if the namespace was changed together with it, and
	// nil otherwise.
	In *Namespace
}

// Within sets In and returns the association.
func (a *ResourceTypeAssociation) Within(namespace *Namespace) *ResourceTypeAssociation {
	a.In = namespace
	return a
}

// NodeID returns the global id.
func (a *ResourceTypeAssociation) NodeID() string {
	return page.GlobalID(page.KindResourceTypeAssociation, a.UUID, "")
}

// MemberRole is the role of a project in a namespace that is shared with it.
type MemberRole string

const (
	Reader MemberRole = "READER" // sees and uses the definitions
	Editor MemberRole = "EDITOR" // also writes definitions in the namespace
)

// EveryProject is the ProjectID of a membership that covers all projects.
const EveryProject = "*"

// NamespaceMember shares a namespace with a project.
type NamespaceMember struct {
	NamespaceID int64
	ProjectID   string
	Role        MemberRole
	CreatedAt   time.Time
}
