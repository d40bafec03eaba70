package sqldb

import (
	"cmp"
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

// StatementTimeout bounds what the server asks the database for itself, and the
// statements of requests unless Options.StatementTime does.
const StatementTimeout = 10 * time.Second

// Sizes of the connection pools. SQLite has one writer; readers do not wait for
// it.
const (
	// DefaultConnections is how many connections serve requests at most.
	DefaultConnections = 32
	// DefaultCacheBytes bounds what all connections to a SQLite file keep of it.
	DefaultCacheBytes   = 256 << 20
	idleConnections     = 10
	followerConnections = 2
)

// Places are how many operations may have a connection at once, so that none waits
// for one.
type Places struct {
	// Statements is for what is cheap and what writes.
	Statements int
	// Searches is for statements under Searching: at most half of the cores.
	Searches int
}

// sqliteConnections is how many connections to a SQLite file are of use, since
// what they do takes this process's cores.
func sqliteConnections() int { return 4 * max(2, runtime.GOMAXPROCS(0)) }

// placesFor returns how connections are divided.
func placesFor(connections int) Places {
	searches := max(1, runtime.GOMAXPROCS(0)/2)
	return Places{Statements: max(1, connections-searches), Searches: min(searches, max(1, connections/4))}
}

// CheckURL returns an error for a text that does not name a database:
// sqlite://PATH or postgres://... . It opens nothing.
func CheckURL(databaseURL string) error {
	path, err := parseURL(databaseURL)
	if err == nil && path == "" {
		_, err = postgresConfig(databaseURL)
	}
	return err
}

// parseURL returns the path of the SQLite file that a database URL names; it is
// empty for PostgreSQL.
func parseURL(databaseURL string) (path string, err error) {
	scheme, rest, found := strings.Cut(databaseURL, "://")
	switch {
	case found && scheme == "sqlite" && rest != "":
		return rest, nil
	case found && (scheme == "postgres" || scheme == "postgresql"):
		return "", nil
	}
	return "", errors.New("a database is named as sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE")
}

// openDatabase opens what a database URL names. The lock is held on a SQLite
// file, which belongs to one program, and is nil on PostgreSQL.
func openDatabase(ctx context.Context, options Options) (*Database, *flock.Flock, error) {
	path, err := parseURL(options.URL)
	connections := cmp.Or(options.Connections, DefaultConnections)
	places := placesFor(connections)
	switch {
	case err != nil:
		return nil, nil, err
	case path != "":
		return openSQLite(ctx, path, placesFor(min(connections, sqliteConnections())), cmp.Or(options.CacheBytes, DefaultCacheBytes))
	}
	db, err := openPostgres(ctx, options.URL, places, cmp.Or(options.StatementTime, StatementTimeout))
	if err == nil && !options.Unprepared {
		db.prepared = newPreparedStatements()
	}
	return db, nil, err
}

func openSQLite(ctx context.Context, path string, places Places, cacheBytes int64) (*Database, *flock.Flock, error) {
	lock := flock.New(path + ".lock")
	held, err := lock.TryLock()
	if err != nil {
		return nil, nil, fmt.Errorf("lock the database file %s: %w", path, err)
	}
	if !held {
		return nil, nil, fmt.Errorf("the database file %s is in use by another server; one SQLite file serves one server, use PostgreSQL for several", path)
	}
	if err := createPrivate(path); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("create the database file: %w", err), lock.Unlock())
	}
	file, err := identify(path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database file: %w", err), lock.Unlock())
	}
	db := &Database{dialectName: dialect.SQLite, path: path, file: file, places: places, prepared: newPreparedStatements()}
	readers := places.Statements + places.Searches + followerConnections + 1 // which stays open
	cache := fmt.Sprintf("cache_size(-%d)", max(1<<10, cacheBytes>>10/int64(1+readers)))
	if db.writer, err = openSQLitePool(file, 1, "foreign_keys(1)", cache); err != nil {
		return nil, nil, errors.Join(err, lock.Unlock())
	}
	if db.readers, err = openSQLitePool(file, readers, "foreign_keys(1)", "query_only(1)", cache); err != nil {
		return nil, nil, errors.Join(err, db.writer.Close(), lock.Unlock())
	}
	db.followers, db.searches = db.readers, db.readers
	if err := db.writer.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database file %s: %w", path, err), db.Close(), lock.Unlock())
	}
	return db, lock, nil
}

