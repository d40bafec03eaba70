package resourcedb_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// kindsOfViewers returns viewers who see different resources.
func kindsOfViewers() map[string]access.Viewer {
	return map[string]access.Viewer{
		"admin":   {UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}},
		"service": {UserID: "agent", ProjectID: "services", Roles: []string{access.RoleService}},
		"member":  {UserID: "mel", ProjectID: "demo", Roles: []string{access.RoleMember}},
		"reader":  {UserID: "rae", ProjectID: "demo", Roles: []string{access.RoleReader}},
		"foreign": {UserID: "fay", ProjectID: "elsewhere", Roles: []string{access.RoleMember}},
		"nobody":  {},
	}
}

// randomWorld makes random resources, capabilities and definitions, and fills a
// store with them.
type randomWorld struct {
	resourcetest.World
	chance *rand.Rand
}

var (
	worldTypes    = []string{"X::A", "X::B", "Y::C"}
	worldProjects = []string{"demo", "elsewhere", "operations"}
	worldValues   = []string{"a", "ab", "B", "Äpfel", "ÄPFEL und Ǳ", "1", "10", "ﬀ",
		"K kelvin", "straße", "x_%", `back\slash`}
	worldTags  = []string{"red", "Blue", "ÉTÉ", "green", "light blue"}
	worldNames = []string{"one", "Two", "ÉTÉ one", "three x"}
	worldKeys  = []string{"size", "color", "k"}
	worldCaps  = []string{"arch", "gpus", "secret"}
)

func (w *randomWorld) pick(from []string) string { return from[w.chance.IntN(len(from))] }

func (w *randomWorld) some(from []string, most int) []string {
	out := []string{}
	for range w.chance.IntN(most + 1) {
		out = append(out, w.pick(from))
	}
	return out
}

// newRandomWorld returns a world made from a seed, and a store that holds it.
func newRandomWorld(t *testing.T, url string, seed uint64,
	discovery resource.CapabilityDiscovery) (*randomWorld, *store.Store) {
	t.Helper()
	w := &randomWorld{chance: rand.New(rand.NewPCG(seed, 16))}
	w.Discovery, w.Private, w.Registered, w.Below = discovery, map[[2]string]bool{}, map[[2]string]bool{},
		map[string][]string{"red": {"green"}}
	content := store.Content{Definitions: []string{`{"namespace": "Colours", "visibility": "public", "owner": "operations",
		"tags": [{"name": "Red"}, {"name": "Green", "parent": "Red"}, {"name": "Unused"}],
		"resource_type_associations": [{"name": "X::A"}, {"name": "X::B"}, {"name": "Y::C", "prefix": "hw:"}],
		"properties": {"color": {"title": "Colour", "type": "string", "enum": ["a", "ab", "never", "Never"]}}}`,
		`{"namespace": "Numbers", "visibility": "public", "owner": "operations", "resource_type_associations": [{"name": "X::A"}],
		"objects": [{"name": "o", "properties": {"k": {"title": "K", "type": "integer", "enum": [1, 10, 11]}}}]}`,
		`{"namespace": "Hidden", "visibility": "private", "owner": "elsewhere", "tags": [{"name": "hidden"}],
		"resource_type_associations": [{"name": "X::B"}], "properties": {"size": {"title": "S", "type": "string", "enum": ["hidden"]}}}`}}
	for _, of := range worldTypes {
		for _, name := range worldCaps {
			registered := [2]string{of, name}
			w.Registered[registered], w.Private[registered] = true, name == "secret" || name == "gpus" && of == "X::B"
			content.Capabilities = append(content.Capabilities,
				store.CapabilityRecord{ResourceType: of, Name: name, Private: w.Private[registered]})
		}
	}
	for i := range 60 {
		of := w.thing(i)
		w.Resources = append(w.Resources, of)
		content.Resources = append(content.Resources, recordOf(of))
	}
	s, err := store.Open(t.Context(), store.Options{URL: url, Log: slog.New(slog.DiscardHandler),
		Resources: store.ResourceOptions{CapabilityDiscovery: discovery}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
		t.Fatal(err)
	}
	w.age(t, url)
	return w, s
}

// thing returns a random resource, mostly below an existing one.
func (w *randomWorld) thing(i int) *resourcetest.Thing {
	of := &resourcetest.Thing{UUID: storetest.UUID(i + 1), Type: w.pick(worldTypes),
		Name: w.pick(worldNames), Project: w.pick(worldProjects),
		Visibility: []access.Visibility{access.Public, access.Private}[w.chance.IntN(2)],
		Metadata:   map[string]string{}, Capabilities: map[string]string{}}
	if w.chance.IntN(2) == 0 {
		of.Description = w.pick(worldValues)
	}
	if i > 0 && w.chance.IntN(3) > 0 {
		of.Parent = w.Resources[w.chance.IntN(len(w.Resources))].UUID
	}
	for _, key := range worldKeys {
		if w.chance.IntN(2) == 0 {
			of.Metadata[key] = w.pick(worldValues)
		}
	}
	for _, name := range worldCaps {
		if w.chance.IntN(2) == 0 {
			of.Capabilities[name] = w.pick([]string{"x", "y", "2", "10", `["x", "z"]`, `["y"]`, `[]`})
		}
	}
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(w.some(worldTags, 3)))) {
		of.Tags = append(of.Tags, []string{tag, strings.ToUpper(tag)}[w.chance.IntN(2)])
	}
	return of
}

