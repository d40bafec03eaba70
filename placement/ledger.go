package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Ledger decides about claims, one after the other, and computes what they
// change. It begins with the part of the allocations that the claims concern.
// The caller reads that part and keeps it locked until the changes are written.
type Ledger struct {
	consumers map[string]*LedgerConsumer
	providers map[string]*LedgerProvider
	touched   map[string]bool
	found     map[AllocationKey]bool
	limits    []Limit
}

// LedgerConsumer is a consumer in a Ledger. Its Generation is 0 if it does not
// exist. Created reports whether a claim of the ledger created it, possibly
// after another claim deleted a consumer of the same uuid. HasEnded reports
// whether ExpiresAt had passed when the caller read the consumer.
type LedgerConsumer struct {
	ProjectID   string
	UserID      string
	Type        *string
	Generation  int64
	Allocations map[AllocationKey]int64
	Mappings    []Mapping // by suffix
	Created     bool
	ExpiresAt   *time.Time // the end of a hold, else nil
	HasEnded    bool
}

// LedgerProvider is a provider in a Ledger. It has the generation that the
// caller read, the number of increments since, and the inventories with their
// use, by resource class. Traits has the provider's traits that some limit
// names.
type LedgerProvider struct {
	Generation  int64
	Increments  int64
	Inventories map[string]Inventory
	Traits      map[string]bool
}

// AllocationKey identifies an allocation of a consumer: the provider's uuid and
// the resource class.
type AllocationKey struct {
	Provider      string
	ResourceClass string
}

// SortedKeys returns the keys of the consumer's allocations by provider, then
// class.
func (c LedgerConsumer) SortedKeys() []AllocationKey {
	return slices.SortedFunc(maps.Keys(c.Allocations), func(a, b AllocationKey) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ResourceClass, b.ResourceClass))
	})
}

// NewLedger returns a ledger of the consumers that exist, with all of their
// allocations, and of the providers that exist. It keeps and changes the maps.
func NewLedger(consumers map[string]*LedgerConsumer, providers map[string]*LedgerProvider) *Ledger {
	return &Ledger{consumers: consumers, providers: providers,
		touched: map[string]bool{}, found: map[AllocationKey]bool{}}
}

// Trial returns a copy of the ledger for claims that change no other providers
// than the given ones. Claims of the copy leave the original as is.
func (l *Ledger) Trial(changing []string) *Ledger {
	trial := NewLedger(maps.Clone(l.consumers), maps.Clone(l.providers))
	maps.Copy(trial.touched, l.touched)
	maps.Copy(trial.found, l.found)
	trial.limits = slices.Clone(l.limits)
	for _, uuid := range changing {
		if provider := l.providers[uuid]; provider != nil {
			held := *provider
			held.Inventories = maps.Clone(provider.Inventories)
			trial.providers[uuid] = &held
		}
	}
	return trial
}

// Written returns the uuids of the consumers that claims wrote or that were
// released, sorted.
func (l *Ledger) Written() []string { return slices.Sorted(maps.Keys(l.touched)) }

// IsFound reports whether a claim with AsFound has allocated from an inventory,
// whose use may then exceed its capacity.
func (l *Ledger) IsFound(key AllocationKey) bool { return l.found[key] }

// Consumer returns the consumer after the claims so far; its Generation is 0 if
// it does not exist.
func (l *Ledger) Consumer(uuid string) LedgerConsumer {
	if consumer := l.consumers[uuid]; consumer != nil {
		return *consumer
	}
	return LedgerConsumer{}
}

// Provider returns the provider after the claims so far, nil if it does not
// exist.
func (l *Ledger) Provider(uuid string) *LedgerProvider { return l.providers[uuid] }

// Refusal is a reason why an operation on the ledger did not happen, for
// example a claim. Its kind decides which error the user gets.
type Refusal struct {
	Kind RefusalKind
	Problem
}

// RefusalKind is the kind of a Refusal. If refusals are of several kinds, only
// the lowest is reported.
type RefusalKind int

