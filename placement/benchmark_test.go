package placement_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// numbered returns a uuid for a number. Neighboring numbers are not neighbors
// in the order of uuids.
func numbered(n int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*2654435761, n)
}

func stocked(class string, total int32, used int64) Inventory {
	return Inventory{ResourceClass: class, Total: total, MinUnit: 1, MaxUnit: total, StepSize: 1,
		AllocationRatio: 1, Capacity: int64(total), Used: used}
}

var cloudNames = Names{
	Traits:          []string{"COMPUTE_NODE", "CUSTOM_RARE", "HW_CPU_X86_AVX", TraitShares},
	ResourceClasses: []string{"DISK_GB", "MEMORY_MB", "PGPU", "VCPU", "VGPU"},
}

// flatCloud has n hosts of one provider each.
func flatCloud(n int) []Provider {
	providers := make([]Provider, n)
	for i := range providers {
		providers[i] = Provider{
			UUID: numbered(i), Name: fmt.Sprintf("host%06d", i), Version: 1,
			Inventories: []Inventory{stocked("DISK_GB", 2000, 0),
				stocked("MEMORY_MB", 131072, 0), stocked("VCPU", 64, int64(i%64))},
			Traits:     []string{"COMPUTE_NODE", "HW_CPU_X86_AVX"},
			Aggregates: []string{numbered(1_000_000 + i%10)},
		}
		if i%1000 == 999 {
			providers[i].Traits = []string{"COMPUTE_NODE", "CUSTOM_RARE"}
		}
	}
	return providers
}

// nestedCloud has n hosts of two NUMA nodes, each with four devices.
func nestedCloud(n int) []Provider {
	var providers []Provider
	add := func(parent, name string, traits []string, inventories ...Inventory) string {
		uuid := numbered(len(providers))
		providers = append(providers,
			Provider{UUID: uuid, Name: name, Version: 1, Parent: parent, Traits: traits, Inventories: inventories})
		return uuid
	}
	for host := range n {
		name := fmt.Sprintf("host%05d", host)
		root := add("", name, []string{"COMPUTE_NODE"}, stocked("DISK_GB", 2000, 0))
		for numa := range 2 {
			numaName := fmt.Sprintf("%s_numa%d", name, numa)
			node := add(root, numaName, nil, stocked("MEMORY_MB", 65536, 0), stocked("VCPU", 32, 0))
			for device := range 4 {
				add(node, fmt.Sprintf("%s_gpu%d", numaName, device), nil, stocked("VGPU", 4, 0))
			}
		}
	}
	return providers
}

func amounts(pairs ...Amount) []Amount { return pairs }

func benchmark(b *testing.B, w *World, r *Request, first, want int) {
	b.Helper()
	for b.Loop() {
		page, err := Candidates(w, r, nil, first)
		if err != nil || len(page.Candidates) != want {
			b.Fatalf("%d candidates, %v", len(page.Candidates), err)
		}
	}
}

func threeClasses(vcpu int64) Group {
	return Group{Resources: amounts(Amount{"VCPU", vcpu}, Amount{"MEMORY_MB", 1024}, Amount{"DISK_GB", 10})}
}

func BenchmarkCandidatesFlat(b *testing.B) {
	w := NewWorld(cloudNames, flatCloud(10_000))
	rare := threeClasses(1)
	rare.RequiredAny = []string{"CUSTOM_RARE"}
	for name, c := range map[string]struct {
		group       Group
		first, want int
	}{
		"page":   {threeClasses(1), 100, 100},
		"all":    {threeClasses(1), 10_000, 10_000},
		"none":   {threeClasses(65), 100, 0},
		"scarce": {threeClasses(64), 1000, 157},
		"rare":   {rare, 100, 10},
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, w, &Request{Unsuffixed: c.group}, c.first, c.want) })
	}
}

