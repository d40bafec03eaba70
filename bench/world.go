package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/defaults"
)

// minSize is the smallest number of providers and resources with which every work
// finds something.
const minSize = 20

// size is the size of a world.
type size struct{ providers, resources int }

// world is the data that the benchmark writes to servers. Equal seeds and sizes
// make equal worlds with equal uuids.
type world struct {
	seed        uint64
	definitions []string // definition files
	traits      []object // inputs of createTrait
	providers   []provider
	resources   []object // inputs of createResource
}

// provider is a host, or a part of one, with everything that belongs to it.
type provider struct {
	uuid, name  string
	parent      string // uuid; empty for a root
	depth       int    // number of ancestors
	resource    string // uuid of the linked resource; empty for none
	traits      []string
	aggregates  []string
	inventories []object // inputs of setInventories
	consumers   []object // inputs of setAllocations
	used        int      // processors that its consumers take
	full        bool     // whether its consumers leave no processor free
	crowded     bool     // whether it has very many consumers
}

// The properties of hosts. Nine of ten hosts have a given common trait. Each
// host has some of the rare traits and is in some of the aggregates.
const (
	rareTraitCount     = 56
	rareTraitsEach     = 8
	aggregateCount     = 30
	aggregatesEach     = 3
	maxConsumersOfHost = 4
	// One host in crowdedOne is crowded, but no more than maxCrowded hosts are.
	crowdedOne       = 20
	maxCrowded       = 10
	consumersCrowd   = 200
	vcpus, vcpuRatio = 64, 4
)

// resourceType is the type of all resources.
const resourceType = "OS::Manila::Share"

// projectCount is the number of projects that have resources.
const projectCount = 200

// pair is a metadata item of some resources: permille of a thousand, but at
// least one. The other resources have one of `others` other values of the key.
type pair struct {
	key, value string
	permille   int
	other      string
	others     int
}

func rarePair() pair   { return pairs()[2] } // of 0.5 % of the resources
func commonPair() pair { return pairs()[0] } // of half of them

func pairs() []pair {
	return []pair{
		{"environment", "production", 500, "other-%02d", 20},
		{"cost_center", "DE-4100", 20, "other-%02d", 20},
		{"backup_policy", "legal-hold", 5, "other-%02d", 20},
		{"data_class", "restricted", 1, "other-%02d", 20},
		{"migration_wave", "pilot", 0, "wave-%d", 2},
		{"share_protocol", "NFS", 370, "CIFS-%d", 2},
	}
}

// newWorld makes the world of a seed.
func newWorld(seed uint64, of size, files []string) *world {
	w := &world{seed: seed, definitions: files}
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range rareTraitCount {
		w.traits = append(w.traits, object{"name": rareTrait(i)})
	}
	occupied := random.Perm(of.providers)
	inventories := []object{
		{"resourceClass": "VCPU", "total": vcpus, "allocationRatio": vcpuRatio},
		{"resourceClass": "MEMORY_MB", "total": 262_144, "reserved": 4_096},
		{"resourceClass": "DISK_GB", "total": 4_000},
	}
	for i := range of.providers {
		w.providers = append(w.providers, w.newHost(random, i, occupied[i], of.providers, inventories))
	}
	w.addResources(random, of.resources)
	for i := range min(of.providers, of.resources) {
		w.providers[i].resource = w.uuid("resource", i)
	}
	return w
}

func rareTrait(i int) string { return fmt.Sprintf("CUSTOM_RARE_%02d", i) }

func commonTraits() []string {
	return []string{"COMPUTE_SECURITY_UEFI_SECURE_BOOT", "COMPUTE_VOLUME_MULTI_ATTACH",
		"HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"}
}

func project(i int) string { return fmt.Sprintf("project-%03d", i%projectCount) }

// uuid returns the uuid of a thing by its kind and number.
func (w *world) uuid(kind string, number int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%d/%s/%d", w.seed, kind, number)).String()
}

