package placement_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
	restplacement "github.com/cadastre-dev/cadastre/rest/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// client sends requests to a door behind a whole server.
type client struct {
	t       *testing.T
	address string
	token   string
}

// serve serves a store until the test ends.
func serve(t *testing.T, s *store.Store, compat bool) client {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	authenticator := auth.New(auth.Tokens(auth.TokensOf(map[string]access.Viewer{
		"nova":   {UserID: "nova", ProjectID: "service", Roles: []string{access.RoleService}},
		"reader": {UserID: "ada", ProjectID: "blue", Roles: []string{access.RoleReader}},
	})))
	server := httptest.NewServer(web.New(web.Options{
		Executor:     graph.NewExecutor(&graph.Resolver{Store: s}, log),
		Authenticate: authenticator.Authenticate, Log: log, Profile: web.Open,
		Doors: []*rest.Door{restplacement.New(s, compat, log)},
	}))
	t.Cleanup(server.Close)
	return client{t, server.URL, "nova"}
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request under a minor version; a negative one sends none.
func (c client) send(version int, method, path, body string) answer {
	c.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method,
		c.address+restplacement.Mount+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.token != "" {
		request.Header.Set("X-Auth-Token", c.token)
	}
	if version >= 0 {
		request.Header.Set("OpenStack-API-Version", fmt.Sprintf("placement 1.%d", version))
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// want sends a request and compares the status and the JSON of the answer; an
// empty one is not compared.
func (c client) want(version int, method, path, body string, status int, wanted string) answer {
	c.t.Helper()
	got := c.send(version, method, path, body)
	if got.status != status || wanted != "" && !sameJSON(got.body, wanted) {
		c.t.Fatalf("%s %s (1.%d) %s: %d %s\nwant %d %s", method, path, version, body,
			got.status, got.body, status, wanted)
	}
	return got
}

func sameJSON(a, b string) bool { return bytes.Equal(sorted(a), sorted(b)) }

// sorted returns JSON with sorted members.
func sorted(text string) []byte {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return []byte(text)
	}
	out, _ := json.Marshal(value)
	return out
}

const (
	host  = "11111111-1111-4111-8111-111111111111"
	other = "22222222-2222-4222-8222-222222222222"
	vm    = "33333333-3333-4333-8333-333333333333"
	move  = "44444444-4444-4444-8444-444444444444"
)

// TestNovaScript makes the calls that Nova makes, in its versions: a host
// starts, an instance is booted, moved, confirmed and deleted.
func TestNovaScript(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		c := serve(t, s, true)
		open := c
		open.token = ""
		open.want(-1, "GET", "/", "", 200,
			`{"versions":[{"id":"v1.0","min_version":"1.0","max_version":"1.39","status":"CURRENT","links":[{"rel":"self","href":""}]}]}`)
		open.want(-1, "GET", "/resource_providers", "", 401, "")
		for _, uuid := range []string{host, other} {
			c.want(14, "GET", "/resource_providers?in_tree="+uuid, "", 200, `{"resource_providers":[]}`)
			made := c.want(20, "POST", "/resource_providers", `{"uuid":"`+uuid+`","name":"`+uuid[:4]+`"}`, 200, "")
			if location := made.header.Get("Location"); location != c.address+restplacement.Mount+
				"/resource_providers/"+uuid || !strings.Contains(made.body, `"generation":0`) {
				t.Fatalf("created at %q: %s", location, made.body)
			}
			c.want(-1, "GET", "/resource_providers/"+uuid+"/allocations", "", 200,
				`{"allocations":{},"resource_provider_generation":0}`)
			c.want(26, "PUT", "/resource_providers/"+uuid+"/inventories",
				`{"resource_provider_generation":0,"inventories":{"VCPU":{"total":4,"max_unit":4,"allocation_ratio":2.0},"MEMORY_MB":{"total":100,"reserved":10}}}`, 200,
				`{"resource_provider_generation":1,"inventories":{"VCPU":{"total":4,"reserved":0,"min_unit":1,"max_unit":4,"step_size":1,"allocation_ratio":2},
				"MEMORY_MB":{"total":100,"reserved":10,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1}}}`)
			c.want(6, "PUT", "/resource_providers/"+uuid+"/traits",
				`{"resource_provider_generation":1,"traits":["HW_CPU_X86_AVX"]}`, 200,
				`{"resource_provider_generation":2,"traits":["HW_CPU_X86_AVX"]}`)
			c.want(19, "GET", "/resource_providers/"+uuid+"/aggregates", "", 200,
				`{"resource_provider_generation":2,"aggregates":[]}`)
		}
		candidates := c.want(36, "GET",
			"/allocation_candidates?limit=1000&resources=MEMORY_MB:50,VCPU:2&root_required=!COMPUTE_STATUS_DISABLED",
			"", 200, "")
		if strings.Count(candidates.body, `"mappings"`) != 2 {
			t.Fatalf("candidates: %s", candidates.body)
		}
		c.want(28, "GET", "/allocations/"+vm, "", 200, `{"allocations":{}}`)
		claim := func(on string, generation string) string {
			return `{"allocations":{"` + on + `":{"resources":{"VCPU":2,"MEMORY_MB":50}}},"mappings":{"":["` + on +
				`"]},"project_id":"p","user_id":"u","consumer_generation":` + generation + `}`
		}
		c.want(36, "PUT", "/allocations/"+vm, claim(host, "null"), 204, "")
		c.want(28, "GET", "/allocations/"+vm, "", 200,
			`{"allocations":{"`+host+
				`":{"generation":3,"resources":{"VCPU":2,"MEMORY_MB":50}}},"project_id":"p","user_id":"u","consumer_generation":1}`)
		c.want(28, "POST", "/allocations", `{"`+vm+`":{"allocations":{},"project_id":"p","user_id":"u","consumer_generation":1},
			"`+move+`":{"allocations":{"`+host+
			`":{"generation":3,"resources":{"VCPU":2,"MEMORY_MB":50}}},"project_id":"p","user_id":"u","consumer_generation":null}}`, 204, "")
		c.want(36, "PUT", "/allocations/"+vm, claim(other, "null"), 204, "")
		c.want(38, "GET", "/usages?project_id=p", "", 200,
			`{"usages":{"unknown":{"VCPU":4,"MEMORY_MB":100,"consumer_count":2}}}`)
		c.want(9, "GET", "/usages?project_id=p&user_id=u", "", 200, `{"usages":{"VCPU":4,"MEMORY_MB":100}}`)
		c.want(28, "PUT", "/allocations/"+move,
			`{"allocations":{},"project_id":"p","user_id":"u","consumer_generation":1}`, 204, "")
		c.want(-1, "DELETE", "/allocations/"+vm, "", 204, "")
		c.want(-1, "DELETE", "/allocations/"+vm, "", 404, "")
		c.want(-1, "GET", "/resource_providers/"+host+"/usages", "", 200,
			`{"resource_provider_generation":5,"usages":{"VCPU":0,"MEMORY_MB":0}}`)
		c.want(-1, "DELETE", "/resource_providers/"+host, "", 204, "")
	})
}

