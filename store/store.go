// Package store and the packages below it are the only ones of the server that
// access a database. Package store opens SQLite or PostgreSQL and has the reads
// and writes of all domains, as methods that take and return domain types. Each
// domain has a package below this one. Reads apply the access predicates of
// package visible for the viewer in their context. A write is one transaction,
// unless its comment says otherwise. The package knows no GraphQL.
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

// Options configures Open.
type Options struct {
	// URL is sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME.
	URL string
	// ListenURL is the URL of the same PostgreSQL database for notifications; ""
	// means URL.
	ListenURL string
	// ReadURL is the URL of standbys that answer reads; see sqldb.Options.
	ReadURL string
	// Unprepared disables prepared statements on PostgreSQL. It is for poolers
	// in transaction mode, which change the connection between transactions.
	Unprepared bool
	// Connections limits the database connections for requests; 0 is
	// sqldb.DefaultConnections.
	Connections int
	// StatementTime is the statement timeout of PostgreSQL for requests; 0 is
	// sqldb.StatementTimeout, a negative value is no limit.
	StatementTime time.Duration
	// CacheBytes limits the page caches of all connections to a SQLite file
	// together; 0 is 256 MiB.
	CacheBytes int64
	// KeysPerProject limits the changes of a project under idempotency keys; 0 is a
	// million.
	KeysPerProject int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// RequestID returns the id of the request in a context, for the log; nil
	// means no ids.
	RequestID func(context.Context) string
	// AuditRetention is the retention of audit events and changes; 0 is 90
	// days.
	AuditRetention time.Duration
	// AuditAllocations makes audit events show allocations of consumers.
	AuditAllocations bool
	// Definitions say who may write definitions, and how many.
	Definitions DefinitionOptions
	// Log is the logger; nil is slog.Default().
	Log *slog.Logger
	// Resources are the rules for resources and their capabilities.
	Resources ResourceOptions
}

// Types of the packages below, for callers.
type (
	// DefinitionOptions say who may write definitions, and how many.
	DefinitionOptions = metadefdb.DefinitionOptions
	// ResourceOptions are the operator's rules for resources.
	ResourceOptions = resourcedb.Options
	// DefinitionChange is a change of definitions that may make metadata
	// invalid.
	DefinitionChange = resourcedb.Change
	// ResourceRecord is a resource as FillEmpty writes it.
	ResourceRecord = resourcedb.ResourceRecord
	// StandbyReads counts the reads of a standby.
	StandbyReads = sqldb.StandbyReads
	// CapabilityRecord is a registered capability as FillEmpty writes it.
	CapabilityRecord = resourcedb.CapabilityRecord
	// Following follows the feed of changes.
	Following = changedb.Following
	// PlacedOutcome is the result for one consumer of a placing.
	PlacedOutcome = placementdb.PlacedOutcome
	// AppliedMove is the result of a planned move.
	AppliedMove = placementdb.AppliedMove
	// ConsumerOutcome is the result for one consumer of a bulk mutation.
	ConsumerOutcome = placementdb.ConsumerOutcome
	// InventoriesUpdated is the outcome of an update of inventories.
	InventoriesUpdated = placementdb.InventoriesUpdated
	// RequiredCapabilities are the capabilities of requirements; see package
	// resourcedb.
	RequiredCapabilities = resourcedb.RequiredCapabilities
	// WorldPage is a page of a list from a world, with that world.
	WorldPage[Item any] = placementdb.WorldPage[Item]
)

// How is the consistency of an operation's reads.
type How = sqldb.How

// The kinds of consistency; see sqldb.Reading.
const (
	Each             = sqldb.Each
	EachAfterWrite   = sqldb.EachAfterWrite
	AtOnce           = sqldb.AtOnce
	AtOnceAfterWrite = sqldb.AtOnceAfterWrite
)

// Reading controls the consistency of an operation's reads.
type Reading = sqldb.Reading

// Places is how many operations may hold a connection at the same time without
// waiting.
type Places = sqldb.Places

// DefaultCacheBytes is the default of Options.CacheBytes.
const DefaultCacheBytes = sqldb.DefaultCacheBytes

// DryRun returns a context in which, if dryRun is set, mutations store nothing.
func DryRun(ctx context.Context, dryRun bool) context.Context { return sqldb.DryRun(ctx, dryRun) }

// Searching returns a context for slow reads outside of transactions. They use
// a separate pool, so that cheap statements do not wait for them.
func Searching(ctx context.Context) context.Context { return sqldb.Searching(ctx) }

