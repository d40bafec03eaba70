package resident_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// names are the custom traits of a database, sorted. They are the domain of the
// tests.
type names []string

// named is a Copy of the names, with counters of its domain.
type named struct {
	*resident.Copy[names]
	s     *store.Store
	loads atomic.Int64
	fails atomic.Bool
}

const customTraits = `SELECT name FROM traits WHERE name LIKE 'CUSTOM%' ORDER BY name`

func (n *named) read(ctx context.Context, on sqldb.Conn) (*names, error) {
	if n.fails.Load() {
		return nil, errors.New("the names cannot be read")
	}
	found, err := sqldb.Column[string](ctx, n.s.DB, on, customTraits)
	return (*names)(&found), err
}

// newNamed returns a loaded Copy of the names of a store.
func newNamed(t *testing.T, s *store.Store, options func(*resident.Domain[names])) *named {
	t.Helper()
	n := &named{s: s}
	domain := resident.Domain[names]{
		Name: "names", Kinds: []string{"Trait"}, Most: 1 << 20,
		Load: func(ctx context.Context, on sqldb.Conn, _ int64) (*names, error) {
			n.loads.Add(1)
			return n.read(ctx, on)
		},
		Next: func(ctx context.Context, on sqldb.Conn, value *names, notes []changelog.Note) (*names, error) {
			found, err := sqldb.Column[string](ctx, s.DB, on,
				`SELECT name FROM traits WHERE `+s.Listed("name", "$1", "text"), sqldb.JSONOf(keysOf(notes)))
			if err != nil || n.fails.Load() {
				return nil, errors.Join(err, errors.New("the names cannot be read"))
			}
			next := slices.DeleteFunc(slices.Clone(*value), func(name string) bool {
				return slices.Contains(keysOf(notes), name)
			})
			next = append(next, found...)
			slices.Sort(next)
			return &next, nil
		},
		Size: func(value *names) int64 { return int64(len(*value)) },
	}
	if options != nil {
		options(&domain)
	}
	n.Copy = resident.New(s.DB, domain)
	if domain.Beside == 0 {
		n.FollowCommits()
	}
	if err := n.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func keysOf(notes []changelog.Note) (keys []string) {
	for _, note := range notes {
		keys = append(keys, note.Key)
	}
	return keys
}

func (n *named) create(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := n.s.CreateTrait(storetest.AsAdmin(), name); err != nil {
			t.Fatal(err)
		}
	}
}

func (n *named) has(name string) bool { return n.Held() != nil && slices.Contains(*n.Held(), name) }

// TestAValueIsWhatItsSnapshotSees compares the value of a Reading with the
// database at the same instant, while servers write names.
func TestAValueIsWhatItsSnapshotSees(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		copies := []*named{newNamed(t, storetest.Open(t, url), nil)}
		if copies[0].s.Postgres() {
			copies = append(copies, newNamed(t, storetest.Open(t, url), nil))
		}
		ctx, stop := context.WithCancel(storetest.AsAdmin())
		var writers sync.WaitGroup
		for client := range 3 {
			writers.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(client), 1))
				for ctx.Err() == nil { // some are refused because of other writers
					name, s := fmt.Sprint("CUSTOM_", chance.IntN(12)), copies[client%len(copies)].s
					if _, err := s.CreateTrait(ctx, name); err != nil {
						_, _ = s.DeleteTrait(ctx, name)
					}
				}
			})
		}
		for n := range 150 {
			of := copies[n%len(copies)]
			ctx, reading := of.s.WithReading(storetest.AsAdmin(), store.AtOnce)
			value, err := of.Of(ctx)
			if err != nil {
				t.Error(err)
				break
			}
			found, err := sqldb.Column[string](ctx, of.s.DB, of.s.Pool, customTraits)
			if err != nil || !slices.Equal(*value, found) {
				t.Errorf("instant %d: %v of %v: %v", n, *value, found, err)
			}
			reading.End()
		}
		stop()
		writers.Wait()
		for _, of := range copies {
			if got := of.loads.Load(); got != 1 {
				t.Errorf("the value was loaded %d times", got)
			}
		}
	})
}

// TestAnOlderSnapshotTakesNothingBack makes a Reading update the value to its
// instant after the process has a later value.
func TestAnOlderSnapshotTakesNothingBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		n := newNamed(t, s, nil)
		before := n.State()
		n.create(t, "CUSTOM_A")
		n.Replace(before) // the Reading must update it
		ctx, reading := s.WithReading(storetest.AsAdmin(), store.AtOnce)
		defer reading.End()
		if _, err := sqldb.Column[string](ctx, s.DB, s.Pool, customTraits); err != nil {
			t.Fatal(err)
		}
		n.create(t, "CUSTOM_B")
		value, err := n.Of(ctx)
		if err != nil || !slices.Equal(*value, names{"CUSTOM_A"}) {
			t.Errorf("the reading has %v: %v", *value, err)
		}
		if !n.has("CUSTOM_A") || !n.has("CUSTOM_B") {
			t.Errorf("the process has %v after an older reading", *n.Held())
		}
	})
}

