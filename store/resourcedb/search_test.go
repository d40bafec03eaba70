package resourcedb_test

import (
	"testing"
	"unicode"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// TestSearchOfTheLongestText searches for a string with the maximum number of
// code points, all uppercase and with different folded forms. It must find the
// string in both cases.
func TestSearchOfTheLongestText(t *testing.T) {
	t.Parallel()
	var upper []rune
	seen := map[string]bool{}
	for r := rune('A'); len(upper) < metadef.MaxSearch; r++ {
		if folded := text.Fold(string(r)); folded != string(r) && !seen[folded] && unicode.IsUpper(r) {
			seen[folded] = true
			upper = append(upper, r)
		}
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		for _, input := range []resource.Input{
			{Type: "physical:host", Name: string(upper)},
			{Type: "physical:host", Name: "described", Description: new("of " + string(upper))},
			{Type: "physical:host", Name: "valued",
				Metadata: []metadef.KeyValue{{Key: "k", Value: text.Fold(string(upper)) + "!"}}},
			{Type: "physical:host", Name: "keyed", Metadata: []metadef.KeyValue{{Key: string(upper), Value: "v"}}},
			{Type: "physical:host", Name: string(upper[1:])},
		} {
			if _, err := s.CreateResource(ctx, input); err != nil {
				t.Fatal(err)
			}
		}
		for _, search := range []string{string(upper), text.Fold(string(upper))} {
			if n, err := s.CountResources(ctx, resource.Filter{Search: &search}); n != 3 || err != nil {
				t.Errorf("found %d, %v", n, err)
			}
		}
		long := string(upper) + "a"
		if _, err := s.CountResources(ctx, resource.Filter{Search: &long}); err == nil {
			t.Error("a longer text is accepted")
		}
	})
}
