package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"entgo.io/ent/dialect"
	"github.com/gofrs/flock"
	"golang.org/x/sync/singleflight"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// DB is an open database with what every domain needs to read and write it: the
// ent client, statements written by hand, transactions.
type DB struct {
	Pool      *Database
	Driver    dialect.Driver // of Ent
	Ent       *ent.Client
	lock      *flock.Flock  // on a SQLite file, which belongs to one program; nil on PostgreSQL
	turn      chan struct{} // held on SQLite by the transaction that writes
	Clock     func() time.Time
	Log       *slog.Logger
	requestID func(context.Context) string
	residents []*Resident
	audiences map[string]AudienceReader // by kind
	noted     []func()                  // called after each commit
	kinds     []keptKinds               // those that somebody follows
	// changesKept is how long changes are kept at least.
	changesKept time.Duration
	tableSizes  tableSizes
	keys        keys
	health      health
	pings       singleflight.Group
	background  []func() // what ends that which runs until Close
}

// Open opens the database that options name.
func Open(ctx context.Context, options Options) (*DB, error) {
	db, lock, err := openDatabase(ctx, options)
	if err != nil {
		return nil, err
	}
	d := &DB{Pool: db, Driver: db, Ent: ent.NewClient(ent.Driver(db)), lock: lock, turn: make(chan struct{}, 1),
		Clock: options.Now, Log: options.Log, requestID: options.RequestID,
		changesKept: cmp.Or(options.ChangesKept, DefaultChangesKept)}
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.requestID == nil {
		d.requestID = func(context.Context) string { return "" }
	}
	db.requestID = d.requestID
	d.keys.db, d.keys.perProject = d, cmp.Or(options.KeysPerProject, DefaultKeysPerProject)
	if err := db.closeToOthers(); err != nil {
		d.Log.WarnContext(ctx, "the database file is not private", "error", err)
	}
	return d, nil
}

// Close closes the database.
func (d *DB) Close() error {
	for _, stop := range d.background {
		stop()
	}
	err := d.Pool.Close()
	if d.lock != nil {
		err = errors.Join(err, d.lock.Unlock())
	}
	return err
}

// Now returns the time of a write: UTC, in the microseconds that both databases
// keep.
func (d *DB) Now() time.Time { return d.Clock().UTC().Truncate(time.Microsecond) }

// Postgres reports whether the database is PostgreSQL; else it is SQLite.
func (d *DB) Postgres() bool { return d.Pool.dialectName == dialect.Postgres }

// Places returns how many operations may have a connection at once.
func (d *DB) Places() Places { return d.Pool.places }

// Pools returns the pools of connections by their names.
func (d *DB) Pools() map[string]*sql.DB {
	if d.Postgres() {
		return map[string]*sql.DB{"statements": d.Pool.writer, "searches": d.Pool.searches, "followers": d.Pool.followers}
	}
	return map[string]*sql.DB{"writer": d.Pool.writer, "readers": d.Pool.readers}
}

// Address returns the URL of a PostgreSQL database, with the settings of a
// session.
func (d *DB) Address() string { return d.Pool.address }

// keepLog opens a connection that stays open: SQLite deletes its log with the last
// one, and from now on a log that is not there is one that somebody took away.
func (d *DB) keepLog(ctx context.Context) error {
	if d.Postgres() {
		return nil
	}
	conn, err := d.Pool.followers.Conn(ctx)
	if err != nil {
		return err
	}
	d.Pool.opened = conn
	if _, err := conn.ExecContext(ctx, "SELECT count(*) FROM sqlite_schema"); err != nil {
		return err
	}
	return d.Pool.file.keepLog()
}

// AfterCommits has a function called after each commit of this process that may
// have happened. It returns at once, and is added before anything is written.
func (d *DB) AfterCommits(noted func()) { d.noted = append(d.noted, noted) }

// keptKinds are kinds of things that somebody keeps in memory.
type keptKinds struct {
	kinds  []string
	follow func(ctx context.Context, transaction TransactionID, outcome Outcome) error
}

// FollowKinds has a function called after each transaction of this process that
// changes things of some kinds, before the writer is answered; its error is the
// writer's. On SQLite the calls are in the order of the commits. It is added before
// anything is written.
func (d *DB) FollowKinds(follow func(ctx context.Context, transaction TransactionID, outcome Outcome) error, kinds ...string) {
	d.kinds = append(d.kinds, keptKinds{kinds, follow})
}

// Start begins to delete old changes and to read the sizes of tables, until
// Close.
func (d *DB) Start(ctx context.Context) error {
	if err := d.keepLog(ctx); err != nil {
		return fmt.Errorf("keep the log of the database file: %w", err)
	}
	d.background = append(d.background,
		d.Repeat(keysDroppedEvery, "idempotency keys that expired could not be deleted, will try again", d.DropKeys),
		d.Repeat(prunedEvery, "old changes could not be deleted, will try again", d.PruneChanges),
		d.Repeat(sizesAge, "operations are priced by old sizes of tables, will try again", d.readSizesAgain))
	return nil
}

// UntilClose has a function called before the database is closed, which ends what
// runs beside requests. It is added before anything is read.
func (d *DB) UntilClose(stop func()) { d.background = append(d.background, stop) }

// Repeat runs a function at once and then again and again, on an idle server as
// on a busy one, until the function that it returns is called. Its errors are
// warnings in the log, in the words given.
func (d *DB) Repeat(every time.Duration, warning string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				d.Log.WarnContext(ctx, warning, "error", err)
			}
			pause.For(ctx, every)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// Ping returns an error unless the database answers before the context ends.
// Callers at the same time share a question: where the database hangs, each takes
// a connection until the driver gives up.
func (d *DB) Ping(ctx context.Context) error {
	asked := d.pings.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StatementTimeout)
		defer cancel()
		return nil, refusedPing(d.Pool.followers.PingContext(ctx))
	})
	select {
	case <-ctx.Done():
		return refusedPing(ctx.Err())
	case answer := <-asked:
		return answer.Err
	}
}

// Migrate brings the tables to the newest version, and makes sure that the role
// of PostgreSQL may use them.
func (d *DB) Migrate(ctx context.Context) error {
	if err := d.Pool.migrate(ctx, d.Log); err != nil {
		return explainRole(err)
	}
	return d.checkPrivileges(ctx)
}

// Options say which database to open and how.
type Options struct {
	// URL is sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME.
	URL string
	// Unprepared sends every statement to PostgreSQL as it is, for poolers that
	// give each transaction another connection.
	Unprepared bool
	// Connections is how many connections serve requests at most; 0 is
	// DefaultConnections. Those that follow other servers come besides.
	Connections int
	// StatementTime bounds every statement of a request in PostgreSQL itself; 0 is
	// StatementTimeout, less than 0 is no bound.
	StatementTime time.Duration
	// CacheBytes bounds what all connections to a SQLite file keep of it; 0 is
	// DefaultCacheBytes.
	CacheBytes int64
	// KeysPerProject is how many changes a project keeps under idempotency keys; 0
	// is DefaultKeysPerProject.
	KeysPerProject int
	// ChangesKept is how long the log of changes is kept; 0 is DefaultChangesKept.
	ChangesKept time.Duration
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// RequestID returns the id of the request in a context, for the log; nil
	// returns none.
	RequestID func(context.Context) string
	// Log receives what an operator should know; nil is slog.Default().
	Log *slog.Logger
}
