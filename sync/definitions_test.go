package sync_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/sync"
)

const spaces = "/image/v2/metadefs/namespaces"

// define gives the fake a namespace with properties and tags.
func (f *fake) define(name string, properties object, tags ...string) object {
	if f.objects == nil {
		f.objects = map[string]object{}
	}
	f.undefine(name)
	f.lists[spaces] = append(f.lists[spaces],
		object{"id": name, "namespace": name, "owner": "p1", "visibility": "public"})
	named := []object{}
	for _, tag := range tags {
		named = append(named, object{"name": tag})
	}
	one := object{"namespace": name, "owner": "p1", "visibility": "public", "protected": true,
		"created_at": "2026-01-31T12:00:00Z", "self": "/v2/x",
		"resource_type_associations": []object{{"name": "OS::Glance::Image", "created_at": "2026-01-31T12:00:00Z"}},
		"properties":                 properties, "tags": named}
	f.objects[spaces+"/"+name] = one
	return one
}

// undefine takes a namespace from the fake.
func (f *fake) undefine(name string) {
	f.lists[spaces] = slices.DeleteFunc(f.lists[spaces], func(row object) bool { return row["namespace"] == name })
	delete(f.objects, spaces+"/"+name)
}

// namespaces returns the namespaces of the server whose names begin with N, as
// files.
func (s *syncing) namespaces() map[string]object {
	s.t.Helper()
	found := map[string]object{}
	for one, err := range client.Namespaces(s.t.Context(), s.server, nil, nil, nil) {
		if err != nil {
			s.t.Fatal(err)
		}
		if !strings.HasPrefix(one.Name, "N") {
			continue
		}
		answer, err := client.ExportNamespaces(s.t.Context(), s.server, []string{one.Name}, nil, true)
		if err != nil {
			s.t.Fatal(err)
		}
		var file object
		if err := json.Unmarshal([]byte(answer.ExportNamespaces[0]), &file); err != nil {
			s.t.Fatal(err)
		}
		found[one.Name] = file
	}
	return found
}

// person changes definitions in the server, as people do.
func (s *syncing) person(mutation string) {
	s.t.Helper()
	var answer object
	err := s.server.MakeRequest(s.t.Context(), &graphql.Request{Query: "mutation { " + mutation + " { __typename } }"},
		&graphql.Response{Data: &answer})
	if err != nil {
		s.t.Fatalf("%s: %v", mutation, err)
	}
}

// definitions is the model: the cloud and what people added, by namespace.
type definitions struct {
	*rand.Rand
	cloud map[string]map[string]object // properties
	tags  map[string][]string
	added map[string]map[string]bool // properties of people
	notes map[string]string          // the descriptions that people gave properties of the cloud, by both names
	// edited are the properties of the cloud that people changed since the last pass.
	edited map[string]bool
	count  int
}

// change changes the cloud.
func (d *definitions) change(f *fake) {
	name := fmt.Sprint("N", d.IntN(4))
	if d.cloud[name] == nil {
		d.cloud[name] = map[string]object{}
	}
	one := fmt.Sprint("p", d.IntN(5))
	if at := name + " " + one; d.IntN(3) == 0 {
		if d.cloud[name][one] != nil {
			d.added[name][one] = d.edited[at] || d.notes[at] != "" // a definition that a person changed stays
		}
		delete(d.cloud[name], one)
		maps.DeleteFunc(d.added[name], func(_ string, stays bool) bool { return !stays })
	} else {
		d.count++
		d.cloud[name][one] = object{"title": fmt.Sprint("T", d.count), "type": "integer", "default": d.count}
	}
	d.tags[name] = []string{"one", "two", "three"}[:d.IntN(4)]
	all := object{}
	for key, value := range d.cloud[name] {
		all[key] = value
	}
	f.define(name, all, d.tags[name]...)
}

// edit lets a person change a namespace of the server.
func (d *definitions) edit(s *syncing) {
	there := s.namespaces()
	names := slices.Sorted(maps.Keys(there))
	name := names[d.IntN(len(names))]
	properties, _ := there[name]["properties"].(object)
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(properties)), func(one string) bool {
		return d.cloud[name][one] == nil
	})
	if len(own) == 0 || d.IntN(3) == 0 {
		d.count++
		property := fmt.Sprint("own", d.count)
		s.person(fmt.Sprintf(`createProperty(input: {namespace: %q, name: %q, title: "Mine", type: STRING})`, name,
			property))
		d.added[name][property] = true
		return
	}
	property := own[d.IntN(len(own))]
	at := name + " " + property
	d.edited[at] = true
	switch d.IntN(3) {
	case 0:
		s.person(fmt.Sprintf(`updateProperty(input: {namespace: %q, name: %q, title: "Wrong", default: 7})`, name,
			property))
	case 1:
		s.person(fmt.Sprintf(`updateProperty(input: {namespace: %q, name: %q, description: "mine"})`, name, property))
		d.notes[at] = "mine"
	default:
		s.person(fmt.Sprintf(`updateNamespace(input: {name: %q, protected: false})`, name))
		s.person(fmt.Sprintf(`deleteProperty(input: {namespace: %q, name: %q})`, name, property))
		delete(d.notes, at)
		delete(d.edited, at)
		delete(d.added[name], property)
	}
}

