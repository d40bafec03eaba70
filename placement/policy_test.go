package placement_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// place is where a consumer is: its roots, and the providers whose zones it is in.
type place struct{ roots, serving []string }

// allows reports whether a policy allows a candidate, by its definition.
func (o *oracle) allows(p *Placing, on []place, c *Candidate) bool {
	isOn := func(uuid string) bool {
		return slices.ContainsFunc(on, func(of place) bool { return slices.Contains(of.roots, uuid) })
	}
	for other := range o.providers {
		if p.Policy.Hosts == DistinctHosts && isOn(c.Root) ||
			p.Policy.Hosts == SameHost && other != c.Root && isOn(other) {
			return false
		}
	}
	return p.Policy.Spread == nil || o.keepsSkew(p, on, c)
}

// keepsSkew reports whether no zone of a candidate exceeds the maximum skew with
// one more consumer.
func (o *oracle) keepsSkew(p *Placing, on []place, c *Candidate) bool {
	var least, most *big.Rat // consumers by share
	spread, candidate := p.Policy.Spread, o.placeOf(c)
	for i, zone := range o.zones(p, on) {
		share := int64(1)
		if spread.Shares != nil {
			share = int64(spread.Shares[i])
		}
		n := 0
		for _, of := range on {
			if o.isIn(spread, of, zone) {
				n++
			}
		}
		least = smaller(least, big.NewRat(int64(n), share))
		if after := big.NewRat(int64(n+1), share); o.isIn(spread, candidate, zone) &&
			(most == nil || after.Cmp(most) > 0) {
			most = after
		}
	}
	return most != nil && new(big.Rat).Sub(most, least).Cmp(big.NewRat(int64(spread.MaxSkew), 1)) <= 0
}

// zones returns the aggregates, values or providers that are the zones.
func (o *oracle) zones(p *Placing, on []place) (zones []string) {
	spread := p.Policy.Spread
	switch {
	case spread.Aggregates != nil:
		return spread.Aggregates
	case spread.Capability != nil && spread.Values != nil:
		return spread.Values
	case spread.Capability != nil:
		for _, values := range spread.HostValues {
			zones = append(zones, values...)
		}
		slices.Sort(zones)
		return slices.Compact(zones)
	}
	isOnOne := func(root string) bool {
		return !slices.ContainsFunc(on, func(of place) bool {
			return len(of.roots) > 0 && !slices.Contains(of.roots, root)
		})
	}
	for uuid, path := range o.paths {
		if len(path) != *spread.Level+1 || p.Policy.Hosts == SameHost && !isOnOne(path[0]) {
			continue
		}
		for below, provider := range o.providers {
			if slices.Contains(o.paths[below], uuid) && !o.hasTrait(below, TraitShares) &&
				slices.ContainsFunc(provider.Inventories, func(i Inventory) bool {
					return asksFor(&p.Request, i.ResourceClass)
				}) {
				zones = append(zones, uuid)
				break
			}
		}
	}
	return zones
}

// asksFor reports whether a group or an alternative has an amount of a class.
func asksFor(r *Request, class string) bool {
	isOf := func(a Amount) bool { return a.ResourceClass == class }
	return slices.ContainsFunc(append(r.Groups, r.Unsuffixed), func(g Group) bool {
		return slices.ContainsFunc(g.Resources, isOf) ||
			slices.ContainsFunc(g.FirstOf, func(a Alternative) bool { return slices.ContainsFunc(a.Resources, isOf) })
	})
}

// isIn reports whether a place is in a zone.
func (o *oracle) isIn(spread *ZoneSpread, of place, zone string) bool {
	if spread.Level != nil {
		return slices.ContainsFunc(of.serving, func(uuid string) bool { return slices.Contains(o.paths[uuid], zone) })
	}
	return slices.ContainsFunc(of.roots, func(root string) bool {
		if spread.Capability != nil {
			return slices.Contains(spread.HostValues[o.providers[root].ResourceRow], zone)
		}
		return o.prefers(Preference{Aggregate: zone}, root)
	})
}

// placeOf returns the place of a candidate.
func (o *oracle) placeOf(c *Candidate) place {
	of := place{roots: []string{c.Root}}
	for _, a := range c.Allocations {
		if !o.hasTrait(a.Provider, TraitShares) {
			of.serving = append(of.serving, a.Provider)
		}
	}
	return of
}

