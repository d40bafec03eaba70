package demo

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/text"
)

func TestBuildIsDeterministic(t *testing.T) {
	t.Parallel()
	if !reflect.DeepEqual(Build(), Build()) {
		t.Error("two worlds differ")
	}
	// Examples in documents name uuids of the demo, so they never change.
	if got, want := uuidOf(typeHost, "compute-01"), "5dffac74-8819-562b-a4a0-c6155175742a"; got != want {
		t.Errorf("the uuid of compute-01 is %s, want %s", got, want)
	}
}

func TestUUIDsAreCanonicalAndUnique(t *testing.T) {
	t.Parallel()
	world := Build()
	check := func(kind string, uuids []string) {
		seen := map[string]bool{}
		for _, uuid := range uuids {
			if canonical, ok := placement.CanonicalUUID(uuid); !ok || canonical != uuid || uuid[14] != '5' ||
				!strings.Contains("89ab", uuid[19:20]) {
				t.Errorf("%s %q is not a canonical version 5 uuid", kind, uuid)
			}
			if seen[uuid] {
				t.Errorf("%s %s appears twice", kind, uuid)
			}
			seen[uuid] = true
		}
	}
	var resources, providers, names, consumers []string
	for _, r := range world.Resources {
		resources = append(resources, r.UUID)
	}
	for _, p := range world.Providers {
		providers = append(providers, p.UUID)
		names = append(names, p.Name)
	}
	for _, claim := range world.Claims {
		for _, consumer := range claim.Consumers {
			consumers = append(consumers, consumer.UUID)
		}
	}
	check("resource", resources)
	check("provider", providers)
	check("consumer", consumers)
	slices.Sort(names)
	if len(slices.Compact(names)) != len(providers) {
		t.Error("two providers have one name")
	}
}

func TestResourcesCoverTheCloud(t *testing.T) {
	t.Parallel()
	world := Build()
	types, projects := map[string]int{}, map[string]int{}
	visibilities := map[access.Visibility]int{}
	for _, r := range world.Resources {
		types[r.Type]++
		projects[r.ProjectID]++
		visibilities[r.Visibility]++
	}
	if len(types) < 12 || types[typeHost] != 24 {
		t.Errorf("resources of each type: %v; want 12 types and 24 hosts", types)
	}
	for _, kind := range []string{typeShare, typeSnapshot, typeExportLocation, typeReplica,
		typeAccessRule, typeGroup, typeGroupSnapshot,
		typeShareNetwork, typeSubnet, typeSecurityService, typeImage, typeVolume,
		typeFlavor, typeAggregate, typeInstance} {
		if types[kind] < 3 {
			t.Errorf("only %d of %s", types[kind], kind)
		}
	}
	if len(projects) != 3 || projects[projectDemo] == 0 ||
		projects[projectResearch] == 0 || projects[projectWebShop] == 0 {
		t.Errorf("resources of each project: %v", projects)
	}
	if visibilities[access.Public] == 0 || visibilities[access.Private] == 0 || len(visibilities) != 2 {
		t.Errorf("resources of each visibility: %v", visibilities)
	}
}

func TestParentsComeFirstAndAreOfTheNaturalKind(t *testing.T) {
	t.Parallel()
	natural := map[string]string{
		typeSnapshot: typeShare, typeExportLocation: typeShare, typeReplica: typeShare, typeAccessRule: typeShare,
		typeGroupSnapshot: typeGroup, typeSubnet: typeShareNetwork, typeHost: typeRack,
	}
	optional := map[string]string{typeShare: typeGroup}
	seen := map[string]store.ResourceRecord{}
	inGroup := 0
	for _, r := range Build().Resources {
		parent, ok := seen[r.Parent]
		switch {
		case r.Parent != "" && !ok:
			t.Errorf("%s %s: its parent is missing or comes later", r.Type, r.Name)
		case natural[r.Type] != "" && parent.Type != natural[r.Type]:
			t.Errorf("%s %s: its parent is a %q", r.Type, r.Name, parent.Type)
		case natural[r.Type] == "" && r.Parent != "" && parent.Type != optional[r.Type]:
			t.Errorf("%s %s: a parent of type %s is not natural", r.Type, r.Name, parent.Type)
		case r.Parent != "" && parent.ProjectID != r.ProjectID && r.Type != typeHost:
			t.Errorf("%s %s belongs to another project than its parent", r.Type, r.Name)
		}
		if r.Type == typeShare && r.Parent != "" {
			inGroup++
		}
		seen[r.UUID] = r
	}
	if inGroup == 0 {
		t.Error("no share is in a group")
	}
}

