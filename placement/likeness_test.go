package placement_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// distinct returns the candidates that a request lists: of each shape the first
// ones of the list. It tries every exchange of like providers.
func (o *oracle) distinct(r *Request, list []Candidate) (listed []Candidate) {
	if r.Distinct == DistinctNone {
		return list
	}
	exchanges := o.exchanges(r)
	before := map[string]bool{}
	for _, c := range list {
		images := map[string]bool{}
		for _, exchange := range exchanges {
			images[c.Root+render([]Candidate{exchanged(c, exchange)})] = true
		}
		earlier := 0
		for image := range images {
			if before[image] {
				earlier++
			}
		}
		if earlier < r.Alternatives {
			listed = append(listed, c)
		}
		before[c.Root+render([]Candidate{c})] = true
	}
	return listed
}

// exchanges returns every permutation of the providers that keeps the roots,
// the parents and all that the request can tell apart.
func (o *oracle) exchanges(r *Request) (all []map[string]string) {
	var try func(image map[string]string, taken map[string]bool)
	try = func(image map[string]string, taken map[string]bool) {
		if len(image) == len(o.order) {
			all = append(all, maps.Clone(image))
			return
		}
		uuid := o.order[len(image)] // parents come first
		for _, other := range o.order {
			isRoot := o.providers[uuid].Parent == ""
			if taken[other] || image[o.providers[uuid].Parent] != o.providers[other].Parent ||
				o.seen(other, r) != o.seen(uuid, r) || isRoot && uuid != other {
				continue
			}
			image[uuid], taken[other] = other, true
			try(image, taken)
			delete(image, uuid)
			delete(taken, other)
		}
	}
	try(map[string]string{}, map[string]bool{})
	return all
}

// seen writes the part of a provider that the request can tell apart.
func (o *oracle) seen(uuid string, r *Request) string {
	p, shares := o.providers[uuid], o.hasTrait(uuid, TraitShares)
	var traits, aggregates []string
	asked := map[string]bool{}
	for _, g := range append([]Group{r.Unsuffixed}, r.Groups...) {
		traits = append(append(traits, g.Forbidden...), slices.Concat(clauses(&g)...)...)
		for _, filter := range g.MemberOf {
			aggregates = append(append(aggregates, filter.AnyOf...), filter.NoneOf...)
		}
		for _, amount := range g.Resources {
			asked[amount.ResourceClass] = true
		}
	}
	var seen []string
	for _, i := range p.Inventories {
		if asked[i.ResourceClass] {
			seen = append(seen, fmt.Sprintln(i.ResourceClass, i.Used, i.Capacity, i.MinUnit, i.MaxUnit, i.StepSize))
		}
	}
	for _, trait := range p.Traits {
		if trait == TraitShares || strings.HasPrefix(trait, TaintPrefix) || slices.Contains(traits, trait) {
			seen = append(seen, trait)
		}
	}
	for _, aggregate := range p.Aggregates {
		if shares || slices.Contains(aggregates, aggregate) {
			seen = append(seen, aggregate)
		}
	}
	slices.Sort(seen)
	return fmt.Sprint(seen)
}

// exchanged returns the image of a candidate.
func exchanged(c Candidate, image map[string]string) Candidate {
	to := Candidate{Root: c.Root}
	for _, allocation := range c.Allocations {
		allocation.Provider = image[allocation.Provider]
		to.Allocations = append(to.Allocations, allocation)
	}
	slices.SortFunc(to.Allocations, func(a, b ProviderAllocation) int { return cmp.Compare(a.Provider, b.Provider) })
	for _, mapping := range c.Mappings {
		one := Mapping{Suffix: mapping.Suffix}
		for _, uuid := range mapping.Providers {
			one.Providers = append(one.Providers, image[uuid])
		}
		slices.Sort(one.Providers)
		to.Mappings = append(to.Mappings, one)
	}
	return to
}

// likeProviders returns up to 6 providers with few different contents, so that
// many are alike.
func (d *dice) likeProviders() []Provider {
	contents := []Provider{d.roomy(), d.roomy(), d.content(Provider{})}
	providers := make([]Provider, 2+d.roll(5))
	for n := range providers {
		content := contents[d.roll(8)/3]
		providers[n] = d.provider(n)
		p := &providers[n]
		p.Inventories, p.Traits, p.Aggregates = slices.Clone(content.Inventories), content.Traits, content.Aggregates
		if n > 0 && !d.chance(3) {
			p.Parent = uuidOf(d.roll(n+1) / 2) // many children of few providers
		}
		switch other := d.roomy(); d.roll(24) {
		case 1:
			p.Inventories = other.Inventories
		case 2:
			p.Traits = other.Traits
		case 3:
			p.Aggregates = other.Aggregates
		}
	}
	return providers
}

