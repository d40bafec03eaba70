package placement_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// smallLedger returns a ledger of two providers, a and b, with 10 units of GOLD
// each, and two consumers: x uses 6 of a, y uses 2 of a and 4 of b. An
// allocation on b takes 2 or 4 units.
func smallLedger() *Ledger {
	gold := func(used int64) Inventory {
		return Inventory{ResourceClass: "GOLD", Total: 10, MinUnit: 1, MaxUnit: 10, StepSize: 1,
			AllocationRatio: 1, Capacity: 10, Used: used}
	}
	stepped := gold(4)
	stepped.MinUnit, stepped.MaxUnit, stepped.StepSize = 2, 4, 2
	return NewLedger(map[string]*LedgerConsumer{
		"x": {ProjectID: "p", UserID: "u", Generation: 3, Allocations: map[AllocationKey]int64{{"a", "GOLD"}: 6}},
		"y": {ProjectID: "p", UserID: "u", Generation: 1,
			Allocations: map[AllocationKey]int64{{"a", "GOLD"}: 2, {"b", "GOLD"}: 4}},
	}, map[string]*LedgerProvider{
		"a": {Generation: 7, Inventories: map[string]Inventory{"GOLD": gold(8)}},
		"b": {Generation: 1, Inventories: map[string]Inventory{"GOLD": stepped}},
	})
}

// want returns a consumer's claim of pairs of a provider and an amount.
func want(consumer string, generation int64, pairs ...any) ConsumerClaim {
	c := ConsumerClaim{UUID: consumer, ProjectID: "p", UserID: "u"}
	if generation > 0 {
		c.Generation = &generation
	}
	for i := 0; i < len(pairs); i += 2 {
		c.Allocations = append(c.Allocations, ProviderAllocation{Provider: pairs[i].(string),
			Resources: []Amount{{ResourceClass: "GOLD", Amount: int64(pairs[i+1].(int))}}})
	}
	return c
}

// knowing is a Known with two classes, and with a provider c outside the
// ledger.
var knowing = Known{
	ResourceClass: func(class string) bool { return class == "GOLD" || class == "SILVER" },
	Provider:      func(uuid string) bool { return uuid == "c" },
}

// TestClaimsAsFound makes random claims, some as found, on small ledgers. A claim
// as found is always accepted, and has the result of a plain one that is. A plain
// claim raises no use beyond a capacity.
func TestClaimsAsFound(t *testing.T) {
	t.Parallel()
	beyond, refused := 0, 0
	for seed := range uint64(1000) {
		d := rand.New(rand.NewPCG(seed, 12))
		ledger := limitWorld{}.ledger(randomLimits(d))
		for _, provider := range []string{"a", "b"} {
			for _, class := range []string{"GOLD", "SILVER"} {
				inventory := ledger.Provider(provider).Inventories[class]
				inventory.Capacity, inventory.MaxUnit, inventory.StepSize = int64(d.IntN(12)),
					int32(1+d.IntN(6)), int32(1+d.IntN(2))
				ledger.Provider(provider).Inventories[class] = inventory
			}
		}
		for range 8 {
			claim := Claim{Consumers: randomClaims(d)}
			plain, found := ledger.Trial([]string{"a", "b"}), ledger.Trial([]string{"a", "b"})
			refusals := plain.Claim(&claim, "input", knowing)
			claim.AsFound = true
			if other := found.Claim(&claim, "input", knowing); len(other) > 0 {
				t.Fatalf("seed %d: as found, %+v is refused: %+v", seed, claim.Consumers, other)
			}
			if len(refusals) > 0 {
				refused++
			} else if contentOf(plain) != contentOf(found) {
				t.Fatalf("seed %d: %+v has another result as found", seed, claim.Consumers)
			}
			next := plain
			if d.IntN(4) == 0 {
				next = found
			}
			beyond += checkUse(t, ledger, next, next == found)
			ledger = next
		}
	}
	if beyond < 500 || refused < 500 {
		t.Errorf("%d uses rose beyond a capacity, %d claims were refused", beyond, refused)
	}
}

// contentOf describes the providers and consumers of a ledger of randomClaims.
func contentOf(ledger *Ledger) string {
	text := fmt.Sprint(*ledger.Provider("a"), *ledger.Provider("b"))
	for _, uuid := range []string{"x", "y", "z"} {
		text += fmt.Sprint(ledger.Consumer(uuid))
	}
	return text
}

