package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/cadastre-dev/cadastre/placement"
)

// later is the time of providers that a what-if adds.
var later = time.Unix(9, 0).UTC()

func consumerOf(n int) string { return fmt.Sprintf("cccccccc-0000-4000-8000-0000000000%02x", n) }

// reality is a world that changes are really made in: providers by uuid, and
// the allocations of consumers.
type reality struct {
	providers map[string]Provider
	taken     map[string]bool // uuids of the providers before the changes
	held      map[string][]*Allocation
	placed    int // consumers
}

// placedConsumer returns the name of a consumer that a change places.
func placedConsumer(n int) string { return fmt.Sprintf("+%06d", n+1) }

// realityOf gives all use of the providers to three consumers.
func (d *dice) realityOf(providers []Provider) *reality {
	r := &reality{providers: map[string]Provider{}, taken: map[string]bool{}, held: map[string][]*Allocation{}}
	for _, p := range providers {
		p.Inventories = slices.Clone(p.Inventories)
		r.providers[p.UUID], r.taken[p.UUID] = p, true
		for _, inventory := range p.Inventories {
			if inventory.Used > 0 {
				consumer := consumerOf(d.roll(3))
				r.held[consumer] = append(r.held[consumer],
					&Allocation{Consumer: consumer, Provider: p.UUID,
						ResourceClass: inventory.ResourceClass, Used: inventory.Used})
			}
		}
	}
	return r
}

func (r *reality) list() []Provider {
	return slices.SortedFunc(maps.Values(r.providers), func(a, b Provider) int {
		return strings.Compare(a.UUID, b.UUID)
	})
}

func (r *reality) named(name string) string {
	for uuid, p := range r.providers {
		if p.Name == name {
			return uuid
		}
	}
	return ""
}

// subtree returns the uuids of a provider and everything below it.
func (r *reality) subtree(uuid string) []string {
	var found []string
	for _, p := range r.providers {
		for at := p.UUID; at != ""; at = r.providers[at].Parent {
			if at == uuid {
				found = append(found, p.UUID)
			}
		}
	}
	return found
}

// make makes one change, and reports whether it is allowed.
func (r *reality) make(c WhatIfChange) bool {
	switch {
	case c.AddProvider != nil:
		return r.add(c.AddProvider)
	case c.RemoveProvider != nil:
		gone := r.subtree(*c.RemoveProvider)
		for _, uuid := range gone {
			delete(r.providers, uuid)
		}
		isGone := func(a *Allocation) bool { return slices.Contains(gone, a.Provider) }
		for consumer, held := range r.held {
			r.held[consumer] = slices.DeleteFunc(slices.Clone(held), isGone)
		}
		return len(gone) > 0
	case c.DisableProvider != nil:
		return r.disable(*c.DisableProvider)
	case c.DrainProviders != nil:
		return r.drain(c.DrainProviders)
	case c.SetInventories != nil:
		return r.setInventories(c.SetInventories)
	case c.SetTraits != nil:
		p, ok := r.providers[c.SetTraits.Provider]
		if !ok || slices.Contains(c.SetTraits.Traits, "CUSTOM_NONE") {
			return false
		}
		p.Traits = slices.Compact(slices.Sorted(slices.Values(c.SetTraits.Traits)))
		r.providers[p.UUID] = p
		return true
	case c.ReleaseConsumer != nil:
		return r.release(*c.ReleaseConsumer)
	case c.MoveConsumer != nil:
		held := r.held[c.MoveConsumer.Consumer]
		return len(held) > 0 && r.put(c.MoveConsumer.Consumer, held, c.MoveConsumer.Allocations)
	}
	if !r.put(placedConsumer(r.placed), nil, c.Place) {
		return false
	}
	r.placed++
	return true
}

// disable reserves everything of a subtree.
func (r *reality) disable(uuid string) bool {
	disabled := r.subtree(uuid)
	for _, uuid := range disabled {
		for i := range r.providers[uuid].Inventories {
			of := &r.providers[uuid].Inventories[i]
			of.Reserved, of.Capacity = of.Total, 0
		}
	}
	return len(disabled) > 0
}

// drain makes the moves of a plan, and disables the trees.
func (r *reality) drain(uuids []string) bool {
	for _, uuid := range uuids {
		if _, ok := r.providers[uuid]; !ok {
			return false
		}
	}
	draining := &Draining{Providers: uuids, Strategy: DepthFirst, MovesPerHost: 1}
	plan, err := draining.Plan(NewWorld(diceNames, r.list()), r.allocations())
	if err != nil {
		return false
	}
	for _, move := range plan.Moves {
		r.put(move.Consumer, r.held[move.Consumer], move.Allocations)
	}
	for _, uuid := range uuids {
		r.disable(r.rootOf(uuid))
	}
	return true
}

