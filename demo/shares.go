package demo

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/store"
)

const (
	typeShare           = "OS::Manila::Share"
	typeSnapshot        = "OS::Manila::ShareSnapshot"
	typeExportLocation  = "OS::Manila::ShareExportLocation"
	typeReplica         = "OS::Manila::ShareReplica"
	typeAccessRule      = "OS::Manila::ShareAccessRule"
	typeGroup           = "OS::Manila::ShareGroup"
	typeGroupSnapshot   = "OS::Manila::ShareGroupSnapshot"
	typeShareNetwork    = "OS::Manila::ShareNetwork"
	typeSubnet          = "OS::Manila::ShareNetworkSubnet"
	typeSecurityService = "OS::Manila::SecurityService"
)

// addShareNetworks adds the network from which each project mounts its shares,
// with its subnets, and the directory of the project's users.
func (b *builder) addShareNetworks() {
	for i, network := range []struct{ project, realm, kind string }{
		{projectDemo, "demo.example.org", "ldap"},
		{projectResearch, "research.example.org", "kerberos"},
		{projectWebShop, "shop.example.org", "active_directory"},
	} {
		visibility := access.Private
		if network.project == projectDemo {
			visibility = access.Public
		}
		name := network.project + "-files"
		parent := b.add(store.ResourceRecord{Type: typeShareNetwork, Name: name,
			ProjectID: network.project, Visibility: visibility,
			Description: "Network from which the project mounts its shares.",
			Metadata: metadata("net:segment_type=vlan", "net:mtu=9000",
				"team=network", "directory_realm="+network.realm, "!neutron_network="+uuidOf("network", name))})
		for j, zone := range []string{"fra1", "fra2"} {
			b.add(store.ResourceRecord{Type: typeSubnet, Name: name + "-" + zone, Parent: parent,
				ProjectID: network.project, Visibility: visibility,
				Description: "Part of the share network in zone " + zone + ".",
				Metadata: metadata("net:physical_networks=<in> storage", fmt.Sprintf("net:segment_id=%d", 2101+10*i+j),
					fmt.Sprintf("net:gateway=10.%d.%d.1", 40+i, j), fmt.Sprintf("!cidr=10.%d.%d.0/24", 40+i, j))})
		}
		port := "636"
		if network.kind == "kerberos" {
			port = "kpasswd" // invalid: not an integer
		}
		b.add(store.ResourceRecord{Type: typeSecurityService, Name: network.project + "-directory",
			ProjectID: network.project, Visibility: visibility,
			Description: "Directory that knows the users of the project's shares.",
			Metadata: metadata("directory_kind="+network.kind, "directory_realm="+network.realm, "directory_tls=tls",
				"directory_port="+port, "team=identity")})
	}
}

// share is a share with its child resources.
type share struct {
	project, name, group string
	visibility           access.Visibility
	protocol             string
	description          string
	tags                 []string
	metadata             []string
	snapshots            []string // days of the snapshots
	clients              []string // clients with access
	replicas             []string // their sites
}

