package placementdb_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAPanicInAWriteLeavesNoTransaction panics in more writes than there are
// connections, in a context that is not canceled. The next write must not
// block.
func TestAPanicInAWriteLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithTimeout(storetest.AsAdmin(), patience.Of(t, 5*time.Second))
		defer cancel()
		for range 25 {
			s.PanicInAWrite(ctx)
		}
		if _, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: "N"}); err != nil {
			t.Error(err)
		}
	})
}

// lockedTable locks a table in a transaction. The function awaited reports
// whether another statement waits for the table.
func lockedTable(t *testing.T, url, table, mode string) (tx *sql.Tx, awaited func() bool) {
	t.Helper()
	tx, err := storetest.Database(t, url).Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.Exec(`LOCK TABLE ` + table + ` IN ` + mode + ` MODE`); err != nil {
		t.Fatal(err)
	}
	return tx, func() (waits bool) {
		err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = $1::regclass AND NOT granted)`,
			table).Scan(&waits)
		return err == nil && waits
	}
}

// TestATypeIsRenamedWhileItIsAssociated renames a resource type after an
// association has looked it up, and before it refers to the type.
func TestATypeIsRenamedWhileItIsAssociated(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	s := storetest.Open(t, url)
	if _, err := s.CreateNamespace(storetest.AsAdmin(), metadef.NamespaceInput{Name: "N"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateResourceType(storetest.AsAdmin(), "before", false, false); err != nil {
		t.Fatal(err)
	}
	held, awaited := lockedTable(t, url, "resource_type_associations", "SHARE")
	type answer struct {
		made *metadef.ResourceTypeAssociation
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		made, _, err := s.AssociateResourceType(storetest.AsAdmin(), metadef.NewAssociation{Namespace: "N",
			DocumentAssociation: metadef.DocumentAssociation{ResourceType: "before"}})
		answers <- answer{made, err}
	}()
	storetest.Within(t, 5*time.Second, "waiting for the table", awaited)
	name := "after"
	if _, err := s.UpdateResourceType(storetest.AsAdmin(),
		metadef.ResourceTypeChange{Name: "before",
			NewName: metadef.Change[*string]{Set: true, Value: &name}}); err != nil {
		t.Fatal(err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := <-answers; got.err != nil || got.made.ResourceTypeName != "after" {
		t.Errorf("got %+v, %v", got.made, got.err)
	}
}

// TestAProviderThatTheWorldLacksIsReadAtOneInstant changes another process's
// provider between the statements that read it.
func TestAProviderThatTheWorldLacksIsReadAtOneInstant(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	s := storetest.Open(t, url)
	held, awaited := lockedTable(t, url, "provider_traits", "ACCESS EXCLUSIVE")
	db := storetest.Database(t, url)
	if _, err := db.Exec(`WITH created AS (INSERT INTO resource_providers (uuid, name, generation, version, created_at, updated_at)
			VALUES ($1, 'of another process', 0, 0, now(), now()))
		INSERT INTO changes ("transaction", kind, key, created_at)
			VALUES (pg_current_xact_id()::text::bigint, 'ResourceProvider', $1, now())`,
		storetest.UUID(1)); err != nil {
		t.Fatal(err)
	}
	worlds := make(chan *placement.World, 1)
	go func() {
		world, err := worldAtOnce(s)
		if err != nil {
			t.Error(err)
		}
		worlds <- world
	}()
	storetest.Within(t, 5*time.Second, "waiting for the table", awaited)
	for _, statement := range []string{
		`INSERT INTO provider_aggregates (provider_id, aggregate) SELECT id, uuid FROM resource_providers`,
		`UPDATE resource_providers SET generation = 1, version = 1`,
	} {
		if _, err := held.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := held.Commit(); err != nil {
		t.Fatal(err)
	}
	provider, found := (<-worlds).Provider(storetest.UUID(1))
	if !found || int(provider.Generation) != len(provider.Aggregates) {
		t.Errorf("got %+v: one half of a write", provider)
	}
}

// worldAtOnce returns the world at one instant of the database.
func worldAtOnce(s *store.Store) (*placement.World, error) {
	ctx, reading := s.WithReading(storetest.AsAdmin(), store.AtOnce)
	defer reading.End()
	return s.World(ctx)
}

// TestAConsumerThatIsHiddenMeanwhileStays lets members claim a consumer of their
// project while a transaction moves it to another project.
func TestAConsumerThatIsHiddenMeanwhileStays(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	s := storetest.Open(t, url)
	host, consumer := storetest.UUID(1), storetest.UUID(2)
	storetest.RoomyProvider(t, s, host)
	if _, err := s.SetAllocations(storetest.AsAdmin(), claimOne(host, consumer)); err != nil {
		t.Fatal(err)
	}
	for field, write := range map[string]func(context.Context) error{
		"deleteAllocations": func(ctx context.Context) error { _, err := s.DeleteAllocations(ctx, consumer); return err },
		"confirmAllocations": func(ctx context.Context) error {
			_, err := s.ConfirmAllocations(ctx, placement.Confirmation{Consumers: []string{consumer}})
			return err
		},
		"reshape": func(ctx context.Context) error {
			_, _, _, err := s.Reshape(ctx, placement.Reshape{
				Inventories: []placement.ProviderInventories{{Provider: host}},
				Consumers:   []placement.ConsumerClaim{{UUID: consumer, ProjectID: "p", UserID: "u"}}})
			return err
		},
	} {
		policy, err := access.NewPolicy(map[string][]string{field: {access.RoleMember}})
		if err != nil {
			t.Fatal(err)
		}
		db := storetest.Database(t, url)
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`UPDATE consumers SET project_id = 'q'`); err != nil {
			t.Fatal(err)
		}
		answers := make(chan error, 1)
		go func() {
			answers <- write(access.WithViewer(context.Background(), access.Viewer{UserID: "u", ProjectID: "p",
				Roles: []string{access.RoleMember}}.WithPolicy(policy)))
		}()
		storetest.Within(t, 5*time.Second, "waiting for the consumer", func() (waits bool) {
			err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM pg_stat_activity
				WHERE wait_event_type = 'Lock' AND datname = current_database())`).Scan(&waits)
			return err == nil && waits
		})
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-answers; !errors.Is(err, problem.ErrNotFound) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := db.Exec(`UPDATE consumers SET project_id = 'p'`); err != nil {
			t.Fatal(err)
		}
	}
}
