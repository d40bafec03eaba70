package resourcedb_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// facets returns random requests for facets.
func (w *randomWorld) facets() []resource.FacetRequest {
	var wanted []resource.FacetRequest
	for range 1 + w.chance.IntN(4) {
		of := resource.FacetRequest{By: resource.FacetKind(w.pick([]string{"TYPE", "PROJECT", "TAG", "VISIBILITY",
			"METADATA_KEY", "METADATA_VALUE", "CAPABILITY_VALUE"})),
			First: []int{0, 1, 2, 100}[w.chance.IntN(4)], IncludeUnused: w.chance.IntN(2) == 0}
		switch of.By {
		case resource.FacetMetadataValue:
			of.Key = new(w.pick(append(worldKeys, "hw:color", "unknown")))
		case resource.FacetCapabilityValue:
			of.Key = new(w.pick(append(worldCaps, "unknown")))
		}
		if w.chance.IntN(3) == 0 {
			of.StartsWith = new(w.pick([]string{"a", "Ä", "b", "é", "X::", "demo", "1", "", "\U0010FFFF"}))
		}
		wanted = append(wanted, of)
	}
	return wanted
}

// knownValues returns the known values of a facet, in use or not. All
// namespaces are public except for one, which belongs to the project elsewhere.
func (w *randomWorld) knownValues(viewer access.Viewer, filter resource.Filter,
	of resource.FacetRequest) (known []string) {
	private := viewer.IsAdmin() || viewer.ProjectID == "elsewhere"
	switch of.By {
	case resource.FacetVisibility:
		return []string{"PRIVATE", "PUBLIC"}
	case resource.FacetTag:
		known = []string{"Red", "Green", "Unused"}
		if private {
			known = append(known, "hidden")
		}
	case resource.FacetMetadataValue:
		of1 := func(types ...string) bool {
			return filter.Types == nil ||
				slices.ContainsFunc(types, func(name string) bool { return slices.Contains(filter.Types, name) })
		}
		switch {
		case *of.Key == "color" && of1("X::A", "X::B"), *of.Key == "hw:color" && of1("Y::C"):
			known = []string{"a", "ab", "never", "Never"}
		case *of.Key == "k" && of1("X::A"):
			known = []string{"1", "10", "11"}
		}
		if private && *of.Key == "size" && of1("X::B") {
			known = append(known, "hidden")
		}
	}
	return known
}

// TestFacetsCountWhatTheyMean compares facets under random filters with an
// evaluation of every single resource, as each kind of viewer.
func TestFacetsCountWhatTheyMean(t *testing.T) {
	t.Parallel()
	for _, discovery := range []resource.CapabilityDiscovery{resource.DiscoveryEveryone, resource.DiscoveryAdmin} {
		t.Run(string(discovery), func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				w, s := newRandomWorld(t, url, 16, discovery)
				counted, unused := 0, 0
				for round := range 200 {
					filter, wanted := w.filter(), w.facets()
					for name, viewer := range kindsOfViewers() {
						ctx := access.WithViewer(t.Context(), viewer)
						what := fmt.Sprintf("round %d as %s: %s under %+v", round, name, describe(wanted), filter)
						got, err := s.Facets(ctx, resource.EveryResource, []int64{0}, filter, wanted)
						want, ok := w.facetsOf(viewer, typesSeen(t, ctx, s), filter, wanted)
						if (err == nil) != ok {
							t.Fatalf("%s: %v, want valid %v", what, err, ok)
						}
						if !ok {
							continue
						}
						for i, facet := range got[0] {
							counted += len(facet.Values)
							if n := len(facet.Values); n > 0 && facet.Values[n-1].ResourceCount == 0 {
								unused++
							}
							if problem := differs(facet, want[i]); problem != "" {
								t.Fatalf("%s: facet %d: %s\ngot  %+v\nwant %+v", what, i, problem, facet, want[i])
							}
						}
					}
				}
				if counted < 1000 || unused < 20 {
					t.Errorf("only %d values, %d facets with unused ones", counted, unused)
				}
			})
		})
	}
}

