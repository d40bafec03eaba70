package demo

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

const (
	typeHost      = "physical:host"
	typeRack      = "physical:rack"
	typeAggregate = "OS::Nova::Aggregate"
)

// batch is a number of hosts of one kind in one rack, bought together.
type batch struct {
	rack      string
	count     int
	bought    string
	processor processor
	memoryMB  int
	localGB   int
	ssd       bool
	gpus      []string // models, one for each graphics processor; spread over the NUMA nodes

	// How the hosts take part in placement.
	numaNodes  int     // 0 for a host that is one flat provider
	pinned     int     // threads for dedicated processors in each NUMA node
	overcommit float64 // allocation ratio of VCPU
	shared     bool    // all disks come from shared storage
	ports      []port

	projectID  string
	visibility access.Visibility
	tag        string
}

// processor is a processor model, with the traits of its features.
type processor struct {
	vendor, model, arch string
	sockets             int
	cores               int // of each socket
	threads             int // of each core
	features            string
	traits              []string
}

// port is a physical network port of some hosts of a batch.
type port struct {
	device           string
	network          string // physical network
	gigabits         int
	virtualFunctions int   // 0 for a port of a virtual switch
	hosts            []int // positions in the batch; nil is all
}

// host is one host of a batch.
type host struct {
	batch
	name     string
	position int // in its batch, from 0
	number   int // in the cloud, from 1
}

func batches() []batch {
	const baseX86 = "aes avx avx2 bmi1 bmi2 f16c fma fsgsbase lm movbe nx pclmulqdq popcnt rdrand rdseed sse sse2 sse4_1 sse4_2 ssse3 xsave"
	x86 := []string{"HW_ARCH_X86_64", "HW_CPU_HYPERTHREADING", "HW_CPU_X86_AESNI", "HW_CPU_X86_AVX",
		"HW_CPU_X86_AVX2", "HW_CPU_X86_SSE42"}
	with := func(more ...string) []string { return append(more, x86...) }

	icelake := processor{vendor: "Intel", model: "Icelake-Server", arch: "x86_64", sockets: 2, cores: 16, threads: 2,
		features: baseX86 + " avx512f avx512vl sgx sha_ni vmx",
		traits:   with("HW_CPU_X86_AVX512F", "HW_CPU_X86_AVX512VL", "HW_CPU_X86_SGX", "HW_CPU_X86_VMX")}
	milan := processor{vendor: "AMD", model: "EPYC-Milan", arch: "x86_64", sockets: 2, cores: 32, threads: 2,
		features: baseX86 + " npt sev sev_es sha_ni sse4a svm",
		traits:   with("HW_CPU_X86_AMD_SEV", "HW_CPU_X86_AMD_SEV_ES", "HW_CPU_X86_SVM")}
	sapphire := processor{vendor: "Intel", model: "SapphireRapids", arch: "x86_64", sockets: 2, cores: 24, threads: 2,
		features: baseX86 + " amx_bf16 amx_int8 amx_tile avx512f avx512vl avx512_vnni sha_ni vmx",
		traits: with("HW_CPU_X86_AMXINT8", "HW_CPU_X86_AMXTILE", "HW_CPU_X86_AVX512F",
			"HW_CPU_X86_AVX512VNNI", "HW_CPU_X86_VMX")}
	genoa := processor{vendor: "AMD", model: "EPYC-Genoa", arch: "x86_64", sockets: 1, cores: 48, threads: 2,
		features: baseX86 + " avx512f avx512vl avx512_vnni npt sev sha_ni svm vaes",
		traits:   with("HW_CPU_X86_AMD_SEV", "HW_CPU_X86_AVX512F", "HW_CPU_X86_SVM")}
	altra := processor{vendor: "Ampere", model: "Altra", arch: "aarch64", sockets: 1, cores: 80, threads: 1,
		features: "aes asimd atomics crc32 fp pmull sha1 sha2",
		traits:   []string{"HW_ARCH_AARCH64", "HW_CPU_AARCH64_AES", "HW_CPU_AARCH64_ASIMD", "HW_CPU_AARCH64_ATOMICS"}}

	return []batch{
		{rack: "fra1-r01", count: 6, bought: "2022-11", processor: icelake, memoryMB: 262144, localGB: 447, ssd: true,
			numaNodes: 2, overcommit: 16, shared: true,
			ports:     []port{{device: "br-public", network: "public", gigabits: 10, hosts: []int{0, 1, 2}}},
			projectID: projectDemo, visibility: access.Public, tag: "General Purpose"},
		{rack: "fra1-r02", count: 6, bought: "2023-06", processor: milan, memoryMB: 524288, localGB: 894, ssd: true,
			numaNodes: 2, overcommit: 4, shared: true,
			ports:     []port{{device: "ens1f0", network: "public", gigabits: 25, virtualFunctions: 8}},
			projectID: projectDemo, visibility: access.Public, tag: "General Purpose"},
		{rack: "fra1-r03", count: 2, bought: "2024-02", processor: sapphire, memoryMB: 1048576, localGB: 7152,
			ssd: true, gpus: []string{"NVIDIA A2", "NVIDIA A2"},
			numaNodes: 2, pinned: 24, overcommit: 4,
			projectID: projectDemo, visibility: access.Public, tag: "Accelerated"},
		{rack: "fra1-r03", count: 2, bought: "2024-09", processor: sapphire, memoryMB: 1048576, localGB: 7152,
			ssd: true, gpus: []string{"NVIDIA A100"},
			numaNodes: 2, pinned: 24, overcommit: 4,
			projectID: projectResearch, visibility: access.Private, tag: "Accelerated"},
		{rack: "fra1-r03", count: 2, bought: "2024-02", processor: sapphire, memoryMB: 524288, localGB: 3576, ssd: true,
			numaNodes: 2, pinned: 32, overcommit: 4,
			projectID: projectDemo, visibility: access.Public, tag: "General Purpose"},
		{rack: "fra1-r04", count: 4, bought: "2025-03", processor: genoa, memoryMB: 393216, localGB: 21456,
			numaNodes: 2, overcommit: 4,
			ports: []port{
				{device: "ens1f0", network: "public", gigabits: 25, virtualFunctions: 8, hosts: []int{0, 1, 2}},
				{device: "ens1f1", network: "storage", gigabits: 25, virtualFunctions: 8, hosts: []int{0, 1, 3}}},
			projectID: projectDemo, visibility: access.Public, tag: "Storage Dense"},
		{rack: "fra1-r04", count: 2, bought: "2024-05", processor: altra, memoryMB: 262144, localGB: 1788, ssd: true,
			overcommit: 4,
			projectID:  projectDemo, visibility: access.Public, tag: "Edge Site"},
	}
}

