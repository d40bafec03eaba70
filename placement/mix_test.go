package placement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// turnOf returns the index of the request whose turn it is after a number of
// consumers.
func turnOf(requests []MixedRequest, consumers int64) int {
	for {
		for i := range requests {
			if consumers -= int64(requests[i].Share); consumers < 0 {
				return i
			}
		}
	}
}

// mostInTurn returns the largest number of consumers that fit in turn, each with
// any of its candidates. It tries all choices, and reports false if these are too
// many.
func mostInTurn(providers []Provider, requests []MixedRequest) (most int64, ok bool) {
	free := map[string]int64{}
	for _, p := range providers {
		for _, inventory := range p.Inventories {
			free[p.UUID+inventory.ResourceClass] = inventory.Free()
		}
	}
	candidates := make([][]Candidate, len(requests))
	for i := range requests {
		candidates[i] = newOracle(providers).candidates(&requests[i].Request)
	}
	seen := map[string]bool{}
	var try func(placed int64)
	try = func(placed int64) {
		key := fmt.Sprint(placed, free)
		if seen[key] || len(seen) > 5_000 {
			return
		}
		seen[key] = true
		most = max(most, placed)
		of := candidates[turnOf(requests, placed)]
		for i := range of {
			if take(free, &of[i], 1) {
				try(placed + 1)
			}
			take(free, &of[i], -1)
		}
	}
	try(0)
	return most, len(seen) <= 5_000
}

// placedInTurn places consumers in turn until one finds no candidate, and returns
// the world after them.
func placedInTurn(t *testing.T, w *World, requests []MixedRequest) (placed int64, after *World) {
	t.Helper()
	for {
		p := &Placing{Request: requests[turnOf(requests, placed)].Request, Consumers: make([]NewConsumer, 1)}
		choices, err := p.Choose(w, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if choices.Of[0] == nil {
			return placed, w
		}
		placed, w = placed+1, choices.After
	}
}

// together returns how many consumers fit together.
func together(t testing.TB, w *World, requests []MixedRequest) Mix {
	t.Helper()
	mix, err := FitsTogether(t.Context(), w, requests)
	if err != nil {
		t.Fatal(err)
	}
	return mix
}

// mix returns a few valid requests with shares.
func (d *dice) mix(w *World, providers []Provider, first *Request) (requests []MixedRequest) {
	requests = append(requests, MixedRequest{*first, 1 + d.roll(3)})
	for range d.roll(3) {
		requests = append(requests, MixedRequest{*d.request(len(providers)), 1 + d.roll(3)})
	}
	return slices.DeleteFunc(requests, func(of MixedRequest) bool { return len(Validate(w, &of.Request)) > 0 })
}

// partsOf counts the consumers of each request in a mix, one by one.
func partsOf(requests []MixedRequest, mix Mix) []MixCount {
	each := make([]MixCount, len(requests))
	for i := range min(mix.AtMost, 10_000) {
		turn := turnOf(requests, i)
		if each[turn].AtMost++; i < mix.AtLeast {
			each[turn].AtLeast++
		}
	}
	return each
}

// TestAMixLiesBetweenItsBounds compares the numbers with a placing in turn until
// no consumer fits, and with the largest number that any choice places.
func TestAMixLiesBetweenItsBounds(t *testing.T) {
	exact, mixed, all, seed := 0, 0, 0, uint64(1<<50)
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		seed++
		d := &dice{bytes: randomBytes(seed, 600)}
		requests := d.mix(w, providers, r)
		if len(requests) == 0 {
			return
		}
		mix := together(t, w, requests)
		describe := func() string { return fmt.Sprintf("%+v\nproviders %+v\nrequests %+v", mix, providers, requests) }
		placed, after := placedInTurn(t, w, requests)
		if placed != mix.AtLeast || mix.Next != turnOf(requests, placed) {
			t.Fatalf("%d are placed: %s", placed, describe())
		}
		if limits := Fits(after, &requests[mix.Next].Request).LimitedBy; !slices.Equal(limits, mix.LimitedBy) {
			t.Fatalf("limits %+v: %s", limits, describe())
		}
		each := partsOf(requests, mix)
		if mix.AtMost < 10_000 && !slices.Equal(each, mix.Each) {
			t.Fatalf("each %+v: %s", each, describe())
		}
		most, ok := mostInTurn(providers, requests)
		if !ok {
			return
		}
		if most < mix.AtLeast || mix.AtMost < most {
			t.Fatalf("%d fit: %s", most, describe())
		}
		all++
		if len(requests) == 1 || mix.AtLeast == 0 {
			return
		}
		if mixed++; mix.Exact() != nil {
			exact++
		}
	})
	t.Logf("%d of %d mixes of several requests are exact, %d in all", exact, mixed, all)
}