// roomy returns a content with many free units.
func (d *dice) roomy() Provider {
	p := d.content(Provider{})
	for i := range p.Inventories {
		of := &p.Inventories[i]
		of.Total, of.Reserved, of.MaxUnit, of.AllocationRatio = of.Total+2, 0, 10, 1
		of.Capacity = int64(of.Total)
	}
	if !d.chance(4) {
		p.Traits = slices.DeleteFunc(p.Traits, func(trait string) bool { return strings.HasPrefix(trait, TaintPrefix) })
	}
	return p
}

// likeRequest returns a request with few amounts and constraints.
func (d *dice) likeRequest(providers int) *Request {
	r := &Request{Policy: GroupPolicy(d.roll(2)), Seed: d.roll(9), Shapes: d.shapes(providers)}
	if d.chance(3) {
		r.Unsuffixed.Resources = []Amount{{ResourceClass: diceClasses[d.roll(3)], Amount: 1}}
	}
	for n := range 1 + d.roll(5)/2 {
		g := Group{}
		if d.chance(3) {
			g = d.group("", providers)
		}
		g.Suffix = []string{"_b", "1", "A"}[n]
		g.Resources = []Amount{{ResourceClass: diceClasses[d.roll(2)], Amount: int64(1 + d.roll(8)/5)}}
		r.Groups = append(r.Groups, g)
	}
	if d.chance(3) {
		r.SameSubtree = []Subtree{{Suffixes: []string{"top", "_b"}}}
		r.Groups = append(r.Groups, Group{Suffix: "top"})
	}
	return r
}

// eachLike checks a law on random worlds with like providers. Some requests
// prefer hosts, some have alternatives.
func eachLike(t *testing.T, law func(t *testing.T, d *dice, providers []Provider, r *Request)) {
	eachRandom(t, func(t *testing.T, d *dice, _ []Provider, _ *Request) {
		d.bytes = randomBytes(uint64(d.roll(256))<<16+uint64(d.roll(256))<<8+uint64(d.roll(256)), 900)
		providers := d.likeProviders()
		r := d.likeRequest(len(providers))
		switch d.roll(8) {
		case 1:
			r.Preferences = d.preferences(len(providers))
		case 2:
			d.alternatives(r, len(providers))
		}
		law(t, d, providers, r)
	})
}

func TestEachShapeIsListedByItsFirstCandidates(t *testing.T) {
	eachLike(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w, o := NewWorld(diceNames, providers), newOracle(providers)
		all := every(t, w, r)
		r.Distinct, r.Alternatives = DistinctShape, 1+d.roll(8)/3
		r.Order = orders[d.roll(24)/4] // the first orders are fast to check
		want := o.firstOf(r)
		for _, size := range []int{1 + d.roll(5) + len(want)/50, len(want) + 1} {
			if got := everyPage(t, w, r, size); chosen(got) != chosen(want) {
				t.Fatalf("pages of %d\nproviders %+v\nrequest %+v\nsolver:\n%s\noracle:\n%s",
					size, providers, r, chosen(got), chosen(want))
			}
		}
		if n, exact, err := Count(w, r, len(all)); n != len(want) || !exact || err != nil {
			t.Fatalf("Count says %d, %v, %v; there are %d of %d", n, exact, err, len(want), len(all))
		}
	})
}

