package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func isKind(err, kind error) bool { return errors.Is(err, kind) }

// TestTheWorldIsTheDatabase makes random changes, several at once, and compares
// the world in memory with one that is read anew.
func TestTheWorldIsTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var writers sync.WaitGroup
		for seed := range 4 {
			writers.Go(func() {
				history := newChanges(uint64(seed))
				for range 60 {
					history.change(t, asAdmin(), s)
				}
			})
		}
		writers.Wait()
		sameWorld(t, s)
		if n, err := s.Misused(asAdmin()); n != 0 || err != nil {
			t.Errorf("%d inventories have another use than their allocations: %v", n, err)
		}
	})
}

// TestMovesCannotFormALoop lets two moves race that are valid each by itself.
func TestMovesCannotFormALoop(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := asAdmin()
		uuids := []string{uuidOf(1), uuidOf(2), uuidOf(3)}
		for _, uuid := range uuids {
			if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: uuid, UUID: &uuid}); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			var moves sync.WaitGroup
			for i, uuid := range uuids {
				moves.Go(func() {
					_, _, err := s.UpdateResourceProvider(ctx, placement.ProviderChange{Provider: uuid, Parent: &uuids[(i+1)%len(uuids)]})
					if err != nil && !refused(err) {
						t.Error(err)
					}
				})
			}
			moves.Wait()
			sameWorld(t, s)
			roots := 0
			for provider := range worldOf(t, s).Providers() {
				if provider.Parent == "" {
					roots++
				}
			}
			if roots == 0 {
				t.Fatal("the moves formed a loop")
			}
			for _, uuid := range uuids {
				if _, _, err := s.UpdateResourceProvider(ctx, placement.ProviderChange{Provider: uuid, Parent: new("")}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestListsAreFoundByAnIndex holds that a claim does not read all providers to
// find those that it names.
func TestListsAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	plan, err := storetest.Open(t, storetest.Postgres(t)).PlanOfListed(t.Context())
	if err != nil || strings.Contains(plan, "Seq Scan on resource_providers") {
		t.Errorf("%v\n%s", err, plan)
	}
}