// TestAWriterWaitsForItsCommit checks that the value has a commit as soon as
// its writer gets the answer. If the value cannot be updated, the writer must
// get an error.
func TestAWriterWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		n := newNamed(t, s, nil)
		var told atomic.Int64
		n.Tells(resident.Others{Tell: func() { told.Add(1) }})
		for i := range 10 {
			name := fmt.Sprint("CUSTOM_", i)
			if n.create(t, name); !n.has(name) {
				t.Errorf("%s is answered, and the process has %v", name, *n.Held())
			}
		}
		if got := told.Load(); got != 10 {
			t.Errorf("others were told %d times of 10 commits", got)
		}
		n.fails.Store(true)
		if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_LATE"); !errors.Is(err, problem.ErrOutcomeUnknown) {
			t.Errorf("a commit that cannot be shown: %v", err)
		}
		n.fails.Store(false)
		if err := n.CatchUp(t.Context()); err != nil || !n.has("CUSTOM_LATE") {
			t.Errorf("after a catch up the process has %v: %v", *n.Held(), err)
		}
	})
}

// TestALongCatchUpIsNotAbandoned makes each catch up take longer than a writer
// retries failed ones. Writers wait for it, and no write fails
// because its commit cannot be shown yet.
func TestALongCatchUpIsNotAbandoned(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		n := newNamed(t, s, func(domain *resident.Domain[names]) {
			next := domain.Next
			domain.Next = func(ctx context.Context, on sqldb.Conn, value *names,
				notes []changelog.Note) (*names, error) {
				if !pause.For(ctx, 2500*time.Millisecond) {
					return nil, ctx.Err()
				}
				return next(ctx, on, value, notes)
			}
		})
		ctx, cancel := context.WithTimeout(storetest.AsAdmin(), patience.Of(t, time.Minute))
		defer cancel()
		var writers sync.WaitGroup
		for i := range 3 {
			writers.Go(func() {
				name := fmt.Sprint("CUSTOM_", i)
				if _, err := s.CreateTrait(ctx, name); err != nil || !n.has(name) {
					t.Errorf("%s is answered with %v, and the process has %v", name, err, *n.Held())
				}
			})
		}
		writers.Wait()
	})
}

// TestAPrunedLogLoadsTheValueAnew marks the log as pruned beyond the snapshot
// of the value.
func TestAPrunedLogLoadsTheValueAnew(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Postgres(t))
	n := newNamed(t, s, nil)
	for _, statement := range []string{
		`INSERT INTO traits (name, standard, created_at, updated_at) VALUES ('CUSTOM_UNNOTED', false, now(), now())`,
		`INSERT INTO changes ("transaction", kind, key, created_at) VALUES (pg_current_xact_id()::text::bigint, 'Pruned', pg_current_xact_id()::text, clock_timestamp())`,
	} {
		if err := s.Execute(t.Context(), s.Pool, statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.CatchUp(t.Context()); err != nil || !n.has("CUSTOM_UNNOTED") || n.loads.Load() != 2 {
		t.Errorf("the process has %v after %d loads: %v", *n.Held(), n.loads.Load(), err)
	}
}

// TestAValueBeyondItsBoundIsNotKept lets a value exceed its maximum size.
func TestAValueBeyondItsBoundIsNotKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		n := newNamed(t, s, func(d *resident.Domain[names]) { d.Most = 2 })
		n.create(t, "CUSTOM_A", "CUSTOM_B")
		if n.Held() == nil {
			t.Error("a value within its bound is not kept")
		}
		n.create(t, "CUSTOM_C")
		if n.Held() != nil {
			t.Errorf("%v is kept", *n.Held())
		}
		if _, err := s.DeleteTrait(storetest.AsAdmin(), "CUSTOM_C"); err != nil || n.Held() != nil {
			t.Errorf("a value that was dropped is kept again: %v", err)
		}
		if err := n.Load(t.Context()); err != nil || n.Held() == nil {
			t.Errorf("a value within its bound is not loaded anew: %v", err)
		}
	})
}

// TestAValueIsBroughtForwardBeside checks that a Reading applies a limited
// number of notes. Beyond it the value is updated in the background.
func TestAValueIsBroughtForwardBeside(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		n := newNamed(t, s, func(d *resident.Domain[names]) { d.Beside = 2 })
		n.create(t, "CUSTOM_A", "CUSTOM_B")
		if n.has("CUSTOM_A") {
			t.Error("a writer waited")
		}
		if value, err := n.At(storetest.AsAdmin()); err != nil || value == nil ||
			len(*value) != 2 || !n.has("CUSTOM_B") {
			t.Errorf("a reading of two notes has %v: %v", value, err)
		}
		n.create(t, "CUSTOM_C", "CUSTOM_D", "CUSTOM_E")
		if value, err := n.At(storetest.AsAdmin()); err != nil || value != nil {
			t.Errorf("a reading of three notes has %v: %v", value, err)
		}
		storetest.Within(t, 10*time.Second, "the value is brought forward", func() bool { return n.has("CUSTOM_E") })
		if got := n.loads.Load(); got != 1 {
			t.Errorf("the value was loaded %d times", got)
		}
	})
}