// check compares the server with the model.
func (d *definitions) check(s *syncing, when string) {
	s.t.Helper()
	there := s.namespaces()
	for name, want := range d.cloud {
		properties, _ := there[name]["properties"].(object)
		all := map[string]bool{}
		maps.Copy(all, d.added[name])
		for property, of := range want {
			all[property] = true
			got, _ := properties[property].(object)
			has := object{"title": of["title"], "type": "integer", "default": float64(of["default"].(int))}
			if note := d.notes[name+" "+property]; note != "" {
				has["description"] = note
			}
			if !reflect.DeepEqual(got, has) {
				s.t.Fatalf("%s: %s of %s is %v, want %v", when, property, name, got, has)
			}
		}
		if got, want := slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
			s.t.Fatalf("%s: %s has %q, want %q", when, name, got, want)
		}
		if tags, _ := there[name]["tags"].([]any); len(tags) != len(d.tags[name]) || there[name]["protected"] != true {
			s.t.Fatalf("%s: %s has the tags %v, want %v", when, name, tags, d.tags[name])
		}
	}
}

// TestDefinitionsOfPeopleStay changes the cloud and the server at random, on both
// databases. After a pass each definition of the cloud is as it is there, and all
// others are as people left them. A pass after it writes nothing.
func TestDefinitionsOfPeopleStay(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		f := newFake()
		address := demotest.ServeStore(t, demotest.Open(t, url))
		s := &syncing{t: t, cloud: f.start(t), server: client.New(address, client.WithToken(demo.AdminToken)),
			ctx: t.Context()}
		d := &definitions{rand.New(rand.NewPCG(soak.Seed(t), 5)), map[string]map[string]object{}, map[string][]string{},
			map[string]map[string]bool{"N0": {}, "N1": {}, "N2": {}, "N3": {}},
			map[string]string{}, map[string]bool{}, 0}
		for round := range soak.Count(t, "CADASTRE_SOAK_DEFINITIONS", 12) {
			for range 1 + d.IntN(4) {
				d.change(f)
			}
			d.pass(s, fmt.Sprint("pass ", round), round%3 == 0)
			for range d.IntN(5) {
				d.edit(s)
			}
		}
	})
}

// pass makes a pass and another one, which has nothing to write.
func (d *definitions) pass(s *syncing, when string, compares bool) {
	s.t.Helper()
	s.compares = compares
	if _, err := s.pass("definitions"); err != nil {
		s.t.Fatal(err)
	}
	clear(d.edited)
	d.check(s, when)
	s.compares = false
	before := s.events()
	if result, err := s.pass("definitions"); err != nil || result.Unchanged != len(d.cloud) || result.Changed() {
		s.t.Fatalf("%s, again: %+v, %v", when, result, err)
	}
	if after := s.events(); after != before {
		s.t.Fatalf("%s: a pass without changes has an event: %s after %s", when, after, before)
	}
}

// TestOnlyAdministratorsImportUnderTheOriginOfAPass compares the origin with the rule
// of imports.
func TestOnlyAdministratorsImportUnderTheOriginOfAPass(t *testing.T) {
	t.Parallel()
	kinds, _ := sync.Kinds([]string{"definitions"})
	bundle := (&sync.Pass{Cloud: new(sync.Cloud).In("one"), Origin: "cloud", Kind: kinds[0]}).Bundle()
	member := access.Viewer{UserID: "u", ProjectID: "p", Roles: []string{access.RoleMember}}
	if err := metadef.MayImportFrom(member, &bundle); !errors.Is(err, problem.ErrForbidden) {
		t.Errorf("a member imports under %s: %v", bundle, err)
	}
}

// events returns the last event and the last change.
func (s *syncing) events() string {
	s.t.Helper()
	var answer object
	err := s.server.MakeRequest(s.t.Context(),
		&graphql.Request{Query: `{ auditEvents(first: 1) { nodes { id kind key } } changes(first: 0) { latest } }`},
		&graphql.Response{Data: &answer})
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint(answer)
}

