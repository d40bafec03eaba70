package sync_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/sync"
)

// object is a JSON object.
type object = map[string]any

// fake answers as the services of OpenStack do in their API references: Keystone,
// Nova, Placement, Blazar, Glance, Cinder and Manila.
type fake struct {
	url   string
	lists map[string][]object // by path
	size  int                 // rows of a page; 0 is 3
	// objects are answers that are no lists, by path, or by path and microversion of
	// Manila.
	objects map[string]object
	manila  int // the newest microversion of Manila after "2."; 0 is 73
	// owners are the projects of consumers; without one it is blue.
	owners map[string]string
	// users are the users of consumers; without one it is ada.
	users      map[string]string
	generation int // of the consumer that was written last
	// usage are the units that the consumers of a project use, if they are known.
	usage map[string]int
	// fault happens to the second page of every list. Without an answer, the page
	// follows.
	fault func(w http.ResponseWriter) (answered bool)
	busy  int // how many more requests get 503
	// later is the header Retry-After of a busy service; "" is 0.
	later string
	// ignores means that Nova does not know the parameter changes-since.
	ignores bool
	mu      gosync.Mutex
	asked   []string
	lacks   string // a service that is not in the catalogue
	// isStrange means that services name no versions.
	isStrange bool
	// isTwin means that the region two has the services of the region one.
	isTwin bool
	// tokens counts the tokens. Requests with another one than the last get 401.
	tokens   int
	isClosed bool // Keystone gives no tokens
	// silent, if it is not nil, delays tokens until it is closed.
	silent chan bool
}

// start serves the fake and signs in.
func (f *fake) start(t testing.TB) *sync.Cloud {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	f.url = server.URL
	mux.HandleFunc("GET /v3/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w,
			`{"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": %q}]}}`, f.url+"/v3/")
	})
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) {
		var catalog []object
		for kind, path := range map[string]string{"compute": "/compute/v2.1", "image": "/image",
			"block-storage": "/volume/v3", "shared-file-system": "/share/v2",
			"placement": "/placement", "identity": "/identity/v3", "reservation": "/reservation"} {
			if kind == f.lacks {
				continue
			}
			endpoints := []object{{"interface": "public", "region": "one", "region_id": "one", "url": f.url + path}}
			if kind == "image" || f.isTwin {
				endpoints = append(endpoints,
					object{"interface": "public", "region": "two", "region_id": "two", "url": f.url + path})
			}
			catalog = append(catalog, object{"type": kind, "name": kind, "endpoints": endpoints})
		}
		if f.silent != nil {
			<-f.silent
		}
		if f.isClosed {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		f.tokens++
		w.Header().Set("X-Subject-Token", fmt.Sprint("token ", f.tokens))
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).
			Encode(object{"token": object{"expires_at": "2036-01-31T12:00:00.000000Z", "catalog": catalog}})
	})
	mux.HandleFunc("GET /image/{$}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.refuses(w, r) {
			return
		}
		w.WriteHeader(http.StatusMultipleChoices)
		_, _ = fmt.Fprintf(w,
			`{"versions": [{"id": "v2.16", "status": "CURRENT", "links": [{"rel": "self", "href": %q}]}]}`,
			f.url+"/image/v2/")
	})
	mux.HandleFunc("GET /placement/{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w,
			`{"versions": [{"id": "v1.0", "status": "CURRENT", "min_version": "1.0", "max_version": "1.39", "links": [{"rel": "self", "href": ""}]}]}`)
	})
	mux.HandleFunc("GET /reservation/{$}", func(w http.ResponseWriter, r *http.Request) {
		if !f.refuses(w, r) {
			w.WriteHeader(http.StatusMultipleChoices)
			_, _ = fmt.Fprintf(w,
				`{"versions": [{"id": "v1.0", "status": "CURRENT", "min_version": "1.0", "max_version": "1.0", "links": [{"rel": "self", "href": %q}]}]}`, f.url+"/v1")
		}
	})
	mux.HandleFunc("GET /", f.list)
	provider, err := config.NewProviderClient(t.Context(),
		gophercloud.AuthOptions{IdentityEndpoint: f.url + "/v3", Username: "ada", Password: "secret",
			DomainName: "Default", AllowReauth: true})
	if err != nil {
		t.Fatal(err)
	}
	return &sync.Cloud{Provider: provider, At: gophercloud.EndpointOpts{Region: "one"}}
}

// refuses answers a request with an old token or a microversion that is too new, or
// while the service is busy or strange.
func (f *fake) refuses(w http.ResponseWriter, r *http.Request) bool {
	minor, _ := strconv.Atoi(strings.TrimPrefix(r.Header.Get(manilaVersion), "2."))
	switch {
	case f.isStrange:
		_, _ = io.WriteString(w, `{"versions": []}`)
	case r.Header.Get("X-Auth-Token") != fmt.Sprint("token ", f.tokens):
		w.WriteHeader(http.StatusUnauthorized)
	case minor > cmp.Or(f.manila, 73):
		w.WriteHeader(http.StatusNotAcceptable)
	case f.busy > 0:
		f.busy--
		w.Header().Set("Retry-After", cmp.Or(f.later, "0"))
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		return false
	}
	return true
}

// list answers an object, a page of three rows, or one of 900 shares.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.URL.Path+" "+r.Header.Get("OpenStack-API-Version"))
	if f.refuses(w, r) {
		return
	}
	path, query := r.URL.Path, r.URL.Query()
	if path == "/placement/usages" {
		_ = json.NewEncoder(w).Encode(object{"usages": f.used(query.Get("project_id"))})
		return
	}
	if query.Get("os_hidden") == "true" {
		path += " hidden"
	}
	if query.Has("all") {
		path += " all"
	}
	if share := query.Get("share_id"); share != "" {
		path += " " + share
	}
	if newer := path + " " + r.Header.Get(manilaVersion); f.objects[newer] != nil {
		path = newer
	}
	if one := f.objects[path]; one != nil {
		_ = json.NewEncoder(w).Encode(one)
		return
	}
	if _, known := f.lists[path]; !known {
		http.NotFound(w, r)
		return
	}
	if (query.Has("marker") || query.Has("offset")) && f.fault != nil && f.fault(w) {
		return
	}
	rows := f.filtered(path, query)
	page, more, known := pageOf(rows, cmp.Or(f.size, 3), path, query)
	if !known {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	shown := shownOf(path, page)
	_ = json.NewEncoder(w).Encode(answerOf(r.URL, shown, more && len(shown) == len(page)))
}

