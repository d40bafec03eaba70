package sqldb_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/store/upkeep"
)

// TestTheWritableOfSeveralHostsIsFound opens a database by a list of hosts: one
// where nothing listens, one that never answers, a standby and the primary.
func TestTheWritableOfSeveralHostsIsFound(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hole.Close() }()
	url := strings.Replace(pair.URL, "@", fmt.Sprintf("@127.0.0.1:1,%s,", hole.Addr()), 1)
	s := storetest.Open(t, url)
	if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_FOUND"); err != nil {
		t.Error(err)
	}
	if err := s.Ready(storetest.AsAdmin()); err != nil {
		t.Error(err)
	}
	if _, err := upkeep.Check(t.Context(), url, func(found upkeep.Finding) error {
		return fmt.Errorf("found %+v", found)
	}); err != nil {
		t.Error(err)
	}
	pair.Stop(t) // a standby is left
	for range 4 {
		if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_NONE"); !errors.Is(err, problem.ErrUnavailable) {
			t.Errorf("without a primary: %v", err)
		}
	}
}

// TestAFormerPrimaryCommitsNoEvent learns of a promotion during a transaction that
// records an audit event and changes nothing.
func TestAFormerPrimaryCommitsNoEvent(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	s := storetest.Open(t, url)
	err := s.Act(t.Context(), "setLimits", func(tx *sqldb.Tx) error {
		s.Pool.Promoted()
		tx.Record(t.Context(), sqldb.Event{Kind: "Limit", Key: "lost"})
		return nil
	})
	found := storetest.Rows(t, storetest.Database(t, url), "SELECT key FROM audit_events WHERE key = 'lost'")
	if !errors.Is(err, problem.ErrUnavailable) || len(found) > 0 {
		t.Errorf("the former primary has %v: %v", found, err)
	}
}
