package demo

import (
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
)

// These numbers were counted by hand from the tables of hosts: 22 hosts with
// two NUMA nodes and two flat hosts.
func TestTheCloudHasCandidatesForExamples(t *testing.T) {
	t.Parallel()
	world := Build()
	resident := placement.NewWorld(namesOf(world), world.Providers)

	amount := func(class string, n int64) placement.Amount { return placement.Amount{ResourceClass: class, Amount: n} }
	server := []placement.Amount{amount("VCPU", 2), amount("MEMORY_MB", 4096)}
	virtualFunction := []placement.Amount{amount("SRIOV_NET_VF", 1)}
	physicalNetworks := []string{"CUSTOM_PHYSNET_PUBLIC", "CUSTOM_PHYSNET_STORAGE"}
	for _, example := range []struct {
		name string
		ask  placement.Group
		want int
	}{
		{"processors with AVX2, each class from either node",
			placement.Group{Resources: server, RequiredAll: []string{"HW_CPU_X86_AVX2"}}, 22 * 4},
		{"ARM", placement.Group{Resources: server, RequiredAll: []string{"HW_ARCH_AARCH64"}}, 2},
		{"ARM, but not the disabled host", placement.Group{Resources: server, RequiredAll: []string{"HW_ARCH_AARCH64"},
			Forbidden: []string{"COMPUTE_STATUS_DISABLED"}}, 1},
		{"a port on one of two networks", placement.Group{Resources: virtualFunction, RequiredAny: physicalNetworks},
			6 + 2 + 2 + 1 + 1},
		{"a port on the storage network",
			placement.Group{Resources: virtualFunction, RequiredAll: []string{"CUSTOM_VNIC_TYPE_DIRECT"},
				RequiredAny: physicalNetworks, Forbidden: physicalNetworks[:1]}, 3},
		{"graphics", placement.Group{Resources: []placement.Amount{amount("VGPU", 1)},
			RequiredAny: []string{"CUSTOM_GPU_NVIDIA_A2", "CUSTOM_GPU_NVIDIA_A100"}}, 2*2 + 2},
		{"dedicated processors", placement.Group{Resources: []placement.Amount{amount("PCPU", 8)}}, 6 * 2},
		{"a processor and a disk, local or shared",
			placement.Group{Resources: []placement.Amount{amount("VCPU", 1), amount("DISK_GB", 10)}},
			6*2*1 + 6*2*2 + 6*2 + 4*2 + 2},
		{"a processor in the first rack", placement.Group{Resources: []placement.Amount{amount("VCPU", 1)},
			MemberOf: []placement.AggregateFilter{{AnyOf: []string{uuidOf(typeAggregate, "fra1-r01")}}}}, 6 * 2},
	} {
		request := placement.Request{Unsuffixed: example.ask}
		page, err := placement.Candidates(resident, &request, nil, 1000)
		if err != nil || len(page.Candidates) != example.want {
			t.Errorf("%s: %d candidates, error %v; want %d", example.name, len(page.Candidates), err, example.want)
		}
	}
}