func (r *reality) add(n *NewProvider) bool {
	p := Provider{UUID: *n.UUID, Name: n.Name, Inventories: slices.Clone(n.Inventories), Traits: n.Traits,
		Aggregates: n.Aggregates, CreatedAt: later, UpdatedAt: later}
	if n.Parent != nil {
		p.Parent = *n.Parent
	}
	if n.ParentName != nil {
		p.Parent = r.named(*n.ParentName)
	}
	_, present := r.providers[p.UUID]
	_, found := r.providers[p.Parent]
	if present || r.taken[p.UUID] || r.named(n.Name) != "" || (n.Parent != nil || n.ParentName != nil) && !found {
		return false
	}
	for i := range p.Inventories {
		p.Inventories[i].Used = 0
	}
	r.providers[p.UUID] = p
	return true
}

func (r *reality) setInventories(of *ProviderInventories) bool {
	p, ok := r.providers[of.Provider]
	if !ok {
		return false
	}
	used := map[string]int64{}
	for _, inventory := range p.Inventories {
		used[inventory.ResourceClass] = inventory.Used
	}
	p.Inventories = slices.Clone(of.Inventories)
	for i := range p.Inventories {
		class := p.Inventories[i].ResourceClass
		p.Inventories[i].Used = used[class]
		delete(used, class)
	}
	for _, left := range used {
		if left > 0 {
			return false
		}
	}
	r.providers[of.Provider] = p
	return true
}

func (r *reality) release(consumer string) bool {
	held := r.held[consumer]
	delete(r.held, consumer)
	for _, a := range held {
		for i := range r.providers[a.Provider].Inventories {
			if of := &r.providers[a.Provider].Inventories[i]; of.ResourceClass == a.ResourceClass {
				of.Used -= a.Used
			}
		}
	}
	return len(held) > 0
}

// put replaces the allocations that a consumer holds, if the others fit.
func (r *reality) put(consumer string, held []*Allocation, allocations []ProviderAllocation) bool {
	own := map[string]int64{}
	for _, a := range held {
		own[a.Provider+a.ResourceClass] = a.Used
	}
	for _, allocation := range allocations {
		for _, amount := range allocation.Resources {
			if !r.hasRoom(allocation.Provider, amount, own[allocation.Provider+amount.ResourceClass]) {
				return false
			}
		}
	}
	r.release(consumer)
	for _, allocation := range allocations {
		for _, amount := range allocation.Resources {
			for i := range r.providers[allocation.Provider].Inventories {
				if of := &r.providers[allocation.Provider].Inventories[i]; of.ResourceClass == amount.ResourceClass {
					of.Used += amount.Amount
				}
			}
			r.held[consumer] = append(r.held[consumer], &Allocation{Consumer: consumer, Provider: allocation.Provider,
				ResourceClass: amount.ResourceClass, Used: amount.Amount})
		}
	}
	return true
}

// hasRoom reports whether a consumer that has own units may have an amount instead.
func (r *reality) hasRoom(uuid string, amount Amount, own int64) bool {
	for _, of := range r.providers[uuid].Inventories {
		if of.ResourceClass == amount.ResourceClass {
			capacity := float64(of.Total-of.Reserved) * of.AllocationRatio
			return amount.Amount >= int64(of.MinUnit) && amount.Amount <= int64(of.MaxUnit) &&
				amount.Amount%int64(of.StepSize) == 0 && (float64(of.Used-own+amount.Amount) <= capacity ||
				float64(of.Used) > capacity && amount.Amount <= own)
		}
	}
	return false
}

