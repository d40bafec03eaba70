// Package audit holds the nouns of the audit log.
package audit

import (
	"time"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/text"
)

// Event is one accepted mutation: when, who, what, on what, and what it was
// before and after.
type Event struct {
	UUID      string
	CreatedAt time.Time
	UserID    string
	ProjectID string
	Action    string     // the name of the mutation
	Kind      Kind       // the type of what was changed
	Key       string     // its name or uuid
	Before    *text.JSON // nil for what did not exist
	After     *text.JSON // nil for what exists no more, and for claims, which are recorded by id only
}

// Kind is the type of a thing that a mutation changed.
type Kind string

// The kinds of things.
const (
	KindNamespace               Kind = "Namespace"
	KindPropertyDefinition      Kind = "PropertyDefinition"
	KindObjectDefinition        Kind = "ObjectDefinition"
	KindTag                     Kind = "Tag"
	KindResourceType            Kind = "ResourceType"
	KindResourceTypeAssociation Kind = "ResourceTypeAssociation"
	KindResource                Kind = "Resource"
	KindCapability              Kind = "Capability"
	KindResourceProvider        Kind = "ResourceProvider"
	KindConsumer                Kind = "Consumer"
	KindTrait                   Kind = "Trait"
	KindResourceClass           Kind = "ResourceClass"
)

// NodeID returns the global id.
func (e *Event) NodeID() string { return page.GlobalID(page.KindAuditEvent, e.UUID, "") }

// Filter chooses audit events; every condition given must hold.
type Filter struct {
	UserID    *string
	ProjectID *string
	Action    *string
	Kind      *Kind
	Key       *string
	Since     *time.Time // at this time or later
	Until     *time.Time // before this time
}
