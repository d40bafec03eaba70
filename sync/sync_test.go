package sync_test

import (
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
	"testing"

	"github.com/Khan/genqlient/graphql"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/sync"
)

// object is a JSON object.
type object = map[string]any

// fake answers as the services of OpenStack do in their API references: Keystone,
// Nova, Glance, Cinder and Manila.
type fake struct {
	url   string
	lists map[string][]object // by path
	// objects are answers that are no lists, by path.
	objects map[string]object
	// fault happens to the second page of every list. Without an answer, the page
	// follows.
	fault func(w http.ResponseWriter) (answered bool)
	busy  int // how many more requests get 503
	asked []string
}

// start serves the fake and signs in.
func (f *fake) start(t *testing.T) *sync.Cloud {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	f.url = server.URL
	mux.HandleFunc("GET /v3/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": %q}]}}`, f.url+"/v3/")
	})
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) {
		var catalog []object
		for kind, path := range map[string]string{"compute": "/compute/v2.1", "image": "/image", "block-storage": "/volume/v3", "shared-file-system": "/share/v2",
			"placement": "/placement"} {
			catalog = append(catalog, object{"type": kind, "name": kind, "endpoints": []object{{"interface": "public", "region": "one", "region_id": "one", "url": f.url + path}}})
		}
		w.Header().Set("X-Subject-Token", "token")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(object{"token": object{"expires_at": "2036-01-31T12:00:00.000000Z", "catalog": catalog}})
	})
	mux.HandleFunc("GET /image/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusMultipleChoices)
		_, _ = fmt.Fprintf(w, `{"versions": [{"id": "v2.16", "status": "CURRENT", "links": [{"rel": "self", "href": %q}]}]}`, f.url+"/image/v2/")
	})
	mux.HandleFunc("GET /placement/{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"versions": [{"id": "v1.0", "status": "CURRENT", "min_version": "1.0", "max_version": "1.39", "links": [{"rel": "self", "href": ""}]}]}`)
	})
	mux.HandleFunc("GET /", f.list)
	provider, err := config.NewProviderClient(t.Context(), gophercloud.AuthOptions{IdentityEndpoint: f.url + "/v3", Username: "ada", Password: "secret", DomainName: "Default"})
	if err != nil {
		t.Fatal(err)
	}
	return &sync.Cloud{Provider: provider, At: gophercloud.EndpointOpts{Region: "one"}}
}

