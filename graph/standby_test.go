package graph_test

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgproxy"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAStandbyThatFailsIsNoError cuts the connections to a standby before a
// statement of a query, and lets the standby hang. The primary answers then.
func TestAStandbyThatFailsIsNoError(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	at, err := url.Parse(pair.Standby)
	if err != nil {
		t.Fatal(err)
	}
	proxy := pgproxy.New(t, at.Host)
	at.Host = proxy.Address()
	pair.Standby = at.String()
	s := pair.OpenSpread(t, store.Options{StatementTime: patience.Of(t, 2*time.Second)})
	ctx := access.WithViewer(graph.WithRequestID(context.Background(), "request"), viewers["admin"])
	createMany(t, ctx, s)
	pair.Level(t)
	executor := executorOf(t, s)
	spreads := func() int64 { return s.StandbyReads()[at.Host].Read }
	query := shapes[0].query(shapes[0].few)
	want := string(executor.Execute(ctx, &graphql.RawParams{Query: query}).Data)
	for _, before := range []int64{0, 1, int64(shapes[0].statements) - 1} {
		storetest.Within(t, 20*time.Second, "the standby reads, and is cut", func() bool {
			earlier := spreads()
			var sent atomic.Int64
			cutting := store.EachStatement(ctx, func(string, any) {
				if sent.Add(1) == before+1 {
					proxy.Cut(false)
				}
			})
			got := executor.Execute(cutting, &graphql.RawParams{Query: query})
			if string(got.Data) != want || len(got.Errors) > 0 {
				t.Errorf("cut before statement %d: %s %v", before, got.Data, got.Errors)
			}
			isSpread := spreads() > earlier
			if before > 0 && isSpread && sent.Load() <= int64(shapes[0].statements) {
				t.Errorf("cut before statement %d: %d statements were enough", before, sent.Load())
			}
			return isSpread || before == 0
		})
	}
	storetest.CheckSpread(t, s)
	var hangs sync.Once
	hanging := store.EachStatement(ctx, func(string, any) { hangs.Do(func() { proxy.Swallow(true) }) })
	for range 2 {
		if got := executor.Execute(hanging, &graphql.RawParams{Query: query}); string(got.Data) != want ||
			len(got.Errors) > 0 {
			t.Errorf("the standby hangs: %s %v", got.Data, got.Errors)
		}
	}
}
