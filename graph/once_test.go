package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgproxy"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestRetriedMutationsHappenOnce sends random mutations with keys, while the
// test cuts database connections around commits and clients disconnect. Each
// client repeats a mutation, on either server, until it gets an answer. Each
// mutation must have happened exactly once, and a further repetition must
// return the same bytes.
func TestRetriedMutationsHappenOnce(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s := openRoomy(t, storetest.SQLite(t))
		r := &retrying{t: t, store: s, servers: []*graph.Executor{quiet(s)}}
		r.run(func(*rand.Rand) {})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		direct := storetest.Postgres(t)
		r := &retrying{t: t, store: storetest.Open(t, direct)}
		var proxies []*pgproxy.Proxy
		for range 2 {
			at, err := url.Parse(direct)
			if err != nil {
				t.Fatal(err)
			}
			proxy := pgproxy.New(t, at.Host)
			at.Host = proxy.Address()
			proxies, r.servers = append(proxies, proxy), append(r.servers, quiet(openRoomy(t, at.String())))
		}
		r.run(func(chance *rand.Rand) {
			proxy, late := proxies[chance.IntN(2)], time.Duration(chance.IntN(10))*time.Millisecond
			switch chance.IntN(8) {
			case 0:
				proxy.Cut(false)
			case 1, 2, 3:
				proxy.Fail(pgproxy.Fault{Late: late, Silent: true})
			case 4, 5:
				proxy.Fail(pgproxy.Fault{Lost: true})
			default:
				proxy.Fail(pgproxy.Fault{Held: late})
			}
		})
	})
}