// TestAMixOfOneRequestIsFits also mixes the request with itself.
func TestAMixOfOneRequestIsFits(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		if len(Validate(w, r)) > 0 {
			return
		}
		fit := Fits(w, r)
		one := together(t, w, []MixedRequest{{*r, 1 + d.roll(5)}})
		if one.AtLeast != fit.AtLeast || one.AtMost != fit.AtMost ||
			one.Each[0] != (MixCount{fit.AtLeast, fit.AtMost}) {
			t.Fatalf("%+v, want %+v\nproviders %+v\nrequest %+v", one, fit, providers, r)
		}
		twice := together(t, w, []MixedRequest{{*r, 1 + d.roll(3)}, {*r, 1 + d.roll(3)}})
		if twice.AtLeast != fit.AtLeast {
			t.Fatalf("twice %+v, want %+v\nproviders %+v\nrequest %+v", twice, fit, providers, r)
		}
	})
}

// TestAMixOnPlainHostsIsExact mixes requests whose amounts divide each other, on
// hosts with enough of all other classes.
func TestAMixOnPlainHostsIsExact(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, flatCloud(100))
	of := func(vcpus int64, share int) MixedRequest {
		return MixedRequest{Request{Unsuffixed: Group{Resources: []Amount{{ResourceClass: "VCPU", Amount: vcpus}}}},
			share}
	}
	alone := Fits(w, &[]MixedRequest{of(1, 1)}[0].Request)
	mix := together(t, w, []MixedRequest{of(1, 2), of(2, 1)})
	if alone.Exact() == nil || mix.Exact() == nil || mix.Each[0].AtLeast+2*mix.Each[1].AtLeast < *alone.Exact()-1 {
		t.Errorf("%+v, alone %+v", mix, alone)
	}
}

// endingContext ends after it was asked a number of times.
type endingContext struct {
	context.Context
	left *int
}

func (c endingContext) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestAMixEndsWithItsContext ends a search at each of its steps, the bounds of a
// request or the place of a consumer.
func TestAMixEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, flatCloud(10))
	requests := []MixedRequest{{Request{Unsuffixed: threeClasses(1)}, 3}, {Request{Unsuffixed: threeClasses(7)}, 1}}
	for steps := 0; ; steps++ {
		left := steps
		mix, err := FitsTogether(endingContext{t.Context(), &left}, w, requests)
		if left >= 0 {
			if steps < 10 || err != nil || mix.AtLeast == 0 {
				t.Errorf("%d steps: %+v, %v", steps, mix, err)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%d steps: %+v, %v", steps, mix, err)
		}
	}
}

// BenchmarkFitsTogether mixes ten requests on 10,000 hosts.
func BenchmarkFitsTogether(b *testing.B) {
	w := NewWorld(cloudNames, flatCloud(10_000))
	var requests []MixedRequest
	for i := range int64(10) {
		requests = append(requests, MixedRequest{Request{Unsuffixed: Group{Resources: []Amount{
			{ResourceClass: "VCPU", Amount: 1 + i}, {ResourceClass: "MEMORY_MB", Amount: 1024 * (2 + i%3)}}}},
			1 + int(i%4)})
	}
	for b.Loop() {
		if mix := together(b, w, requests); mix.AtLeast == 0 {
			b.Fatal(mix)
		}
	}
}
