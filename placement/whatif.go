package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// MaxWhatIfChanges is the maximum number of changes of one what-if.
const MaxWhatIfChanges = 1000

// MaxWhatIfProviders is the maximum number of descendants of the providers that
// the changes of one what-if remove or disable. A descendant counts again for
// each change.
const MaxWhatIfProviders = 10_000

// WhatIfChange is a change of a world that is not stored. Exactly one field is
// set. It follows `WhatIfChangeInput`.
type WhatIfChange struct {
	AddProvider *NewProvider
	// RemoveProvider is the uuid of a provider to remove with its subtree and
	// all allocations on it.
	RemoveProvider *string
	// DisableProvider is the uuid of a provider to reserve completely, with its
	// subtree. Allocations stay.
	DisableProvider *string
	// DrainProviders are uuids of providers. Their trees are disabled after their
	// consumers have moved as a Draining in DepthFirst order says.
	DrainProviders []string
	SetInventories *ProviderInventories
	SetTraits      *ProviderTraits
	// ReleaseConsumer is the uuid of a consumer whose allocations are removed.
	ReleaseConsumer *string
	MoveConsumer    *ConsumerMove
	// Place has the amounts of one more consumer.
	Place []ProviderAllocation
}

// ConsumerMove has all allocations of a consumer after a WhatIfChange.
type ConsumerMove struct {
	Consumer    string // uuid
	Allocations []ProviderAllocation
}

// Foreseen is a World with changes, the World before them, and the consumers
// that they released, moved and placed.
type Foreseen struct {
	*World
	Before   *World
	released map[string][]*Allocation // stored allocations of released and moved consumers
	placed   map[string][]*Allocation // by provider
}

// foreseenPrefix begins the names of consumers that a WhatIfChange places. No uuid
// begins with it.
const foreseenPrefix = "+"

// Allocations returns the stored allocations of consumers without the released
// ones, and with the allocations of all placed consumers. It overwrites stored.
// A nil Foreseen returns stored.
func (f *Foreseen) Allocations(stored []*Allocation) []*Allocation {
	if f == nil {
		return stored
	}
	held := slices.DeleteFunc(stored, func(a *Allocation) bool { return f.released[a.Consumer] != nil })
	for _, provider := range slices.Sorted(maps.Keys(f.placed)) {
		held = append(held, f.placed[provider]...)
	}
	return held
}

// Around returns the uuids of some providers, and of all providers that stored
// the allocations of consumers which the changes moved. A nil Foreseen returns
// the providers.
func (f *Foreseen) Around(providers []string) []string {
	if f == nil || providers == nil || len(f.released) == 0 {
		return providers
	}
	around := slices.Clone(providers)
	for _, allocations := range f.released {
		for _, a := range allocations {
			around = append(around, a.Provider)
		}
	}
	return sortedSet(around)
}

// CapacityDifference is a sum of capacity before and after changes. Now or Then
// is nil if no provider has the class and group.
type CapacityDifference struct{ Now, Then *CapacitySum }

// Difference returns the sums that the changes change, in the order of
// Capacities.
func (f *Foreseen) Difference(by CapacityGrouping) []CapacityDifference {
	sums := func(w *World) []*CapacitySum { return w.Capacities(w.Filter(ProviderFilter{}), by, nil) }
	now, then := sums(f.Before), sums(f.World)
	differences := []CapacityDifference{}
	for len(now)+len(then) > 0 {
		var d CapacityDifference
		if len(then) == 0 || len(now) > 0 && compareSums(now[0], then[0]) <= 0 {
			d.Now = now[0]
		}
		if len(now) == 0 || len(then) > 0 && compareSums(then[0], now[0]) <= 0 {
			d.Then, then = then[0], then[1:]
		}
		if d.Now != nil {
			now = now[1:]
		}
		if d.Now == nil || d.Then == nil || !d.Now.hasAmountsOf(d.Then) {
			differences = append(differences, d)
		}
	}
	return differences
}

