package placement_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// The tests of this file bound the counted steps, not the time, so that missing
// pruning shows on every machine.

func TestNineGroupsOnEightDevicesAnswerAtOnce(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, devices(8))
	for _, policy := range []GroupPolicy{GroupPolicyNone, GroupPolicyIsolate} {
		page, err := Candidates(w, deviceGroups(9, policy), nil, 100)
		if err != nil || len(page.Candidates) != 0 || page.HasNext {
			t.Fatalf("%d candidates, %v", len(page.Candidates), err)
		}
		if page.Steps > 2000 {
			t.Errorf("policy %d took %d steps", policy, page.Steps)
		}
	}
}

func TestFirstPageOfLikeDevicesIsBuiltWithoutTheRest(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 21, 64} {
		w := NewWorld(cloudNames, devices(n))
		page, err := Candidates(w, deviceGroups(n, GroupPolicyIsolate), nil, 100)
		if err != nil || len(page.Candidates) != 100 || !page.HasNext {
			t.Fatalf("%d devices: %d candidates, %v", n, len(page.Candidates), err)
		}
		if limit := 100 * n * n; page.Steps > limit {
			t.Errorf("%d devices took %d steps, more than %d", n, page.Steps, limit)
		}
	}
}

func TestEveryAssignmentOfEightDevicesIsCountedAndPaged(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, devices(8))
	r := deviceGroups(8, GroupPolicyIsolate)
	if n, exact, err := Count(w, r, MaxCount); n != MaxCount || exact || err != nil {
		t.Errorf("Count says %d, %v, %v", n, exact, err)
	}
	if n, exact, err := Count(w, r, 40_320); n != 40_320 || !exact || err != nil {
		t.Errorf("Count says %d, %v, %v", n, exact, err)
	}
	if n, exact, err := Count(w, r, 40_319); n != 40_319 || exact || err != nil {
		t.Errorf("Count says %d, %v, %v", n, exact, err)
	}
	if seen := keys(everyPage(t, w, r, 1000)); len(seen) != 40_320 {
		t.Errorf("the pages hold %d different candidates", len(seen))
	}
}

func TestUsedDevicesLeaveTheRest(t *testing.T) {
	t.Parallel()
	providers := devices(8)
	providers[3].Inventories = []Inventory{stocked("PGPU", 1, 1)}
	page, err := Candidates(NewWorld(cloudNames, providers), deviceGroups(8, GroupPolicyIsolate), nil, 100)
	if err != nil || len(page.Candidates) != 0 || page.Steps > 2000 {
		t.Errorf("%d candidates in %d steps, %v", len(page.Candidates), page.Steps, err)
	}
}

// TestPoliciesTakeFewSteps spreads over a level below all devices, places a
// consumer on each host, and spreads over racks that are full most of the time.
func TestPoliciesTakeFewSteps(t *testing.T) {
	t.Parallel()
	racked, racks := flatCloud(1000), []string{numbered(0), numbered(1), numbered(2), numbered(3)}
	slices.SortFunc(racked, func(a, b Provider) int { return strings.Compare(a.UUID, b.UUID) })
	for i := range racked {
		racked[i].Aggregates = racks[i/250 : i/250+1]
	}
	for _, of := range []struct {
		hosts []Provider
		Placing
		most int
	}{
		{devices(8), Placing{Request: *deviceGroups(8, GroupPolicyIsolate), Consumers: make([]NewConsumer, 1),
			Policy: &Policy{Spread: &ZoneSpread{Level: new(2), MaxSkew: 1}}}, 100},
		{flatCloud(1000), Placing{Request: Request{Unsuffixed: threeClasses(1)}, Consumers: make([]NewConsumer, 1000),
			Policy: &Policy{Hosts: DistinctHosts}}, 20_000},
		{racked, Placing{Request: Request{Unsuffixed: threeClasses(1)}, Consumers: make([]NewConsumer, 1000),
			Policy: &Policy{Spread: &ZoneSpread{Aggregates: racks, MaxSkew: 1}}}, 20_000},
	} {
		choices, err := of.Choose(NewWorld(cloudNames, of.hosts), 0, nil)
		if err != nil || choices.Steps > of.most {
			t.Errorf("%+v: %v after %d steps", of.Policy, err, choices.Steps)
		}
	}
}