// TestConflicts checks the statuses and codes of refusals.
func TestConflicts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		c := serve(t, s, true)
		c.want(20, "POST", "/resource_providers", `{"uuid":"`+host+`","name":"host"}`, 200, "")
		c.want(20, "POST", "/resource_providers",
			`{"uuid":"`+other+`","name":"child","parent_provider_uuid":"`+host+`"}`, 200, "")
		c.want(26, "PUT", "/resource_providers/"+other+"/inventories",
			`{"resource_provider_generation":0,"inventories":{"VCPU":{"total":4}}}`, 200, "")
		claim := func(amount int, generation string) string {
			return fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":%d}}},"project_id":"p","user_id":"u","consumer_generation":%s}`, other, amount, generation)
		}
		c.want(28, "PUT", "/allocations/"+vm, claim(2, "null"), 204, "")
		limits := placement.ProjectLimits{ProjectID: "limited",
			Limits: []placement.NewLimit{{ResourceClass: "VCPU", Amount: 1}}}
		if _, err := s.SetLimits(storetest.AsAdmin(), limits); err != nil {
			t.Fatal(err)
		}
		limited := strings.Replace(claim(2, "null"), `"p"`, `"limited"`, 1)
		for _, of := range []struct{ method, path, body, code, detail string }{
			{"PUT", "/allocations/" + move, limited, "undefined_code", "may use 1 VCPU: 0 are used, 2 more requested"},
			{"POST", "/allocations", `{"` + move + `":` + limited + `}`, "undefined_code",
				"may use 1 VCPU: 0 are used, 2 more requested"},
			{"PUT", "/allocations/" + vm, claim(1, "null"), "concurrent_update", "expected 1 but got null"},
			{"PUT", "/allocations/" + vm, claim(1, "7"), "concurrent_update", "expected 1 but got 7"},
			{"PUT", "/allocations/" + move, claim(3, "null"), "undefined_code", "exceed the capacity"},
			{"PUT", "/resource_providers/" + other + "/inventories",
				`{"resource_provider_generation":0,"inventories":{}}`, "concurrent_update", "generation"},
			{"PUT", "/resource_providers/" + other + "/inventories",
				`{"resource_provider_generation":9,"inventories":{}}`, "concurrent_update", "generation"},
			{"PUT", "/resource_providers/" + other + "/inventories",
				`{"resource_provider_generation":2,"inventories":{}}`, "inventory.inuse", "in use"},
			{"PUT", "/resource_providers/" + other + "/traits",
				`{"resource_provider_generation":0,"traits":[]}`, "concurrent_update", "generation"},
			{"PUT", "/resource_providers/" + other + "/aggregates",
				`{"resource_provider_generation":0,"aggregates":[]}`, "concurrent_update", "generation"},
			{"POST", "/resource_providers", `{"name":"host"}`, "duplicate_name", "host"},
			{"DELETE", "/resource_providers/" + host, "", "resource_provider.cannot_delete_parent", "child"},
			{"DELETE", "/resource_providers/" + other, "", "resource_provider.inuse", "allocations"},
			{"POST", "/reshaper", `{"inventories":{"` + other +
				`":{"resource_provider_generation":2,"inventories":{}}},"allocations":{}}`, "inventory.inuse", "in use"},
			{"POST", "/reshaper", `{"inventories":{"` + other +
				`":{"resource_provider_generation":1,"inventories":{}}},"allocations":{}}`, "concurrent_update", "actual: 2, given: 1"},
		} {
			got := c.want(36, of.method, of.path, of.body, 409, "")
			if !strings.Contains(got.body, `"code":"placement.`+of.code+`"`) ||
				!strings.Contains(got.body, of.detail) ||
				!strings.Contains(got.body, got.header.Get("X-Openstack-Request-Id")) {
				t.Errorf("%s %s %s: %s, want %s and %q", of.method, of.path, of.body, got.body, of.code, of.detail)
			}
		}
		c.want(30, "POST", "/reshaper", `{"inventories":{"`+other+`":{"resource_provider_generation":2,"inventories":{}},
			"`+host+`":{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8}}}},
			"allocations":{"`+vm+`":{"allocations":{"`+host+
			`":{"resources":{"VCPU":2}}},"project_id":"p","user_id":"u","consumer_generation":1}}}`, 204, "")
		c.want(0, "GET", "/resource_providers/"+host+"/usages", "", 200, "")
		reader := c
		reader.token = "reader"
		reader.want(28, "PUT", "/allocations/"+vm, claim(1, "2"), 403, "")
		reader.want(28, "GET", "/allocations/"+vm, "", 200, `{"allocations":{}}`)
		reader.want(9, "GET", "/usages?project_id=p", "", 403, "")
	})
}

