package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/defaults"
)

// minSize is how many providers and resources a world has at least, so that every
// work finds something.
const minSize = 20

// size is how large a world is.
type size struct{ providers, resources int }

// object is an input of the API.
type object = map[string]any

// world is what every server is filled with. The same seed and size make the same
// world, uuids included.
type world struct {
	seed        uint64
	definitions []definitions
	traits      []object // inputs of createTrait
	providers   []provider
	resources   []object // inputs of createResource
}

// definitions are definition files of one origin.
type definitions struct {
	origin string // empty for files that no bundle brought
	texts  []string
}

// provider is a host with everything that belongs to it.
type provider struct {
	uuid, name  string
	parent      string // uuid of the parent; empty for a root
	depth       int    // how many are above it
	resource    string // uuid of the resource that it is linked to; empty for none
	traits      []string
	aggregates  []string
	inventories []object // inputs of setInventories
	consumers   []object // inputs of setAllocations
	full        bool     // whether its consumers leave no processor free
}

// What hosts are like: each common trait on nine of ten, each host with some of
// the rare ones and in some of the aggregates.
const (
	rareTraitCount     = 56
	rareTraitsEach     = 8
	aggregateCount     = 30
	aggregatesEach     = 3
	maxConsumersOfHost = 4
	vcpus, vcpuRatio   = 64, 4
)

func commonTraits() []string {
	return []string{"COMPUTE_SECURITY_UEFI_SECURE_BOOT", "COMPUTE_VOLUME_MULTI_ATTACH", "HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"}
}

// resourceType is the type of all resources.
const resourceType = "OS::Manila::Share"

// pair is a metadata item that a part of the resources holds: permille of
// thousand, and one at least. The others have other values of its key.
type pair struct {
	key, value string
	permille   int
}

// rarePair is held by 0.5 % of the resources.
func rarePair() pair { return pair{key: "backup_policy", value: "legal-hold", permille: 5} }

// commonPair is held by half of the resources.
func commonPair() pair { return pair{key: "environment", value: "production", permille: 500} }

func pairs() []pair {
	return []pair{
		commonPair(),
		{key: "cost_center", value: "DE-4100", permille: 20},
		rarePair(),
		{key: "data_class", value: "restricted", permille: 1},
		{key: "migration_wave", value: "pilot"},
	}
}

// newWorld makes the world of a seed.
func newWorld(seed uint64, of size, files []definitions) *world {
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
		w.providers = append(w.providers, w.newProvider(random, i, occupied[i], of.providers, inventories))
	}
	w.addResources(random, of.resources)
	for i := range min(of.providers, of.resources) {
		w.providers[i].resource = w.uuid("resource", i)
	}
	return w
}

func rareTrait(i int) string { return fmt.Sprintf("CUSTOM_RARE_%02d", i) }

// uuid returns the uuid of a thing by its kind and number.
func (w *world) uuid(kind string, number int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%d/%s/%d", w.seed, kind, number)).String()
}

// newProvider makes a host. Rank is its place among all in the order of their
// use: one of twenty is full, half of them have consumers.
func (w *world) newProvider(random *rand.Rand, number, rank, all int, inventories []object) provider {
	p := provider{uuid: w.uuid("provider", number), name: fmt.Sprintf("compute-%06d", number), full: rank*20 < all}
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
	p.inventories = inventories
	switch {
	case p.full:
		p.consumers = []object{w.newConsumer(p.uuid, number*maxConsumersOfHost, vcpus*vcpuRatio, 131_072, 1_000)}
	case rank*2 < all:
		for i := range 1 + random.IntN(maxConsumersOfHost) {
			cpus := 1 << random.IntN(4)
			p.consumers = append(p.consumers, w.newConsumer(p.uuid, number*maxConsumersOfHost+i, cpus, 4_096*cpus, 20*cpus))
		}
	}
	return p
}

// newConsumer makes a consumer that takes from one provider.
func (w *world) newConsumer(from string, number, cpus, memory, disk int) object {
	return claim(w.uuid("consumer", number), from, cpus, memory, disk)
}