// hosts returns every host, compute-01 first.
func hosts() []host {
	var list []host
	for _, batch := range batches() {
		for position := range batch.count {
			number := len(list) + 1
			list = append(list,
				host{batch: batch, name: fmt.Sprintf("compute-%02d", number), position: position, number: number})
		}
	}
	return list
}

func racks() []string { return []string{"fra1-r01", "fra1-r02", "fra1-r03", "fra1-r04"} }

// addHosts adds the racks, the hosts in them, and the registry of their
// capabilities.
func (b *builder) addHosts() {
	b.world.ResourceTypes = append(b.world.ResourceTypes, typeRack)
	register := func(resourceType string, private bool, names ...string) {
		for _, name := range names {
			b.world.Capabilities = append(b.world.Capabilities,
				store.CapabilityRecord{ResourceType: resourceType, Name: name, Private: private})
		}
	}
	register(typeHost, false, "arch", "cpu_info:arch", "cpu_info:features", "cpu_info:model", "cpu_info:topology:cores",
		"cpu_info:topology:sockets", "cpu_info:topology:threads", "cpu_info:vendor",
		"gpu", "gpu_count", "hypervisor_hostname",
		"hypervisor_type", "hypervisor_version", "local_gb", "memory_mb", "rack", "ssd", "vcpus")
	register(typeHost, true, "bmc_address", "purchase_batch", "serial_number")
	register(typeRack, false, "power_kw", "units")
	register(typeRack, true, "lock_code")

	for i, rack := range racks() {
		b.add(store.ResourceRecord{Type: typeRack, Name: rack, ProjectID: projectDemo, Visibility: access.Public,
			Description: fmt.Sprintf("Rack %d of the hall in Frankfurt.", i+1),
			Metadata: metadata("team=data-centre", "cooling_zone="+[]string{"north", "south"}[i%2],
				"!last_inspection=2025-09-1"+strconv.Itoa(i)),
			Capabilities: []metadef.KeyValue{
				{Key: "units", Value: "42"}, {Key: "power_kw", Value: []string{"12", "12", "24", "9"}[i]},
				{Key: "lock_code", Value: fmt.Sprintf("R%d-%04d", i+1, 2741*(i+1)%10000)}}})
	}
	for _, host := range hosts() {
		b.add(store.ResourceRecord{Type: typeHost, Name: host.name, Parent: uuidOf(typeRack, host.rack),
			ProjectID: host.projectID, Visibility: host.visibility,
			Description: fmt.Sprintf("%s host with %s processors, bought in %s.",
				host.tag, host.processor.model, host.bought),
			Metadata:     host.metadata(),
			Capabilities: host.capabilities(),
			Tags:         host.tags()})
	}
}

