package resourcedb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestPairsOfEveryLengthAreExact looks for values that are as long as what
// indexes keep of them, shorter and longer, and for those that begin like them.
func TestPairsOfEveryLengthAreExact(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "ada", ProjectID: "p", Roles: []string{access.RoleAdmin}})
		var values []string
		for _, length := range []int{1, 2, 62, 63, 64, 65, 66, 200} {
			values = append(values, strings.Repeat("界", length), strings.Repeat("x", length), strings.Repeat("x", length-1)+"y")
		}
		slices.Sort(values)
		values = slices.Compact(values)
		var content store.Content
		for i, value := range values {
			content.Resources = append(content.Resources, store.ResourceRecord{UUID: fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i), Type: "physical:host", Name: fmt.Sprint(i),
				ProjectID: "p", Visibility: access.Public, Metadata: []resource.MetadataItem{{Key: "key", Value: value}}})
		}
		if err := s.FillEmpty(ctx, content); err != nil {
			t.Fatal(err)
		}
		for i, value := range values {
			long := strings.Repeat("z", 100)
			for _, filter := range []resource.Filter{
				{Metadata: []metadef.KeyValue{{Key: "key", Value: value}}},
				{Where: &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key", Equals: &value}}},
				{Where: &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key", In: []string{value, "nothing"}}}},
				{Where: &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key", In: []string{value, long}}}},
			} {
				found, err := s.Resources(ctx, filter, page.Order{Field: "NAME"}, page.Request{})
				if err != nil || len(found.Items) != 1 || found.Items[0].Name != fmt.Sprint(i) {
					t.Errorf("%d characters: %d resources, %v", len([]rune(value)), len(found.Items), err)
				}
			}
		}
	})
}

// thirtyWithPairs returns thirty resources that all have the key many, ten some and
// three few.
func thirtyWithPairs() store.Content {
	var content store.Content
	for i := range 30 {
		record := store.ResourceRecord{UUID: storetest.UUID(i + 1), Type: "physical:host", Name: fmt.Sprint(i), ProjectID: "p", Visibility: access.Public,
			Metadata: []resource.MetadataItem{{Key: "many", Value: "x"}}}
		if i%3 == 0 {
			record.Metadata = append(record.Metadata, resource.MetadataItem{Key: "some", Value: "x"})
		}
		if i%10 == 0 {
			record.Metadata = append(record.Metadata, resource.MetadataItem{Key: "few", Value: "x"})
		}
		content.Resources = append(content.Resources, record)
	}
	return content
}

// TestTheRarestPairIsSearchedFirst holds that it does not matter in which order a
// filter has its pairs: where resources are in memory, what few have is looked for
// before what many have. Whoever looks for several has them loaded.
func TestTheRarestPairIsSearchedFirst(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		filled, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(filled.FillEmpty(storetest.AsAdmin(), thirtyWithPairs()), filled.Close()); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), store.Options{URL: url, Resources: store.ResourceOptions{ResidentFrom: 30}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		pairs := []metadef.KeyValue{{Key: "few", Value: "x"}, {Key: "many", Value: "x"}, {Key: "some", Value: "x"}}
		want := []string{"metadata few: x", "metadata some: x", "metadata many: x"}
		if !patience.Until(t, 20*time.Second, func() bool {
			names, err := resourcedb.OrderOfSearches(storetest.AsAdmin(), s.ResourceStore, resource.Filter{Metadata: []metadef.KeyValue{pairs[1], pairs[0]}})
			return err == nil && slices.Equal(names, []string{want[0], want[2]})
		}) {
			t.Error("the resources are not loaded")
		}
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			filter := resource.Filter{Types: []string{"physical:host"}}
			for _, i := range order {
				filter.Metadata = append(filter.Metadata, pairs[i])
			}
			names, err := resourcedb.OrderOfSearches(storetest.AsAdmin(), s.ResourceStore, filter)
			names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "metadata") })
			if err != nil || !slices.Equal(names, want) {
				t.Errorf("%v: %q, %v", order, names, err)
			}
			found, err := s.Resources(storetest.AsAdmin(), filter, page.Order{Field: "NAME"}, page.Request{})
			if err != nil || len(found.Items) != 1 || found.Items[0].Name != "0" {
				t.Errorf("%v: %d resources, %v", order, len(found.Items), err)
			}
		}
	})
}
