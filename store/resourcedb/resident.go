package resourcedb

import (
	"cmp"
	"context"
	"slices"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/resource/resident"
	copies "github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Resources are kept in memory (store/resident) as sets by what they have, once
// there are many metadata items and somebody counts them. They are loaded beside
// requests. Every reader reads at one instant and brings them there, so they are as
// exact as the database, whichever server wrote, and no write waits for them. Until
// they are loaded, where they would take too much memory, and where too much has
// changed to be read anew by a request, the database is asked: the two must give
// the same answers.

const (
	// DefaultResidentBytes is how much memory resources take at most to be kept.
	DefaultResidentBytes = 256 << 20
	// DefaultResidentFrom is from how many metadata items on resources are kept: the
	// database counts fewer in a few milliseconds.
	DefaultResidentFrom = 20_000
	// maxFollowed is how many resources a request reads anew.
	maxFollowed = 2000
)

// The kinds of things that are followed.
const (
	resourceKind = string(change.Resource)
	typeKind     = string(change.ResourceType)
)

// heldResources are resources and the names of their types. They never change.
type heldResources struct {
	*resident.Resources
	types map[int64]string
}

// keepResources makes the resources follow the database, once they are loaded.
func (s *ResourceStore) keepResources() {
	s.memory = copies.New(s.DB, copies.Domain[heldResources]{
		Name:   "resources",
		Kinds:  []string{resourceKind, typeKind},
		Load:   s.readAllResources,
		Next:   s.readChanged,
		Size:   func(held *heldResources) int64 { return held.Bytes() },
		Most:   cmp.Or(s.options.ResidentBytes, DefaultResidentBytes),
		Beside: maxFollowed,
	})
}

// LoadResources loads the resources to keep them in memory, unless they take more
// than they may.
func (s *ResourceStore) LoadResources(ctx context.Context) error { return s.memory.Load(ctx) }

// resourcesAt returns the resources as the reading of the context sees them, nil
// where the database is to be asked.
func (s *ResourceStore) resourcesAt(ctx context.Context) (*heldResources, error) {
	if s.memory == nil {
		return nil, nil
	}
	if s.memory.Held() == nil && !s.IsTrial(ctx) {
		s.loadSoon()
	}
	return s.memory.At(ctx)
}

// readChanged returns the resources after the changes that notes tell of.
func (s *ResourceStore) readChanged(ctx context.Context, on sqldb.Conn, held *heldResources, notes []sqldb.Note) (*heldResources, error) {
	next := *held
	var uuids []string
	isRenamed := false
	for _, note := range notes {
		if note.Kind == typeKind {
			isRenamed = true
		} else {
			uuids = append(uuids, note.Key)
		}
	}
	if isRenamed {
		var err error
		if next.types, err = s.readTypeNames(ctx, on); err != nil {
			return nil, err
		}
	}
	for some := range slices.Chunk(sqldb.Distinct(uuids), maxFollowed) {
		changed, err := s.readResources(ctx, on, some)
		if err != nil {
			return nil, err
		}
		next.Resources = next.With(some, changed)
	}
	return &next, nil
}

// loadSoon has the resources loaded beside requests where there are many items.
func (s *ResourceStore) loadSoon() {
	if from := cmp.Or(s.options.ResidentFrom, DefaultResidentFrom); from > 0 && s.Sizes()["metadata_items"] >= from {
		s.memory.Soon()
	}
}
