package placementdb_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// isCounted fails unless the use of every inventory is the sum of its
// allocations.
func isCounted(t testing.TB, s *store.Store) {
	t.Helper()
	if n, err := s.Misused(storetest.AsAdmin()); n != 0 || err != nil {
		t.Errorf("%d inventories have another use than their allocations: %v", n, err)
	}
}