// WhatIf returns the World after changes, made in order. held has all
// allocations of the consumers that they release and move, and of the consumers
// on the trees that they drain; now is the time of the providers that they add.
// Generations stay. A provider without a uuid gets one that depends on its name
// alone, so that positions stay valid.
//
// If a change has a problem, WhatIf returns nil and every problem, each at its
// path below path ("changes"). A change with problems has no effect on the
// changes after it.
func (w *World) WhatIf(path string, changes []WhatIfChange, held map[string][]*Allocation,
	now time.Time) (*Foreseen, []Problem) {
	var v validator
	v.atMost(MaxWhatIfChanges, path, len(changes))
	if len(v.problems) > 0 {
		return nil, v.problems
	}
	d := &draft{World: w, held: held, now: now, states: map[string]*Provider{}, removed: map[string]bool{},
		named: map[string]string{}, released: map[string][]*Allocation{}, placed: map[string][]*Allocation{}}
	for i := range changes {
		v.problems = append(v.problems, d.change(at(path, i), &changes[i])...)
	}
	if len(v.problems) > 0 {
		return nil, v.problems
	}
	next := d.changed()
	text, _ := json.Marshal(changes) // equal for equal changes
	next.Assumption = uuid.NewSHA1(uuid.Nil, text).String()
	return &Foreseen{next, w, d.released, d.placed}, nil
}

// changed returns the World with the changes so far.
func (d *draft) changed() *World {
	update := Update{Deleted: slices.Sorted(maps.Keys(d.removed))}
	for _, uuid := range slices.Sorted(maps.Keys(d.states)) {
		update.Providers = append(update.Providers, *d.states[uuid])
	}
	return d.With(update)
}

// draft is a World with the changes so far. They become an Update at the end,
// because the cost of each Update depends on the sizes of its trees.
type draft struct {
	*World
	held      map[string][]*Allocation
	now       time.Time
	states    map[string]*Provider // changed and added providers by uuid
	removed   map[string]bool      // uuids of removed providers of the World
	added     []string             // uuids of added providers, parents first
	named     map[string]string    // uuids of added providers by name
	released  map[string][]*Allocation
	placed    map[string][]*Allocation
	consumers int // that are placed
	visited   int // number of providers below removed and disabled providers
}

// change makes one change. If the change has problems, it only returns these.
func (d *draft) change(path string, c *WhatIfChange) []Problem {
	switch {
	case c.AddProvider != nil:
		return d.add(under(path, "addProvider"), *c.AddProvider)
	case c.RemoveProvider != nil:
		return d.eachBelow(under(path, "removeProvider"), *c.RemoveProvider, d.remove)
	case c.DisableProvider != nil:
		return d.eachBelow(under(path, "disableProvider"), *c.DisableProvider, d.disable)
	case c.DrainProviders != nil:
		return d.drain(under(path, "drainProviders"), c.DrainProviders)
	case c.SetInventories != nil:
		of := c.SetInventories
		return d.replace(under(path, "setInventories"),
			&Replacement{Provider: &of.Provider, Inventories: append([]Inventory{}, of.Inventories...)})
	case c.SetTraits != nil:
		of := c.SetTraits
		return d.replace(under(path, "setTraits"),
			&Replacement{Provider: &of.Provider, Traits: append([]string{}, of.Traits...)})
	case c.ReleaseConsumer != nil:
		return d.release(under(path, "releaseConsumer"), *c.ReleaseConsumer)
	case c.MoveConsumer != nil:
		return d.move(under(path, "moveConsumer"), c.MoveConsumer)
	}
	return d.place(under(path, "place"), c.Place)
}

// provider returns a provider after the changes so far.
func (d *draft) provider(uuid string) (*Provider, bool) {
	if state := d.states[uuid]; state != nil {
		return state, true
	}
	if d.removed[uuid] {
		return nil, false
	}
	return d.Provider(uuid)
}