// checkUse compares the use of each inventory with the allocations, and returns
// the number of uses that rose beyond a capacity.
func checkUse(t *testing.T, before, after *Ledger, isFound bool) (beyond int) {
	t.Helper()
	for _, key := range []AllocationKey{{"a", "GOLD"}, {"a", "SILVER"}, {"b", "GOLD"}, {"b", "SILVER"}} {
		inventory, sum := after.Provider(key.Provider).Inventories[key.ResourceClass], int64(0)
		for _, uuid := range []string{"x", "y", "z"} {
			sum += after.Consumer(uuid).Allocations[key]
		}
		if inventory.Used != sum {
			t.Errorf("%v: %d are used, %d allocated", key, inventory.Used, sum)
		}
		if inventory.Used <= max(before.Provider(key.Provider).Inventories[key.ResourceClass].Used,
			inventory.Capacity) {
			continue
		}
		if beyond++; !isFound || !after.IsFound(key) {
			t.Errorf("a plain claim raises %v to %d of %d", key, inventory.Used, inventory.Capacity)
		}
	}
	return beyond
}

func TestLedgerDecidesClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		consumers []ConsumerClaim
		refusal   string // "" when the claim is applied
		state     string // used of a and b, their increments, generations of x, y and z
	}{
		"a new consumer": {[]ConsumerClaim{want("z", 0, "a", 2)}, "", "10 4 | 1 0 | 3 1 1"},
		"too much": {[]ConsumerClaim{want("z", 0, "a", 3)},
			"2 input.consumers[0].allocations[0].resources[0].amount", "8 4 | 0 0 | 3 1 0"},
		"its own goes back first": {[]ConsumerClaim{want("x", 3, "a", 8)}, "", "10 4 | 1 0 | 4 1 0"},
		"that of the others in the claim too": {[]ConsumerClaim{want("x", 3, "b", 4), want("y", 1, "a", 9)}, "",
			"9 4 | 1 1 | 4 2 0"},
		"the sum counts": {[]ConsumerClaim{want("y", 1, "a", 3), want("z", 0, "a", 2)},
			"2 input.consumers[1].allocations[0].resources[0].amount", "8 4 | 0 0 | 3 1 0"},
		"a provider that is left stays":   {[]ConsumerClaim{want("x", 3, "b", 4)}, "", "2 8 | 0 1 | 4 1 0"},
		"clearing counts for what it had": {[]ConsumerClaim{want("y", 1)}, "", "6 0 | 1 1 | 3 0 0"},
		"clearing nobody":                 {[]ConsumerClaim{want("z", 0)}, "", "8 4 | 0 0 | 3 1 0"},
		"below the minimum": {[]ConsumerClaim{want("z", 0, "b", 1)},
			"2 input.consumers[0].allocations[0].resources[0].amount", "8 4 | 0 0 | 3 1 0"},
		"off the step": {[]ConsumerClaim{want("z", 0, "b", 3)},
			"2 input.consumers[0].allocations[0].resources[0].amount", "8 4 | 0 0 | 3 1 0"},
		"above the maximum": {[]ConsumerClaim{want("z", 0, "b", 6)},
			"2 input.consumers[0].allocations[0].resources[0].amount", "8 4 | 0 0 | 3 1 0"},
		"has allocations already": {[]ConsumerClaim{want("x", 0, "a", 1)},
			"1 input.consumers[0].generation", "8 4 | 0 0 | 3 1 0"},
		"has none": {[]ConsumerClaim{want("z", 1, "a", 1)},
			"1 input.consumers[0].generation", "8 4 | 0 0 | 3 1 0"},
		"another generation": {[]ConsumerClaim{want("x", 2, "a", 100)},
			"1 input.consumers[0].generation", "8 4 | 0 0 | 3 1 0"},
		"an unknown provider goes first": {[]ConsumerClaim{want("x", 2, "a", 100), want("z", 0, "c", 1)},
			"0 input.consumers[1].allocations[0].provider", "8 4 | 0 0 | 3 1 0"},
		"all or none": {[]ConsumerClaim{want("x", 3, "a", 1), want("y", 9, "a", 1)},
			"1 input.consumers[1].generation", "8 4 | 0 0 | 3 1 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := smallLedger()
			got := ""
			if refusals := l.Claim(&Claim{Consumers: c.consumers}, "input", knowing); len(refusals) > 0 {
				got = fmt.Sprint(int(refusals[0].Kind), " ", refusals[0].Path)
			}
			if got != c.refusal {
				t.Errorf("refusal %q, want %q", got, c.refusal)
			}
			if state := describe(l); state != c.state {
				t.Errorf("then %s, want %s", state, c.state)
			}
			for _, uuid := range []string{"x", "y", "z"} {
				if of := l.Consumer(uuid); of.Generation == 0 && !reflect.DeepEqual(of, LedgerConsumer{}) {
					t.Errorf("%s is gone, but the next one with its uuid gets %+v", uuid, of)
				}
			}
		})
	}
}

func describe(l *Ledger) string {
	a, b := l.Provider("a"), l.Provider("b")
	return fmt.Sprintf("%d %d | %d %d | %d %d %d", a.Inventories["GOLD"].Used,
		b.Inventories["GOLD"].Used, a.Increments, b.Increments,
		l.Consumer("x").Generation, l.Consumer("y").Generation, l.Consumer("z").Generation)
}

