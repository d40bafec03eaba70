package resource

import (
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
)

// Limits of resources, in code points unless said otherwise.
const (
	MaxName        = 255
	MaxDescription = 1023

	MaxTags    = 128 // tags of one resource
	MaxProject = 255 // a project id
)

// Resource is a thing of the cloud that users know: a share, a host, an image.
type Resource struct {
	ID          int64
	UUID        string
	TypeID      int64
	ParentID    int64 // 0 for a resource without parent
	Name        string
	Description *string
	ProjectID   string
	Visibility  access.Visibility
	Revision    int
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// Items is its metadata by key, where that was read together with it: as the
	// transaction that returns it left it. Else nil.
	Items []*MetadataItem
	// Tags and Capabilities, the private ones included, are the same of those.
	Tags         []string
	Capabilities []*ResourceCapability
}

// NodeID returns the global id.
func (r *Resource) NodeID() string { return page.GlobalID(page.KindResource, r.UUID, "") }

// MetadataItem is one key with one value on a resource.
type MetadataItem struct {
	ID             int64
	ResourceID     int64
	Resource       string // its uuid
	Key            string
	Value          string
	UserModifiable bool // false: only admins and services change or delete it
	ByOperator     bool // who wrote the value may see private capabilities
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// NodeID returns the global id.
func (m *MetadataItem) NodeID() string {
	return page.GlobalID(page.KindMetadataItem, m.Resource, m.Key)
}

// ItemKey is the key of a metadata item among those of all resources.
type ItemKey struct {
	Resource string // a uuid
	Key      string
}

// ItemsOf returns the items of a resource, each with its uuid.
func ItemsOf(uuid string, items []*MetadataItem) []*MetadataItem {
	for _, item := range items {
		item.Resource = uuid
	}
	return items
}

// CheckRevision refuses a write by whoever knows another revision of a resource
// than the one it has.
func CheckRevision(uuid string, known *int, revision int) error {
	if known == nil || *known == revision {
		return nil
	}
	return problem.Refuse(problem.ErrConcurrentUpdate, "resource %s is at revision %d, not %d", uuid, revision, *known).On("revision")
}

// Limits are what the operator allows; 0 switches a limit off.
type Limits struct {
	MetadataItems int // of one resource
}

// DefaultLimits returns the limits of a server without limits of its own.
func DefaultLimits() Limits {
	return Limits{MetadataItems: metadef.MaxMetadataItems}
}
