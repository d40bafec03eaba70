package placement_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// groupOfOracle returns the groups that a provider counts in, by the
// definition.
func groupOfOracle(w *World, p *Provider, by CapacityGrouping) []string {
	var groups []string
	switch by {
	case CapacityByClass:
		return []string{""}
	case CapacityByAggregate:
		groups = p.Aggregates
	case CapacityByTrait:
		groups = p.Traits
	case CapacityByRoot:
		root := p
		for root.Parent != "" {
			parent, ok := w.Provider(root.Parent)
			if !ok {
				break
			}
			root = parent
		}
		return []string{root.Name}
	}
	if len(groups) == 0 {
		groups = []string{""}
	}
	return groups
}

// sumsOfOracle returns the sums of providers as strings, computed with integers
// of any size.
func sumsOfOracle(w *World, providers []*Provider, by CapacityGrouping, classes []string) []string {
	type sums struct{ total, reserved, capacity, used, providers big.Int }
	found := map[[2]string]*sums{}
	for _, p := range providers {
		for _, group := range groupOfOracle(w, p, by) {
			for _, i := range p.Inventories {
				if classes != nil && !slices.Contains(classes, i.ResourceClass) {
					continue
				}
				key := [2]string{group, i.ResourceClass}
				if found[key] == nil {
					found[key] = &sums{}
				}
				s := found[key]
				for _, add := range []struct {
					to *big.Int
					n  int64
				}{{&s.total, int64(i.Total)}, {&s.reserved, int64(i.Reserved)}, {&s.capacity, i.Capacity},
					{&s.used, i.Used}, {&s.providers, 1}} {
					add.to.Add(add.to, big.NewInt(add.n))
				}
			}
		}
	}
	bounded := func(n *big.Int) string {
		if most := big.NewInt(math.MaxInt64); n.Cmp(most) > 0 {
			return most.String()
		}
		if least := big.NewInt(math.MinInt64); n.Cmp(least) < 0 {
			return least.String()
		}
		return n.String()
	}
	var texts []string
	for key, s := range found {
		share := "none"
		if s.capacity.Sign() > 0 {
			ratio, _ := new(big.Rat).SetFrac(&s.used, &s.capacity).Float64()
			share = fmt.Sprintf("%.12g", ratio)
		}
		free := new(big.Int).Sub(&s.capacity, &s.used)
		texts = append(texts, fmt.Sprintln(key[0], key[1], bounded(&s.total), bounded(&s.reserved),
			bounded(&s.capacity), bounded(&s.used), bounded(free), share, &s.providers))
	}
	slices.Sort(texts)
	return texts
}

func textsOf(sums []*CapacitySum) []string {
	var texts []string
	for _, c := range sums {
		share := "none"
		if c.ShareUsed != nil {
			share = fmt.Sprintf("%.12g", *c.ShareUsed)
		}
		texts = append(texts, fmt.Sprintln(c.Group(), c.ResourceClass, c.Total, c.Reserved, c.Capacity,
			c.Used, c.Free, share, c.Providers))
	}
	return texts
}

// TestCapacitiesAreThoseOfTheDefinitions compares sums of random providers, of
// every grouping, with sums of integers of any size. Some inventories are so
// large that sums exceed int64.
func TestCapacitiesAreThoseOfTheDefinitions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 15))
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, _ *Request) {
		for p := range providers {
			for i := range providers[p].Inventories {
				switch inventory := &providers[p].Inventories[i]; random.IntN(4) {
				case 0:
					inventory.Capacity = math.MaxInt64 - random.Int64N(3)
				case 1:
					inventory.Capacity, inventory.Used = 0, random.Int64N(math.MaxInt64)
				}
			}
		}
		w := NewWorld(diceNames, providers)
		some := slices.DeleteFunc(slices.Collect(w.Providers()), func(*Provider) bool { return d.chance(4) })
		classes := [][]string{nil, {}, {"VCPU"}, {"DISK_GB", "VCPU", "VCPU"}}[random.IntN(4)]
		for _, by := range []CapacityGrouping{CapacityByClass, CapacityByAggregate, CapacityByTrait, CapacityByRoot} {
			sums := w.Capacities(some, by, classes)
			got, want := textsOf(sums), sumsOfOracle(w, some, by, classes)
			if !slices.IsSortedFunc(sums, func(a, b *CapacitySum) int {
				return cmp.Or(cmp.Compare(a.Group(), b.Group()), cmp.Compare(a.ResourceClass, b.ResourceClass))
			}) {
				t.Errorf("%s: not in order: %q", by, got)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s of %v: got %q, want %q", by, classes, got, want)
			}
		}
		for _, p := range providers {
			below := slices.DeleteFunc(slices.Collect(w.Providers()), func(other *Provider) bool {
				return other.UUID != p.UUID && !w.IsDescendant(other.UUID, p.UUID)
			})
			got, want := textsOf(w.TreeCapacities(p.UUID)), sumsOfOracle(w, below, CapacityByClass, nil)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("below %s: got %q, want %q", p.Name, got, want)
			}
		}
		usesNames(t, w)
	})
}

