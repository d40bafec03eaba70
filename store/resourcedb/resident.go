package resourcedb

import (
	"cmp"
	"context"
	"slices"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource/resident"
	copies "github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// The store keeps resources in memory (store/resident), as sets by their
// values, once there are many metadata items and memory could answer a request.
// It loads them in the background. Every reader reads at one instant and
// updates memory to that instant, so memory is as exact as the database,
// regardless of the server that wrote, and no write waits for it. The database
// answers until resources are loaded, if they need too much memory, and if more
// has changed than a request may read. Memory and the database must return the
// same answers.

const (
	// DefaultResidentBytes is the default maximum memory for resources, in
	// bytes.
	DefaultResidentBytes = 256 << 20
	// defaultResidentFrom is the default number of metadata items from which
	// resources are kept in memory. The database counts fewer in a few
	// milliseconds.
	defaultResidentFrom = 20_000
	// maxFollowed is the maximum number of changed resources that a request
	// reads to update memory.
	maxFollowed = 2000
)

// The kinds of changes that memory follows.
const (
	resourceKind = string(change.Resource)
	typeKind     = string(change.ResourceType)
)

// heldResources are resources and the names of their types. They never change.
type heldResources struct {
	*resident.Resources
	types map[int64]string
}

// keepResources has memory follow the database, once resources are loaded.
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

// LoadResources loads the resources into memory, unless they need more than the
// maximum. The options must not turn memory off.
func (s *ResourceStore) LoadResources(ctx context.Context) error { return s.memory.Load(ctx) }

// resourcesAt returns the resources at the instant that the context reads, or
// nil if the database must answer. If memory has none, it starts to load them,
// except in a trial.
func (s *ResourceStore) resourcesAt(ctx context.Context) (*heldResources, error) {
	if s.memory == nil {
		return nil, nil
	}
	if s.memory.Held() == nil && !s.IsTrial(ctx) {
		s.loadSoon()
	}
	return s.memory.At(ctx)
}

// readChanged returns a copy of held with the resources that notes name read
// again, and all type names if a type changed.
func (s *ResourceStore) readChanged(ctx context.Context, on sqldb.Conn, held *heldResources,
	notes []changelog.Note) (*heldResources, error) {
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
	for some := range slices.Chunk(lists.Distinct(uuids), maxFollowed) {
		changed, err := s.readResources(ctx, on, some)
		if err != nil {
			return nil, err
		}
		next.Resources = next.With(some, changed)
	}
	return &next, nil
}

// loadSoon starts loading resources in the background if there are many items.
func (s *ResourceStore) loadSoon() {
	if from := cmp.Or(s.options.ResidentFrom, defaultResidentFrom); from > 0 && s.Sizes()["metadata_items"] >= from {
		s.memory.Soon()
	}
}
