// Package audit defines the types of the audit log.
package audit

import (
	"time"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/text"
)

// Event is the change of one object by an accepted mutation: its time, its
// author, its action, and the object before and after.
type Event struct {
	UUID      string
	CreatedAt time.Time
	UserID    string
	ProjectID string
	Action    string     // the name of the mutation, or releaseHold
	Kind      Kind       // the type of the changed object
	Key       string     // the object's name or uuid
	Before    *text.JSON // nil for a new object
	After     *text.JSON // nil for a deleted object, and for a claim recorded by id only
}

// Kind is the type of a changed object.
type Kind string

// The kinds of objects; Kinds has all of them.
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
	KindSync                    Kind = "Sync"
	KindLimit                   Kind = "Limit"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{KindNamespace, KindPropertyDefinition, KindObjectDefinition, KindTag, KindResourceType,
		KindResourceTypeAssociation, KindResource, KindCapability, KindResourceProvider, KindConsumer, KindTrait,
		KindResourceClass, KindSync, KindLimit}
}

// NodeID returns the event's global id.
func (e *Event) NodeID() string { return page.GlobalID(page.KindAuditEvent, e.UUID, "") }

// Filter selects audit events. An event must meet all conditions that are not
// nil.
type Filter struct {
	UserID    *string
	ProjectID *string
	Action    *string
	Kind      *Kind
	Key       *string
	Since     *time.Time // at this time or later
	Until     *time.Time // before this time
}
