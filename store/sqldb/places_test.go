package sqldb_test

import (
	"context"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestSearchesHaveConnectionsApart takes all connections of one kind. Reads of
// the other kind must still get one.
func TestSearchesHaveConnectionsApart(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(), store.Options{URL: url, Connections: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		kinds := []func(context.Context) context.Context{store.Searching, func(ctx context.Context) context.Context {
			return ctx
		}}
		read := func(kind int, how store.How, within time.Duration) (end func(), err error) {
			ctx, cancel := context.WithCancel(kinds[kind](storetest.AsAdmin()))
			defer time.AfterFunc(within, cancel).Stop()
			ctx, reading := s.WithReading(ctx, how)
			rows, err := s.Pool.QueryContext(ctx, "SELECT 1")
			if err == nil {
				err = rows.Close()
			}
			return func() { reading.End(); cancel() }, err
		}
		for kind, places := range []int{s.Places().Searches, s.Places().Statements} {
			var ends []func()
			for range places {
				end, err := read(kind, store.AtOnce, patience.Of(t, 10*time.Second))
				if err != nil {
					t.Fatalf("kind %d: %v", kind, err)
				}
				ends = append(ends, end)
			}
			for range 3 {
				end, err := read(1-kind, store.Each, patience.Of(t, time.Second))
				if err != nil {
					t.Errorf("beside kind %d: %v", kind, err)
				}
				end()
			}
			if end, err := read(kind, store.Each, 300*time.Millisecond); s.Postgres() && err == nil {
				t.Errorf("kind %d has more connections than places", kind)
				end()
			}
			for _, end := range ends {
				end()
			}
		}
	})
}

// TestStatementsEndInTheDatabase reads the statement timeout of each pool: the
// one from the store's options, or the one in the URL.
func TestStatementsEndInTheDatabase(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	ctx := storetest.AsAdmin()
	for _, one := range []struct {
		limit    time.Duration
		url      string
		requests string
	}{{0, url, "10s"}, {700 * time.Millisecond, url, "700ms"}, {-1, url, "0"},
		{time.Second, url + "&statement_timeout=3000", "3s"}} {
		s, err := store.Open(t.Context(), store.Options{URL: one.url, StatementTime: one.limit})
		if err != nil {
			t.Fatal(err)
		}
		for name, of := range map[string]context.Context{"statements": ctx, "searches": store.Searching(ctx)} {
			rows, err := s.Pool.QueryContext(of, "SHOW statement_timeout")
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for rows.Next() {
				if err := rows.Scan(&got); err != nil {
					t.Fatal(err)
				}
			}
			if err := rows.Close(); err != nil || got != one.requests {
				t.Errorf("%v: %s end after %s, want %s", one.limit, name, got, one.requests)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStopBeyondCountsFromItsCall measures two parts of an operation, each
// within the limit.
func TestStopBeyondCountsFromItsCall(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, _ := store.Measure(storetest.AsAdmin())
		stopped := false
		for _, want := range []bool{false, false, true} {
			if !want {
				store.StopBeyond(ctx, 100, func() { stopped = true })
			}
			_, err := sqldb.Column[string](ctx, s.DB, s.Pool, "SELECT name FROM traits ORDER BY name LIMIT 60")
			if err != nil || stopped != want {
				t.Errorf("stopped %t, want %t, %v", stopped, want, err)
			}
		}
	})
}
