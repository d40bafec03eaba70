package rest_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// step is a request about a departure, the status of its answer and a part of
// it; !part must not be in it.
type step struct {
	token, method, path, body string
	version                   string
	status                    int
	part                      string
}

// departures are the rows of the table in docs/openstack.md by the beginning of
// the reference's column: requests to doors that answer as the reference, and to
// strict ones if they differ. A row without requests has another test.
var departures = map[string]struct{ usual, strict []step }{
	"`PUT /resource_classes/{name}` before 1.7": {usual: []step{
		{"admin", "PUT", providerURL + "/inventories",
			`{"resource_provider_generation":1,"inventories":{"CUSTOM_A":{"total":8}}}`, "1.39", 200, ""},
		{"admin", "PUT", "/placement/resource_classes/CUSTOM_A", `{"name":"CUSTOM_B"}`, "1.6", 409, ""},
		{"admin", "PUT", providerURL + "/inventories", `{"resource_provider_generation":2,"inventories":{}}`, "1.39",
			200, ""},
		{"admin", "PUT", "/placement/resource_classes/CUSTOM_A", `{"name":"CUSTOM_B"}`, "1.6", 200, "CUSTOM_B"},
	}},
	"A parameter such as `resources`": {
		[]step{{"admin", "GET", "/placement/resource_providers?resources=VCPU:1&resources=VCPU:2", "",
			"1.39", 200, "resource_providers"}},
		[]step{{"admin", "GET", "/placement/resource_providers?resources=VCPU:1&resources=VCPU:2", "", "1.39",
			400, "placement.query.duplicate_key"}},
	},
	"Duplicate members": both(
		step{"admin", "POST", "/placement/resource_providers", `{"name":"a","name":"b"}`, "1.39", 400, "distinct members"},
		step{"admin", "POST", "/image/v2/metadefs/namespaces", `{"namespace":"C","namespace":"D"}`, "", 400, "twice"},
		step{"red", "POST", shareURL, `{"metadata":{"b":"1","b":"2"}}`, "", 400, "distinct members"},
		step{"red", "PUT", shareURL, `{"metadata":{},"metadata":{"b":"2"}}`, "", 400, "distinct members"},
		step{"admin", "PATCH", "/reservation/v1/physical:host/properties/c", `{"private":true,"private":false}`, "",
			400, "distinct members"}),
	"An aggregate that is set before 1.19": {usual: []step{
		{"admin", "GET", providerURL, "", "1.39", 200, `"generation":1`},
		{"admin", "PUT", providerURL + "/aggregates", `["` + storetest.UUID(7) + `"]`, "1.18", 200, ""},
		{"admin", "GET", providerURL, "", "1.39", 200, `"generation":2`},
	}},
	"The database decides the order": {usual: []step{
		{"admin", "POST", "/placement/resource_providers", `{"name":"a"}`, "1.39", 200, ""},
		{"admin", "POST", "/placement/resource_providers", `{"name":"z"}`, "1.39", 200, ""},
		{"admin", "POST", "/placement/resource_providers", `{"name":"b"}`, "1.39", 200, ""},
		{"admin", "GET", "/placement/resource_providers", "", "1.39", 200, `~"a".*"b".*"p".*"z"`},
	}},
	"The least role for reading": {usual: []step{
		{"reader", "GET", "/placement/resource_providers", "", "1.39", 200, `"p"`},
		{"nobody", "GET", "/placement/resource_providers", "", "1.39", 403, ""},
		{"reader", "GET", "/placement/usages?project_id=red", "", "1.39", 200, ""},
		{"reader", "GET", "/placement/usages?project_id=blue", "", "1.39", 403, ""},
	}},
	"Lists of any length": {}, // TestAnswersOfDoorsAreBounded
	"Glance lists the resource types": {usual: []step{
		{"admin", "POST", "/image/v2/metadefs/namespaces",
			`{"namespace":"B","owner":"blue","resource_type_associations":[{"name":"Blue::Type"}]}`, "", 201, ""},
		{"blue", "GET", "/image/v2/metadefs/resource_types", "", "", 200, "Blue::Type"},
		{"red", "GET", "/image/v2/metadefs/resource_types", "", "", 200, "!Blue::Type"},
		{"red", "GET", "/image/v2/metadefs/resource_types", "", "", 200, "OS::Nova::Flavor"},
	}},
	"Glance answers 500, or drops": both(
		step{"admin", "POST", "/image/v2/metadefs/namespaces", `{"namespace":"C","colour":"red"}`, "", 400, "colour"},
		step{"admin", "POST", "/image/v2/metadefs/namespaces", `{"namespace":"C","namespaces":[]}`, "", 400, "namespaces"},
		step{"admin", "POST", "/image/v2/metadefs/namespaces",
			`{"namespace":"C","objects":[{"name":"o","required":["p"]}]}`, "", 400, "$.objects[0].required[0]"},
		step{"admin", "GET", "/image/v2/metadefs/namespaces/C", "", "", 404, ""}),
	"Glance stores properties": both(
		step{"admin", "POST", "/image/v2/metadefs/namespaces/A/properties", `{"name":"o","title":"o","type":"object"}`, "",
			400, "objects cannot be nested"}),
	"Glance turns the default": {
		[]step{
			{"admin", "POST", "/image/v2/metadefs/namespaces/A/properties",
				`{"name":"n","title":"n","type":"integer","default":7}`, "", 201, `"default":"7"`},
			{"admin", "GET", "/image/v2/metadefs/namespaces/A/properties/n", "", "", 200, `"default":"7"`}},
		[]step{{"admin", "GET", "/image/v2/metadefs/namespaces/A/properties/n", "", "", 200, `"default":7`}},
	},
	"Manila's `PUT` of access rules": {usual: []step{
		{"red", "PUT", shareURL, `{"metadata":{"b":"c"}}`, "", 200, `{"metadata":{"b":"c"}}`},
		{"red", "GET", shareURL, "", "", 200, `{"metadata":{"b":"c"}}`},
	}},
	"Blazar takes `detail=false`": {usual: []step{
		{"admin", "GET", "/reservation/v1/physical:host/properties?detail=false&all=0", "", "", 200, "!values"},
		{"admin", "GET", "/reservation/v1/physical:host/properties?detail=1&all=1", "", "", 200, "values"},
	}},
	"A first claim that fails": {usual: []step{
		{"admin", "PUT", providerURL + "/inventories",
			`{"resource_provider_generation":1,"inventories":{"VCPU":{"total":1}}}`, "1.39", 200, ""},
		{"admin", "PUT", consumerURL, claimOf(2), "1.28", 409, ""},
		{"admin", "GET", consumerURL, "", "1.28", 200, `{"allocations":{}}`},
		{"admin", "PUT", consumerURL, claimOf(1), "1.28", 204, ""},
	}},
	"A `Content-Length` that is not a number": {}, // departures.txt of tools/openstack names it; Go's server answers
}

