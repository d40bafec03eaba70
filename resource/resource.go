// Package resource has the types and the pure rules of resources: their
// metadata, their capabilities, and the conditions that select resources.
package resource

import (
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
)

// Limits of resources, in code points unless noted otherwise.
const (
	MaxName        = 255
	MaxDescription = 1023

	maxTags    = 128 // tags of one resource
	MaxProject = 255 // a project id
)

// Resource is an object of the cloud that users know: a share, a host, an
// image.
type Resource struct {
	ID          int64
	UUID        string
	TypeID      int64
	ParentID    int64 // 0 without a parent
	Name        string
	Description *string
	ProjectID   string
	Visibility  access.Visibility
	Revision    int
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// Items is its metadata by key after the transaction that returns the
	// resource. It is nil if the transaction did not read it.
	Items []*MetadataItem
	// Tags and Capabilities, including private ones, are set in the same way.
	Tags         []string
	Capabilities []*ResourceCapability
}

// NodeID returns the global id.
func (r *Resource) NodeID() string { return page.GlobalID(page.KindResource, r.UUID, "") }

// MetadataItem is a key with its value on a resource.
type MetadataItem struct {
	ID             int64
	ResourceID     int64
	Resource       string // its uuid
	Key            string
	Value          string
	UserModifiable bool // false: only administrators and services may change or delete it
	ByOperator     bool // the writer of the value may see private capabilities
	ByMembers      bool // of an item to be written: members of projects chose it, not the writer
	// DerivedFrom is the row id of the namespace whose rules gave the value, 0 if
	// it was written.
	DerivedFrom int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// NodeID returns the global id.
func (m *MetadataItem) NodeID() string {
	return page.GlobalID(page.KindMetadataItem, m.Resource, m.Key)
}

// ItemKey identifies a metadata item among the items of all resources.
type ItemKey struct {
	Resource string // a uuid
	Key      string
}

// ItemsOf sets the resource of items to a uuid and returns them.
func ItemsOf(uuid string, items []*MetadataItem) []*MetadataItem {
	for _, item := range items {
		item.Resource = uuid
	}
	return items
}

// CheckRevision refuses a write if the writer knows another revision of the
// resource than the current one. A nil revision is not checked.
func CheckRevision(uuid string, known *int, revision int) error {
	if known == nil || *known == revision {
		return nil
	}
	return problem.Refuse(problem.ErrConcurrentUpdate, "resource %s is at revision %d, not %d", uuid, revision, *known).
		On("revision")
}

// Limits are the operator's limits. 0 means no limit.
type Limits struct {
	MetadataItems int // of one resource
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{MetadataItems: metadef.MaxMetadataItems}
}
