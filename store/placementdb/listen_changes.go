package placementdb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// applyChanges brings the world up to what was noted by transactions from since
// on, and gives the transaction to begin with next time.
func (s *PlacementStore) applyChanges(ctx context.Context, since int64) (next int64, err error) {
	// Names have no versions: none may be written here until these are applied.
	s.resident.naming.Lock()
	defer s.resident.naming.Unlock()
	held := s.resident.world.Load()
	var n news
	var of noted
	err = s.Snapshot(ctx, func(on sqldb.Conn) (err error) {
		if next, err = s.OldestTransaction(ctx, on); err != nil {
			return err
		}
		if of, err = s.readNoted(ctx, on, since, held); err != nil {
			return err
		}
		if of.names {
			if err := s.readNamesInto(ctx, on, &n, held.Names()); err != nil {
				return err
			}
		}
		if len(of.stale) > 0 {
			n.states, err = s.readProviders(ctx, on, of.stale, func() {})
		}
		return err
	})
	if err == nil && len(of.absent) > 0 {
		n.deleted, err = s.confirmDeleted(ctx, of.absent)
	}
	if err != nil {
		return 0, fmt.Errorf("read what other servers changed: %w", err)
	}
	if of.names || len(n.states)+len(n.deleted) > 0 {
		s.resident.apply(n)
	}
	return next, nil
}

// noted is what transactions left notes of.
type noted struct {
	names  bool     // names came or went
	stale  []int64  // rows of providers that the world has older, or not at all
	absent []string // uuids of providers that are not there
}

// readNoted reads the notes of transactions from since on.
func (s *PlacementStore) readNoted(ctx context.Context, on sqldb.Conn, since int64, held *placement.World) (of noted, err error) {
	err = s.Query(ctx, on, `SELECT c.kind, c.key, COALESCE(p.id, 0), COALESCE(p.version, 0)
		FROM (SELECT DISTINCT kind, key FROM changes WHERE "transaction" >= $1 AND kind IN ('ResourceProvider', 'Trait', 'ResourceClass')) AS c
		LEFT JOIN resource_providers p ON p.uuid = c.key AND c.kind = 'ResourceProvider' `, func(rows *sql.Rows) error {
		var kind, uuid string
		var id, version int64
		if err := rows.Scan(&kind, &uuid, &id, &version); err != nil {
			return err
		}
		provider, found := held.Provider(uuid)
		switch {
		case kind != "ResourceProvider":
			of.names = true
		case id == 0:
			of.absent = append(of.absent, uuid)
		case !found || provider.Version < version || s.resident.row(uuid) != id:
			of.stale = append(of.stale, id)
		}
		return nil
	}, since)
	return of, err
}

// confirmDeleted gives those rows of the world's providers that are gone for
// good. A provider that a look missed can also have been created after it, by
// this process; but a row that the world has was committed, and does not come
// back once it is gone.
func (s *PlacementStore) confirmDeleted(ctx context.Context, uuids []string) ([]deletedRow, error) {
	var ids []int64
	rows := map[int64]string{}
	for _, uuid := range uuids {
		if id := s.resident.row(uuid); id != 0 {
			ids, rows[id] = append(ids, id), uuid
		}
	}
	err := s.Query(ctx, s.Pool, `SELECT id FROM resource_providers WHERE `+s.Listed("id", "$1", "bigint"), func(found *sql.Rows) error {
		var id int64
		err := found.Scan(&id)
		delete(rows, id)
		return err
	}, sqldb.JSONOf(ids))
	var deleted []deletedRow
	for id, uuid := range rows {
		deleted = append(deleted, deletedRow{id: id, uuid: uuid})
	}
	return deleted, err
}

// readNamesInto notes how the names that exist differ from those held.
func (s *PlacementStore) readNamesInto(ctx context.Context, on sqldb.Conn, n *news, held placement.Names) error {
	there, err := s.readNames(ctx, on)
	if err != nil {
		return err
	}
	n.added = placement.Names{Traits: sqldb.Without(there.Traits, held.Traits), ResourceClasses: sqldb.Without(there.ResourceClasses, held.ResourceClasses)}
	n.removed = placement.Names{Traits: sqldb.Without(held.Traits, there.Traits), ResourceClasses: sqldb.Without(held.ResourceClasses, there.ResourceClasses)}
	return nil
}
