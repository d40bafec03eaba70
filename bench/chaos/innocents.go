package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// How often an innocent project asks, whatever becomes of its requests before.
const (
	lookUpEvery = 10 * time.Millisecond
	claimEvery  = 50 * time.Millisecond
)

// innocents are viewers of a project that asks for little: how they fare is what
// an attack is judged by.
type innocents struct {
	world  *world
	ledger *ledger
	reads  *local.Client
	writes *local.Client
	asked  int // requests so far, for unique names

	mu      sync.Mutex
	lookUps fared
	claims  fared
}

// fared is how requests of one kind fared.
type fared struct {
	times []time.Duration // from when a request was due to the end of its answer
	codes map[string]int
	ended []ending
}

// ending is when a request ended that was answered or not.
type ending struct {
	at          time.Time
	unavailable bool
}

func newInnocents(w *world, of *cloud, l *ledger) *innocents {
	all := &innocents{world: w, ledger: l}
	const connections = 32
	host := of.hosts()[0]
	all.reads, all.writes = local.NewClient(host, of.tokens.calm, calmAddress, connections, requestTime), local.NewClient(host, of.tokens.calmService, calmAddress, connections, requestTime)
	return all
}

func (all *innocents) close() {
	all.reads.Close()
	all.writes.Close()
}

// ask asks for some time, and returns how look-ups and claims fared.
func (all *innocents) ask(ctx context.Context, during time.Duration) (lookUps, claims fared) {
	all.lookUps, all.claims = fared{codes: map[string]int{}}, fared{codes: map[string]int{}}
	var running sync.WaitGroup
	running.Go(func() {
		all.every(ctx, lookUpEvery, during, func(n int, due time.Time) {
			got := all.reads.Send(ctx, all.world.lookUp(n*7919).Body())
			all.note(&all.lookUps, got, due)
		})
	})
	running.Go(func() {
		all.every(ctx, claimEvery, during, func(n int, due time.Time) {
			consumer, provider := all.world.uuid("calm", n), all.world.provider(n*7919)
			got := all.writes.Send(ctx, claimRequest(consumer, provider, 1).Body())
			all.ledger.note(consumer, holding(provider, 1), got.Code)
			all.note(&all.claims, got, due)
		})
	})
	running.Wait()
	return all.lookUps, all.claims
}

// every calls a function for each request when it is due, without waiting for
// those before it, and returns when all have ended.
func (all *innocents) every(ctx context.Context, every, during time.Duration, do func(n int, due time.Time)) {
	var running sync.WaitGroup
	began := time.Now()
	for due := began; due.Sub(began) < during && ctx.Err() == nil; due = due.Add(every) {
		pause.For(ctx, time.Until(due))
		n := all.number()
		running.Go(func() { do(n, due) })
	}
	running.Wait()
}

func (all *innocents) number() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.asked++
	return all.asked
}

func (all *innocents) note(of *fared, got local.Answer, due time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	now := time.Now()
	of.times = append(of.times, now.Sub(due))
	of.codes[got.Code]++
	of.ended = append(of.ended, ending{at: now, unavailable: got.Status == 503})
}

// longestUnavailable returns the longest time from a 503 to the last one after it
// without any other answer between.
func longestUnavailable(ended []ending) (longest time.Duration) {
	slices.SortFunc(ended, func(a, b ending) int { return a.at.Compare(b.at) })
	var since time.Time
	for _, one := range ended {
		switch {
		case !one.unavailable:
			since = time.Time{}
		case since.IsZero():
			since = one.at
		default:
			longest = max(longest, one.at.Sub(since))
		}
	}
	return longest
}