// providerAt is provider, with a problem at path if there is no such provider.
func (d *draft) providerAt(path, uuid string) (*Provider, []Problem) {
	if found, ok := d.provider(uuid); ok {
		return found, nil
	}
	return nil, []Problem{{Path: path, Message: fmt.Sprintf("resource provider %s does not exist", uuid)}}
}

// uuidNamed returns the uuid of the provider with a name, "" for none.
func (d *draft) uuidNamed(name string) string {
	if uuid := d.named[name]; uuid != "" {
		return uuid
	}
	if found, ok := d.ProviderNamed(name); ok && !d.removed[found.UUID] {
		return found.UUID
	}
	return ""
}

// add adds a provider. It keeps the rules of creation, except that uuids of
// removed providers are not available: the store still has their allocations.
func (d *draft) add(path string, n NewProvider) []Problem {
	if n.UUID == nil {
		n.UUID = new(uuid.NewSHA1(uuid.Nil, []byte(n.Name)).String())
	}
	existing := Existing{UUIDs: map[string]bool{}, Names: map[string]string{n.Name: d.uuidNamed(n.Name)},
		KnownNames: d.known(n.Inventories, n.Traits)}
	if n.Parent != nil {
		_, existing.UUIDs[*n.Parent] = d.provider(*n.Parent)
	}
	if n.ParentName != nil {
		existing.Names[*n.ParentName] = d.uuidNamed(*n.ParentName)
	}
	_, present := d.provider(*n.UUID)
	existing.UUIDs[*n.UUID] = present || d.removed[*n.UUID]
	if problems := existing.Admit(&n, path); len(problems) > 0 {
		return problems
	}
	added := n.Provider()
	added.Parent = existing.ParentOf(&n)
	added.CreatedAt, added.UpdatedAt = d.now, d.now
	d.states[added.UUID], d.named[added.Name] = &added, added.UUID
	d.added = append(d.added, added.UUID)
	return nil
}

// known returns which of the classes of inventories and of the traits exist.
func (d *draft) known(inventories []Inventory, traits []string) KnownNames {
	known := KnownNames{Traits: map[string]bool{}, ResourceClasses: map[string]bool{}}
	for _, name := range traits {
		known.Traits[name] = d.HasTrait(name)
	}
	for _, inventory := range inventories {
		known.ResourceClasses[inventory.ResourceClass] = d.HasResourceClass(inventory.ResourceClass)
	}
	return known
}

// eachBelow calls do with each provider of a subtree, or returns the problems of
// below.
func (d *draft) eachBelow(path, uuid string, do func(*Provider)) []Problem {
	top, problems := d.providerAt(path, uuid)
	if len(problems) > 0 {
		return problems
	}
	subtree, problems := d.below(path, uuid)
	if len(problems) > 0 {
		return problems
	}
	do(top)
	for _, provider := range subtree {
		do(provider)
	}
	return nil
}

// below returns the descendants of a provider after the changes so far, or a
// problem beyond MaxWhatIfProviders.
func (d *draft) below(path, uuid string) ([]*Provider, []Problem) {
	var below []*Provider
	isBelow := map[string]bool{uuid: true}
	top := &node{}
	if id, ok := d.byUUID.get(uuid); ok {
		top = d.nodes.at(id)
		members := top.tree.members[top.index+1 : top.tree.ends[top.index]]
		if d.visited += len(members); d.visited > MaxWhatIfProviders {
			return nil, []Problem{{Path: path,
				Message: fmt.Sprintf("the changes concern more than %d providers", MaxWhatIfProviders)}}
		}
		for _, member := range members {
			provider := d.nodes.at(member).provider
			if state := d.states[provider.UUID]; state != nil {
				provider = state
			}
			if !d.removed[provider.UUID] {
				below = append(below, provider)
			}
		}
	}
	for _, added := range d.added {
		state := d.states[added]
		if state == nil || isBelow[added] {
			continue
		}
		id, ok := d.byUUID.get(state.Parent)
		if isBelow[state.Parent] || ok && top.covers(d.nodes.at(id)) {
			isBelow[added] = true
			below = append(below, state)
		}
	}
	return below, nil
}

