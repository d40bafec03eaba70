// Package metadef holds the nouns and the pure rules of metadata definitions:
// namespaces, objects, properties, tags and resource types, the documents that
// carry them, and what values they allow. It knows no database, no HTTP and no
// clock.
package metadef

import (
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
)

// Limits of definitions, in code points (metadata definitions catalog
// specification, "Schema").
const (
	MaxDescription = 500 // a namespace's description
	MaxOwner       = 255 // a project id
	MaxOrigin      = 255 // the name of a bundle of definitions
)

// Namespace holds definitions and says who may use them and on which resource
// types.
type Namespace struct {
	ID          int64
	UUID        string
	Name        string
	Title       string // the stored display name; empty when none was given
	Description *string
	Visibility  access.Visibility
	Protected   bool
	Owner       string  // a project id
	Origin      *string // where the product's own definitions come from, nil for all others
	Revision    int
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// NodeID returns the global id.
func (n *Namespace) NodeID() string { return page.GlobalID(page.KindNamespace, n.UUID, "") }

// DisplayName returns the title, or the name where there is none; never empty.
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

// PropertyDefinition defines one property: of a namespace, or of an object in
// it. Seen through an association it carries the association's prefix in its
// Name and is another node.
type PropertyDefinition struct {
	ID          int64
	UUID        string
	NamespaceID int64
	ObjectID    int64  // 0 for a property of the namespace itself
	Association string // the uuid of the association that it is seen through; empty for none
	Name        string
	BaseName    string // the name without the association's prefix
	Required    bool   // named in its object's `required`
	PropertySchema
	CreatedAt time.Time
	UpdatedAt time.Time
	// In is its namespace, where that was changed or read together with it; else
	// nil.
	In *Namespace
}

// Within returns the property, with the namespace that was changed together with it.
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
	Association string // the uuid of the association that it is seen through; empty for none
	Prefix      string // of that association, which its properties carry
	Name        string
	Description *string
	Required    []string // names of its properties, with the association's prefix
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// In is its namespace, where that was changed together with it; else nil.
	In *Namespace
}

// Within returns the object, with the namespace that was changed together with it.
func (o *ObjectDefinition) Within(namespace *Namespace) *ObjectDefinition {
	o.In = namespace
	return o
}

// NodeID returns the global id; it encodes definition and association.
func (o *ObjectDefinition) NodeID() string {
	return page.GlobalID(page.KindObjectDefinition, o.UUID, o.Association)
}

// Tag is a name that resources can be tagged with. Names keep their case and
// are compared without it.
type Tag struct {
	ID          int64
	UUID        string
	NamespaceID int64
	ParentID    int64 // 0 for a tag without parent
	Name        string
	CreatedAt   time.Time
	// In is its namespace, where that was changed together with it; else nil.
	In *Namespace
}

// Within returns the tag, with the namespace that was changed together with it.
func (t *Tag) Within(namespace *Namespace) *Tag {
	t.In = namespace
	return t
}

// NodeID returns the global id.
func (t *Tag) NodeID() string { return page.GlobalID(page.KindTag, t.UUID, "") }

// ResourceType is a kind of resource, named as in Heat where Heat has it.
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

// ResourceTypeAssociation makes a namespace's definitions applicable to a
// resource type.
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
	// In is its namespace, where that was changed together with it; else nil.
	In *Namespace
}

// Within returns the association, with the namespace that was changed together with it.
func (a *ResourceTypeAssociation) Within(namespace *Namespace) *ResourceTypeAssociation {
	a.In = namespace
	return a
}

// NodeID returns the global id.
func (a *ResourceTypeAssociation) NodeID() string {
	return page.GlobalID(page.KindResourceTypeAssociation, a.UUID, "")
}

// MemberRole is what a project may do with a private namespace shared with it.
type MemberRole string

const (
	Reader MemberRole = "READER" // sees and uses the definitions
	Editor MemberRole = "EDITOR" // defines in the namespace, too
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
