// Package change says what a change of a thing is, who may see it, and how a
// place in the feed of changes is written as a cursor.
package change

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Kind is the type of a thing that changes, as the API names it.
type Kind string

// The kinds of things. What is a part of a thing changes with it: definitions,
// members and associations with their namespace, metadata, tags and the values of
// capabilities with their resource, inventories, traits and aggregates with their
// provider, and allocations with their consumer.
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

// What is what happened to a thing, as somebody sees it: a thing that they may not
// see any more is deleted for them, and one that they may see from now on is
// created.
type What string

// What can happen.
const (
	Created What = "CREATED"
	Updated What = "UPDATED"
	Deleted What = "DELETED"
)

// Change is one change of one thing by one transaction, as a viewer sees it.
type Change struct {
	// ID is its place in the log. It counts what everybody writes and is never
	// shown.
	ID   int64
	Kind Kind
	Key  string // a uuid or a name; of a capability its resource type, a slash and its name
	What What
	At   time.Time
}

// Position is the place in the feed behind the change.
func (c *Change) Position() Position { return Position{ID: c.ID, At: c.At} }

// Position is a place in the feed: behind the change with an id, and behind all
// that the same viewer could see at a time. The zero Position is before
// everything that is kept.
type Position struct {
	ID int64
	At time.Time
}

// IsZero reports whether a position is before everything that is kept.
func (p Position) IsZero() bool { return p.ID == 0 && p.At.IsZero() }

// MaxKeys is how many keys a filter has at most.
const MaxKeys = 100

// Filter says which changes are wanted: those of any of the kinds and of any of
// the keys. Without kinds all are, and without keys all.
type Filter struct {
	Kinds []Kind
	Keys  []string
}

// Check adds what is wrong with a filter.
func (f Filter) Check(problems *problem.Problems, path string) {
	CheckKeys(problems, path+".keys", f.Keys)
}

// CheckKeys adds what is wrong with the keys of a filter.
func CheckKeys(problems *problem.Problems, path string, keys []string) {
	if !text.CheckCount(problems, path, len(keys), MaxKeys) {
		return
	}
	for i, key := range keys {
		text.Check(problems, fmt.Sprintf("%s[%d]", path, i), key, 0, math.MaxInt)
	}
}

// Has reports whether a filter wants the changes of a thing.
func (f Filter) Has(kind Kind, key string) bool {
	return f.hasKind(kind) && (len(f.Keys) == 0 || slices.Contains(f.Keys, key))
}

func (f Filter) hasKind(kind Kind) bool { return len(f.Kinds) == 0 || slices.Contains(f.Kinds, kind) }