func shares() []share {
	return []share{
		{project: projectDemo, name: "home", group: "office", protocol: "NFS",
			description: "Home directories of everybody in the demo project.",
			visibility:  access.Public, tags: []string{"Home Directories", "Daily Backup"},
			metadata: []string{"share_purpose=home", "share_performance_tier=gold", "protection:schedule=daily",
				"protection:keep_days=30", "cost_center=DE-4100"},
			snapshots: []string{"2025-10-01", "2025-10-02", "2025-10-03"},
			clients:   []string{"10.40.0.0/24", "10.40.1.0/24"}, replicas: []string{"fra2"}},
		{project: projectDemo, name: "teams", group: "office", protocol: "CIFS",
			description: "One folder for each team, also mounted from Windows.",
			tags:        []string{"Daily Backup"},
			metadata: []string{"share_purpose=project", "share_clients=<or> linux <or> windows",
				"share_case_sensitive=false", "cost_center=DE-4100", "environment=production"},
			snapshots: []string{"2025-10-02"}, clients: []string{"team-leads", "all-staff"}},
		{project: projectDemo, name: "scratch", protocol: "NFS",
			description: "Space for things that may be lost at any time.",
			visibility:  access.Public, tags: []string{"Scratch Space"},
			metadata: []string{"share_purpose=scratch", "share_performance_tier=bronze",
				"protection:level=none", "needed_until=2026-03-31"},
			clients: []string{"10.40.0.0/16"}},
		{project: projectDemo, name: "ci-cache", protocol: "NFS", description: "Cache that the build machines share.",
			metadata: []string{"share_purpose=application", "environment=development",
				"kubernetes.io/pvc=ci/build-cache", "cost_center=DE-4200"},
			clients: []string{"10.40.0.16", "10.40.0.17"}},
		{project: projectResearch, name: "genomes", group: "sequencing", protocol: "CEPHFS",
			description: "Sequenced genomes as they come from the machines.",
			tags:        []string{"Archives", "Health Data"},
			metadata: []string{"share_purpose=archive", "compliance:classification=confidential",
				"compliance:regimes=<all-in> gdpr iso-27001", "!compliance:legal_hold=true", "cost_center=DE-7300"},
			snapshots: []string{"2025-09-01", "2025-10-01"}, clients: []string{"sequencer", "analysis"},
			replicas: []string{"fra2", "muc1"}},
		{project: projectResearch, name: "variants", group: "sequencing", protocol: "CEPHFS",
			description: "Variants that the pipelines called.",
			// protection:keep_days is invalid: not in the enum
			metadata: []string{"share_purpose=project", "share_expected_files=1200000", "share_growth_percent=140",
				"protection:schedule=weekly", "protection:keep_days=45"},
			snapshots: []string{"2025-10-01"}, clients: []string{"analysis"}},
		{project: projectResearch, name: "telescope-raw", protocol: "NFS", description: "Raw frames, kept for good.",
			tags: []string{"Archives", "to-be-migrated"},
			metadata: []string{"share_purpose=archive", "share_performance_tier=bronze", "protection:schedule=monthly",
				"protection:keep_days=3650", "!__managed_at=2024-11-05T08:00:00Z"},
			clients: []string{"10.41.0.0/24"}, replicas: []string{"muc1"}},
		{project: projectResearch, name: "notebooks", protocol: "NFS",
			description: "Notebooks and small data of the analysis platform.",
			visibility:  access.Public,
			metadata: []string{"share_purpose=application", "share_mount_options=hard,noatime,nfsvers=4.2",
				"team=analysis", "service_hours=office"},
			snapshots: []string{"2025-10-03"}, clients: []string{"10.41.1.0/24"}},
		{project: projectWebShop, name: "product-images", group: "shop-front", protocol: "NFS",
			description: "Pictures of everything that is for sale.",
			tags:        []string{"Media Library", "Daily Backup"},
			// share_performance_tier is invalid: no such tier
			metadata: []string{"share_purpose=media", "share_performance_tier=platinum", "cost_center=DE-5100",
				"environment=production", "priority=2"},
			snapshots: []string{"2025-10-02", "2025-10-03"}, clients: []string{"10.42.0.10", "10.42.0.11",
				"10.42.0.12"}, replicas: []string{"fra2"}},
		{project: projectWebShop, name: "product-videos", group: "shop-front", protocol: "NFS",
			description: "Short films about the things that sell best.",
			tags:        []string{"Media Library"},
			metadata: []string{"share_purpose=media", "share_performance_tier=silver",
				"cost_center=DE-5100", "grafana-dashboard=shop/media"},
			clients: []string{"10.42.0.10", "10.42.0.11"}, replicas: []string{"fra2"}},
		{project: projectWebShop, name: "invoices", protocol: "CIFS", description: "Invoices as sent to customers.",
			tags: []string{"Archives", "Payment Data"},
			// cost_center is invalid: it does not match the pattern
			metadata: []string{"share_purpose=archive", "compliance:classification=confidential",
				"compliance:retention_years=10", "compliance:regimes=<all-in> gdpr pci-dss", "cost_center=finance"},
			snapshots: []string{"2025-10-01"}, clients: []string{"accounting"}},
		{project: projectWebShop, name: "uploads", protocol: "NFS",
			description: "Files that customers send in, before they are checked.",
			metadata: []string{"share_purpose=application", "protection:level=standard",
				"environment=production", "virus_scanner=on"},
			clients: []string{"10.42.0.20"}},
	}
}