const (
	// UnknownReference refuses an input that names a provider or resource class
	// that does not exist.
	UnknownReference RefusalKind = iota
	// GenerationConflict refuses an input whose generation is out of date, or a
	// move whose amounts are.
	GenerationConflict
	// CapacityExceeded refuses an amount that an inventory cannot take, or for
	// which there is no inventory.
	CapacityExceeded
	// InventoryInUse refuses to remove an inventory with allocations.
	InventoryInUse
	// NotHeld refuses to confirm or delete a consumer that does not exist, or to
	// confirm one whose hold has ended.
	NotHeld
	// LimitExceeded refuses a claim that raises the use of a project above a
	// limit.
	LimitExceeded
)

type refusals []Refusal

func (r *refusals) add(kind RefusalKind, path, format string, args ...any) {
	*r = append(*r, Refusal{Kind: kind, Problem: Problem{Path: path, Message: fmt.Sprintf(format, args...)}})
}

func (r *refusals) addUnknown(of Problem) {
	*r = append(*r, Refusal{Kind: UnknownReference, Problem: of})
}

// ofLowestKind returns the refusals of the lowest kind in their order.
func (r refusals) ofLowestKind() []Refusal {
	lowest := slices.MinFunc(r, func(a, b Refusal) int { return cmp.Compare(a.Kind, b.Kind) }).Kind
	return slices.DeleteFunc(r, func(one Refusal) bool { return one.Kind != lowest })
}

// Known reports whether things exist that the ledger does not hold.
type Known struct {
	// ResourceClass is called by a claim only for classes that the provider has
	// no inventory of, and by a reshape for the classes of all new inventories.
	ResourceClass func(name string) bool
	// Provider is called only for providers that mappings name and the ledger
	// does not hold.
	Provider func(uuid string) bool
}

// Claim applies all of a valid claim and returns nil, or returns why it is
// refused and leaves the ledger unchanged. The refusals are of one kind, in the
// order of the input (LimitExceeded: of the limits), each at its path below
// path ("input").
func (l *Ledger) Claim(claim *Claim, path string, known Known) []Refusal {
	return l.apply(claim, under(path, "consumers"), known)
}

func (l *Ledger) apply(claim *Claim, path string, known Known) []Refusal {
	claims := claim.Consumers
	c := &claimCheck{Ledger: l, known: known, asFound: claim.AsFound,
		previous: map[AllocationKey]int64{}, planned: map[AllocationKey]int64{}}
	for i := range claims {
		for key, used := range l.Consumer(claims[i].UUID).Allocations {
			c.previous[key] += used
		}
	}
	for i := range claims {
		c.checkConsumer(&claims[i], at(path, i))
	}
	if len(c.refusals) == 0 && !claim.BeyondLimits && !claim.AsFound {
		c.checkLimits(claims, path)
	}
	if len(c.refusals) > 0 {
		return c.refusals.ofLowestKind()
	}
	if claim.AsFound {
		for key := range c.planned {
			l.found[key] = true
		}
	}
	touched := map[string]bool{}
	for i := range claims {
		l.write(&claims[i], touched)
	}
	for uuid := range touched {
		l.providers[uuid].Increments++
	}
	return nil
}

// claimCheck decides about one claim without changing the ledger. Previous
// holds, by inventory, the sum of the amounts that the claim's consumers had.
// Planned holds the sum of the claim's amounts that are already checked.
type claimCheck struct {
	*Ledger
	known             Known
	asFound           bool
	previous, planned map[AllocationKey]int64
	refusals          refusals
}

func (c *claimCheck) checkConsumer(claim *ConsumerClaim, path string) {
	c.checkGeneration(claim, under(path, "generation"))
	for i, allocation := range claim.Allocations {
		path := at(under(path, "allocations"), i)
		if c.providers[allocation.Provider] == nil {
			c.refusals.add(UnknownReference, under(path, "provider"),
				"resource provider %s does not exist", allocation.Provider)
		}
		for k, amount := range allocation.Resources {
			c.checkAmount(allocation.Provider, amount, at(under(path, "resources"), k))
		}
	}
	c.checkMapped(claim.Mappings, under(path, "mappings"))
}

