package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Ledger judges claims, one after the other, and works out what they change. It starts as the part of the
// allocations that they concern, read by someone who keeps everybody else from changing it meanwhile.
type Ledger struct {
	consumers map[string]*LedgerConsumer
	providers map[string]*LedgerProvider
	written   map[string]bool
}

// LedgerConsumer is a consumer in a Ledger. A Generation of 0 says that it does not exist.
type LedgerConsumer struct {
	ProjectID   string
	UserID      string
	Type        *string
	Generation  int64
	Allocations map[AllocationKey]int64
}

// AllocationKey is the place of an allocation: a provider's uuid and a class.
type AllocationKey struct {
	Provider      string
	ResourceClass string
}

// LedgerProvider is a provider in a Ledger: its generation as read, by how much that grew since, and its inventories by
// class, with their use.
type LedgerProvider struct {
	Generation  int64
	Increments  int64
	Inventories map[string]Inventory
}

// NewLedger makes a ledger of the consumers that exist, with all of their allocations, and the providers that
// exist. It keeps the maps.
func NewLedger(consumers map[string]*LedgerConsumer, providers map[string]*LedgerProvider) *Ledger {
	return &Ledger{consumers: consumers, providers: providers, written: map[string]bool{}}
}

// Written are the uuids of the consumers that claims wrote, sorted.
func (l *Ledger) Written() []string { return slices.Sorted(maps.Keys(l.written)) }

// Consumer returns the consumer as the claims left it; its Generation is 0 if it does not exist any more.
func (l *Ledger) Consumer(uuid string) LedgerConsumer {
	if account := l.consumers[uuid]; account != nil {
		return *account
	}
	return LedgerConsumer{}
}

// Provider returns the provider as the claims left it.
func (l *Ledger) Provider(uuid string) *LedgerProvider { return l.providers[uuid] }

// Refusal is why a claim is refused; it says which kind of refusal is due.
type Refusal struct {
	Kind RefusalKind
	Problem
}

// RefusalKind is the kind of a Refusal; the lesser is reported before the greater.
type RefusalKind int

const (
	// UnknownProvider and UnknownResourceClass say that an input names what does not exist.
	UnknownProvider RefusalKind = iota
	UnknownResourceClass
	// GenerationConflict says that a consumer is not as the claim takes it to be.
	GenerationConflict
	// CapacityExceeded says that an inventory cannot give what is claimed.
	CapacityExceeded
	// InventoryInUse says that an inventory cannot go because it is used.
	InventoryInUse
)

// Claim applies a valid claim as a whole and gives no objection, or leaves the ledger as it was. Knows says
// whether a class exists; it is asked only about classes that a provider has no inventory of. Objections are
// those of the first kind only, in the order of the input, each below path ("input").
func (l *Ledger) Claim(claim *Claim, path string, knows func(class string) bool) []Refusal {
	return l.apply(claim.Consumers, under(path, "consumers"), knows)
}

func (l *Ledger) apply(claims []ConsumerClaim, path string, knows func(class string) bool) []Refusal {
	j := &judgement{Ledger: l, rest: map[AllocationKey]int64{}, old: map[AllocationKey]int64{}, bumped: map[string]bool{}}
	for i := range claims {
		j.release(&claims[i])
	}
	for i := range claims {
		j.judge(&claims[i], at(path, i), knows)
	}
	if len(j.objections) > 0 {
		return j.firstKind()
	}
	for i := range claims {
		j.write(&claims[i])
	}
	for uuid := range j.bumped {
		l.providers[uuid].Increments++
	}
	return nil
}

// judgement is the trial of one claim. Rest is what stays used of each inventory when the old allocations of
// the claim's consumers are taken away, and what the claim has given so far; old is what of these old
// allocations is not made up for yet.
type judgement struct {
	*Ledger
	rest, old  map[AllocationKey]int64
	objections []Refusal
	bumped     map[string]bool
}

func (j *judgement) object(kind RefusalKind, path, rule string) {
	j.objections = append(j.objections, Refusal{Kind: kind, Problem: Problem{Path: path, Message: rule}})
}

func (j *judgement) firstKind() []Refusal {
	least := slices.MinFunc(j.objections, func(a, b Refusal) int { return cmp.Compare(a.Kind.class(), b.Kind.class()) })
	return slices.DeleteFunc(j.objections, func(o Refusal) bool { return o.Kind.class() != least.Kind.class() })
}

// class puts the kinds together that are reported together.
func (k RefusalKind) class() RefusalKind {
	if k == UnknownResourceClass {
		return UnknownProvider
	}
	return k
}

func (j *judgement) release(claim *ConsumerClaim) {
	if account := j.consumers[claim.UUID]; account != nil {
		for share, used := range account.Allocations {
			j.old[share] += used
		}
	}
}