// addShares adds the groups, and each share with its paths, rules, snapshots
// and replicas.
func (b *builder) addShares() {
	for _, group := range []struct{ project, name, description string }{
		{projectDemo, "office", "Shares that people work on every day."},
		{projectResearch, "sequencing", "Shares of the sequencing pipeline, which only make sense together."},
		{projectWebShop, "shop-front", "Shares that the shop cannot open without."},
	} {
		parent := b.add(store.ResourceRecord{Type: typeGroup, Name: group.name,
			Description: group.description, ProjectID: group.project,
			Metadata: metadata("share_performance_tier=silver", "protection:schedule=weekly",
				"protection:keep_days=90", "environment=production")})
		for _, day := range []string{"2025-09-21", "2025-09-28"} {
			b.add(store.ResourceRecord{Type: typeGroupSnapshot, Name: group.name + "-" + day,
				Parent: parent, ProjectID: group.project,
				Description: "All shares of the group as they were on " + day + ".",
				Metadata:    metadata("protection:keep_days=90", "!protection:last_verified="+day),
				Tags:        []string{"Weekly Backup"}})
		}
	}
	for _, share := range shares() {
		b.addShare(share)
	}
}

func (b *builder) addShare(s share) {
	group := ""
	if s.group != "" {
		group = uuidOf(typeGroup, s.group)
	}
	parent := b.add(store.ResourceRecord{Type: typeShare, Name: s.name, Parent: group, Description: s.description,
		ProjectID: s.project, Visibility: s.visibility,
		Metadata: metadata(append(s.metadata, "share_protocol="+s.protocol)...), Tags: s.tags})
	child := func(resourceType, name, description string, tags []string, items ...string) {
		b.add(store.ResourceRecord{Type: resourceType, Name: s.name + "-" + name, Parent: parent,
			Description: description, ProjectID: s.project, Visibility: s.visibility,
			Metadata: metadata(items...), Tags: tags})
	}
	for i, preferred := range []string{"true", "false"} {
		path := fmt.Sprintf("10.%d.%d.5:/volumes/%s", 60+i, len(s.name), s.name)
		if s.protocol == "CIFS" {
			path = fmt.Sprintf(`\\files%d.example.net\%s`, i+1, s.name)
		}
		child(typeExportLocation, fmt.Sprintf("path-%d", i+1), "Mount from "+path+".", nil,
			"!export_preferred="+preferred, "export_site="+[]string{"fra1", "fra2"}[i],
			"export_weight="+[]string{"100", "20"}[i], "!path="+path)
	}
	for i, client := range s.clients {
		level := "rw"
		if i > 0 {
			level = "ro"
		}
		child(typeAccessRule, "to-"+strings.ReplaceAll(client, "/", "_"),
			fmt.Sprintf("Gives %s access to %s.", level, client), nil,
			"access_reason="+[]string{"owner of the data", "reads results", "reads results"}[i],
			fmt.Sprintf("access_ticket=OPS-%d", 1000+len(s.name)*17+i),
			"!access_level="+level, "!access_to="+client)
	}
	for _, day := range s.snapshots {
		child(typeSnapshot, day, "The share as it was on "+day+".", []string{"Daily Backup"},
			"protection:keep_days=30", "protection:immutable=true",
			"taken_by=scheduler", "!protection:last_verified="+day)
	}
	for _, site := range s.replicas {
		child(typeReplica, site, "Second copy of the share, at "+site+".", nil,
			"protection:mode=dr", "protection:max_lag_seconds=900", "!replica_state=in_sync", "site="+site)
	}
}
