package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// crowd is many viewers who read, search and write, on all servers of a cloud,
// while faults happen.
type crowd struct {
	*cloud

	mu       sync.Mutex
	requests int
	codes    counts
	answered time.Time // the last answer to a request that needs the database
	internal []string  // errors that a fault does not explain
}

// fault is a failure that lasts for some time.
type fault struct {
	name      string
	do        func(ctx context.Context, c *crowd, chance *rand.Rand) error
	times     int
	recovered float64 // maximum seconds from the end of the fault to an answer
}

// faultTime is the duration of a temporary fault.
const faultTime = 2 * time.Second

// allFaults returns the faults that the cloud can have.
func (c *cloud) allFaults() []*fault {
	all := []*fault{{name: "a server is killed", do: killed}, {name: "everything is killed", do: destroyed}}
	if c.kind == postgres {
		all = append(all, &fault{name: "connections are cut", do: cut},
			&fault{name: "the database crashes", do: crashed}, &fault{name: "packets are swallowed", do: swallowed})
	}
	if c.disk != nil {
		all = append(all, &fault{name: "the disk is full", do: full})
	}
	if c.other != "" {
		all = append(all, &fault{name: "another version replaces the servers", do: replaced})
	}
	return all
}

// replaced stops one server after the other, and starts the other version in its
// place: an upgrade, and the next time the way back.
func replaced(ctx context.Context, c *crowd, _ *rand.Rand) error {
	c.binary, c.other = c.other, c.binary
	for _, s := range c.servers {
		if err := s.Process.Stop(); err != nil {
			return err
		}
		s.Program = c.binary
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func killed(ctx context.Context, c *crowd, chance *rand.Rand) error {
	s := c.servers[chance.IntN(len(c.servers))]
	if err := s.Kill(syscall.SIGKILL); err != nil {
		return err
	}
	return s.Start(ctx)
}

// destroyed kills all servers and the database together.
func destroyed(ctx context.Context, c *crowd, _ *rand.Rand) error {
	for _, s := range c.servers {
		if err := s.Kill(syscall.SIGKILL); err != nil {
			return err
		}
	}
	if c.kind == postgres {
		if err := crashed(ctx, c, nil); err != nil {
			return err
		}
	}
	_, err := c.startAgain(ctx)
	return err
}

func cut(ctx context.Context, c *crowd, _ *rand.Rand) error {
	for range 20 {
		c.proxy.Cut(false)
		pause.For(ctx, faultTime/20)
	}
	return nil
}

func crashed(ctx context.Context, c *crowd, _ *rand.Rand) error {
	if err := c.Cluster.Kill(syscall.SIGQUIT); err != nil {
		return err
	}
	return c.Cluster.Start(ctx)
}

func swallowed(ctx context.Context, c *crowd, _ *rand.Rand) error {
	c.proxy.Swallow(true)
	pause.For(ctx, faultTime)
	c.proxy.Swallow(false)
	return nil
}

func full(ctx context.Context, c *crowd, _ *rand.Rand) error {
	if err := c.disk.fill(); err != nil {
		return err
	}
	pause.For(ctx, faultTime)
	return c.disk.empty()
}

// endure lets the crowd send requests for some time, while faults happen in
// turn. At the end it compares the database with the acknowledged claims.
func (c *crowd) endure(ctx context.Context) error {
	c.codes = counts{}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	for i := range c.clients {
		running.Go(func() { c.client(asking, i) })
	}
	var attackers counts
	running.Go(func() { attackers = c.attacked(asking) })
	faults := c.allFaults()
	err := c.inTurn(asking, faults)
	stop()
	running.Wait()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	of, err := c.judge(ctx)
	if err != nil {
		return err
	}
	suffered := lists.Map(faults, func(one *fault) string {
		return fmt.Sprintf("%s %d x, %.1f s", one.name, one.times, one.recovered)
	})
	p := of.promises(c.kind)
	p.hold(len(c.internal) == 0, "%d INTERNAL, such as %.600q", len(c.internal), c.internal[:min(1, len(c.internal))])
	p.hold(attackers["INTERNAL"] == 0, "%d INTERNAL of attackers", attackers["INTERNAL"])
	line := measured.Line{Kind: measured.Faults, Database: c.kind, Figures: of.figures(), Notes: map[string]string{
		"innocents": c.codes.String(), "attacker": attackers.String(), "faults": strings.Join(suffered, "; "),
	}}
	line.Figures["requests"] = float64(c.requests)
	c.report.add(line, p)
	return nil
}

// answerTime is the maximum time until an answer after a fault.
const answerTime = 2 * time.Minute

// inTurn causes faults in turn for some time, each at least once.
func (c *crowd) inTurn(ctx context.Context, all []*fault) error {
	chance := rand.New(rand.NewPCG(c.seed, 0))
	whole := context.WithoutCancel(ctx) // every fault runs to its end
	began := time.Now()
	for i := 0; (i < len(all) || time.Since(began) < c.faults) && pause.For(ctx, faultTime); i++ {
		one := all[i%len(all)]
		if err := one.do(whole, c, chance); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		ended := time.Now()
		for c.lastAnswer().Before(ended) && ctx.Err() == nil {
			if pause.For(ctx, 10*time.Millisecond); time.Since(ended) > answerTime {
				return fmt.Errorf("%s: no answer within %v", one.name, answerTime)
			}
		}
		one.times++
		one.recovered = max(one.recovered, time.Since(ended).Seconds())
		c.Say("%s: %s; answered again after %.1f s", c.kind, one.name, time.Since(ended).Seconds())
	}
	return nil
}

func (c *crowd) lastAnswer() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered
}

// attacked runs one attack after another, each by one viewer, until the context
// ends.
func (c *crowd) attacked(ctx context.Context) counts {
	codes := counts{}
	m := &attackSide{cloud: c.cloud}
	for i := 0; ctx.Err() == nil; i++ {
		given, _, err := m.ordersOf(ctx, c.world.asked.Attacks[i%len(c.world.asked.Attacks)])
		if err != nil {
			continue
		}
		given.For = faultTime
		toll, err := attackIn(ctx, given)
		if err != nil && ctx.Err() == nil {
			codes[err.Error()]++
		}
		codes.add(toll.Codes)
	}
	return codes
}

// client is one viewer: of ten, six read, two search and two write.
func (c *crowd) client(ctx context.Context, number int) {
	w := c.newWriter(number)
	token := c.tokens.others[number%viewers]
	if number%10 >= 8 {
		token = c.tokens.othersService[number%viewers]
	}
	for _, host := range c.hosts() {
		p := local.NewClient(host, local.Bearing(token), othersAddress, 1, requestTime)
		defer p.Close()
		w.servers = append(w.servers, p)
	}
	for ctx.Err() == nil {
		pause.For(ctx, time.Duration(w.chance.Int64N(2*int64(c.think)+1)))
		switch kind := number % 10; {
		case ctx.Err() != nil:
		case kind < 6:
			w.ask(c.world.asked.Reads)
		case kind < 8:
			w.ask(c.world.asked.Searches)
		default:
			w.write()
		}
	}
}

// writer is a client of a crowd and the consumers that it claims for.
type writer struct {
	*crowd
	number  int
	chance  *rand.Rand
	servers []*local.Client
	claimed int
	held    map[string]bool // by consumer
}

// newWriter returns a client without connections and claims.
func (c *crowd) newWriter(number int) *writer {
	chance := rand.New(rand.NewPCG(c.seed, uint64(number)+1))
	return &writer{crowd: c, number: number, chance: chance, held: map[string]bool{}}
}

// ask sends one of some questions.
func (w *writer) ask(some []Question) {
	one := some[w.chance.IntN(len(some))]
	w.send(w.world.ask(one, values{N: w.chance.IntN(1_000_000)}), one.Variables != "")
}

// send sends a request to any server and returns the code of the answer. It
// waits for the answer even after the run has ended. needsDatabase is whether a
// server can answer the request only with the database.
func (w *writer) send(call local.Call, needsDatabase bool) string {
	got := w.servers[w.chance.IntN(len(w.servers))].Send(context.Background(), call, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	w.codes[got.Code]++
	if got.Code == local.Answered && needsDatabase {
		w.answered = time.Now()
	}
	if got.Code == "INTERNAL" || got.Status >= 500 && got.Status != 503 {
		w.internal = append(w.internal, fmt.Sprintf("%d %s of %.300s", got.Status, got.Body, call.Body))
	}
	return got.Code
}

// write claims for a new consumer, or releases one. It returns the code of the
// answer.
func (w *writer) write() string {
	if len(w.held) > 3 && w.chance.IntN(2) == 0 {
		consumer := slices.Sorted(maps.Keys(w.held))[w.chance.IntN(len(w.held))]
		code := w.send(w.world.release(consumer), true)
		w.ledger.note(consumer, nothing, code)
		if code == local.Answered || code == "NOT_FOUND" {
			delete(w.held, consumer)
		}
		return code
	}
	w.claimed++
	consumer, provider := w.world.uuid(fmt.Sprint("consumer of ", w.number), w.claimed),
		w.world.scarce(w.chance.IntN(scarce))
	if w.chance.IntN(2) == 0 {
		provider = w.world.provider(w.chance.IntN(1_000_000))
	}
	amount := 1 + w.chance.IntN(2)
	code := w.send(w.world.claim(consumer, provider, amount), true)
	w.ledger.note(consumer, holding(provider, amount), code)
	if code == local.Answered || code == local.Unanswered || code == "OUTCOME_UNKNOWN" {
		w.held[consumer] = true
	}
	return code
}
