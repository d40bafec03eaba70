package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// The private things of a project have its name and this word in their names,
// ids and values.
const secret = "-secret-"

// missing is the uuid of nothing.
const missing = "ffffffff-ffff-4fff-8fff-ffffffffffff"

// randomWorld returns a world with things of two projects, public and private.
func randomWorld(random *rand.Rand) store.Content {
	content := store.Content{ResourceTypes: []string{"physical:host"}, Capabilities: []store.CapabilityRecord{
		{ResourceType: "physical:host", Name: "gpu"},
		{ResourceType: "physical:host", Name: "staff" + secret + "rack", Private: true}}}
	for i := range 12 {
		project := []string{"red", "blue"}[i%2]
		word, visibility := fmt.Sprintf("open-%d", i), access.Public
		if random.IntN(3) > 0 {
			word, visibility = project+secret+fmt.Sprint(i), access.Private
		}
		content.Definitions = append(content.Definitions, strings.NewReplacer("WORD", word, "OWNER", project, "SEEN",
			strings.ToLower(string(visibility))).Replace(`{"namespace": "WORD", "visibility": "SEEN", "owner": "OWNER",
			"properties": {"WORD-p": {"title": "WORD", "type": "string"}}, "tags": [{"name": "WORD-t"}],
			"objects": [{"name": "WORD-o", "properties": {"WORD-q": {"title": "WORD", "type": "integer"}}}],
			"resource_type_associations": [{"name": "OS::Manila::Share", "prefix": "WORD:"}, {"name": "WORD::Type"}]}`))
		for n, resourceType := range []string{"OS::Manila::Share", "OS::Manila::ShareSnapshot", "physical:host"} {
			one := store.ResourceRecord{UUID: storetest.UUID(100 + 3*i + n), Type: resourceType, Name: word,
				Description: word, ProjectID: project,
				Visibility: visibility,
				Metadata:   []resource.MetadataItem{{Key: word, Value: word, UserModifiable: true}},
				Tags:       []string{word}}
			if resourceType == "physical:host" {
				one.Capabilities = []metadef.KeyValue{{Key: "gpu", Value: fmt.Sprint("A", random.IntN(3))},
					{Key: "staff" + secret + "rack", Value: "staff" + secret + word}}
			}
			content.Resources = append(content.Resources, one)
		}
		provider := placement.Provider{UUID: storetest.UUID(200 + i),
			Name: fmt.Sprint("provider-", i), Traits: []string{"HW_CPU_X86_AVX"},
			Aggregates: []string{storetest.UUID(300)},
			Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: int32(8 + i), MinUnit: 1, MaxUnit: 8,
				StepSize: 1, AllocationRatio: 1, Capacity: int64(8 + i)}}}
		content.Providers = append(content.Providers, provider)
		content.Claims = append(content.Claims,
			placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: storetest.UUID(400 + i), ProjectID: project,
				UserID: project + secret + "user",
				Allocations: []placement.ProviderAllocation{{Provider: storetest.UUID(200 + random.IntN(i+1)),
					Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}}}}}}})
	}
	return content
}

// compared is a path of a door and the query that shows the same to the same
// viewer. Shown names the members of the door's answer that have it; *name is
// the names of the members of an object. GraphQL's answer has the same names.
type compared struct {
	path, query string
	shown       []string
}

// namesOf returns the names of the things of a world by the parameter of a path.
func namesOf(content store.Content) map[string][]string {
	names := map[string][]string{}
	for _, document := range content.Definitions {
		names["namespace"] = append(names["namespace"],
			regexp.MustCompile(`"namespace": "([^"]+)"`).FindStringSubmatch(document)[1])
	}
	for _, one := range content.Resources {
		kind := map[string]string{"OS::Manila::Share": "share",
			"OS::Manila::ShareSnapshot": "snapshot", "physical:host": "host"}[one.Type]
		names[kind] = append(names[kind], one.UUID)
	}
	for i := range content.Providers {
		names["provider"] = append(names["provider"], content.Providers[i].UUID)
		names["consumer"] = append(names["consumer"], content.Claims[i].Consumers[0].UUID)
	}
	return names
}

