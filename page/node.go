package page

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
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

// NodeID is what a global id stands for: a thing of one kind by its uuid, or a
// part of it. A definition seen through an association has that association's
// uuid as its part, a metadata item has the uuid of its resource and, as its
// part, its key. One id never has two contents, and none holds the id of a row,
// which counts what everybody writes.
type NodeID struct {
	Kind Kind
	UUID string
	Part string // empty for none
}

// String returns the global id: opaque text that ParseNodeID reads.
func (id NodeID) String() string {
	text := string(id.Kind) + ":" + id.UUID
	if id.Part != "" {
		text += ":" + id.Part
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// GlobalID returns the global id of what has a uuid, or of a part of it.
func GlobalID(kind Kind, uuid, part string) string {
	return NodeID{Kind: kind, UUID: uuid, Part: part}.String()
}

// ParseNodeID reads a global id, and returns false where the text is not one.
// Only the spelling that String returns is accepted.
func ParseNodeID(id string) (NodeID, bool) {
	text, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return NodeID{}, false
	}
	kind, key, _ := strings.Cut(string(text), ":")
	key, part, _ := strings.Cut(key, ":")
	node := NodeID{Kind: Kind(kind), UUID: key, Part: part}
	return node, kind != "" && isUUID(key) && node.isPart() && node.String() == id
}

// isPart reports whether the part of an id is one that its kind can have.
func (id NodeID) isPart() bool {
	switch id.Kind {
	case KindMetadataItem:
		return id.Part != "" && utf8.ValidString(id.Part) && !strings.ContainsRune(id.Part, 0)
	case KindPropertyDefinition, KindObjectDefinition:
		return id.Part == "" || isUUID(id.Part)
	}
	return id.Part == ""
}

// isUUID reports whether a text is a uuid in the spelling of answers.
func isUUID(text string) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed.String() == text
}

// Key returns the key, in caches, of something that has no global id: opaque
// text that is unique among the ids and keys of all types. It is made from what
// identifies the thing, such as the uuid of its parent and its name.
func Key(kind string, parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		if escaped[i] = url.QueryEscape(part); len(escaped[i]) > maxKeyPart {
			sum := sha256.Sum256([]byte(part))
			escaped[i] = "=" + hex.EncodeToString(sum[:])
		}
	}
	return base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + strings.Join(escaped, "/")))
}

// maxKeyPart is how long a part of a key is at most; of a longer one the key has
// a digest, which begins with a character that no other part has.
const maxKeyPart = 255
