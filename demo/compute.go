package demo

import (
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

const (
	typeImage    = "OS::Glance::Image"
	typeVolume   = "OS::Cinder::Volume"
	typeFlavor   = "OS::Nova::Flavor"
	typeInstance = "OS::Nova::Instance"
)

func (b *builder) addImages() {
	for _, image := range []struct {
		project, name, description string
		tags                       []string
		metadata                   []string
	}{
		{"", "ubuntu-24.04", "Ubuntu with long support, as its makers publish it.", []string{"Ubuntu", "golden"},
			[]string{"os_distro=ubuntu", "os_version=24.04", "os_type=linux", "os_admin_user=ubuntu",
				"hw_firmware_type=uefi", "hw_qemu_guest_agent=true"}},
		{"", "debian-13", "Debian for those who like it plain.", []string{"Debian"},
			[]string{"os_distro=debian", "os_version=13", "os_type=linux",
				"os_admin_user=debian", "hw_disk_bus=virtio"}},
		{"", "rocky-9", "Rocky Linux, for software that is certified for it.", []string{"Rocky Linux"},
			[]string{"os_distro=rocky", "os_version=9.6", "os_type=linux", "os_support_ends=2032-05-31"}},
		{"", "windows-server-2025", "Windows Server with drivers for virtual devices.", []string{"Windows"},
			[]string{"os_distro=windows", "os_version=2025", "os_type=windows", "os_secure_boot=required",
				"hw_vif_model=e1000e", "hw_video_ram=64"}},
		{"", "debian-13-arm", "Debian for the hosts with ARM processors.", []string{"Debian"},
			[]string{"os_distro=debian", "os_version=13", "hw_machine_type=virt",
				"hw_firmware_type=uefi", "architecture=aarch64"}},
		{projectWebShop, "shop-postgresql", "Debian with PostgreSQL, set up for the shop.",
			[]string{"Debian", "PostgreSQL"},
			[]string{"os_distro=debian", "os_version=13", "db_postgresql_version=17.6", "db_postgresql_port=5432",
				"db_postgresql_extensions=<all-in> pg_stat_statements pg_trgm"}},
		{projectWebShop, "shop-front-end", "Debian with Nginx and the code of the shop.", []string{"Debian", "Nginx"},
			// hw_disk_bus is invalid: no such bus
			[]string{"os_distro=debian", "web_nginx_version=1.28", "web_nginx_http_port=80",
				"hw_disk_bus=nvme", "build=2025.40.2"}},
		{projectResearch, "analysis-notebook", "Ubuntu with Python and the libraries of the analysis team.",
			[]string{"Ubuntu", "Python"},
			[]string{"os_distro=ubuntu", "os_version=24.04", "runtime_python_version=3.13", "hw_cpu_policy=shared"}},
	} {
		b.add(store.ResourceRecord{Type: typeImage, Name: image.name, Description: image.description,
			ProjectID: image.project, Tags: image.tags, Metadata: metadata(image.metadata...)})
	}
}

// flavor is a size of instances.
type flavor struct {
	name                  string
	vcpus, memoryMB, disk int // disk in GiB
	pinned                bool
	graphics              int    // virtual graphics processors
	virtualFunctions      int    // of a network port
	projectID             string // "" for a public flavor
	metadata              []string
}

func flavors() []flavor {
	return []flavor{
		{name: "m1.small", vcpus: 1, memoryMB: 2048, disk: 20,
			metadata: []string{"hw:cpu_policy=shared", "quota:maxIOPS=1000", "quota:minIOPS=100"}},
		{name: "m1.medium", vcpus: 2, memoryMB: 4096, disk: 40,
			metadata: []string{"hw:cpu_policy=shared", "quota:maxIOPS=3000", "quota:minIOPS=100"}},
		{name: "m1.large", vcpus: 4, memoryMB: 8192, disk: 80,
			metadata: []string{"hw:cpu_policy=shared", "hw:cpu_sockets=1", "hw:cpu_cores=4"}},
		// hw:cpu_sockets is invalid: not an integer
		{name: "m1.xlarge", vcpus: 8, memoryMB: 16384, disk: 160,
			metadata: []string{"hw:cpu_policy=shared", "hw:cpu_sockets=two", "hw:watchdog_action=reset"}},
		{name: "c1.large", vcpus: 8, memoryMB: 8192, disk: 40,
			metadata: []string{"capabilities:cpu_info:features=<all-in> aes avx2",
				"capabilities:cpu_info:vendor=<or> Intel <or> AMD"}},
		{name: "p1.large", vcpus: 4, memoryMB: 8192, disk: 40, pinned: true,
			metadata: []string{"hw:cpu_policy=dedicated", "hw:cpu_thread_policy=require", "hw:mem_page_size=1GB"}},
		{name: "p1.xlarge", vcpus: 12, memoryMB: 32768, disk: 80, pinned: true,
			metadata: []string{"hw:cpu_policy=dedicated", "hw:numa_nodes=1", "hw:mem_page_size=large",
				"trait:HW_CPU_X86_AVX512F=required"}},
		{name: "g1.small", vcpus: 4, memoryMB: 16384, disk: 80, graphics: 1,
			metadata: []string{"accel:gpu_model=NVIDIA A2", "accel:gpu_count=1", "accel:display=true"}},
		{name: "g1.large", vcpus: 16, memoryMB: 131072, disk: 400, graphics: 4, projectID: projectResearch,
			metadata: []string{"accel:gpu_model=NVIDIA A100", "accel:gpu_count=4",
				"accel:gpu_profile=1g.10gb", "resources:VGPU=4"}},
		{name: "n1.large", vcpus: 4, memoryMB: 8192, disk: 40, virtualFunctions: 1,
			metadata: []string{"hw:pci_numa_affinity_policy=preferred",
				"capabilities:hypervisor_type=QEMU", "resources:SRIOV_NET_VF=1"}},
		{name: "a1.large", vcpus: 4, memoryMB: 8192, disk: 40,
			metadata: []string{"capabilities:cpu_info:arch=aarch64", "hw:cpu_policy=shared"}},
		{name: "r1.secure", vcpus: 4, memoryMB: 65536, disk: 80, projectID: projectWebShop,
			metadata: []string{"hw:mem_encryption=true", "hw:mem_encryption_model=amd-sev",
				"capabilities:cpu_info:features=<all-in> sev sev_es", "hw:locked_memory=true"}},
	}
}

func (b *builder) addFlavors() {
	for _, flavor := range flavors() {
		size := []string{fmt.Sprint("vcpus=", flavor.vcpus),
			fmt.Sprint("ram=", flavor.memoryMB), fmt.Sprint("disk=", flavor.disk)}
		b.add(store.ResourceRecord{Type: typeFlavor, Name: flavor.name, ProjectID: flavor.projectID,
			Metadata: metadata(append(size, flavor.metadata...)...),
			Description: fmt.Sprintf("%d VCPU, %d MiB of memory and a disk of %d GiB.",
				flavor.vcpus, flavor.memoryMB, flavor.disk)})
	}
}

func (b *builder) addVolumes() {
	for _, volume := range []struct {
		project, name, description, tag string
		metadata                        []string
	}{
		{projectDemo, "wiki-data", "Pages and attachments of the wiki.", "Silver Storage",
			[]string{"volume_purpose=data", "volume_filesystem=xfs", "volume_mount_point=/srv/wiki",
				"protection:schedule=daily", "protection:keep_days=14"}},
		{projectDemo, "mail-spool", "Mail that has not been delivered yet.", "Gold Storage",
			[]string{"volume_purpose=data", "qos:minIOPS=1000", "qos:maxIOPS=5000", "qos:burstIOPS=20000"}},
		{projectDemo, "build-scratch", "Space for builds.", "Bronze Storage",
			[]string{"volume_purpose=scratch", "volume_filesystem=ext4", "environment=test"}},
		{projectDemo, "ubuntu-boot", "Boot volume made from the Ubuntu image.", "",
			[]string{"volume_purpose=boot", "os_distro=ubuntu", "os_version=24.04", "hw_firmware_type=uefi"}},
		{projectResearch, "pipeline-work", "Working space of the sequencing pipeline.", "Gold Storage",
			[]string{"volume_purpose=scratch", "qos:consumer=back-end", "qos:maxMBps=2000", "qos:readShare=0.8"}},
		{projectResearch, "reference-genomes", "Genomes to compare with, read by many.", "Silver Storage",
			[]string{"volume_purpose=data", "volume_attach_mode=ro", "team=sequencing",
				"compliance:classification=public"}},
		// volume_filesystem is invalid: not in the enum
		{projectResearch, "notebook-home", "Home directories of the analysis platform.", "",
			[]string{"volume_purpose=data", "volume_filesystem=zfs", "needed_until=2026-12-31"}},
		{projectWebShop, "orders-db", "Database of the orders.", "Gold Storage",
			[]string{"volume_purpose=data", "qos:minIOPS=5000", "qos:maxIOPS=20000", "volume_encrypted=true",
				"compliance:regimes=<all-in> gdpr pci-dss", "!backup_job=nightly-orders"}},
		{projectWebShop, "orders-log", "Write-ahead log of the database of the orders.", "Gold Storage",
			[]string{"volume_purpose=log", "qos:minIOPS=2000", "qos:maxIOPS=10000", "volume_encrypted=true"}},
		{projectWebShop, "search-index", "Index of the product search, built anew each night.", "Silver Storage",
			[]string{"volume_purpose=data", "protection:level=none", "priority=4"}},
		// monthly_budget is invalid: not a number
		{projectWebShop, "cart-cache", "Shopping carts, which survive a restart of the shop.", "Bronze Storage",
			[]string{"volume_purpose=scratch", "db_redis_version=8.0", "monthly_budget=plenty"}},
		{projectWebShop, "backup-target", "Where the nightly dumps go.", "",
			[]string{"volume_purpose=backup", "protection:targets=<all-in> second-site tape",
				"volume_availability_target=99.5"}},
	} {
		var tags []string
		if volume.tag != "" {
			tags = append(tags, volume.tag)
		}
		b.add(store.ResourceRecord{Type: typeVolume, Name: volume.name, Description: volume.description,
			ProjectID: volume.project, Tags: tags, Metadata: metadata(volume.metadata...)})
	}
}

// instance is an instance and its host.
type instance struct {
	project, name, flavor, image string
	host, node                   int    // number of the host, from 1; NUMA node in it, from 0
	device                       string // network port in use, "" for none
	tags                         []string
	metadata                     []string
}

func instances() []instance {
	return []instance{
		{project: projectDemo, name: "wiki", flavor: "m1.large", image: "debian-13", host: 1,
			metadata: []string{"environment=production", "service_hours=office"}},
		{project: projectDemo, name: "mail", flavor: "m1.large", image: "debian-13", host: 1, node: 1,
			metadata: []string{"environment=production", "priority=1"}},
		{project: projectDemo, name: "build-1", flavor: "c1.large", image: "ubuntu-24.04", host: 2,
			metadata: []string{"environment=development", "runner=true"}},
		{project: projectDemo, name: "build-2", flavor: "c1.large", image: "ubuntu-24.04", host: 3,
			metadata: []string{"environment=development", "runner=true"}},
		{project: projectDemo, name: "build-arm", flavor: "a1.large", image: "debian-13-arm", host: 23,
			metadata: []string{"environment=development", "runner=true"}},
		// needed_until is invalid: not a day
		{project: projectDemo, name: "desktop-1", flavor: "g1.small", image: "windows-server-2025", host: 13,
			metadata: []string{"environment=training", "needed_until=next week"}},
		{project: projectDemo, name: "desktop-2", flavor: "g1.small", image: "windows-server-2025", host: 13, node: 1,
			metadata: []string{"environment=training"}},
		{project: projectResearch, name: "train-1", flavor: "g1.large", image: "analysis-notebook", host: 15,
			metadata: []string{"team=analysis", "compliance:classification=internal"}},
		{project: projectResearch, name: "train-2", flavor: "g1.large", image: "analysis-notebook", host: 16,
			metadata: []string{"team=analysis", "compliance:classification=internal"}},
		{project: projectResearch, name: "align-1", flavor: "p1.xlarge", image: "rocky-9", host: 17,
			metadata: []string{"team=sequencing", "compliance:personal_data=true"}},
		{project: projectResearch, name: "align-2", flavor: "p1.xlarge", image: "rocky-9", host: 17, node: 1,
			metadata: []string{"team=sequencing", "compliance:personal_data=true"}},
		{project: projectResearch, name: "notebook-hub", flavor: "m1.xlarge", image: "analysis-notebook", host: 7,
			tags: []string{"Python"}, metadata: []string{"team=analysis", "runtime_python_version=3.13"}},
		{project: projectResearch, name: "receiver", flavor: "n1.large", image: "rocky-9", host: 19, device: "ens1f1",
			metadata: []string{"team=telescope", "net:vnic_type=direct"}},
		{project: projectWebShop, name: "front-1", flavor: "n1.large", image: "shop-front-end", host: 8,
			device: "ens1f0", tags: []string{"Nginx"},
			metadata: []string{"environment=production", "web_nginx_version=1.28", "net:vnic_type=direct"}},
		{project: projectWebShop, name: "front-2", flavor: "n1.large", image: "shop-front-end", host: 9, node: 1,
			device: "ens1f0", tags: []string{"Nginx"},
			metadata: []string{"environment=production", "web_nginx_version=1.28", "net:vnic_type=direct"}},
		// web_nginx_https_port is invalid: out of range
		{project: projectWebShop, name: "front-3", flavor: "n1.large", image: "shop-front-end", host: 20,
			device: "ens1f0", tags: []string{"Nginx"},
			metadata: []string{"environment=production", "web_nginx_https_port=443443"}},
		{project: projectWebShop, name: "orders-db-1", flavor: "r1.secure", image: "shop-postgresql", host: 10,
			tags: []string{"PostgreSQL", "Payment Data"},
			metadata: []string{"environment=production", "db_postgresql_version=17.6",
				"compliance:regimes=<all-in> gdpr pci-dss", "priority=1"}},
		{project: projectWebShop, name: "orders-db-2", flavor: "r1.secure", image: "shop-postgresql", host: 11,
			tags: []string{"PostgreSQL", "Payment Data"},
			metadata: []string{"environment=production", "db_postgresql_version=17.6",
				"compliance:regimes=<all-in> gdpr pci-dss", "priority=1"}},
		{project: projectWebShop, name: "cache", flavor: "m1.medium", image: "debian-13", host: 12,
			tags:     []string{"Redis"},
			metadata: []string{"environment=production", "db_redis_version=8.0", "db_redis_eviction=allkeys-lru"}},
		{project: projectWebShop, name: "search", flavor: "m1.xlarge", image: "debian-13", host: 21,
			metadata: []string{"environment=production", "needs_index=search-index"}},
	}
}

// addInstances adds the instances and their allocations. An instance and the
// consumer of its allocations share a uuid.
func (b *builder) addInstances() {
	hosts, flavors := hosts(), flavors()
	for _, instance := range instances() {
		host := hosts[instance.host-1]
		size := flavors[slices.IndexFunc(flavors, func(f flavor) bool { return f.name == instance.flavor })]
		consumer := b.add(store.ResourceRecord{Type: typeInstance, Name: instance.name,
			ProjectID: instance.project, Tags: instance.tags,
			Description: fmt.Sprintf("Instance of %s with the image %s.", instance.flavor, instance.image),
			Metadata: metadata(append(instance.metadata,
				"!image="+uuidOf(typeImage, instance.image), "!flavor="+instance.flavor)...)})
		b.claim(consumer, instance.project, "INSTANCE", host.allocations(instance, size)...)
	}
	// The reservation of a host for an arriving instance is a consumer of
	// another type.
	b.claim(uuidOf("migration", "mail"), projectDemo, "MIGRATION", placement.ProviderAllocation{
		Provider:  providerUUID(nodeName("compute-04", 0)),
		Resources: []placement.Amount{{ResourceClass: "MEMORY_MB", Amount: 8192}, {ResourceClass: "VCPU", Amount: 4}}})
}

func (b *builder) claim(consumer, project, consumerType string, allocations ...placement.ProviderAllocation) {
	b.world.Claims = append(b.world.Claims, placement.Claim{Consumers: []placement.ConsumerClaim{
		{UUID: consumer, ProjectID: project, UserID: project + "-user",
			Type: &consumerType, Allocations: allocations}}})
}

// allocations returns the allocations of an instance on the providers of its
// host and on shared storage.
func (h host) allocations(i instance, size flavor) []placement.ProviderAllocation {
	var list []placement.ProviderAllocation
	take := func(provider, resourceClass string, amount int) {
		if amount == 0 {
			return
		}
		uuid := providerUUID(provider)
		if last := len(list) - 1; last < 0 || list[last].Provider != uuid {
			list = append(list, placement.ProviderAllocation{Provider: uuid})
		}
		resources := &list[len(list)-1].Resources
		*resources = append(*resources, placement.Amount{ResourceClass: resourceClass, Amount: int64(amount)})
	}
	node, storage := h.name, h.name
	if h.numaNodes > 0 {
		node = nodeName(h.name, i.node)
	}
	if h.shared {
		storage = fastStorage
	}
	processors := "VCPU"
	if size.pinned {
		processors = "PCPU"
	}
	take(node, "MEMORY_MB", size.memoryMB)
	take(node, processors, size.vcpus)
	take(storage, "DISK_GB", size.disk)
	take(graphicsName(h.name, i.node), "VGPU", size.graphics)
	if i.device != "" {
		port := portName(h.name, i.device)
		for _, direction := range bandwidths {
			take(port, direction, 2_000_000)
		}
		take(port, "SRIOV_NET_VF", size.virtualFunctions)
	}
	return list
}