// lists are the lists of all doors for a viewer.
func lists(viewer access.Viewer) []compared {
	const definitions, shares = "/openstack/image/v2/metadefs", "/openstack/share/v2/"
	of := []compared{
		{definitions + "/namespaces?limit=1000",
			`{ namespaces(first: 1000) { nodes { namespace: name owner visibility } } }`,
			[]string{"namespace", "owner", "visibility"}},
		{definitions + "/resource_types", `{ resourceTypes(first: 1000) { nodes { name } } }`, []string{"name"}},
		{"/openstack/reservation/v1/physical:host/properties?all=true&detail=true",
			`{ resourceType(name: "physical:host") { capabilities(includePrivate: true) { property: name values { nodes { value } } } } }`, []string{"property", "value"}},
		{"/openstack/reservation/v1/os-hosts/properties?all=1&detail=1",
			`{ resourceType(name: "physical:host") { capabilities(includePrivate: true) { property: name private } } }`,
			[]string{"property", "private"}},
		{"/openstack/reservation/v1/physical:host/properties?detail=true",
			`{ resourceType(name: "physical:host") { capabilities { property: name values { nodes { value } } } } }`,
			[]string{"property", "value"}},
		{"/openstack/placement/resource_providers",
			`{ resourceProviders(first: 1000) { nodes { uuid name generation } } }`,
			[]string{"uuid", "name", "generation"}},
		{"/openstack/placement/traits", `{ traits(first: 1000) { nodes { traits: name } } }`, []string{"traits"}},
		{"/openstack/placement/resource_classes", `{ resourceClasses(first: 1000) { nodes { name } } }`,
			[]string{"name"}},
	}
	for path, kind := range map[string]string{"shares": "OS::Manila::Share", "snapshots": "OS::Manila::ShareSnapshot"} {
		query := `{ resources(first: 1000, filter: {types: ["` + kind +
			`"]WHOSE}) { nodes { uuid: uuid name project_id: projectId metadata { metadata: key } } } }`
		own := strings.Replace(query, "WHOSE", `, projectId: "`+viewer.ProjectID+`"`, 1)
		all := own
		if viewer.IsAdmin() || viewer.IsService() {
			all = strings.Replace(query, "WHOSE", "", 1)
		}
		shown := []string{"name", "project_id", "*metadata"}
		of = append(of, compared{shares + path + "?all_tenants=1", all, shown},
			compared{shares + path + "/detail", own, shown})
	}
	return of
}

// things are the answers of all doors about one thing each. TARGET is its name.
var things = map[string][]compared{
	"namespace": {
		{"/openstack/image/v2/metadefs/namespaces/TARGET",
			`{ namespace(name: "TARGET") { namespace: name description tags { name } objects { name } resourceTypeAssociations { resourceType { name } } } }`,
			[]string{"namespace", "name"}},
		{"/openstack/image/v2/metadefs/namespaces/TARGET/properties",
			`{ namespace(name: "TARGET") { properties { properties: name } } }`, []string{"*properties"}},
		{"/openstack/image/v2/metadefs/namespaces/TARGET/objects",
			`{ namespace(name: "TARGET") { objects { name properties { properties: name } } } }`,
			[]string{"name", "*properties"}},
		{"/openstack/image/v2/metadefs/namespaces/TARGET/tags",
			`{ namespace(name: "TARGET") { tags { name } } }`, []string{"name"}},
		{"/openstack/image/v2/metadefs/namespaces/TARGET/resource_types",
			`{ namespace(name: "TARGET") { resourceTypeAssociations { prefix resourceType { name } } } }`,
			[]string{"name", "prefix"}},
	},
	"share": {{"/openstack/share/v2/shares/TARGET", resourceQuery, []string{"name", "*metadata"}},
		{"/openstack/share/v2/red/shares/TARGET/metadata", metadataQuery, []string{"*metadata"}}},
	"snapshot": {{"/openstack/share/v2/snapshots/TARGET", resourceQuery, []string{"name", "*metadata"}},
		{"/openstack/share/v2/snapshots/TARGET/metadata", metadataQuery, []string{"*metadata"}}},
	"provider": {
		{"/openstack/placement/resource_providers/TARGET",
			`{ resourceProvider(uuid: "TARGET") { uuid name generation } }`, []string{"uuid", "name", "generation"}},
		{"/openstack/placement/resource_providers/TARGET/inventories",
			`{ resourceProvider(uuid: "TARGET") { inventories { inventories: resourceClass total reserved } } }`,
			[]string{"*inventories", "total", "reserved"}},
		{"/openstack/placement/resource_providers/TARGET/traits",
			`{ resourceProvider(uuid: "TARGET") { traits } }`, []string{"traits"}},
		{"/openstack/placement/resource_providers/TARGET/aggregates",
			`{ resourceProvider(uuid: "TARGET") { aggregates } }`, []string{"aggregates"}},
		{"/openstack/placement/resource_providers/TARGET/allocations",
			`{ resourceProvider(uuid: "TARGET") { page: allocations(first: 1000) { nodes { consumer { allocations: uuid consumer_generation: generation } } } } }`,
			[]string{"*allocations", "consumer_generation"}},
	},
	"consumer": {{"/openstack/placement/allocations/TARGET",
		`{ consumer(uuid: "TARGET") { project_id: projectId user_id: userId consumer_generation: generation allocations { provider { allocations: uuid } } } }`,
		[]string{"project_id", "user_id", "consumer_generation", "*allocations"}}},
}

