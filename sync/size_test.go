package sync_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A large cloud.
const (
	manyHosts, manyServers, manyFlavors, manyImages = 10_000, 100_000, 2_000, 20_000
	manyProjects                                    = 100
)

// sized are the kinds of a large cloud, in the order of a pass.
var sized = []string{"flavors", "hypervisors", "providers", "servers", "allocations", "images"}

// hostOf returns the uuid of a host and of its provider.
func hostOf(i int) string { return fmt.Sprintf("66666666-0000-4000-8000-%012d", i) }

func serverOf(i int) string { return fmt.Sprintf("77777777-0000-4000-8000-%012d", i) }

// newLargeFake returns a cloud with servers on all hosts.
func newLargeFake() *fake {
	f := &fake{size: 1000, lacks: "reservation", lists: map[string][]object{}, objects: map[string]object{}, owners: map[string]string{}}
	f.lists[services], f.lists[aggregates], f.lists[images+" hidden"] = []object{}, []object{}, []object{}
	for i := range manyFlavors {
		f.lists[flavors] = append(f.lists[flavors], object{"id": fmt.Sprint(i), "name": fmt.Sprint("flavor ", i), "ram": 512 + i, "disk": i, "vcpus": 1 + i%64,
			"os-flavor-access:is_public": true, "extra_specs": object{"hw:cpu_policy": "dedicated", "resources:VGPU": fmt.Sprint(i % 4)}})
	}
	for i := range manyImages {
		f.lists[images] = append(f.lists[images], object{"id": fmt.Sprint("image-", i), "name": "image", "owner": fmt.Sprint("p", i%manyProjects), "visibility": "private",
			"os_distro": "debian", "hw_disk_bus": "virtio", "min_disk": i % 50})
	}
	for i := range manyHosts {
		f.lists[hypervisors] = append(f.lists[hypervisors], object{"id": hostOf(i), "hypervisor_hostname": fmt.Sprint("node-", i), "hypervisor_type": "QEMU", "state": "up",
			"status": "enabled", "cpu_info": object{"arch": "x86_64", "features": []string{"aes", "avx", "vmx"}, "topology": object{"cores": 8}}})
		f.provide(hostOf(i), fmt.Sprint("node-", i), "", 64, "HW_CPU_X86_AVX", "HW_CPU_X86_VMX")
		f.objects["/placement/resource_providers/"+hostOf(i)+"/allocations"] = object{"allocations": object{}}
	}
	for i := range manyServers {
		f.owners[serverOf(i)] = fmt.Sprint("p", i%manyProjects)
		f.lists[servers] = append(f.lists[servers], object{"id": serverOf(i), "name": fmt.Sprint("server ", i), "tenant_id": f.owners[serverOf(i)], "status": "ACTIVE",
			"metadata": object{"role": "web", "team": fmt.Sprint(i % 50), "cost": fmt.Sprint(i)}})
		f.place(serverOf(i), hostOf(i%manyHosts))
	}
	return f
}

// place moves a consumer to a provider.
func (f *fake) place(consumer, provider string) {
	const list = "/placement/resource_providers/"
	if own := f.objects["/placement/allocations/"+consumer]; own != nil {
		for before := range own["allocations"].(object) {
			delete(f.objects[list+before+"/allocations"]["allocations"].(object), consumer)
		}
	}
	resources := object{"resources": object{"CUSTOM_GPU": 1}}
	f.objects[list+provider+"/allocations"]["allocations"].(object)[consumer] = resources
	f.objects["/placement/allocations/"+consumer] = object{"allocations": object{provider: resources}, "project_id": f.owners[consumer], "user_id": "ada"}
	f.changes(provider)
}

// BenchmarkSizeOfACloud syncs a large cloud: first, after a thousand changes, and
// without a change. Run it with -benchtime 1x.
func BenchmarkSizeOfACloud(b *testing.B) {
	f := newLargeFake()
	s := newSyncing(b, f)
	measure := func(round string, changed int) {
		sum := 0
		began := time.Now()
		for _, name := range sized {
			kind := time.Now()
			result, err := s.pass(name)
			if err != nil {
				b.Fatal(name, err)
			}
			sum += result.Created + result.Updated
			b.Logf("%s: %s: %+v in %.1f s", round, name, result.SyncCounts, time.Since(kind).Seconds())
		}
		if sum != changed {
			b.Errorf("%s: %d were written, want %d", round, sum, changed)
		}
		b.ReportMetric(time.Since(began).Seconds(), strings.ReplaceAll(round, " ", "-")+"-s")
	}
	measure("first", manyFlavors+2*manyHosts+2*manyServers+manyImages)
	for i := range 500 {
		f.lists[servers][i*37]["metadata"].(object)["cost"] = "changed"
		f.place(serverOf(i*53), hostOf((i*53+1)%manyHosts))
	}
	measure("after 1000 changes", 1000)
	before := s.written()
	measure("without a change", 0)
	if after := s.written(); after != before {
		b.Logf("written: %s, before %s", after, before)
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(used.Maxrss)/(1<<10), "MiB-peak")
}
