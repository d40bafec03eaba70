package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// crowd is many viewers who read, search and write, on all servers of a cloud,
// while faults happen.
type crowd struct {
	*cloud
	world   *world
	ledger  *ledger
	seed    uint64
	clients int
	think   time.Duration // of a client between two requests, on average

	mu       sync.Mutex
	requests int
	codes    map[string]int
	answered time.Time // the last answer to a request that needs the database
	internal []string  // answers that no fault excuses
}

// fault is one thing that goes wrong, for some time.
type fault struct {
	name string
	do   func(ctx context.Context, c *crowd, chance *rand.Rand) error
}

// suffered is what became of a fault.
type suffered struct {
	fault     string
	times     int
	recovered float64 // seconds from the end of the fault to an answer, at most
}

// endured is what became of a crowd.
type endured struct {
	database string
	requests int
	codes    map[string]int
	attacks  map[string]int // answers to attackers, by their codes
	faults   []suffered
	internal []string
	verdict  verdict
}

// faultTime is how long a fault lasts that ends.
const faultTime = 2 * time.Second

// faults returns the faults of a cloud.
func (c *cloud) faults() []fault {
	all := []fault{{"a server is killed", killed}}
	if c.kind == postgres {
		all = append(all, fault{"connections are cut", cut}, fault{"the database crashes", crashed},
			fault{"packets are swallowed", swallowed})
	}
	if c.disk != nil {
		all = append(all, fault{"the disk is full", full})
	}
	return all
}

func killed(ctx context.Context, c *crowd, chance *rand.Rand) error {
	s := c.servers[chance.IntN(len(c.servers))]
	if err := s.Kill(); err != nil {
		return err
	}
	return s.Start(ctx)
}

func cut(ctx context.Context, c *crowd, _ *rand.Rand) error {
	for range 20 {
		c.proxy.cut()
		pause.For(ctx, faultTime/20)
	}
	return nil
}

func crashed(ctx context.Context, c *crowd, _ *rand.Rand) error {
	if err := c.cluster.Crash(); err != nil {
		return err
	}
	return c.cluster.Start(ctx)
}

func swallowed(ctx context.Context, c *crowd, _ *rand.Rand) error {
	c.proxy.swallow(true)
	pause.For(ctx, faultTime)
	c.proxy.swallow(false)
	return nil
}

func full(ctx context.Context, c *crowd, _ *rand.Rand) error {
	if err := c.disk.fill(); err != nil {
		return err
	}
	pause.For(ctx, faultTime)
	return c.disk.empty()
}

// endure has the crowd ask while faults happen in turns, for some time, and
// compares at the end what was acknowledged with what is there.
func (c *crowd) endure(ctx context.Context, during time.Duration, progress io.Writer) (*endured, error) {
	c.codes = map[string]int{}
	out := &endured{database: c.kind, attacks: map[string]int{}}
	asking, stop := context.WithTimeout(ctx, during)
	defer stop()
	var running sync.WaitGroup
	for i := range c.clients {
		running.Go(func() { c.client(asking, i) })
	}
	attacked := make(chan map[string]int, 1)
	running.Go(func() { attacked <- c.attacked(asking) })
	faulty := c.suffer(asking, out, progress)
	running.Wait()
	out.attacks = <-attacked
	out.requests, out.codes, out.internal = c.requests, c.codes, c.internal
	if err := errors.Join(faulty, ctx.Err()); err != nil {
		return out, err
	}
	if err := c.stopServers(); err != nil {
		return out, err
	}
	err := c.besides(ctx, func(operator *local.Client) (err error) {
		out.verdict, err = c.ledger.judge(ctx, operator)
		return err
	})
	return out, err
}

// suffer makes faults happen until the context ends; one that has begun ends as
// it would.
func (c *crowd) suffer(ctx context.Context, out *endured, progress io.Writer) error {
	chance := rand.New(rand.NewPCG(c.seed, 0))
	all := c.faults()
	for _, one := range all {
		out.faults = append(out.faults, suffered{fault: one.name})
	}
	whole := context.WithoutCancel(ctx)
	for i := 0; ; i = (i + 1) % len(all) {
		if pause.For(ctx, faultTime); ctx.Err() != nil {
			return nil
		}
		if err := all[i].do(whole, c, chance); err != nil {
			return fmt.Errorf("%s: %w", all[i].name, err)
		}
		ended := time.Now()
		for c.lastAnswer().Before(ended) && ctx.Err() == nil {
			pause.For(ctx, 10*time.Millisecond)
		}
		of := &out.faults[i]
		of.times++
		of.recovered = max(of.recovered, time.Since(ended).Seconds())
		if _, err := fmt.Fprintf(progress, "%s: %s; answered again after %.1f s\n", c.kind, of.fault, time.Since(ended).Seconds()); err != nil {
			return err
		}
	}
}

func (c *crowd) lastAnswer() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered
}

