package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// limitWorld is the state that the ledger of TestLimitsFollowTheOracle must
// have: consumers by uuid. Provider a has the trait T, provider b has not.
type limitWorld map[string]LedgerConsumer

// used returns the use that a limit counts, by definition.
func (w limitWorld) used(limit Limit) (sum int64) {
	for _, consumer := range w {
		for key, used := range consumer.Allocations {
			if consumer.ProjectID == limit.ProjectID && key.ResourceClass == limit.ResourceClass &&
				(limit.Trait == nil || key.Provider == "a") {
				sum += used
			}
		}
	}
	return sum
}

// after returns the world after claims.
func (w limitWorld) after(claims []ConsumerClaim) limitWorld {
	next := maps.Clone(w)
	for _, claim := range claims {
		consumer := LedgerConsumer{ProjectID: claim.ProjectID, UserID: "u", Generation: 1,
			Allocations: map[AllocationKey]int64{}}
		for _, allocation := range claim.Allocations {
			for _, amount := range allocation.Resources {
				consumer.Allocations[AllocationKey{Provider: allocation.Provider, ResourceClass: amount.ResourceClass}] = amount.Amount
			}
		}
		if next[claim.UUID] = consumer; len(claim.Allocations) == 0 {
			delete(next, claim.UUID)
		}
	}
	return next
}

// exceeded returns the limits above which claims raise the use.
func (w limitWorld) exceeded(limits []Limit, claims []ConsumerClaim) (exceeded []string) {
	after := w.after(claims)
	for _, limit := range limits {
		before, then := w.used(limit), after.used(limit)
		if then > before && then > limit.Amount {
			exceeded = append(exceeded, fmt.Sprintf("project %q may use %d %s: %d are used, %d more requested",
				limit.ProjectID, limit.Amount, subjectOf(limit), before, then-before))
		}
	}
	return exceeded
}

func subjectOf(limit Limit) string {
	if limit.Trait != nil {
		return limit.ResourceClass + " on providers with " + *limit.Trait
	}
	return limit.ResourceClass
}

func (w limitWorld) ledger(limits []Limit) *Ledger {
	consumers := map[string]*LedgerConsumer{}
	inventories := func() map[string]Inventory {
		all := map[string]Inventory{}
		for _, class := range []string{"GOLD", "SILVER"} {
			all[class] = Inventory{ResourceClass: class, Total: 1000, MinUnit: 1, MaxUnit: 1000,
				StepSize: 1, AllocationRatio: 1, Capacity: 1000}
		}
		return all
	}
	providers := map[string]*LedgerProvider{"a": {Inventories: inventories(), Traits: map[string]bool{"T": true}},
		"b": {Inventories: inventories()}}
	for uuid, consumer := range w {
		consumers[uuid] = &consumer
		for key, used := range consumer.Allocations {
			inventory := providers[key.Provider].Inventories[key.ResourceClass]
			inventory.Used += used
			providers[key.Provider].Inventories[key.ResourceClass] = inventory
		}
	}
	ledger := NewLedger(consumers, providers)
	limits = slices.Clone(limits)
	for i := range limits {
		limits[i].Used = w.used(limits[i])
	}
	ledger.SetLimits(limits)
	return ledger
}

func randomLimits(d *rand.Rand) (limits []Limit) {
	for _, project := range []string{"p", "q"} {
		for _, class := range []string{"GOLD", "SILVER"} {
			for _, trait := range []*string{nil, new("T")} {
				if d.IntN(3) > 0 {
					limits = append(limits,
						Limit{ProjectID: project, ResourceClass: class, Trait: trait, Amount: int64(d.IntN(12))})
				}
			}
		}
	}
	return limits
}

// randomClaims returns claims of up to three consumers of two projects.
func randomClaims(d *rand.Rand) (claims []ConsumerClaim) {
	for _, uuid := range []string{"x", "y", "z"} {
		if d.IntN(2) == 0 {
			continue
		}
		claim := ConsumerClaim{UUID: uuid, ProjectID: []string{"p", "q"}[d.IntN(2)], UserID: "u", AnyGeneration: true}
		for _, provider := range []string{"a", "b"} {
			var amounts []Amount
			for _, class := range []string{"GOLD", "SILVER"} {
				if d.IntN(2) == 0 {
					amounts = append(amounts, Amount{ResourceClass: class, Amount: int64(1 + d.IntN(6))})
				}
			}
			if len(amounts) > 0 {
				claim.Allocations = append(claim.Allocations,
					ProviderAllocation{Provider: provider, Resources: amounts})
			}
		}
		claims = append(claims, claim)
	}
	return claims
}