var (
	providerURL = "/placement/resource_providers/" + storetest.UUID(1)
	shareURL    = "/share/v2/shares/" + storetest.UUID(2) + "/metadata"
	consumerURL = "/placement/allocations/" + storetest.UUID(9)
)

// claimOf is the body of a first claim of processors.
func claimOf(processors int) string {
	return fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":%d}}},"consumer_generation":null,`+
		`"project_id":"red","user_id":"u"}`, storetest.UUID(1), processors)
}

// both are the same requests to usual and to strict doors.
func both(steps ...step) struct{ usual, strict []step } {
	return struct{ usual, strict []step }{steps, steps}
}

// TestDeparturesAreThoseOfTheTable makes the requests of each row of the table.
func TestDeparturesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Departures")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(table, -1)[1:]
	if len(rows) < 10 || len(rows) != len(departures) {
		t.Errorf("%d rows, and tests of %d", len(rows), len(departures))
	}
	for _, row := range rows {
		found := false
		for name := range departures {
			found = found || strings.HasPrefix(row[1], name)
		}
		if !found {
			t.Errorf("no test of %q", row[1])
		}
	}
	for name, of := range departures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				fillSmall(t, s)
				newDoors(t, s).follow(of.usual)
				newDoorsWithin(t, s, web.DefaultLimits(), false).follow(of.strict)
			})
		})
	}
}

// follow makes requests and checks their answers.
func (d doors) follow(steps []step) {
	d.t.Helper()
	for _, of := range steps {
		header := http.Header{"Openstack-Api-Version": {"placement " + of.version}}
		if of.body != "" {
			header.Set("Content-Type", "application/json")
		}
		got := d.send(sent{token: of.token, method: of.method,
			path: "/openstack" + of.path, body: of.body, header: header})
		part, isNot := strings.CutPrefix(of.part, "!")
		has := strings.Contains(got.body, part)
		if pattern, ok := strings.CutPrefix(part, "~"); ok {
			has = regexp.MustCompile(pattern).MatchString(got.body)
		}
		if got.status != of.status || has == isNot {
			d.t.Errorf("%s %s %s %s: %d %s, want %d %s", of.token, of.method, of.path, of.body,
				got.status, got.body, of.status, of.part)
		}
	}
}

