package resourcedb_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// tree returns a random condition, with every kind at any depth.
func (w *randomWorld) tree(depth int) resource.Condition {
	kind := resource.ConditionKind(w.chance.IntN(int(resource.ConditionTag) + 1))
	of := func(operands ...string) resource.Condition {
		return resource.Condition{Kind: kind, Test: resource.Test{Operands: operands}}
	}
	switch kind {
	case resource.ConditionAll, resource.ConditionAny, resource.ConditionNot:
		if depth == 0 {
			return w.tree(0)
		}
		members := []resource.Condition{w.tree(depth - 1), w.tree(depth - 1)}
		if kind == resource.ConditionNot {
			members = members[:1]
		}
		return resource.Condition{Kind: kind, Members: members}
	case resource.ConditionNever:
		return resource.Condition{Kind: kind}
	case resource.ConditionMetadata:
		operator := []resource.Operator{resource.Exists, resource.Equals,
			resource.HasPrefix, resource.Has}[w.chance.IntN(4)]
		return resource.Condition{Kind: kind, Test: resource.Test{Name: w.pick(worldKeys), Operator: operator,
			Comparison: resource.AsText, Operands: []string{w.pick(worldValues)}}}
	case resource.ConditionCapability:
		return resource.Condition{Kind: kind, Test: resource.Test{Name: w.pick(worldKeys), Operator: resource.Equals,
			Operands: []string{w.pick(worldValues)}}}
	case resource.ConditionType:
		return of(w.pick(worldTypes), w.pick(worldTypes))
	case resource.ConditionProject:
		return of(w.pick(worldProjects))
	case resource.ConditionVisibility:
		return of(string([]access.Visibility{access.Private, access.Public}[w.chance.IntN(2)]))
	case resource.ConditionName:
		return of(w.pick(worldNames))
	case resource.ConditionNameContains, resource.ConditionSearch:
		name := []rune(text.Fold(w.pick(worldNames)))
		begin := w.chance.IntN(len(name) + 1)
		return of(string(name[begin : begin+w.chance.IntN(len(name)-begin+1)]))
	case resource.ConditionUpdatedSince:
		return resource.Condition{Kind: kind,
			Since: w.aThing().UpdatedAt.Add(time.Duration(w.chance.IntN(3)-1) * time.Microsecond)}
	case resource.ConditionTag:
		condition := of(text.Fold(w.pick(worldTags)))
		condition.Below = w.chance.IntN(2) == 0
		return condition
	}
	return of(w.aThing().UUID) // uuid, parent, ancestor
}

func (w *randomWorld) aThing() *resourcetest.Thing {
	return w.Resources[w.chance.IntN(len(w.Resources))]
}

// TestCompilersAndOracleAgree compares the resources that SQL finds, that sets
// find and that the oracle accepts, for random trees and each kind of viewer.
func TestCompilersAndOracleAgree(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		world, s := newRandomWorld(t, url, 21, resource.DiscoveryEveryone)
		if err := s.LoadResources(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := &randomWorld{World: world.World, chance: rand.New(rand.NewPCG(25, 2))}
		bySets, viewers := 0, kindsOfViewers()
		for range 400 {
			tree := w.tree(3)
			name := w.pick([]string{"admin", "service", "member", "reader", "foreign", "nobody"})
			viewer := viewers[name]
			fromSQL, fromSets, err := bothOf(access.WithViewer(t.Context(), viewer), s, tree)
			if err != nil {
				t.Fatalf("%+v: %v", tree, err)
			}
			want := []string{}
			for _, of := range w.Resources {
				if resourcetest.Sees(viewer, of) && resourcetest.Matches(tree, w.FactsOf(viewer, of)) {
					want = append(want, of.UUID)
				}
			}
			slices.Sort(want)
			if !slices.Equal(fromSQL, want) || fromSets != nil && !slices.Equal(fromSets, want) {
				t.Fatalf("%+v as %s:\nby SQL  %v\nby sets %v\nwant    %v", tree, name, fromSQL, fromSets, want)
			}
			if fromSets != nil && len(want) > 0 {
				bySets++
			}
		}
		if bySets < 40 {
			t.Errorf("sets decided only %d trees", bySets)
		}
	})
}

// bothOf returns the uuids that each compiler finds, in order.
func bothOf(ctx context.Context, s *store.Store, tree resource.Condition) (fromSQL, fromSets []string, err error) {
	bySQL, bySets, err := resourcedb.ByBoth(ctx, s.ResourceStore, tree)
	if err != nil {
		return nil, nil, err
	}
	found, err := s.ResourcesByID(ctx, append(slices.Clone(bySQL), bySets...))
	uuids := func(ids []int64) []string {
		if ids == nil {
			return nil
		}
		uuids := []string{}
		for _, id := range ids {
			if found[id] == nil {
				uuids = append(uuids, "hidden")
				continue
			}
			uuids = append(uuids, found[id].UUID)
		}
		slices.Sort(uuids)
		return uuids
	}
	return uuids(bySQL), uuids(bySets), err
}