// TestLikeDevicesAreAsTheRequestSeesThem changes one of two like devices in one
// thing. A request that can tell them apart lists both.
func TestLikeDevicesAreAsTheRequestSeesThem(t *testing.T) {
	t.Parallel()
	host, first, second := uuidOf(0), uuidOf(1), uuidOf(2)
	stock := func(total, used int64) Inventory {
		return Inventory{ResourceClass: "VCPU", Total: int32(total), MinUnit: 1, MaxUnit: 4, StepSize: 1,
			AllocationRatio: 1, Capacity: total, Used: used}
	}
	other := stock(4, 0)
	other.ResourceClass = "DISK_GB"
	change := func(change func(i *Inventory)) func(p *Provider) {
		return func(p *Provider) { change(&p.Inventories[0]) }
	}
	traits := func(names ...string) func(p *Provider) { return func(p *Provider) { p.Traits = names } }
	for name, c := range map[string]struct {
		change  func(p *Provider)
		request func(r *Request)
		listed  int
	}{
		"nothing":            {listed: 1},
		"capacity":           {change: change(func(i *Inventory) { *i = stock(5, 1) }), listed: 2},
		"use":                {change: change(func(i *Inventory) { i.Used = 1 }), listed: 2},
		"min unit":           {change: change(func(i *Inventory) { i.MinUnit = 2 }), listed: 2},
		"max unit":           {change: change(func(i *Inventory) { i.MaxUnit = 3 }), listed: 2},
		"step size":          {change: change(func(i *Inventory) { i.StepSize = 2 }), listed: 2},
		"total and reserved": {change: change(func(i *Inventory) { i.Total, i.Reserved = 5, 1 }), listed: 1},
		"another class": {change: func(p *Provider) {
			p.Inventories = append(p.Inventories, other)
		}, listed: 1},
		"a trait":               {change: traits("CUSTOM_A"), listed: 1},
		"a trait of a set":      {change: traits("CUSTOM_B"), request: anyOfTwo, listed: 2},
		"a trait that is named": {change: traits("CUSTOM_A", "CUSTOM_C"), request: anyOfTwo, listed: 1},
		"a tolerated taint":     {change: traits(diceTaints[0]), listed: 2},
		"an aggregate":          {change: func(p *Provider) { p.Aggregates = []string{aggregateOf(1)} }, listed: 1},
		"a named aggregate": {change: func(p *Provider) { p.Aggregates = []string{aggregateOf(0), aggregateOf(1)} },
			request: func(r *Request) {
				r.Groups[0].MemberOf = []AggregateFilter{{AnyOf: []string{aggregateOf(0), aggregateOf(1)}}}
			}, listed: 2},
		"a trait that another group forbids": {change: traits("CUSTOM_B"), request: func(r *Request) {
			r.Groups = append(r.Groups,
				Group{Suffix: "2", Resources: r.Groups[0].Resources, Forbidden: []string{"CUSTOM_B"}})
		}, listed: 2},
		"sharing": {change: traits(TraitShares), listed: 2},
		"a child": {change: func(p *Provider) { p.Parent = first }, listed: 2},
	} {
		providers := []Provider{{UUID: host, Name: "host", Version: 1}}
		for _, uuid := range []string{first, second} {
			providers = append(providers, Provider{UUID: uuid, Name: uuid, Version: 1, Parent: host,
				Inventories: []Inventory{stock(4, 0)}, Aggregates: []string{aggregateOf(0)}})
		}
		r := &Request{Groups: []Group{{Suffix: "1", Resources: []Amount{{ResourceClass: "VCPU", Amount: 2}}}},
			Tolerates: diceTaints[:1], Distinct: DistinctShape, Alternatives: 1}
		if c.request != nil {
			c.request(r)
			providers[1].Traits, providers[2].Traits = []string{"CUSTOM_A"}, []string{"CUSTOM_A"}
		}
		if c.change != nil {
			c.change(&providers[2])
		}
		if got := every(t, NewWorld(diceNames, providers), r); len(got) != c.listed {
			t.Errorf("%s: %d listed, want %d", name, len(got), c.listed)
		}
		r.Alternatives = 2
		if got := every(t, NewWorld(diceNames, providers), r); len(got) != 2 {
			t.Errorf("%s: %d of 2 candidates", name, len(got))
		}
	}
}

func anyOfTwo(r *Request) { r.Groups[0].RequiredAny = []string{"CUSTOM_A", "CUSTOM_B"} }

// TestSharingDevicesAreLikeWithTheSameAggregates has two pools of one storage
// tree, which serve different hosts or the same.
func TestSharingDevicesAreLikeWithTheSameAggregates(t *testing.T) {
	t.Parallel()
	for _, aggregate := range []int{0, 1} {
		var providers []Provider
		first, second := aggregateOf(0), aggregateOf(aggregate)
		for i, aggregates := range [][]string{{aggregateOf(0), aggregateOf(1)}, nil, {first}, {second}} {
			p := Provider{UUID: uuidOf(i), Name: fmt.Sprint("p", i), Version: 1, Aggregates: aggregates}
			if i > 1 {
				p.Parent, p.Traits, p.Inventories = uuidOf(1), []string{TraitShares},
					[]Inventory{stocked("DISK_GB", 10, 0)}
			}
			providers = append(providers, p)
		}
		r := &Request{Distinct: DistinctShape, Alternatives: 1}
		r.Unsuffixed.Resources = []Amount{{ResourceClass: "DISK_GB", Amount: 1}}
		if got := every(t, NewWorld(diceNames, providers), r); len(got) != 1+aggregate {
			t.Errorf("aggregate %d: %v", aggregate, got)
		}
	}
}

