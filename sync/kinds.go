package sync

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// Kind is one kind of things of OpenStack: how its service lists them, and how
// each becomes a resource.
type Kind struct {
	Name         string
	ResourceType string
	// Interval is the time between passes that follow the kind.
	Interval     time.Duration
	service      func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
	microversion string
	// lists are the paths of lists that together have all things.
	lists []string
	// since is the query parameter that limits the lists to things that changed
	// since a time, "" for none. The lists then also have deleted things.
	since string
	// of is another list of the service. Each of its rows has a separate list of
	// this kind: the id of that row replaces %s in the path, and the rows of the
	// separate list have that row as the field "of".
	of *Kind
	// rows is the field of an answer with its rows.
	rows string
	// witness is another list of the service. While a cell of Nova is down, rows of
	// that list have the status UNKNOWN, but this list lacks the rows of the cell.
	witness *Kind
	// joined are other lists, of any service. join gets the rows of each; a list
	// has none if the catalogue lacks its service, or the service its microversion.
	// join returns the function that adds the rows to the thing of a row.
	joined []Kind
	join   func(joined [][]row) func(thing *Thing, of row)
	// traits is the list of the providers with the uuids of the things, nil for
	// none. Each thing gets the traits of its provider as a capability, unless the
	// catalogue lacks the service.
	traits *Kind
	// hides means that Nova can leave rows out of a full page, such as hypervisors
	// without a service. Then the page has no link to the next one.
	hides bool
	// allEnd means that each thing sooner or later leaves the lists. So the
	// limits on gone things do not apply.
	allEnd bool
	// countsRows means that a page of the lists begins at an offset, see after.
	// Pages of other kinds have a link to the next page.
	countsRows bool
	// thing returns the thing of a row. Its project can be empty.
	thing func(row row) Thing
	// follow replaces followThings for a kind that does not only become resources:
	// it reads and writes the things.
	follow func(p *Pass, ctx context.Context, pass string, result *Result) error
}

// Thing is a thing of OpenStack as a resource.
type Thing struct {
	ID, Name, Description, Project string
	IsPublic                       bool
	Metadata                       map[string]string
	// Capabilities are its capabilities by name. A list of values is JSON.
	Capabilities map[string]string
	// Private has names of capabilities: true if private at the origin, false
	// if public there.
	Private map[string]bool
	// IsUnknown means that the service could not read the row, such as a server
	// of a cell that is down.
	IsUnknown bool
	// updated is the time of the last change, by the clock of the service.
	updated time.Time
	// isDeleted means that the row describes a deleted thing.
	isDeleted bool
}

// row is a row of an answer. Numbers are json.Number.
type row map[string]any

// text returns a field as a string. It is empty if the field is absent, null, a
// list or an object.
func (r row) text(field string) string {
	switch value := r[field].(type) {
	case string:
		return strings.ReplaceAll(value, "\x00", "") // resources cannot store U+0000
	case json.Number:
		return value.String()
	case bool:
		if value {
			return "true"
		}
		return "false"
	}
	return ""
}

// named returns the name of a row, or its id if it has none.
func (r row) named() string {
	if name := r.text("name"); name != "" {
		return name
	}
	return r.text("id")
}

// object returns a field that is an object, nil for any other.
func (r row) object(field string) row {
	object, _ := r[field].(map[string]any)
	return object
}

// objects returns the objects in a field by name.
func (r row) objects(field string) map[string]row {
	all := map[string]row{}
	for name := range r.object(field) {
		all[name] = r.object(field).object(name)
	}
	return all
}

// strings adds the entries of an object in a field to metadata, as put does,
// and returns metadata.
func (r row) strings(field string, metadata map[string]string) map[string]string {
	object := r.object(field)
	for key := range object {
		object.put(key, metadata)
	}
	return metadata
}

// put adds a field to metadata, unless it is absent or null. A list or an object is
// added as JSON.
func (r row) put(field string, metadata map[string]string) {
	switch value := r[field].(type) {
	case nil:
	case string, json.Number, bool:
		metadata[field] = r.text(field)
	default:
		text, _ := json.Marshal(value) // the value came from JSON
		metadata[field] = string(text)
	}
}

// putAll adds several fields to metadata, as put does, and returns metadata.
func (r row) putAll(metadata map[string]string, fields ...string) map[string]string {
	for _, field := range fields {
		r.put(field, metadata)
	}
	return metadata
}