// age sets the times of the resources to different values.
func (w *randomWorld) age(t *testing.T, url string) {
	t.Helper()
	db := storetest.Database(t, url)
	if !strings.HasPrefix(url, "postgres") {
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("PRAGMA busy_timeout = 10000"); err != nil {
			t.Fatal(err)
		}
	}
	for i, of := range w.Resources {
		of.UpdatedAt = time.Date(2026, 1, 1+w.chance.IntN(5), 0, 0, 0, 0, time.UTC)
		at := any(of.UpdatedAt)
		if !strings.HasPrefix(url, "postgres") {
			at = of.UpdatedAt.Format(sqldb.TimeLayout)
		}
		if _, err := db.Exec(`UPDATE resources SET updated_at = $1 WHERE uuid = $2`, at, of.UUID); err != nil {
			t.Fatal(i, err)
		}
	}
}

func recordOf(of *resourcetest.Thing) store.ResourceRecord {
	record := store.ResourceRecord{UUID: of.UUID, Type: of.Type, Name: of.Name, ProjectID: of.Project,
		Visibility: of.Visibility, Parent: of.Parent,
		Description: of.Description, Tags: of.Tags}
	for _, key := range slices.Sorted(maps.Keys(of.Metadata)) {
		record.Metadata = append(record.Metadata,
			resource.MetadataItem{Key: key, Value: of.Metadata[key], UserModifiable: true})
	}
	for _, name := range slices.Sorted(maps.Keys(of.Capabilities)) {
		record.Capabilities = append(record.Capabilities, metadef.KeyValue{Key: name, Value: of.Capabilities[name]})
	}
	return record
}

// any returns one of the resources.
func (w *randomWorld) any() *resourcetest.Thing { return w.Resources[w.chance.IntN(len(w.Resources))] }

// filter returns a random filter, mostly of few conditions.
func (w *randomWorld) filter() resource.Filter {
	var f resource.Filter
	for range w.chance.IntN(4) {
		if w.chance.IntN(2) == 0 {
			w.askOfRow(&f)
		} else {
			w.askOfOthers(&f)
		}
	}
	return f
}