// locate returns the places of the consumers that a policy names.
func (o *oracle) locate(p *Policy) (on []place) {
	for _, providers := range p.Held {
		var of place
		for _, uuid := range providers {
			if _, ok := o.providers[uuid]; ok && !o.hasTrait(uuid, TraitShares) {
				of.roots, of.serving = append(of.roots, o.root(uuid)), append(of.serving, uuid)
			}
		}
		on = append(on, of)
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
		p.Spread = d.spread(providers)
	}
	return p
}

// spread returns a spread over aggregates, values of a capability or a level.
func (d *dice) spread(providers int) *ZoneSpread {
	s := &ZoneSpread{MaxSkew: 1 + d.roll(2)}
	switch d.roll(3) {
	case 0:
		if s.Aggregates = d.aggregates(1 + d.roll(2)); len(s.Aggregates) == 0 {
			s.Aggregates = []string{aggregateOf(3)}
		}
	case 1:
		s.Capability, s.HostValues = new("rack"), map[int64][]string{}
		for n := range providers {
			s.HostValues[linkOf(n)] = d.subset([]string{"a", "b", "c"}, 2)
		}
		if d.chance(2) {
			s.Values = append(d.subset([]string{"a", "b", "c"}, 2), "d")
		}
	default:
		s.Level = new(d.roll(3))
	}
	for range d.roll(2) * (len(s.Aggregates) + len(s.Values)) {
		s.Shares = append(s.Shares, 1+d.roll(3))
	}
	return s
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

// TestLevelsSpreadOverEqualNodes compares the choices in worlds whose hosts have
// equal nodes, where candidates have one shape.
func TestLevelsSpreadOverEqualNodes(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, _ []Provider, _ *Request) {
		units := func(class string, total int32) []Inventory {
			return []Inventory{{ResourceClass: class, Total: total, MinUnit: 1, MaxUnit: total, StepSize: 1,
				AllocationRatio: 1, Capacity: int64(total)}}
		}
		isTwice := d.chance(2) // two memories below one node
		var at []Provider
		add := func(parent string, inventories []Inventory) string {
			at = append(at, Provider{UUID: uuidOf(len(at)), Name: uuidOf(len(at)), Parent: parent, Version: 1,
				Row: rowOf(len(at)), Inventories: inventories})
			return at[len(at)-1].UUID
		}
		for range 1 + d.roll(2) {
			root := add("", units("DISK_GB", 9))
			for range 1 + d.roll(3) {
				numa, memories := add(root, units("VCPU", int32(2+d.roll(2)))), d.roll(3)
				if isTwice {
					memories = 2
				}
				for range memories {
					add(numa, units("MEMORY_MB", 1))
				}
			}
		}
		var group Group
		for _, class := range diceClasses {
			if class == "VCPU" || d.chance(2) {
				group.Resources = append(group.Resources, Amount{ResourceClass: class, Amount: 1})
			}
		}
		p := &Placing{Request: Request{Unsuffixed: group}, Consumers: make([]NewConsumer, 2+d.roll(4)),
			Policy: &Policy{Hosts: []HostPolicy{AnyHost, SameHost}[d.roll(2)],
				Spread: &ZoneSpread{Level: new(d.roll(3)), MaxSkew: 1 + d.roll(2)}}}
		if isTwice {
			one := func(suffix, class string) Group {
				return Group{Suffix: suffix, Resources: []Amount{{ResourceClass: class, Amount: 1}}}
			}
			p.Request = Request{Groups: []Group{one("A", "VCPU"), one("B", "MEMORY_MB"), one("a", "MEMORY_MB")},
				SameSubtree: []Subtree{{Suffixes: []string{"A", "B", "a"}}}}
		}
		for range d.roll(3) {
			p.Policy.Held = append(p.Policy.Held, []string{at[d.roll(len(at))].UUID})
		}
		w, kept := NewWorld(diceNames, at), new(Rankings)
		for _, p.Request.Order = range orders {
			choices, err := p.Choose(w, d.roll(3), kept)
			if err != nil {
				t.Fatal(err)
			}
			comparePolicy(t, p, at, &choices)
		}
	})
}

