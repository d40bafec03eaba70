package changedb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestACommitThatTakesLongDelaysTheFeed keeps a transaction open that has an id
// in the log, while others commit after it. Neither reading nor following may
// return later changes until it ends. Then both servers must return all, in
// order. A long transaction without an id must delay nothing.
func TestACommitThatTakesLongDelaysTheFeed(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	one, other := storetest.Open(t, url), storetest.Open(t, url)
	ctx := as(t, "p", access.RoleMember)
	_, start := all(t, ctx, one, change.Position{}, change.Filter{})
	following := other.Follow(change.Filter{}, start)
	defer following.Stop()

	held, err := storetest.Database(t, url).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback() }()
	// it has written, but has no id in the log
	if _, err := held.Exec(`UPDATE namespaces SET revision = revision`); err != nil {
		t.Fatal(err)
	}
	create := func(s *store.Store, name string) {
		t.Helper()
		if _, err := s.CreateTrait(storetest.AsAdmin(), name); err != nil {
			t.Fatal(err)
		}
	}
	create(one, "CUSTOM_FIRST")
	want := []string{"Trait CUSTOM_FIRST CREATED"}
	for _, s := range []*store.Store{one, other} {
		if read, _ := all(t, ctx, s, start, change.Filter{}); !slices.Equal(read, want) {
			t.Errorf("while a transaction works that holds no place there is %v", read)
		}
	}

	_, err = held.Exec(fmt.Sprintf(`INSERT INTO changes ("transaction", kind, key, created_at, audience, what)
		SELECT pg_current_xact_id()::text::bigint, 'Trait', 'CUSTOM_HELD', clock_timestamp(), '*', 'CREATED' FROM (SELECT pg_advisory_xact_lock_shared(%d)) AS lock`, changelog.NotingLock))
	if err != nil {
		t.Fatal(err)
	}
	create(one, "CUSTOM_SECOND")
	create(other, "CUSTOM_THIRD")
	for _, s := range []*store.Store{one, other} {
		if read, _ := all(t, ctx, s, start, change.Filter{}); !slices.Equal(read, want) {
			t.Errorf("while a transaction commits there is %v", read)
		}
	}
	if err := held.Commit(); err != nil {
		t.Fatal(err)
	}
	want = append(want, "Trait CUSTOM_HELD CREATED", "Trait CUSTOM_SECOND CREATED", "Trait CUSTOM_THIRD CREATED")
	for _, s := range []*store.Store{one, other} {
		if read, _ := all(t, ctx, s, start, change.Filter{}); !slices.Equal(read, want) {
			t.Errorf("after that there is %v", read)
		}
	}
	if followed := follow(t, ctx, following, len(want)); !slices.Equal(followed, want) {
		t.Errorf("who follows read %v", followed)
	}
}

// follow reads n changes from a Following.
func follow(t *testing.T, ctx context.Context, following interface {
	Next(ctx context.Context, limit int) ([]*change.Change, error)
	Wait(ctx context.Context) error
}, n int,
) (followed []string) {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, patience.Of(t, 10*time.Second))
	defer cancel()
	for len(followed) < n {
		if err := following.Wait(within); err != nil {
			t.Fatalf("%v after %v", err, followed)
		}
		changes, err := following.Next(within, 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			followed = append(followed, words(c))
		}
	}
	return followed
}

