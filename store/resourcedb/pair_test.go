package resourcedb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestPairsOfEveryLengthAreExact looks for values as long as the prefixes in
// indexes, shorter and longer, and for values that begin like them.
func TestPairsOfEveryLengthAreExact(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(),
			access.Viewer{UserID: "ada", ProjectID: "p", Roles: []string{access.RoleAdmin}})
		var values []string
		for _, length := range []int{1, 2, 62, 63, 64, 65, 66, 200} {
			values = append(values, strings.Repeat("界", length),
				strings.Repeat("x", length), strings.Repeat("x", length-1)+"y")
		}
		slices.Sort(values)
		values = slices.Compact(values)
		var content store.Content
		for i, value := range values {
			content.Resources = append(content.Resources,
				store.ResourceRecord{UUID: fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i),
					Type: "physical:host", Name: fmt.Sprint(i),
					ProjectID: "p", Visibility: access.Public,
					Metadata: []resource.MetadataItem{{Key: "key", Value: value}}})
		}
		if err := s.FillEmpty(ctx, content); err != nil {
			t.Fatal(err)
		}
		for i, value := range values {
			long := strings.Repeat("z", 100)
			for _, filter := range []resource.Filter{
				{Metadata: []metadef.KeyValue{{Key: "key", Value: value}}},
				{Where: &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key", Equals: &value}}},
				{Where: &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key",
					In: []string{value, "nothing"}}}},
				{Where: &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key",
					In: []string{value, long}}}},
			} {
				found, err := s.Resources(ctx, filter, page.Order{Field: "NAME"}, page.Request{})
				if err != nil || len(found.Items) != 1 || found.Items[0].Name != fmt.Sprint(i) {
					t.Errorf("%d characters: %d resources, %v", len([]rune(value)), len(found.Items), err)
				}
			}
		}
	})
}