// WithoutTimes returns a context in which lists omit the creation and update
// times of rows. Reading the two times takes a fifth of the time for a small
// row.
func WithoutTimes(ctx context.Context) context.Context { return sqldb.WithoutTimes(ctx) }

// PositionHeader is the name of the HTTP header with the position of a response
// in the history of the database; see After.
const PositionHeader = sqldb.PositionHeader

// After returns a context whose reads see all commits that were confirmed
// before the response with the given position; "" is none. It refuses anything
// else.
func After(ctx context.Context, position string) (context.Context, error) {
	return sqldb.After(ctx, position)
}

// IdempotencyKeyHeader is the name of the HTTP header with the idempotency key.
const IdempotencyKeyHeader = sqldb.IdempotencyKeyHeader

// AtField returns the context for a field of Mutation with the given response
// name, in a request with an idempotency key; see sqldb.DB.MakeOnce.
func AtField(ctx context.Context, field string) context.Context { return sqldb.AtField(ctx, field) }

// CountStatements returns a context that counts SQL statements, without
// transaction control, and a function that returns the count since the call.
func CountStatements(ctx context.Context) (context.Context, func() int) {
	ctx, counted := sqldb.Measure(ctx)
	return ctx, func() int {
		statements, _ := counted()
		return int(statements)
	}
}

// Decisions returns how queries for resources were answered under a context of
// Measure, each way once; see sqldb.Decided.
func Decisions(ctx context.Context) []string { return sqldb.Decisions(ctx) }

// Measure returns a context that counts SQL statements and returned rows, and a
// function that returns both counts since the call.
func Measure(ctx context.Context) (context.Context, func() (statements, rows int64)) {
	return sqldb.Measure(ctx)
}

// StopBeyond makes a context of Measure call stop, perhaps several times, when
// its statements have returned more than the given number of rows from now on.
func StopBeyond(ctx context.Context, rows int64, stop func()) { sqldb.StopBeyond(ctx, rows, stop) }

// EachStatement returns a context that passes each statement with its arguments
// to a function. Calls of the function may be concurrent.
func EachStatement(ctx context.Context, each func(query string, args any)) context.Context {
	return sqldb.EachStatement(ctx, each)
}

// Store reads and writes all domains: definitions, resources, placement, the
// audit log and the log of changes.
type Store struct {
	*sqldb.DB
	*metadefdb.MetadefStore
	*resourcedb.ResourceStore
	*placementdb.PlacementStore
	*auditdb.AuditStore
	*changedb.ChangeStore
}

// Refused converts an operational error of the database, such as a timeout,
// into a *problem.Refusal. It returns other errors unchanged.
func Refused(err error) error { return sqldb.Refused(err) }

// CheckURL returns an error unless url has the form of Options.URL and its
// options are valid. It opens nothing.
func CheckURL(url string) error { return sqldb.CheckURL(url) }

// CheckFurtherURL returns an error unless url can be Options.ReadURL or
// Options.ListenURL of a database, or is "".
func CheckFurtherURL(database, url string) error { return sqldb.CheckFurtherURL(database, url) }

// Open opens the database, migrates it, creates missing built-in things, and
// starts background jobs, which run until Close. Several servers may open one
// PostgreSQL database at the same time. Only one server may open a SQLite file.
func Open(ctx context.Context, options Options) (*Store, error) {
	db, err := sqldb.Open(ctx,
		sqldb.Options{URL: options.URL, ListenURL: options.ListenURL, ReadURL: options.ReadURL,
			Unprepared: options.Unprepared, Connections: options.Connections, StatementTime: options.StatementTime,
			CacheBytes: options.CacheBytes, KeysPerProject: options.KeysPerProject, ChangesKept: options.AuditRetention,
			Now: options.Now, RequestID: options.RequestID, Log: options.Log})
	if err != nil {
		return nil, err
	}
	s := &Store{DB: db, MetadefStore: metadefdb.New(db, options.Definitions),
		PlacementStore: placementdb.New(db, options.AuditAllocations)}
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
	s.ReleaseHolds()
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

// Close stops the background jobs and closes the database.
func (s *Store) Close() error {
	if s.ChangeStore != nil {
		s.ChangeStore.Close()
	}
	if s.AuditStore != nil {
		s.AuditStore.Close()
	}
	return errors.Join(s.PlacementStore.Close(), s.DB.Close())
}

// readyWithin limits how long Ready waits for the database.
const readyWithin = 3 * time.Second

// Ready returns nil if the store can serve. Otherwise it returns the reason:
// the database does not answer in time or takes no writes, or the placement
// world may be out of date.
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
		return problem.Refuse(problem.ErrUnavailable, "the placement world may be %s behind the database",
			age.Round(time.Second))
	}
	return nil
}