// newHost makes a host. Its rank is its position in the order of use. One host
// of twenty is full, half of the hosts have consumers, and the last ones are
// crowded.
func (w *world) newHost(random *rand.Rand, number, rank, all int, inventories []object) provider {
	p := provider{uuid: w.uuid("provider", number), name: fmt.Sprintf("compute-%06d", number), full: rank*20 < all,
		crowded: all-rank <= min(maxCrowded, all/crowdedOne), inventories: inventories}
	for _, trait := range commonTraits() {
		if random.IntN(10) > 0 {
			p.traits = append(p.traits, trait)
		}
	}
	for _, i := range random.Perm(rareTraitCount)[:rareTraitsEach] {
		p.traits = append(p.traits, rareTrait(i))
	}
	for _, i := range random.Perm(aggregateCount)[:aggregatesEach] {
		p.aggregates = append(p.aggregates, w.uuid("aggregate", i))
	}
	consume := func(i, cpus, memory, disk int) {
		p.used += cpus
		p.consumers = append(p.consumers,
			claim(w.uuid("consumer", number*maxConsumersOfHost+i), p.uuid, cpus, memory, disk))
	}
	switch {
	case p.full:
		consume(0, vcpus*vcpuRatio, 131_072, 1_000)
	case rank*2 < all:
		for i := range 1 + random.IntN(maxConsumersOfHost) {
			cpus := 1 << random.IntN(4)
			consume(i, cpus, 4_096*cpus, 20*cpus)
		}
	case p.crowded:
		p.used = consumersCrowd
		for i := range consumersCrowd {
			p.consumers = append(p.consumers, claim(w.uuid("crowd", number*consumersCrowd+i), p.uuid, 1, 1_024, 10))
		}
	}
	return p
}

// claim returns the input of setAllocations for a consumer of one provider.
func claim(consumer, from string, cpus, memory, disk int) object {
	return object{
		"uuid": consumer, "projectId": "bench", "userId": "bench", "type": "INSTANCE",
		"allocations": []object{{"provider": from, "resources": amounts(cpus, memory, disk)}},
	}
}

func amounts(cpus, memory, disk int) []object {
	return []object{amount("VCPU", cpus), amount("MEMORY_MB", memory), amount("DISK_GB", disk)}
}

func amount(of string, number int) object { return object{"resourceClass": of, "amount": number} }

// addResources adds resources with eight metadata items each.
func (w *world) addResources(random *rand.Rand, count int) {
	ranks := make([][]int, len(pairs()))
	for i := range ranks {
		ranks[i] = random.Perm(count)
	}
	for number := range count {
		items := []object{
			{"key": "owner_mail", "value": fmt.Sprintf("user-%03d@example.org", random.IntN(200))},
			{"key": "note", "value": fmt.Sprintf("Moved from filer %02d to filer %02d, ticket %06d.",
				random.IntN(20), random.IntN(20), number)},
		}
		for i, pair := range pairs() {
			value := pair.value
			if rank := ranks[i][number]; rank > 0 && rank*1000 >= pair.permille*count {
				value = fmt.Sprintf(pair.other, random.IntN(pair.others))
			}
			items = append(items, object{"key": pair.key, "value": value})
		}
		w.resources = append(w.resources, object{
			"type": resourceType, "name": fmt.Sprintf("share-%06d", number), "uuid": w.uuid("resource", number),
			"projectId": project(number), "visibility": "PUBLIC", "metadata": items,
		})
	}
}

// Trees of the nested world have a root with disks, two NUMA nodes
// below it with processors and memory, and two network devices below each node.
// Each device is in one of the physical networks.
const (
	nodesOfHost       = 2
	devicesOfNode     = 2
	functionsOfDevice = 8
	physicalNetworks  = 4
	nestedAggregates  = 3
	maxDepth          = 3
)

// nestedAggregate returns the uuid of an aggregate of trees.
func (w *world) nestedAggregate(i int) string { return w.uuid("nested aggregate", i) }

// newNestedWorld makes the nested world of a seed. Its hosts are trees of seven
// providers. Each root is in one of the aggregates.
func newNestedWorld(seed uint64, hosts int) *world {
	w := &world{seed: seed}
	random := rand.New(rand.NewPCG(seed, 1))
	network := func(i int) string { return fmt.Sprintf("CUSTOM_PHYSNET_%d", i) }
	for i := range physicalNetworks {
		w.traits = append(w.traits, object{"name": network(i)})
	}
	add := func(name string, parent provider, inventories ...object) *provider {
		one := provider{uuid: w.uuid("nested", len(w.providers)), name: name, inventories: inventories}
		if parent.name != "" {
			one.parent, one.depth = parent.uuid, parent.depth+1
		}
		w.providers = append(w.providers, one)
		return &w.providers[len(w.providers)-1]
	}
	inventory := func(of string, total int) object { return object{"resourceClass": of, "total": total} }
	for host := range hosts {
		root := add(fmt.Sprintf("nested-%06d", host), provider{}, inventory("DISK_GB", 4_000))
		root.aggregates = []string{w.nestedAggregate(random.IntN(nestedAggregates))}
		top := *root
		for i := range nodesOfHost {
			node := *add(fmt.Sprintf("%s-numa%d", top.name, i), top,
				inventory("VCPU", 32), inventory("MEMORY_MB", 131_072))
			for j := range devicesOfNode {
				device := add(fmt.Sprintf("%s-pf%d", node.name, j), node, inventory("SRIOV_NET_VF", functionsOfDevice))
				device.traits = []string{network(random.IntN(physicalNetworks))}
			}
		}
	}
	return w
}

