// Package sqldb is the database layer below every domain. It opens and migrates
// SQLite or PostgreSQL, runs transactions with audit events and changes, reads
// rows of tables, and classifies driver errors. It does not know the domains.
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
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// DB is an open database with all that a domain needs to read and write it: the
// ent client, handwritten statements, transactions.
type DB struct {
	Pool      *Database
	Driver    dialect.Driver // of Ent
	Ent       *ent.Client
	lock      *flock.Flock  // on a SQLite file, which one process uses at a time; nil on PostgreSQL and with InUse
	turn      chan struct{} // on SQLite, held by the write transaction
	Clock     func() time.Time
	Log       *slog.Logger
	requestID func(context.Context) string
	residents []*Resident
	audiences map[string]audienceReader // by kind
	noted     []func()                  // called after each commit
	kinds     []keptKinds               // kinds with a follower
	// changesKept is the minimum age of a change before it is deleted.
	changesKept time.Duration
	tableSizes  tableSizes
	keys        keys
	health      health
	pings       singleflight.Group
	background  []func()      // each stops a goroutine that runs until Close
	first       chan struct{} // held by the first run of a repeated function
}

// Open opens the database of options.URL. Migrate and Start come next.
func Open(ctx context.Context, options Options) (*DB, error) {
	db, lock, err := openDatabase(ctx, options)
	if err != nil {
		return nil, err
	}
	d := &DB{Pool: db, Driver: db, Ent: ent.NewClient(ent.Driver(db)), lock: lock, turn: make(chan struct{}, 1),
		Clock: options.Now, Log: options.Log, requestID: options.RequestID,
		changesKept: cmp.Or(options.ChangesKept, DefaultChangesKept), first: make(chan struct{}, 1)}
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
	d.keys.db, d.keys.perProject = d, cmp.Or(options.KeysPerProject, defaultKeysPerProject)
	if options.InUse {
		return d, nil
	}
	if err := db.closeToOthers(); err != nil {
		d.Log.WarnContext(ctx, "the database file is not private", "error", err)
	}
	return d, nil
}

// Close stops the background jobs and closes the database.
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

// Now returns the time for a write in UTC, truncated to microseconds, the
// precision of both databases.
func (d *DB) Now() time.Time { return d.Clock().UTC().Truncate(time.Microsecond) }

// InUTC returns a time from the database in UTC, or nil for none.
func InUTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.UTC())
}

// Postgres reports whether the database is PostgreSQL. Otherwise it is SQLite.
func (d *DB) Postgres() bool { return d.Pool.dialectName == dialect.Postgres }

// Places returns how many operations may hold a connection at the same time.
func (d *DB) Places() Places { return d.Pool.places }

// Pools returns the connection pools by name. The name of a standby is its
// address.
func (d *DB) Pools() map[string]*sql.DB {
	if !d.Postgres() {
		return map[string]*sql.DB{"writer": d.Pool.writer, "readers": d.Pool.readers}
	}
	all := map[string]*sql.DB{"statements": d.Pool.writer, "searches": d.Pool.searches,
		"followers": d.Pool.followers}
	for _, one := range d.Pool.standbys.all {
		all[one.name] = one.pool
	}
	return all
}

// ListenAddress returns the URL of a PostgreSQL database for notifications, with
// the session settings; "" on SQLite.
func (d *DB) ListenAddress() string { return d.Pool.listenAddress }

// keepLog opens a SQLite connection that stays open. SQLite deletes its WAL
// file with the last connection. From now on a missing WAL means that it was
// removed by hand.
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

// AfterCommits registers a function for every commit of this process, including
// commits with an unknown outcome. The function must return quickly. Register
// it before the first write.
func (d *DB) AfterCommits(noted func()) { d.noted = append(d.noted, noted) }

// keptKinds are the kinds that one follower keeps in memory.
type keptKinds struct {
	kinds  []string
	follow func(ctx context.Context, transaction changelog.TransactionID, outcome Outcome) error
}