func (h host) metadata() []resource.MetadataItem {
	items := []string{"rack=" + h.rack, fmt.Sprintf("rack_unit=%d", 2*((h.number-1)%6)+4), "lifecycle=production",
		"firmware_baseline=2025.06", "!registered_by=discovery"}
	switch h.name {
	case "compute-05":
		items[2] = "lifecycle=broken" // invalid: not in the enum
	case "compute-08":
		items[1] = "rack_unit=six" // invalid: not an integer
	case "compute-18":
		items[2] = "lifecycle=draining"
	case disabledHost:
		items[2] = "lifecycle=maintenance"
		items = append(items, "maintenance_reason=memory module 3 reports correctable errors")
	}
	if h.number%6 == 1 {
		items = append(items, "max_power_watts=1100")
	}
	return metadata(items...)
}

func (h host) tags() []string {
	tags := []string{h.tag}
	if h.name == disabledHost {
		tags = append(tags, "needs-attention")
	}
	return tags
}

func (h host) threads() int { return h.processor.sockets * h.processor.cores * h.processor.threads }

func (h host) capabilities() []metadef.KeyValue {
	features, err := json.Marshal(strings.Fields(h.processor.features))
	if err != nil {
		panic("demo: a list of strings is always JSON: " + err.Error())
	}
	version := "8002002"
	if h.rack == "fra1-r01" {
		version = "7002009"
	}
	list := []metadef.KeyValue{
		{Key: "vcpus", Value: strconv.Itoa(h.threads())},
		{Key: "memory_mb", Value: strconv.Itoa(h.memoryMB)},
		{Key: "local_gb", Value: strconv.Itoa(h.localGB)},
		{Key: "ssd", Value: strconv.FormatBool(h.ssd)},
		{Key: "rack", Value: h.rack},
		{Key: "arch", Value: h.processor.arch},
		{Key: "hypervisor_type", Value: "QEMU"},
		{Key: "hypervisor_version", Value: version},
		{Key: "hypervisor_hostname", Value: h.name + ".fra1.example.net"},
		{Key: "cpu_info:vendor", Value: h.processor.vendor},
		{Key: "cpu_info:model", Value: h.processor.model},
		{Key: "cpu_info:arch", Value: h.processor.arch},
		{Key: "cpu_info:topology:sockets", Value: strconv.Itoa(h.processor.sockets)},
		{Key: "cpu_info:topology:cores", Value: strconv.Itoa(h.processor.cores)},
		{Key: "cpu_info:topology:threads", Value: strconv.Itoa(h.processor.threads)},
		{Key: "cpu_info:features", Value: string(features)},
		{Key: "serial_number", Value: fmt.Sprintf("CZ%s%05d", strings.ReplaceAll(h.bought, "-", ""), 7919*h.number)},
		{Key: "bmc_address", Value: fmt.Sprintf("10.250.%s.%d", h.rack[len(h.rack)-1:], 10+h.number)},
		{Key: "purchase_batch", Value: h.bought + "/" + h.processor.model},
	}
	if len(h.gpus) > 0 {
		list = append(list, metadef.KeyValue{Key: "gpu", Value: h.gpus[0]},
			metadef.KeyValue{Key: "gpu_count", Value: strconv.Itoa(len(h.gpus))})
	}
	return list
}

// The aggregates besides one for each rack. The uuid of an aggregate's resource
// is also the aggregate's uuid in placement.
const (
	aggregateFastStorage    = "fast-storage-clients"
	aggregateArchiveStorage = "archive-storage-clients"
	aggregateAccelerated    = "accelerated"
)

func (b *builder) addAggregates() {
	aggregate := func(name, description string, items ...string) {
		b.add(store.ResourceRecord{Type: typeAggregate, Name: name, Description: description,
			ProjectID: projectDemo, Visibility: access.Public,
			Metadata: metadata(append(items, "team=compute")...)})
	}
	for _, rack := range racks() {
		aggregate(rack, "All hosts of one rack, which fail together when its power does.",
			"rack="+rack, "availability_zone=fra1")
	}
	aggregate(aggregateFastStorage, "Hosts whose disks come from the fast shared storage.",
		"storage_backend=fast-storage", "aggregate_instance_extra_specs:ssd=true")
	aggregate(aggregateArchiveStorage, "Hosts that also reach the archive storage.", "storage_backend=archive-storage",
		"aggregate_instance_extra_specs:ssd=false")
	aggregate(aggregateAccelerated, "Hosts with graphics processors.",
		"accel:gpu_model=<or> NVIDIA A2 <or> NVIDIA A100",
		"aggregate_instance_extra_specs:cpu_info:features=<all-in> amx_tile avx512f", "max_instances_per_host=20")
}
