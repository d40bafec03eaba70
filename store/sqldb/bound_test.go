package sqldb_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestABoundHoldsForOneTransaction raises the statement timeout of a
// transaction. Later transactions on the same connections have the default
// again.
func TestABoundHoldsForOneTransaction(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if !s.Postgres() {
			if err := s.Bound(t.Context(), nil, time.Minute); err != nil {
				t.Error(err)
			}
			return
		}
		limit := func(on sqldb.Conn) (text string) {
			t.Helper()
			if err := s.Query(t.Context(), on, `SHOW statement_timeout`, func(rows *sql.Rows) error {
				return rows.Scan(&text)
			}); err != nil {
				t.Fatal(err)
			}
			return text
		}
		for range 5 {
			if err := s.ReadAt(t.Context(), func(on sqldb.Conn, _ changelog.Snapshot) error {
				if text := limit(on); text != "10s" {
					t.Errorf("a statement may take %s before it is said", text)
				}
				err := s.Bound(t.Context(), on, 5*time.Minute)
				if text := limit(on); text != "5min" {
					t.Errorf("a statement may take %s", text)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