// wantedFacet is the expected facet.
type wantedFacet struct {
	values  []resource.FacetValue
	hasMore bool
	tags    bool
}

// facetsOf returns the facets that a viewer who sees types must get, and false
// if the store must refuse them.
func (w *randomWorld) facetsOf(viewer access.Viewer, types []string, filter resource.Filter,
	wanted []resource.FacetRequest) ([]wantedFacet, bool) {
	var facets []wantedFacet
	valid := true
	for _, of := range wanted {
		counts, ok := w.Facet(viewer, filter, of)
		valid = valid && ok
		if of.By == resource.FacetCapabilityValue {
			_, ok = w.Matching(viewer,
				resource.Filter{Types: filter.Types,
					Where: &resource.ConditionInput{Capability: &resource.CapabilityCondition{Name: *of.Key,
						Exists: new(true)}}})
			valid = valid && ok
		}
		for _, value := range w.knownTo(viewer, types, filter, of) {
			counts[value] += 0
		}
		start := ""
		if of.StartsWith != nil {
			start = *of.StartsWith
		}
		if of.By == resource.FacetTag {
			start = text.Fold(start)
		}
		facet := wantedFacet{tags: of.By == resource.FacetTag}
		for value, count := range counts {
			if strings.HasPrefix(value, start) {
				facet.values = append(facet.values, resource.FacetValue{Value: value, ResourceCount: count})
			}
		}
		slices.SortFunc(facet.values, func(a, b resource.FacetValue) int {
			return cmp.Or(-cmp.Compare(a.ResourceCount, b.ResourceCount), strings.Compare(a.Value, b.Value))
		})
		if facet.hasMore = len(facet.values) > of.First; facet.hasMore {
			facet.values = facet.values[:of.First]
		}
		facets = append(facets, facet)
	}
	return facets, valid
}

// knownTo returns the values that a facet includes, in use or not. Tags are
// folded.
func (w *randomWorld) knownTo(viewer access.Viewer, types []string, filter resource.Filter,
	of resource.FacetRequest) []string {
	switch {
	case !of.IncludeUnused:
		return nil
	case of.By == resource.FacetType:
		return types
	case !viewer.CanRead() && of.By != resource.FacetVisibility:
		return nil
	}
	known := w.knownValues(viewer, filter, of)
	if of.By == resource.FacetTag {
		for i, tag := range known {
			known[i] = text.Fold(tag)
		}
	}
	return known
}

// typesSeen returns the names of the types that a viewer sees, in the order of
// their list.
func typesSeen(t *testing.T, ctx context.Context, s *store.Store) (names []string) {
	t.Helper()
	types, err := s.ResourceTypes(ctx, metadef.ResourceTypeFilter{},
		page.Order{Field: "NAME"}, page.Request{First: new(1000)})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range types.Items {
		names = append(names, of.Name)
	}
	return names
}

func differs(got *resource.Facet, want wantedFacet) string {
	if got.HasMore != want.hasMore || len(got.Values) != len(want.values) {
		return "another number of values"
	}
	for i, value := range got.Values {
		if want.tags {
			value.Value = text.Fold(value.Value)
		}
		if value != want.values[i] {
			return "another value " + value.Value
		}
	}
	return ""
}

func describe(wanted []resource.FacetRequest) string {
	var out []string
	for _, of := range wanted {
		out = append(out, fmt.Sprintf("%s %s %q first %d unused %v", of.By, text.OrEmpty(of.Key),
			text.OrEmpty(of.StartsWith), of.First, of.IncludeUnused))
	}
	return strings.Join(out, "; ")
}