// FollowKinds registers a function that runs after each transaction of this
// process that changes things of some kinds, also one with an Uncertain outcome,
// before Write returns. If the function fails, Write returns ErrOutcomeUnknown.
// On SQLite the calls are in commit order. Register it before the first write.
func (d *DB) FollowKinds(follow func(ctx context.Context, transaction changelog.TransactionID, outcome Outcome) error,
	kinds ...string) {
	d.kinds = append(d.kinds, keptKinds{kinds, follow})
}

// Start keeps SQLite's WAL open, and starts the background jobs, which run until
// Close: they delete expired idempotency keys and old changes, read the table
// sizes, and try the standbys.
func (d *DB) Start(ctx context.Context) error {
	if err := d.keepLog(ctx); err != nil {
		return fmt.Errorf("keep the write-ahead log of the database file: %w", err)
	}
	d.background = append(d.background,
		d.Repeat(keysDroppedEvery, "cannot delete expired idempotency keys, will retry", d.DropKeys),
		d.Repeat(prunedEvery, "cannot delete old changes, will retry", d.PruneChanges),
		d.Repeat(sizesAge, "cannot read the sizes of tables, using old ones, will retry", d.readSizesAgain))
	if len(d.Pool.standbys.all) > 0 {
		d.background = append(d.background,
			d.Repeat(standbyEvery, "cannot try the standbys, will retry", d.tryStandbys))
	}
	return nil
}

// UntilClose registers a function that stops a background job. Close calls it
// before it closes the database. Register it before the first read.
func (d *DB) UntilClose(stop func()) { d.background = append(d.background, stop) }

// Repeat runs a function soon and then at an interval, until the caller calls
// stop, which cancels a current run and waits for it. The first runs of all
// functions take turns, so that the start of the server needs few connections.
// Errors are logged as warnings with the given message.
func (d *DB) Repeat(every time.Duration, warning string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	once := func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, warning, "error", err)
		}
	}
	running.Go(func() {
		select {
		case d.first <- struct{}{}:
			once()
			<-d.first
		case <-ctx.Done():
		}
		for pause.For(ctx, every); ctx.Err() == nil; pause.For(ctx, every) {
			once()
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// Ping returns an error unless the database answers before ctx is done.
// Concurrent callers share one ping: if the database hangs, each ping holds a
// connection until the driver gives up.
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

// Migrate migrates the tables to the newest version, checks that the PostgreSQL
// role may use them, and renumbers changes of a restored backup.
func (d *DB) Migrate(ctx context.Context) error {
	if err := d.Pool.migrate(ctx, d.Log); err != nil {
		return explainRole(err)
	}
	if err := d.checkPrivileges(ctx); err != nil {
		return err
	}
	return d.ChangeLog(d.Pool).Renumber(ctx)
}

// Options configures Open.
type Options struct {
	// URL is sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME.
	URL string
	// ListenURL is the URL of the same PostgreSQL database for notifications,
	// which poolers in transaction mode do not deliver; "" is URL.
	ListenURL string
	// ReadURL is the URL of standbys of the PostgreSQL database, one for each host,
	// that answer reads (Reading.Spread); "" for none.
	ReadURL string
	// InUse opens an existing database to read, also one that servers use.
	InUse bool
	// Unprepared disables prepared statements on PostgreSQL. It is for poolers
	// in transaction mode, which change the connection between transactions.
	Unprepared bool
	// Connections limits the connections for requests; 0 is DefaultConnections.
	// Connections for following other servers are extra.
	Connections int
	// StatementTime is the statement timeout of PostgreSQL for requests; 0 is
	// StatementTimeout, a negative value is no limit.
	StatementTime time.Duration
	// CacheBytes limits the page caches of all connections to a SQLite file
	// together; 0 is DefaultCacheBytes.
	CacheBytes int64
	// KeysPerProject limits the idempotency keys of a project, counted once for
	// each transaction of their requests; 0 is defaultKeysPerProject.
	KeysPerProject int
	// ChangesKept is the retention of the log of changes; 0 is
	// DefaultChangesKept.
	ChangesKept time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// RequestID returns the id of the request in a context, for the log; nil
	// means no ids.
	RequestID func(context.Context) string
	// Log is the logger; nil is slog.Default().
	Log *slog.Logger
}
