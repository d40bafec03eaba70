// Package store is the only package with a database. It opens SQLite or
// PostgreSQL and offers the reads and writes of every domain, each of which has
// a package below this one, as methods that take and return nouns. Every read
// goes through one access predicate for the viewer in its context; every write
// is one transaction. It knows no GraphQL and decides no candidate.
package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/auditdb"
	"github.com/cadastre-dev/cadastre/store/changedb"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Options are which database to open and how.
type Options struct {
	// URL is sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME.
	URL string
	// Unprepared sends every statement to PostgreSQL as it is, for poolers that
	// give each transaction another connection.
	Unprepared bool
	// Connections is how many connections to the database serve requests at most;
	// 0 is DefaultConnections.
	Connections int
	// StatementTime bounds every statement of a request in PostgreSQL itself; 0 is
	// sqldb.StatementTimeout, less than 0 is no bound.
	StatementTime time.Duration
	// CacheBytes bounds what all connections to a SQLite file keep of it; 0 is 256
	// MiB.
	CacheBytes int64
	// KeysPerProject is how many changes a project keeps under idempotency keys; 0
	// is a million.
	KeysPerProject int
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// RequestID returns the id of the request in a context, for the log; nil
	// returns none.
	RequestID func(context.Context) string
	// AuditRetention is how long audit events and changes are kept; 0 is 90 days.
	AuditRetention time.Duration
	// Definitions are who writes definitions and how much.
	Definitions DefinitionOptions
	// Log receives what an operator should know; nil is slog.Default().
	Log *slog.Logger
	// Resources are the rules for resources and their capabilities.
	Resources ResourceOptions
}

// What callers name of the packages below.
type (
	// DefinitionOptions are who writes definitions and how much.
	DefinitionOptions = metadefdb.DefinitionOptions
	// ResourceOptions are the rules of an operator for resources.
	ResourceOptions = resourcedb.Options
	// DefinitionChange is a change of definitions that may break metadata.
	DefinitionChange = resourcedb.Change
	// ResourceRecord is a resource as Fill writes it.
	ResourceRecord = resourcedb.ResourceRecord
	// CapabilityRecord is a registered capability as Fill writes it.
	CapabilityRecord = resourcedb.CapabilityRecord
	// Following is one who follows the feed of changes.
	Following = changedb.Following
	// RequiredCapabilities are those that requirements ask for; see package resourcedb.
	RequiredCapabilities = resourcedb.RequiredCapabilities
	// WorldPage is a page of a list that a world gives, with that world.
	WorldPage[Item any] = placementdb.WorldPage[Item]
)

// How says how the statements of an operation see the database.
type How = sqldb.How

// The ways to see the database; sqldb.Reading explains them.
const (
	Each             = sqldb.Each
	EachAfterWrite   = sqldb.EachAfterWrite
	AtOnce           = sqldb.AtOnce
	AtOnceAfterWrite = sqldb.AtOnceAfterWrite
)

// Reading is how the statements of an operation see the database.
type Reading = sqldb.Reading

// Places are how many operations may have a connection at once.
type Places = sqldb.Places

// DefaultConnections is how many connections serve requests at most.
const DefaultConnections = sqldb.DefaultConnections

// DefaultCacheBytes bounds what all connections to a SQLite file keep of it.
const DefaultCacheBytes = sqldb.DefaultCacheBytes

// Searching returns a context in which what reads has connections apart: however
// long it takes, cheap statements do not wait for it.
func Searching(ctx context.Context) context.Context { return sqldb.Searching(ctx) }

// WithoutTimes returns a context in which lists leave out when rows were created
// and updated: reading two times takes a fifth of the time that a small row takes.
func WithoutTimes(ctx context.Context) context.Context { return sqldb.WithoutTimes(ctx) }

// IdempotencyKeyHeader is the header of a request that holds its idempotency key.
const IdempotencyKeyHeader = sqldb.IdempotencyKeyHeader

// AtField returns the context of a field of Mutation in a request that is made
// once, by its response name; see sqldb.DB.MakeOnce.
func AtField(ctx context.Context, field string) context.Context { return sqldb.AtField(ctx, field) }