var hypervisors = Kind{Name: "hypervisors", ResourceType: "physical:host", Interval: time.Minute,
	service: openstack.NewComputeV2, microversion: "2.53",
	lists: []string{"os-hypervisors/detail?limit=1000"}, rows: "hypervisors", hides: true, thing: hypervisorOf,
	joined: []Kind{
		{Name: "aggregates", service: openstack.NewComputeV2, microversion: "2.53",
			lists: []string{"os-aggregates"}, rows: "aggregates"},
		{Name: "hosts of reservations", service: openstack.NewReservationV1,
			lists: []string{"os-hosts"}, rows: "hosts"},
		{Name: "properties of hosts", service: openstack.NewReservationV1,
			lists: []string{"os-hosts/properties?all=true"}, rows: "resource_properties"},
		{Name: "public properties of hosts", service: openstack.NewReservationV1,
			lists: []string{"os-hosts/properties"}, rows: "resource_properties"},
	}, join: joinHosts, traits: &resourceProviders}

var resourceProviders = Kind{Name: "providers", ResourceType: "physical:host", Interval: time.Minute,
	service: openstack.NewPlacementV1, microversion: "1.19",
	lists: []string{"resource_providers"}, rows: "resource_providers"}

var servers = Kind{Name: "servers", ResourceType: "OS::Nova::Server", Interval: time.Minute,
	service: openstack.NewComputeV2, microversion: "2.69",
	lists: []string{"servers/detail?all_tenants=1"}, since: "changes-since", rows: "servers",
	hides: true, thing: serverOf, witness: &computeServices}

// computeServices are listed as UNKNOWN while their cell is down.
var computeServices = Kind{Name: "compute services", lists: []string{"os-services"},
	rows: "services", thing: serverOf}

var shares = Kind{Name: "shares", ResourceType: "OS::Manila::Share", Interval: 5 * time.Minute,
	service: openstack.NewSharedFileSystemV2, microversion: "2.7",
	lists: []string{"shares/detail?all_tenants=1&limit=1000&sort_key=id&sort_dir=asc"}, rows: "shares",
	countsRows: true, thing: thingOf("project_id")}

var shareNetworks = Kind{Name: "share_networks", ResourceType: "OS::Manila::ShareNetwork", Interval: 10 * time.Minute,
	service: openstack.NewSharedFileSystemV2, microversion: "2.51",
	lists: []string{"share-networks/detail?all_tenants=1&limit=1000"}, rows: "share_networks",
	countsRows: true, thing: thingOf("project_id")}

// shareReplicas are the replicas of replicated shares.
var shareReplicas = Kind{Name: "replicas of shares", lists: []string{"share-replicas?limit=1000"},
	rows: "share_replicas", countsRows: true}

// migrations are the migrations that may have allocations: a failed migration
// can keep them, and a finished one waits for a confirmation.
var migrations = Kind{Name: "migrations", ResourceType: "OS::Nova::Migration", Interval: time.Minute,
	service: openstack.NewComputeV2, microversion: "2.80",
	lists: lists.Map([]string{"accepted", "queued", "preparing", "running",
		"pre-migrating", "migrating", "post-migrating",
		"finished", "confirming", "reverting", "error"}, func(status string) string {
		return "os-migrations?limit=1000&status=" + status
	}),
	rows: "migrations", thing: migrationOf, allEnd: true, witness: &computeServices}

// followedBy returns the kind with a function that follows it.
func (k Kind) followedBy(follow func(p *Pass, ctx context.Context, pass string, result *Result) error) Kind {
	k.follow = follow
	return k
}

