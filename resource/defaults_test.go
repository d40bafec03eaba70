package resource_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
)

// TestDefaultsFollowTheirRules applies random rules to random items that users,
// the namespace and another namespace own, and compares the result with the
// definition. The second change must be empty.
func TestDefaultsFollowTheirRules(t *testing.T) {
	t.Parallel()
	d := rand.New(rand.NewPCG(soak.Seed(t), 31))
	types, projects, names, values := []string{"A", "B"}, []string{"p", "q"},
		[]string{"a", "b", "c", "d"}, []string{"1", "2"}
	changed := 0
	for range soak.Rounds(60000) {
		kind := d.IntN(2)
		of := resource.Resource{UUID: "r", TypeID: int64(kind), ProjectID: projects[d.IntN(2)]}
		rules := resourcetest.DrawRules(d.IntN, types, projects, names, values)
		var items []*resource.MetadataItem
		for i, key := range names {
			if d.IntN(2) == 0 {
				items = append(items, &resource.MetadataItem{ID: int64(i + 1), Key: key, Value: values[d.IntN(2)],
					UserModifiable: true, DerivedFrom: int64(d.IntN(3))})
			}
		}
		want := resourcetest.WithDefaults(1, rules, of, types[kind], items)
		change := resource.DefaultsOf(1, rules, &of, items)
		after := planned(items, change.Plan(resource.MetadataRules{}, items))
		if got := resourcetest.Values(after); !maps.Equal(got, want) {
			t.Fatalf("%+v with the items %v: %v, want %v", rules, resourcetest.Values(items), got, want)
		}
		if again := resource.DefaultsOf(1, rules, &of, after); len(again.Items)+len(again.Keys) > 0 {
			t.Fatalf("%+v change %v again: %+v", rules, want, again)
		}
		if len(change.Items) > 0 && len(change.Keys) > 0 {
			changed++
		}
	}
	if changed == 0 {
		t.Error("no change sets and deletes")
	}
}

// planned returns items after a plan.
func planned(items []*resource.MetadataItem, plan resource.MetadataPlan) []*resource.MetadataItem {
	after := slices.DeleteFunc(slices.Clone(items), func(item *resource.MetadataItem) bool {
		isItem := func(other resource.MetadataItem) bool { return other.Key == item.Key }
		return slices.ContainsFunc(plan.Delete, isItem) || slices.ContainsFunc(plan.Set, isItem)
	})
	for _, item := range plan.Set {
		item.ID = 9
		after = append(after, &item)
	}
	return after
}

// TestAWrittenItemIsNotDerived writes a derived value again, as a user does.
func TestAWrittenItemIsNotDerived(t *testing.T) {
	t.Parallel()
	items := []*resource.MetadataItem{{ID: 1, Key: "a", Value: "1", UserModifiable: true, DerivedFrom: 7}}
	for _, mode := range []resource.MetadataMode{resource.MergeMetadata, resource.ReplaceMetadata} {
		change := resource.MetadataChange{Mode: mode, Items: resource.Pairs(items)}
		after := resourcetest.Values(planned(items, change.Plan(resource.MetadataRules{}, items)))
		if want := (resourcetest.Value{Value: "1"}); after["a"] != want {
			t.Errorf("mode %d: %+v, want %+v", mode, after["a"], want)
		}
	}
}
