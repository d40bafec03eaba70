package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"entgo.io/ent/dialect"
	"github.com/google/uuid"
	"github.com/lib/pq/pqerror"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cadastre-dev/cadastre/problem"
)

// fault is an operational problem that the database reports. Clients see its
// text, so it must not reveal internals.
type fault string

// The faults of a database.
const (
	unreachable  fault = "the database cannot be reached"
	full         fault = "the database has no space left"
	readOnly     fault = "the database is read-only"
	unprivileged fault = "the server lacks privileges in the database"
	badStorage   fault = "the database cannot read or write its storage"
	vanished     fault = "the database file was removed or replaced"
)

// again returns how long clients should wait before they retry.
func (f fault) again() time.Duration {
	if f == unreachable {
		return retryAfter
	}
	return retryAfterMended
}

// refuse returns the refusal of an operation that failed because of the fault.
func (f fault) refuse(cause error) *problem.Refusal {
	return problem.Refuse(problem.ErrUnavailable, "%s, try again", f).After(f.again()).Because(cause)
}

// errVanished means that the database file was removed or replaced while open.
var errVanished = errors.New("the database file, or its log, is not the one that was opened")

// faultOf returns the fault behind a driver's error, or "".
func faultOf(err error) fault {
	postgres, lite := codesOf(err)
	switch postgres {
	case pqerror.InsufficientPrivilege:
		return unprivileged
	case pqerror.ReadOnlySQLTransaction:
		return readOnly
	case pqerror.DiskFull:
		return full
	}
	switch {
	case postgres != "" && postgres.Class() == "58" ||
		postgres == pqerror.DataCorrupted || postgres == pqerror.IndexCorrupted:
		return badStorage
	case isUnreachable(err):
		return unreachable
	}
	switch lite & 0xff {
	case sqlite3.SQLITE_FULL:
		return full
	case sqlite3.SQLITE_READONLY:
		return readOnly
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return badStorage
	}
	switch {
	case errors.Is(err, errVanished):
		return vanished
	case errors.Is(err, errPast), errors.Is(err, errNoPrimary):
		return unreachable
	}
	return ""
}

// refusedToBegin is Refused for a write transaction. A standby refuses to begin
// one, with the code for an unsupported feature.
func refusedToBegin(err error) error {
	if postgres, _ := codesOf(err); postgres == pqerror.FeatureNotSupported {
		return readOnly.refuse(err)
	}
	return Refused(err)
}

// refusedPing converts an error of a ping into the refusal of its fault; an error
// without a fault counts as unreachable.
func refusedPing(err error) error {
	if fault := faultOf(err); fault != "" {
		return fault.refuse(err)
	}
	if err != nil {
		return unreachable.refuse(err)
	}
	return nil
}

// health is the last known state of the database for writes.
type health struct {
	mu     sync.Mutex
	failed fault     // of the last write transaction, empty if it was committed
	asked  time.Time // when tryToWrite last ran
}