// whatIf returns a random change of providers numbered below twelve, some of
// which do not exist.
func (d *dice) whatIf() WhatIfChange {
	n := d.roll(12)
	switch d.roll(9) {
	case 0:
		p := d.content(Provider{Name: fmt.Sprintf("p%d", n)})
		added := &NewProvider{Name: p.Name, UUID: new(uuidOf(n + d.roll(2))), Inventories: p.Inventories,
			Traits: p.Traits, Aggregates: p.Aggregates}
		switch parent := d.roll(12); {
		case parent == n || uuidOf(parent) == *added.UUID:
		case d.chance(3):
			added.Parent = new(uuidOf(parent))
		case d.chance(2):
			added.ParentName = new(fmt.Sprintf("p%d", parent))
		}
		return WhatIfChange{AddProvider: added}
	case 1:
		return WhatIfChange{RemoveProvider: new(uuidOf(n))}
	case 2:
		return WhatIfChange{DisableProvider: new(uuidOf(n))}
	case 3:
		return WhatIfChange{SetInventories: &ProviderInventories{Provider: uuidOf(n),
			Inventories: d.content(Provider{}).Inventories}}
	case 4:
		return WhatIfChange{SetTraits: &ProviderTraits{Provider: uuidOf(n),
			Traits: d.subset(append([]string{"CUSTOM_NONE"}, diceTraits...), 4)}}
	case 5:
		return WhatIfChange{ReleaseConsumer: new(consumerOf(d.roll(4)))}
	case 6:
		return WhatIfChange{DrainProviders: []string{uuidOf(n), uuidOf(d.roll(12))}}
	case 7:
		return WhatIfChange{MoveConsumer: &ConsumerMove{Consumer: consumerOf(d.roll(4)), Allocations: d.placeOn(n)}}
	}
	return WhatIfChange{Place: d.placeOn(n)}
}

// placeOn returns random amounts on a provider, and sometimes on another one.
func (d *dice) placeOn(n int) []ProviderAllocation {
	placed := []ProviderAllocation{{Provider: uuidOf(n),
		Resources: []Amount{{ResourceClass: diceClasses[d.roll(3)], Amount: int64(1 + d.roll(3))}}}}
	if other := d.roll(12); other != n && d.chance(2) {
		placed = append(placed, ProviderAllocation{Provider: uuidOf(other),
			Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}, {ResourceClass: "DISK_GB", Amount: 1}}})
	}
	return placed
}

// TestWhatIfIsWhatThenHappens makes random changes in a copy of a world, and
// really. The copy must equal a world built from the real providers, and must
// give the same candidates and capacities.
func TestWhatIfIsWhatThenHappens(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		done := d.realityOf(providers)
		before, held := NewWorld(diceNames, providers), maps.Clone(done.held)
		var all, good []WhatIfChange
		refused := map[int]bool{}
		for i := range 1 + d.roll(8) {
			change := d.whatIf()
			if all = append(all, change); done.make(change) {
				good = append(good, change)
			} else {
				refused[i] = true
			}
		}
		_, problems := before.WhatIf("changes", all, held, later)
		named := map[int]bool{}
		for _, p := range problems {
			var i int
			if _, err := fmt.Sscanf(p.Path, "changes[%d].", &i); err != nil {
				t.Error(p)
			}
			named[i] = true
		}
		if !maps.Equal(named, refused) {
			t.Errorf("changes %v are refused, not %v: %v\n%+v\n%+v", named, refused, problems, providers, all)
		}
		after, problems := before.WhatIf("changes", good, held, later)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		want := NewWorld(diceNames, done.list())
		compareWorlds(t, after.World, want, r)
		compareSurvival(t, after, want, done, slices.Concat(slices.Collect(maps.Values(held))...))
		compareDifference(t, after, before, want)
		if difference := differenceOf(before, NewWorld(diceNames, providers)); difference != "" {
			t.Errorf("the world before the changes: %s", difference)
		}
	})
}

// compareSurvival compares the losses of hosts in a copy of a world, in which
// consumers had allocations before, with the losses in the real one.
func compareSurvival(t *testing.T, after *Foreseen, want *World, done *reality, before []*Allocation) {
	t.Helper()
	lose := func(w *World, allocations []*Allocation) (texts []string) {
		found, err := w.Failures(FailingTogether{By: FailureOfHost}, w.Filter(ProviderFilter{})).Survive(allocations)
		if err != nil {
			t.Fatal(err)
		}
		for _, failure := range found {
			text := fmt.Sprint(failure.Name(), " ", failure.Consumers)
			for _, one := range failure.Unplaced {
				text += fmt.Sprint(" ", one.Consumer, one.Resources)
				if IsStored(one.Consumer) == strings.HasPrefix(one.Consumer, "+") {
					t.Errorf("%s is stored: %t", one.Consumer, IsStored(one.Consumer))
				}
			}
			texts = append(texts, text)
		}
		return texts
	}
	if got, want := lose(after.World, after.Allocations(before)),
		lose(want, done.allocations()); !slices.Equal(got, want) {
		t.Errorf("losses %v, want %v", got, want)
	}
}

