package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// inventoryUpdates draws updates of the inventories of a few providers.
type inventoryUpdates struct{ *rand.Rand }

func (d inventoryUpdates) update() placement.InventoryUpdate {
	u := placement.InventoryUpdate{ResourceClass: []string{"VCPU", "DISK_GB"}[d.IntN(2)], Atomic: d.IntN(2) == 0}
	switch d.IntN(4) {
	case 0:
		u.Filter.RequiredAll = []string{[]string{"HW_CPU_X86_AVX2", "HW_CPU_X86_AVX"}[d.IntN(2)]}
	case 1:
		u.Filter.MemberOf = []placement.AggregateFilter{{AnyOf: []string{storetest.UUID(2000 + d.IntN(2))}}}
	case 2:
		for range 1 + d.IntN(4) {
			u.Filter.UUIDs = append(u.Filter.UUIDs, storetest.UUID(1000+d.IntN(10)))
		}
	}
	if d.IntN(2) == 0 {
		u.Reserved = new(int32(d.IntN(12) - 1))
	}
	if d.IntN(3) == 0 {
		u.MinUnit, u.MaxUnit = new(int32(1+d.IntN(2))), new(int32(5+d.IntN(2)))
	}
	if d.IntN(3) == 0 {
		u.StepSize = new(int32(d.IntN(4)))
	}
	if d.IntN(2) == 0 {
		u.AllocationRatio = new([]float64{1, 2, 0.5, 1e20, -1}[d.IntN(10)/2])
	}
	return u
}

// matches decides by the definition whether an update selects a provider.
func matches(u *placement.InventoryUpdate, p *placement.Provider) bool {
	has := slices.ContainsFunc(p.Inventories, func(i placement.Inventory) bool {
		return i.ResourceClass == u.ResourceClass
	})
	return has && (u.Filter.UUIDs == nil || slices.Contains(u.Filter.UUIDs, p.UUID)) &&
		(u.Filter.RequiredAll == nil || slices.Contains(p.Traits, u.Filter.RequiredAll[0])) &&
		(u.Filter.MemberOf == nil || slices.Contains(p.Aggregates, u.Filter.MemberOf[0].AnyOf[0]))
}

// isWrong reports whether values alone are invalid, or absent.
func isWrong(u *placement.InventoryUpdate) bool {
	return u.Reserved == nil && u.MinUnit == nil && u.StepSize == nil && u.AllocationRatio == nil ||
		u.Reserved != nil && *u.Reserved < 0 || u.StepSize != nil && *u.StepSize < 1 ||
		u.AllocationRatio != nil && *u.AllocationRatio < 0
}