// openSQLitePool opens a pool of connections with the settings that every
// connection needs, and those given: durability is less than full, and foreign
// keys are off, unless they are asked for.
func openSQLitePool(of *sqliteFile, connections int, pragmas ...string) (*sql.DB, error) {
	settings := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_time_format": {"sqlite"}}
	pragmas = append([]string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "temp_store(MEMORY)",
	}, pragmas...)
	for _, pragma := range pragmas {
		settings.Add("_pragma", pragma)
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: of.path}).EscapedPath(), RawQuery: settings.Encode()}
	named, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(&sqliteConnector{named.Driver(), file.String(), of})
	if err := named.Close(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// postgresSettings are the settings of a PostgreSQL database.
type postgresSettings struct {
	pq.Config
	address string // the URL with the settings that it leaves open
	isTimed bool   // the URL itself says how long a statement may take
}

// postgresConfig returns the settings that a URL names, with those that it leaves
// open. Settings of a session travel in the start-up
// packet, so they cost no statement; parameters travel with their statement, in
// one round trip.
func postgresConfig(databaseURL string) (config postgresSettings, err error) {
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		return config, errors.New("the database URL cannot be read")
	}
	settings := parsed.Query()
	config.isTimed = settings.Has(timeoutSetting)
	for name, value := range map[string]string{
		"application_name":              "cadastre",
		"binary_parameters":             "yes",
		"default_transaction_isolation": "read committed",
		"jit":                           "off", // compiling a large filter takes seconds, and running it less
		timeoutSetting:                  fmt.Sprint(StatementTimeout.Milliseconds()),
		"timezone":                      "UTC",
	} {
		if !settings.Has(name) {
			settings.Set(name, value)
		}
	}
	parsed.RawQuery = settings.Encode()
	config.address = parsed.String()
	if config.Config, err = pq.NewConfig(config.address); err != nil {
		return config, fmt.Errorf("read the database URL: %w", err)
	}
	return config, nil
}

// timeoutSetting is the setting that ends a statement in PostgreSQL itself.
const timeoutSetting = "statement_timeout"

// openPostgres opens a pool for each class of statement: those of requests, which
// may take some time each, the searches among them, and what follows other
// servers. A time in the URL holds for all.
func openPostgres(ctx context.Context, databaseURL string, places Places, limit time.Duration) (opened *Database, err error) {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	var pools []*sql.DB
	defer func() {
		for _, pool := range pools {
			if err != nil {
				err = errors.Join(err, pool.Close())
			}
		}
	}()
	bounded := config.Clone()
	if !config.isTimed {
		bounded.Runtime[timeoutSetting] = fmt.Sprint(max(0, limit.Milliseconds()))
	}
	pool, err := newPool(bounded, places.Statements, idleConnections)
	if err != nil {
		return nil, err
	}
	pools = append(pools, pool)
	searches, err := newPool(bounded, places.Searches, places.Searches)
	if err != nil {
		return nil, err
	}
	pools = append(pools, searches)
	followers, err := newPool(config.Config, followerConnections, followerConnections)
	if err != nil {
		return nil, err
	}
	pools = append(pools, followers)
	if err := pool.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("reach the database: %w", explainTLS(err, cmp.Or(config.SSLMode, pq.SSLModeRequire)))
	}
	return &Database{dialectName: dialect.Postgres, address: config.address, places: places, writer: pool, readers: pool,
		searches: searches, followers: followers}, nil
}

// newPool returns a pool of at most so many connections, of which some stay open.
// It connects to nothing.
func newPool(config pq.Config, connections, idle int) (*sql.DB, error) {
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	connector.Dialer(Dialer{Limit: answerLimit(config.Runtime[timeoutSetting])})
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(idle)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return pool, nil
}