// claim is what a consumer takes from one provider, as setAllocations wants it.
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
	protocols := []string{"NFS", "CIFS", "CEPHFS"}
	for number := range count {
		items := []object{
			item("owner_mail", fmt.Sprintf("user-%03d@example.org", random.IntN(200))),
			item("share_protocol", protocols[random.IntN(len(protocols))]),
			item("note", fmt.Sprintf("Moved from filer %02d to filer %02d, ticket %06d.", random.IntN(20), random.IntN(20), number)),
		}
		for i, pair := range pairs() {
			value := pair.value
			if rank := ranks[i][number]; rank > 0 && rank*1000 >= pair.permille*count {
				value = fmt.Sprintf("other-%02d", random.IntN(20))
			}
			items = append(items, item(pair.key, value))
		}
		w.resources = append(w.resources, object{
			"type": resourceType, "name": fmt.Sprintf("share-%06d", number), "uuid": w.uuid("resource", number),
			"visibility": "PUBLIC", "metadata": items,
		})
	}
}

func item(key, value string) object { return object{"key": key, "value": value} }

// leastNamespaces is how many namespaces a world has at least.
const leastNamespaces = 33

// moreDefinitions returns definition files like those of a cloud, so that a world
// has namespaces enough on every machine.
func moreDefinitions(count int) definitions {
	var more definitions
	for i := range count {
		properties := object{}
		for j := range 4 + i%8 {
			properties[fmt.Sprintf("bench_%02d_%02d", i, j)] = object{
				"title": fmt.Sprintf("Property %d of %d", j, i), "description": "What a service reads from an image when it places or starts an instance.",
				"type": "string", "enum": []string{"first", "second", fmt.Sprint("number ", j)}, "default": "first",
			}
		}
		namespace := object{
			"namespace": fmt.Sprintf("Bench::%02d", i), "display_name": fmt.Sprintf("Bench %02d", i), "visibility": "public",
			"description":                "Definitions of the benchmark.",
			"resource_type_associations": []object{{"name": "OS::Glance::Image", "prefix": "hw_"}, {"name": "OS::Nova::Flavor", "prefix": "hw:"}},
			"properties":                 properties,
			"objects": []object{{"name": "Group", "description": "What belongs together.", "required": []string{"kind"},
				"properties": object{"kind": object{"title": "Kind", "type": "string"}}}},
			"tags": []object{{"name": fmt.Sprintf("bench-%02d", i)}, {"name": "tested"}},
		}
		text, err := json.Marshal(namespace)
		if err != nil {
			panic(err) // texts and lists
		}
		more.texts = append(more.texts, string(text))
	}
	return more
}

// readDefinitions returns the definitions that come with the program, those of a
// folder unless its name is empty, and more where that is too few.
func readDefinitions(folder string) ([]definitions, error) {
	all := []definitions{{origin: "cadastre", texts: defaults.Definitions()}}
	if folder == "" {
		return append(all, moreDefinitions(leastNamespaces-len(all[0].texts))), nil
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *.json file in %s", folder)
	}
	var own definitions
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		own.texts = append(own.texts, compact.String())
	}
	return append(all, own), nil
}

// maxDepth is how many levels trees of providers have.
const maxDepth = 3

// What one request of the load holds, and how many are under way at once.
const (
	importedAtOnce = 10
	fieldsAtOnce   = 50
	reshapedAtOnce = 100
	loadersAtOnce  = 8
)

// load writes the world into an empty server.
func (w *world) load(ctx context.Context, c *client) error {
	for _, d := range w.definitions {
		for texts := range slices.Chunk(d.texts, importedAtOnce) {
			if err := importDefinitions(ctx, c, d.origin, texts); err != nil {
				return err
			}
		}
	}
	if ok, err := createsMany(ctx, c); err != nil {
		return err
	} else if ok {
		return w.loadInBulk(ctx, c)
	}
	return w.loadOneByOne(ctx, c)
}