// TestFacetsOfChildrenAndTypes checks the facets of the children of resources
// and of the resources of types, which the store counts for all of them
// together.
func TestFacetsOfChildrenAndTypes(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		w, s := newRandomWorld(t, url, 17, resource.DiscoveryEveryone)
		all, err := s.Resources(storetest.AsAdmin(), resource.Filter{},
			page.Order{Field: "NAME"}, page.Request{First: new(1000)})
		if err != nil {
			t.Fatal(err)
		}
		uuids, types := map[int64]string{}, map[int64]string{}
		for _, of := range all.Items {
			uuids[of.ID] = of.UUID
			types[of.TypeID] = w.Resources[slices.IndexFunc(w.Resources, func(thing *resourcetest.Thing) bool {
				return thing.UUID == of.UUID
			})].Type
		}
		for range 40 {
			filter, wanted := w.filter(), w.facets()
			filter.Parent, filter.Types = nil, nil
			for name, viewer := range kindsOfViewers() {
				ctx := access.WithViewer(t.Context(), viewer)
				for i := range wanted {
					wanted[i].IncludeUnused = false
				}
				w.compareScoped(t, ctx, s, viewer, name, resource.ResourcesOfType, types, filter, wanted)
				w.compareScoped(t, ctx, s, viewer, name, resource.ChildrenOfResource, uuids, filter, wanted)
			}
		}
	})
}

func (w *randomWorld) compareScoped(t *testing.T, ctx context.Context, s *store.Store, viewer access.Viewer,
	name string, scope resource.Scope, keys map[int64]string,
	filter resource.Filter, wanted []resource.FacetRequest) {
	t.Helper()
	var ids []int64
	for id := range keys {
		ids = append(ids, id)
	}
	got, err := s.Facets(ctx, scope, ids, filter, wanted)
	for id, key := range keys {
		part := *w
		part.World.Resources = nil
		for _, of := range w.Resources {
			if of.Type == key || of.Parent == key {
				part.World.Resources = append(part.World.Resources, of)
			}
		}
		if filter.Ancestor != nil {
			return // a type that is looked up among all of them
		}
		want, ok := part.facetsOf(viewer, nil, filter, wanted)
		if ok != (err == nil) {
			t.Fatalf("%s as %s: %v, want valid %v: %s under %+v", scope, name, err, ok, describe(wanted), filter)
		}
		for i := range got[id] {
			if problem := differs(got[id][i], want[i]); problem != "" {
				t.Fatalf("%s %s as %s: %s: %s under %+v\ngot  %+v\nwant %+v", scope, key, name, problem,
					describe(wanted), filter, got[id][i], want[i])
			}
		}
	}
}

// TestMetadataKeysOfAFilter compares the metadata keys under random filters
// with an evaluation of every single resource, as each kind of viewer.
func TestMetadataKeysOfAFilter(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		w, s := newRandomWorld(t, url, 18, resource.DiscoveryEveryone)
		for range 60 {
			filter := w.filter()
			for name, viewer := range kindsOfViewers() {
				ctx := access.WithViewer(t.Context(), viewer)
				got, err := s.MetadataKeys(ctx, filter, nil, "", page.Request{})
				count, err2 := s.CountMetadataKeys(ctx, filter, nil, "")
				matching, ok := w.Matching(viewer, filter)
				if (err == nil) != ok || (err2 == nil) != ok {
					t.Fatalf("%s, %+v: %v %v", name, filter, err, err2)
				}
				want := map[string]int{}
				for _, of := range matching {
					for key := range of.Metadata {
						want[key]++
					}
				}
				if ok && (len(got.Items) != len(want) || count != len(want)) {
					t.Fatalf("%s, %+v: %d keys, %d counted, want %v", name, filter, len(got.Items), count, want)
				}
				for _, key := range got.Items {
					if want[key.Key] != key.ResourceCount {
						t.Fatalf("%s, %+v: got %+v, want %v", name, filter, key, want)
					}
				}
			}
		}
	})
}
