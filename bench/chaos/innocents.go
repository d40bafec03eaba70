package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// Intervals between requests of an innocent project. It does not wait for
// earlier answers.
const (
	lookUpEvery = 10 * time.Millisecond
	claimEvery  = 50 * time.Millisecond
	greetEvery  = 200 * time.Millisecond
)

// innocents are viewers of a project that sends few requests. Their response
// times and errors measure the effect of an attack.
type innocents struct {
	world  *world
	ledger *ledger
	reads  *local.Client
	writes *local.Client
	token  string
	asked  atomic.Int64 // requests so far, for unique names
}

// fared holds the results of requests of one kind.
type fared struct {
	mu    sync.Mutex
	times []time.Duration // from when a request was due to the end of its answer
	codes counts
	ended []ending
}

// ending is the end of a request, with or without an answer.
type ending struct {
	at          time.Time
	unavailable bool
}

// both holds the results of look-ups ("lookUp") and claims ("claim") in a round, and
// of greetings by WebSocket ("greeting").
type both map[string]*fared

func newInnocents(of *cloud) *innocents {
	client := func(token string) *local.Client {
		return local.NewClient(of.hosts()[0], local.Bearing(token), calmAddress, 32, requestTime)
	}
	return &innocents{
		world: of.world, ledger: of.ledger, token: of.tokens.calm,
		reads: client(of.tokens.calm), writes: client(of.tokens.calmService),
	}
}

func (all *innocents) close() {
	all.reads.Close()
	all.writes.Close()
}

// ask sends look-ups and claims for some time, and opens WebSockets.
func (all *innocents) ask(ctx context.Context, during time.Duration) both {
	of := both{"lookUp": {}, "claim": {}, "greeting": {}}
	var running sync.WaitGroup
	running.Go(func() {
		all.every(ctx, lookUpEvery, during, of["lookUp"], func(n int) local.Answer {
			return all.reads.Send(ctx, all.world.lookUp(n*7919), nil)
		})
	})
	running.Go(func() {
		all.every(ctx, claimEvery, during, of["claim"], func(n int) local.Answer {
			consumer, provider := all.world.uuid("calm", n), all.world.provider(n*7919)
			got := all.writes.Send(ctx, all.world.claim(consumer, provider, 1), nil)
			all.ledger.note(consumer, holding(provider, 1), got.Code)
			return got
		})
	})
	running.Go(func() {
		all.every(ctx, greetEvery, during, of["greeting"], func(n int) local.Answer {
			return greet(ctx, all.reads.Address, calmAddress, all.token, n%2 == 0)
		})
	})
	running.Wait()
	return of
}

// every sends each request when it is due, without waiting for earlier
// requests. It returns when all requests have ended.
func (all *innocents) every(ctx context.Context, every, during time.Duration,
	into *fared, send func(n int) local.Answer) {
	into.codes = counts{}
	var running sync.WaitGroup
	began := time.Now()
	for due := began; due.Sub(began) < during && ctx.Err() == nil; due = due.Add(every) {
		pause.For(ctx, time.Until(due))
		n := int(all.asked.Add(1))
		running.Go(func() {
			got := send(n)
			into.mu.Lock()
			defer into.mu.Unlock()
			now := time.Now()
			into.times = append(into.times, now.Sub(due))
			into.codes[got.Code]++
			into.ended = append(into.ended, ending{at: now, unavailable: got.Status == 503})
		})
	}
	running.Wait()
}

// longestUnavailable returns the duration of the longest run of 503s: the time
// from the first to the last of consecutive answers that are all 503.
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
