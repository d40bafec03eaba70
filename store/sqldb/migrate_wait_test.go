package sqldb_test

import (
	"context"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAServerThatWaitsForMigrationsKeepsNoSnapshot builds an index as a server
// does that migrates, while another server waits for it. The index waits for all
// snapshots, so each would wait for the other indefinitely.
func TestAServerThatWaitsForMigrationsKeepsNoSnapshot(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	db := storetest.Database(t, url)
	migrating, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = migrating.Rollback() }()
	if _, err := migrating.Exec("SELECT pg_advisory_xact_lock(4097083626)"); err != nil { // without a portal
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := store.Open(t.Context(), store.Options{URL: url})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	storetest.Within(t, 20*time.Second, "the server waits for the migrations", func() bool {
		var waiting int
		err := db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND xact_start IS NOT NULL AND query LIKE 'SELECT pg%advisory_xact_lock(4097083626)'`).Scan(&waiting)
		return err == nil && waiting == 2 // this test, too
	})
	ctx, stop := context.WithTimeout(t.Context(), patience.Of(t, 10*time.Second))
	defer stop()
	if _, err := db.ExecContext(ctx, "CREATE INDEX CONCURRENTLY traits_again ON traits (name)"); err != nil {
		t.Errorf("the index waits for the server: %v", err)
	}
	if err := migrating.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
