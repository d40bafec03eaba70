package catalog

import "time"

// Limits of resources, in code points unless said otherwise.
const (
	MaxResourceName        = 255
	MaxResourceDescription = 1023
	MaxMetadataKey         = 255
	MaxMetadataValue       = 1023
	MaxMetadataItems       = 128 // items of one resource, unless configured otherwise
	MaxResourceTags        = 128 // tags of one resource
	MaxProject             = 255 // a project id
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
	Visibility  Visibility
	Revision    int
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// NodeID is the global id.
func (r *Resource) NodeID() string { return nodeID(KindResource, r.ID, 0) }

// MetadataItem is one key with one value on a resource.
type MetadataItem struct {
	ID             int64
	ResourceID     int64
	Key            string
	Value          string
	UserModifiable bool // false: only admins and services change or delete it
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// NodeID is the global id.
func (m *MetadataItem) NodeID() string { return nodeID(KindMetadataItem, m.ID, 0) }

// KeyValue is a key and its value, as they come in and in filters.
type KeyValue struct {
	Key   string
	Value string
}

// CheckRevision refuses a write by whoever knows another revision of a resource
// than the one it has.
func CheckRevision(uuid string, known *int, revision int) error {
	if known == nil || *known == revision {
		return nil
	}
	return Refuse(ErrConcurrentUpdate, "the resource %s is at revision %d, not %d", uuid, revision, *known)
}
