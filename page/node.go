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

// NodeID is the content of a global id: an object of one kind by its uuid, or a
// part of the object. A definition seen through an association has the
// association's uuid as its part, a provider in a what-if has a uuid of the
// changes, and a metadata item has its key, with the uuid of its resource. Each
// id has only one meaning. Ids never contain row ids, which would reveal the
// number of writes by others.
type NodeID struct {
	Kind Kind
	UUID string
	Part string // empty for none
}

// String returns the global id, an opaque string for ParseNodeID.
func (id NodeID) String() string {
	text := string(id.Kind) + ":" + id.UUID
	if id.Part != "" {
		text += ":" + id.Part
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// GlobalID returns the global id of an object with a uuid, or of a part of it.
func GlobalID(kind Kind, uuid, part string) string {
	return NodeID{Kind: kind, UUID: uuid, Part: part}.String()
}

// ParseNodeID parses a global id, and returns false for other strings. It
// accepts only the spelling of String.
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

// isPart reports whether the id's kind can have its part.
func (id NodeID) isPart() bool {
	switch id.Kind {
	case KindMetadataItem:
		return id.Part != "" && utf8.ValidString(id.Part) && !strings.ContainsRune(id.Part, 0)
	case KindPropertyDefinition, KindObjectDefinition, KindResourceProvider:
		return id.Part == "" || isUUID(id.Part)
	}
	return id.Part == ""
}

// isUUID reports whether a string is a uuid in the canonical spelling.
func isUUID(text string) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed.String() == text
}

// Key returns a cache key for something without a global id: an opaque string
// that is unique among the ids and keys of all types. The parts identify the
// object, such as the uuid of its parent and its name.
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

// maxKeyPart is the maximum length of a part of a key. Key replaces a longer
// part by a digest, which begins with a character that no other part has.
const maxKeyPart = 255