func (d *draft) remove(provider *Provider) {
	if _, ok := d.Provider(provider.UUID); ok {
		d.removed[provider.UUID] = true
	}
	if d.named[provider.Name] == provider.UUID {
		delete(d.named, provider.Name)
	}
	delete(d.states, provider.UUID)
	delete(d.placed, provider.UUID)
}

// disable reserves all inventories of a provider.
func (d *draft) disable(provider *Provider) {
	state := d.edit(provider)
	for i := range state.Inventories {
		of := &state.Inventories[i]
		of.Reserved = of.Total
		of.Capacity = Capacity(of.Total, of.Reserved, of.AllocationRatio)
	}
}

// edit returns the state of a provider, for writing to it and its inventories.
func (d *draft) edit(provider *Provider) *Provider {
	if state := d.states[provider.UUID]; state != nil {
		return state
	}
	state := *provider
	state.Inventories = slices.Clone(provider.Inventories)
	d.states[provider.UUID] = &state
	return &state
}

// replace replaces the inventories or the traits of a provider.
func (d *draft) replace(path string, r *Replacement) []Problem {
	before, unknown := d.providerAt(under(path, "provider"), *r.Provider)
	if problems := append(r.Validate(path, d.known(r.Inventories, r.Traits)), unknown...); len(problems) > 0 {
		return problems
	}
	state := d.edit(before)
	after, _, inUse := r.On(state)
	if len(inUse) > 0 {
		return []Problem{{Path: under(path, "inventories"),
			Message: fmt.Sprintf("resource provider %s has allocations of %s", state.UUID, strings.Join(inUse, ", "))}}
	}
	state.Inventories, state.Traits = after.Inventories, after.Traits
	return nil
}

// holds returns the allocations of a consumer after the changes so far. The
// allocations on removed providers are gone.
func (d *draft) holds(consumer string) []*Allocation {
	if d.released[consumer] == nil && d.held[consumer] != nil {
		isGone := func(a *Allocation) bool { return d.removed[a.Provider] }
		return slices.DeleteFunc(slices.Clone(d.held[consumer]), isGone)
	}
	var held []*Allocation
	for _, allocations := range d.placed {
		for _, a := range allocations {
			if a.Consumer == consumer {
				held = append(held, a)
			}
		}
	}
	return held
}

// holdings returns the allocations of a consumer, or a problem if it has none.
func (d *draft) holdings(path, consumer string) ([]*Allocation, []Problem) {
	if held := d.holds(consumer); len(held) > 0 {
		return held, nil
	}
	return nil, []Problem{{Path: path, Message: fmt.Sprintf("consumer %s has no allocations", consumer)}}
}

// release removes the allocations of a consumer.
func (d *draft) release(path, consumer string) []Problem {
	held, problems := d.holdings(path, consumer)
	d.take(consumer, held)
	return problems
}

// take removes the allocations that a consumer holds.
func (d *draft) take(consumer string, held []*Allocation) {
	for _, a := range held {
		if provider, ok := d.provider(a.Provider); ok {
			d.edit(provider).use(a.ResourceClass, -a.Used)
		}
		isTaken := func(placed *Allocation) bool { return placed == a }
		d.placed[a.Provider] = slices.DeleteFunc(d.placed[a.Provider], isTaken)
	}
	if d.released[consumer] == nil && d.held[consumer] != nil {
		d.released[consumer] = d.held[consumer]
	}
}

// move replaces the allocations of a consumer.
func (d *draft) move(path string, m *ConsumerMove) []Problem {
	held, unknown := d.holdings(under(path, "consumer"), m.Consumer)
	problems := append(d.check(under(path, "allocations"), held, m.Allocations), unknown...)
	if len(problems) == 0 {
		d.put(m.Consumer, held, m.Allocations)
	}
	return problems
}