// usesNames compares which traits and classes are in use with the lists of the
// providers.
func usesNames(t *testing.T, w *World) {
	t.Helper()
	for _, name := range append(w.Names().Traits, "CUSTOM_NONE") {
		if want := slices.ContainsFunc(slices.Collect(w.Providers()), func(p *Provider) bool {
			return slices.Contains(p.Traits, name)
		}); w.UsesTrait(name) != want {
			t.Errorf("%s is in use: %v, want %v", name, !want, want)
		}
	}
	for _, name := range append(w.Names().ResourceClasses, "CUSTOM_NONE") {
		want := slices.ContainsFunc(slices.Collect(w.Providers()), func(p *Provider) bool {
			return slices.ContainsFunc(p.Inventories, func(i Inventory) bool { return i.ResourceClass == name })
		})
		if w.UsesResourceClass(name) != want {
			t.Errorf("%s is in use: %v, want %v", name, !want, want)
		}
	}
	for p := range w.Providers() {
		if want := len(w.Children(p.UUID)) > 0; w.HasChildren(p.UUID) != want {
			t.Errorf("%s has children: %v, want %v", p.Name, !want, want)
		}
	}
}

// orderedBy returns the number of a provider that an order compares, nil for a
// provider that sorts last.
func orderedBy(order ProviderOrder, p *Provider) *big.Rat {
	switch {
	case len(p.Inventories) == 0 || order.Field == OrderByShareUsed && p.Inventories[0].Capacity == 0:
		return nil
	case order.Field == OrderByFree:
		return new(big.Rat).SetInt64(p.Inventories[0].Free())
	}
	return new(big.Rat).SetFloat64(float64(p.Inventories[0].Used) / float64(p.Inventories[0].Capacity))
}

// compareOrdered compares providers by the numbers that an order compares.
func compareOrdered(order ProviderOrder, a, b *Provider) int {
	switch x, y := orderedBy(order, a), orderedBy(order, b); {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	case order.Descending:
		return y.Cmp(x)
	default:
		return x.Cmp(y)
	}
}

// TestOrderByInventories compares the sort keys of orders with the numbers that
// they encode, in both directions.
func TestOrderByInventories(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 15))
	class := "VCPU"
	var providers []*Provider
	for n := range 300 {
		p := &Provider{UUID: uuidOf(n)}
		if random.IntN(6) > 0 {
			amounts := []int64{0, 1, 2, 7, random.Int64N(1000), math.MaxInt64, math.MaxInt64 - 1}
			p.Inventories = []Inventory{{ResourceClass: "VCPU", Capacity: amounts[random.IntN(len(amounts))],
				Used: amounts[random.IntN(len(amounts))]}}
		}
		providers = append(providers, p)
	}
	for _, order := range []ProviderOrder{{Field: OrderByFree}, {Field: OrderByFree, Descending: true},
		{Field: OrderByShareUsed}, {Field: OrderByShareUsed, Descending: true}} {
		order.ResourceClass = &class
		for _, a := range providers {
			for _, b := range providers {
				got := cmp.Compare(order.Key(a), order.Key(b))
				if order.Descending {
					got = -got
				}
				if want := compareOrdered(order, a, b); got != want {
					t.Fatalf("%+v: %+v before %+v: %d, want %d", order, a.Inventories, b.Inventories, got, want)
				}
			}
		}
	}
}