// BenchmarkFirstCandidates finds the first ten candidates in worlds of three
// sizes.
func BenchmarkFirstCandidates(b *testing.B) {
	group := threeClasses(4)
	group.RequiredAll = []string{"COMPUTE_NODE"}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchmark(b, NewWorld(cloudNames, flatCloud(n)), &Request{Unsuffixed: group}, 10, 10)
		})
	}
}

func BenchmarkCandidatesNested(b *testing.B) {
	w := NewWorld(cloudNames, nestedCloud(1000))
	r := &Request{Groups: []Group{
		{Suffix: "_CPU", Resources: amounts(Amount{"VCPU", 4}, Amount{"MEMORY_MB", 1024})},
		{Suffix: "_GPU1", Resources: amounts(Amount{"VGPU", 1})},
		{Suffix: "_GPU2", Resources: amounts(Amount{"VGPU", 1})},
	}, Policy: GroupPolicyIsolate, SameSubtree: []Subtree{{Suffixes: []string{"_CPU", "_GPU1", "_GPU2"}}}}
	b.Run("page", func(b *testing.B) { benchmark(b, w, r, 100, 100) })
	unsuffixed := &Request{Unsuffixed: threeClasses(4)}
	b.Run("unsuffixed", func(b *testing.B) { benchmark(b, w, unsuffixed, 1000, 1000) })
}

func BenchmarkCount(b *testing.B) {
	w := NewWorld(cloudNames, flatCloud(20_000))
	r := &Request{Unsuffixed: threeClasses(1)}
	for b.Loop() {
		if n, exact, err := Count(w, r, MaxCount); n != MaxCount || exact || err != nil {
			b.Fatal(n, exact, err)
		}
	}
}

// devices is one host with n equal devices.
func devices(n int) []Provider {
	providers := []Provider{{UUID: numbered(0), Name: "host", Version: 1}}
	for i := range n {
		providers = append(providers, Provider{UUID: numbered(i + 1), Name: fmt.Sprintf("gpu%d", i), Version: 1,
			Parent: numbered(0), Inventories: []Inventory{stocked("PGPU", 1, 0)}})
	}
	return providers
}

func deviceGroups(n int, policy GroupPolicy) *Request {
	r := &Request{Policy: policy}
	for i := range n {
		r.Groups = append(r.Groups, Group{Suffix: fmt.Sprintf("_D%02d", i), Resources: amounts(Amount{"PGPU", 1})})
	}
	return r
}

func BenchmarkCandidatesDevices(b *testing.B) {
	for _, n := range []int{8, 21, 64} {
		w := NewWorld(cloudNames, devices(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchmark(b, w, deviceGroups(n, GroupPolicyIsolate), 100, 100)
		})
	}
}

func BenchmarkWorldClaim(b *testing.B) {
	providers := flatCloud(10_000)
	w := NewWorld(cloudNames, providers)
	i := 0
	for b.Loop() {
		p := providers[i%len(providers)]
		i++
		p.Version = int64(1 + i)
		p.Inventories = []Inventory{stocked("DISK_GB", 2000, int64(i%100)), p.Inventories[1], p.Inventories[2]}
		w = w.With(Update{Providers: []Provider{p}})
	}
}

func BenchmarkNewWorld(b *testing.B) {
	providers := flatCloud(10_000)
	for b.Loop() {
		NewWorld(cloudNames, providers)
	}
}