// TestDefinitionsEnd lets namespaces of the cloud disappear. One is deleted, and one
// stays with the property of a person.
func TestDefinitionsEnd(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	for i := range 6 {
		f.define(fmt.Sprint("N", i), object{"p": object{"title": "P", "type": "string"}}, "tag")
	}
	pass := func() sync.Result {
		t.Helper()
		result, err := s.pass("definitions")
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	pass()
	s.person(`createProperty(input: {namespace: "N1", name: "mine", title: "Mine", type: STRING})`)
	all := maps.Clone(f.objects)
	rows := slices.Clone(f.lists[spaces])
	f.lists[spaces] = []object{}
	pass()
	if result := pass(); result.Refused != 6 || len(s.namespaces()) != 6 {
		t.Errorf("an empty list: %+v", result)
	}
	f.lists[spaces], f.objects = rows, all
	pass()
	f.undefine("N0")
	f.undefine("N1")
	s.allow = true
	pass()
	if result := pass(); result.Gone != 2 || len(s.namespaces()) != 6 {
		t.Errorf("gone: %+v", result)
	}
	kept := s.namespaces()
	s.expire("definitions")
	pass()
	pass()
	there := s.namespaces()
	if there["N0"] != nil {
		t.Errorf("N0 was gone, and is there: %v", there["N0"])
	}
	want := object{"namespace": "N1", "visibility": "public", "protected": false,
		"properties": object{"mine": object{"title": "Mine", "type": "string"}}}
	if !reflect.DeepEqual(there["N1"], want) {
		t.Errorf("N1 is %v, want %v", there["N1"], want)
	}
	for _, name := range []string{"N2", "N3", "N4", "N5"} {
		if !reflect.DeepEqual(there[name], kept[name]) {
			t.Errorf("%s is %v, want %v", name, there[name], kept[name])
		}
	}
}

// expire deletes the resources of a kind that are gone, as a pass does after seven
// days.
func (s *syncing) expire(kind string) {
	s.t.Helper()
	const pass = "55555555-0000-4000-8000-000000000001"
	_, err := client.EndSync(s.t.Context(), s.server,
		&client.EndSyncInput{Origin: "cloud", Region: "one", Kind: kind, Pass: pass, Complete: true, Seen: 1,
			DeleteAfter: optional.Value(0)})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestOtherDefinitionsStay has a namespace that a person made, and one of another
// region.
func TestOtherDefinitionsStay(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.person(`createNamespace(input: {name: "N0", displayName: "Mine"})`)
	for i := range 3 {
		f.define(fmt.Sprint("N", i), object{"p": object{"name": "p", "title": "P", "type": "string"}})
	}
	mine := s.namespaces()["N0"]
	result, err := s.pass("definitions")
	if err != nil || result.Created != 2 || len(result.LeftOut) != 1 || result.LeftOut[0].ID != "N0" ||
		!reflect.DeepEqual(s.namespaces()["N0"], mine) {
		t.Errorf("a namespace of a person: %+v, %v", result, err)
	}
	one := s.namespaces()
	f.define("N1", object{"q": object{"title": "Q", "type": "string"}})
	s.cloud.At.Region = "two"
	result, err = s.pass("definitions")
	if err != nil || result.Unchanged != 3 || len(result.LeftOut) != 3 || !reflect.DeepEqual(s.namespaces(), one) {
		t.Errorf("another region: %+v, %v", result, err)
	}
}

// TestADefinitionThatFailsStopsNoOther has a namespace that cannot be imported, one
// without a page, and half a list.
func TestADefinitionThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	for i := range 3 {
		f.define(fmt.Sprint("N", i), object{"p": object{"title": "P", "type": "string"}})
	}
	if _, err := s.pass("definitions"); err != nil {
		t.Fatal(err)
	}
	f.define("N1", object{"q": object{"title": "Q", "type": "string"}})
	f.define("N2", object{"p": object{"title": "P", "type": "nonsense"}})
	delete(f.objects, spaces+"/N0")
	fails := func(names ...string) sync.Result {
		result, err := s.pass("definitions")
		for _, name := range names {
			if err == nil || !strings.Contains(err.Error(), "definitions "+name+": ") {
				t.Errorf("%s does not fail: %v", name, err)
			}
		}
		return result
	}
	if result := fails("N0", "N2"); result.Updated != 1 {
		t.Errorf("a namespace that cannot be imported: %+v", result)
	}
	tooLarge := object{"p": object{"title": strings.Repeat("x", 1<<20), "type": "string"}}
	f.define("N1", tooLarge)
	f.define("N2", object{"p": object{"title": "P", "type": "string"}, "q": object{"title": "Q", "type": "string"}})
	f.define("N4", tooLarge)
	f.define("N5", object{})
	if result := fails("N1", "N4"); result.Created != 1 || result.Updated != 1 || result.Deleted != 0 ||
		len(s.namespaces()) != 4 {
		t.Errorf("namespaces that are too large: %+v", result)
	}
	f.fault = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusInternalServerError); return true }
	f.define("N3", object{})
	if result, err := s.pass("definitions"); err == nil || result.SyncCounts.Absent != 0 {
		t.Errorf("half a list: %+v, %v", result, err)
	}
}
