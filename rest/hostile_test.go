package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// hostileSegments are segments of paths, as they are sent.
var hostileSegments = []string{
	"%00", "a%00b", "%FF", "%C3%28", "%2F", "..%2f..", "%25", "'", "%22%3B--", "+", "%20", strings.Repeat("x", 5000),
	"%F0%9F%98%80", "-1", "null", "{id}", "CUSTOM_%00", "99999999999999999999", "%E2%80%AE", "",
}

// hostileQueries are query strings.
var hostileQueries = []string{
	"%00=1", "name=%00", "name=%FF", "limit=-1", "limit=99999999999999999999", "limit=0&offset=9",
	"offset=1e9", "sort_key=%00&sort_dir=x",
	"marker=%00", "marker=none", "metadata=%7B", "metadata={'a':'%00'}", "metadata={'a':{'b':1}}",
	"resource_types=,,,", "visibility=none",
	"resources=VCPU:9223372036854775807", "resources=VCPU:1,VCPU", "resources=%00:1",
	"resources1=VCPU:1&required1=%00&group_policy=none",
	"member_of=in:", "member_of=!in:%00", "in_tree=%FF", "required=in:", "required=!",
	"same_subtree=,&root_required=!", "project_id=%00",
	"project_id=a&consumer_type=%00", "name=in:" + strings.Repeat("A,", 2000), "detail=%00&all=%FF",
	"all_tenants=%00", "%", "a=%zz", "==&&=",
	"resources=" + strings.Repeat("VCPU:1,", 3000) + "VCPU:1", strings.Repeat("resources_"+"A=VCPU:1&", 300),
}

// hostileBodies are bodies that are not JSON, or have members of no route.
var hostileBodies = []string{
	"", "{", "null", "[]", "0", `"a"`, "\x00", "\xff\xfe", "{}{}", `{"a":1,"a":2}`,
	strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 5000),
	`{"name":null}`, `{"name":{}}`, `{"name":"\u0000"}`, `{"name":"\ud800"}`, `{"name":1e999}`,
	`{"name":"` + strings.Repeat("n", 100_000) + `"}`,
}

// badValues are values that replace members of a valid body.
var badValues = []string{
	"null", "true", "-1", "1e400", "1.5", "9223372036854775808", "[]", "{}", `""`, `"\u0000"`, `"a\u0000b"`,
	`"\ud800"`, `[null]`, `{"":""}`, `[[[[]]]]`,
	`{"\u0000":"\u0000"}`, `{"a":{"b":{"c":null}}}`, `["\u0000"]`, `["a","a"]`, `"` + strings.Repeat("v", 70_000) + `"`,
}

// validBodies are bodies that a route of a door takes.
var validBodies = map[string][]string{
	"placement": {
		`{"name":"new","uuid":"` + storetest.UUID(90) + `","parent_provider_uuid":null}`,
		`{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8,"reserved":0,"min_unit":1,"max_unit":8,"step_size":1,"allocation_ratio":1.5}}}`,
		`{"resource_provider_generation":0,"resource_class":"VCPU","total":8}`,
		`{"resource_provider_generation":0,"traits":["HW_CPU_X86_AVX"]}`,
		`{"resource_provider_generation":0,"aggregates":["` + storetest.UUID(91) + `"]}`, `{"name":"CUSTOM_NEW"}`,
		`{"allocations":{"` + storetest.UUID(1) +
			`":{"resources":{"VCPU":1}}},"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"INSTANCE"}`,
		`{"` + storetest.UUID(92) +
			`":{"allocations":{},"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"INSTANCE"}}`,
		`{"inventories":{"` + storetest.UUID(1) +
			`":{"resource_provider_generation":0,"inventories":{}}},"allocations":{}}`,
	},
	"image": {
		`{"namespace":"N","display_name":"d","description":"e","visibility":"public","protected":false,"owner":"o","properties":{"p":{"title":"t","type":"string"}}}`,
		`{"name":"p","title":"t","type":"string","default":"x","enum":["x"],"operators":["<or>"]}`,
		`{"name":"OS::A","prefix":"p_","properties_target":"t"}`,
		`{"name":"o","description":"d","required":["p"],"properties":{"p":{"title":"t","type":"integer","minimum":0}}}`,
		`{"tags":[{"name":"t"}]}`, `{"name":"t"}`,
	},
	"shared-file-system": {`{"metadata":{"a":"b"}}`, `{"meta":{"a":"b"}}`},
	"reservation":        {`{"private":true}`},
}