// BenchmarkExplain searches a large world without finding candidates, and
// explains that.
func BenchmarkExplain(b *testing.B) {
	flat := flatCloud(100_000)
	many := threeClasses(1)
	for i := range 11 {
		many.RequiredAll = append(many.RequiredAll, fmt.Sprintf("CUSTOM_%d", i))
	}
	for i := range flat {
		for n := range 11 {
			if (i*7+n*13)%11 < 9 {
				flat[i].Traits = append(flat[i].Traits, fmt.Sprintf("CUSTOM_%d", n))
			}
		}
	}
	devices := &Request{Groups: []Group{
		{Suffix: "_CPU", Resources: amounts(Amount{"VCPU", 4}, Amount{"MEMORY_MB", 1024})},
		{Suffix: "_GPU", Resources: amounts(Amount{"VGPU", 5}), RequiredAll: []string{"CUSTOM_RARE"}},
	}, Policy: GroupPolicyIsolate}
	contradiction := threeClasses(1)
	contradiction.MemberOf = []AggregateFilter{{AnyOf: flat[0].Aggregates, NoneOf: flat[0].Aggregates}}
	for _, c := range []struct {
		name string
		w    *World
		r    *Request
	}{
		{"contradiction", NewWorld(cloudNames, flat), &Request{Groups: []Group{contradiction}}},
		{"amount", NewWorld(cloudNames, flat), &Request{Unsuffixed: threeClasses(65)}},
		{"traits", NewWorld(cloudNames, flat), &Request{Unsuffixed: many}},
		{"devices", NewWorld(cloudNames, nestedCloud(9_000)), devices},
	} {
		b.Run(c.name+"/search", func(b *testing.B) { benchmark(b, c.w, c.r, 10, 0) })
		b.Run(c.name+"/explain", func(b *testing.B) {
			for b.Loop() {
				Explain(c.w, c.r)
			}
		})
	}
}

// BenchmarkCapacities adds up all inventories of 10,000 hosts with two NUMA
// nodes and eight devices each.
func BenchmarkCapacities(b *testing.B) {
	w := NewWorld(cloudNames, nestedCloud(10_000))
	everyone := slices.Collect(w.Providers())
	for _, by := range []CapacityGrouping{CapacityByClass, CapacityByTrait, CapacityByRoot} {
		b.Run(string(by), func(b *testing.B) {
			for b.Loop() {
				w.Capacities(everyone, by, nil)
			}
		})
	}
}

// BenchmarkFits counts what fits on 100,000 hosts, on hosts that share storage,
// and on hosts with devices.
func BenchmarkFits(b *testing.B) {
	sharing := flatCloud(100_000)
	for i := range sharing {
		sharing[i].Inventories = sharing[i].Inventories[1:]
	}
	for i := range 10 {
		sharing = append(sharing, Provider{UUID: numbered(2_000_000 + i), Name: fmt.Sprintf("pool%d", i), Version: 1,
			Inventories: []Inventory{stocked("DISK_GB", 100_000, 0)}, Traits: []string{TraitShares},
			Aggregates: []string{numbered(1_000_000 + i)}})
	}
	devices := Request{Unsuffixed: threeClasses(1), Groups: []Group{
		{Suffix: "_GPU1", Resources: amounts(Amount{"VGPU", 1})},
		{Suffix: "_GPU2", Resources: amounts(Amount{"VGPU", 1})},
	}}
	flavor := Request{Unsuffixed: threeClasses(4)}
	flavor.Unsuffixed.RequiredAll = []string{"COMPUTE_NODE"}
	for _, c := range []struct {
		name      string
		providers []Provider
		request   Request
	}{
		{"flat", flatCloud(100_000), flavor},
		{"sharing", sharing, flavor},
		{"devices", nestedCloud(9_000), devices},
	} {
		w := NewWorld(cloudNames, c.providers)
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				fit := Fits(w, &c.request)
				if fit.AtLeast == 0 || fit.Exact() == nil && c.name != "sharing" {
					b.Fatalf("%+v", fit)
				}
			}
		})
	}
}

// BenchmarkWhatIf disables, or removes, 900 hosts with 9,900 providers.
func BenchmarkWhatIf(b *testing.B) {
	providers := nestedCloud(9_000)
	w := NewWorld(cloudNames, providers)
	disable, remove := []WhatIfChange{}, []WhatIfChange{}
	for i := range 900 {
		disable = append(disable, WhatIfChange{DisableProvider: &providers[i*110].UUID})
		remove = append(remove, WhatIfChange{RemoveProvider: &providers[i*110].UUID})
	}
	for name, changes := range map[string][]WhatIfChange{"disable": disable, "remove": remove} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, problems := w.WhatIf("changes", changes, nil, later); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
