package placementdb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/placement/placementtest"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// FillPlacement writes complete providers and claims, with the names that they
// use, in one transaction.
func (s *PlacementStore) FillPlacement(ctx context.Context, names placement.Names,
	providers []placement.Provider, claims []placement.Claim) error {
	return s.Fill(ctx, func(tx *sqldb.Tx) error {
		s.PublishAll(tx)
		if err := s.InsertTraits(ctx, tx, names.Traits, false); err != nil {
			return err
		}
		if err := s.InsertResourceClasses(ctx, tx, names.ResourceClasses, false); err != nil {
			return err
		}
		if err := s.InsertProviders(ctx, tx, providers); err != nil {
			return err
		}
		return s.InsertClaims(ctx, tx, claims)
	})
}

// WorldDifference describes how the world in memory differs from a freshly
// loaded one; "" if they are equal.
func (s *PlacementStore) WorldDifference(ctx context.Context) (string, error) {
	fresh := &PlacementStore{DB: s.DB}
	if _, err := fresh.loadWorld(ctx); err != nil {
		return "", err
	}
	return placementtest.Difference(s.cache.World(), fresh.cache.World()), nil
}

// DeletedElsewhere deletes a provider as another process would and reloads the
// world. Then it publishes the earlier commit that created the provider.
func (s *PlacementStore) DeletedElsewhere(ctx context.Context, uuid string) error {
	provider, _ := s.cache.World().Provider(uuid)
	late := ownCommit{transaction: changelog.TransactionID{Server: s.cache.UpTo().Server},
		created: []providerState{{Provider: *provider}}}
	err := s.Query(ctx, s.Pool, `SELECT max("transaction") FROM changes WHERE key = $1`,
		func(rows *sql.Rows) error { return rows.Scan(&late.transaction.Number) }, uuid)
	if err != nil {
		return err
	}
	if err := s.Execute(ctx, s.Pool, `DELETE FROM resource_providers WHERE uuid = $1`, uuid); err != nil {
		return err
	}
	load := func() error {
		_, err := s.loadWorld(ctx)
		return err
	}
	if s.follower != nil { // no catch up may run in between
		err = s.follower.exclusively(ctx, load)
	} else {
		err = load()
	}
	if err != nil {
		return err
	}
	if !s.cache.ApplyIfComplete(&late) {
		return errors.New("the world does not know the commit that created the provider")
	}
	return nil
}

// Misused counts inventories whose stored use differs from the sum of their
// allocations.
func (s *PlacementStore) Misused(ctx context.Context) (n int, err error) {
	rows, err := s.Pool.QueryContext(ctx,
		`SELECT COUNT(*) FROM inventories i WHERE i.used <> (SELECT COALESCE(SUM(a.used), 0) FROM allocations a
		WHERE a.provider_id = i.provider_id AND a.resource_class_id = i.resource_class_id)`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	rows.Next()
	return n, rows.Scan(&n)
}

// PlanOfListed returns PostgreSQL's plan for a query of providers by a list of
// uuids in a large table.
func (s *PlacementStore) PlanOfListed(ctx context.Context) (string, error) {
	err := s.Execute(ctx, s.Pool, `INSERT INTO resource_providers (uuid, name, generation, version, created_at, updated_at)
		SELECT n::text, n::text, 0, 0, now(), now() FROM generate_series(1, 5000) AS n`)
	if err == nil {
		err = s.Execute(ctx, s.Pool, `ANALYZE resource_providers`)
	}
	if err != nil {
		return "", err
	}
	plan := ""
	err = s.Query(ctx, s.Pool, `EXPLAIN SELECT id FROM resource_providers WHERE `+
		s.Listed("uuid", "'[\"1\", \"2\"]'", "text"), func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		plan += line + "\n"
		return err
	})
	return plan, err
}

// DecideTogether queues the claims of calls in order, until one transaction
// takes them all.
func (s *PlacementStore) DecideTogether(t testing.TB, calls ...func()) {
	t.Helper()
	q := &s.claims
	others := max(1, q.atOnce)
	q.running = others // as if transactions ran, so that none starts
	var working sync.WaitGroup
	for i, call := range calls {
		working.Go(call)
		if !patience.Until(t, 10*time.Second, func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			return len(q.waiting) == i+1
		}) {
			t.Fatalf("call %d does not wait", i)
		}
	}
	q.next()
	working.Wait()
	q.running -= others - 1
}

// PanicInAWrite panics in a transaction and recovers.
func (s *PlacementStore) PanicInAWrite(ctx context.Context) {
	defer func() { _ = recover() }()
	_ = s.Write(ctx, "createTrait", func(*sqldb.Tx) error { panic("in the midst of a write") })
}

// InstantDifference describes how the world of an instant differs from the
// database at that instant; "" if they are equal.
func (s *PlacementStore) InstantDifference(ctx context.Context) (string, error) {
	ctx, reading := s.WithReading(ctx, sqldb.AtOnce)
	defer reading.End()
	reading.Spread()
	world, err := s.World(ctx)
	if err != nil {
		return "", err
	}
	everything, err := s.readEverything(ctx, s.Pool, changelog.Snapshot{}, func() {})
	if err != nil {
		return "", err
	}
	return placementtest.Difference(world, everything.world()), nil
}

// ProviderVersions returns the version of each provider by uuid. It also
// returns the uuids of the providers noted in the change log after a row id,
// and the last row id.
func (s *PlacementStore) ProviderVersions(ctx context.Context,
	after int64) (versions map[string]int64, noted map[string]bool, last int64, err error) {
	versions, noted, last = map[string]int64{}, map[string]bool{}, after
	err = s.Query(ctx, s.Pool, `SELECT uuid, version FROM resource_providers`, func(rows *sql.Rows) error {
		var uuid string
		var version int64
		err := rows.Scan(&uuid, &version)
		versions[uuid] = version
		return err
	})
	if err != nil {
		return nil, nil, 0, err
	}
	err = s.Query(ctx, s.Pool, `SELECT id, kind, key FROM changes WHERE id > $1 ORDER BY id`,
		func(rows *sql.Rows) error {
			var kind, key string
			err := rows.Scan(&last, &kind, &key)
			if kind == providerKind {
				noted[key] = true
			}
			return err
		}, after)
	return versions, noted, last, err
}

// SweepRefusals deletes old refusals of places.
func (s *PlacementStore) SweepRefusals(ctx context.Context) error { return s.sweepRefusals(ctx) }

// StopReleasing stops the release of ended holds.
func (s *PlacementStore) StopReleasing() { s.stopReleasing() }

// ReleaseEnded releases all consumers whose hold has ended.
func (s *PlacementStore) ReleaseEnded(ctx context.Context) error {
	_, err := s.releaseEnded(ctx)
	return err
}

// Listening reports whether notifications of other servers arrive.
func (s *PlacementStore) Listening() bool { return s.follower.listening.Load() }

// AuditAllocations makes events of consumers show them before and after.
func (s *PlacementStore) AuditAllocations() { s.auditAllocations = true }
