package metadefdb_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// bundles is the expected state after imports and deletions: the origins of the
// existing namespaces, and the deleted names that came from the product's own
// bundle.
type bundles struct {
	origins  map[string]string
	unloaded map[string]bool
}

// imported applies an import to the expected state and returns its expected
// outcome.
func (b bundles) imported(name, origin string, request metadef.ImportRequest) metadef.ImportOutcome {
	_, exists := b.origins[name]
	switch {
	case exists:
		if origin != "" && request.Mode == metadef.Overwrite && !request.DryRun {
			b.origins[name] = origin
		}
		return metadef.ImportUnchanged
	case b.unloaded[name] && origin == metadef.OwnOrigin && !request.IncludeUnloaded:
		return metadef.ImportUnloaded
	case !request.DryRun:
		b.origins[name] = origin
		if origin == metadef.OwnOrigin {
			delete(b.unloaded, name)
		}
	}
	return metadef.ImportCreated
}

func (b bundles) deleted(name string) {
	if b.origins[name] == metadef.OwnOrigin {
		b.unloaded[name] = true
	}
	delete(b.origins, name)
}

// TestWhatWasUnloadedStaysAway imports and deletes at random, in every way, and
// compares each outcome with the rule.
func TestWhatWasUnloadedStaysAway(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, chance := storetest.AsAdmin(), rand.New(rand.NewPCG(6, 1))
		b := bundles{map[string]string{}, map[string]bool{}}
		seen := map[metadef.ImportOutcome]int{}
		for i := range 150 {
			name := fmt.Sprintf("N%d", chance.IntN(3))
			switch chosen := chance.IntN(10); {
			case chosen < 7:
				origin := []string{"", "another", metadef.OwnOrigin, metadef.OwnOrigin}[chance.IntN(4)]
				request := metadef.ImportRequest{Documents: []string{fmt.Sprintf(`{"namespace": %q, "visibility": "public"}`, name)},
					Mode: []metadef.ImportMode{metadef.Skip, metadef.Merge,
						metadef.PreferNew, metadef.Overwrite}[chance.IntN(4)],
					DryRun: chance.IntN(5) == 0, IncludeUnloaded: chance.IntN(4) == 0}
				if origin != "" {
					request.Origin = &origin
				}
				reports, err := s.ImportNamespaces(ctx, request)
				if err != nil {
					t.Fatal(err)
				}
				want := b.imported(name, origin, request)
				if seen[want]++; reports[0].Outcome != want {
					t.Fatalf("step %d: %s of %q is %s, want %s", i, name, origin, reports[0].Outcome, want)
				}
			case chosen < 8:
				if _, err := s.DeleteNamespace(ctx, name, nil); err == nil {
					b.deleted(name)
				}
			default:
				if _, err := s.UnloadNamespaces(ctx, metadef.UnloadRequest{Names: []string{name}}); err != nil {
					t.Fatal(err)
				}
				b.deleted(name)
			}
		}
		if seen[metadef.ImportUnloaded] == 0 || seen[metadef.ImportCreated] == 0 {
			t.Errorf("the outcomes were %v", seen)
		}
	})
}

// TestADatabaseWithoutItsDefinitionsIsNotEmpty unloads the definitions of a new
// server, and fills the database as the next start does.
func TestADatabaseWithoutItsDefinitionsIsNotEmpty(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		content := store.Content{Definitions: []string{`{"namespace": "Shipped", "visibility": "public"}`}}
		for i, want := range []int{1, 0} {
			if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
				t.Fatal(err)
			}
			reports, err := s.UnloadNamespaces(storetest.AsAdmin(), metadef.UnloadRequest{All: true})
			if err != nil || len(reports) != want {
				t.Errorf("start %d: %v, %v, want %d namespaces", i, reports, err, want)
			}
		}
	})
}
