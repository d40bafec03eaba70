package resourcedb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/resource/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Resources are kept in memory as sets by what they have, once there are many
// metadata items and somebody counts them: as one snapshot of the database sees
// them. Each value is of one snapshot and never changes; who reads it brings it to
// the instant that is read, by what the log of changes has since. So no write waits
// for it, and it is as exact as the database, whichever server wrote. It is loaded
// beside requests. Until then, where it would take too much memory, and where too
// much has changed to be read anew by a request, the database is asked: the two
// must give the same answers.

const (
	// DefaultResidentBytes is how much memory resources take at most to be kept.
	DefaultResidentBytes = 256 << 20
	// DefaultResidentFrom is from how many metadata items on resources are kept: the
	// database counts fewer in a few milliseconds.
	DefaultResidentFrom = 20_000
	// maxFollowed is how many resources a request reads anew.
	maxFollowed = 2000
	// fewTransactions is up to how many transactions, which changed no resource, each
	// reader goes through anew.
	fewTransactions = 32
	// triedAgain is how long after a failure resources are loaded anew.
	triedAgain = 10 * time.Second
)

// The kinds of things that are followed.
const (
	resourceKind = string(change.Resource)
	typeKind     = string(change.ResourceType)
)

// heldResources are resources, the names of their types and the snapshot that they
// are of. They never change.
type heldResources struct {
	*resident.Resources // nil where they are not kept
	types               map[int64]string
	upTo                sqldb.Snapshot
}

// residentResources are the resources of this process.
type residentResources struct {
	held     atomic.Pointer[heldResources]
	resident *sqldb.Resident
	bytes    int64 // that are kept at most
	from     int64 // metadata items
	isTooBig atomic.Bool

	mu        sync.Mutex // of what follows
	running   sync.WaitGroup
	isRunning bool
	isClosed  bool
	notBefore time.Time
	cancel    context.CancelFunc
}

// keepResources makes the resources follow the database, once they are loaded.
func (s *ResourceStore) keepResources() {
	s.memory = &residentResources{bytes: cmp.Or(s.options.ResidentBytes, DefaultResidentBytes), from: cmp.Or(s.options.ResidentFrom, DefaultResidentFrom)}
	s.memory.held.Store(&heldResources{})
	s.memory.resident = &sqldb.Resident{Held: func() any { return s.memory.held.Load() }, At: s.heldAt}
	s.AddResident(s.memory.resident)
	s.UntilClose(s.memory.close)
}