// TestRefusalsNameWhatIsWrong checks the details that clients match. They are
// made from the request and the world, not from the messages of GraphQL.
func TestRefusalsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		c := serve(t, s, true)
		const root, child, absent, consumer = "10000000-0000-4000-8000-000000000001",
			"10000000-0000-4000-8000-000000000002",
			"10000000-0000-4000-8000-000000000003", "20000000-0000-4000-8000-000000000001"
		c.want(39, "POST", "/resource_providers", `{"name": "root", "uuid": "`+root+`"}`, 200, "")
		c.want(39, "POST", "/resource_providers",
			`{"name": "child", "uuid": "`+child+`", "parent_provider_uuid": "`+root+`"}`, 200, "")
		c.want(39, "PUT", "/resource_providers/"+root+"/inventories",
			`{"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}`, 200, "")
		for name, of := range map[string]struct {
			method, path, body string
			status             int
			detail             string
		}{
			"a parent below": {"PUT", "/resource_providers/" + root,
				`{"name": "root", "parent_provider_uuid": "` + child + `"}`, 400, "creating loop in the provider tree"},
			"itself": {"PUT", "/resource_providers/" + root,
				`{"name": "root", "parent_provider_uuid": "` + root + `"}`, 400, "creating loop in the provider tree"},
			"no such parent": {"PUT", "/resource_providers/" + root, `{"name": "root", "parent_provider_uuid": "` +
				absent + `"}`, 400, "parent provider UUID does not exist"},
			"a new provider, itself": {"POST", "/resource_providers",
				`{"name": "new", "uuid": "` + absent + `", "parent_provider_uuid": "` + absent + `"}`, 400,
				"parent provider UUID cannot be same as UUID"},
			"no such provider": {"PUT", "/allocations/" + consumer, claimOf(absent, "VCPU"), 400,
				"Allocation for resource provider '" + absent + "' that does not exist."},
			"no such class": {"PUT", "/allocations/" + consumer, claimOf(root, "CUSTOM_NONE"), 400,
				"No such resource class CUSTOM_NONE."},
			"no inventory": {"PUT", "/allocations/" + consumer, claimOf(root, "MEMORY_MB"), 409,
				"Inventory for 'MEMORY_MB' on resource provider '" + root + "' invalid."},
		} {
			if got := c.send(39, of.method, of.path, of.body); got.status != of.status ||
				!strings.Contains(got.body, of.detail) {
				t.Errorf("%s: %d %s, want %d %s", name, got.status, got.body, of.status, of.detail)
			}
		}
		// A name that looks like a member does not move the provider.
		if got := c.send(39, "PUT", "/resource_providers/"+child,
			`{"name": "parent_provider_uuid"}`); got.status != 200 ||
			!strings.Contains(got.body, `"parent_provider_uuid":"`+root+`"`) {
			t.Errorf("a name that looks like a member: %d %s", got.status, got.body)
		}
	})
}