// shownOf returns the rows of a page that Nova does not leave out.
func shownOf(path string, page []object) []object {
	if path != hypervisors && path != servers {
		return page
	}
	return slices.DeleteFunc(slices.Clone(page), func(row object) bool { return row["hidden"] == true })
}

// filtered returns the rows of a list that a query asks for.
func (f *fake) filtered(path string, query url.Values) []object {
	rows := f.lists[path]
	switch {
	case path == servers:
		since := query.Get("changes-since")
		return slices.DeleteFunc(slices.Clone(rows), func(row object) bool {
			if since == "" || f.ignores {
				return row["status"] == "DELETED" || row["status"] == "SOFT_DELETED"
			}
			return row["status"] == "UNKNOWN" || row["updated"].(string) < since
		})
	case path == moves:
		return slices.DeleteFunc(slices.Clone(rows), func(row object) bool {
			return row["status"] != query.Get("status")
		})
	// Glance shows community images of other projects only then
	case path == images && query.Get("visibility") != "all":
		return slices.DeleteFunc(slices.Clone(rows), func(row object) bool { return row["visibility"] == "community" })
	}
	return rows
}

// answerOf returns the body of a page, with the address of the next one as the
// service of the list names it.
func answerOf(at *url.URL, page []object, more bool) object {
	path, query := at.Path, at.Query()
	name := strings.Split(strings.TrimSuffix(path, "/detail"), "/")
	field := strings.ReplaceAll(strings.TrimPrefix(name[len(name)-1], "os-"), "-", "_")
	links := field + "_links"
	if path == types {
		field, links = "volume_types", "volume_type_links"
	} else if path == properties {
		field = "resource_properties"
	}
	answer := object{field: page}
	if more && path != shares && path != copies && path != networks && path != replicas {
		query.Set("marker", fmt.Sprint(page[len(page)-1]["id"]))
		next := "http://inside" + path + "?" + query.Encode()
		switch field {
		case "images", "namespaces":
			answer["next"] = strings.TrimPrefix(path, "/image") + "?" + query.Encode()
		case "projects":
			answer["links"] = object{"self": "http://inside" + path, "next": next}
		default:
			answer[links] = []object{{"rel": "next", "href": next}}
		}
	}
	return answer
}

// pageOf returns the rows of a page, and whether more follow. Known is false
// after a marker that does not exist.
func pageOf(rows []object, size int, path string, query url.Values) (page []object, more, known bool) {
	begin := 0
	if path == aggregates || strings.HasPrefix(path, reserved) || path == "/placement/resource_providers" {
		size = len(rows) // these lists have no pages
	} else if path == shares {
		begin, _ = strconv.Atoi(query.Get("offset"))
		size = 900
	} else if path == copies || path == networks || path == replicas {
		begin, _ = strconv.Atoi(query.Get("offset"))
	} else if query.Has("marker") {
		begin = 1 + slices.IndexFunc(rows, func(row object) bool { return row["id"] == query.Get("marker") })
		if begin == 0 {
			return nil, false, false
		}
	}
	rows = rows[min(begin, len(rows)):]
	page = rows[:min(size, len(rows))]
	if path == shares || path == copies { // a row is an instance, which a page shows as its share
		page = slices.CompactFunc(slices.Clone(page), func(a, b object) bool { return a["id"] == b["id"] })
	}
	return page, len(rows) > size, true
}

const manilaVersion = "X-OpenStack-Manila-API-Version"

const (
	flavors     = "/compute/v2.1/flavors/detail"
	hypervisors = "/compute/v2.1/os-hypervisors/detail"
	servers     = "/compute/v2.1/servers/detail"
	services    = "/compute/v2.1/os-services"
	images      = "/image/v2/images"
	volumes     = "/volume/v3/volumes/detail"
	shares      = "/share/v2/shares/detail"
	projects    = "/identity/v3/projects"
	aggregates  = "/compute/v2.1/os-aggregates"
	types       = "/volume/v3/types"
	snapshots   = "/volume/v3/snapshots/detail"
	copies      = "/share/v2/snapshots/detail"
	networks    = "/share/v2/share-networks/detail"
	replicas    = "/share/v2/share-replicas"
	moves       = "/compute/v2.1/os-migrations"
	reserved    = "/reservation/v1/os-hosts"
	properties  = reserved + "/properties"
)

