package catalog

// Limits of capabilities, in code points.
const (
	MaxCapabilityName  = 255
	MaxCapabilityValue = 4096
)

// Capability is the registry entry of a resource type's capability: a name that
// can be asked for, and whether users may discover it.
type Capability struct {
	ID             int64
	ResourceTypeID int64
	Name           string
	Private        bool
}

// NodeID is the global id.
func (c *Capability) NodeID() string { return nodeID(KindCapability, c.ID, 0) }

// CapabilityValue is a value in use and how many resources have it.
type CapabilityValue struct {
	Value         string
	ResourceCount int
}

// ResourceCapability is a capability's value on one resource.
type ResourceCapability struct {
	ResourceID   int64
	CapabilityID int64
	Name         string
	Value        string
	Private      bool
}