func (c *claimCheck) checkGeneration(claim *ConsumerClaim, path string) {
	held := c.Consumer(claim.UUID).Generation
	switch {
	case claim.AnyGeneration:
	case claim.Generation == nil && held != 0:
		c.refusals.add(GenerationConflict, path, "consumer %s has allocations already, its generation is %d",
			claim.UUID, held)
	case claim.Generation != nil && held == 0:
		c.refusals.add(GenerationConflict, path, "consumer %s has no allocations, so it has no generation", claim.UUID)
	case claim.Generation != nil && *claim.Generation != held:
		c.refusals.add(GenerationConflict, path, "consumer %s has generation %d, not %d",
			claim.UUID, held, *claim.Generation)
	}
}

// checkAmount checks one amount and adds it to planned.
func (c *claimCheck) checkAmount(provider string, amount Amount, path string) {
	key := AllocationKey{provider, amount.ResourceClass}
	refuse := func(field string, why AllocationCheck) {
		c.refusals.add(CapacityExceeded, under(path, field), "%d %s on %s: %s", amount.Amount,
			amount.ResourceClass, provider, why)
	}
	var inventories map[string]Inventory
	held := c.providers[provider]
	if held != nil {
		inventories = held.Inventories
	}
	inventory, ok := inventories[amount.ResourceClass]
	switch {
	case ok:
		planned := c.planned[key]
		previous := c.previous[key] - planned // previous use that the claim has not replaced yet
		if check := CheckAllocation(inventory, inventory.Used-previous, previous,
			amount.Amount); check != AllocationFits && !c.asFound {
			refuse("amount", check)
		}
		c.planned[key] = planned + amount.Amount
	case !c.known.ResourceClass(amount.ResourceClass):
		c.refusals.addUnknown(UnknownClass(under(path, "resourceClass"), amount.ResourceClass))
	case held != nil:
		refuse("resourceClass", NoInventory)
	}
}

// write replaces the allocations of a consumer. It adds to touched the
// providers whose generations grow.
func (l *Ledger) write(claim *ConsumerClaim, touched map[string]bool) {
	previous := l.Consumer(claim.UUID)
	if previous.Generation == 0 && len(claim.Allocations) == 0 {
		return
	}
	next := LedgerConsumer{
		ProjectID: claim.ProjectID, UserID: claim.UserID, Type: cmp.Or(claim.Type, previous.Type),
		Generation: previous.Generation + 1, Allocations: map[AllocationKey]int64{},
		Mappings: SortedMappings(claim.Mappings),
		Created:  previous.Created || previous.Generation == 0, ExpiresAt: claim.ExpiresAt,
	}
	if len(claim.Allocations) == 0 {
		next = LedgerConsumer{}
		for key := range previous.Allocations {
			touched[key.Provider] = true
		}
	}
	l.returnAllocations(previous)
	for _, allocation := range claim.Allocations {
		touched[allocation.Provider] = true
		for _, amount := range allocation.Resources {
			key := AllocationKey{allocation.Provider, amount.ResourceClass}
			next.Allocations[key] = amount.Amount
			l.use(claim.ProjectID, key, amount.Amount)
		}
	}
	l.consumers[claim.UUID] = &next
	l.touched[claim.UUID] = true
}

// Release removes all allocations of a consumer without changing the generation
// of any provider. It reports false if the consumer does not exist.
func (l *Ledger) Release(uuid string) bool {
	consumer := l.Consumer(uuid)
	if consumer.Generation == 0 {
		return false
	}
	l.returnAllocations(consumer)
	l.consumers[uuid] = &LedgerConsumer{}
	l.touched[uuid] = true
	return true
}

// returnAllocations subtracts a consumer's allocations from the use of the
// inventories and of the project's limits.
func (l *Ledger) returnAllocations(consumer LedgerConsumer) {
	for key, used := range consumer.Allocations {
		l.use(consumer.ProjectID, key, -used)
	}
}

func (l *Ledger) use(project string, key AllocationKey, amount int64) {
	l.count(project, key, amount)
	inventories := l.providers[key.Provider].Inventories
	inventory := inventories[key.ResourceClass]
	inventory.Used += amount
	inventories[key.ResourceClass] = inventory
}