const (
	resourceQuery = `{ resource(uuid: "TARGET") { name metadata { metadata: key } } }`
	metadataQuery = `{ resource(uuid: "TARGET") { metadata { metadata: key } } }`
)

// TestDoorsShowEachViewerWhatGraphQLShows compares the answers of all doors and of
// GraphQL, as every viewer. A thing that the viewer may not see answers
// as a missing one.
func TestDoorsShowEachViewerWhatGraphQLShows(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, at string) {
		s, err := store.Open(t.Context(),
			store.Options{URL: at, Resources: store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		content := randomWorld(rand.New(rand.NewPCG(3, 4)))
		if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
			t.Fatal(err)
		}
		served, names, hidden, shown := newDoors(t, s), namesOf(content), 0, 0
		for _, token := range slices.Sorted(maps.Keys(viewers)) {
			same := func(path, query string, members []string) int { return served.same(token, path, query, members) }
			for _, of := range lists(viewers[token]) {
				shown += same(of.path, of.query, of.shown)
			}
			for kind, paths := range things {
				for _, name := range names[kind] {
					for _, of := range paths {
						replace := func(text string) string { return strings.ReplaceAll(text, "TARGET", name) }
						if same(replace(of.path), replace(of.query), of.shown) == 0 && kind != "provider" {
							hidden++
							served.sameAsMissing(token, http.MethodGet, of.path, name, "")
						}
					}
				}
			}
		}
		if hidden < 100 || shown < 500 {
			t.Errorf("%d things are hidden and %d shown", hidden, shown)
		}
	})
}

// same compares the answer of a door with that of GraphQL, and returns the
// number of things in it.
func (d doors) same(token, path, query string, members []string) int {
	d.t.Helper()
	got := d.ask(token, http.MethodGet, path, "")
	door, other := valuesIn(got.body, members), valuesIn(d.query(token, query), members)
	if got.status >= 400 {
		door = nil
	}
	if !slices.Equal(door, other) {
		d.t.Errorf("%s: GET %s: %d\n%v\nGraphQL shows\n%v", token, path, got.status, door, other)
	}
	for _, word := range secretsOf(token) {
		if strings.Contains(got.body, word) && !strings.Contains(path, word) {
			d.t.Errorf("%s: GET %s shows %s: %.300s", token, path, word, got.body)
		}
	}
	return len(other)
}

// TestHiddenThingsAnswerAsMissingOnes sends every route of every door about a
// hidden thing and about a missing one.
func TestHiddenThingsAnswerAsMissingOnes(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, at string) {
		s := storetest.Open(t, at)
		if err := s.FillEmpty(storetest.AsAdmin(), randomWorld(rand.New(rand.NewPCG(3, 4)))); err != nil {
			t.Fatal(err)
		}
		served, compared := newDoors(t, s), 0
		database := storetest.Database(t, at)
		before := served.contents(database)
		for _, door := range served.doors {
			for _, route := range door.Routes {
				parameter := regexp.MustCompile(`\{(namespace|id|parent|consumer)\}`).FindString(route.Path)
				if parameter == "" || parameter == "{consumer}" && route.Method != http.MethodGet {
					continue
				}
				path := strings.Replace(door.Mount+route.Path, parameter, "TARGET", 1)
				for name, value := range known {
					path = strings.ReplaceAll(path, "{"+name+"}", value)
				}
				for _, name := range hiddenFrom("red", parameter) {
					for _, token := range []string{"red", "reader", "nobody"} {
						for _, body := range bodiesOf(door.Service, route.Method) {
							served.sameAsMissing(token, route.Method, path, name, body)
							compared++
						}
					}
				}
			}
		}
		if after := served.contents(database); after != before || compared < 500 {
			t.Errorf("after %d requests about hidden things the database is the same: %v", compared, after == before)
		}
	})
}

