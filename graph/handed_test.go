package graph_test

import (
	"fmt"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestWhatAClaimWroteIsShownFromMemory selects data that came with the
// transaction of a claim. This takes and prices no more statements than an
// empty selection. Other data is read and priced.
func TestWhatAClaimWroteIsShownFromMemory(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		executor := executorOf(t, s)
		admin := access.WithViewer(t.Context(), viewers["admin"])
		provider, consumer := storetest.UUID(1), storetest.UUID(2)
		storetest.RoomyProvider(t, s, provider)
		mutate := func(mutation, selected string) (ran, priced int) {
			t.Helper()
			ctx, count := store.CountStatements(admin)
			prepared := executor.Preparer(document.Limits{}).
				Prepare(ctx, document.Request{Text: fmt.Sprintf("mutation { %s { %s } }", mutation, selected)})
			if prepared.Refused != nil {
				t.Fatal(prepared.Refused)
			}
			if answer := executor.Run(ctx, prepared.Operation, 0); len(answer.Errors) > 0 {
				t.Fatal(answer.Errors)
			}
			return count(), prepared.Operation.Price.Statements
		}
		set := fmt.Sprintf(`setAllocations(input: {consumers: [{uuid: %q, projectId: "demo", userId: "mel", allocations: [{provider: %q, resources: [{resourceClass: "VCPU", amount: 1}]}], mappings: [{suffix: "", providers: [%q]}]}]})`,
			consumer, provider, provider)
		drop := fmt.Sprintf(`deleteAllocations(input: {consumer: %q})`, consumer)
		for _, one := range []struct {
			selected string
			read     int
		}{
			{`uuid generation`, 0},
			{`uuid allocations { used provider { uuid generation inventories { used } } consumer { generation allocations { provider { name } } } } mappings { providers { name } }`, 0},
			{`allocations { provider { allocations { nodes { consumer { uuid } } } } }`, 2},
			{`resource { uuid }`, 1},
		} {
			bare, _ := mutate(set, "__typename")
			if _, err := s.DeleteAllocations(admin, consumer); err != nil {
				t.Fatal(err)
			}
			if ran, priced := mutate(set, "consumers { "+one.selected+" }"); ran-bare != one.read ||
				priced != one.read {
				t.Errorf("setAllocations: %d statements besides the %d of the claim, and %d priced, want %d: %s",
					ran-bare, bare, priced, one.read, one.selected)
			}
			if _, priced := mutate(drop, "consumer { "+one.selected+" }"); priced != one.read {
				t.Errorf("deleteAllocations: %d statements are priced, want %d: %s", priced, one.read, one.selected)
			}
		}
	})
}