// compareDifference compares the sums that differ with all sums of both worlds.
func compareDifference(t *testing.T, after *Foreseen, before, want *World) {
	t.Helper()
	for _, by := range []CapacityGrouping{CapacityByClass, CapacityByAggregate, CapacityByTrait, CapacityByRoot} {
		sums := func(w *World) []string { return textsOf(w.Capacities(w.Filter(ProviderFilter{}), by, nil)) }
		var now, then []*CapacitySum
		for _, difference := range after.Difference(by) {
			if difference.Now != nil {
				now = append(now, difference.Now)
			}
			if difference.Then != nil {
				then = append(then, difference.Then)
			}
		}
		without := func(texts, others []string) []string {
			return slices.DeleteFunc(texts, func(text string) bool { return slices.Contains(others, text) })
		}
		wantNow, wantThen := without(sums(before), sums(want)), without(sums(want), sums(before))
		if got := textsOf(now); !slices.Equal(got, wantNow) {
			t.Errorf("before, by %s: %q, want %q", by, got, wantNow)
		}
		if got := textsOf(then); !slices.Equal(got, wantThen) {
			t.Errorf("after, by %s: %q, want %q", by, got, wantThen)
		}
	}
}

// compareWorlds compares the providers, candidates and capacities of two worlds.
func compareWorlds(t *testing.T, got, want *World, r *Request) {
	t.Helper()
	if difference := differenceOf(got, want); difference != "" {
		t.Error(difference)
	}
	if got, want := render(every(t, got, r)), render(every(t, want, r)); got != want {
		t.Errorf("candidates\n%s\nwant\n%s", got, want)
	}
	for _, by := range []CapacityGrouping{CapacityByClass, CapacityByAggregate, CapacityByTrait, CapacityByRoot} {
		sums := func(w *World) []string { return textsOf(w.Capacities(w.Filter(ProviderFilter{}), by, nil)) }
		if !slices.Equal(sums(got), sums(want)) {
			t.Errorf("capacities by %s: %q, want %q", by, sums(got), sums(want))
		}
	}
}