// bodiesOf returns the valid bodies of a service; a method that only reads or
// deletes can have none.
func bodiesOf(service, method string) []string {
	if method == http.MethodPut || method == http.MethodPost {
		return validBodies[service]
	}
	return append([]string{""}, validBodies[service]...)
}

// hiddenFrom returns the names of private things of the other project.
func hiddenFrom(project, parameter string) (names []string) {
	content := randomWorld(rand.New(rand.NewPCG(3, 4)))
	for _, one := range content.Resources {
		if one.ProjectID != project && one.Visibility == access.Private && one.Type == "OS::Manila::Share" &&
			parameter != "{namespace}" && parameter != "{consumer}" {
			names = append(names, one.UUID)
		}
	}
	for _, name := range namesOf(content)["namespace"] {
		if parameter == "{namespace}" && strings.Contains(name, secret) && !strings.HasPrefix(name, project) {
			names = append(names, name)
		}
	}
	for _, claim := range content.Claims {
		if parameter == "{consumer}" && claim.Consumers[0].ProjectID != project {
			names = append(names, claim.Consumers[0].UUID)
		}
	}
	return names[:2]
}

// ask sends a request about one thing.
func (d doors) ask(token, method, path, body string) answer {
	d.t.Helper()
	header := http.Header{"Openstack-Api-Version": {"placement 1.39"}}
	if body != "" {
		header.Set("Content-Type", "application/json")
	}
	return d.send(sent{token: token, method: method, path: path, body: body, header: header})
}

// query returns the answer of GraphQL.
func (d doors) query(token, query string) string {
	d.t.Helper()
	text, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		d.t.Fatal(err)
	}
	got := d.ask(token, http.MethodPost, "/graphql", string(text))
	if got.status != http.StatusOK || strings.Contains(got.body, "GRAPHQL_VALIDATION_FAILED") {
		d.t.Fatalf("%s: %d %s", query, got.status, got.body)
	}
	return got.body
}

var requestIDs = regexp.MustCompile(`req-[0-9a-f-]{36}`)

// sameAsMissing compares the answers about a thing and about a missing one.
func (d doors) sameAsMissing(token, method, path, name, body string) {
	d.t.Helper()
	as := func(name string) (int, string) {
		got := d.ask(token, method, strings.ReplaceAll(path, "TARGET", url.PathEscape(name)), body)
		return got.status, requestIDs.ReplaceAllString(strings.ReplaceAll(got.body, name, "NAME"), "ID")
	}
	absent := missing
	if strings.Contains(name, secret) {
		absent = "no-such-namespace"
	}
	status, text := as(name)
	if wantStatus, want := as(absent); status != wantStatus || text != want {
		d.t.Errorf("%s: %s %s %s of %s:\n%d %s\nof a missing one:\n%d %s", token, method, path, body,
			name, status, text, wantStatus, want)
	}
}

// secretsOf returns the words that a viewer must not see.
func secretsOf(token string) []string {
	switch token {
	case "admin", "service":
		return nil
	case "red", "reader":
		return []string{"blue" + secret, "staff" + secret}
	case "blue":
		return []string{"red" + secret, "staff" + secret}
	}
	return []string{secret}
}

// valuesIn returns the values of members in JSON, sorted and each once. *name is
// the names of the members of an object.
func valuesIn(text string, members []string) []string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	found := map[string]bool{}
	collect(value, members, found)
	return slices.Sorted(maps.Keys(found))
}

func collect(value any, members []string, found map[string]bool) {
	list, _ := value.([]any)
	for _, item := range list {
		collect(item, members, found)
	}
	object, _ := value.(map[string]any)
	for name, member := range object {
		isShown, hasNames := slices.Contains(members, name), slices.Contains(members, "*"+name)
		switch member := member.(type) {
		case map[string]any:
			for key := range member {
				if hasNames {
					found[strings.ToLower(name+"="+key)] = true
				}
			}
		case []any:
			for _, item := range member {
				if text, ok := item.(string); ok && isShown {
					found[strings.ToLower(name+"="+text)] = true
				}
			}
		case nil:
		default:
			if isShown || hasNames {
				found[strings.ToLower(fmt.Sprint(name, "=", member))] = true
			}
		}
		collect(member, members, found)
	}
}