func comparePolicy(t *testing.T, p *Placing, at []Provider, choices *Choices) {
	t.Helper()
	r := new(p.Request)
	if r.Order == BreadthFirst { // its rounds are of the allowed candidates, so the first is as here
		r.Order = DepthFirst
	}
	before := newOracle(at).locate(p.Policy)
	on := slices.Clone(before)
	for i, choice := range choices.Of {
		o := newOracle(at)
		allowed := slices.DeleteFunc(o.firstOf(r), func(c Candidate) bool { return !o.allows(p, on, &c) })
		if (choice == nil) != (len(allowed) == 0) {
			t.Fatalf("order %d, consumer %d: %v, want one of\n%s\n%+v\n%+v\n%+v", r.Order, i,
				choice, chosen(allowed), p.Policy, r, at)
		}
		if choice == nil {
			checkExplained(t, p, o, choices.After)
			continue
		}
		got := chosen([]Candidate{*choice})
		if inTurns := r.Order == Random && i > 0; !inTurns && got != chosen(allowed[:1]) {
			t.Fatalf("order %d, consumer %d: %s, want %s\n%+v\n%+v\n%+v", r.Order, i, got,
				chosen(allowed[:1]), p.Policy, r, at)
		}
		if !slices.ContainsFunc(allowed, func(c Candidate) bool { return chosen([]Candidate{c}) == got }) ||
			o.score(r, choice.Root) != o.score(r, allowed[0].Root) ||
			!slices.Equal(choice.Alternatives, allowed[0].Alternatives) {
			t.Fatalf("order %d, consumer %d: %s is not allowed or not the best", r.Order, i, got)
		}
		at = using(at, choice)
		place := newOracle(at).placeOf(choice)
		place.roots = nil // as of another call, the providers that serve count
		for _, uuid := range place.serving {
			place.roots = append(place.roots, o.root(uuid))
		}
		on = append(on, place)
	}
	if p.Policy.Hosts != DistinctHosts || len(p.Consumers) == 1 {
		on = before
	}
	compareSpares(t, p, newOracle(at), on, choices)
}

// checkExplained checks that the last step of an explanation leaves no provider,
// and names the policy if the request alone has a candidate.
func checkExplained(t *testing.T, p *Placing, o *oracle, w *World) {
	t.Helper()
	r, steps := p.Request, p.Explain(w).Steps
	r.Order = DepthFirst
	isFirstOf := slices.ContainsFunc(append(r.Groups, r.Unsuffixed), func(g Group) bool { return len(g.FirstOf) > 0 })
	last := steps[len(steps)-1]
	if isOfPolicy := last.Path == "policy"; last.Remaining != 0 ||
		!isFirstOf && isOfPolicy != (len(o.firstOf(&r)) > 0) {
		t.Fatalf("order %d: %+v\n%+v\n%+v", p.Request.Order, steps, p.Policy, p.Request)
	}
}

// compareSpares checks that spare candidates fit, and may go next to consumers.
func compareSpares(t *testing.T, p *Placing, o *oracle, on []place, choices *Choices) {
	t.Helper()
	isRefused := func(spare Candidate) bool { return !o.fit(spare.Allocations) || !o.allows(p, on, &spare) }
	if i := slices.IndexFunc(choices.Spares, isRefused); i >= 0 {
		t.Fatalf("order %d: a spare does not fit or is not allowed: %v", p.Request.Order, choices.Spares[i])
	}
}

// TestSparesOfAPolicy places one consumer where the policy makes other hosts
// depend on the choice. If others fill the chosen host, the next ones are allowed.
func TestSparesOfAPolicy(t *testing.T) {
	t.Parallel()
	var hosts []Provider
	for i := range 3 {
		hosts = append(hosts, Provider{UUID: uuidOf(i), Name: uuidOf(i), Aggregates: []string{aggregateOf(i)},
			Inventories: []Inventory{stocked("VCPU", 8, 0)}})
	}
	w := NewWorld(diceNames, hosts)
	for _, policy := range []*Policy{
		{Hosts: SameHost},
		{Hosts: DistinctHosts},
		{Spread: &ZoneSpread{Aggregates: []string{aggregateOf(0), aggregateOf(1), aggregateOf(2)}, MaxSkew: 1}},
		{Hosts: SameHost, Spread: &ZoneSpread{Level: new(0), MaxSkew: 1}},
	} {
		p := &Placing{Policy: policy, Consumers: make([]NewConsumer, 1), Request: Request{Order: DepthFirst,
			Unsuffixed: Group{Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}}}}
		choices, err := p.Choose(w, 3, nil)
		if err != nil || choices.Of[0] == nil || len(choices.Spares) != 3 {
			t.Errorf("%+v: %s%v", policy, renderChoices(choices), err)
		}
	}
}

