package metadefdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAssociationsOfAFilter checks random filters on the associations of
// resource types, which the database filters, and of namespaces, which are
// filtered in memory. Both must match an evaluation of every visible
// association.
func TestAssociationsOfAFilter(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		chance := rand.New(rand.NewPCG(12, 17))
		admin := storetest.AsAdmin()
		types, affixes := []string{"X::A", "X::B", "X::C"}, []string{"", "hw:", "hw_", "image"}
		pick := func(from []string) string { return from[chance.IntN(len(from))] }
		var names []string
		for i := range 8 {
			input := ownedBy([]string{"demo", "other"}[i%2], fmt.Sprint("N", i))
			input.Visibility = metadeftest.To(access.Visibility([]string{"PUBLIC", "PRIVATE"}[i/2%2]))
			input.ResourceTypeAssociations = differentAssociations(1+chance.IntN(4), func() [3]string {
				return [3]string{pick(types), pick(affixes[:3]), pick([]string{"", "image", "hw"})}
			})
			if _, err := s.CreateNamespace(admin, input); err != nil {
				t.Fatal(err)
			}
			names = append(names, input.Name)
		}
		viewers := map[string]context.Context{"admin": admin,
			"member": asMemberOf(t, "demo")}
		shown := map[string]int{}
		for round := range 300 {
			var filter metadef.AssociationFilter
			if chance.IntN(2) == 0 {
				filter.Namespaces = some(chance, append(names, "absent"))
			}
			if chance.IntN(2) == 0 {
				filter.ResourceTypes = some(chance, append(types, "absent"))
			}
			if chance.IntN(3) == 0 {
				filter.Prefix = new(pick(affixes))
			}
			if chance.IntN(3) == 0 {
				filter.PropertiesTarget = new(pick(affixes))
			}
			for who, ctx := range viewers {
				if namesUnknown(t, s, ctx, filter) {
					if err := s.CheckAssociationFilter(ctx, filter); !errors.Is(err, problem.ErrInvalidInput) {
						t.Fatalf("round %d, %s, %+v: %v", round, who, filter, err)
					}
					continue
				}
				ofTypes, ofNamespaces, want := foundByFilter(t, s, ctx, types, filter)
				if !slices.Equal(ofTypes, want) || !slices.Equal(ofNamespaces, want) {
					t.Fatalf("round %d, %s, %+v:\nof types %v\nof namespaces %v\nwant %v", round, who,
						filter, ofTypes, ofNamespaces, want)
				}
				shown[who] += len(want)
			}
		}
		if shown["member"] == 0 || shown["admin"] <= shown["member"] {
			t.Errorf("the filters found %v", shown)
		}
	})
}

// differentAssociations returns at most the given number of different
// associations, with drawn types, prefixes and targets.
func differentAssociations(most int, draw func() [3]string) []metadef.DocumentAssociation {
	var out []metadef.DocumentAssociation
	seen := map[[3]string]bool{}
	for range most {
		if of := draw(); !seen[of] {
			seen[of] = true
			out = append(out,
				metadef.DocumentAssociation{ResourceType: of[0], Prefix: orNil(of[1]), PropertiesTarget: orNil(of[2])})
		}
	}
	return out
}

// namesUnknown reports whether a filter has a name that the viewer does not
// see.
func namesUnknown(t *testing.T, s *store.Store, ctx context.Context, filter metadef.AssociationFilter) bool {
	t.Helper()
	namespaces, err := s.Namespaces(ctx, metadef.NamespaceFilter{}, page.Order{Field: "NAME"}, page.Request{})
	if err != nil {
		t.Fatal(err)
	}
	types, err := s.ResourceTypes(ctx, metadef.ResourceTypeFilter{}, page.Order{Field: "NAME"}, page.Request{})
	if err != nil {
		t.Fatal(err)
	}
	unseen := func(name string) bool {
		return !slices.ContainsFunc(namespaces.Items, func(n *metadef.Namespace) bool { return n.Name == name })
	}
	unused := func(name string) bool {
		return !slices.ContainsFunc(types.Items, func(of *metadef.ResourceType) bool { return of.Name == name })
	}
	return slices.ContainsFunc(filter.Namespaces, unseen) || slices.ContainsFunc(filter.ResourceTypes, unused)
}