// LoadResources loads the resources to keep them in memory, unless they take more
// than they may.
func (s *ResourceStore) LoadResources(ctx context.Context) error {
	started, held := time.Now(), (*heldResources)(nil)
	err := s.ReadAt(sqldb.Uncounted(ctx), func(on sqldb.Conn, at sqldb.Snapshot) (err error) {
		held, err = s.readAllResources(sqldb.Uncounted(ctx), on, at)
		return err
	})
	if err != nil {
		return fmt.Errorf("load the resources: %w", err)
	}
	if held.Resources != nil {
		s.Log.InfoContext(ctx, "the resources are loaded", "resources", held.Count(), "bytes", held.Bytes(), "took", time.Since(started))
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.held.Store(held)
	return nil
}

// followResources brings the resources forward to what is committed, however much
// that is, and loads them where they are not there.
func (s *ResourceStore) followResources(ctx context.Context) error {
	held := s.memory.held.Load()
	switch {
	case s.memory.isTooBig.Load():
		return nil
	case held.Resources == nil:
		return s.LoadResources(ctx)
	}
	err := s.ReadAt(ctx, func(on sqldb.Conn, _ sqldb.Snapshot) error {
		next, ok, err := s.forward(ctx, on, held, math.MaxInt)
		if err != nil || !ok {
			return err
		}
		s.memory.advance(next)
		return nil
	})
	if err != nil {
		return fmt.Errorf("bring the resources up to what is committed: %w", err)
	}
	return nil
}

// resourcesAt returns the resources as the reading of the context sees them, nil
// where the database is to be asked.
func (s *ResourceStore) resourcesAt(ctx context.Context) (*heldResources, error) {
	if s.memory == nil || s.memory.isTooBig.Load() || s.IsTrial(ctx) {
		return nil, nil
	}
	if s.memory.held.Load().Resources == nil {
		s.loadSoon()
		return nil, nil
	}
	value, ok, err := s.ResidentAt(ctx, s.memory.resident)
	if err != nil {
		return nil, fmt.Errorf("bring the resources to the instant that is read: %w", err)
	}
	if !ok {
		return nil, nil
	}
	if held := value.(*heldResources); held.Resources != nil {
		return held, nil
	}
	return nil, nil
}

// heldAt returns the resources as the snapshot of a transaction sees them, given
// those that were held before it began; none where too much has changed.
func (s *ResourceStore) heldAt(ctx context.Context, on sqldb.Conn, before any) (any, error) {
	held := before.(*heldResources)
	if held.Resources == nil {
		return held, nil
	}
	next, ok, err := s.forward(ctx, on, held, maxFollowed)
	if err != nil {
		return nil, err
	}
	if !ok {
		s.followSoon()
		return &heldResources{}, nil
	}
	if next.Resources != held.Resources || next.upTo.Oldest-held.upTo.Oldest > fewTransactions {
		s.memory.advance(next)
	}
	return next, nil
}

// forward returns the resources as a transaction sees them that reads at one
// instant, given those of an earlier snapshot. It reports false where the log of
// changes does not tell, so that they are to be loaded anew, and where more have
// changed than are to be read.
func (s *ResourceStore) forward(ctx context.Context, on sqldb.Conn, held *heldResources, most int) (next *heldResources, ok bool, err error) {
	at, notes, ok, err := s.NotesSince(ctx, on, held.upTo, resourceKind, typeKind)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		s.memory.forget(held)
		return nil, false, nil
	}
	next = &heldResources{held.Resources, held.types, at}
	var uuids []string
	isRenamed := false
	for _, note := range notes {
		if note.Kind == typeKind {
			isRenamed = true
		} else {
			uuids = append(uuids, note.Key)
		}
	}
	uuids = sqldb.Distinct(uuids)
	if len(uuids) > most {
		return nil, false, nil
	}
	if isRenamed {
		if next.types, err = s.readTypeNames(ctx, on); err != nil {
			return nil, false, err
		}
	}
	for some := range slices.Chunk(uuids, maxFollowed) {
		changed, err := s.readResources(ctx, on, some)
		if err != nil {
			return nil, false, err
		}
		next.Resources = next.With(some, changed)
	}
	return next, s.memory.isKept(s, next), nil
}

// isKept reports whether resources take no more memory than they may. Where they
// take more they are not kept until the server starts again.
func (m *residentResources) isKept(s *ResourceStore, held *heldResources) bool {
	if held.Bytes() <= m.bytes {
		return true
	}
	m.tooBig(s, held.Bytes())
	return false
}

func (m *residentResources) tooBig(s *ResourceStore, bytes int64) {
	if m.isTooBig.CompareAndSwap(false, true) {
		s.Log.Warn("the resources take too much memory to be kept, and are counted by the database", "bytes", bytes, "limit", m.bytes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held.Store(&heldResources{})
}

// forget lets go of resources that cannot be brought forward.
func (m *residentResources) forget(held *heldResources) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.held.Load(); now.upTo.Server == held.upTo.Server && !held.upTo.IsBefore(now.upTo) {
		m.held.Store(&heldResources{})
	}
}

// advance puts the resources of a snapshot in place if they are of a later one of
// the same run of the server than those that are there.
func (m *residentResources) advance(next *heldResources) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held := m.held.Load(); held.Resources != nil && next.upTo.Server == held.upTo.Server && held.upTo.IsBefore(next.upTo) {
		m.held.Store(next)
	}
}

// loadSoon has the resources loaded beside requests where there are many items.
func (s *ResourceStore) loadSoon() {
	if m := s.memory; !m.isTooBig.Load() && m.from > 0 && s.Sizes()["metadata_items"] >= m.from {
		s.followSoon()
	}
}

// followSoon has the resources loaded or brought forward beside requests, unless
// that is going on or failed just now.
func (s *ResourceStore) followSoon() {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isRunning || m.isClosed || time.Now().Before(m.notBefore) {
		return
	}
	m.isRunning = true
	ctx, cancel := context.WithCancel(sqldb.Uncounted(context.Background()))
	m.cancel = cancel
	m.running.Go(func() {
		defer cancel()
		err := s.followResources(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.isRunning = false
		if err != nil && ctx.Err() == nil {
			m.notBefore = time.Now().Add(triedAgain)
			s.Log.WarnContext(ctx, "resources are counted by the database: they could not be brought into memory, will try again", "error", err)
		}
	})
}

// close ends what runs beside requests.
func (m *residentResources) close() {
	m.mu.Lock()
	m.isClosed = true
	if m.cancel != nil {
		m.cancel()
	}
	m.mu.Unlock()
	m.running.Wait()
}