func TestLedgerLetsAnOverfullInventoryShrink(t *testing.T) {
	t.Parallel()
	l := smallLedger()
	shrunk := l.Provider("a").Inventories["GOLD"]
	shrunk.Capacity = 5 // 8 are used
	l.Provider("a").Inventories["GOLD"] = shrunk
	for i, step := range []struct {
		amount int
		holds  bool
	}{{7, false}, {6, true}, {5, true}, {6, false}, {1, true}, {4, false}, {3, true}} {
		claim := Claim{Consumers: []ConsumerClaim{want("x", l.Consumer("x").Generation, "a", step.amount)}}
		if holds := len(l.Claim(&claim, "input", knowing)) == 0; holds != step.holds {
			t.Errorf("step %d: %d units: %v", i, step.amount, holds)
		}
	}
}

func TestLedgerReshapes(t *testing.T) {
	t.Parallel()
	inventory := func(class string, total int32) Inventory {
		return Inventory{ResourceClass: class, Total: total, MinUnit: 1,
			MaxUnit: total, StepSize: 1, AllocationRatio: 1}
	}
	for name, c := range map[string]struct {
		reshape Reshape
		refusal string
		steps   string
	}{
		"everything moves": {Reshape{
			Inventories: []ProviderInventories{{Provider: "a"},
				{Provider: "b", Inventories: []Inventory{inventory("GOLD", 20)}}},
			Consumers: []ConsumerClaim{want("x", 3, "b", 6), want("y", 1, "b", 6)}}, "", "1 3"},
		"a class is still used": {Reshape{Inventories: []ProviderInventories{{Provider: "a"}}},
			"3 input.inventories[0].inventories", ""},
		"a stale generation": {Reshape{Inventories: []ProviderInventories{{Provider: "a", Generation: new(int64(6))}}},
			"1 input.inventories[0].generation", ""},
		"unknown names": {Reshape{Inventories: []ProviderInventories{{Provider: "c"},
			{Provider: "a", Generation: new(int64(6)), Inventories: []Inventory{inventory("TIN", 1)}}}},
			"0 input.inventories[0].provider", ""},
		"a new class beside the old one": {Reshape{
			Inventories: []ProviderInventories{{Provider: "a", Generation: new(int64(7)),
				Inventories: []Inventory{inventory("GOLD", 10), inventory("SILVER", 1)}}}}, "", "2 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := smallLedger()
			got := ""
			if refusals := l.Reshape(&c.reshape, "input", knowing); len(refusals) > 0 {
				got = fmt.Sprint(int(refusals[0].Kind), " ", refusals[0].Path)
			}
			if got != c.refusal {
				t.Errorf("refusal %q, want %q", got, c.refusal)
			}
			if steps := fmt.Sprint(l.Provider("a").Increments, " ", l.Provider("b").Increments); c.refusal == "" &&
				steps != c.steps {
				t.Errorf("the generations grow by %s, want %s", steps, c.steps)
			}
		})
	}
}

// knownIn knows the traits, classes and providers of a world.
func knownIn(w *World) Known {
	return Known{ResourceClass: w.HasResourceClass, Provider: func(uuid string) bool {
		_, ok := w.Provider(uuid)
		return ok
	}}
}

func TestLedgerKeepsMappings(t *testing.T) {
	t.Parallel()
	l := smallLedger()
	mapped := func(generation int64, mappings []Mapping, pairs ...any) string {
		claim := want("x", generation, pairs...)
		claim.Mappings = mappings
		if refusals := l.Claim(&Claim{Consumers: []ConsumerClaim{claim}}, "input", knowing); len(refusals) > 0 {
			return fmt.Sprint(int(refusals[0].Kind), " ", refusals[0].Path)
		}
		return fmt.Sprint(l.Consumer("x").Mappings)
	}
	for _, step := range []struct{ what, got, want string }{
		{"sorted, each provider once",
			mapped(3, []Mapping{{"_B", []string{"b"}}, {"_A", []string{"c"}}, {"", []string{"b", "a", "b"}}}, "a", 1),
			"[{ [a b]} {_A [c]} {_B [b]}]"},
		{"an unknown provider", mapped(4, []Mapping{{"", []string{"a"}}, {"_A", []string{"b", "d"}}}, "a", 1),
			"0 input.consumers[0].mappings[1].providers[1]"},
		{"replaced", mapped(4, []Mapping{{"", []string{"a"}}}, "a", 1), "[{ [a]}]"},
		{"cleared by a claim without", mapped(5, nil, "a", 1), "[]"},
		{"and when the consumer goes", mapped(6, []Mapping{{"", []string{"a"}}}), "[]"},
	} {
		if step.got != step.want {
			t.Errorf("%s: %s, want %s", step.what, step.got, step.want)
		}
	}
}
