package page

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// Kind names the type of a node in its global id.
type Kind string

// The types that have global ids.
const (
	KindNamespace               Kind = "Namespace"
	KindPropertyDefinition      Kind = "PropertyDefinition"
	KindObjectDefinition        Kind = "ObjectDefinition"
	KindTag                     Kind = "Tag"
	KindResourceType            Kind = "ResourceType"
	KindResourceTypeAssociation Kind = "ResourceTypeAssociation"
	KindResource                Kind = "Resource"
	KindMetadataItem            Kind = "MetadataItem"
	KindCapability              Kind = "Capability"
	KindResourceProvider        Kind = "ResourceProvider"
	KindConsumer                Kind = "Consumer"
	KindAuditEvent              Kind = "AuditEvent"
)

// NodeID is what a global id stands for: a thing of one kind by its key (its
// row id, or the uuid of a provider or consumer) and, for a definition seen
// through an association, that association. One id never has two contents.
type NodeID struct {
	Kind        Kind
	Key         string
	Association int64 // 0 for none
}

// String returns the global id: opaque text that ParseNodeID reads.
func (id NodeID) String() string {
	text := string(id.Kind) + ":" + id.Key
	if id.Association != 0 {
		text += ":" + strconv.FormatInt(id.Association, 10)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// Row returns the key as the id of a row; 0, which no row has, when it is none.
func (id NodeID) Row() int64 {
	row, err := strconv.ParseInt(id.Key, 10, 64)
	if err != nil || row < 0 || strconv.FormatInt(row, 10) != id.Key {
		return 0
	}
	return row
}

// GlobalID returns the global id of a row, seen through an association (0 for
// none).
func GlobalID(kind Kind, row, association int64) string {
	return NodeID{Kind: kind, Key: strconv.FormatInt(row, 10), Association: association}.String()
}

// ParseNodeID reads a global id, and returns false where the text is not one.
// Only the spelling that String returns is accepted.
func ParseNodeID(id string) (NodeID, bool) {
	text, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return NodeID{}, false
	}
	parts := strings.Split(string(text), ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return NodeID{}, false
	}
	node := NodeID{Kind: Kind(parts[0]), Key: parts[1]}
	if len(parts) == 3 {
		if node.Association, err = strconv.ParseInt(parts[2], 10, 64); err != nil || node.Association <= 0 {
			return NodeID{}, false
		}
	}
	return node, node.String() == id
}