// writeInTurns makes random writes: it creates and deletes two traits, and
// changes two namespaces.
func writeInTurns(t *testing.T, s *store.Store, w int) {
	d := rand.New(rand.NewPCG(3, uint64(w)))
	for i := range 30 {
		name := fmt.Sprint("CUSTOM_", d.IntN(2))
		switch d.IntN(3) {
		case 0: // refused if it exists
			_, _ = s.CreateTrait(storetest.AsAdmin(), name)
		case 1: // refused if it does not exist
			_, _ = s.DeleteTrait(storetest.AsAdmin(), name)
		default:
			_, err := s.UpdateNamespace(storetest.AsAdmin(), metadef.NamespaceChange{Name: fmt.Sprint("N", d.IntN(2)),
				NamespacePatch: metadef.NamespacePatch{Description: metadeftest.To(fmt.Sprint(w, i))}})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// readAtOnce reads a few changes as an operation does, on a standby if the store
// has one.
func readAtOnce(ctx context.Context, s *store.Store, after change.Position) (changes []*change.Change, err error) {
	if err := s.Settle(ctx); err != nil {
		return nil, err
	}
	ctx, reading := s.WithReading(ctx, store.AtOnce)
	defer reading.End()
	reading.Spread()
	changes, _, err = s.Changes(ctx, change.Filter{}, after, 5)
	return changes, err
}

// poll reads the log repeatedly until the writers have ended and no changes are
// left. It returns the ids of the changes.
func poll(t *testing.T, ctx context.Context, s *store.Store, at change.Position, ended <-chan struct{}) (ids []int64) {
	for last := false; ; {
		changes, err := readAtOnce(ctx, s, at)
		if err != nil {
			t.Error(err)
			return ids
		}
		for _, c := range changes {
			ids, at = append(ids, c.ID), c.Position()
		}
		if last && len(changes) == 0 {
			return ids
		}
		select {
		case <-ended:
			last = true
		default:
		}
	}
}

// TestTheOrderIsThatOfTheCommits writes the same few namespaces and traits on
// two servers, so that writers wait for each other. Readers of both servers
// poll, one on a standby. All must read the same list, which never changes, and
// each trait must be created and deleted alternately.
func TestTheOrderIsThatOfTheCommits(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	servers := []*store.Store{storetest.Open(t, pair.Primary), pair.OpenSpread(t, store.Options{})}
	ctx := as(t, "p", access.RoleMember)
	_, start := all(t, ctx, servers[0], change.Position{}, change.Filter{})
	for i := range 2 {
		_, err := servers[0].CreateNamespace(storetest.AsAdmin(),
			metadef.NamespaceInput{Name: fmt.Sprint("N", i),
				NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(access.Public)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	var writers, readers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() { writeInTurns(t, servers[w%2], w) })
	}
	ended := make(chan struct{})
	polled := make([][]int64, len(servers))
	for i, s := range servers {
		readers.Go(func() { polled[i] = poll(t, ctx, s, start, ended) })
	}
	writers.Wait()
	close(ended)
	readers.Wait()
	changes, more, err := servers[0].Changes(ctx, change.Filter{}, start, 1000)
	if err != nil || more {
		t.Fatal(more, err)
	}
	var ids []int64
	there := map[string]bool{}
	for _, c := range changes {
		ids = append(ids, c.ID)
		if c.Kind == change.Trait {
			if there[c.Key] == (c.What == change.Created) {
				t.Errorf("%s, and it was there: %v", words(c), there[c.Key])
			}
			there[c.Key] = c.What == change.Created
		}
	}
	for i := range polled {
		if !slices.Equal(polled[i], ids) {
			t.Errorf("one who polled read %v, and there is %v", polled[i], ids)
		}
	}
}

// TestACursorOutlivesTheServer closes a store and opens it again.
func TestACursorOutlivesTheServer(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := as(t, "p", access.RoleMember)
		before, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		latest, err := before.Latest(ctx, change.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		cursor := before.Cursor(latest)
		if _, err := before.CreateTrait(storetest.AsAdmin(), "CUSTOM_T"); err != nil {
			t.Fatal(err)
		}
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		after := storetest.Open(t, url)
		at, err := after.PositionOf(cursor)
		if err != nil {
			t.Fatal(err)
		}
		if read, _ := all(t, ctx, after, at, change.Filter{}); !slices.Equal(read, []string{"Trait CUSTOM_T CREATED"}) {
			t.Errorf("there is %v", read)
		}
	})
}