func TestMixedAmountsOnOneClassPruneBySums(t *testing.T) {
	t.Parallel()
	providers := devices(8)
	for i := 1; i < len(providers); i++ {
		providers[i].Inventories = []Inventory{stocked("PGPU", 5, 0)}
	}
	r := deviceGroups(17, GroupPolicyNone)
	for i := range r.Groups {
		r.Groups[i].Resources[0].Amount = 3
	}
	page, err := Candidates(NewWorld(cloudNames, providers), r, nil, 100)
	if err != nil || len(page.Candidates) != 0 || page.Steps > 5000 {
		t.Errorf("%d candidates in %d steps, %v", len(page.Candidates), page.Steps, err)
	}
}

// TestHopelessSearchEndsWithAnError packs amounts into devices so that every
// bound holds but nothing fits. One more device has room for all amounts, but
// only the last group may use it.
func TestHopelessSearchEndsWithAnError(t *testing.T) {
	t.Parallel()
	providers := devices(12)
	for i := 1; i < len(providers); i++ {
		providers[i].Inventories = []Inventory{stocked("PGPU", 10, 0)}
	}
	providers = append(providers, Provider{UUID: numbered(4000), Name: "large", Version: 1, Parent: providers[0].UUID,
		Inventories: []Inventory{stocked("PGPU", 1000, 0)}, Traits: []string{"CUSTOM_RARE"}})
	r := deviceGroups(31, GroupPolicyNone)
	for i := range r.Groups {
		r.Groups[i].Resources[0].Amount = []int64{4, 4, 3}[i%3]
		if i < 30 {
			r.Groups[i].Forbidden = []string{"CUSTOM_RARE"}
		}
	}
	r.Groups[0].Resources[0].Amount = 10
	r.Groups[1].Resources[0].Amount = 7
	page, err := Candidates(NewWorld(cloudNames, providers), r, nil, 1<<30)
	if !errors.Is(err, ErrTooComplex) {
		t.Fatalf("%d candidates in %d steps, %v", len(page.Candidates), page.Steps, err)
	}
	if page.Steps < MaxSteps || page.Steps > MaxSteps+1000 {
		t.Errorf("%d steps", page.Steps)
	}
	if fit := Fits(NewWorld(cloudNames, providers), r); fit.AtLeast > fit.AtMost || len(fit.LimitedBy) != 1 {
		t.Errorf("%+v fit", fit)
	}
	if _, exact, err := Count(NewWorld(cloudNames, providers), r, 1<<30); exact || !errors.Is(err, ErrTooComplex) {
		t.Errorf("Count is exact: %v, %v", exact, err)
	}
}

func TestManyAnchorsOfOneSharedDiskCostLittle(t *testing.T) {
	t.Parallel()
	aggregate := numbered(1 << 20)
	var providers []Provider
	for i := range 2000 {
		providers = append(providers, Provider{UUID: numbered(i), Name: fmt.Sprint("host", i), Version: 1,
			Inventories: []Inventory{stocked("VCPU", 8, 0)}, Aggregates: []string{aggregate}})
	}
	for i := range 20 {
		providers = append(providers, Provider{UUID: numbered(3000 + i), Name: fmt.Sprint("disk", i), Version: 1,
			Inventories: []Inventory{stocked("DISK_GB", 1000, 0)},
			Traits:      []string{TraitShares}, Aggregates: []string{aggregate}})
	}
	w := NewWorld(cloudNames, providers)
	r := &Request{Groups: []Group{
		{Suffix: "1", Resources: amounts(Amount{"DISK_GB", 1})},
		{Suffix: "2", Resources: amounts(Amount{"DISK_GB", 1})},
	}}
	page, err := Candidates(w, r, nil, 1000)
	if err != nil || len(page.Candidates) != 400 || page.HasNext {
		t.Fatalf("%d candidates, %v", len(page.Candidates), err)
	}
	if page.Steps > 200_000 {
		t.Errorf("%d steps", page.Steps)
	}
	for _, position := range page.Positions {
		if position.String() == "" {
			t.Fatal("no position")
		}
	}
}
