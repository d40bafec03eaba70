package sqldb_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestSizesAreThoseOfTheTables checks the row counts. PostgreSQL's counts are
// approximate and late.
func TestSizesAreThoseOfTheTables(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if sizes := s.Sizes(); sizes == nil || sizes["resources"] != 0 {
			t.Errorf("at first: %v", sizes)
		}
		var content store.Content
		for i := range 300 {
			content.Resources = append(content.Resources,
				store.ResourceRecord{UUID: storetest.UUID(i + 1), Type: "OS::Test", Name: fmt.Sprint(i),
					ProjectID: "p", Visibility: access.Public})
		}
		if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
			t.Fatal(err)
		}
		// PostgreSQL may add the statistics of the session that wrote the rows to
		// the result of ANALYZE.
		settled := patience.Until(t, 20*time.Second, func() bool {
			if _, err := s.Pool.ExecContext(t.Context(), "ANALYZE"); err != nil {
				t.Fatal(err)
			}
			if err := s.ReadSizes(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s.Sizes()["resources"] == 300
		})
		if !settled {
			t.Errorf("300 resources are %d", s.Sizes()["resources"])
		}
	})
}
