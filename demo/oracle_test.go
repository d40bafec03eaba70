package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
)

// cloud answers requests for the demo cloud by brute force. It shares only the
// nouns with the solver.
type cloud struct {
	providers []placement.Provider // by path of uuids
	roots     map[string]string
}

func newCloud(providers []placement.Provider) *cloud {
	c := &cloud{roots: map[string]string{}}
	paths := map[string]string{}
	for _, p := range providers { // parents come first
		paths[p.UUID], c.roots[p.UUID] = paths[p.Parent]+"/"+p.UUID, p.UUID
		if p.Parent != "" {
			c.roots[p.UUID] = c.roots[p.Parent]
		}
	}
	c.providers = slices.Clone(providers)
	slices.SortFunc(c.providers, func(a, b placement.Provider) int {
		return strings.Compare(paths[a.UUID], paths[b.UUID])
	})
	return c
}

func shareAny(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// usable returns the providers that may serve below a root: the providers of
// its tree, and the sharing providers in an aggregate of any provider of the
// tree.
func (c *cloud) usable(root string) []placement.Provider {
	var aggregates []string
	for _, p := range c.providers {
		if c.roots[p.UUID] == root {
			aggregates = append(aggregates, p.Aggregates...)
		}
	}
	var usable []placement.Provider
	for _, p := range c.providers {
		if c.roots[p.UUID] == root || slices.Contains(p.Traits, placement.TraitShares) &&
			shareAny(p.Aggregates, aggregates) {
			usable = append(usable, p)
		}
	}
	return usable
}

// answers returns the candidates of an unsuffixed group, each as a string.
func (c *cloud) answers(g placement.Group) []string {
	var found []string
	for _, root := range c.providers {
		if c.roots[root.UUID] != root.UUID {
			continue
		}
		usable := c.usable(root.UUID)
		var choose func(chosen []placement.Provider)
		choose = func(chosen []placement.Provider) {
			if len(chosen) == len(g.Resources) {
				if text := served(g, chosen); text != "" && !slices.Contains(found, text) {
					found = append(found, text)
				}
				return
			}
			for _, p := range usable {
				if serves(p, g.Resources[len(chosen)]) && !shareAny(p.Traits, g.Forbidden) {
					choose(append(slices.Clone(chosen), p))
				}
			}
		}
		choose(nil)
	}
	return found
}

func serves(p placement.Provider, want placement.Amount) bool {
	return slices.ContainsFunc(p.Inventories, func(i placement.Inventory) bool {
		return i.ResourceClass == want.ResourceClass &&
			float64(i.Used+want.Amount) <= float64(i.Total-i.Reserved)*i.AllocationRatio &&
			want.Amount >= int64(i.MinUnit) && want.Amount <= int64(i.MaxUnit) && want.Amount%int64(i.StepSize) == 0
	})
}

// served returns a choice of providers as a string, or "" if they do not have
// all traits together.
func served(g placement.Group, chosen []placement.Provider) string {
	var traits, lines []string
	for i, p := range chosen {
		traits = append(traits, p.Traits...)
		lines = append(lines,
			fmt.Sprintf("%s serves %d %s", p.UUID, g.Resources[i].Amount, g.Resources[i].ResourceClass))
	}
	for _, trait := range g.RequiredAll {
		if !slices.Contains(traits, trait) {
			return ""
		}
	}
	if len(g.RequiredAny) > 0 && !shareAny(traits, g.RequiredAny) {
		return ""
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func described(c placement.Candidate) string {
	var lines []string
	for _, allocation := range c.Allocations {
		for _, amount := range allocation.Resources {
			lines = append(lines,
				fmt.Sprintf("%s serves %d %s", allocation.Provider, amount.Amount, amount.ResourceClass))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// claimedCloud returns the demo cloud with its claims.
func claimedCloud() (*cloud, *placement.World) {
	world := Build()
	used := map[string]int64{}
	for _, claim := range world.Claims {
		for _, consumer := range claim.Consumers {
			for _, allocation := range consumer.Allocations {
				for _, amount := range allocation.Resources {
					used[allocation.Provider+amount.ResourceClass] += amount.Amount
				}
			}
		}
	}
	for i := range world.Providers {
		for k := range world.Providers[i].Inventories {
			inventory := &world.Providers[i].Inventories[k]
			inventory.Used = used[world.Providers[i].UUID+inventory.ResourceClass]
		}
	}
	return newCloud(world.Providers), placement.NewWorld(namesOf(world), world.Providers)
}

// FuzzDemoCandidates sends random requests to the demo cloud and compares the
// answer with the brute-force answer, order included.
func FuzzDemoCandidates(f *testing.F) {
	brute, resident := claimedCloud()
	classes := []string{"VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "VGPU", "PCPU", "NET_BW_EGR_KILOBIT_PER_SEC"}
	traits := []string{"HW_CPU_X86_AVX2", "HW_ARCH_AARCH64", "STORAGE_DISK_SSD", "STORAGE_DISK_HDD",
		"COMPUTE_STATUS_DISABLED", "CUSTOM_PHYSNET_PUBLIC",
		"CUSTOM_PHYSNET_STORAGE", "CUSTOM_VNIC_TYPE_DIRECT", "HW_NUMA_ROOT", "CUSTOM_GPU_NVIDIA_A2"}
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		pick := func(list []string, limit int) []string {
			return slices.Sorted(slices.Values(slices.Collect(func(yield func(string) bool) {
				for _, at := range random.Perm(len(list))[:random.IntN(limit+1)] {
					if !yield(list[at]) {
						return
					}
				}
			})))
		}
		group := placement.Group{RequiredAny: pick(traits, 4)}
		if random.IntN(4) == 0 {
			group.RequiredAll = pick(traits, 1)
		}
		for _, class := range pick(classes, 2) {
			group.Resources = append(group.Resources,
				placement.Amount{ResourceClass: class, Amount: []int64{1, 1, 2, 4, 100}[random.IntN(5)]})
		}
		for _, trait := range pick(traits, 1) {
			if !slices.Contains(group.RequiredAll, trait) && !slices.Contains(group.RequiredAny, trait) {
				group.Forbidden = []string{trait}
			}
		}
		request := placement.Request{Unsuffixed: group}
		if len(placement.Validate(resident, &request)) > 0 {
			t.Skip()
		}
		page, err := placement.Candidates(resident, &request, nil, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, candidate := range page.Candidates {
			got = append(got, described(candidate))
		}
		if want := brute.answers(group); !slices.Equal(got, want) {
			t.Errorf("%+v: %d candidates, want %d", group, len(got), len(want))
		}
	})
}