// loadOneByOne writes the traits, resources, providers and consumers of the world
// into a server that creates one in a transaction.
func (w *world) loadOneByOne(ctx context.Context, c *client) error {
	var created [maxDepth][]object // by depth: a parent is there before its children
	var traits, aggregates []object
	for _, p := range w.providers {
		one := object{"uuid": p.uuid, "name": p.name}
		if p.resource != "" {
			one["resource"] = p.resource
		}
		if p.parent != "" {
			one["parent"] = p.parent
		}
		created[p.depth] = append(created[p.depth], one)
		if p.traits != nil {
			traits = append(traits, object{"provider": p.uuid, "traits": p.traits})
		}
		if p.aggregates != nil {
			aggregates = append(aggregates, object{"provider": p.uuid, "aggregates": p.aggregates})
		}
	}
	for _, step := range []struct {
		field, input string
		atOnce       int // inputs in a request
		inputs       []object
	}{
		{"createTrait", "CreateTraitInput", fieldsAtOnce, w.traits},
		{"createResource", "CreateResourceInput", fieldsAtOnce, w.resources},
		{"createResourceProvider", "CreateResourceProviderInput", fieldsAtOnce, created[0]},
		{"createResourceProvider", "CreateResourceProviderInput", fieldsAtOnce, created[1]},
		{"createResourceProvider", "CreateResourceProviderInput", fieldsAtOnce, created[2]},
		{"setProviderTraits", "SetProviderTraitsInput", fieldsAtOnce, traits},
		{"setProviderAggregates", "SetProviderAggregatesInput", fieldsAtOnce, aggregates},
		{"reshape", "ReshapeInput", 1, w.reshapes()},
	} {
		group, sending := errgroup.WithContext(ctx)
		group.SetLimit(loadersAtOnce)
		for inputs := range slices.Chunk(step.inputs, step.atOnce) {
			group.Go(func() error { return c.askPatiently(sending, manyFields(step.field, step.input, inputs)) })
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("%s: %w", step.field, err)
		}
	}
	return nil
}

func importDefinitions(ctx context.Context, c *client, origin string, texts []string) error {
	input := object{"documents": texts}
	if origin != "" {
		input["origin"] = origin
	}
	var answer struct {
		ImportNamespaces struct {
			Reports []struct {
				Namespace, Outcome string
				Errors             []string
			}
		}
	}
	const document = `mutation($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { namespace outcome errors } } }`
	if err := c.ask(ctx, request{Query: document, Variables: object{"input": input}}, &answer); err != nil {
		return err
	}
	for _, report := range answer.ImportNamespaces.Reports {
		if report.Outcome != "CREATED" {
			return fmt.Errorf("import of namespace %q: %s %q", report.Namespace, report.Outcome, report.Errors)
		}
	}
	return nil
}

// reshapes returns inputs of reshape that give all providers their inventories
// and consumers.
func (w *world) reshapes() []object {
	var all []object
	for some := range slices.Chunk(w.providers, reshapedAtOnce) {
		var inventories []object
		consumers := []object{}
		for _, p := range some {
			inventories = append(inventories, object{"provider": p.uuid, "inventories": p.inventories})
			consumers = append(consumers, p.consumers...)
		}
		all = append(all, object{"inventories": inventories, "consumers": consumers})
	}
	return all
}

// manyFields returns an operation that calls a field of Mutation with each of the
// inputs.
func manyFields(field, inputType string, inputs []object) request {
	var parameters, fields bytes.Buffer
	variables := object{}
	for i, input := range inputs {
		fmt.Fprintf(&parameters, " $i%d: %s!", i, inputType)
		fmt.Fprintf(&fields, " f%d: %s(input: $i%d) { __typename }", i, field, i)
		variables[fmt.Sprintf("i%d", i)] = input
	}
	return request{Query: fmt.Sprintf("mutation(%s) {%s }", parameters.Bytes(), fields.Bytes()), Variables: variables}
}