// judge notes every objection to what the claim gives one consumer.
func (j *judgement) judge(claim *ConsumerClaim, path string, knows func(class string) bool) {
	account := j.Consumer(claim.UUID)
	switch {
	case claim.Generation == nil && account.Generation != 0:
		j.object(GenerationConflict, under(path, "generation"), fmt.Sprintf("consumer %s has allocations already, its generation is %d", claim.UUID, account.Generation))
	case claim.Generation != nil && account.Generation == 0:
		j.object(GenerationConflict, under(path, "generation"), fmt.Sprintf("consumer %s has no allocations, so it has no generation", claim.UUID))
	case claim.Generation != nil && *claim.Generation != account.Generation:
		j.object(GenerationConflict, under(path, "generation"), fmt.Sprintf("consumer %s has generation %d, not %d", claim.UUID, account.Generation, *claim.Generation))
	}
	for i, allocation := range claim.Allocations {
		here := at(under(path, "allocations"), i)
		stall := j.providers[allocation.Provider]
		if stall == nil {
			j.object(UnknownProvider, under(here, "provider"), fmt.Sprintf("there is no resource provider %s", allocation.Provider))
		}
		for k, amount := range allocation.Resources {
			place := at(under(here, "resources"), k)
			var inventory Inventory
			found := false
			if stall != nil {
				inventory, found = stall.Inventories[amount.ResourceClass]
			}
			if !found {
				if !knows(amount.ResourceClass) {
					j.object(UnknownResourceClass, under(place, "resourceClass"), fmt.Sprintf("must be an existing resource class, %s is none", amount.ResourceClass))
				} else if stall != nil {
					j.object(CapacityExceeded, under(place, "resourceClass"), refusalText(NoInventory, allocation.Provider, amount))
				}
				continue
			}
			share := AllocationKey{allocation.Provider, amount.ResourceClass}
			given := j.rest[share]
			others := inventory.Used - j.old[share] + given
			if refusal := CheckAllocation(inventory, others, j.old[share]-given, amount.Amount); refusal != AllocationFits {
				j.object(CapacityExceeded, under(place, "amount"), refusalText(refusal, allocation.Provider, amount))
			}
			j.rest[share] = given + amount.Amount
		}
	}
}

func refusalText(refusal AllocationCheck, provider string, amount Amount) string {
	return fmt.Sprintf("%d %s on %s: %s", amount.Amount, amount.ResourceClass, provider, refusal)
}

// write makes the consumer have what the claim says.
func (j *judgement) write(claim *ConsumerClaim) {
	account := j.consumers[claim.UUID]
	if account == nil {
		if len(claim.Allocations) == 0 {
			return
		}
		account = &LedgerConsumer{}
		j.consumers[claim.UUID] = account
	}
	next := LedgerConsumer{ProjectID: claim.ProjectID, UserID: claim.UserID, Type: account.Type, Generation: account.Generation + 1}
	if claim.Type != nil {
		next.Type = claim.Type
	}
	j.written[claim.UUID] = true
	j.clear(account)
	if len(claim.Allocations) == 0 {
		for share := range account.Allocations {
			j.bumped[share.Provider] = true
		}
		next.Generation = 0
	}
	next.Allocations = map[AllocationKey]int64{}
	for _, allocation := range claim.Allocations {
		j.bumped[allocation.Provider] = true
		for _, amount := range allocation.Resources {
			share := AllocationKey{allocation.Provider, amount.ResourceClass}
			next.Allocations[share] = amount.Amount
			j.use(share, amount.Amount)
		}
	}
	*account = next
}

// Release takes all allocations of a consumer away, without moving any provider's generation; it reports
// false if the consumer does not exist.
func (l *Ledger) Release(uuid string) bool {
	account := l.consumers[uuid]
	if account == nil || account.Generation == 0 {
		return false
	}
	l.written[uuid] = true
	l.clear(account)
	*account = LedgerConsumer{}
	return true
}

func (l *Ledger) clear(account *LedgerConsumer) {
	for share, used := range account.Allocations {
		l.use(share, -used)
	}
}

func (l *Ledger) use(share AllocationKey, amount int64) {
	inventories := l.providers[share.Provider].Inventories
	inventory := inventories[share.ResourceClass]
	inventory.Used += amount
	inventories[share.ResourceClass] = inventory
}

// SortedKeys returns the keys of a consumer's allocations in order.
func (a LedgerConsumer) SortedKeys() []AllocationKey {
	return slices.SortedFunc(maps.Keys(a.Allocations), func(x, y AllocationKey) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.ResourceClass, y.ResourceClass))
	})
}
