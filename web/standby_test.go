package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	goclient "github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// TestReadsOnAStandby lets clients create namespaces on one server and read them
// on another, which has a standby. The standby is stopped meanwhile. Every
// answer is right, and none has an error.
func TestReadsOnAStandby(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	first := startOn(t, pair.Primary, nil, web.ServeOptions{})
	spread := pair.OpenSpread(t, store.Options{})
	second := startWith(t, pair.Primary, spread, nil, web.ServeOptions{})
	if got := second.query(`{ namespaces { totalCount } }`, "Cadastre-Position",
		"no position"); !strings.Contains(got.body, `"message":"Cadastre-Position: is not a position`) ||
		!strings.Contains(got.body, `"field":"Cadastre-Position"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	const clients, rounds, stopped = 3, 40, 30
	var working sync.WaitGroup
	var made atomic.Int64
	for client := range clients {
		working.Go(func() {
			for i := range rounds {
				name, by := fmt.Sprintf("n%d-%d", client, i), first
				if i%3 == 0 {
					by = second
				}
				got := by.query(fmt.Sprintf(`mutation { createNamespace(input: {name: %q}) { namespace { name } } }`,
					name))
				position := got.header.Get("Cadastre-Position")
				if position == "" {
					t.Errorf("the answer has no position: %s", got.body)
				}
				if made.Add(1) == stopped {
					pair.StopStandby(t)
				}
				got = second.query(fmt.Sprintf(`{ namespace(name: %q) { name properties { name } tags { name } } auditEvents(first: 1) { nodes { key } } }`, name),
					"Cadastre-Position", position)
				if !strings.Contains(got.body, `"name":"`+name+`"`) || strings.Contains(got.body, `"errors"`) {
					t.Errorf("%s: %s", name, got.body)
				}
			}
		})
	}
	working.Wait()
	t.Logf("%+v", spread.StandbyReads())
}

// checkToolFinds checks that a tool of a server finds a namespace.
func checkToolFinds(t *testing.T, on *server, name string) {
	t.Helper()
	got := on.send(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": {"name": "find_definitions", "arguments": {"search": %q}}}`, name),
		"Accept", "application/json, text/event-stream")
	if !strings.Contains(got.body, "1 namespaces match") {
		t.Errorf("a tool does not find %s: %s", name, got.body)
	}
}

// TestASessionSeesItsWritesOnEveryServer sends the requests of a client to two
// servers in turn. One reads on a standby, whose replay is slow.
func TestASessionSeesItsWritesOnEveryServer(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	spread := pair.OpenSpread(t, store.Options{})
	var behind []*httputil.ReverseProxy
	tools := func(o *web.Options) { o.Tools = web.ReadingTools }
	servers := []*server{startOn(t, pair.Primary, tools, web.ServeOptions{}),
		startWith(t, pair.Primary, spread, tools, web.ServeOptions{})}
	for _, one := range servers {
		to, err := url.Parse(one.url)
		if err != nil {
			t.Fatal(err)
		}
		behind = append(behind, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	}
	var requests, without atomic.Int64
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cadastre-Position") == "" {
			without.Add(1)
		}
		behind[requests.Add(1)%2].ServeHTTP(w, r)
	}))
	defer balancer.Close()
	session := goclient.New(balancer.URL, goclient.WithToken("admin-token"))
	standby := storetest.Database(t, pair.Standby)
	for i := range 40 {
		if _, err := standby.Exec("SELECT pg_wal_replay_" + []string{"pause", "resume"}[i/2%2] + "()"); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("session%d.", i)
		if _, err := goclient.CreateResourceProvider(t.Context(), session,
			&goclient.CreateResourceProviderInput{Name: name, Inventories: optional.Value([]*goclient.InventoryInput{
				{ResourceClass: "VCPU", Total: 1}})}); err != nil {
			t.Fatal(err)
		}
		if _, err := goclient.CreateNamespace(t.Context(), session,
			&goclient.CreateNamespaceInput{Name: name}); err != nil {
			t.Fatal(err)
		}
		for _, one := range []*server{servers[1], servers[0]} { // the first one has just written
			checkToolFinds(t, one, name)
		}
		for range 2 {
			sums, err := goclient.ListCapacity(t.Context(), session,
				&goclient.ResourceProviderFilter{Name: optional.Value(name)}, goclient.CapacityGroupingResourceClass,
				nil, nil, nil)
			if err != nil || len(sums.Capacity.Nodes) != 1 {
				t.Errorf("the capacity of %s: %+v, %v", name, sums, err)
			}
			got, err := goclient.ListNamespaces(t.Context(), session,
				&goclient.NamespaceFilter{Search: optional.Value(name)}, nil, nil, nil)
			if err != nil || len(got.Namespaces.Nodes) != 1 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	t.Logf("%+v", spread.StandbyReads())
	if got := without.Load(); got != 1 {
		t.Errorf("%d requests had no position, not only the first", got)
	}
}
