package placement_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// located is the roots of each consumer that counts.
type located [][]string

// allows reports whether a policy allows a root, by its definition.
func (o *oracle) allows(p *Policy, on located, root string) bool {
	isOn := func(uuid string) bool {
		return slices.ContainsFunc(on, func(roots []string) bool { return slices.Contains(roots, uuid) })
	}
	for other := range o.providers {
		if p.Hosts == DistinctHosts && isOn(root) || p.Hosts == SameHost && other != root && isOn(other) {
			return false
		}
	}
	return p.Spread == nil || o.keepsSkew(p, on, root)
}

// keepsSkew reports whether no zone of a root exceeds the maximum skew with one
// more consumer.
func (o *oracle) keepsSkew(p *Policy, on located, root string) bool {
	var least, most *big.Rat // consumers by share
	for i, zone := range p.Spread.Aggregates {
		share := int64(1)
		if p.Spread.Shares != nil {
			share = int64(p.Spread.Shares[i])
		}
		n := 0
		for _, roots := range on {
			if slices.ContainsFunc(roots, func(root string) bool { return o.prefers(Preference{Aggregate: zone}, root) }) {
				n++
			}
		}
		least = smaller(least, big.NewRat(int64(n), share))
		if after := big.NewRat(int64(n+1), share); o.prefers(Preference{Aggregate: zone}, root) && (most == nil || after.Cmp(most) > 0) {
			most = after
		}
	}
	return most != nil && new(big.Rat).Sub(most, least).Cmp(big.NewRat(int64(p.Spread.MaxSkew), 1)) <= 0
}

// locate returns the roots of each consumer that a policy names.
func (o *oracle) locate(p *Policy) (on located) {
	for _, providers := range p.Held {
		var roots []string
		for _, uuid := range providers {
			if _, ok := o.providers[uuid]; ok && !o.hasTrait(uuid, TraitShares) {
				roots = append(roots, o.root(uuid))
			}
		}
		on = append(on, roots)
	}
	return on
}

// policy returns a policy with the providers of up to three consumers.
func (d *dice) policy(providers int) *Policy {
	p := &Policy{Hosts: []HostPolicy{AnyHost, DistinctHosts, SameHost}[d.roll(3)]}
	for range d.roll(4) {
		var held []string
		for range d.roll(3) {
			held = append(held, uuidOf(d.roll(providers+1)))
		}
		p.Held = append(p.Held, held)
	}
	if d.chance(2) || p.Hosts == AnyHost {
		p.Spread = &ZoneSpread{Aggregates: d.aggregates(1 + d.roll(2)), MaxSkew: 1 + d.roll(2)}
		if len(p.Spread.Aggregates) == 0 {
			p.Spread.Aggregates = []string{aggregateOf(3)}
		}
		for range d.roll(2) * len(p.Spread.Aggregates) {
			p.Spread.Shares = append(p.Spread.Shares, 1+d.roll(3))
		}
	}
	return p
}

// TestPolicyRestrictsTheFirstCandidates compares the choices for several
// consumers with the first candidate on an allowed host after each claim.
func TestPolicyRestrictsTheFirstCandidates(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w, kept := NewWorld(diceNames, providers), new(Rankings)
		r.Seed, r.Shapes, r.Preferences = d.roll(9), d.shapes(len(providers)), d.preferences(len(providers))
		if d.chance(3) {
			d.alternatives(r, len(providers))
		}
		policy := d.policy(len(providers))
		for _, r.Order = range orders {
			p := &Placing{Request: *r, Consumers: make([]NewConsumer, 1+d.roll(5)), Policy: policy}
			choices, err := p.Choose(w, d.roll(3), kept)
			if err != nil {
				t.Fatal(err)
			}
			comparePolicy(t, p, providers, &choices)
		}
	})
}

func comparePolicy(t *testing.T, p *Placing, at []Provider, choices *Choices) {
	t.Helper()
	r := &p.Request
	on := newOracle(at).locate(p.Policy)
	for i, choice := range choices.Of {
		o := newOracle(at)
		allowed := slices.DeleteFunc(o.firstOf(r), func(c Candidate) bool { return !o.allows(p.Policy, on, c.Root) })
		if (choice == nil) != (len(allowed) == 0) {
			t.Fatalf("order %d, consumer %d: %v, want one of\n%s\n%+v\n%+v\n%+v", r.Order, i, choice, chosen(allowed), p.Policy, r, at)
		}
		if choice == nil {
			continue
		}
		got := chosen([]Candidate{*choice})
		if inTurns := r.Order == Random && i > 0; !inTurns && got != chosen(allowed[:1]) {
			t.Fatalf("order %d, consumer %d: %s, want %s\n%+v\n%+v\n%+v", r.Order, i, got, chosen(allowed[:1]), p.Policy, r, at)
		}
		if !slices.ContainsFunc(allowed, func(c Candidate) bool { return chosen([]Candidate{c}) == got }) ||
			o.score(r, choice.Root) != o.score(r, allowed[0].Root) || !slices.Equal(choice.Alternatives, allowed[0].Alternatives) {
			t.Fatalf("order %d, consumer %d: %s is not allowed or not the best", r.Order, i, got)
		}
		at, on = using(at, choice), append(on, []string{choice.Root})
	}
	o := newOracle(at)
	for _, spare := range choices.Spares {
		if !o.fit(spare.Allocations) || !o.allows(p.Policy, on, spare.Root) {
			t.Fatalf("order %d: a spare does not fit or is not allowed: %v", r.Order, spare)
		}
	}
}

func TestPoliciesAreChecked(t *testing.T) {
	t.Parallel()
	var many []string
	for n := range MaxConsumers + 1 {
		many = append(many, fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
	}
	zone := aggregateOf(1)
	for want, p := range map[string]*Policy{
		"[]": {Hosts: SameHost, Consumers: many[1:], Spread: &ZoneSpread{Aggregates: []string{zone}, MaxSkew: 1}},
		"[policy.consumers[1] policy.hosts policy.spread.aggregates policy.spread.maxSkew]": {
			Consumers: []string{many[1], many[1]}, Hosts: "NONE", Spread: &ZoneSpread{}},
		"[policy.consumers policy.spread.aggregates[1] policy.spread.maxSkew]": {
			Consumers: many, Spread: &ZoneSpread{Aggregates: []string{zone, zone}, MaxSkew: MaxSkew + 1}},
		"[policy.spread.shares policy.spread.shares[0] policy.spread.shares[1]]": {
			Spread: &ZoneSpread{Aggregates: []string{zone}, Shares: []int{0, MaxShare + 1}, MaxSkew: 1}},
	} {
		var paths []string
		for _, one := range p.Validate("policy") {
			paths = append(paths, one.Path)
		}
		if got := fmt.Sprint(paths); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
