package textindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"entgo.io/ent/dialect"
	"github.com/lib/pq"
)

// Create creates missing trigram indexes and repairs broken ones. It
// runs at every start, after the migrations and under their lock, since on
// PostgreSQL the required extension may be installed later than the tables.
// Without the extension searches scan all rows, and the log explains how to
// install it.
func Create(ctx context.Context, pool *sql.DB, dialectName string, log *slog.Logger) error {
	makeAll := makeTrigramsSQLite
	if dialectName == dialect.Postgres {
		makeAll = makeTrigramsPostgres
	}
	if err := makeAll(ctx, pool, log); err != nil {
		return fmt.Errorf("create the search indexes: %w", err)
	}
	return nil
}

// makeTrigramsSQLite recreates each trigram table that is missing or lacks a
// trigger, and sets automerge on all. A migration that rebuilds a searched table
// drops its triggers.
func makeTrigramsSQLite(ctx context.Context, pool *sql.DB, log *slog.Logger) error {
	for _, of := range searchedTexts() {
		create, there := of.createTrigrams(), 0
		for _, statement := range create {
			var is int
			if err := pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE sql = ?", statement).
				Scan(&is); err != nil {
				return err
			}
			there += is
		}
		if began := time.Now(); there < len(create) {
			if err := makeTrigramsOf(ctx, pool, of); err != nil {
				return fmt.Errorf("trigram index of %s: %w", of.table, err)
			}
			logMade(ctx, log, of, time.Since(began))
		}
		if _, err := pool.ExecContext(ctx, of.mergeTrigrams()); err != nil {
			return fmt.Errorf("trigram index of %s: %w", of.table, err)
		}
	}
	return nil
}

// makeTrigramsOf recreates and fills a trigram table, with its triggers, in one
// transaction.
func makeTrigramsOf(ctx context.Context, pool *sql.DB, of SearchedText) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var statements []string
	for _, event := range []string{"insert", "delete", "update"} {
		statements = append(statements, "DROP TRIGGER IF EXISTS "+of.index()+"_"+event)
	}
	statements = append(statements, "DROP TABLE IF EXISTS "+of.index())
	statements = append(statements, of.createTrigrams()...)
	for _, statement := range append(statements, of.fillTrigrams()) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), tx.Rollback())
		}
	}
	return tx.Commit()
}

// soonMade is the duration below which creating an index is not logged.
const soonMade = time.Second

func logMade(ctx context.Context, log *slog.Logger, of SearchedText, took time.Duration) {
	if took >= soonMade {
		log.InfoContext(ctx, "created a search index", "index", of.index(), "took",
			took.Round(time.Millisecond).String())
	}
}

// makeTrigramsPostgres creates the trigram indexes if the extension exists or
// can be created. It logs errors of the database, and the server runs without
// the index.
func makeTrigramsPostgres(ctx context.Context, pool *sql.DB, log *slog.Logger) error {
	schema, err := extensionSchema(ctx, pool)
	var refused *pq.Error
	if errors.As(err, &refused) {
		log.WarnContext(ctx, "substring searches read every row: the extension pg_trgm is missing", "error",
			refused.Message, "remedy", remedy(ctx, pool))
		return nil
	}
	if err != nil {
		return err
	}
	for _, of := range searchedTexts() {
		err := makeTrigramIndex(ctx, pool, log, schema, of)
		if errors.As(err, &refused) {
			log.WarnContext(ctx, "substring searches read every row of "+of.table+": the index cannot be created",
				"error", refused.Message,
				"remedy",
				fmt.Sprintf("fix the error and restart a server, which creates the index; or run as the owner of the table: CREATE INDEX CONCURRENTLY %s", of.createIndex(schema)))
			continue
		}
		if err != nil {
			return fmt.Errorf("trigram index of %s: %w", of.table, err)
		}
	}
	return nil
}

// remedy explains how to install the extension.
func remedy(ctx context.Context, pool *sql.DB) string {
	var database, role string
	var available, may bool
	err := pool.QueryRowContext(ctx, `SELECT current_database(), current_user, EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'),
		has_database_privilege(current_database(), 'CREATE')`).Scan(&database, &role, &available, &may)
	text := "restart a server, which then creates the indexes"
	if err == nil && !may {
		text = fmt.Sprintf("as the owner of the database, or as a superuser, run in the database %s: CREATE EXTENSION pg_trgm; "+
			"or GRANT CREATE ON DATABASE %s TO %s; then %s", pq.QuoteIdentifier(database), pq.QuoteIdentifier(database), pq.QuoteIdentifier(role), text)
	}
	if err == nil && !available {
		text = "install the extensions of PostgreSQL (package postgresql-contrib) on the database's machine; then " +
			text
	}
	return text
}

// extensionSchema returns the schema of the trigram extension, and creates the
// extension if missing. The extension belongs to the whole database, so it goes
// into the schema public if possible: other schemas may be dropped.
func extensionSchema(ctx context.Context, pool *sql.DB) (schema string, err error) {
	find := func() (string, error) {
		err := pool.QueryRowContext(ctx,
			`SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'`).Scan(&schema)
		return schema, err
	}
	if schema, err = find(); !errors.Is(err, sql.ErrNoRows) {
		return schema, err
	}
	err = pool.QueryRowContext(ctx,
		`SELECT COALESCE((SELECT nspname FROM pg_namespace WHERE nspname = 'public' AND has_schema_privilege(oid, 'USAGE')), current_schema())`).Scan(&schema)
	if err != nil {
		return "", err
	}
	_, err = pool.ExecContext(ctx, "CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA "+pq.QuoteIdentifier(schema))
	if found, again := find(); again == nil { // another server may have created it meanwhile
		return found, nil
	}
	return "", err
}

// fewRows is the table size up to which an index is created without
// CONCURRENTLY, which lets other servers write to larger tables meanwhile.
const fewRows = 10_000

// makeTrigramIndex creates a trigram index that is missing or invalid.
func makeTrigramIndex(ctx context.Context, pool *sql.DB, log *slog.Logger, schema string, of SearchedText) error {
	var valid bool
	err := pool.QueryRowContext(ctx, `SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE c.relname = $1 AND c.relnamespace = current_schema()::regnamespace`, of.index()).Scan(&valid)
	switch {
	case err == nil && valid:
		return nil
	case err == nil:
		if _, err := pool.ExecContext(ctx, "DROP INDEX CONCURRENTLY "+pq.QuoteIdentifier(of.index())); err != nil {
			return err
		}
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	var many bool
	if err := pool.QueryRowContext(ctx, fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM %s OFFSET %d)", of.table, fewRows)).
		Scan(&many); err != nil {
		return err
	}
	how, began := "CREATE INDEX ", time.Now()
	if many {
		how += "CONCURRENTLY "
	}
	if _, err := pool.ExecContext(ctx, how+of.createIndex(schema)); err != nil {
		return err
	}
	logMade(ctx, log, of, time.Since(began))
	return nil
}