// allKinds are the kinds of things, in the order of their passes.
var allKinds = []Kind{
	{Name: "projects", ResourceType: "OS::Keystone::Project",
		Interval: 10 * time.Minute, service: openstack.NewIdentityV3,
		lists: []string{"projects"}, rows: "projects", thing: projectOf},
	{Name: "flavors", ResourceType: "OS::Nova::Flavor", Interval: 10 * time.Minute,
		service: openstack.NewComputeV2, microversion: "2.61",
		lists: []string{"flavors/detail?is_public=None&limit=1000"}, rows: "flavors", thing: flavorOf},
	hypervisors,
	resourceProviders.followedBy((*Pass).followProviders),
	{Name: "aggregates", ResourceType: "OS::Nova::Aggregate", Interval: 5 * time.Minute,
		service: openstack.NewComputeV2, microversion: "2.41",
		lists: []string{"os-aggregates"}, rows: "aggregates", thing: aggregateOf},
	servers,
	migrations,
	{Name: "allocations", ResourceType: servers.ResourceType, Interval: time.Minute,
		service: openstack.NewPlacementV1, microversion: "1.28",
		lists: []string{"resource_providers"}, rows: "resource_providers", follow: (*Pass).followAllocations},
	{Name: "images", ResourceType: "OS::Glance::Image", Interval: 10 * time.Minute, service: openstack.NewImageV2,
		lists: []string{"images?visibility=all&limit=1000", "images?visibility=all&limit=1000&os_hidden=true"},
		rows:  "images", thing: imageOf},
	{Name: "definitions", ResourceType: "OS::Glance::Metadef",
		Interval: 10 * time.Minute, service: openstack.NewImageV2,
		lists: []string{"metadefs/namespaces?limit=1000"}, rows: "namespaces", thing: definitionOf,
		follow: (*Pass).followDefinitions},
	{Name: "volume_types", ResourceType: "OS::Cinder::VolumeType", Interval: 10 * time.Minute,
		service: openstack.NewBlockStorageV3,
		lists:   []string{"types?is_public=None&limit=1000"}, rows: "volume_types", thing: volumeTypeOf},
	{Name: "volumes", ResourceType: "OS::Cinder::Volume", Interval: 5 * time.Minute,
		service: openstack.NewBlockStorageV3,
		lists:   []string{"volumes/detail?all_tenants=1&limit=1000"}, rows: "volumes",
		thing: thingOf("os-vol-tenant-attr:tenant_id")},
	{Name: "volume_snapshots", ResourceType: "OS::Cinder::Snapshot", Interval: 5 * time.Minute,
		service: openstack.NewBlockStorageV3,
		lists:   []string{"snapshots/detail?all_tenants=1&limit=1000"}, rows: "snapshots",
		thing: thingOf("os-extended-snapshot-attributes:project_id")},
	shares,
	{Name: "share_snapshots", ResourceType: "OS::Manila::ShareSnapshot", Interval: 5 * time.Minute,
		service: openstack.NewSharedFileSystemV2, microversion: "2.73",
		lists: []string{"snapshots/detail?all_tenants=1&limit=1000&sort_key=id&sort_dir=asc"}, rows: "snapshots",
		countsRows: true, thing: thingOf("project_id")},
	shareNetworks,
	{Name: "share_network_subnets", ResourceType: "OS::Manila::ShareNetworkSubnet", Interval: time.Hour,
		service: openstack.NewSharedFileSystemV2, microversion: "2.51", of: &shareNetworks,
		lists: []string{"share-networks/%s/subnets"}, rows: "share_network_subnets", thing: subnetOf,
		joined: []Kind{
			{Name: "metadata of subnets", service: openstack.NewSharedFileSystemV2, microversion: "2.78", of: &shareNetworks,
				lists: []string{"share-networks/%s/subnets"}, rows: "share_network_subnets"},
		}, join: joinMetadata},
	{Name: "share_access_rules", ResourceType: "OS::Manila::ShareAccessRule", Interval: time.Hour,
		service: openstack.NewSharedFileSystemV2, microversion: "2.45", of: &shares,
		lists: []string{"share-access-rules?share_id=%s"}, rows: "access_list", thing: accessRuleOf},
	{Name: "share_export_locations", ResourceType: "OS::Manila::ShareExportLocation", Interval: time.Hour,
		service: openstack.NewSharedFileSystemV2, microversion: "2.14", of: &shares,
		lists: []string{"shares/%s/export_locations"}, rows: "export_locations", thing: exportLocationOf,
		// since 2.47 this list lacks the locations of replicas that are not active
		joined: []Kind{
			{Name: "metadata of locations", service: openstack.NewSharedFileSystemV2, microversion: "2.87", of: &shares,
				lists: []string{"shares/%s/export_locations"}, rows: "export_locations"},
			{Name: "metadata of locations of replicas", service: openstack.NewSharedFileSystemV2, microversion: "2.87",
				of: &shareReplicas, lists: []string{"share-replicas/%s/export-locations"}, rows: "export_locations"},
		}, join: joinMetadata},
}