// minNamespaces is the smallest number of namespaces of a world.
const minNamespaces = 33

// readDefinitions returns the built-in definition files and those in a folder. If
// the name of the folder is empty, it adds generated files instead.
func readDefinitions(folder string) ([]string, error) {
	all := defaults.Definitions()
	if folder == "" {
		return append(all, generatedDefinitions(minNamespaces-len(all))...), nil
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *.json file in %s", folder)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		compact, err := json.Marshal(json.RawMessage(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, string(compact))
	}
	return all, nil
}

// generatedDefinitions returns definition files of a usual size.
func generatedDefinitions(count int) (texts []string) {
	for i := range count {
		properties := object{}
		for j := range 4 + i%8 {
			properties[fmt.Sprintf("bench_%02d_%02d", i, j)] = object{
				"title":       fmt.Sprintf("Property %d of %d", j, i),
				"description": "What a service reads from an image when it places or starts an instance.",
				"type":        "string", "enum": []string{"first", "second", fmt.Sprint("number ", j)},
				"default": "first",
			}
		}
		text, err := json.Marshal(object{
			"namespace":    fmt.Sprintf("Bench::%02d", i),
			"display_name": fmt.Sprintf("Bench %02d", i), "visibility": "public",
			"description": "Definitions of the benchmark.",
			"resource_type_associations": []object{{"name": "OS::Glance::Image", "prefix": "hw_"},
				{"name": "OS::Nova::Flavor", "prefix": "hw:"}},
			"properties": properties,
			"objects": []object{{"name": "Group", "description": "What belongs together.", "required": []string{"kind"},
				"properties": object{"kind": object{"title": "Kind", "type": "string"}}}},
			"tags": []object{{"name": fmt.Sprintf("bench-%02d", i)}, {"name": "tested"}},
		})
		if err != nil {
			panic(err) // strings and lists
		}
		texts = append(texts, string(text))
	}
	return texts
}

// Sizes of the requests that load a world. A request must stay below the
// default limits of a server.
const (
	importedAtOnce = 10
	createdAtOnce  = 500
	claimedAtOnce  = 200
)

// load writes the world into an empty server, many objects in each transaction.
func (w *world) load(ctx context.Context, c *local.Client) error {
	for texts := range slices.Chunk(w.definitions, importedAtOnce) {
		if err := importDefinitions(ctx, c, texts); err != nil {
			return err
		}
	}
	for _, trait := range w.traits {
		if err := c.Ask(ctx, local.Mutation("createTrait", trait), nil); err != nil {
			return err
		}
	}
	if err := c.InChunks(ctx, "createResources", "items", w.resources, createdAtOnce); err != nil {
		return err
	}
	var created [maxDepth][]object // by depth: a parent is created before its children
	var consumers []object
	for _, p := range w.providers {
		created[p.depth] = append(created[p.depth], p.input())
		consumers = append(consumers, p.consumers...)
	}
	for _, inputs := range created {
		if err := c.InChunks(ctx, "createResourceProviders", "items", inputs, createdAtOnce); err != nil {
			return err
		}
	}
	return c.InChunks(ctx, "setAllocations", "consumers", consumers, claimedAtOnce)
}

// importDefinitions imports definition files. All of them must be new.
func importDefinitions(ctx context.Context, c *local.Client, texts []string) error {
	const document = `mutation($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { namespace outcome errors } } }`
	answer, err := c.Insist(ctx, local.Operation(document, object{"input": object{"documents": texts}}), nil)
	if err == nil && bytes.Count(answer, []byte(`"outcome":"CREATED"`)) != len(texts) {
		err = fmt.Errorf("import of namespaces: %s", answer)
	}
	return err
}

// input returns the input that creates a provider with everything but consumers.
func (p provider) input() object {
	all := object{"uuid": p.uuid, "name": p.name, "inventories": p.inventories, "traits": p.traits,
		"aggregates": p.aggregates, "resource": p.resource, "parent": p.parent}
	maps.DeleteFunc(all, func(_ string, value any) bool { return reflect.ValueOf(value).IsZero() })
	return all
}