// inventoriesAfter returns the inventories and generations of all providers, as
// text, after an update of the providers of a world by the definition, and the
// outcome.
func inventoriesAfter(u *placement.InventoryUpdate, w *placement.World) (state string, of store.InventoriesUpdated) {
	wrong := isWrong(u)
	var lines, kept []string
	for p := range w.Providers() {
		inventories, generation := slices.Clone(p.Inventories), p.Generation
		kept = append(kept, lineOf(p.Name, generation, inventories))
		i := slices.IndexFunc(inventories, func(i placement.Inventory) bool {
			return i.ResourceClass == u.ResourceClass
		})
		if matches(u, p) && !wrong {
			changed := inventories[i]
			set(&changed.Reserved, u.Reserved)
			set(&changed.MinUnit, u.MinUnit)
			set(&changed.MaxUnit, u.MaxUnit)
			set(&changed.StepSize, u.StepSize)
			set(&changed.AllocationRatio, u.AllocationRatio)
			capacity := float64(changed.Total-changed.Reserved) * changed.AllocationRatio
			switch {
			case changed == inventories[i]:
				of.Unchanged++
			case int64(capacity) < 0 || capacity >= 1<<63:
				of.Refused = append(of.Refused, placementdb.RefusedInventory{Provider: *p})
			default:
				of.Changed++
				generation++
				changed.Capacity = int64(capacity)
				if inventories[i] = changed; changed.Used > changed.Capacity {
					of.Overused++
				}
			}
		}
		lines = append(lines, lineOf(p.Name, generation, inventories))
	}
	if u.Atomic && len(of.Refused) > 0 {
		return strings.Join(kept, "\n"), of
	}
	return strings.Join(lines, "\n"), of
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func lineOf(name string, generation int64, inventories []placement.Inventory) string {
	return fmt.Sprint(name, " ", generation, " ", inventories)
}

// updateFixture creates providers, some with allocations, traits and
// aggregates.
func updateFixture(t *testing.T, s *store.Store) {
	t.Helper()
	for i := range 10 {
		one := placement.NewProvider{Name: fmt.Sprint("host-", i), UUID: new(storetest.UUID(1000 + i))}
		for k, class := range []string{"VCPU", "DISK_GB"} {
			if i%(3+k) > 0 {
				one.Inventories = append(one.Inventories,
					placement.Inventory{ResourceClass: class, Total: int32(4 + i), MinUnit: 1,
						MaxUnit: 8, StepSize: 1, AllocationRatio: 1})
			}
		}
		if i%2 == 0 {
			one.Traits, one.Aggregates = []string{"HW_CPU_X86_AVX2"}, []string{storetest.UUID(2000 + i%4/2)}
		}
		if _, _, err := s.CreateResourceProvider(storetest.AsAdmin(), one); err != nil {
			t.Fatal(err)
		}
		if i%3 == 1 {
			if _, err := s.SetAllocations(storetest.AsAdmin(),
				claimOne(*one.UUID, storetest.UUID(3000+i))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestInventoriesAreUpdatedByDefinition compares random updates with the
// definition: counts, refusals, inventories, and the world with the database. A
// dry run before each leaves everything.
func TestInventoriesAreUpdatedByDefinition(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		updateFixture(t, s)
		d, refused, changed := inventoryUpdates{rand.New(rand.NewPCG(7, 1))}, 0, 0
		for range 150 {
			u := d.update()
			world, err := s.World(storetest.AsAdmin())
			if err != nil {
				t.Fatal(err)
			}
			before, _ := inventoriesAfter(&placement.InventoryUpdate{}, world)
			state, want := inventoriesAfter(&u, world)
			for _, dry := range []bool{true, false} {
				_, got, err := s.UpdateInventories(store.DryRun(storetest.AsAdmin(), dry), u, nil)
				refused += checkUpdate(t, &u, dry, &got, &want, err)
				world, err := s.World(storetest.AsAdmin())
				if err != nil {
					t.Fatal(err)
				}
				after, _ := inventoriesAfter(&placement.InventoryUpdate{}, world)
				if dry && after != before || !dry && after != state {
					t.Fatalf("%+v, dry %v: got\n%s\nwant\n%s\nbefore\n%s", u, dry, after, state, before)
				}
			}
			changed += want.Changed
		}
		if difference, err := s.WorldDifference(storetest.AsAdmin()); difference != "" || err != nil {
			t.Errorf("%s, %v", difference, err)
		}
		if refused < 20 || changed < 50 {
			t.Errorf("%d refused, %d changed", refused, changed)
		}
	})
}

// checkUpdate compares the outcome of an update with the definition. It returns
// 1 if the whole update had to be refused.
func checkUpdate(t *testing.T, u *placement.InventoryUpdate, dry bool, got,
	want *store.InventoriesUpdated, err error) int {
	t.Helper()
	if !isWrong(u) && (!u.Atomic || len(want.Refused) == 0) {
		if err != nil || outcomeOf(got) != outcomeOf(want) {
			t.Fatalf("%+v, dry %v: got %+v, %v, want %+v", u, dry, got, err, want)
		}
		return 0
	}
	if !errors.Is(err, problem.ErrInvalidInput) || !isWrong(u) && len(problem.InError(err)) != len(want.Refused) {
		t.Fatalf("%+v: %v, want %d refusals", u, err, len(want.Refused))
	}
	return 1
}

// outcomeOf returns the counts and the names of the refused providers.
func outcomeOf(of *store.InventoriesUpdated) string {
	line := fmt.Sprint(of.Changed, of.Unchanged, of.Overused)
	for i := range of.Refused {
		line += " " + of.Refused[i].Provider.Name
	}
	return line
}

// TestUpdatesOfInventoriesLoseNothing updates inventories while another server
// claims and changes other values of the same ones. No value and no use is
// lost.
func TestUpdatesOfInventoriesLoseNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		other := s
		if strings.HasPrefix(url, "postgres") {
			other = storetest.Open(t, url)
		}
		updateFixture(t, s)
		ctx := storetest.AsAdmin()
		var tasks sync.WaitGroup
		do := func(task func(ctx context.Context) error) {
			tasks.Go(func() {
				for range 8 {
					if err := task(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		n := 0
		do(func(ctx context.Context) error {
			_, _, err := s.UpdateInventories(ctx,
				placement.InventoryUpdate{ResourceClass: "VCPU", Reserved: new(int32(1))}, nil)
			return err
		})
		do(func(ctx context.Context) error {
			_, _, err := other.UpdateInventories(ctx,
				placement.InventoryUpdate{ResourceClass: "VCPU", MaxUnit: new(int32(7))}, nil)
			return err
		})
		do(func(ctx context.Context) error {
			n++
			_, err := other.SetAllocations(ctx, claimOne(storetest.UUID(1005), storetest.UUID(4000+n)))
			if errors.Is(err, problem.ErrCapacityExceeded) {
				return nil
			}
			return err
		})
		tasks.Wait()
		var difference string
		patience.Until(t, 10*time.Second, func() bool { // s follows the other server
			var err error
			if difference, err = s.WorldDifference(ctx); err != nil {
				t.Fatal(err)
			}
			return difference == ""
		})
		if difference != "" {
			t.Error(difference)
		}
		world, err := s.World(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for p := range world.Providers() {
			for _, i := range p.Inventories {
				if i.ResourceClass == "VCPU" && (i.Reserved != 1 || i.MaxUnit != 7) {
					t.Errorf("%s: %+v", p.Name, i)
				}
			}
		}
	})
}