// Kinds returns the kinds with these names, or all kinds if there are no names.
// unknown has the names without a kind.
func Kinds(names []string) (chosen []Kind, unknown []string) {
	if len(names) == 0 {
		return allKinds, nil
	}
	for _, name := range names {
		if i := slices.IndexFunc(allKinds, func(kind Kind) bool { return kind.Name == name }); i >= 0 {
			chosen = append(chosen, allKinds[i])
		} else {
			unknown = append(unknown, name)
		}
	}
	return chosen, unknown
}

func flavorOf(r row) Thing {
	metadata := r.putAll(r.strings("extra_specs", map[string]string{}), "vcpus", "ram", "disk")
	for key, field := range map[string]string{"ephemeral": "OS-FLV-EXT-DATA:ephemeral", "swap": "swap"} {
		if size := r.text(field); size != "" && size != "0" {
			metadata[key] = size
		}
	}
	return Thing{ID: r.text("id"), Name: r.named(), Description: r.text("description"),
		IsPublic: r["os-flavor-access:is_public"] != false, Metadata: metadata}
}

func hypervisorOf(r row) Thing {
	metadata := r.putAll(map[string]string{}, "hypervisor_type", "hypervisor_version", "host_ip", "state", "status")
	return Thing{ID: r.text("id"), Name: r.text("hypervisor_hostname"), IsPublic: true, Metadata: metadata,
		Capabilities: r.object("cpu_info").leaves("cpu_info", map[string]string{})}
}

// leaves adds the values of an object to others, by their paths, as the keys of
// Nova's ComputeCapabilitiesFilter name them: `cpu_info:topology:cores`. A list
// is added as JSON, with only its strings, sorted.
func (r row) leaves(path string, others map[string]string) map[string]string {
	for field := range r {
		at := path + ":" + field
		switch r[field].(type) {
		case map[string]any:
			r.object(field).leaves(at, others)
		case []any:
			others[at] = asList(r.list(field))
		default:
			if value := r.text(field); value != "" {
				others[at] = value
			}
		}
	}
	return others
}

// asList returns a list of strings as JSON.
func asList(texts []string) string {
	list, _ := json.Marshal(texts) // strings can be JSON
	return string(list)
}

// joinHosts returns the function that adds the rows of joined lists to a host.
func joinHosts(joined [][]row) func(host *Thing, of row) {
	ofAggregates, ofReservation := addAggregates(joined[0]), addReservation(joined[1], joined[2], joined[3])
	return func(host *Thing, of row) {
		ofAggregates(host, of)
		ofReservation(host)
	}
}

// addAggregates returns the function that adds the metadata of a host's
// aggregates to its capabilities. If several aggregates have different values of
// a key, the capability is a list.
func addAggregates(aggregates []row) func(host *Thing, of row) {
	in := map[string][]row{} // by the name of a service
	for _, one := range aggregates {
		for _, service := range one.list("hosts") {
			in[service] = append(in[service], one)
		}
	}
	return func(host *Thing, of row) {
		values := map[string][]string{}
		for _, one := range in[of.object("service").text("host")] {
			for key, value := range one.strings("metadata", map[string]string{}) {
				values[key] = append(values[key], value)
			}
		}
		for key, all := range values {
			slices.Sort(all)
			if all = slices.Compact(all); len(all) == 1 {
				host.Capabilities[key] = all[0]
			} else {
				host.Capabilities[key] = asList(all)
			}
		}
	}
}

// joinMetadata returns the function that adds the metadata of joined rows to the
// thing with the same id. The keys that the thing has stay.
func joinMetadata(joined [][]row) func(thing *Thing, of row) {
	rows := lists.ByKey(slices.Concat(joined...), func(one row) string { return one.text("id") })
	return func(thing *Thing, _ row) {
		metadata := rows[thing.ID].strings("metadata", map[string]string{})
		maps.Copy(metadata, thing.Metadata)
		thing.Metadata = metadata
	}
}

// projectOf returns the thing of a project, which owns itself.
func projectOf(r row) Thing {
	metadata := r.putAll(map[string]string{}, "domain_id", "parent_id", "enabled")
	return Thing{ID: r.text("id"), Name: r.named(), Description: r.text("description"),
		Project: r.text("id"), Metadata: metadata}
}

