// Package change defines the changes of objects, who may see them, and the
// cursors of the feed of changes.
package change

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Kind is the type of an object that changes, with its name in the API.
type Kind string

// The kinds of objects. A part changes together with its object: definitions,
// members and associations with their namespace; metadata, tags and the values
// of capabilities with their resource; inventories, traits and aggregates with
// their provider; allocations with their consumer.
const (
	Namespace        Kind = "Namespace"
	ResourceType     Kind = "ResourceType"
	Resource         Kind = "Resource"
	Capability       Kind = "Capability"
	ResourceProvider Kind = "ResourceProvider"
	Trait            Kind = "Trait"
	ResourceClass    Kind = "ResourceClass"
	Consumer         Kind = "Consumer"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Namespace, ResourceType, Resource, Capability, ResourceProvider, Trait, ResourceClass, Consumer}
}

// What describes the change of an object from a reader's view. An object that
// becomes hidden is deleted for the reader. An object that becomes visible is
// created.
type What string

// The values of What.
const (
	Created What = "CREATED"
	Updated What = "UPDATED"
	Deleted What = "DELETED"
)

// Change is one change of one object by one transaction, from a viewer's view.
type Change struct {
	// ID is the position in the log. It is never shown, because it counts the
	// writes of all users.
	ID   int64
	Kind Kind
	Key  string // a uuid or a name; for a capability its resource type, a slash and its name
	What What
	At   time.Time
}

// Position returns the position in the feed after the change.
func (c *Change) Position() Position { return Position{ID: c.ID, Row: c.At, At: c.At} }

// Position is a position in the feed: after the change with ID, and after all
// changes that the same viewer could see at the time At. The zero Position is
// before the oldest change in the log.
type Position struct {
	ID int64
	// Row is the time of the change with ID. After a fail-over to a standby
	// without the change, ID can belong to another change with another time.
	Row time.Time
	At  time.Time
}

// IsZero reports whether a position is the zero Position.
func (p Position) IsZero() bool { return p.ID == 0 && p.At.IsZero() }

// maxKeys is the maximum number of keys in a filter.
const maxKeys = 100

// Filter selects the changes of objects with one of the kinds and one of the
// keys. An empty list selects all kinds or all keys.
type Filter struct {
	Kinds []Kind
	Keys  []string
}

// Check adds the problems of a filter.
func (f Filter) Check(problems *problem.Problems, path string) {
	CheckKeys(problems, path+".keys", f.Keys)
}

// CheckKeys adds the problems of the keys of a filter.
func CheckKeys(problems *problem.Problems, path string, keys []string) {
	if !text.CheckCount(problems, path, len(keys), maxKeys) {
		return
	}
	for i, key := range keys {
		text.Check(problems, fmt.Sprintf("%s[%d]", path, i), key, 0, math.MaxInt)
	}
}

// Has reports whether a filter selects the changes of an object.
func (f Filter) Has(kind Kind, key string) bool {
	return f.hasKind(kind) && (len(f.Keys) == 0 || slices.Contains(f.Keys, key))
}

func (f Filter) hasKind(kind Kind) bool { return len(f.Kinds) == 0 || slices.Contains(f.Kinds, kind) }