// openRoomy opens a store in which a project owns any number of namespaces.
func openRoomy(t *testing.T, url string) *store.Store {
	s, err := store.Open(t.Context(), store.Options{URL: url, Log: slog.New(slog.DiscardHandler),
		Definitions: store.DefinitionOptions{NamespacesPerProject: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// quiet returns an executor that logs nothing.
func quiet(s *store.Store) *graph.Executor {
	return graph.NewExecutor(&graph.Resolver{Store: s}, slog.New(slog.DiscardHandler))
}

// retrying has clients that send mutations until they get an answer.
type retrying struct {
	t       *testing.T
	store   *store.Store // undisturbed
	servers []*graph.Executor
	events  atomic.Int64 // the expected number
	sent    atomic.Int64
	answers atomic.Int64
	mu      sync.Mutex
	refused map[string]int
}

const retryingClients = 4

// disturbancesPerAnswer bounds the disturbances between two answers. Without a
// bound, a slow machine does nothing but open connections again.
const disturbancesPerAnswer = 4

func (r *retrying) run(disturb func(*rand.Rand)) {
	r.refused = map[string]int{}
	seed, count := soak.Seed(r.t), soak.Count(r.t, "CADASTRE_SOAK_RETRIES", 30)
	ctx, stop := context.WithCancel(access.WithViewer(r.t.Context(), viewers["admin"]))
	var asking, disturbing sync.WaitGroup
	disturbing.Go(func() {
		chance := rand.New(rand.NewPCG(seed, 99))
		for made := int64(1); ctx.Err() == nil; made++ {
			disturb(chance)
			time.Sleep(3 * time.Millisecond)
			r.waitForAnswers(ctx, made)
		}
	})
	for number := range retryingClients {
		asking.Go(func() {
			c := &retryingClient{retrying: r, chance: rand.New(rand.NewPCG(seed, uint64(number))), number: number}
			c.run(ctx, count)
		})
	}
	asking.Wait()
	stop()
	disturbing.Wait()
	events, err := r.store.CountAuditEvents(access.WithViewer(context.Background(), viewers["admin"]), audit.Filter{})
	if err != nil || int64(events) != r.events.Load() {
		r.t.Errorf("there are %d events, not %d, %v: something happened twice, or not", events, r.events.Load(), err)
	}
	r.t.Logf("%d mutations in %d requests; refused %v", retryingClients*count, r.sent.Load(), r.refused)
}

// waitForAnswers waits, for a while, until the answers allow another disturbance
// after so many.
func (r *retrying) waitForAnswers(ctx context.Context, made int64) {
	patience.Until(r.t, 500*time.Millisecond, func() bool {
		return ctx.Err() != nil || made < disturbancesPerAnswer*(1+r.answers.Load())
	})
}

// retryingClient has its own resource, provider and consumer.
type retryingClient struct {
	*retrying
	chance     *rand.Rand
	number     int
	resource   string
	revision   int
	provider   string
	generation int
	made       int
}

func (c *retryingClient) run(ctx context.Context, count int) {
	c.resource = storetest.UUID(100 + c.number)
	c.provider = storetest.UUID(200 + c.number)
	c.send(ctx, 1,
		fmt.Sprintf(`mutation { createResource(input: {type: "physical:host", name: "r%d", uuid: %q}) { resource { uuid revision } } }`, c.number, c.resource))
	c.send(ctx, 2, fmt.Sprintf(`mutation { a: createResourceProvider(input: {name: "p%d", uuid: %[2]q}) { resourceProvider { uuid } }
		b: setInventory(input: {provider: %[2]q, inventory: {resourceClass: "VCPU", total: 1000}}) { resourceProvider { uuid generation } } }`, c.number, c.provider))
	c.revision = 1
	for range count - 2 {
		c.mutate(ctx)
	}
}

// mutate sends a random mutation whose repetition would have another effect or
// be refused.
func (c *retryingClient) mutate(ctx context.Context) {
	c.made++
	name := fmt.Sprintf("C%d_%d", c.number, c.made)
	switch c.chance.IntN(6) {
	case 0:
		c.send(ctx, 2,
			fmt.Sprintf(`mutation { a: createTrait(input: {name: "CUSTOM_%[1]s"}) { trait { name } } b: deleteTrait(input: {name: "CUSTOM_%[1]s"}) { trait { name } } }`, name))
	case 1:
		c.send(ctx, 1,
			fmt.Sprintf(`mutation { createResource(input: {type: "physical:host", name: %q, metadata: [{key: "a", value: "b"}]}) { resource { uuid name revision metadata { key value } } } }`, name))
	case 2:
		answer := c.send(ctx, 1,
			fmt.Sprintf(`mutation { setMetadata(input: {resource: %q, revision: %d, items: [{key: "k", value: %q}]}) { resource { revision metadata { key value } } } }`, c.resource, c.revision, name))
		c.revision++
		if !strings.Contains(answer, fmt.Sprintf(`"revision":%d`, c.revision)) {
			c.t.Errorf("not revision %d: %s", c.revision, answer)
		}
	case 3:
		generation := "null"
		if c.generation > 0 {
			generation = fmt.Sprint(c.generation)
		}
		answer := c.send(ctx, 1, fmt.Sprintf(`mutation { setAllocations(input: {consumers: [{uuid: %q, generation: %s, projectId: "p", userId: "u",
			allocations: [{provider: %q, resources: [{resourceClass: "VCPU", amount: %d}]}]}]}) { consumers { uuid generation allocations { used } } } }`,
			storetest.UUID(300+c.number), generation, c.provider, 1+c.chance.IntN(9)))
		c.generation++
		if !strings.Contains(answer, fmt.Sprintf(`"generation":%d`, c.generation)) {
			c.t.Errorf("not generation %d: %s", c.generation, answer)
		}
	case 4:
		c.send(ctx, 2,
			fmt.Sprintf(`mutation { importNamespaces(input: {documents: ["{\"namespace\": \"%[1]sa\"}", "{\"namespace\": \"%[1]sb\"}"]}) { reports { namespace outcome } } }`, name))
	default:
		c.send(ctx, 1,
			fmt.Sprintf(`mutation { createNamespace(input: {name: %q, properties: [{name: "p", type: STRING, title: "<p>"}]}) { namespace { name revision properties { name } } } }`, name))
	}
}

// send sends a mutation that leaves some events, until it gets an answer.
// Sometimes it then sends the mutation again. It returns the answer.
func (c *retryingClient) send(ctx context.Context, events int64, query string) string {
	c.events.Add(events)
	key := fmt.Sprint("key ", c.number, c.made, query)
	deadline := time.Now().Add(patience.Of(c.t, time.Minute))
	for time.Now().Before(deadline) {
		response := c.ask(ctx, key, query)
		if len(response.Errors) > 0 {
			if !c.mayRetry(response) {
				c.t.Errorf("%s of %s", onceText(c.t, response), query)
				return ""
			}
			continue
		}
		c.answers.Add(1)
		answer := onceText(c.t, response)
		if strings.Contains(answer, "FAILED") {
			c.t.Errorf("%s of %s", answer, query)
		}
		for c.chance.IntN(3) == 0 {
			again := c.ask(ctx, key, query)
			if text := onceText(c.t, again); text != answer && !c.mayRetry(again) {
				c.t.Errorf("again: %s\nwas: %s", text, answer)
			}
		}
		return answer
	}
	c.t.Errorf("no answer in time to %s", query)
	return ""
}

// ask sends a mutation to one of the servers, and sometimes disconnects.
func (c *retryingClient) ask(ctx context.Context, key, query string) *graphql.Response {
	c.sent.Add(1)
	if c.chance.IntN(4) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.chance.IntN(5000))*time.Microsecond)
		defer cancel()
	}
	return asOnce(ctx, c.servers[c.chance.IntN(len(c.servers))], key, query, nil)
}

// mayRetry reports whether an error of an answer asks for a retry. Fields after
// the failed one may need it.
func (c *retryingClient) mayRetry(response *graphql.Response) (may bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range response.Errors {
		code := fmt.Sprint(err.Extensions["code"])
		c.refused[code]++
		may = may || slices.Contains([]string{"UNAVAILABLE", "OUTCOME_UNKNOWN", "TIMEOUT"}, code) ||
			err.Extensions["field"] == "Idempotency-Key" && code == "CONCURRENT_UPDATE"
	}
	return may
}