// IsOfTheKey reports whether an error refuses the idempotency key of a request,
// rather than the request.
func IsOfTheKey(err error) bool { return sqldb.IsOfTheKey(err) }

// CountStatements returns a context under which the SQL statements sent are
// counted, transaction control excluded, and the count so far.
func CountStatements(ctx context.Context) (context.Context, func() int) {
	ctx, counted := sqldb.Measure(ctx)
	return ctx, func() int {
		statements, _ := counted()
		return int(statements)
	}
}

// Decisions returns how questions were answered under a context of Measure.
func Decisions(ctx context.Context) []string { return sqldb.Decisions(ctx) }

// Measure is CountStatements for statements and the rows that they return.
func Measure(ctx context.Context) (context.Context, func() (statements, rows int64)) {
	return sqldb.Measure(ctx)
}

// StopBeyond has a function called when the statements under a context of Measure
// have returned more than so many rows in all.
func StopBeyond(ctx context.Context, rows int64, stop func()) { sqldb.StopBeyond(ctx, rows, stop) }

// EachStatement returns a context under which each statement is passed to a
// function, which may be called concurrently, with its arguments.
func EachStatement(ctx context.Context, each func(query string, args any)) context.Context {
	return sqldb.EachStatement(ctx, each)
}

// Store reads and writes all domains: definitions, resources, placement and the
// audit log.
type Store struct {
	*sqldb.DB
	*metadefdb.MetadefStore
	*resourcedb.ResourceStore
	*placementdb.PlacementStore
	*auditdb.AuditStore
	*changedb.ChangeStore
}

// Refused turns what a database refused for its own reasons, such as the time
// limit, into a *problem.Refusal. Every other error stays as it is.
func Refused(err error) error { return sqldb.Refused(err) }

// CheckURL returns an error for a text that does not name a database, and opens
// nothing; see Options.URL.
func CheckURL(url string) error { return sqldb.CheckURL(url) }

// Open opens the database, brings its tables to the newest version and makes
// sure that what is built in is there. Several servers may open one PostgreSQL
// database at once; a SQLite file opens for one.
func Open(ctx context.Context, options Options) (*Store, error) {
	db, err := sqldb.Open(ctx, sqldb.Options{URL: options.URL, Unprepared: options.Unprepared, Connections: options.Connections, StatementTime: options.StatementTime, CacheBytes: options.CacheBytes, KeysPerProject: options.KeysPerProject, ChangesKept: options.AuditRetention, Now: options.Now, RequestID: options.RequestID, Log: options.Log})
	if err != nil {
		return nil, err
	}
	s := &Store{DB: db, MetadefStore: metadefdb.New(db, options.Definitions), PlacementStore: placementdb.New(db)}
	s.ResourceStore = resourcedb.New(db, s.MetadefStore, options.Resources)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.ChangeStore, err = changedb.Open(ctx, db, s.Discovers, s.ShowDefinitions, s.ShowWorld); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.AuditStore = auditdb.Open(db, options.AuditRetention)
	if err := db.ReadSizes(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := db.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	if err := s.fillBuiltIns(ctx); err != nil {
		return err
	}
	if err := s.LoadDefinitions(ctx, resident.Others{Tell: s.Tell, Reconcile: s.Reconcile}); err != nil {
		return err
	}
	s.AlsoFollow(s.FollowDefinitions)
	return s.PlacementStore.Load(ctx)
}

// Close closes the database.
func (s *Store) Close() error {
	if s.ChangeStore != nil {
		s.ChangeStore.Close()
	}
	if s.AuditStore != nil {
		s.AuditStore.Close()
	}
	return errors.Join(s.PlacementStore.Close(), s.DB.Close())
}

// readyWithin is how long Ready waits for the database.
const readyWithin = 3 * time.Second

// Ready reports why the store cannot serve at the moment: the database does not
// answer soon or takes no writes, or the placement world may be out of date. Nil
// means ready.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		return err
	}
	if err := s.CheckWritable(ctx); err != nil {
		return err
	}
	if age := s.WorldAge(); age > placementdb.StaleAfter {
		return problem.Refuse(problem.ErrUnavailable, "the placement world may be %s old", age.Round(time.Second))
	}
	return nil
}