// TestTaintsRepel checks that candidates leave out a host with a taint unless
// the request requires it.
func TestTaintsRepel(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		c := serve(t, s, true)
		for uuid, name := range map[string]string{host: "host", other: "other"} {
			c.want(20, "POST", "/resource_providers", `{"uuid":"`+uuid+`","name":"`+name+`"}`, 200, "")
			c.want(26, "PUT", "/resource_providers/"+uuid+"/inventories",
				`{"resource_provider_generation":0,"inventories":{"VCPU":{"total":4}}}`, 200, "")
		}
		c.want(6, "PUT", "/traits/CUSTOM_TAINT_BROKEN", "", 201, "")
		c.want(6, "PUT", "/resource_providers/"+host+"/traits",
			`{"resource_provider_generation":1,"traits":["CUSTOM_TAINT_BROKEN"]}`, 200, "")
		for query, want := range map[string]string{"": other, "&required=CUSTOM_TAINT_BROKEN": host,
			"&required=in:CUSTOM_TAINT_BROKEN,HW_CPU_X86_AVX": host, "&root_required=CUSTOM_TAINT_BROKEN": host} {
			got := c.want(39, "GET", "/allocation_candidates?resources=VCPU:1"+query, "", 200, "").body
			if !strings.Contains(got, want) || strings.Contains(got, host) == strings.Contains(got, other) {
				t.Errorf("%s: %s", query, got)
			}
		}
	})
}

// claimOf returns the body of a claim of one unit.
func claimOf(provider, class string) string {
	return `{"allocations": {"` + provider + `": {"resources": {"` + class +
		`": 1}}}, "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE"}`
}

// TestHistoricShapes claims in every form that versions had.
func TestHistoricShapes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		c := serve(t, s, true)
		c.want(20, "POST", "/resource_providers", `{"uuid":"`+host+`","name":"host"}`, 200, "")
		c.want(26, "PUT", "/resource_providers/"+host+"/inventories",
			`{"resource_provider_generation":0,"inventories":{"VCPU":{"total":9}}}`, 200, "")
		list := `"allocations":[{"resource_provider":{"uuid":"` + host + `"},"resources":{"VCPU":1}}]`
		dict := `"allocations":{"` + host + `":{"resources":{"VCPU":2}}}`
		owners := `,"project_id":"p","user_id":"u"`
		for _, of := range []struct {
			since, until int
			body         string
		}{
			{0, 7, "{" + list + "}"}, {8, 11, "{" + list + owners + "}"}, {12, 27, "{" + dict + owners + "}"},
			{28, 33, "{" + dict + owners + `,"consumer_generation":%d}`},
			{34, 37, "{" + dict + owners + `,"consumer_generation":%d,"mappings":{"":["` + host + `"]}}`},
			{38, 39, "{" + dict + owners + `,"consumer_generation":%d,"mappings":{"_A":["` +
				host + `"]},"consumer_type":"INSTANCE"}`},
		} {
			for version := range 40 {
				body := of.body
				if strings.Contains(body, "%d") {
					var held struct {
						Generation int `json:"consumer_generation"`
					}
					_ = json.Unmarshal([]byte(c.send(28, "GET", "/allocations/"+vm, "").body), &held)
					body = fmt.Sprintf(body, held.Generation)
				}
				status := 400
				if version >= of.since && version <= of.until || of.since == 28 && version >= 28 && version < 38 {
					status = 204
				}
				c.want(version, "PUT", "/allocations/"+vm, body, status, "")
			}
		}
		c.want(38, "GET", "/usages?project_id=p&consumer_type=INSTANCE", "", 200,
			`{"usages":{"INSTANCE":{"VCPU":2,"consumer_count":1}}}`)
		c.want(38, "GET", "/usages?project_id=p&consumer_type=all", "", 200,
			`{"usages":{"all":{"VCPU":2,"consumer_count":1}}}`)
		c.want(38, "GET", "/usages?project_id=p&consumer_type=unknown", "", 200, `{"usages":{}}`)
	})
}

// TestRepeatedParameters checks the one answer that depends on compat.
func TestRepeatedParameters(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const path = "/resource_providers?resources=VCPU:1&resources=VCPU:2"
		serve(t, s, true).want(39, "GET", path, "", 200, `{"resource_providers":[]}`)
		got := serve(t, s, false).want(39, "GET", path, "", 400, "")
		if !strings.Contains(got.body, "placement.query.duplicate_key") {
			t.Errorf("strict: %s", got.body)
		}
	})
}