func TestResourcesKeepTheLimits(t *testing.T) {
	t.Parallel()
	serviceOwned := 0
	for _, r := range Build().Resources {
		var problems problem.Problems
		text.Check(&problems, "name", r.Name, 1, resource.MaxName)
		text.Check(&problems, "description", r.Description, 1, resource.MaxDescription)
		keys := map[string]bool{}
		for _, item := range r.Metadata {
			text.Check(&problems, "key", item.Key, 1, metadef.MaxMetadataKey)
			text.Check(&problems, item.Key, item.Value, 1, metadef.MaxMetadataValue)
			if keys[item.Key] {
				problems.Add(item.Key, "appears twice")
			}
			keys[item.Key] = true
			if !item.UserModifiable {
				serviceOwned++
			}
		}
		if len(r.Metadata) < 2 || len(r.Metadata) > 8 {
			problems.Add("metadata", "has %d items", len(r.Metadata))
		}
		tags := map[string]bool{}
		for _, tag := range r.Tags {
			text.CheckName(&problems, "tags", tag)
			if tags[text.Fold(tag)] {
				problems.Add("tags", "repeat %s", tag)
			}
			tags[text.Fold(tag)] = true
		}
		if err := problems.Err(); err != nil {
			t.Errorf("%s %s: %v", r.Type, r.Name, err)
		}
	}
	if serviceOwned == 0 {
		t.Error("no item is owned by a service")
	}
}

func TestCapabilitiesAreRegisteredAndSomePrivate(t *testing.T) {
	t.Parallel()
	world := Build()
	registered, private := map[[2]string]bool{}, 0
	for _, capability := range world.Capabilities {
		key := [2]string{capability.ResourceType, capability.Name}
		if registered[key] {
			t.Errorf("%v is registered twice", key)
		}
		registered[key] = true
		if capability.Private {
			private++
		}
	}
	if private == 0 || private == len(world.Capabilities) {
		t.Errorf("%d of %d capabilities are private", private, len(world.Capabilities))
	}
	used := map[[2]string]bool{}
	for _, r := range world.Resources {
		seen := map[string]bool{}
		for _, capability := range r.Capabilities {
			key := [2]string{r.Type, capability.Key}
			used[key] = true
			if !registered[key] || seen[capability.Key] {
				t.Errorf("%s: capability %s is unregistered or repeated", r.Name, capability.Key)
			}
			seen[capability.Key] = true
			var problems problem.Problems
			text.Check(&problems, capability.Key, capability.Value, 1, resource.MaxCapabilityValue)
			if err := problems.Err(); err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		}
	}
	if len(used) != len(registered) {
		t.Errorf("%d capabilities are registered, %d have a value", len(registered), len(used))
	}
}

// namesOf returns the standard names, and the names that the demo cloud
// creates.
func namesOf(world store.Content) placement.Names {
	return placement.Names{
		Traits:          append(defaults.Traits(), world.Traits...),
		ResourceClasses: append(defaults.ResourceClasses(), world.ResourceClasses...),
	}
}

func TestCustomNamesAreMarkedAsSuch(t *testing.T) {
	t.Parallel()
	world := Build()
	for _, name := range slices.Concat(world.Traits, world.ResourceClasses) {
		if !placement.IsCustomName(name) {
			t.Errorf("%s is created and not a custom name", name)
		}
	}
}

func TestProvidersAreTrees(t *testing.T) {
	t.Parallel()
	world := Build()
	hostNames := map[string]string{}
	for _, r := range world.Resources {
		if r.Type == typeHost {
			hostNames[r.UUID] = r.Name
		}
	}
	seen := map[string]bool{}
	linked, nested := 0, 0
	for _, p := range world.Providers {
		if p.Parent != "" {
			nested++
		}
		if p.Parent != "" && !seen[p.Parent] {
			t.Errorf("%s: its parent is missing or comes later", p.Name)
		}
		if p.Resource != "" {
			linked++
		}
		if p.Resource != "" && (hostNames[p.Resource] != p.Name || p.Parent != "") {
			t.Errorf("%s is linked to %q; want the root to be linked to the host of its name", p.Name,
				hostNames[p.Resource])
		}
		seen[p.UUID] = true
	}
	if linked != 24 || nested == 0 {
		t.Errorf("%d providers are linked to hosts and %d are nested; want 24 and some", linked, nested)
	}
}

