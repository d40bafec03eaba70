package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestACommitThatWaitsForItsStandbyIsNotCanceled ends requests while their
// COMMIT waits for a standby that does not exist. They hear OUTCOME_UNKNOWN, and
// no reader sees the change until the standby is no longer required.
func TestACommitThatWaitsForItsStandbyIsNotCanceled(t *testing.T) {
	t.Parallel()
	url, _ := storetest.CrashingPostgres(t)
	s, err := store.Open(t.Context(), store.Options{URL: url, StatementTime: patience.Of(t, 2*time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	db := storetest.Database(t, url)
	storetest.AlterSystem(t, url, "synchronous_standby_names", "nobody")
	tries := 0
	storetest.Within(t, 10*time.Second, "a standby is required", func() bool {
		tries++
		ctx, cancel := context.WithTimeout(storetest.AsAdmin(), patience.Of(t, 300*time.Millisecond))
		defer cancel()
		_, err := s.CreateTrait(ctx, fmt.Sprint("CUSTOM_PROBE_", tries))
		return errors.Is(err, problem.ErrOutcomeUnknown)
	})
	ctx, cancel := context.WithCancel(storetest.AsAdmin())
	go func() {
		defer cancel()
		patience.Until(t, time.Second, func() (waits bool) { // one more COMMIT than the last probe's
			_ = db.QueryRow("SELECT count(*) > 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&waits)
			return waits
		})
	}()
	if _, err := s.CreateTrait(ctx, "CUSTOM_LATE"); !errors.Is(err, problem.ErrOutcomeUnknown) {
		t.Errorf("the COMMIT waits, and the writer got %v", err)
	}
	visible := func() (found int, err error) {
		err = db.QueryRow("SELECT count(*) FROM traits WHERE name IN ('CUSTOM_LATE', $1)",
			fmt.Sprint("CUSTOM_PROBE_", tries)).Scan(&found)
		return found, err
	}
	if found, err := visible(); err != nil || found > 0 {
		t.Errorf("%d rows are visible before their standby has them, %v", found, err)
	}
	storetest.AlterSystem(t, url, "synchronous_standby_names", "")
	storetest.Within(t, 20*time.Second, "the change is visible", func() bool {
		found, err := visible()
		return err == nil && found == 2
	})
}
