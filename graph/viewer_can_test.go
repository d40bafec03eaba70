package graph_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestEnumsOfPermissionsAreTheTable compares the enums of roles, rules and
// operations with the table of permissions and with the schema.
func TestEnumsOfPermissionsAreTheTable(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	valuesOf := func(name string) []string {
		var values []string
		for _, value := range schema.Types[name].EnumValues {
			values = append(values, value.Name)
		}
		return values
	}
	var rules, roles, operations []string
	for _, rule := range access.AllRules() {
		rules = append(rules, access.EnumName(string(rule)))
	}
	for _, role := range access.AllRoles() {
		roles = append(roles, access.EnumName(role))
	}
	for _, field := range slices.Concat(schema.Query.Fields, schema.Mutation.Fields, schema.Subscription.Fields) {
		if name := access.EnumName(field.Name); !strings.HasPrefix(field.Name, "__") {
			if operations = append(operations, name); access.FieldNamed(name) != field.Name {
				t.Errorf("%s stands for %q, want %s", name, access.FieldNamed(name), field.Name)
			}
		}
	}
	slices.Sort(operations)
	slices.Sort(rules)
	for name, want := range map[string][]string{"Role": roles, "AccessRule": rules, "Operation": operations} {
		if got := valuesOf(name); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	if len(operations) != len(access.Operations()) {
		t.Errorf("the table has %d fields, the schema %d", len(access.Operations()), len(operations))
	}
}

// said are the names of types that say how a mutation went.
var said = regexp.MustCompile(`^(Removed|__)|(Report|Explanation|Result|Difference|Refusal)$|^(MetadataProblemConnection|Limit)$`)

// TestWhatCanBeChangedSaysWhoMay finds types of objects in payloads that have
// neither viewerCanUpdate nor viewerCanDelete, or no row in changeable.
func TestWhatCanBeChangedSaysWhoMay(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	known := map[string]bool{}
	for _, thing := range changeable {
		known[thing.kind] = true
	}
	for _, mutation := range schema.Mutation.Fields {
		for _, field := range schema.Types[mutation.Type.Name()].Fields {
			of := schema.Types[field.Type.Name()]
			if of.Kind != ast.Object || said.MatchString(of.Name) {
				continue
			}
			if of.Fields.ForName("viewerCanUpdate") == nil && of.Fields.ForName("viewerCanDelete") == nil {
				t.Errorf("%s changes a %s, which does not say whether viewers may", mutation.Name, of.Name)
			}
		}
	}
	for name, of := range schema.Types {
		if of.Fields.ForName("viewerCanDelete") != nil && !known[name] {
			t.Errorf("%s has no row in changeable", name)
		}
	}
}

// changeableKind is a kind of things that viewers can change: the query that
// looks one up by its keys, $1 and $2, and the mutations for its
// viewerCanUpdate and viewerCanDelete. $g is the generation of a consumer.
type changeableKind struct {
	kind           string
	look           string // with @ for the selection
	update, delete string // the field and its input
	keys           [][2]string
}

const (
	canProject    = "a0000000-0000-4000-8000-000000000001" // owned by demo
	canChild      = "a0000000-0000-4000-8000-000000000002" // below the parent
	canParent     = "a0000000-0000-4000-8000-000000000003"
	canPublic     = "a0000000-0000-4000-8000-000000000004" // owned by operations, public
	canLinked     = "a0000000-0000-4000-8000-000000000005" // owned by demo, with a provider
	canOther      = "a0000000-0000-4000-8000-000000000006" // owned by demo, of a type without protection
	canRoot       = "b0000000-0000-4000-8000-000000000001"
	canBelow      = "b0000000-0000-4000-8000-000000000002"
	canAlone      = "b0000000-0000-4000-8000-000000000003"
	canUsed       = "b0000000-0000-4000-8000-000000000004"
	canConsumer   = "c0000000-0000-4000-8000-000000000001"
	canNamespaces = "Open Mine Edited Shared Kept Theirs"
)

var changeable = []changeableKind{
	{"Namespace", `namespace(name: "$1") { @ }`, `updateNamespace name: "$1", description: "new"`,
		`deleteNamespace name: "$1"`, each(canNamespaces, "")},
	{"NamespaceMember", `namespace(name: "$1") { members { @ } }`,
		`shareNamespace namespace: "$1", projectId: "$2", role: READER`,
		`unshareNamespace namespace: "$1", projectId: "$2"`,
		[][2]string{{"Edited", "demo"}, {"Shared", "demo"}, {"Mine", "services"}}},
	{"PropertyDefinition", `namespace(name: "$1") { property(name: "$2") { @ } }`,
		`updateProperty namespace: "$1", name: "$2", title: "New"`, `deleteProperty namespace: "$1", name: "$2"`,
		slices.Concat(each(canNamespaces, "p"), each("Mine", "new"))},
	{"ObjectDefinition", `namespace(name: "$1") { object(name: "$2") { @ } }`,
		`updateObject namespace: "$1", name: "$2", description: "new"`,
		`deleteObject namespace: "$1", name: "$2"`, each(canNamespaces, "o")},
	{"Tag", `namespace(name: "$1") { tag(name: "$2") { @ } }`, `updateTag namespace: "$1", name: "$2", parent: null`,
		`deleteTag namespace: "$1", name: "$2"`, each(canNamespaces, "t")},
	{"ResourceTypeAssociation", `namespace(name: "$1") { resourceTypeAssociations { @ } }`,
		`updateResourceTypeAssociation id: "$id", newPropertiesTarget: "x"`,
		`disassociateResourceType id: "$id"`, each(canNamespaces, "")},
	{"ResourceType", `resourceType(name: "$1") { @ }`, `updateResourceType name: "$1", strict: false`,
		`deleteResourceType name: "$1"`, each("T::Free T::Kept T::Used T::Known T::Joined physical:host", "")},
	{"Resource", `resource(uuid: "$1") { @ }`, `updateResource uuid: "$1", description: "new"`,
		`deleteResource uuid: "$1"`,
		each(strings.Join([]string{canProject, canChild, canParent, canPublic, canLinked, canOther}, " "), "")},
	{"MetadataItem", `resource(uuid: "$1") { metadataItem(key: "$2") { @ } }`,
		`setMetadata resource: "$1", items: [{key: "$2", value: "new"}]`, `deleteMetadata resource: "$1", keys: ["$2"]`,
		slices.Concat(each(canProject+" "+canPublic, "own"), each(canProject+" "+canPublic, "served"))},
	{"ResourceCapability", `resource(uuid: "$1") { capabilities(includePrivate: true) { @ } }`,
		`setCapabilities resource: "$1", capabilities: [{key: "$2", value: "new"}]`,
		`unsetCapabilities resource: "$1", names: ["$2"]`, each(canProject+" "+canPublic, "known")},
	{"Capability", `resourceType(name: "$1") { capability(name: "$2") { @ } }`,
		`setCapabilityVisibility resourceType: "$1", name: "$2", private: false`,
		`deleteCapability resourceType: "$1", name: "$2", force: true`,
		[][2]string{{"physical:host", "known"}, {"T::Known", "spare"}, {"OS::Manila::Share", "unused"}}},
	{"ResourceProvider", `resourceProvider(uuid: "$1") { @ }`, `updateResourceProvider provider: "$1", resource: null`,
		`deleteResourceProvider provider: "$1"`,
		each(strings.Join([]string{canRoot, canBelow, canAlone, canUsed}, " "), "")},
	{"Inventory", `resourceProvider(uuid: "$1") { inventory(resourceClass: "$2") { @ } }`,
		`setInventory provider: "$1", inventory: {resourceClass: "$2", total: 9}`,
		`deleteInventory provider: "$1", resourceClass: "$2"`,
		[][2]string{{canUsed, "VCPU"}, {canUsed, "MEMORY_MB"}, {canRoot, "CUSTOM_USED"}}},
	{"Consumer", `consumer(uuid: "$1") { @ }`,
		`setAllocations consumers: [{uuid: "$1", projectId: "demo", userId: "mel", generation: $g, allocations: [{provider: "` + canUsed + `", resources: [{resourceClass: "VCPU", amount: 2}]}]}]`, `deleteAllocations consumer: "$1"`, each(canConsumer, "")},
	{"Trait", `traits(filter: {names: ["$1"]}) { nodes { @ } }`, "", `deleteTrait name: "$1"`,
		each("CUSTOM_USED CUSTOM_FREE HW_NUMA_ROOT", "")},
	{"ResourceClass", `resourceClasses(filter: {names: ["$1"]}) { nodes { @ } }`, "", `deleteResourceClass name: "$1"`,
		each("CUSTOM_USED CUSTOM_FREE VCPU", "")},
}

// each returns pairs of each key and the same second key.
func each(keys, second string) [][2]string {
	var pairs [][2]string
	for key := range strings.FieldsSeq(keys) {
		pairs = append(pairs, [2]string{key, second})
	}
	return pairs
}

// creations are mutations without a viewerCanUpdate or viewerCanDelete.
var creations = []string{
	`createNamespace name: "New"`, `importNamespaces documents: ["{\"namespace\": \"Imported\"}"]`,
	`unloadNamespaces names: ["Imported"]`,
	`createProperty namespace: "Mine", name: "new", title: "New", type: STRING`,
	`createProperty namespace: "Edited", name: "extra", title: "New", type: STRING`,
	`createObject namespace: "Mine", name: "new"`, `createObject namespace: "Edited", name: "new"`,
	`deleteNamespaceContents namespace: "Mine", kinds: [TAGS]`,
	`deleteNamespaceContents namespace: "Edited", kinds: [TAGS]`,
	`setTags namespace: "Mine", tags: [{name: "t"}], mode: APPEND`,
	`setTags namespace: "Edited", tags: [{name: "t"}], mode: APPEND`,
	`associateResourceType namespace: "New", resourceType: "OS::Manila::Share"`, `createResourceType name: "T::New"`,
	`createResource type: "T::Used", name: "new"`, `createResources items: [{type: "T::Used", name: "newer"}]`,
	`setResourceTags resource: "` + canProject + `", tags: ["new"]`,
	`setMetadataOnResources items: [{resource: "` + canProject + `", items: [{key: "new", value: "1"}]}]`,
	`replaceMetadata resource: "` + canProject + `", items: [{key: "own", value: "1"}, {key: "new", value: "2"}]`,
	`createCapability resourceType: "physical:host", name: "new"`, `createResourceProvider name: "new"`,
	`createResourceProviders items: [{name: "newer"}]`, `setInventories provider: "` + canAlone + `", inventories: []`,
	`updateInventories filter: {}, resourceClass: "VCPU", reserved: 0`,
	`setOnResourceProviders items: [{provider: "` + canAlone + `", traits: []}]`, `setProviderTraits provider: "` +
		canAlone + `", traits: []`, `setProviderAggregates provider: "` + canAlone + `", aggregates: []`,
	`createTrait name: "CUSTOM_NEW"`, `createResourceClass name: "CUSTOM_NEW"`,
	`reshape inventories: [{provider: "` + canAlone + `", inventories: []}]`,
}

// canFixture makes things of every kind: of project demo and of others,
// protected and not, in use and not.
func canFixture() []string {
	made := []string{`createTrait name: "CUSTOM_USED"`, `createTrait name: "CUSTOM_FREE"`,
		`createResourceClass name: "CUSTOM_USED"`, `createResourceClass name: "CUSTOM_FREE"`}
	for _, of := range []string{`"Open", visibility: PUBLIC`, `"Mine", owner: "demo"`, `"Edited"`, `"Shared"`,
		`"Kept", protected: true, owner: "demo"`, `"Theirs", owner: "elsewhere"`} {
		made = append(made, `createNamespace name: `+of+`, properties: [{name: "p", title: "P", type: STRING}], objects: [{name: "o"}], tags: [{name: "t"}],
			resourceTypeAssociations: [{resourceType: "T::Joined", prefix: "a:"}]`)
	}
	made = append(made, `shareNamespace namespace: "Edited", projectId: "demo", role: EDITOR`,
		`shareNamespace namespace: "Shared", projectId: "demo", role: READER`,
		`shareNamespace namespace: "Mine", projectId: "services", role: READER`,
		`createResourceType name: "T::Free"`, `createResourceType name: "T::Kept", protected: true`,
		`createResourceType name: "T::Used"`, `createResourceType name: "T::Known"`,
		`createCapability resourceType: "T::Known", name: "spare", private: false`,
		`createCapability resourceType: "OS::Manila::Share", name: "unused", private: false`,
		`createCapability resourceType: "physical:host", name: "known", private: false`)
	for _, of := range []string{`physical:host", uuid: "` + canProject + `", projectId: "demo`,
		`OS::Manila::Share", uuid: "` + canParent + `", projectId: "demo`,
		`physical:host", visibility: PUBLIC, uuid: "` + canPublic, `physical:host", uuid: "` + canLinked +
			`", projectId: "demo`, `T::Used", uuid: "` + canOther + `", projectId: "demo`} {
		made = append(made, `createResource name: "r", type: "`+of+`"`)
	}
	made = append(made, `createResource name: "child", type: "OS::Manila::ShareSnapshot", projectId: "demo", uuid: "`+
		canChild+`", parent: "`+canParent+`"`)
	for _, uuid := range []string{canProject, canPublic} {
		made = append(made, `setMetadata resource: "`+uuid+`", items: [{key: "own", value: "1"}]`,
			`setMetadata resource: "`+uuid+`", items: [{key: "served", value: "1"}], userModifiable: false`,
			`setCapabilities resource: "`+uuid+`", capabilities: [{key: "known", value: "1"}]`)
	}
	return append(made, `createResourceProvider name: "root", uuid: "`+canRoot+`", resource: "`+canLinked+`"`,
		`createResourceProvider name: "below", uuid: "`+canBelow+`", parent: "`+canRoot+`"`,
		`createResourceProvider name: "alone", uuid: "`+canAlone+`"`,
		`createResourceProvider name: "used", uuid: "`+canUsed+`"`,
		`setInventories provider: "`+canUsed+
			`", inventories: [{resourceClass: "VCPU", total: 8}, {resourceClass: "MEMORY_MB", total: 8}]`,
		`setInventory provider: "`+canRoot+`", inventory: {resourceClass: "CUSTOM_USED", total: 8}`,
		`setProviderTraits provider: "`+canRoot+`", traits: ["CUSTOM_USED"]`,
		`setAllocations consumers: [{uuid: "`+canConsumer+
			`", projectId: "demo", userId: "mel", allocations: [{provider: "`+canUsed+
			`", resources: [{resourceClass: "VCPU", amount: 1}]}]}]`)
}

// permitted compares the viewer's reported permissions with the outcome of
// mutations.
type permitted struct {
	t        *testing.T
	executor *graph.Executor
	viewer   access.Viewer
	random   *rand.Rand
	name     string
	worked   map[string]bool // by operation; false if it was tried without success
	answered map[string]int  // by kind and answer
}

// mutation returns the mutation of a field and its input.
func mutationOf(text string) (field, query string) {
	field, input, _ := strings.Cut(text, " ")
	return field, "mutation { " + field + "(input: {" + input + "}) { __typename } }"
}

var (
	canInAnswer        = regexp.MustCompile(`"viewerCan(?:Update|Delete)":(true|false)`)
	generationInAnswer = regexp.MustCompile(`"generation":(\d+)`)
)

// try sends a mutation and reports whether it worked.
func (p *permitted) try(text string) (ok bool, answer string) {
	p.t.Helper()
	field, query := mutationOf(text)
	answer = askAs(p.t, p.executor, p.viewer, query)
	ok = !strings.Contains(answer, `"code":`)
	p.worked[field] = p.worked[field] || ok
	if !ok && !regexp.MustCompile(`"(FORBIDDEN|NOT_FOUND|PROTECTED|IN_USE|BAD_USER_INPUT|ALREADY_EXISTS)"`).
		MatchString(answer) {
		p.t.Errorf("%s: %s: %s", p.name, query, answer)
	}
	return ok, answer
}

// compare reads whether the viewer can change a thing, and then tries.
func (p *permitted) compare(of changeableKind, keys [2]string, can, text string) {
	p.t.Helper()
	if text == "" {
		return
	}
	put := func(text string) string { return strings.NewReplacer("$1", keys[0], "$2", keys[1]).Replace(text) }
	look := put("{ " + of.look + " }")
	selected := askAs(p.t, p.executor, viewers["admin"],
		strings.ReplaceAll(look, "@", map[bool]string{true: "generation", false: "__typename"}[of.kind == "Consumer"]))
	if found := generationInAnswer.FindStringSubmatch(selected); found != nil {
		text = strings.ReplaceAll(text, "$g", found[1])
	}
	if of.kind == "ResourceTypeAssociation" {
		if found := idInAnswer.FindStringSubmatch(askAs(p.t, p.executor, viewers["admin"],
			strings.ReplaceAll(look, "@", "id"))); found != nil {
			text = strings.ReplaceAll(text, "$id", found[1])
		}
	}
	shown := askAs(p.t, p.executor, p.viewer, strings.ReplaceAll(look, "@", can))
	found := canInAnswer.FindAllStringSubmatch(shown, -1)
	if strings.Contains(shown, `"INTERNAL"`) {
		p.t.Errorf("%s: %s: %s", p.name, look, shown)
	}
	if len(found) != 1 {
		return // deleted, or not visible
	}
	want := found[0][1] == "true"
	if ok, answer := p.try(put(text)); ok != want {
		p.t.Errorf("%s: %s of %s %v is %v, and the answer to %s is %s", p.name, can,
			of.kind, keys, want, put(text), answer)
	}
	p.answered[of.kind+" "+can+" "+found[0][1]]++
}

// sweep compares everything in random order. It also compares viewer.can with
// the outcomes: no denied operation may have worked. In a thorough sweep, each
// allowed operation must have worked at least once.
func (p *permitted) sweep(thorough bool) {
	p.t.Helper()
	for _, text := range creations {
		p.try(text)
	}
	p.inOrder(false, p.steps("viewerCanUpdate", func(of changeableKind) string { return of.update }))
	removals := p.steps("viewerCanDelete", func(of changeableKind) string { return of.delete })
	p.inOrder(thorough, append(removals, removals...)) // things in use at first may be unused later
	for operation, worked := range p.worked {
		answer := askAs(p.t, p.executor, p.viewer,
			fmt.Sprintf(`{ viewer { can(operation: %s) } }`, access.EnumName(operation)))
		if strings.Contains(answer, `"errors"`) {
			continue // a policy that denies the query
		}
		if can := strings.Contains(answer, "true"); worked && !can || thorough && can && !worked {
			p.t.Errorf("%s: %s has worked: %v, and the viewer is told %s", p.name, operation, worked, answer)
		}
	}
}

// steps returns comparisons of all things with one of their mutations.
func (p *permitted) steps(can string, mutation func(changeableKind) string) []func() {
	var steps []func()
	for _, of := range changeable {
		for _, keys := range of.keys {
			steps = append(steps, func() { p.compare(of, keys, can, mutation(of)) })
		}
	}
	return steps
}

// inOrder runs steps in random order. If partsFirst is set, it runs them
// backwards, so that parts come before their owners.
func (p *permitted) inOrder(partsFirst bool, steps []func()) {
	if partsFirst {
		slices.Reverse(steps)
	} else {
		p.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	for _, step := range steps {
		step()
	}
}

// TestWhatViewersCanIsWhatMutationsSay compares viewerCanUpdate,
// viewerCanDelete and viewer.can with the outcome of the mutations, as every
// viewer, for things of every kind, under the default policy and under random
// ones.
func TestWhatViewersCanIsWhatMutationsSay(t *testing.T) {
	t.Parallel()
	for name, newDatabase := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(12, 14))
			answered := map[string]int{}
			for viewer := range viewers {
				for _, ownersWrite := range []bool{false, true} {
					if !ownersWrite && viewer != "member" && viewer != "foreign" {
						continue // the option does not affect other viewers
					}
					p := permittedOn(t, newDatabase(t), ownersWrite, answered)
					p.random, p.viewer, p.name = random, viewers[viewer],
						fmt.Sprintf("%s, owners write %v", viewer, ownersWrite)
					p.sweep(viewer != "foreign" && viewer != "service") // these own nothing
				}
			}
			for range soak.Rounds(5) {
				overrides := randomPolicy(random)
				names := []string{"admin", "service", "member", "reader", "foreign"}
				viewer := names[random.IntN(len(names))]
				p := permittedOn(t, newDatabase(t), random.IntN(2) == 0, answered)
				p.random, p.viewer, p.name = random, viewers[viewer].WithPolicy(newPolicy(t, overrides)),
					fmt.Sprintf("%s under %v", viewer, overrides)
				p.sweep(false)
			}
			for _, of := range changeable {
				for _, can := range []string{"viewerCanUpdate", "viewerCanDelete"} {
					for _, answer := range []string{"true", "false"} {
						if seen := answered[of.kind+" "+can+" "+answer]; seen == 0 &&
							(can == "viewerCanDelete" || of.update != "") {
							t.Errorf("%s of %s was never %s", can, of.kind, answer)
						}
					}
				}
			}
		})
	}
}

// permittedOn returns a comparison on a new store with the fixture.
func permittedOn(t *testing.T, url string, ownersWrite bool, answered map[string]int) *permitted {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url, Log: slog.New(slog.DiscardHandler),
		Definitions: store.DefinitionOptions{OwnerWrites: ownersWrite},
		Resources:   store.ResourceOptions{CapabilityDiscovery: "everyone"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := &permitted{t: t, executor: executorOf(t, s), viewer: viewers["admin"],
		worked: map[string]bool{}, answered: answered}
	for _, text := range canFixture() {
		if ok, answer := p.try(text); !ok {
			t.Fatalf("%s: %s", text, answer)
		}
	}
	clear(p.worked)
	return p
}

// randomPolicy returns overrides of some rules and fields.
func randomPolicy(random *rand.Rand) map[string][]string {
	names := access.Operations()
	for range 3 {
		for _, rule := range access.AllRules() {
			names = append(names, string(rule))
		}
	}
	overrides := map[string][]string{}
	for range 1 + random.IntN(8) {
		var roles []string
		for _, role := range access.AllRoles() {
			if random.IntN(2) == 0 {
				roles = append(roles, role)
			}
		}
		overrides[names[random.IntN(len(names))]] = roles
	}
	return overrides
}
