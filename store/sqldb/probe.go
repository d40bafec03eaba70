package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"

	"entgo.io/ent/dialect"
)

// errUnfit means that a database does not keep the order of transactions that
// claims, the feed and the copies in memory rely on.
var errUnfit = errors.New("the database is not suitable for Cadastre")

// probe finds out with two connections whether a PostgreSQL database excludes
// holders of an advisory lock, shows them, and numbers transactions so that
// snapshots can be compared. Engines that only speak its protocol may not.
func (d *Database) probe(ctx context.Context, pool *sql.DB) (err error) {
	if d.dialectName != dialect.Postgres {
		return nil
	}
	var connections [2]*sql.Tx
	for i := range connections {
		if connections[i], err = pool.BeginTx(ctx, nil); err != nil {
			return fmt.Errorf("probe the database: %w", err)
		}
		defer func() { err = errors.Join(err, connections[i].Rollback()) }()
	}
	one, other := connections[0], connections[1]
	lock := 1<<30 + rand.Int32N(1<<30) // of this probe alone
	var began, began2 int64
	var isGiven, isShown, isOver bool
	err = one.QueryRowContext(ctx,
		`SELECT pg_current_xact_id()::text::bigint FROM (SELECT pg_advisory_xact_lock($1::bigint)) AS held`, lock).
		Scan(&began)
	if err == nil {
		err = other.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock($1::bigint), EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1::bigint::oid AND granted),
			pg_visible_in_snapshot($2::text::xid8, pg_current_snapshot()), pg_current_xact_id()::text::bigint`, lock,
			fmt.Sprint(began)).Scan(&isGiven, &isShown, &isOver, &began2)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: it lacks a function of PostgreSQL: %w", errUnfit, err)
	case isGiven:
		return fmt.Errorf("%w: it grants one advisory lock to two connections", errUnfit)
	case !isShown:
		return fmt.Errorf("%w: pg_locks does not show a lock that is held", errUnfit)
	case isOver || began2 <= began:
		return fmt.Errorf("%w: its snapshots do not show which transactions run", errUnfit)
	}
	return nil
}
