package placement_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// TestASampleHasTheSumsOfTheWorld compares samples of random worlds by aggregate
// with their definition.
func TestASampleHasTheSumsOfTheWorld(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, _ *Request) {
		world := NewWorld(diceNames, providers)
		held, want := heldByOracle(r, world)
		got := map[string][5]int64{}
		for _, row := range SampleOf(world, held)[HistoryByAggregate].Rows {
			var sum [5]int64
			for i := range sum {
				sum[i] = row.Figures[i].Sum
			}
			got[row.Group+" "+row.ResourceClass] = sum
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	})
}

// heldByOracle holds some units of a world. It returns them, and the sums by the
// aggregates of the roots.
func heldByOracle(r *rand.Rand, world *World) (held []*Allocation, sums map[string][5]int64) {
	sums = map[string][5]int64{}
	for provider := range world.Providers() {
		root, _ := world.Provider(provider.Root)
		groups := root.Aggregates
		if len(groups) == 0 {
			groups = []string{""}
		}
		for _, inventory := range provider.Inventories {
			units := r.Int64N(3)
			if units > 0 {
				held = append(held,
					&Allocation{Provider: provider.UUID, ResourceClass: inventory.ResourceClass, Used: units})
			}
			for _, group := range groups {
				sum := sums[group+" "+inventory.ResourceClass]
				for i, value := range []int64{int64(inventory.Total), int64(inventory.Reserved),
					inventory.Capacity, inventory.Used, units} {
					sum[i] += value
				}
				sums[group+" "+inventory.ResourceClass] = sum
			}
		}
	}
	return held, sums
}