// newFake returns a cloud with things of every kind.
func newFake() *fake {
	f := &fake{lists: map[string][]object{reserved: {}, properties: {}, properties + " all": {}, images +
		" hidden": {{"id": "hidden-1", "name": "old", "owner": "p1", "visibility": "public", "os_distro": "debian"}}}}
	for i := range 7 {
		id := fmt.Sprint(i)
		f.lists[flavors] = append(f.lists[flavors],
			object{"id": id, "name": "m1." + id, "ram": 512 << i, "disk": i, "vcpus": 1 + i,
				"swap": "", "OS-FLV-EXT-DATA:ephemeral": i % 2,
				"os-flavor-access:is_public": i != 3, "description": nil,
				"extra_specs": object{"hw:cpu_policy": "dedicated", "big": strings.Repeat("x", 2000*(i/6))}})
		f.lists[servers] = append(f.lists[servers],
			object{"id": "server-" + id, "name": "", "tenant_id": "p" + id, "status": "ACTIVE",
				"metadata": object{"role": "web"}, "description": "d", "flavor": object{"original_name": "m1." + id}})
		f.lists[images] = append(f.lists[images], object{"id": "image-" + id, "name": "image", "owner": "p1",
			"visibility": []string{"private", "community"}[i%2], "status": "active",
			"size": 12345678901234567, "min_disk": i, "os_distro": "debian", "checksum": nil})
		f.lists[volumes] = append(f.lists[volumes],
			object{"id": "volume-" + id, "name": nil,
				"os-vol-tenant-attr:tenant_id": "p2", "metadata": object{"tier": id}})
	}
	for i := range 4 {
		id := fmt.Sprint(i)
		f.lists[projects] = append(f.lists[projects],
			object{"id": "p" + id, "name": "project " + id, "description": "",
				"enabled": i != 2, "domain_id": "default",
				"parent_id": "default", "is_domain": false, "tags": []string{}, "options": object{}})
		f.lists[aggregates] = append(f.lists[aggregates],
			object{"id": i, "uuid": "22222222-0000-4000-8000-00000000000" + id, "name": "rack " + id,
				"hosts": []string{"b", "a"}[:i%3], "availability_zone": "north",
				"metadata": object{"availability_zone": "north", "rack": id}})
		f.lists[types] = append(f.lists[types], object{"id": "type-" + id, "name": "gold " + id, "description": nil,
			"is_public": i != 1, "extra_specs": object{"volume_backend_name": id}})
		f.lists[snapshots] = append(f.lists[snapshots],
			object{"id": "snapshot-" + id, "name": "", "description": "of a volume", "volume_id": "volume-1",
				"os-extended-snapshot-attributes:project_id": "p2", "metadata": object{"at": id}})
		f.lists[networks] = append(f.lists[networks],
			object{"id": "network-" + id, "name": nil, "project_id": "p2", "description": "of " + id})
		f.lists[copies] = append(f.lists[copies], object{"id": "copy-" + id, "name": "copy", "project_id": "p3",
			"share_id": "share-0001", "metadata": object{"at": id}})
	}
	for i, status := range []string{"running", "finished", "completed", "error", "finished", "finished", "finished"} {
		id := fmt.Sprint(i)
		f.lists[moves] = append(f.lists[moves], object{"id": id, "uuid": "44444444-0000-4000-8000-00000000000" + id,
			"status": status, "migration_type": "resize",
			"instance_uuid": "server-" + id, "project_id": "p2", "source_compute": "a", "dest_compute": nil})
	}
	f.lists["/placement/resource_providers"] = []object{}
	f.lists[services] = []object{{"binary": "nova-compute", "host": "compute-1", "status": "enabled"}}
	f.lists[hypervisors] = []object{{"id": "11111111-0000-4000-8000-000000000001",
		"hypervisor_hostname": "compute-1.example", "hypervisor_type": "QEMU", "state": "up", "status": "enabled",
		"service": object{"id": "s", "host": "b"},
		"cpu_info": object{"arch": "x86_64", "vendor": "",
			"features": []string{"vmx", "aes"}, "topology": object{"cores": 8}}}}
	for i := range 2003 {
		f.lists[shares] = append(f.lists[shares], object{"id": fmt.Sprintf("share-%04d", i), "name": "share",
			"project_id": "p3", "is_public": i == 0, "metadata": object{"n": fmt.Sprint(i)}})
	}
	return f
}

// syncing is a server and a cloud that it follows.
type syncing struct {
	t      testing.TB
	cloud  *sync.Cloud
	server graphql.Client
	allow  bool
	// compares means that a dry run comes before each pass, and must have its result.
	compares bool
	ctx      context.Context
	passes   map[string]*sync.Pass
}

func newSyncing(t testing.TB, f *fake) *syncing {
	t.Helper()
	return &syncing{t: t, cloud: f.start(t), server: client.New(demotest.Serve(t), client.WithToken(demo.AdminToken)),
		ctx: t.Context()}
}

// pass makes a pass over a kind, which knows what earlier ones read.
func (s *syncing) pass(name string) (sync.Result, error) {
	s.t.Helper()
	pass := s.passes[name]
	if pass == nil {
		if s.passes == nil {
			s.passes = map[string]*sync.Pass{}
		}
		kinds, _ := sync.Kinds([]string{name})
		pass = &sync.Pass{Origin: "cloud", Kind: kinds[0], Project: "operations", Progress: func(int) {}}
		s.passes[name] = pass
	}
	pass.Cloud, pass.Server, pass.Limits = s.cloud, s.server, origin.Limits{Allow: s.allow}
	if !s.compares {
		return pass.Run(s.ctx)
	}
	before := s.written()
	dry := *pass
	dry.DryRun = true
	want, wantErr := dry.Run(s.ctx)
	if after := s.written(); after != before {
		s.t.Errorf("%s: a dry run wrote: %s, before %s", name, after, before)
	}
	result, err := pass.Run(s.ctx)
	difference := want.Changes
	if want.Changes, result.Changes = nil, nil; err == nil && !reflect.DeepEqual(result, want) {
		s.t.Errorf("%s: %+v, %v, but the dry run %+v, %v", name, result, err, want, wantErr)
	}
	result.Changes = difference
	return result, err
}

// written returns what tells of writes: the last event and the last change.
func (s *syncing) written() string {
	s.t.Helper()
	var answer object
	err := s.server.MakeRequest(s.t.Context(),
		&graphql.Request{Query: `{ auditEvents(first: 1) { nodes { id } } changes(first: 0) { latest } syncs { kind running completedAt } }`},
		&graphql.Response{Data: &answer})
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint(answer)
}

// keeps checks how many absent things the server says that a kind keeps.
func (s *syncing) keeps(kind string, want int) {
	s.t.Helper()
	var answer struct {
		Syncs []struct {
			Kind    string
			Refused int
		}
	}
	err := s.server.MakeRequest(s.t.Context(), &graphql.Request{Query: `{ syncs { kind refused } }`},
		&graphql.Response{Data: &answer})
	for _, of := range answer.Syncs {
		if of.Kind == kind && of.Refused == want {
			return
		}
	}
	s.t.Errorf("%+v, %v; want %d refused %s", answer.Syncs, err, want, kind)
}

// TestADryRunShowsTheDifference makes dry runs before changes of a cloud reach
// the server.
func TestADryRunShowsTheDifference(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	check := func(when string, want ...string) {
		t.Helper()
		result, err := s.pass("flavors")
		var got []string
		for _, change := range result.Changes {
			got = append(got,
				strings.TrimSpace(fmt.Sprint(change.Effect, " ", change.ForeignID, " ",
					strings.Join(change.Changed, " "))))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", when, got, err, want)
		}
	}
	f.lists[flavors] = f.lists[flavors][:6]
	check("all", "CREATED 0", "CREATED 1", "CREATED 2", "CREATED 3", "CREATED 4", "CREATED 5")
	check("again")
	rows := f.lists[flavors]
	f.lists[flavors] = rows[:5]
	rows[0]["name"], rows[0]["ram"], rows[0]["os-flavor-access:is_public"] = "tiny", 9, false
	check("changed", "UPDATED 0 metadata.ram name visibility", "ABSENT 5")
	check("for the second time", "GONE 5")
	f.lists[flavors] = rows
	check("back", "RETURNED 5")
	f.lists[flavors] = rows[:3]
	check("many", "ABSENT 3", "ABSENT 4", "ABSENT 5")
	check("beyond the limits", "REFUSED 3", "REFUSED 4", "REFUSED 5")
	s.allow = true
	check("allowed", "GONE 3", "GONE 4", "GONE 5")
	f.lists[flavors] = rows[:0]
	check("nothing", "ABSENT 0", "ABSENT 1", "ABSENT 2")
	s.compares = false
	s.mustPass("shares")
	f.lists[shares] = f.lists[shares][:0]
	s.mustPass("shares")
	s.passes["shares"].DryRun = true
	if result, err := s.pass("shares"); err != nil || len(result.Changes) != 1000 || result.Unlisted != 1003 {
		t.Errorf("%d things of 2003 are listed, and %d are not: %v", len(result.Changes), result.Unlisted, err)
	}
}