func TestPoliciesAreChecked(t *testing.T) {
	t.Parallel()
	var many []string
	for n := range MaxConsumers + 1 {
		many = append(many, fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
	}
	zone, level := []string{aggregateOf(1)}, new(MaxLevel+1)
	for want, p := range map[string]*Policy{
		"[]": {Hosts: SameHost, Consumers: many[1:], Spread: &ZoneSpread{Aggregates: zone, MaxSkew: 1},
			Group: &ConsumerGroup{ProjectID: "p", UserID: new("u"), Type: new("INSTANCE")}},
		"[policy.consumers[1] policy.hosts policy.spread policy.spread.maxSkew]": {
			Consumers: []string{many[1], many[1]}, Hosts: "NONE", Spread: &ZoneSpread{}},
		"[policy.consumers policy.spread.aggregates[1] policy.spread.maxSkew]": {
			Consumers: many, Spread: &ZoneSpread{Aggregates: append(zone, zone...), MaxSkew: MaxSkew + 1}},
		"[policy.spread.shares policy.spread.shares[0] policy.spread.shares[1]]": {
			Spread: &ZoneSpread{Aggregates: zone, Shares: []int{0, MaxShare + 1}, MaxSkew: 1}},
		"[policy.group.projectId policy.group.userId policy.group.type policy.spread.aggregates]": {
			Group:  &ConsumerGroup{UserID: new(""), Type: new("a b")},
			Spread: &ZoneSpread{Aggregates: []string{}, MaxSkew: 1}},
		"[policy.spread.level policy.spread policy.spread.values]": {
			Spread: &ZoneSpread{Aggregates: zone, Level: level, Values: []string{"a"}, MaxSkew: 1}},
		"[policy.spread]": {Spread: &ZoneSpread{Capability: new("rack"), Level: new(0), MaxSkew: 1}},
		"[policy.spread.values[1]]": {Spread: &ZoneSpread{Capability: new("rack"),
			Values: []string{"a", "a"}, MaxSkew: 1}},
		"[policy.spread.values]": {Spread: &ZoneSpread{Capability: new("rack"), Values: []string{}, MaxSkew: 1}},
		"[policy.spread.shares]": {Spread: &ZoneSpread{Level: new(0), Shares: []int{1}, MaxSkew: 1}},
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

// TestSparesOutlastFasterPlacings chooses for one of several placings with a
// spread, makes the others first, and looks for a choice or spare that the policy
// still allows.
func TestSparesOutlastFasterPlacings(t *testing.T) {
	t.Parallel()
	var providers []Provider
	for i := range 9 {
		providers = append(providers, Provider{UUID: uuidOf(i), Name: fmt.Sprint("host", i),
			Aggregates: []string{aggregateOf(i % 3)}, Inventories: []Inventory{stocked("VCPU", 8, 0)}})
	}
	w := NewWorld(diceNames, providers)
	r := Request{Unsuffixed: Group{Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}}, Order: Pack}
	var held [][]string
	choose := func(spares int) (*Placing, Choices) {
		p := &Placing{Request: r, Consumers: make([]NewConsumer, 1), Policy: &Policy{Held: held,
			Spread: &ZoneSpread{Aggregates: []string{aggregateOf(0), aggregateOf(1), aggregateOf(2)}, MaxSkew: 1}}}
		choices, err := p.Choose(w, spares, nil)
		if err != nil || choices.Of[0] == nil {
			t.Fatal(choices, err)
		}
		return p, choices
	}
	for fewest := range 3 {
		held = nil
		for zone := range 3 {
			if zone != fewest {
				held = append(held, []string{uuidOf(zone)})
			}
		}
		_, slow := choose(14)
		for faster := range 8 {
			p, choices := choose(0)
			tally := p.Tally(w)
			allows := func(c Candidate) bool { return tally.Allows(&c) }
			if !slices.ContainsFunc(slices.Concat(slow.Spares, slow.Following, []Candidate{*slow.Of[0]}), allows) {
				t.Errorf("after %d faster placings the policy allows no spare", faster)
			}
			held = append(held, []string{choices.Of[0].Allocations[0].Provider})
		}
	}
}