// place adds the amounts of one consumer.
func (d *draft) place(path string, allocations []ProviderAllocation) []Problem {
	problems := d.check(path, nil, allocations)
	if len(problems) == 0 {
		d.consumers++
		d.put(fmt.Sprintf("%s%06d", foreseenPrefix, d.consumers), nil, allocations)
	}
	return problems
}

// drain moves the consumers of trees elsewhere, and disables the trees.
// Consumers that do not fit elsewhere, or whose move would be refused, stay.
func (d *draft) drain(path string, uuids []string) []Problem {
	var v validator
	v.require(len(uuids) > 0, path, "must name at least one provider")
	v.atMost(MaxDrainedProviders, path, len(uuids))
	for i, uuid := range uuids {
		_, problems := d.providerAt(at(path, i), uuid)
		v.problems = append(v.problems, problems...)
	}
	if len(v.problems) > 0 {
		return v.problems
	}
	world := d.changed()
	draining := &Draining{Providers: uuids, Strategy: DepthFirst, MovesPerHost: 1}
	stored := slices.Concat(slices.Collect(maps.Values(d.held))...)
	plan, err := draining.Plan(world, (&Foreseen{released: d.released, placed: d.placed}).Allocations(stored))
	if err != nil {
		v.add(path, "%s", strings.TrimPrefix(err.Error(), "placement: "))
		return v.problems
	}
	for _, move := range plan.Moves {
		held := d.holds(move.Consumer)
		if len(d.check(path, held, move.Allocations)) == 0 { // an allocation that stays can break a newer rule
			d.put(move.Consumer, held, move.Allocations)
		}
	}
	for tree := range draining.trees(world) {
		if problems := d.eachBelow(path, tree.root, d.disable); len(problems) > 0 {
			return problems
		}
	}
	return nil
}

// check returns every problem of allocations that a consumer is to have instead
// of the ones that it holds.
func (d *draft) check(path string, held []*Allocation, allocations []ProviderAllocation) []Problem {
	v := validator{world: d.World}
	v.require(len(allocations) > 0, path, "must name at least one provider")
	v.checkAllocations(path, allocations)
	if len(v.problems) > 0 {
		return v.problems
	}
	own := map[claimOf]int64{}
	for _, a := range held {
		own[claimOf{a.Provider, a.ResourceClass}] = a.Used
	}
	for i, allocation := range allocations {
		provider, problems := d.providerAt(under(at(path, i), "provider"), allocation.Provider)
		if v.problems = append(v.problems, problems...); provider == nil {
			continue
		}
		for k, amount := range allocation.Resources {
			check := provider.check(amount, own[claimOf{provider.UUID, amount.ResourceClass}])
			v.require(check == AllocationFits, under(at(under(at(path, i), "resources"), k), "amount"), string(check))
		}
	}
	return v.problems
}

// put replaces the allocations that a consumer holds.
func (d *draft) put(consumer string, held []*Allocation, allocations []ProviderAllocation) {
	d.take(consumer, held)
	for _, allocation := range allocations {
		provider, _ := d.provider(allocation.Provider)
		for _, amount := range allocation.Resources {
			d.edit(provider).use(amount.ResourceClass, amount.Amount)
			d.placed[provider.UUID] = append(d.placed[provider.UUID], &Allocation{Consumer: consumer,
				Provider: provider.UUID, ResourceClass: amount.ResourceClass, Used: amount.Amount})
		}
	}
}

// claimOf names an inventory.
type claimOf struct{ provider, class string }

// check checks whether the provider has room for an amount of a consumer that has
// own units of the inventory.
func (p *Provider) check(amount Amount, own int64) AllocationCheck {
	for _, of := range p.Inventories {
		if of.ResourceClass == amount.ResourceClass {
			return CheckAllocation(of, of.Used-own, own, amount.Amount)
		}
	}
	return NoInventory
}

// use adds an amount to the use of an inventory.
func (p *Provider) use(class string, amount int64) {
	for i := range p.Inventories {
		if p.Inventories[i].ResourceClass == class {
			p.Inventories[i].Used += amount
		}
	}
}