// note records the outcome of a write transaction: nil or a fault. It ignores
// unreachable and errors without a fault.
func (h *health) note(err error) {
	fault := fault("")
	if err != nil {
		if fault = faultOf(err); fault == "" || fault == unreachable {
			return // a ping finds out whether the database can be reached
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = fault
}

// betweenTries is the minimum time between two trial writes.
const betweenTries = time.Second

// mayTry returns the fault of the last write transaction, and whether the
// caller may try a write now, to see if the fault persists.
func (h *health) mayTry() (failed fault, may bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	may = h.failed != "" && now.Sub(h.asked) >= betweenTries
	if may {
		h.asked = now
	}
	return h.failed, may
}

// CheckWritable returns a refusal if the database cannot be written: it is
// read-only, the role lacks privileges on tables, the database file is gone, or
// the last write transaction failed for lack of space or because of broken
// storage. In the last case it tries a small write, so that the state recovers
// without a restart.
func (d *DB) CheckWritable(ctx context.Context) error {
	if d.Postgres() {
		if err := d.checkPostgresWritable(ctx); err != nil {
			return err
		}
	} else if err := d.Pool.file.check(); err != nil {
		return vanished.refuse(err)
	}
	failed, may := d.health.mayTry()
	if may {
		err := d.tryToWrite(ctx)
		if d.health.note(err); err != nil {
			d.Log.WarnContext(ctx, "the database cannot be written", "error", err)
		}
		failed, _ = d.health.mayTry()
	}
	if failed != "" {
		return failed.refuse(nil)
	}
	return nil
}

// checkPostgresWritable returns a refusal if the server is a standby or read-only,
// or if the role lacks privileges on tables.
func (d *DB) checkPostgresWritable(ctx context.Context) error {
	setting := ""
	err := d.followerQuery(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN 'on' ELSE `+readOnlySetting+` END`,
		func(rows *sql.Rows) error { return rows.Scan(&setting) })
	if err != nil {
		return err
	}
	if setting == "on" {
		d.Pool.history.renew()
		return readOnly.refuse(nil)
	}
	lacking, err := d.lackingPrivileges(ctx)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		return unprivileged.refuse(errors.New(privilegesText("", lacking)))
	}
	return nil
}

// followerQuery runs a query on the follower pool, which requests do not use.
func (d *DB) followerQuery(ctx context.Context, query string, scan func(*sql.Rows) error, args ...any) error {
	return Refused(d.Query(ctx, d.Pool.followers, query, scan, args...))
}

// triedBytes is the size of a trial write. It is more than a page, to detect a
// full disk.
const triedBytes = 32 << 10

// tryToWrite inserts an expired idempotency key and deletes it.
func (d *DB) tryToWrite(ctx context.Context) error {
	release, err := d.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := d.Pool.file.check(); err != nil {
		return err
	}
	name, text := uuid.NewString(), strings.Builder{}
	for text.Len() < triedBytes { // random, so that it cannot be compressed
		text.WriteString(uuid.NewString())
	}
	for _, statement := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO idempotency_keys (request, field, step, fingerprint, project_id, outcome, created_at) VALUES ($1, 'try', '', '', '', $2, $3)`,
			[]any{name, text.String(), d.Now().Add(-2 * keepKeys)}},
		{`DELETE FROM idempotency_keys WHERE request = $1`, []any{name}},
	} {
		if _, err := d.Pool.writer.ExecContext(ctx, d.statement(statement.text), statement.args...); err != nil {
			return err
		}
	}
	return nil
}

// explainRole adds advice to the error of a migration, if the role lacks
// privileges or the database is read-only.
func explainRole(err error) error {
	switch faultOf(err) {
	case unprivileged:
		return fmt.Errorf("%w; a migration requires the role that owns the tables: start once with that role, "+
			"or grant this role CREATE on the schema of an empty database", err)
	case readOnly:
		return fmt.Errorf("%w; use a database that accepts writes, such as the primary of this standby", err)
	}
	return err
}

// checkPrivileges returns an error with the privileges that the PostgreSQL role
// lacks and the statements that grant them.
func (d *DB) checkPrivileges(ctx context.Context) error {
	if d.Pool.dialectName != dialect.Postgres {
		return nil
	}
	lacking, err := d.lackingPrivileges(ctx)
	if err != nil {
		return fmt.Errorf("look up privileges: %w", err)
	}
	if len(lacking) == 0 {
		return nil
	}
	role := ""
	if err := d.followerQuery(ctx, `SELECT quote_ident(current_user)`, func(rows *sql.Rows) error {
		return rows.Scan(&role)
	}); err != nil {
		return fmt.Errorf("look up privileges: %w", err)
	}
	return errors.New(privilegesText(role, lacking))
}

// schemaTables are the names of all tables, each after the tables that it refers
// to.
const schemaTables = `resource_types namespaces namespace_members object_definitions property_definitions tags
	resource_type_associations unloaded_namespaces capabilities resources metadata_items resource_tags capability_values
	capability_members capability_counts resource_origins syncs traits resource_classes resource_providers inventories
	provider_traits provider_aggregates consumers allocations project_limits place_refusals capacity_buckets audit_events changes idempotency_keys sealing_keys`

// TableNames returns the names of all tables, each after the tables that it refers
// to.
func TableNames() []string { return strings.Fields(schemaTables) }

// lackingPrivilege is a missing privilege and the tables that it is missing on.
type lackingPrivilege struct{ privilege, tables string }

// lackingPrivileges returns the missing privileges, in the order SELECT,
// INSERT, UPDATE, DELETE.
func (d *DB) lackingPrivileges(ctx context.Context) (lacking []lackingPrivilege, err error) {
	err = d.followerQuery(ctx, `SELECT p.privilege, string_agg(quote_ident(t.name), ', ' ORDER BY t.name)
		FROM (SELECT jsonb_array_elements_text($1::jsonb) AS name) AS t
		CROSS JOIN (VALUES (1, 'SELECT'), (2, 'INSERT'), (3, 'UPDATE'), (4, 'DELETE')) AS p (number, privilege)
		WHERE NOT coalesce(has_table_privilege(to_regclass(quote_ident(t.name)), p.privilege), true)
		GROUP BY p.number, p.privilege ORDER BY p.number`, func(rows *sql.Rows) error {
		var one lackingPrivilege
		err := rows.Scan(&one.privilege, &one.tables)
		lacking = append(lacking, one)
		return err
	}, JSONOf(TableNames()))
	return lacking, err
}

// privilegesText lists the missing privileges. If role is not empty, it adds
// the statements that grant them.
func privilegesText(role string, lacking []lackingPrivilege) string {
	var what, grants []string
	for _, one := range lacking {
		what = append(what, one.privilege+" on "+one.tables)
		grants = append(grants, fmt.Sprintf("GRANT %s ON %s TO %s;", one.privilege, one.tables, role))
	}
	text := "the database role lacks privileges: " + strings.Join(what, "; ")
	if role == "" {
		return text
	}
	return fmt.Sprintf("the database role %s lacks privileges: %s. The owner of the tables grants them: %s", role,
		strings.Join(what, "; "), strings.Join(grants, " "))
}
