package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	changelog "github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// told is a server with a test that follows its feed of changes. The test looks
// up each changed thing immediately, in memory.
type told struct {
	t        *testing.T
	store    *store.Store
	executor *graph.Executor
}

func newTold(t *testing.T, url string) told {
	s := storetest.Open(t, url)
	return told{t, s, executorOf(t, s)}
}

// asAdmin returns a context of an administrator.
func asAdmin(ctx context.Context) context.Context {
	return access.WithViewer(ctx, viewers["admin"])
}

// finds looks up the thing of a change and reports whether the answer contains
// a string.
func (s told) finds(kind changelog.Kind, key, text string) bool {
	query := fmt.Sprintf(`{ resourceProvider(uuid: %q) { name generation } }`, key)
	if kind == changelog.Namespace {
		query = `{ definitions(resourceType: "physical:host") { namespace { name displayName } } }`
	}
	got := interruptedAs(s.executor, "admin", query, nil, never, nil)
	if got.statements > 0 || len(got.errors) > 0 {
		s.t.Errorf("%s takes %d statements: %v", query, got.statements, got.errors)
	}
	return strings.Contains(got.text, text)
}

// follow calls each with every change after a position, until ctx ends.
func (s told) follow(ctx context.Context, after changelog.Position, each func(*changelog.Change)) {
	ctx = asAdmin(ctx)
	following := s.store.Follow(changelog.Filter{Kinds: []changelog.Kind{changelog.Namespace,
		changelog.ResourceProvider}}, after)
	defer following.Stop()
	for following.Wait(ctx) == nil {
		changes, err := following.Next(ctx, 100)
		if err != nil {
			s.t.Error(err)
			return
		}
		for _, one := range changes {
			each(one)
		}
	}
}

// poll is follow for a client that polls.
func (s told) poll(ctx context.Context, after changelog.Position, each func(*changelog.Change)) {
	ctx = asAdmin(ctx)
	filter := changelog.Filter{Kinds: []changelog.Kind{changelog.Namespace, changelog.ResourceProvider}}
	for ctx.Err() == nil {
		changes, more, err := s.store.Changes(ctx, filter, after, 100)
		if err != nil {
			if ctx.Err() == nil {
				s.t.Error(err)
			}
			return
		}
		for _, one := range changes {
			each(one)
		}
		after = s.store.After(after, changes, more)
	}
}

// toldWrites is the number of things that each writer creates.
const toldWrites = 40

// TestWhoIsToldFindsIt has writers create providers and namespaces. A client
// that gets such a change from a server, by following or by polling, must find
// the thing in that server's memory immediately, whichever server wrote it.
func TestWhoIsToldFindsIt(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		url     func(testing.TB) string
		servers int
	}{"sqlite": {storetest.SQLite, 1}, "postgres": {storetest.Postgres, 1}, "two servers": {storetest.Postgres, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := of.url(t)
			reads := newTold(t, url)
			writes := reads
			if of.servers > 1 {
				writes = newTold(t, url)
			}
			after, err := reads.store.Latest(asAdmin(t.Context()), changelog.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			var looking, writing sync.WaitGroup
			var found [2]atomic.Int64
			for i, look := range []func(context.Context, changelog.Position,
				func(*changelog.Change)){reads.follow, reads.poll} {
				looking.Go(func() {
					look(ctx, after, func(one *changelog.Change) {
						text := `"name":"` + one.Key
						if one.Kind == changelog.ResourceProvider {
							text = `"name":"n`
						}
						if found[i].Add(1); !reads.finds(one.Kind, one.Key, text) {
							t.Errorf("%s %s is told of, and not there", one.Kind, one.Key)
						}
					})
				})
			}
			for writer := range 4 {
				writing.Go(func() {
					for n := range toldWrites {
						of := 1000*(writer+1) + n
						write := fmt.Sprintf(`createResourceProvider(input: {uuid: %q, name: "n%d"}) { __typename }`,
							storetest.UUID(of), of)
						if n%4 == 0 {
							write = fmt.Sprintf(`createNamespace(input: {name: "space %d", resourceTypeAssociations: [{resourceType: "physical:host"}]}) { __typename }`, of)
						}
						if got := interruptedAs(writes.executor, "admin", "mutation { "+write+" }",
							nil, never, nil); len(got.errors) > 0 {
							t.Errorf("%s: %v", write, got.errors)
						}
					}
				})
			}
			writing.Wait()
			patience.Until(t, 20*time.Second, func() bool {
				return min(found[0].Load(), found[1].Load()) >= 4*toldWrites
			})
			end()
			looking.Wait()
			for i := range found {
				if got := found[i].Load(); got != 4*toldWrites {
					t.Errorf("%d of %d changes were told of", got, 4*toldWrites)
				}
			}
		})
	}
}

// TestWhoIsToldFindsWhatNobodyNotified commits like another server whose
// notification is lost. The server may report the change only when its memory
// has it.
func TestWhoIsToldFindsWhatNobodyNotified(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	s := newTold(t, url)
	uuid := storetest.UUID(1)
	create := fmt.Sprintf(`mutation { createResourceProvider(input: {uuid: %q, name: "one"}) { __typename } createNamespace(input: {name: "space", resourceTypeAssociations: [{resourceType: "physical:host"}]}) { __typename } }`, uuid)
	if got := interruptedAs(s.executor, "admin", create, nil, never, nil); len(got.errors) > 0 {
		t.Fatal(got.errors)
	}
	after, err := s.store.Latest(asAdmin(t.Context()), changelog.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	other := storetest.Database(t, url)
	const note = `INSERT INTO changes ("transaction", created_at, kind, key, audience, what, named)
		SELECT DISTINCT pg_current_xact_id()::text::bigint, clock_timestamp(), kind, key, audience, 'UPDATED', named FROM changes WHERE kind = $1 AND key = $2`
	ctx, end := context.WithCancel(t.Context())
	defer end()
	tells := make(chan *changelog.Change, 100)
	go s.follow(ctx, after, func(one *changelog.Change) { tells <- one })
	for n, of := range []struct {
		kind              changelog.Kind
		key, update, text string
	}{
		{changelog.ResourceProvider, uuid,
			`UPDATE resource_providers SET version = version + 1, generation = 17, name = 'renamed'`,
			`"generation":17`},
		{changelog.Namespace, "space", `UPDATE namespaces SET title = 'Renamed', revision = revision + 1`,
			`"displayName":"Renamed"`},
	} {
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []func() error{
			func() error { _, err := tx.ExecContext(t.Context(), of.update); return err },
			func() error { _, err := tx.ExecContext(t.Context(), note, string(of.kind), of.key); return err },
			tx.Commit,
		} {
			if err := statement(); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case one := <-tells:
			if one.Kind != of.kind || one.Key != of.key {
				t.Errorf("change %d is %+v", n, one)
			}
		case <-time.After(patience.Of(t, 10*time.Second)):
			t.Fatal("nothing is told")
		}
		if !s.finds(of.kind, of.key, of.text) {
			t.Errorf("%s %s is told of, and not there", of.kind, of.key)
		}
	}
}