// list answers an object, a page of three rows, or one of 900 shares.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.URL.Path+" "+r.Header.Get("OpenStack-API-Version"))
	if f.busy > 0 {
		f.busy--
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	path, query := r.URL.Path, r.URL.Query()
	if query.Get("os_hidden") == "true" {
		path += " hidden"
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
	rows := f.lists[path]
	if path == images && query.Get("visibility") != "all" { // Glance shows community images of other projects only then
		rows = slices.DeleteFunc(slices.Clone(rows), func(row object) bool { return row["visibility"] == "community" })
	}
	page, more, known := pageOf(rows, path, query)
	if !known {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	name := strings.Split(strings.TrimSuffix(r.URL.Path, "/detail"), "/")
	field := strings.TrimPrefix(name[len(name)-1], "os-")
	answer := object{field: page}
	if more && path != shares {
		query.Set("marker", fmt.Sprint(page[len(page)-1]["id"]))
		if field == "images" {
			answer["next"] = "/v2/images?" + query.Encode()
		} else {
			answer[field+"_links"] = []object{{"rel": "next", "href": "http://inside" + r.URL.Path + "?" + query.Encode()}}
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// pageOf returns the rows of a page, and whether more follow. Known is false
// after a marker that does not exist.
func pageOf(rows []object, path string, query url.Values) (page []object, more, known bool) {
	begin, size := 0, 3
	if path == shares {
		begin, _ = strconv.Atoi(query.Get("offset"))
		size = 900
	} else if query.Has("marker") {
		begin = 1 + slices.IndexFunc(rows, func(row object) bool { return row["id"] == query.Get("marker") })
		if begin == 0 {
			return nil, false, false
		}
	}
	rows = rows[min(begin, len(rows)):]
	return rows[:min(size, len(rows))], len(rows) > size, true
}

const (
	flavors     = "/compute/v2.1/flavors/detail"
	hypervisors = "/compute/v2.1/os-hypervisors/detail"
	servers     = "/compute/v2.1/servers/detail"
	services    = "/compute/v2.1/os-services"
	images      = "/image/v2/images"
	volumes     = "/volume/v3/volumes/detail"
	shares      = "/share/v2/shares/detail"
)

// newFake returns a cloud with things of every kind.
func newFake() *fake {
	f := &fake{lists: map[string][]object{images + " hidden": {{"id": "hidden-1", "name": "old", "owner": "p1", "visibility": "public", "os_distro": "debian"}}}}
	for i := range 7 {
		id := fmt.Sprint(i)
		f.lists[flavors] = append(f.lists[flavors], object{"id": id, "name": "m1." + id, "ram": 512 << i, "disk": i, "vcpus": 1 + i, "swap": "", "OS-FLV-EXT-DATA:ephemeral": i % 2,
			"os-flavor-access:is_public": i != 3, "description": nil, "extra_specs": object{"hw:cpu_policy": "dedicated", "big": strings.Repeat("x", 2000*(i/6))}})
		f.lists[servers] = append(f.lists[servers], object{"id": "server-" + id, "name": "", "tenant_id": "p" + id, "status": "ACTIVE", "metadata": object{"role": "web"}, "description": "d"})
		f.lists[images] = append(f.lists[images], object{"id": "image-" + id, "name": "image", "owner": "p1", "visibility": []string{"private", "community"}[i%2], "status": "active",
			"size": 12345678901234567, "min_disk": i, "os_distro": "debian", "checksum": nil})
		f.lists[volumes] = append(f.lists[volumes], object{"id": "volume-" + id, "name": nil, "os-vol-tenant-attr:tenant_id": "p2", "metadata": object{"tier": id}})
	}
	f.lists[services] = []object{{"binary": "nova-compute", "host": "compute-1", "status": "enabled"}}
	f.lists[hypervisors] = []object{{"id": "11111111-0000-4000-8000-000000000001", "hypervisor_hostname": "compute-1.example", "hypervisor_type": "QEMU", "state": "up", "status": "enabled"}}
	for i := range 2003 {
		f.lists[shares] = append(f.lists[shares], object{"id": fmt.Sprintf("share-%04d", i), "name": "share", "project_id": "p3", "is_public": i == 0, "metadata": object{"n": fmt.Sprint(i)}})
	}
	return f
}

// syncing is a server and a cloud that it follows.
type syncing struct {
	t      *testing.T
	cloud  *sync.Cloud
	server graphql.Client
	allow  bool
	ctx    context.Context
}

func newSyncing(t *testing.T, f *fake) *syncing {
	t.Helper()
	return &syncing{t: t, cloud: f.start(t), server: client.New(demotest.Serve(t), client.WithToken(demo.AdminToken)), ctx: t.Context()}
}

// pass makes a pass over a kind.
func (s *syncing) pass(name string) (sync.Result, error) {
	s.t.Helper()
	kinds, _ := sync.Kinds([]string{name})
	pass := &sync.Pass{Cloud: s.cloud, Server: s.server, Origin: "cloud", Kind: kinds[0], Project: "operations", AllowGone: s.allow, Progress: func(int) {}}
	return pass.Run(s.ctx)
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
			nodes { name description projectId visibility metadata { key value userModifiable } origin { kind foreignId goneAt } } pageInfo { hasNextPage endCursor } } }`,
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
	f.busy = 2
	want := map[string]struct {
		seen int
		id   string
		node object
	}{
		"flavors": {7, "3", object{"name": "m1.3", "description": nil, "projectId": "operations", "visibility": "PRIVATE", "gone": false,
			"metadata": map[string]string{"vcpus": "4", "ram": "4096", "disk": "3", "ephemeral": "1", "hw:cpu_policy": "dedicated"}}},
		"hypervisors": {1, "11111111-0000-4000-8000-000000000001", object{"name": "compute-1.example", "description": nil, "projectId": "operations", "visibility": "PUBLIC", "gone": false,
			"metadata": map[string]string{"hypervisor_type": "QEMU", "state": "up", "status": "enabled"}}},
		"servers": {7, "server-5", object{"name": "server-5", "description": "d", "projectId": "p5", "visibility": "PRIVATE", "gone": false, "metadata": map[string]string{"role": "web"}}},
		"images": {8, "image-5", object{"name": "image", "description": nil, "projectId": "p1", "visibility": "PUBLIC", "gone": false,
			"metadata": map[string]string{"min_disk": "5", "os_distro": "debian"}}},
		"volumes": {7, "volume-6", object{"name": "volume-6", "description": nil, "projectId": "p2", "visibility": "PRIVATE", "gone": false, "metadata": map[string]string{"tier": "6"}}},
		"shares":  {2003, "share-2002", object{"name": "share", "description": nil, "projectId": "p3", "visibility": "PRIVATE", "gone": false, "metadata": map[string]string{"n": "2002"}}},
	}
	for name, one := range want {
		result, err := s.pass(name)
		if err != nil || result.Seen != one.seen || result.Created != one.seen {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}
		stored := s.stored(name)
		if len(stored) != one.seen || !reflect.DeepEqual(stored[one.id], one.node) {
			t.Errorf("%s: %d resources, %v, want %v", name, len(stored), stored[one.id], one.node)
		}
		if result, err = s.pass(name); err != nil || result.Unchanged != one.seen || result.Updated+result.Created != 0 {
			t.Errorf("%s once more: %+v, %v", name, result, err)
		}
	}
	for _, version := range []string{flavors + " compute 2.61", servers + " compute 2.69", shares + " shared-file-system 2.7"} {
		if !slices.Contains(f.asked, version) {
			t.Errorf("not asked: %s of %v", version, f.asked)
		}
	}
}

// TestFaultsDeleteNothing has a cloud that fails in the middle of a list.
func TestFaultsDeleteNothing(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	if _, err := s.pass("servers"); err != nil {
		t.Fatal(err)
	}
	for name, fault := range map[string]func(w http.ResponseWriter){
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
			s.server = failing{own}
		}
		_, err := s.pass("servers")
		s.ctx, f.fault, s.server = t.Context(), nil, own
		cancel()
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

// failing fails to write a page.
type failing struct{ graphql.Client }

func (f failing) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	if request.OpName == "SyncResources" {
		return errors.New("no space")
	}
	return f.Client.MakeRequest(ctx, request, response)
}

// TestPagesFitIntoRequests syncs images with as much metadata as Glance permits.
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
	for _, name := range []string{"images", "shares"} {
		if result, err := s.pass(name); err != nil || result.Created != result.Seen {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
}

// TestACellThatIsDownDeletesNothing has a cell that is down, and then servers that
// are deleted.
func TestACellThatIsDownDeletesNothing(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	if _, err := s.pass("servers"); err != nil {
		t.Fatal(err)
	}
	all, up := f.lists[servers], f.lists[services]
	for name, cell := range map[string]func(){
		"a server tells": func() { f.lists[servers] = []object{{"id": "server-6", "status": "UNKNOWN"}, all[0], all[1]} },
		// Nova has no rows of a cell that is down if others fill the first page.
		"a compute tells": func() {
			f.lists[servers], f.lists[services] = all[:4], []object{up[0], {"binary": "nova-compute", "host": "compute-2", "status": "UNKNOWN"}}
		},
	} {
		cell()
		for range 3 {
			if result, err := s.pass("servers"); err != nil || result.SyncCounts.Absent != 0 || result.Gone != 0 || result.Unknown != 1 {
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
		want = append(want, kind.Name+" "+kind.ResourceType)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| [^|]* \\| `([^`]*)` \\|").FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1]+" "+row[2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the guide has %q, want %q", got, want)
	}
}