func TestProvidersAreValid(t *testing.T) {
	t.Parallel()
	world := Build()
	names := namesOf(world)
	for _, p := range world.Providers {
		for _, violation := range slices.Concat((&placement.NewProvider{Name: p.Name}).Validate(""),
			placement.ValidateInventories("inventories", p.Inventories)) {
			t.Errorf("%s: %s", p.Name, violation)
		}
		for _, trait := range p.Traits {
			if !slices.Contains(names.Traits, trait) {
				t.Errorf("%s: trait %s is neither standard nor listed as custom", p.Name, trait)
			}
		}
		for _, i := range p.Inventories {
			if !slices.Contains(names.ResourceClasses, i.ResourceClass) {
				t.Errorf("%s: class %s is neither standard nor listed as custom", p.Name, i.ResourceClass)
			}
			if i.Used != 0 || i.Capacity != placement.Capacity(i.Total, i.Reserved, i.AllocationRatio) ||
				i.Capacity <= 0 {
				t.Errorf("%s: %s has used %d, capacity %d", p.Name, i.ResourceClass, i.Used, i.Capacity)
			}
		}
		for _, list := range [][]string{p.Traits, p.Aggregates} {
			if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("%s: %v is unsorted or repeats itself", p.Name, list)
			}
		}
	}
}

// pools are the inventories of the demo cloud by provider and class. Claims take
// amounts of them.
type pools map[[2]string]placement.Inventory

// take claims an amount of a pool, and reports whether it fits.
func (p pools) take(provider string, amount placement.Amount) bool {
	key := [2]string{provider, amount.ResourceClass}
	i, ok := p[key]
	if !ok || amount.Amount < int64(i.MinUnit) || amount.Amount > int64(i.MaxUnit) ||
		amount.Amount%int64(i.StepSize) != 0 || amount.Amount > i.Free() {
		return false
	}
	i.Used += amount.Amount
	p[key] = i
	return true
}

func TestClaimsFit(t *testing.T) {
	t.Parallel()
	world := Build()
	free, disabled := pools{}, map[string]bool{}
	for _, p := range world.Providers {
		for _, i := range p.Inventories {
			free[[2]string{p.UUID, i.ResourceClass}] = i
		}
		disabled[p.UUID] = slices.Contains(p.Traits, "COMPUTE_STATUS_DISABLED")
	}
	for _, claim := range world.Claims {
		for _, consumer := range claim.Consumers {
			seen := map[string]bool{}
			for _, allocation := range consumer.Allocations {
				if seen[allocation.Provider] || disabled[allocation.Provider] {
					t.Errorf("consumer %s: provider %s is repeated or disabled", consumer.UUID, allocation.Provider)
				}
				seen[allocation.Provider] = true
				for _, amount := range allocation.Resources {
					if !free.take(allocation.Provider, amount) {
						t.Errorf("consumer %s: %d of %s does not fit", consumer.UUID,
							amount.Amount, amount.ResourceClass)
					}
				}
			}
		}
	}
}

func TestEveryInstanceHasAllocations(t *testing.T) {
	t.Parallel()
	world := Build()
	instances := map[string]string{}
	for _, r := range world.Resources {
		if r.Type == typeInstance {
			instances[r.UUID] = r.ProjectID
		}
	}
	ofInstances := 0
	for _, claim := range world.Claims {
		for _, consumer := range claim.Consumers {
			if consumer.Type == nil || consumer.Generation != nil || len(consumer.Allocations) == 0 {
				t.Errorf("consumer %s: want a type, no generation and some allocations", consumer.UUID)
				continue
			}
			if project, ok := instances[consumer.UUID]; ok &&
				project == consumer.ProjectID && *consumer.Type == "INSTANCE" {
				ofInstances++
			}
		}
	}
	if ofInstances != 20 || len(instances) != 20 {
		t.Errorf("%d of %d instances have allocations, want 20 of 20", ofInstances, len(instances))
	}
}