// TestACreatedNamespaceShowsTheListsOfItsBody checks that an empty list of the
// body is shown, and an absent one is not, as in the reference.
func TestACreatedNamespaceShowsTheListsOfItsBody(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const path = "/image/v2/metadefs/namespaces"
		const all = `"resource_type_associations":[],"properties":{},"objects":[],"tags":[]`
		newDoors(t, s).follow([]step{
			{"admin", "POST", path, `{"namespace":"A",` + all + `}`, "", 201, all},
			{"admin", "GET", path + "/A", "", "", 200, "![]"},
			{"admin", "GET", path, "", "", 200, "![]"},
			{"admin", "POST", path, `{"namespace":"B","tags":[]}`, "", 201, `"tags":[]`},
			{"admin", "POST", path, `{"namespace":"C","tags":[]}`, "", 201, "!objects"},
		})
	})
}

// TestTextIsStoredAsSent checks that text that is no UTF-8 is refused, and that a
// name of another case is not read.
func TestTextIsStoredAsSent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fillSmall(t, s)
		const property = "/reservation/v1/physical:host/properties/c"
		newDoors(t, s).follow([]step{
			{"red", "PUT", shareURL, `{"metadata":{"b":"c"}}`, "", 200, ""},
			{"red", "POST", shareURL, `{"metadata":{"b":"\ud800"}}`, "", 400, "UTF-8"},
			{"red", "POST", shareURL, "{\"metadata\":{\"b\":\"\xff\"}}", "", 400, "UTF-8"},
			{"red", "GET", shareURL, "", "", 200, `{"metadata":{"b":"c"}}`},
			{"admin", "PATCH", property, `{"PRIVATE":false}`, "", 400, "private"},
			{"admin", "PATCH", property, `{"private":false} x`, "", 400, "one JSON value"},
			{"admin", "PATCH", property, `{"private":false}`, "", 404, "c"},
			{"admin", "GET", "/share/v2/none/of/these", "", "", 404, "The resource could not be found"},
		})
	})
}

// TestDefinitionsOfProgramsAreWhole checks that each property of a body needs a
// title, and that objects name their required properties and no others. A
// property is stored verbatim, and an answer has each name once.
func TestDefinitionsOfProgramsAreWhole(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const path = "/image/v2/metadefs/namespaces"
		const titleless, whole = `{"p":{"type":"string"}}`, `{"p":{"title":"P","type":"string"}}`
		const verbatim = `{"name":"n","type":"integer","title":"N","minimum":9007199254740993,"confidential":true}`
		const several = `{"namespace":"B","properties":` + whole + `,"objects":[{"name":"o","properties":` + whole + `}],
			"resource_type_associations":[{"name":"T"},{"name":"T","properties_target":"t"},{"name":"T","prefix":"hw:"}]}`
		const least = `{"name":"n","type":"integer","title":"N"}`
		newDoors(t, s).follow([]step{
			{"admin", "POST", path, `{"namespace":"A","properties":` + titleless + `}`, "", 400, "$.properties.p.title"},
			{"admin", "POST", path, `{"namespace":"A","properties":` + whole + `}`, "", 201, ""},
			{"admin", "POST", path + "/A/properties", `{"name":"q","type":"string"}`, "", 400, "title: is required"},
			{"admin", "POST", path + "/A/objects", `{"name":"o","properties":` + titleless + `}`, "", 400,
				"properties.p.title: is required"},
			{"admin", "POST", path + "/A/objects", `{"name":"o","required":["q"],"properties":` + whole + `}`, "", 400,
				"required[0]: q is not a property of the object"},
			{"admin", "POST", path + "/A/objects", `{"name":"o","required":["p"],"properties":` + whole + `}`, "", 201, ""},
			{"admin", "PUT", path + "/A/objects/o", `{"name":"o","required":["p"]}`, "", 400, "required[0]"},
			{"admin", "GET", path + "/A/objects/o", "", "", 200, `"required":["p"]`},
			{"admin", "POST", path + "/A/properties", verbatim, "", 201, verbatim},
			{"admin", "GET", path + "/A/properties/n", "", "", 200, verbatim},
			{"admin", "PUT", path + "/A/properties/n", least, "", 200, least},
			{"admin", "GET", path + "/A/properties/n", "", "", 200, least},
			{"admin", "POST", path, several, "", 201, ""},
			{"admin", "GET", path + "/B?resource_type=T", "", "", 200,
				`"properties":{"p":{"title":"P","type":"string"},"hw:p":{"title":"P","type":"string"}},"objects"`},
			{"admin", "GET", path + "/B?resource_type=T", "", "", 200, `!"properties":{"hw:p"`},
			{"admin", "GET", "/image/v2/schemas/metadefs/object", "", "", 200, `"required":["title","type"]`},
			{"admin", "GET", path + "/A/objects?sort_key=name", "", "", 200, ""},
			{"admin", "GET", path + "/A/objects?sort_key=colour", "", "", 400, "sort_key"},
		})
	})
}