// TestLimitsFollowTheOracle makes random claims and releases on small ledgers
// with random limits, some of them below the use. The definition decides which
// claims must be refused.
func TestLimitsFollowTheOracle(t *testing.T) {
	t.Parallel()
	accepted, refused := 0, 0
	for seed := range uint64(3000) {
		d := rand.New(rand.NewPCG(seed, 1))
		world, limits := limitWorld{}, randomLimits(d)
		world = world.after(randomClaims(d)) // before there were limits
		ledger := world.ledger(limits)
		for range 8 {
			if d.IntN(4) == 0 {
				uuid := []string{"x", "y", "z"}[d.IntN(3)]
				ledger.Release(uuid)
				delete(world, uuid)
				continue
			}
			claims, beyond := randomClaims(d), d.IntN(10) == 0
			want := world.exceeded(limits, claims)
			if beyond {
				want = nil
			}
			trial := ledger.Trial([]string{"a", "b"})
			var got []string
			for _, refusal := range trial.Claim(&Claim{Consumers: claims, BeyondLimits: beyond}, "input", knowing) {
				if got = append(got, refusal.Message); refusal.Kind != LimitExceeded ||
					!raises(world, claims, refusal) {
					t.Fatalf("seed %d: refusal %+v of %+v", seed, refusal, claims)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: refused by %q, want %q", seed, got, want)
			}
			if len(want) > 0 {
				refused++
				continue
			}
			accepted++
			ledger, world = trial, world.after(claims)
		}
	}
	if accepted < 1000 || refused < 1000 {
		t.Errorf("%d claims were accepted, %d refused", accepted, refused)
	}
}

// raises reports whether the consumer at the path of a refusal uses more
// afterwards, or uses it in another project.
func raises(world limitWorld, claims []ConsumerClaim, refusal Refusal) bool {
	var i int
	if _, err := fmt.Sscanf(refusal.Path, "input.consumers[%d].allocations", &i); err != nil || i >= len(claims) {
		return false
	}
	class, _, _ := strings.Cut(strings.SplitN(refusal.Message, " ", 6)[5], ":")
	class, _, _ = strings.Cut(class, " ")
	sum := func(of limitWorld) (sum int64) {
		consumer := of[claims[i].UUID]
		if !strings.Contains(refusal.Message, fmt.Sprintf("project %q", consumer.ProjectID)) {
			return 0
		}
		for key, used := range consumer.Allocations {
			if key.ResourceClass == class && (key.Provider == "a" || !strings.Contains(refusal.Message, " T:")) {
				sum += used
			}
		}
		return sum
	}
	return sum(world.after(claims)) > sum(world)
}

// TestAReshapeObeysLimits moves allocations together with inventories. It is
// refused only if it raises the use of the project.
func TestAReshapeObeysLimits(t *testing.T) {
	t.Parallel()
	world := limitWorld{"x": {ProjectID: "p", UserID: "u", Generation: 1,
		Allocations: map[AllocationKey]int64{{Provider: "b", ResourceClass: "GOLD"}: 5}}}
	gold := Inventory{ResourceClass: "GOLD", Total: 100, MinUnit: 1, MaxUnit: 100, StepSize: 1, AllocationRatio: 1}
	for _, c := range []struct {
		amount int64
		trait  *string
		beyond bool
		want   string
	}{
		{5, nil, false, ""},
		{6, nil, false, `project "p" may use 3 GOLD: 5 are used, 1 more requested`},
		{6, nil, true, ""},
		{5, new("T"), false, `project "p" may use 3 GOLD on providers with T: 0 are used, 5 more requested`},
	} {
		ledger := world.ledger([]Limit{{ProjectID: "p", ResourceClass: "GOLD", Trait: c.trait, Amount: 3}})
		claim := want("x", 1, "a", int(c.amount))
		refusals := ledger.Reshape(&Reshape{BeyondLimits: c.beyond,
			Inventories: []ProviderInventories{{Provider: "a", Inventories: []Inventory{gold}}},
			Consumers:   []ConsumerClaim{claim}}, "input", knowing)
		got := ""
		if len(refusals) > 0 {
			got = refusals[0].Message
		}
		if got != c.want {
			t.Errorf("%d with trait %v: %q, want %q", c.amount, c.trait, got, c.want)
		}
	}
}

func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	known := KnownNames{Traits: map[string]bool{"T": true}, ResourceClasses: map[string]bool{"GOLD": true}}
	limits := ProjectLimits{ProjectID: "", Limits: []NewLimit{
		{ResourceClass: "GOLD"}, {ResourceClass: "GOLD", Trait: new("T"), Amount: 1},
		{ResourceClass: "GOLD", Trait: new("T")},
		{ResourceClass: "gold"}, {ResourceClass: "SILVER", Amount: -1}, {ResourceClass: "GOLD", Trait: new("U")},
		{ResourceClass: "GOLD", Trait: new("")},
	}}
	var got []string
	for _, problem := range limits.Validate("input", known) {
		got = append(got, problem.Path)
	}
	want := []string{"input.projectId", "input.limits[2].resourceClass",
		"input.limits[3].resourceClass", "input.limits[4].limit",
		"input.limits[4].resourceClass", "input.limits[5].trait", "input.limits[6].trait"}
	if !slices.Equal(got, want) {
		t.Errorf("problems at %q, want %q", got, want)
	}
	many := ProjectLimits{ProjectID: "p", Limits: make([]NewLimit, MaxLimits+1)}
	if problems := many.Validate("input", known); len(problems) == 0 || problems[0].Path != "input.limits" {
		t.Errorf("too many limits: %v", problems)
	}
}