// foundByFilter returns the ids of the associations that both lists find for a
// filter, and the ids that they must find.
func foundByFilter(t *testing.T, s *store.Store, ctx context.Context, types []string,
	filter metadef.AssociationFilter) (ofTypes, ofNamespaces, want []int64) {
	t.Helper()
	namespaces, err := s.Namespaces(ctx, metadef.NamespaceFilter{}, page.Order{Field: "NAME"}, page.Request{})
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range namespaces.Items {
		all, err := s.AssociationsOf(ctx, []int64{namespace.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range filter.Of(namespace.Name, all[namespace.ID]) {
			ofNamespaces = append(ofNamespaces, of.ID)
		}
		for _, of := range all[namespace.ID] {
			if selects(filter, namespace.Name, of) {
				want = append(want, of.ID)
			}
		}
	}
	ofTypes = foundOfTypes(t, s, ctx, types, filter)
	for _, list := range [][]int64{ofTypes, ofNamespaces, want} {
		slices.Sort(list)
	}
	return ofTypes, ofNamespaces, want
}

// selects reports whether a filter matches an association.
func selects(filter metadef.AssociationFilter, namespace string, of *metadef.ResourceTypeAssociation) bool {
	among := func(names []string, name string) bool { return names == nil || slices.Contains(names, name) }
	same := func(want, text *string) bool {
		return want == nil || *want == "" && text == nil || text != nil && *want == *text
	}
	return among(filter.Namespaces, namespace) && among(filter.ResourceTypes, of.ResourceTypeName) &&
		same(filter.Prefix, of.Prefix) && same(filter.PropertiesTarget, of.PropertiesTarget)
}

// foundOfTypes returns the ids of the associations of resource types under a
// filter, and checks that counts and pages agree.
func foundOfTypes(t *testing.T, s *store.Store, ctx context.Context, types []string,
	filter metadef.AssociationFilter) (found []int64) {
	t.Helper()
	rows, err := s.ResourceTypes(ctx, metadef.ResourceTypeFilter{Names: types},
		page.Order{Field: "NAME"}, page.Request{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, row := range rows.Items {
		ids = append(ids, row.ID)
	}
	pages, err := s.AssociationsOfTypes(ctx, ids, filter, page.Request{})
	if err != nil {
		t.Fatal(err)
	}
	counts, err := s.CountAssociationsOfTypes(ctx, ids, filter)
	if err != nil {
		t.Fatal(err)
	}
	one, two := 1, 2
	for _, id := range ids {
		if counts[id] != len(pages[id].Items) {
			t.Fatalf("%+v: %d are counted, %d shown", filter, counts[id], len(pages[id].Items))
		}
		for _, of := range pages[id].Items {
			found = append(found, of.ID)
		}
		if len(pages[id].Items) < 2 {
			continue
		}
		request := page.Request{First: &two, After: &pages[id].Cursors[0]}
		behind, err := s.AssociationsOfTypesBehind(ctx, []int64{id}, filter, request)
		if err != nil || !behind[id] {
			t.Fatalf("%+v: nothing behind the first of a page, %v", filter, err)
		}
		second, err := s.AssociationsOfTypes(ctx, []int64{id}, filter,
			page.Request{First: &one, After: &pages[id].Cursors[0]})
		if err != nil || second[id].Items[0].ID != pages[id].Items[1].ID {
			t.Fatalf("%+v: the second page begins elsewhere, %v", filter, err)
		}
	}
	return found
}

// some returns a few items of a list, or none.
func some(chance *rand.Rand, of []string) []string {
	out := []string{}
	for range chance.IntN(4) {
		out = append(out, of[chance.IntN(len(of))])
	}
	return out
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TestAssociationFilterIsChecked checks that the store refuses values that no
// association can have.
func TestAssociationFilterIsChecked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		long := fmt.Sprintf("%081d", 0)
		bad := metadef.AssociationFilter{Namespaces: make([]string, 251), ResourceTypes: make([]string, 251),
			Prefix: &long, PropertiesTarget: &long}
		_, err := s.AssociationsOfTypes(storetest.AsAdmin(), nil, bad, page.Request{})
		for _, field := range []string{"filter.namespaces", "filter.resourceTypes",
			"filter.prefix", "filter.propertiesTarget"} {
			if err == nil || !strings.Contains(err.Error(), field+": ") {
				t.Errorf("%s is not refused: %v", field, err)
			}
		}
	})
}
