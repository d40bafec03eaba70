package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/placement"
)

// disabledHost is in maintenance and takes no instances.
const disabledHost = "compute-24"

// Names of the storage systems shared by whole racks.
const (
	fastStorage    = "fast-storage"
	archiveStorage = "archive-storage"
)

func providerUUID(name string) string { return uuidOf("resource provider", name) }

// addProvider adds a provider with a uuid derived from its name and with sorted
// lists.
func (b *builder) addProvider(p placement.Provider, inventories ...placement.Inventory) {
	p.UUID = providerUUID(p.Name)
	p.Inventories = inventories
	slices.SortFunc(p.Inventories, func(a, b placement.Inventory) int {
		return strings.Compare(a.ResourceClass, b.ResourceClass)
	})
	p.Traits = slices.Sorted(slices.Values(p.Traits))
	p.Aggregates = slices.Sorted(slices.Values(p.Aggregates))
	b.world.Providers = append(b.world.Providers, p)
}

// inventory returns an inventory that takes any amount from 1 to its total.
func inventory(resourceClass string, total, reserved int, ratio float64) placement.Inventory {
	return placement.Inventory{ResourceClass: resourceClass, Total: int32(total),
		Reserved: int32(reserved), MinUnit: 1, MaxUnit: int32(total),
		StepSize: 1, AllocationRatio: ratio, Capacity: placement.Capacity(int32(total), int32(reserved), ratio)}
}

// addProviders adds the shared storage and a tree of providers for each host.
func (b *builder) addProviders() {
	storage := func(name, aggregate, trait string, total int) {
		disk := inventory("DISK_GB", total, total/10, 1.5)
		disk.MaxUnit = 16384
		b.addProvider(placement.Provider{Name: name, Traits: []string{placement.TraitShares, trait},
			Aggregates: []string{uuidOf(typeAggregate, aggregate)}}, disk)
	}
	storage(fastStorage, aggregateFastStorage, "STORAGE_DISK_SSD", 480000)
	storage(archiveStorage, aggregateArchiveStorage, "STORAGE_DISK_HDD", 960000)
	for _, host := range hosts() {
		b.addRoot(host)
		for node := range host.numaNodes {
			b.addNUMANode(host, node)
		}
		b.addPorts(host)
	}
}

func (b *builder) addRoot(h host) {
	root := placement.Provider{Name: h.name, Resource: uuidOf(typeHost, h.name)}
	root.Traits = append(root.Traits, "COMPUTE_NODE", "COMPUTE_ARCH_"+strings.ToUpper(h.processor.arch),
		"COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_NET_VIF_MODEL_VIRTIO",
		"COMPUTE_SECURITY_UEFI_SECURE_BOOT", "COMPUTE_STORAGE_BUS_VIRTIO",
		"COMPUTE_VOLUME_ATTACH", "COMPUTE_VOLUME_MULTI_ATTACH")
	root.Traits = append(root.Traits, h.processor.traits...)
	root.Aggregates = append(root.Aggregates, uuidOf(typeAggregate, h.rack))
	var inventories []placement.Inventory
	if h.name == disabledHost {
		root.Traits = append(root.Traits, "COMPUTE_STATUS_DISABLED")
	}
	if len(h.gpus) > 0 {
		root.Aggregates = append(root.Aggregates, uuidOf(typeAggregate, aggregateAccelerated))
	}
	if h.shared {
		root.Aggregates = append(root.Aggregates, uuidOf(typeAggregate, aggregateFastStorage))
		if h.rack == "fra1-r02" {
			root.Aggregates = append(root.Aggregates, uuidOf(typeAggregate, aggregateArchiveStorage))
		}
	} else {
		inventories = append(inventories, inventory("DISK_GB", h.localGB, h.localGB/20, 1))
		trait := "STORAGE_DISK_HDD"
		if h.ssd {
			trait = "STORAGE_DISK_SSD"
		}
		root.Traits = append(root.Traits, trait)
	}
	if h.pinned > 0 {
		inventories = append(inventories, inventory("CUSTOM_NVME_NAMESPACE", 16, 0, 1))
	}
	if h.numaNodes == 0 {
		inventories = append(inventories, inventory("VCPU", h.threads(), 2, h.overcommit),
			inventory("MEMORY_MB", h.memoryMB, 8192, 1))
	}
	b.addProvider(root, inventories...)
}