// TestHostileRequestsAreRefusedAndStoreNothing sends requests to every route of
// every door. No answer is a failure of the server, an error has the form of the
// service, and a refused request stores nothing.
func TestHostileRequestsAreRefusedAndStoreNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		fillSmall(t, s)
		served := newDoors(t, s)
		database := storetest.Database(t, url)
		before := served.contents(database)
		random := rand.New(rand.NewPCG(7, 8))
		refused := 0
		for _, door := range served.doors {
			for _, route := range door.Routes {
				rounds := 30
				if door.Service == "shared-file-system" { // the same handlers for every kind
					rounds = 3
				}
				for range rounds {
					r := hostile(random, door, route)
					got := served.send(r)
					if wrong := checkForm(door.Service, r, got); wrong != "" {
						t.Errorf("%s %s: %s\n%q\n%d %.300s", r.method, shortened(r.path), wrong,
							shortened(r.body), got.status, got.body)
					}
					if r.method == http.MethodGet {
						continue
					}
					after := served.contents(database)
					if got.status >= 400 {
						if refused++; after != before {
							t.Fatalf("%s %s %q: %d, but it stored something", r.method,
								shortened(r.path), shortened(r.body), got.status)
						}
					}
					before = after
				}
			}
		}
		if refused < 500 {
			t.Errorf("only %d writes were refused", refused)
		}
	})
}