// TestLikeNodesHaveLikeChildrenInAnyOrder has two nodes with one large and one
// small device each. The large devices have the same place or another.
func TestLikeNodesHaveLikeChildrenInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, large := range []string{numbered(201), numbered(202)} {
		providers := nodesOfDevices(2)
		for i := range providers {
			if uuid := providers[i].UUID; uuid == numbered(101) || uuid == large {
				providers[i].Inventories = []Inventory{stocked("PGPU", 2, 0)}
			}
		}
		r := deviceGroups(1, GroupPolicyNone)
		r.Distinct, r.Alternatives = DistinctShape, 1
		if got := every(t, NewWorld(cloudNames, providers), r); len(got) != 2 {
			t.Errorf("%d shapes: %v", len(got), got)
		}
	}
}

// TestLikeDevicesAreSearchedOnce bounds the steps on like devices: of listing
// and counting all shapes, and of a search that fails late.
func TestLikeDevicesAreSearchedOnce(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, devices(8))
	r := deviceGroups(8, GroupPolicyIsolate)
	r.Distinct, r.Alternatives = DistinctShape, 1
	for _, r.Order = range orders {
		page, err := Candidates(w, r, nil, 1000)
		if err != nil || len(page.Candidates) != 1 || page.HasNext || page.Steps > 3000 {
			t.Errorf("order %d: %d candidates in %d steps, %v", r.Order, len(page.Candidates), page.Steps, err)
		}
	}
	r.Alternatives = MaxOfShape
	if n, exact, err := Count(w, r, MaxCount); n != MaxOfShape || !exact || err != nil {
		t.Errorf("Count says %d, %v, %v", n, exact, err)
	}
}

// nodesOfDevices returns a host with two nodes of n devices each.
func nodesOfDevices(n int) []Provider {
	providers := []Provider{{UUID: numbered(0), Name: "host", Version: 1}}
	for node := range 2 {
		providers = append(providers,
			Provider{UUID: numbered(100 * (node + 1)), Name: fmt.Sprint("node", node), Version: 1,
				Parent: numbered(0), Traits: []string{"CUSTOM_RARE"}})
		for i := range n {
			uuid := numbered(100*(node+1) + i + 1)
			providers = append(providers,
				Provider{UUID: uuid, Name: uuid, Version: 1, Parent: numbered(100 * (node + 1)),
					Inventories: []Inventory{stocked("PGPU", 1, 0)}})
		}
	}
	return providers
}

// TestHopelessPlacingOnLikeDevicesAnswers asks for one more device than a node
// has, all of one node. A search that tries like devices one after the other is
// too complex.
func TestHopelessPlacingOnLikeDevicesAnswers(t *testing.T) {
	t.Parallel()
	w, r := NewWorld(cloudNames, nodesOfDevices(10)), deviceGroups(11, GroupPolicyIsolate)
	subtree := []string{"_NODE"}
	for _, g := range r.Groups {
		subtree = append(subtree, g.Suffix)
	}
	r.Groups = append(r.Groups, Group{Suffix: "_NODE", RequiredAll: []string{"CUSTOM_RARE"}})
	r.SameSubtree = []Subtree{{Suffixes: subtree}}
	for _, r.Order = range orders {
		p := &Placing{Request: *r, Consumers: make([]NewConsumer, 2)}
		choices, err := p.Choose(w, 2, nil)
		if err != nil || choices.Of[0] != nil {
			t.Errorf("order %d: %v, %v", r.Order, choices.Of, err)
		}
		shaped := *r
		shaped.Distinct, shaped.Alternatives = DistinctShape, 1
		page, err := Candidates(w, &shaped, nil, 1)
		if err != nil || page.Steps > 20_000 {
			t.Errorf("order %d: %d steps, %v", r.Order, page.Steps, err)
		}
	}
}

func TestPlacingOnLikeDevicesTakesTheFirstCandidates(t *testing.T) {
	eachLike(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		r.Order = orders[d.roll(24)/4]
		p := &Placing{Request: *r, Consumers: make([]NewConsumer, 1+d.roll(4))}
		choices, err := p.Choose(NewWorld(diceNames, providers), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := compareChoices(t, p, providers, &choices)
		if r.Order != DepthFirst || len(r.Preferences) > 0 || len(choices.Spares) == 0 ||
			choices.Spares[0].Alternatives != nil {
			return
		}
		r.Order = BreadthFirst // the spares are the next hosts
		page, err := Candidates(NewWorld(diceNames, at), r, nil, 3)
		if err != nil || chosen(choices.Spares) != chosen(page.Candidates) {
			t.Errorf("spares\n%swant\n%s%v", chosen(choices.Spares), chosen(page.Candidates), err)
		}
	})
}