// attacked runs one attack after another, each by one viewer, until the context
// ends.
func (c *crowd) attacked(ctx context.Context) map[string]int {
	codes := map[string]int{}
	m := &attackSide{cloud: c.cloud, world: c.world}
	for i := 0; ctx.Err() == nil; i++ {
		of := attacks()[i%len(attacks())]
		given, err := m.ordersOf(ctx, attack{manner: of.manner, connections: of.connections, service: of.service, request: of.request, varied: of.varied, name: of.name}, &row{})
		if err != nil {
			continue
		}
		given.Bodies = nil
		for n := range varieties {
			given.Bodies = append(given.Bodies, of.request(c.world, 1+n%max(1, of.most), n).Body())
			if !of.varied && of.most == 0 {
				break
			}
		}
		given.For = faultTime
		toll, err := attackIn(ctx, given)
		if err != nil && ctx.Err() == nil {
			codes[err.Error()]++
		}
		for code, count := range toll.Codes {
			codes[code] += count
		}
	}
	return codes
}

// client is one viewer: of ten, six read, two search and two write.
func (c *crowd) client(ctx context.Context, number int) {
	chance := rand.New(rand.NewPCG(c.seed, uint64(number)+1))
	w := &writer{crowd: c, number: number, chance: chance, held: map[string]bool{}}
	token := c.tokens.others[number%viewers]
	if number%10 >= 8 {
		token = c.tokens.othersService[number%viewers]
	}
	for _, host := range c.hosts() {
		p := local.NewClient(host, token, othersAddress, 1, requestTime)
		defer p.Close()
		w.servers = append(w.servers, p)
	}
	for ctx.Err() == nil {
		pause.For(ctx, time.Duration(chance.Int64N(2*int64(c.think)+1)))
		switch kind := number % 10; {
		case ctx.Err() != nil:
		case kind < 6:
			w.send(c.world.read(chance))
		case kind < 8:
			w.send(c.world.search(chance))
		default:
			w.write()
		}
	}
}

// read returns a request that reads a little.
func (w *world) read(chance *rand.Rand) local.Request {
	switch chance.IntN(4) {
	case 0:
		return local.Request{Query: `{ namespaces(first: 3) { nodes { name properties { name title } } } }`}
	case 1:
		return local.Request{Query: `query($uuid: UUID!) { resourceProvider(uuid: $uuid) { name generation inventories { resourceClass capacity used } } }`,
			Variables: object{"uuid": w.provider(chance.IntN(1000))}}
	case 2:
		return local.Request{Query: `{ viewer { userId roles } }`}
	}
	return w.lookUp(chance.IntN(1_000_000))
}

// search returns a request that looks at much.
func (w *world) search(chance *rand.Rand) local.Request {
	switch chance.IntN(3) {
	case 0:
		return local.Request{Query: `query($text: String!) { resources(first: 5, filter: {search: $text}) { totalCount nodes { name } } }`, Variables: object{"text": fmt.Sprint("share-0", chance.IntN(1000))}}
	case 1:
		return local.Request{Query: `{ allocationCandidates(first: 20, resources: [{resourceClass: "VCPU", amount: 2}]) { nodes { allocations { provider { uuid } } } } }`}
	}
	return local.Request{Query: `query($where: ResourceCondition!) { resources(first: 5, filter: {where: $where}) { totalCount } }`,
		Variables: object{"where": object{"metadata": object{"key": "key-01", "contains": fmt.Sprint(chance.IntN(100))}}}}
}

// writer is a client of a crowd with the consumers that it claims for.
type writer struct {
	*crowd
	number  int
	chance  *rand.Rand
	servers []*local.Client
	claimed int
	held    map[string]bool // by consumer
}

// send sends a request to any server and returns the code of the answer. A
// request that was begun is waited for, whatever ends meanwhile. Those without
// variables may be answered from memory.
func (w *writer) send(of local.Request) string {
	body := of.Body()
	got := w.servers[w.chance.IntN(len(w.servers))].Send(context.Background(), body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	w.codes[got.Code]++
	if got.Code == local.Answered && of.Variables != nil {
		w.answered = time.Now()
	}
	if got.Code == "INTERNAL" || got.Status >= 500 && got.Status != 503 {
		w.internal = append(w.internal, fmt.Sprintf("%d %s of %.300s", got.Status, got.Body, body))
	}
	return got.Code
}

// write claims for a new consumer, or releases one.
func (w *writer) write() {
	if len(w.held) > 3 && w.chance.IntN(2) == 0 {
		consumer := slices.Sorted(maps.Keys(w.held))[w.chance.IntN(len(w.held))]
		code := w.send(releaseRequest(consumer))
		w.ledger.note(consumer, nothing, code)
		if code == local.Answered || code == "NOT_FOUND" {
			delete(w.held, consumer)
		}
		return
	}
	w.claimed++
	consumer, provider := w.world.uuid(fmt.Sprint("consumer of ", w.number), w.claimed), w.world.scarce(w.chance.IntN(scarce))
	if w.chance.IntN(2) == 0 {
		provider = w.world.provider(w.chance.IntN(1_000_000))
	}
	amount := 1 + w.chance.IntN(2)
	code := w.send(claimRequest(consumer, provider, amount))
	w.ledger.note(consumer, holding(provider, amount), code)
	if code == local.Answered || code == local.Unanswered || code == "OUTCOME_UNKNOWN" {
		w.held[consumer] = true
	}
}