// hostile returns a request that goes wrong in one place or in several.
func hostile(random *rand.Rand, door *rest.Door, route rest.Route) sent {
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	r := sent{token: "admin", method: route.Method, header: http.Header{}}
	path := route.Path
	for name, value := range known {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	for strings.Contains(path, "{") && random.IntN(8) > 0 {
		from, to := strings.Index(path, "{"), strings.Index(path, "}")
		path = path[:from] + "x" + path[to+1:]
	}
	segments := strings.Split(path, "/")
	if random.IntN(2) == 0 {
		segments[1+random.IntN(len(segments)-1)] = pick(hostileSegments)
	}
	r.path = door.Mount + strings.Join(segments, "/")
	if random.IntN(2) == 0 {
		r.path += "?" + pick(hostileQueries)
	}
	if random.IntN(6) == 0 {
		r.method = pick([]string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"})
	}
	version := random.IntN(40)
	r.header.Set("OpenStack-API-Version", fmt.Sprintf("placement 1.%d", version))
	if random.IntN(10) == 0 {
		r.header.Set("OpenStack-API-Version",
			pick([]string{"placement", "placement 9", "placement 1.-1",
				"placement 1.99999999999999999999", "\xff", "placement \x01"}))
	}
	r.header.Set("Content-Type", "application/json")
	if random.IntN(10) == 0 {
		r.header.Set("Content-Type",
			pick([]string{"", "text/plain", "\xff", "application/json; charset=\xff", "multipart/form-data"}))
	}
	if route.Method != http.MethodGet && route.Method != http.MethodDelete || random.IntN(10) == 0 {
		r.body = hostileBody(random, validBodies[door.Service])
	}
	return r
}

// hostileBody returns a body: hostile as a whole, or a valid one with one bad
// value.
func hostileBody(random *rand.Rand, valid []string) string {
	if random.IntN(3) == 0 {
		return hostileBodies[random.IntN(len(hostileBodies))]
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(valid[random.IntN(len(valid))]), &members); err != nil {
		panic(err)
	}
	names := slices.Sorted(maps.Keys(members))
	bad := badValues[random.IntN(len(badValues))]
	var parts []string
	broken := random.IntN(len(names))
	for i, name := range names {
		value := string(members[name])
		if i == broken {
			value = damaged(random, value, bad)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// damaged returns a value with a bad one in its place, or in place of one of the
// strings inside.
func damaged(random *rand.Rand, value, bad string) string {
	quoted := strings.Split(value, `"`)
	if len(quoted) < 3 || random.IntN(2) == 0 {
		return bad
	}
	if !strings.HasPrefix(bad, `"`) {
		bad = `"\u0000"`
	}
	i := 1 + 2*random.IntN(len(quoted)/2)
	return strings.Join(quoted[:i], `"`) + bad + strings.Join(quoted[i+1:], `"`)
}

// checkForm returns the fault of an answer, "" for none.
func checkForm(service string, r sent, got answer) string {
	switch {
	case got.status >= 500:
		return "a failure of the server"
	case got.header == nil || got.status < 400 || r.method == http.MethodHead:
		return ""
	}
	var shown map[string]json.RawMessage
	if json.Unmarshal([]byte(got.body), &shown) != nil {
		return "the error is not JSON"
	}
	code := map[string]string{"placement": "errors", "image": "code", "reservation": "error_code"}[service]
	if service == "shared-file-system" && len(shown) == 1 {
		for name := range shown {
			code = name
		}
	}
	if !strings.Contains(string(shown[code]), fmt.Sprint(got.status)) {
		return "the error has another form"
	}
	return ""
}

func shortened(text string) string {
	if len(text) > 200 {
		return text[:200] + "..."
	}
	return text
}

// fillSmall makes a thing of each kind.
func fillSmall(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.FillEmpty(storetest.AsAdmin(),
		store.Content{ResourceTypes: []string{"physical:host"}, Resources: []store.ResourceRecord{
			{UUID: storetest.UUID(2), Type: "OS::Manila::Share", Name: "s",
				ProjectID: "red", Visibility: access.Private,
				Metadata: []resource.MetadataItem{{Key: "a", Value: "b", UserModifiable: true}}},
			{UUID: storetest.UUID(3), Type: "physical:host", Name: "h", ProjectID: "red", Visibility: access.Public,
				Capabilities: []metadef.KeyValue{{Key: "gpu", Value: "A2"}}},
		}}); err != nil {
		t.Fatal(err)
	}
	served := newDoors(t, s)
	want := func(method, path, body string) {
		t.Helper()
		r := sent{token: "admin", method: method, path: "/openstack" + path, body: body,
			header: http.Header{"Content-Type": {"application/json"},
				"Openstack-Api-Version": {"placement 1.39"}}}
		if got := served.send(r); got.status >= 300 || strings.Contains(got.body, `"errors"`) {
			t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
		}
	}
	want("POST", "/placement/resource_providers", `{"name":"p","uuid":"`+storetest.UUID(1)+`"}`)
	want("PUT", "/placement/resource_providers/"+storetest.UUID(1)+"/inventories",
		`{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8}}}`)
	want("PUT", "/placement/resource_classes/CUSTOM_A", "")
	want("PUT", "/placement/traits/CUSTOM_A", "")
	want("POST", "/image/v2/metadefs/namespaces",
		`{"namespace":"A","visibility":"public","properties":{"p":{"title":"t","type":"string"}},
		"objects":[{"name":"o","properties":{}}],"tags":[{"name":"t"}],"resource_type_associations":[{"name":"OS::Manila::Share"}]}`)
}

// known are segments that exist in the world of fillSmall.
var known = map[string]string{
	"uuid": storetest.UUID(1), "class": "VCPU", "name": "CUSTOM_A", "consumer": storetest.UUID(93),
	"namespace": "A", "property": "p", "object": "o",
	"tag": "t", "type": "physical:host", "schema": "namespace", "project": "red", "id": storetest.UUID(2),
	"parent": storetest.UUID(2), "key": "a",
}
