package catalog

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// Kind names the type of a node in its global id.
type Kind string

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
)

// NodeID is what a global id stands for: a row of one kind and, for a
// definition seen through an association, that association. One id never has
// two contents.
type NodeID struct {
	Kind        Kind
	Row         int64
	Association int64 // 0 for none
}

func (id NodeID) String() string {
	text := string(id.Kind) + ":" + strconv.FormatInt(id.Row, 10)
	if id.Association != 0 {
		text += ":" + strconv.FormatInt(id.Association, 10)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

func nodeID(kind Kind, row, association int64) string {
	return NodeID{Kind: kind, Row: row, Association: association}.String()
}

// ParseNodeID reads a global id; false means that it is none. Only the one
// spelling that String gives is accepted.
func ParseNodeID(id string) (NodeID, bool) {
	text, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return NodeID{}, false
	}
	parts := strings.Split(string(text), ":")
	if len(parts) < 2 || len(parts) > 3 {
		return NodeID{}, false
	}
	node := NodeID{Kind: Kind(parts[0])}
	if node.Row, err = strconv.ParseInt(parts[1], 10, 64); err != nil || node.Row <= 0 {
		return NodeID{}, false
	}
	if len(parts) == 3 {
		if node.Association, err = strconv.ParseInt(parts[2], 10, 64); err != nil || node.Association <= 0 {
			return NodeID{}, false
		}
	}
	return node, node.String() == id
}
