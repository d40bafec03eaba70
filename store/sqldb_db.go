package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"entgo.io/ent/dialect"
	"github.com/gofrs/flock"

	"github.com/cadastre-dev/cadastre/ent"
)

// DB is an open database with what every domain needs to read and write it: the
// ent client, statements written by hand, transactions.
type DB struct {
	db        *database
	ent       *ent.Client
	lock      *flock.Flock  // on a SQLite file, which belongs to one program; nil on PostgreSQL
	turn      chan struct{} // held on SQLite by the transaction that writes
	clock     func() time.Time
	log       *slog.Logger
	requestID func(context.Context) string
}

// openDB opens the database that options name.
func openDB(ctx context.Context, options Options) (*DB, error) {
	db, lock, err := openDatabase(ctx, options.URL)
	if err != nil {
		return nil, err
	}
	d := &DB{db: db, ent: ent.NewClient(ent.Driver(db)), lock: lock, turn: make(chan struct{}, 1),
		clock: options.Now, log: options.Log, requestID: options.RequestID}
	if d.clock == nil {
		d.clock = time.Now
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	if d.requestID == nil {
		d.requestID = func(context.Context) string { return "" }
	}
	return d, nil
}

func (d *DB) close() error {
	err := d.db.Close()
	if d.lock != nil {
		err = errors.Join(err, d.lock.Unlock())
	}
	return err
}

// now returns the time of a write: UTC, in the microseconds that both databases
// keep.
func (d *DB) now() time.Time { return d.clock().UTC().Truncate(time.Microsecond) }

func (d *DB) postgres() bool { return d.db.dialect == dialect.Postgres }