func TestWhatIfNamesEveryProblem(t *testing.T) {
	t.Parallel()
	providers := family()
	providers[0].Inventories = []Inventory{stocked("VCPU", 4, 3)}
	w := NewWorld(diceNames, providers)
	vcpus := func(n int64) []ProviderAllocation {
		return []ProviderAllocation{{Provider: uuidOf(3), Resources: []Amount{{ResourceClass: "VCPU", Amount: n}}}}
	}
	_, problems := w.WhatIf("changes", []WhatIfChange{
		{AddProvider: &NewProvider{Name: "root", Inventories: []Inventory{stocked("NONE", 1, 0)},
			Traits: []string{"NONE"}}},
		{AddProvider: &NewProvider{Name: "new", Resource: new(uuidOf(7)), ParentName: new("new2")}},
		{RemoveProvider: new(uuidOf(9))},
		{DisableProvider: new(uuidOf(9))},
		{SetInventories: &ProviderInventories{Provider: uuidOf(3)}},
		{SetInventories: &ProviderInventories{Provider: uuidOf(9), Inventories: []Inventory{stocked("VCPU", 0, 0)}}},
		{SetTraits: &ProviderTraits{Provider: uuidOf(9), Traits: []string{"x"}}},
		{ReleaseConsumer: new(consumerOf(0))},
		{Place: []ProviderAllocation{}},
		{Place: vcpus(2)},
		{Place: vcpus(1)},
		{Place: vcpus(1)},
		{Place: []ProviderAllocation{{Provider: uuidOf(9), Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}},
			{Provider: uuidOf(1), Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}}}},
		{MoveConsumer: &ConsumerMove{Consumer: consumerOf(0), Allocations: vcpus(2)}},
		{DrainProviders: []string{}},
		{DrainProviders: []string{uuidOf(3), uuidOf(9)}},
		{Place: vcpus(1)},
	}, nil, later)
	want := []string{
		`changes[0].addProvider.name: resource provider named "root" already exists`,
		`changes[0].addProvider.traits[0]: unknown trait "NONE"`,
		`changes[0].addProvider.inventories[0].resourceClass: unknown resource class "NONE"`,
		`changes[1].addProvider.parentName: resource provider "new2" does not exist`,
		`changes[1].addProvider.resource: resource ` + uuidOf(7) + ` does not exist`,
		`changes[2].removeProvider: resource provider ` + uuidOf(9) + ` does not exist`,
		`changes[3].disableProvider: resource provider ` + uuidOf(9) + ` does not exist`,
		`changes[4].setInventories.inventories: resource provider ` + uuidOf(3) + ` has allocations of VCPU`,
		`changes[5].setInventories.inventories[0].total: must be between 1 and 2147483647`,
		`changes[5].setInventories.inventories[0].maxUnit: must be between 1 and 2147483647`,
		`changes[5].setInventories.provider: resource provider ` + uuidOf(9) + ` does not exist`,
		`changes[6].setTraits.traits[0]: must be 1 to 255 of A-Z, 0-9 and _`,
		`changes[6].setTraits.provider: resource provider ` + uuidOf(9) + ` does not exist`,
		`changes[7].releaseConsumer: consumer ` + consumerOf(0) + ` has no allocations`,
		`changes[8].place: must name at least one provider`,
		`changes[9].place[0].resources[0].amount: the amount exceeds the inventory's free capacity`,
		`changes[11].place[0].resources[0].amount: the amount exceeds the inventory's free capacity`,
		`changes[12].place[0].provider: resource provider ` + uuidOf(9) + ` does not exist`,
		`changes[12].place[1].resources[0].amount: the provider has no inventory of the class`,
		`changes[13].moveConsumer.allocations[0].resources[0].amount: the amount exceeds the inventory's free capacity`,
		`changes[13].moveConsumer.consumer: consumer ` + consumerOf(0) + ` has no allocations`,
		`changes[14].drainProviders: must name at least one provider`,
		`changes[15].drainProviders[1]: resource provider ` + uuidOf(9) + ` does not exist`,
		`changes[16].place[0].resources[0].amount: the amount exceeds the inventory's free capacity`,
	}
	if got := texts(problems); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatIfIsLimited(t *testing.T) {
	t.Parallel()
	providers := []Provider{{UUID: numbered(0), Name: "root"}}
	for i := range 100 {
		providers = append(providers, Provider{UUID: numbered(i + 1), Name: fmt.Sprint(i), Parent: numbered(0)})
	}
	w := NewWorld(diceNames, providers)
	disable := slices.Repeat([]WhatIfChange{{DisableProvider: new(numbered(0))}}, MaxWhatIfChanges+1)
	_, problems := w.WhatIf("changes", disable, nil, later)
	if got := texts(problems); !slices.Equal(got, []string{"changes: has 1001 entries, at most 1000 are allowed"}) {
		t.Errorf("%q", got)
	}
	_, problems = w.WhatIf("changes", disable[:101], nil, later)
	if got := texts(problems); !slices.Equal(got,
		[]string{"changes[100].disableProvider: the changes concern more than 10000 providers"}) {
		t.Errorf("%q", got)
	}
	if _, problems = w.WhatIf("changes", disable[:100], nil, later); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestAddedProvidersKeepTheirUUIDs makes one what-if twice.
func TestAddedProvidersKeepTheirUUIDs(t *testing.T) {
	t.Parallel()
	var uuids []string
	for range 2 {
		after, problems := NewWorld(diceNames, family()).WhatIf("changes", []WhatIfChange{
			{AddProvider: &NewProvider{Name: "new"}},
			{AddProvider: &NewProvider{Name: "newer", ParentName: new("new")}}}, nil, later)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		added, _ := after.ProviderNamed("newer")
		uuids = append(uuids, added.UUID+added.Parent)
	}
	if uuids[0] != uuids[1] {
		t.Errorf("%q", uuids)
	}
}

// TestAPlacedConsumerLeavesWithItsProvider adds a provider again after its
// consumer was removed with it.
func TestAPlacedConsumerLeavesWithItsProvider(t *testing.T) {
	t.Parallel()
	uuid := uuidOf(9)
	added := &NewProvider{Name: "new", UUID: &uuid,
		Inventories: []Inventory{{ResourceClass: "VCPU", Total: 4, MinUnit: 1,
			MaxUnit: 4, StepSize: 1, AllocationRatio: 1}}}
	place := []ProviderAllocation{{Provider: uuid, Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}}}
	after, problems := NewWorld(diceNames, nil).
		WhatIf("changes", []WhatIfChange{{AddProvider: added}, {Place: place},
			{RemoveProvider: &uuid}, {AddProvider: added}}, nil, later)
	if len(problems) > 0 || len(after.Allocations(nil)) > 0 {
		t.Error(problems, after.Allocations(nil))
	}
}