// stored returns the resources of a kind by foreign id.
func (s *syncing) stored(name string) map[string]object {
	s.t.Helper()
	found := map[string]object{}
	for after := any(nil); ; {
		var answer struct {
			Resources struct {
				Nodes    []object
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		err := s.server.MakeRequest(s.t.Context(), &graphql.Request{Query: `query($after: String) { resources(first: 1000, after: $after) {
			nodes { name description projectId visibility metadata { key value userModifiable } capabilities(includePrivate: true) { name value } origin { kind foreignId goneAt } } pageInfo { hasNextPage endCursor } } }`,
			Variables: object{"after": after}}, &graphql.Response{Data: &answer})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, node := range answer.Resources.Nodes {
			if from, ok := node["origin"].(object); ok && from["kind"] == name {
				metadata := map[string]string{}
				for _, item := range node["metadata"].([]any) {
					metadata[item.(object)["key"].(string)] = item.(object)["value"].(string)
				}
				capabilities := map[string]string{}
				for _, one := range node["capabilities"].([]any) {
					capabilities[one.(object)["name"].(string)] = one.(object)["value"].(string)
				}
				if node["capabilities"] = capabilities; len(capabilities) == 0 {
					delete(node, "capabilities")
				}
				node["metadata"], node["gone"] = metadata, from["goneAt"] != nil
				found[from["foreignId"].(string)] = node
				delete(node, "origin")
			}
		}
		if after = answer.Resources.PageInfo.EndCursor; !answer.Resources.PageInfo.HasNextPage {
			return found
		}
	}
}

// TestAPassWritesEveryKind compares resources with the things of a cloud.
func TestAPassWritesEveryKind(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	f.busy = 2
	want := map[string]struct {
		seen int
		id   string
		node object
	}{
		"flavors": {7, "3", object{"name": "m1.3", "description": nil, "projectId": "operations",
			"visibility": "PRIVATE", "gone": false,
			"metadata": map[string]string{"vcpus": "4", "ram": "4096", "disk": "3", "ephemeral": "1",
				"hw:cpu_policy": "dedicated", "big": ""}}},
		"hypervisors": {1, "11111111-0000-4000-8000-000000000001",
			object{"name": "compute-1.example", "description": nil, "projectId": "operations",
				"visibility": "PUBLIC", "gone": false,
				"metadata": map[string]string{"hypervisor_type": "QEMU", "state": "up", "status": "enabled"},
				"capabilities": map[string]string{"cpu_info:arch": "x86_64",
					"cpu_info:features": `["aes","vmx"]`, "cpu_info:topology:cores": "8",
					"availability_zone": "north", "rack": `["1","2"]`}}},
		"servers": {7, "server-5", object{"name": "server-5", "description": "d", "projectId": "p5",
			"visibility": "PRIVATE", "gone": false,
			"metadata": map[string]string{"role": "web", "flavor:original_name": "m1.5"}}},
		"migrations": {6, "44444444-0000-4000-8000-000000000006",
			object{"name": "resize", "description": nil, "projectId": "p2", "visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"instance_uuid": "server-6", "migration_type": "resize",
					"status": "finished", "source_compute": "a"}}},
		"images": {8, "image-5",
			object{"name": "image", "description": nil, "projectId": "p1", "visibility": "PUBLIC", "gone": false,
				"metadata": map[string]string{"min_disk": "5", "os_distro": "debian"}}},
		"volumes": {7, "volume-6", object{"name": "volume-6", "description": nil, "projectId": "p2",
			"visibility": "PRIVATE", "gone": false, "metadata": map[string]string{"tier": "6"}}},
		"shares": {2003, "share-2002", object{"name": "share", "description": nil, "projectId": "p3",
			"visibility": "PRIVATE", "gone": false, "metadata": map[string]string{"n": "2002"}}},
		"projects": {4, "p2",
			object{"name": "project 2", "description": nil, "projectId": "p2", "visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"enabled": "false", "domain_id": "default", "parent_id": "default"}}},
		"aggregates": {4, "22222222-0000-4000-8000-000000000002",
			object{"name": "rack 2", "description": nil, "projectId": "operations",
				"visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"availability_zone": "north", "rack": "2", "hosts": `["a","b"]`}}},
		"volume_types": {4, "type-1", object{"name": "gold 1", "description": nil, "projectId": "operations",
			"visibility": "PRIVATE", "gone": false,
			"metadata": map[string]string{"volume_backend_name": "1"}}},
		"volume_snapshots": {4, "snapshot-3", object{"name": "snapshot-3", "description": "of a volume",
			"projectId": "p2", "visibility": "PRIVATE", "gone": false,
			"metadata": map[string]string{"at": "3"}}},
		"share_snapshots": {4, "copy-3", object{"name": "copy", "description": nil, "projectId": "p3",
			"visibility": "PRIVATE", "gone": false, "metadata": map[string]string{"at": "3"}}},
	}
	want["share_networks"] = struct {
		seen int
		id   string
		node object
	}{4, "network-3", object{"name": "network-3", "description": "of 3", "projectId": "p2", "visibility": "PRIVATE",
		"gone": false, "metadata": map[string]string{}}}
	for name, one := range want {
		result, err := s.pass(name)
		if err != nil || result.Seen != one.seen || result.Created != one.seen {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}
		stored := s.stored(name)
		if len(stored) != one.seen || !reflect.DeepEqual(stored[one.id], one.node) {
			t.Errorf("%s: %d resources, %v, want %v", name, len(stored), stored[one.id], one.node)
		}
		if result, err = s.pass(name); err != nil || result.Unchanged != one.seen ||
			result.Updated+result.Created != 0 {
			t.Errorf("%s once more: %+v, %v", name, result, err)
		}
	}
	f.objects = map[string]object{projects: {"projects": []object{}, "truncated": true}}
	if result, err := s.pass("projects"); err == nil ||
		!strings.Contains(err.Error(), "list_limit") || result.SyncCounts.Absent != 0 {
		t.Errorf("a list that is cut: %+v, %v", result, err)
	}
	for _, version := range []string{copies + " shared-file-system 2.73", aggregates + " compute 2.41",
		flavors + " compute 2.61", servers + " compute 2.69", shares + " shared-file-system 2.7"} {
		if !slices.Contains(f.asked, version) {
			t.Errorf("not asked: %s of %v", version, f.asked)
		}
	}
}

// TestAHostLosesCapabilities takes a host out of aggregates, and its traits away.
// A capability of an operator stays. A provider is read once for the passes over
// hosts and over providers.
func TestAHostLosesCapabilities(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	host := f.lists[hypervisors][0]["id"].(string)
	check := func(want map[string]string, changed ...string) {
		t.Helper()
		result, err := s.pass("hypervisors")
		if err != nil || len(result.Changes) > 0 && !slices.Equal(result.Changes[0].Changed, changed) {
			t.Errorf("%+v, %v, want changes of %q", result, err, changed)
		}
		if got := s.stored("hypervisors")[host]["capabilities"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	has := map[string]string{"cpu_info:arch": "x86_64", "cpu_info:features": `["aes","vmx"]`,
		"cpu_info:topology:cores": "8", "availability_zone": "north", "rack": `["1","2"]`}
	check(has)
	_, err := client.SetCapabilities(t.Context(), s.server,
		&client.SetCapabilitiesInput{Resource: host, Capabilities: []*client.KeyValueInput{{Key: "own", Value: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	f.provide(host, "compute", "", 8, "HW_CPU_X86_VMX", "CUSTOM_FAST")
	has["own"], has["traits"] = "1", `["CUSTOM_FAST","HW_CPU_X86_VMX"]`
	check(has, "capabilities.traits")
	f.asked = nil
	if result, err := s.pass("providers"); err != nil || result.Created != 1 || slices.ContainsFunc(f.asked,
		func(one string) bool { return strings.HasPrefix(one, "/placement/resource_providers/") }) {
		t.Errorf("providers: %+v, %v, asked %v", result, err, f.asked)
	}
	f.provide(host, "compute", "", 8)
	delete(has, "traits")
	check(has, "capabilities.traits")
	f.lists[aggregates][2]["hosts"] = []string{"a"}
	has["own"], has["rack"] = "1", "1"
	check(has, "capabilities.rack")
	f.lists[aggregates][1]["hosts"] = []string{}
	f.lists[hypervisors][0]["cpu_info"] = object{"arch": strings.Repeat("x", 5000)}
	check(map[string]string{"own": "1"}, "capabilities.availability_zone",
		"capabilities.cpu_info:arch", "capabilities.cpu_info:features",
		"capabilities.cpu_info:topology:cores", "capabilities.rack")
}

// TestFaultsDeleteNothing has a cloud that fails in the middle of a list.
func TestFaultsDeleteNothing(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	if _, err := s.pass("servers"); err != nil {
		t.Fatal(err)
	}
	pages := 0
	for name, fault := range map[string]func(w http.ResponseWriter){
		"pages in a circle": func(w http.ResponseWriter) {
			pages++
			_ = json.NewEncoder(w).Encode(object{"servers": []object{},
				"servers_links": []object{{"rel": "next", "href": fmt.Sprint("?marker=", pages%3)}}})
		},
		"an internal error": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"half a body":       func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"servers": [{"id": "x"`) },
		"another body":      func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"error": "later"}`) },
		"a lost marker":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) },
		"a cut": func(http.ResponseWriter) {
			panic(http.ErrAbortHandler)
		},
	} {
		f.fault = func(w http.ResponseWriter) bool { fault(w); return true }
		for range 3 {
			if result, err := s.pass("servers"); err == nil || result.Gone != 0 {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
		}
		if stored := s.stored("servers"); len(stored) != 7 {
			t.Errorf("%s: %d servers", name, len(stored))
		}
	}
}

// TestAListThatChangesIsReadAgain deletes things between two pages.
func TestAListThatChangesIsReadAgain(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	for name, path := range map[string]string{"servers": servers, "shares": shares} {
		before := len(f.lists[path])
		f.fault = func(http.ResponseWriter) bool {
			f.lists[path], f.fault = f.lists[path][3:], nil // the marker, too
			return false
		}
		if result, err := s.pass(name); err != nil || result.Seen != before-3 || len(s.stored(name)) != before-3 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	f.fault = func(http.ResponseWriter) bool {
		f.lists[shares] = f.lists[shares][1:]
		return false
	}
	if result, err := s.pass("shares"); err == nil || result.SyncCounts.Absent != 0 {
		t.Errorf("a list that never stays: %+v, %v", result, err)
	}
}

// TestPagesWithoutARowAndALinkAreNotTheLast has a Nova that leaves a row out of a full
// page, and therefore the link to the next page, too.
func TestPagesWithoutARowAndALinkAreNotTheLast(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.size = 110
	s := newSyncing(t, f)
	for name, path := range map[string]string{"hypervisors": hypervisors, "servers": servers} {
		f.lists[path] = nil
		for i := range 300 {
			f.lists[path] = append(f.lists[path], object{"id": fmt.Sprint(i), "hypervisor_hostname": "host",
				"tenant_id": "p1", "hidden": i == 5, "cpu_info": object{}})
		}
		if result, err := s.pass(name); err != nil || result.Seen != 299 {
			t.Errorf("%s: %+v, %v, want 299", name, result, err)
		}
	}
}

// TestReplicatedSharesAreReadOnce has shares and snapshots with two instances, in which
// Manila counts, and then a Manila that begins each page at the first share.
func TestReplicatedSharesAreReadOnce(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	for name, path := range map[string]string{"shares": shares, "share_snapshots": copies} {
		things := f.lists[path]
		f.lists[path] = nil
		for _, one := range things {
			f.lists[path] = append(f.lists[path], one, one)
		}
		if result, err := s.pass(name); err != nil || result.Seen != len(things) {
			t.Errorf("%s: %+v, %v, want %d", name, result, err, len(things))
		}
	}
	f.fault = func(w http.ResponseWriter) bool {
		_ = json.NewEncoder(w).Encode(object{"snapshots": f.lists[copies][:3]})
		return true
	}
	if result, err := s.pass("share_snapshots"); err == nil || result.SyncCounts.Absent != 0 {
		t.Errorf("pages that all begin at the first share: %+v, %v", result, err)
	}
}

// TestABusyServiceIsAskedAgain has services that are busy from their first request,
// which is for their versions, one that stays busy, and one that is busy for an hour.
func TestABusyServiceIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	for _, name := range []string{"images", "flavors"} {
		f.busy = 3
		if result, err := s.pass(name); err != nil || result.Created != result.Seen {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		f.busy = 5
		if _, err := s.pass(name); err == nil || !strings.Contains(err.Error(), "503") || f.busy != 0 {
			t.Errorf("%s: %v, %d", name, err, f.busy)
		}
	}
	f.busy, f.later = 3, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	if _, err := s.pass("flavors"); err == nil || f.busy != 2 {
		t.Errorf("until a date: %v, %d", err, f.busy)
	}
}

// TestAPassThatEndsEarlyShowsWhy ends passes while they read, and while they
// write. The next pass need not wait.
func TestAPassThatEndsEarlyShowsWhy(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	own := s.server
	for name, want := range map[string]string{"reading": "context canceled", "writing": "no space"} {
		ctx, cancel := context.WithCancel(t.Context())
		s.ctx, f.fault, s.server = ctx, nil, own
		if name == "reading" {
			f.fault = func(http.ResponseWriter) bool { cancel(); return false }
		} else {
			s.server = failing{own, "SyncResources"}
		}
		_, err := s.pass("servers")
		s.ctx, f.fault, s.server = t.Context(), nil, own
		cancel()
		if sync.Each(ctx) == nil {
			t.Error("a call for each of some elements succeeds though the context has ended")
		}
		syncs, syncsErr := client.ListSyncs(t.Context(), own)
		if syncsErr != nil {
			t.Fatal(syncsErr)
		}
		state := syncs.Syncs[0]
		if err == nil || state.Running || state.Failure == nil || !strings.Contains(*state.Failure, want) {
			t.Errorf("%s: %v, %+v", name, err, state)
		}
		if result, err := s.pass("servers"); err != nil || result.Seen != 7 {
			t.Errorf("the pass after %s: %+v, %v", name, result, err)
		}
	}
}

// failing fails to make requests of an operation, except pages without things.
type failing struct {
	graphql.Client
	operation string
}

func (f failing) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	text, err := json.Marshal(request.Variables)
	if request.OpName == f.operation && !strings.Contains(string(text), `"resources":[]`) {
		return errors.Join(err, errors.New("no space"))
	}
	return f.Client.MakeRequest(ctx, request, response)
}

// TestPagesFitIntoRequests syncs images with as much metadata as Glance permits,
// providers with many traits, and definitions that are longer in a request.
func TestPagesFitIntoRequests(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	for i := range f.lists[images] {
		for key := range 128 {
			f.lists[images][i][fmt.Sprint("key ", key)] = strings.Repeat("ä", 1000)
		}
	}
	for i := range f.lists[shares] {
		metadata := object{}
		for key := range 25 {
			metadata[fmt.Sprint("key ", key)] = strings.Repeat("x", key+1)
		}
		f.lists[shares][i]["metadata"] = metadata
	}
	traits := []string{}
	for i := range 300 {
		traits = append(traits, fmt.Sprintf("CUSTOM_%030d", i))
	}
	for i := range 100 {
		f.provide(hostOf(i), fmt.Sprint("node-", i), "", 4, traits...)
		f.define(fmt.Sprint("N", i), object{"p": object{"title": strings.Repeat("<", 60_000), "type": "string"}})
	}
	for _, name := range []string{"images", "shares", "providers", "definitions"} {
		if result, err := s.pass(name); err != nil || result.Created != result.Seen {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	for i := range 100 {
		f.provide(hostOf(i), fmt.Sprint("node-", i), "", 4, traits[1:]...)
	}
	if result, err := s.pass("providers"); err != nil || result.Updated != 100 {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestAThingTooLargeStopsNoOther syncs images with more metadata than a request or
// a resource can have.
func TestAThingTooLargeStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	rows := f.lists[images]
	for key := range 1000 {
		rows[0][fmt.Sprint("key ", key)] = "x"
	}
	for key := range 4 {
		rows[1][fmt.Sprint("key ", key)] = strings.Repeat("<", 43000) // six bytes each in JSON
	}
	rows[2]["key\x00"] = "x"
	for _, row := range rows[2:] {
		row["short"] = strings.Repeat("\x01", 40000)
	}
	result, err := s.pass("images")
	want := []sync.LeftOut{{ID: "image-0", Key: "min_disk"}, {ID: "image-0", Key: "os_distro"},
		{ID: "image-1", Key: "key 3"}, {ID: "image-2", Key: "key\x00"}}
	if err != nil || result.Created != result.Seen || !slices.Equal(result.LeftOut, want) {
		t.Errorf("%+v, %v, want %v", result, err, want)
	}
}

// TestACellThatIsDownDeletesNothing has a cell that is down, and then servers that
// are deleted.
func TestACellThatIsDownDeletesNothing(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	if _, err := s.pass("servers"); err != nil {
		t.Fatal(err)
	}
	all, up := f.lists[servers], f.lists[services]
	for name, cell := range map[string]func(){
		"a server tells": func() {
			f.lists[servers] = []object{{"id": "server-6", "status": "UNKNOWN"}, all[0], all[1]}
		},
		// Nova has no rows of a cell that is down if others fill the first page.
		"a compute tells": func() {
			f.lists[servers], f.lists[services] = all[:4],
				[]object{up[0], {"binary": "nova-compute", "host": "compute-2", "status": "UNKNOWN"}}
		},
	} {
		cell()
		for range 3 {
			if result, err := s.pass("servers"); err != nil || result.SyncCounts.Absent != 0 ||
				result.Gone != 0 || result.Unknown != 1 {
				t.Errorf("a cell is down, %s: %+v, %v", name, result, err)
			}
		}
		f.lists[services] = up
	}
	f.lists[servers] = all
	f.lists[servers] = f.lists[servers][:5]
	var last sync.Result
	for range 2 {
		var err error
		if last, err = s.pass("servers"); err != nil {
			t.Fatal(err)
		}
	}
	if stored := s.stored("servers"); last.Refused != 2 || stored["server-6"]["gone"] != false {
		t.Errorf("beyond the limits: %+v", last)
	}
	s.allow = true
	if last, _ = s.pass("servers"); last.Gone != 2 || s.stored("servers")["server-6"]["gone"] != true {
		t.Errorf("allowed: %+v", last)
	}
}

// TestUnusualValuesAreKept syncs values that are empty, long, null and no strings.
// They are reported as drift, and a person can still write metadata.
func TestUnusualValuesAreKept(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	const id = "33333333-0000-4000-8000-000000000001"
	long, most := strings.Repeat("ä", 1024), strings.Repeat("x", 65536)
	f.lists[images] = []object{{"id": id, "name": "image", "owner": "p1", "visibility": "public", "empty": "",
		"long": long, "none": nil, "list": []int{1, 2}, "most": most[1:], "more": most}}
	for round := range 2 {
		result, err := s.pass("images")
		want := map[string]string{"empty": "", "long": long, "list": "[1,2]", "most": most[1:]}
		if err != nil || !slices.Equal(result.LeftOut, []sync.LeftOut{{ID: id, Key: "more"}}) ||
			!reflect.DeepEqual(s.stored("images")[id]["metadata"], want) {
			t.Errorf("%d: %+v, %v, %v", round, result, err, s.stored("images")[id])
		}
	}
	note := &client.SetMetadataInput{Resource: id, Items: []*client.KeyValueInput{{Key: "note", Value: "mine"}}}
	if _, err := client.SetMetadata(t.Context(), s.server, note); err != nil {
		t.Errorf("a person's metadata: %v", err)
	}
	var answer struct {
		MetadataProblems struct {
			Nodes []struct {
				Problems []struct{ Key, Rule, Message string }
			}
		}
	}
	err := s.server.MakeRequest(t.Context(),
		&graphql.Request{Query: `{ metadataProblems(filter: {resources: {types: ["OS::Glance::Image"]}}) { nodes { problems { key rule message } } } }`},
		&graphql.Response{Data: &answer})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(answer.MetadataProblems.Nodes)
	want := "{[{empty VALUE must not be empty} {long VALUE must have at most 1023 characters, has 1024} {most VALUE must have at most 1023 characters, has 65535}]}"
	if !strings.Contains(got, want) {
		t.Errorf("drift: %s, want %s", got, want)
	}
}

// TestThingsOfShares syncs the access rules and the export locations of shares, and
// the subnets of their networks. One share is deleted meanwhile. Manila is upgraded,
// and then all things are deleted.
func TestThingsOfShares(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	f.lists[shares] = f.lists[shares][:3]
	f.lists[networks] = f.lists[networks][:2]
	const rules, paths, subnets = "/share/v2/share-access-rules ", "/share/v2/shares/%s/export_locations",
		"/share/v2/share-networks/%s/subnets"
	f.objects = map[string]object{
		rules + "share-0000": {"access_list": []object{
			{"id": "rule-1", "access_to": "10.0.0.0/24", "access_type": "ip", "access_level": "rw", "state": "active",
				"access_key": "secret", "metadata": object{"why": "backup"}},
			{"id": "rule-2", "access_to": "ada", "access_type": "user", "access_level": "ro",
				"state": "queued_to_apply", "access_key": nil, "metadata": object{}}}},
		rules + "share-0001": {"access_list": []object{}},
		fmt.Sprintf(paths,
			"share-0000"): {"export_locations": []object{{"id": "path-1", "path": "10.0.0.1:/one",
			"preferred": true, "is_admin_only": true}}},
		fmt.Sprintf(paths,
			"share-0002"): {"export_locations": []object{{"id": "path-2", "path": "10.0.0.1:/two",
			"preferred": false, "is_admin_only": false}}},
		fmt.Sprintf(subnets, "network-0"): {"share_network_subnets": []object{
			{"id": "subnet-1", "share_network_id": "network-0", "share_network_name": nil, "availability_zone": "north",
				"neutron_net_id": "net-1", "neutron_subnet_id": "sub-1",
				"network_type": "vlan", "segmentation_id": 70, "cidr": "10.0.0.0/24", "ip_version": 4,
				"gateway": "10.0.0.1", "mtu": 1500, "created_at": "2026-01-31T12:00:00.000000", "updated_at": nil},
			{"id": "subnet-2", "share_network_id": "network-0", "share_network_name": nil, "availability_zone": nil,
				"neutron_net_id": nil, "neutron_subnet_id": nil,
				"network_type": nil, "segmentation_id": nil, "cidr": nil, "ip_version": nil, "gateway": nil, "mtu": nil,
				"created_at": "2026-01-31T12:00:00.000000", "updated_at": nil}}},
		fmt.Sprintf(subnets, "network-1"): {"share_network_subnets": []object{}},
	}
	want := map[string]map[string]object{
		"share_access_rules": {
			"rule-1": {"name": "10.0.0.0/24", "description": nil, "projectId": "p3",
				"visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"access_type": "ip", "access_level": "rw", "state": "active",
					"share": "share-0000", "why": "backup"}},
			"rule-2": {"name": "ada", "description": nil, "projectId": "p3", "visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"access_type": "user", "access_level": "ro",
					"state": "queued_to_apply", "share": "share-0000"}}},
		"share_network_subnets": {
			"subnet-1": {"name": "10.0.0.0/24", "description": nil, "projectId": "p2",
				"visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"share_network": "network-0", "availability_zone": "north",
					"neutron_net_id": "net-1", "neutron_subnet_id": "sub-1",
					"network_type": "vlan", "segmentation_id": "70", "cidr": "10.0.0.0/24", "ip_version": "4",
					"gateway": "10.0.0.1", "mtu": "1500"}},
			"subnet-2": {"name": "subnet-2", "description": nil, "projectId": "p2",
				"visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"share_network": "network-0"}}},
		"share_export_locations": {
			"path-1": {"name": "10.0.0.1:/one", "description": nil, "projectId": "operations",
				"visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"path": "10.0.0.1:/one", "preferred": "true",
					"is_admin_only": "true", "share": "share-0000"}},
			"path-2": {"name": "10.0.0.1:/two", "description": nil, "projectId": "p3",
				"visibility": "PRIVATE", "gone": false,
				"metadata": map[string]string{"path": "10.0.0.1:/two", "preferred": "false",
					"is_admin_only": "false", "share": "share-0002"}}},
	}
	for name, things := range want {
		if result, err := s.pass(name); err != nil || result.Created != 2 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if stored := s.stored(name); !reflect.DeepEqual(stored, things) {
			t.Errorf("%s: %v, want %v", name, stored, things)
		}
	}
	f.manila = 87
	f.lists[replicas] = []object{{"id": "active", "share_id": "share-0002"}, {"id": "other", "share_id": "share-0002"}}
	for path, answer := range map[string]object{
		fmt.Sprintf(subnets, "network-0") + " 2.78": {"share_network_subnets": []object{
			{"id": "subnet-1", "cidr": "10.0.0.0/24", "metadata": object{"team": "red", "cidr": "wide", "share_network": ""}},
			{"id": "subnet-2", "cidr": nil, "metadata": object{}}}},
		fmt.Sprintf(paths, "share-0000") + " 2.87": {"export_locations": []object{{"id": "path-1", "path": "10.0.0.1:/one",
			"preferred": true, "is_admin_only": true, "metadata": object{"fast": "yes", "path": "/mnt"}}}},
		fmt.Sprintf(paths, "share-0002") + " 2.87":         {"export_locations": []object{}},
		"/share/v2/share-replicas/active/export-locations": {"export_locations": []object{}},
		"/share/v2/share-replicas/other/export-locations": {"export_locations": []object{{"id": "path-2",
			"path": "10.0.0.1:/two", "preferred": false, "is_admin_only": false, "metadata": object{"fast": "no"},
			"replica_state": "in_sync", "availability_zone": "north"}}},
	} {
		f.objects[path] = answer
	}
	want["share_network_subnets"]["subnet-1"]["metadata"].(map[string]string)["team"] = "red"
	want["share_export_locations"]["path-1"]["metadata"].(map[string]string)["fast"] = "yes"
	want["share_export_locations"]["path-2"]["metadata"].(map[string]string)["fast"] = "no"
	for name, things := range want {
		if result, err := s.pass(name); err != nil || result.Updated+result.Unchanged != 2 {
			t.Errorf("%s of a newer Manila: %+v, %v", name, result, err)
		}
		if stored := s.stored(name); !reflect.DeepEqual(stored, things) {
			t.Errorf("%s of a newer Manila: %v, want %v", name, stored, things)
		}
	}
	f.objects = nil
	for name := range want {
		if result, err := s.pass(name); err == nil || result.SyncCounts.Absent != 0 {
			t.Errorf("%s without any list: %+v, %v", name, result, err)
		}
	}
}

// TestAPlanHasRegions plans passes over two regions. One has images only. The services
// need not answer.
func TestAPlanHasRegions(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	f.isStrange = true
	for name, of := range map[string]struct {
		plan   sync.Plan
		passes string
		others int
		err    string
	}{
		"the region of the cloud": {sync.Plan{Project: "p", Kinds: []string{"images", "volumes"}},
			"one images, one volumes", 0, ""},
		"all kinds": {sync.Plan{Project: "p"},
			"one projects, one flavors, one hypervisors, one providers, one aggregates, one servers, one migrations, one allocations, one images, one definitions, " +
				"one volume_types, one volumes, one volume_snapshots, one shares, one share_snapshots, one share_networks, one share_network_subnets, one share_access_rules, one share_export_locations", 0, ""},
		"a region": {sync.Plan{Project: "p", Regions: []string{"two"}},
			"two images, two definitions", 17, ""},
		"a kind that a region lacks": {sync.Plan{Project: "p", Regions: []string{"two"}, Kinds: []string{"volumes"}},
			"two volumes", 0, ""},
		"every region": {sync.Plan{Project: "p", Regions: []string{"*"},
			Kinds: []string{"images", "volumes"}}, "one images, one volumes, two images", 1, ""},
		"no project": {sync.Plan{}, "", 0, "the account has no project"},
	} {
		passes, without, err := of.plan.Passes(s.cloud, s.server)
		var names []string
		for _, pass := range passes {
			names = append(names, pass.Cloud.At.Region+" "+pass.Kind.Name)
		}
		if !shareClouds(passes) || strings.Join(names, ", ") != of.passes || len(without) != of.others ||
			(err == nil) != (of.err == "") ||
			err != nil && !strings.Contains(err.Error(), of.err) {
			t.Errorf("%s: %q, %d others, %v", name, names, len(without), err)
		}
	}
	_, _, err := sync.Plan{Project: "p"}.Passes(&sync.Cloud{Provider: s.cloud.Provider}, s.server)
	if err == nil || !strings.Contains(err.Error(), "no default region") {
		t.Errorf("no region: %v", err)
	}
	passes, _, err := sync.Plan{Origin: "cloud", Project: "p", Regions: []string{"*"}, Kinds: []string{"images"},
		Progress: func(*sync.Pass, int) {}}.Passes(s.cloud, s.server)
	if err != nil {
		t.Fatal(err)
	}
	f.isStrange = false
	for _, pass := range passes {
		if result, err := pass.Run(t.Context()); err != nil || result.Created != 8 {
			t.Errorf("region %s: %+v, %v", pass.Cloud.At.Region, result, err)
		}
	}
}

// shareClouds reports whether the passes of each region have one cloud: then they
// share the providers that they read.
func shareClouds(passes []*sync.Pass) bool {
	clouds := map[string]*sync.Cloud{}
	for _, pass := range passes {
		if other := clouds[pass.Cloud.At.Region]; other != nil && other != pass.Cloud {
			return false
		}
		clouds[pass.Cloud.At.Region] = pass.Cloud
	}
	return true
}

// TestTheGuideHasEveryKind compares the table of the guide with the kinds.
func TestTheGuideHasEveryKind(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/sync.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	kinds, _ := sync.Kinds(nil)
	for _, kind := range kinds {
		want = append(want, fmt.Sprintf("%s %s %g", kind.Name, kind.ResourceType, kind.Interval.Minutes()))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| [^|]* \\| `([^`]*)` \\|[^|]*\\| (\\d+) min \\|").
		FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1]+" "+row[2]+" "+row[3])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the guide has %q, want %q", got, want)
	}
}
