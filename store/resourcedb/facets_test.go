package resourcedb_test

import (
	"fmt"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestFacetsOfManyConditions counts values under a filter with more conditions
// than PostgreSQL may join.
func TestFacetsOfManyConditions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		one := store.ResourceRecord{UUID: storetest.UUID(1), Type: "OS::Test", Name: "one",
			ProjectID: "p", Visibility: access.Public}
		var filter resource.Filter
		for i := range 12 {
			key, value := fmt.Sprint("key", i), fmt.Sprint("value", i)
			one.Metadata = append(one.Metadata, resource.MetadataItem{Key: key, Value: value})
			filter.Metadata = append(filter.Metadata, metadef.KeyValue{Key: key, Value: value})
		}
		if err := s.FillEmpty(storetest.AsAdmin(), store.Content{Resources: []store.ResourceRecord{one}}); err != nil {
			t.Fatal(err)
		}
		facets, err := s.MetadataFacets(storetest.AsAdmin(), resource.EveryResource,
			[]int64{0}, filter, []string{"key1"}, 10)
		if err != nil || len(facets[0]) != 1 || len(facets[0][0].Values) != 1 ||
			facets[0][0].Values[0].ResourceCount != 1 {
			t.Errorf("got %+v %v", facets[0], err)
		}
	})
}

// TestFacetOfTagsIgnoresAnEmptySelection counts tags under a filter whose only
// condition is an empty list of alternative tags, the facet's own selection.
func TestFacetOfTagsIgnoresAnEmptySelection(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		one := store.ResourceRecord{UUID: storetest.UUID(1), Type: "OS::Test", Name: "one",
			ProjectID: "p", Visibility: access.Public, Tags: []string{"red"}}
		if err := s.FillEmpty(storetest.AsAdmin(), store.Content{Resources: []store.ResourceRecord{one}}); err != nil {
			t.Fatal(err)
		}
		facets, err := s.Facets(storetest.AsAdmin(), resource.EveryResource, []int64{0},
			resource.Filter{AnyTags: []resource.TagFilter{}},
			[]resource.FacetRequest{{By: resource.FacetTag, First: 10}, {By: resource.FacetProject, First: 10}})
		if err != nil || len(facets[0][0].Values) != 1 || len(facets[0][1].Values) != 0 {
			t.Errorf("got %+v %v", facets, err)
		}
	})
}
