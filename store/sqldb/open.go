package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"github.com/gofrs/flock"
	"github.com/lib/pq"
	_ "modernc.org/sqlite"
)

// StatementTimeout bounds every statement in the database itself.
const StatementTimeout = 10 * time.Second

// Sizes of the connection pools. SQLite has one writer; readers do not wait for
// it.
const (
	postgresConnections = 20
	idleConnections     = 10
	followerConnections = 2
)

// openDatabase opens what a database URL names: sqlite://PATH or
// postgres://... . The lock is held on a SQLite file, which belongs to one
// program, and is nil on PostgreSQL.
func openDatabase(ctx context.Context, databaseURL string, unprepared bool) (*Database, *flock.Flock, error) {
	scheme, rest, found := strings.Cut(databaseURL, "://")
	switch {
	case found && scheme == "sqlite" && rest != "":
		return openSQLite(ctx, rest)
	case found && (scheme == "postgres" || scheme == "postgresql"):
		db, err := openPostgres(ctx, databaseURL)
		if err == nil && !unprepared {
			db.prepared = &preparedStatements{uses: map[string]int{}, kept: map[string]*sql.Stmt{}}
		}
		return db, nil, err
	}
	return nil, nil, errors.New("a database is named as sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME")
}

func openSQLite(ctx context.Context, path string) (*Database, *flock.Flock, error) {
	lock := flock.New(path + ".lock")
	held, err := lock.TryLock()
	if err != nil {
		return nil, nil, fmt.Errorf("lock the database file %s: %w", path, err)
	}
	if !held {
		return nil, nil, fmt.Errorf("the database file %s is in use by another server; one SQLite file serves one server, use PostgreSQL for several", path)
	}
	db := &Database{dialectName: dialect.SQLite, path: path}
	if db.writer, err = openSQLitePool(path, 1, "foreign_keys(1)"); err != nil {
		return nil, nil, errors.Join(err, lock.Unlock())
	}
	if db.readers, err = openSQLitePool(path, 2*max(2, runtime.GOMAXPROCS(0)), "foreign_keys(1)", "query_only(1)"); err != nil {
		return nil, nil, errors.Join(err, db.writer.Close(), lock.Unlock())
	}
	db.followers = db.readers
	if err := db.writer.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database file %s: %w", path, err), db.Close(), lock.Unlock())
	}
	return db, lock, nil
}

// openSQLitePool opens a pool of connections with the settings that every
// connection needs, and those given: durability is less than full, and foreign
// keys are off, unless they are asked for.
func openSQLitePool(path string, connections int, pragmas ...string) (*sql.DB, error) {
	settings := url.Values{"_txlock": {"immediate"}, "_time_format": {"sqlite"}}
	pragmas = append([]string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-65536)", "temp_store(MEMORY)",
	}, pragmas...)
	for _, pragma := range pragmas {
		settings.Add("_pragma", pragma)
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: settings.Encode()}
	db, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// openPostgres opens a pool. Session settings travel in the start-up packet, so
// they cost no statement; parameters travel with their statement, in one round
// trip.
func openPostgres(ctx context.Context, databaseURL string) (*Database, error) {
	address, err := url.Parse(databaseURL)
	if err != nil {
		return nil, errors.New("the database URL cannot be read")
	}
	settings := address.Query()
	for name, value := range map[string]string{
		"application_name":              "cadastre",
		"binary_parameters":             "yes",
		"default_transaction_isolation": "read committed",
		"jit":                           "off", // compiling a large filter takes seconds, and running it less
		"statement_timeout":             fmt.Sprint(StatementTimeout.Milliseconds()),
		"timezone":                      "UTC",
	} {
		if !settings.Has(name) {
			settings.Set(name, value)
		}
	}
	address.RawQuery = settings.Encode()
	connector, err := pq.NewConnector(address.String())
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(postgresConnections)
	pool.SetMaxIdleConns(idleConnections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reach the database: %w", err), pool.Close())
	}
	followers := sql.OpenDB(connector)
	followers.SetMaxOpenConns(followerConnections)
	followers.SetConnMaxIdleTime(5 * time.Minute)
	return &Database{dialectName: dialect.Postgres, address: address.String(), writer: pool, readers: pool, followers: followers}, nil
}