// askOfRow adds a random condition on the columns of a resource.
func (w *randomWorld) askOfRow(f *resource.Filter) {
	switch w.chance.IntN(9) {
	case 0:
		f.Types = w.some(worldTypes, 3)
	case 1:
		f.ProjectID = new(w.pick(worldProjects))
	case 2:
		f.ProjectIDs = w.some(worldProjects, 3)
	case 3:
		f.Visibility = new([]access.Visibility{access.Public, access.Private}[w.chance.IntN(2)])
	case 4:
		f.Name = new(w.pick(worldNames))
	case 5:
		f.NameContains = new([]string{"o", "été", "ÉTÉ", "", "three"}[w.chance.IntN(5)])
	case 6:
		f.Search = new([]string{"äpfel", "APFEL", "k", "ǳ", "STRASSE", "Straße", "_%", `\`, "",
			"été", "1", "ﬀ", "s"}[w.chance.IntN(13)])
	case 7:
		f.UpdatedSince = new(time.Date(2026, 1, 1+w.chance.IntN(6), 0, 0, 0, 0, time.FixedZone("", 0)))
	case 8:
		f.UUIDs = []string{w.any().UUID, w.any().UUID, w.any().UUID}
	}
}

// askOfOthers adds a random condition on relatives, tags, metadata or
// capabilities of a resource.
func (w *randomWorld) askOfOthers(f *resource.Filter) {
	switch w.chance.IntN(7) {
	case 0:
		f.Parent = new(w.any().UUID)
	case 1:
		f.Ancestor = new(w.any().UUID)
	case 2:
		f.Tags = append(f.Tags, resource.TagFilter{Name: w.pick(worldTags), IncludeDescendants: w.chance.IntN(2) == 0})
	case 3:
		f.Metadata = append(f.Metadata, metadef.KeyValue{Key: w.pick(worldKeys), Value: w.pick(worldValues)},
			metadef.KeyValue{Key: w.pick(worldKeys), Value: w.pick(worldValues)})
	case 4:
		f.Where = new(w.condition(2))
	case 5:
		f.AnyTags = append(f.AnyTags, resource.TagFilter{Name: w.pick(worldTags)},
			resource.TagFilter{Name: w.pick(worldTags), IncludeDescendants: true})
	case 6:
		f.Requirements = append(f.Requirements,
			resource.Requirement{Key: []string{"", "capabilities:"}[w.chance.IntN(2)] +
				w.pick(append(worldCaps, "unknown")),
				Requirement: w.pick([]string{"x", "<or> x <or> y", ">= 3", "<in> z"})})
		f.UnknownKeys = []resource.UnknownKeys{resource.RefuseUnknownKeys, resource.IgnoreUnknownKeys}[w.chance.IntN(2)]
	}
}

func (w *randomWorld) condition(levels int) resource.ConditionInput {
	if levels > 0 && w.chance.IntN(2) == 0 {
		members := []resource.ConditionInput{w.condition(levels - 1), w.condition(levels - 1)}
		switch w.chance.IntN(3) {
		case 0:
			return resource.ConditionInput{All: members}
		case 1:
			return resource.ConditionInput{Any: members}
		}
		return resource.ConditionInput{Not: &members[0]}
	}
	if w.chance.IntN(2) == 0 {
		if w.chance.IntN(2) == 0 {
			return resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: w.pick(worldKeys),
				Exists: new(true)}}
		}
		return resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: w.pick(worldKeys),
			In: w.some(worldValues, 3)}}
	}
	return resource.ConditionInput{Capability: &resource.CapabilityCondition{Name: w.pick(worldCaps),
		Contains: new(w.pick([]string{"x", "y", "z"}))}}
}

// TestFiltersAreWhatTheyMean compares lists, counts and pages in every order
// under random filters with an evaluation of every single resource, as each
// kind of viewer.
func TestFiltersAreWhatTheyMean(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		w, s := newRandomWorld(t, url, 1, resource.DiscoveryEveryone)
		shown := map[string]int{}
		for round := range 150 {
			filter := w.filter()
			for name, viewer := range kindsOfViewers() {
				ctx := access.WithViewer(t.Context(), viewer)
				want, ok := w.Matching(viewer, filter)
				what := fmt.Sprintf("round %d as %s: %+v", round, name, filter)
				count, err := s.CountResources(ctx, filter)
				if (err == nil) != ok || count != len(want) {
					t.Fatalf("%s: counted %d, want %d and valid %v, %v", what, count, len(want), ok, err)
				}
				explained, err := s.ExplainResources(ctx, filter)
				switch all, _ := w.Matching(viewer, resource.Filter{}); {
				case (err == nil) != ok:
					t.Fatalf("%s: explained with %v", what, err)
				case ok && (explained.Considered != len(all) ||
					len(explained.Clauses) > 0 && explained.Clauses[len(explained.Clauses)-1].Remaining != len(want)):
					t.Fatalf("%s: explained as %+v, want %d of %d", what, explained, len(want), len(all))
				}
				if ok {
					shown[name] += len(want)
					w.walk(t, ctx, s, what, filter, want)
				}
			}
		}
		for name := range kindsOfViewers() {
			if (shown[name] == 0) != (name == "nobody") {
				t.Errorf("the filters found %d as %s", shown[name], name)
			}
		}
	})
}

// walk pages through a list in an order, forward and back.
func (w *randomWorld) walk(t *testing.T, ctx context.Context, s *store.Store, what string,
	filter resource.Filter, want []*resourcetest.Thing) {
	t.Helper()
	order := page.Order{Field: []string{"NAME", "TYPE", "PROJECT", "UPDATED_AT"}[w.chance.IntN(4)],
		Descending: w.chance.IntN(2) == 0}
	key := map[string]func(*resourcetest.Thing) string{
		"TYPE": func(of *resourcetest.Thing) string {
			return of.Type
		}, "PROJECT": func(of *resourcetest.Thing) string { return of.Project },
	}[order.Field]
	size := 1 + w.chance.IntN(15)
	var there, back []string
	request := page.Request{First: &size}
	for {
		got, err := s.Resources(ctx, filter, order, request)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for _, of := range got.Items {
			there = append(there, of.UUID)
		}
		if !got.HasMore {
			break
		}
		request.After = &got.Cursors[len(got.Cursors)-1]
	}
	request = page.Request{Last: &size}
	for {
		got, err := s.Resources(ctx, filter, order, request)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for _, of := range slices.Backward(got.Items) {
			back = append(back, of.UUID)
		}
		if !got.HasMore {
			break
		}
		request.Before = &got.Cursors[0]
	}
	slices.Reverse(back)
	var uuids []string
	if key != nil {
		want = resourcetest.InOrder(want, key)
		if order.Descending {
			slices.Reverse(want)
		}
	}
	for _, of := range want {
		uuids = append(uuids, of.UUID)
	}
	if !slices.Equal(there, back) {
		t.Fatalf("%s, %+v: %v there, %v back", what, order, there, back)
	}
	if key == nil {
		slices.Sort(there)
		slices.Sort(uuids)
	}
	if !slices.Equal(there, uuids) {
		t.Fatalf("%s, %+v: got %v, want %v", what, order, there, uuids)
	}
}

// TestChildrenInEveryOrder pages through the children of all resources, in the
// orders that break ties by uuid.
func TestChildrenInEveryOrder(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		w, s := newRandomWorld(t, url, 2, resource.DiscoveryAdmin)
		viewer := kindsOfViewers()["member"]
		ctx := access.WithViewer(t.Context(), viewer)
		all, err := s.Resources(storetest.AsAdmin(), resource.Filter{},
			page.Order{Field: "NAME"}, page.Request{First: new(1000)})
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for _, of := range all.Items {
			ids = append(ids, of.ID)
		}
		for _, order := range []page.Order{{Field: "TYPE"}, {Field: "TYPE", Descending: true}, {Field: "PROJECT"},
			{Field: "PROJECT", Descending: true}} {
			first, err := s.ResourcesWithin(ctx, resource.ChildrenOfResource, ids,
				resource.Filter{}, order, page.Request{First: new(2)})
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range all.Items {
				children, _ := w.Matching(viewer, resource.Filter{})
				children = slices.DeleteFunc(children, func(child *resourcetest.Thing) bool {
					return child.Parent != of.UUID
				})
				var want, got []string
				for _, child := range resourcetest.InOrder(children, map[string]func(*resourcetest.Thing) string{
					"TYPE": func(of *resourcetest.Thing) string {
						return of.Type
					}, "PROJECT": func(of *resourcetest.Thing) string { return of.Project }}[order.Field]) {
					want = append(want, child.UUID)
				}
				if order.Descending {
					slices.Reverse(want)
				}
				for page1 := first[of.ID]; ; {
					for _, child := range page1.Items {
						got = append(got, child.UUID)
					}
					if !page1.HasMore {
						break
					}
					request := page.Request{First: new(2), After: &page1.Cursors[1]}
					next, err := s.ResourcesWithin(ctx, resource.ChildrenOfResource,
						[]int64{of.ID}, resource.Filter{}, order, request)
					behind, err2 := s.ResourcesBehind(ctx, resource.ChildrenOfResource,
						[]int64{of.ID}, resource.Filter{}, order, request)
					if err != nil || err2 != nil || !behind[of.ID] {
						t.Fatal(err, err2, behind)
					}
					page1 = next[of.ID]
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%+v: got %v, want %v", order, got, want)
				}
			}
		}
	})
}