// aggregateOf returns the thing of a host aggregate. The thing's id is the uuid
// that the aggregate also has in Placement. The metadata key hosts has the
// names of the compute services.
func aggregateOf(r row) Thing {
	metadata := r.strings("metadata", map[string]string{})
	metadata["hosts"] = asList(r.list("hosts"))
	return Thing{ID: r.text("uuid"), Name: r.named(), Metadata: metadata}
}

func migrationOf(r row) Thing {
	metadata := r.putAll(map[string]string{}, "instance_uuid", "migration_type", "status",
		"source_compute", "source_node", "dest_compute", "dest_node")
	return Thing{ID: r.text("uuid"), Name: r.text("migration_type"), Project: r.text("project_id"), Metadata: metadata}
}

func volumeTypeOf(r row) Thing {
	return Thing{ID: r.text("id"), Name: r.named(),
		Description: r.text("description"), IsPublic: r["is_public"] == true,
		Metadata: r.strings("extra_specs", map[string]string{})}
}

// thingOf returns a function that returns the thing of a row, for several kinds
// with similar rows. project is the field of the row with the project. Only
// rows of shares can be public.
func thingOf(project string) func(row) Thing {
	return func(r row) Thing {
		return Thing{ID: r.text("id"), Name: r.named(), Description: r.text("description"), Project: r.text(project),
			IsPublic: r["is_public"] == true, Metadata: r.strings("metadata", map[string]string{})}
	}
}

// serverOf returns the thing of a server, or of a compute service. Nova lists
// deleted and soft-deleted servers only in answers to changes-since. It gives the
// name of a server's flavor, but not the id.
func serverOf(r row) Thing {
	thing, status := thingOf("tenant_id")(r), r.text("status")
	if flavor := r.object("flavor").text("original_name"); flavor != "" {
		thing.Metadata["flavor:original_name"] = flavor
	}
	thing.IsUnknown, thing.isDeleted = status == "UNKNOWN", status == "DELETED" || status == "SOFT_DELETED"
	thing.updated, _ = time.Parse(time.RFC3339, r.text("updated")) // the zero time if it is missing
	return thing
}

// accessRuleOf returns the thing of an access rule, without its key, which is a
// secret.
func accessRuleOf(r row) Thing {
	metadata := r.putAll(r.strings("metadata", map[string]string{}), "access_type", "access_level", "state")
	metadata["share"] = r.object("of").text("id")
	return Thing{ID: r.text("id"), Name: r.text("access_to"), Project: r.object("of").
		text("project_id"), Metadata: metadata}
}

// exportLocationOf returns the thing of an export location. A location only for
// administrators has no project, so it belongs to the project of the pass.
func exportLocationOf(r row) Thing {
	metadata := r.putAll(r.strings("metadata", map[string]string{"share": r.object("of").text("id")}),
		"path", "preferred", "is_admin_only")
	thing := Thing{ID: r.text("id"), Name: r.text("path"), Metadata: metadata}
	if r["is_admin_only"] == false {
		thing.Project = r.object("of").text("project_id")
	}
	return thing
}

// subnetOf returns the thing of a subnet of a share network.
func subnetOf(r row) Thing {
	metadata := r.putAll(map[string]string{"share_network": r.object("of").text("id")},
		"availability_zone", "neutron_net_id",
		"neutron_subnet_id", "network_type", "segmentation_id", "cidr", "ip_version", "gateway", "mtu")
	return Thing{ID: r.text("id"), Name: r.text("cidr"), Project: r.object("of").text("project_id"), Metadata: metadata}
}

// imageFields are the fields of an image that are not properties.
var imageFields = strings.Fields(`id name status visibility protected checksum owner size virtual_size created_at updated_at tags self file schema
	direct_url locations stores os_hidden os_hash_algo os_hash_value`)

func imageOf(r row) Thing {
	metadata := map[string]string{}
	for field := range r {
		if !slices.Contains(imageFields, field) {
			r.put(field, metadata)
		}
	}
	visibility := r.text("visibility")
	return Thing{ID: r.text("id"), Name: r.named(), Project: r.text("owner"), IsPublic: visibility == "public" ||
		visibility == "community", Metadata: metadata}
}
