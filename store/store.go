// Package store is the only room with a database. It opens SQLite or
// PostgreSQL, migrates it, and offers the reads and writes of every domain as
// methods that take and give the nouns of catalog and placement. Every read
// goes through one access predicate for the viewer in its context; every write
// is one transaction. It knows no GraphQL and decides no candidate.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/resource"
)

// Options say which database to open and how.
type Options struct {
	// URL is sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME.
	URL string
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// RequestID gives the id of the request in a context, for the log; nil gives
	// none.
	RequestID func(context.Context) string
	// AuditRetention is how long audit events are kept; 0 is 90 days.
	AuditRetention time.Duration
	// Definitions say who writes definitions and how much.
	Definitions DefinitionOptions
	// Log receives what an operator should know; nil is slog.Default().
	Log *slog.Logger
	// CapabilityDiscovery says who discovers public capabilities; empty is
	// resource.DiscoveryAdmin.
	CapabilityDiscovery resource.CapabilityDiscovery
	// CapabilityDefaultVisibility is that of a capability whose name is
	// registered by its first use; empty is access.Private.
	CapabilityDefaultVisibility access.Visibility
	// CapabilityRegistration says how a name comes into the registry; empty is
	// resource.RegisterOnUse.
	CapabilityRegistration resource.CapabilityRegistration
	// ProtectedMetadataKeys are those that only administrators and services
	// write, on every resource.
	ProtectedMetadataKeys []string
	// ResourceLimits bound what is written; nil is
	// resource.DefaultLimits.
	ResourceLimits *resource.Limits
}

// Store holds the catalog and the placement data of a cloud.
type Store struct {
	*DB
	options Options
	limits  resource.Limits
	writes  writeRates

	definitions    DefinitionOptions
	auditRetention time.Duration
	pruning        sync.WaitGroup
	stopPruning    context.CancelFunc
	resident       resident
	follower       *follower // nil on SQLite, whose file belongs to one server
	claims         claimQueue
}

// Open opens the database, brings its tables to the newest version and makes
// sure that what is built in is there. Several servers may open one PostgreSQL
// database at once; a SQLite file opens for one.
func Open(ctx context.Context, options Options) (*Store, error) {
	db, err := openDB(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &Store{DB: db, options: options}
	s.limits = resource.DefaultLimits()
	if options.ResourceLimits != nil {
		s.limits = *options.ResourceLimits
	}
	s.definitions = options.Definitions.withDefaults()
	if s.auditRetention = options.AuditRetention; s.auditRetention == 0 {
		s.auditRetention = defaultAuditRetention
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	pruning, stop := context.WithCancel(context.Background())
	s.stopPruning = stop
	events := s.ent.AuditEvent
	s.pruning.Go(func() { s.keepPruning(pruning, events) })
	return s, nil
}

func (s *Store) prepare(ctx context.Context) error {
	if err := s.db.migrate(ctx); err != nil {
		return err
	}
	if err := s.fillBuiltIns(ctx); err != nil {
		return err
	}
	if !s.postgres() {
		_, err := s.loadWorld(ctx)
		return err
	}
	// Subscribe, load, apply: nothing that is committed meanwhile is missed.
	follower, err := s.follow(ctx, s.db.address)
	if err != nil {
		return err
	}
	s.follower = follower
	since, err := s.loadWorld(ctx)
	if err != nil {
		return err
	}
	follower.start(since)
	return nil
}

// Close closes the database.
func (s *Store) Close() error {
	var err error
	if s.stopPruning != nil {
		s.stopPruning()
		s.pruning.Wait()
	}
	if s.follower != nil {
		err = s.follower.close()
	}
	return errors.Join(err, s.DB.close())
}

// Ready tells why the store cannot serve at the moment: the database cannot be
// reached, or the placement world may be out of date. Nil means ready.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.db.readers.PingContext(ctx); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	if age := s.WorldAge(); age > staleAfter {
		return fmt.Errorf("the placement world may be %s old", age.Round(time.Second))
	}
	return nil
}