func nodeName(host string, node int) string { return fmt.Sprintf("%s:numa%d", host, node) }

func graphicsName(host string, unit int) string { return fmt.Sprintf("%s:gpu%d", host, unit) }

// addNUMANode adds a NUMA node with the graphics processors wired to it. It
// repeats the traits of the processor, because a trait only counts on a
// provider that serves a resource.
func (b *builder) addNUMANode(h host, node int) {
	threads := h.threads() / h.numaNodes
	inventories := []placement.Inventory{
		inventory("VCPU", threads-h.pinned, 2, h.overcommit),
		inventory("MEMORY_MB", h.memoryMB/h.numaNodes, 4096, 1),
	}
	if h.pinned > 0 {
		inventories = append(inventories, inventory("PCPU", h.pinned, 0, 1))
	}
	b.addProvider(placement.Provider{Name: nodeName(h.name, node), Parent: providerUUID(h.name),
		Traits: append([]string{"HW_NUMA_ROOT"}, h.processor.traits...)}, inventories...)

	for unit, model := range h.gpus {
		if unit%h.numaNodes != node {
			continue
		}
		traits := []string{"CUSTOM_GPU_NVIDIA_A2", "HW_GPU_API_OPENGL_V4_5", "HW_GPU_API_VULKAN", "OWNER_NOVA"}
		total := 8
		if model == "NVIDIA A100" {
			traits = []string{"CUSTOM_GPU_NVIDIA_A100", "HW_GPU_API_OPENCL_V2_2", "HW_GPU_API_VULKAN", "OWNER_NOVA"}
			total = 7
		}
		virtual := inventory("VGPU", total, 0, 1)
		virtual.MaxUnit = 4
		b.addProvider(placement.Provider{Name: graphicsName(h.name, unit),
			Parent: providerUUID(nodeName(h.name, node)), Traits: traits}, virtual)
	}
}

// bandwidths are the resource classes of a port's bandwidth, one for each
// direction.
var bandwidths = []string{"NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"}

func portName(host, device string) string {
	if strings.HasPrefix(device, "br-") {
		return host + ":Open vSwitch agent:" + device
	}
	return host + ":NIC Switch agent:" + device
}

// addPorts adds a provider for each agent of a host's network ports, and as its
// children one for each port.
func (b *builder) addPorts(h host) {
	var agents []string
	for _, port := range h.ports {
		if port.hosts != nil && !slices.Contains(port.hosts, h.position) {
			continue
		}
		name := portName(h.name, port.device)
		agent := strings.TrimSuffix(name, ":"+port.device)
		if !slices.Contains(agents, agent) {
			agents = append(agents, agent)
			b.addProvider(placement.Provider{Name: agent, Parent: providerUUID(h.name)})
		}
		traits := []string{"CUSTOM_PHYSNET_" + strings.ToUpper(port.network)}
		var inventories []placement.Inventory
		for _, class := range bandwidths {
			bandwidth := inventory(class, port.gigabits*1_000_000, 0, 1)
			bandwidth.MinUnit, bandwidth.StepSize, bandwidth.MaxUnit = 100, 100, math.MaxInt32
			inventories = append(inventories, bandwidth)
		}
		if port.virtualFunctions > 0 {
			traits = append(traits, "CUSTOM_VNIC_TYPE_DIRECT", "HW_NIC_OFFLOAD_GENEVE", "HW_NIC_SRIOV")
			inventories = append(inventories, inventory("SRIOV_NET_VF", port.virtualFunctions, 0, 1))
		} else {
			traits = append(traits, "CUSTOM_VNIC_TYPE_NORMAL")
		}
		b.addProvider(placement.Provider{Name: name, Parent: providerUUID(agent), Traits: traits}, inventories...)
	}
}
