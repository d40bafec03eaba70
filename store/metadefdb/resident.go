package metadefdb

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Definitions are kept in memory, as one snapshot of the database sees them: they
// are read often and changed rarely. Each value is of one snapshot and never
// changes; the next one is made of it and of what the log of changes has since.
// Unlike the placement world nothing is added that a snapshot does not see: a
// writer of this process waits until a snapshot that sees its commit is taken.
//
//   - A reading at one instant brings the definitions to that instant (heldAt), and
//     leaves them to the process where they are newer than its own.
//   - Everything else reads them as the process has them, which is as fresh as the
//     last commit that it made or was told of.
//   - A write that is judged by them makes sure in its transaction that they are
//     those of the database (unchangedIn), and is judged by the database's
//     otherwise.
//
// Where they would take too much memory they are not kept, and everything reads
// the database: the two must give the same answers.

const (
	// DefaultResidentBytes is how much memory definitions take at most to be kept.
	DefaultResidentBytes = 256 << 20
	// caughtUpWithin is how long a writer waits until its commit is in memory.
	caughtUpWithin = 2 * time.Second
	// fewTransactions is up to how many transactions, which changed no definition,
	// each reader goes through anew.
	fewTransactions = 32
)

// heldDefinitions are definitions and the snapshot that they are of. They never
// change.
type heldDefinitions struct {
	*definitions // nil where they are not kept
	upTo         sqldb.Snapshot
}

// has reports whether all that a transaction committed is seen; the zero
// TransactionID is none.
func (h *heldDefinitions) has(transaction sqldb.TransactionID) bool {
	return transaction.Number > 0 && h.upTo.Contains(transaction)
}

// residentDefinitions are the definitions of this process.
type residentDefinitions struct {
	held     atomic.Pointer[heldDefinitions]
	catching chan struct{} // held for a catch up
	applying sync.Mutex    // held while another value is put in place
	resident *sqldb.Resident
	others   Others
}

// Others are the other servers of a database.
type Others struct {
	// Tell tells them that there is something to see.
	Tell func()
	// Reconcile finds out what became of a transaction whose COMMIT had no answer,
	// has the process catch up, and tells them.
	Reconcile func(sqldb.TransactionID)
}

// keepDefinitions makes the definitions follow the database, once they are loaded.
func (s *MetadefStore) keepDefinitions() {
	s.memory.catching = make(chan struct{}, 1)
	s.memory.held.Store(&heldDefinitions{})
	s.memory.resident = &sqldb.Resident{Held: func() any { return s.memory.held.Load() }, At: s.heldAt}
	s.AddResident(s.memory.resident)
	s.FollowKinds(s.followOwn, namespaceKind, typeKind)
}

// LoadDefinitions loads the definitions to keep them in memory, unless they take
// more than they may.
func (s *MetadefStore) LoadDefinitions(ctx context.Context, others Others) error {
	s.memory.others = others
	return s.ReloadDefinitions(ctx)
}

// ReloadDefinitions makes the definitions in memory anew from the database: for
// what is written past the store.
func (s *MetadefStore) ReloadDefinitions(ctx context.Context) error {
	if s.options.ResidentBytes < 0 {
		return nil
	}
	return s.memory.exclusively(ctx, func() error {
		started := time.Now()
		var held *heldDefinitions
		err := s.ReadAt(ctx, func(on sqldb.Conn, at sqldb.Snapshot) (err error) {
			held, err = s.readAll(ctx, on, at)
			return err
		})
		if err != nil {
			return fmt.Errorf("load the definitions: %w", err)
		}
		s.memory.replaceAll(held)
		if held.definitions != nil {
			s.Log.InfoContext(ctx, "the definitions are loaded", "namespaces", len(held.namespaces), "bytes", held.bytes, "took", time.Since(started))
		}
		return nil
	})
}

// FollowDefinitions brings the definitions forward to what is committed.
func (s *MetadefStore) FollowDefinitions(ctx context.Context) error {
	return s.followTo(ctx, sqldb.TransactionID{})
}

// ShowDefinitions brings the definitions forward until they show what some
// transactions changed that are committed; for nil, all that were before the call.
func (s *MetadefStore) ShowDefinitions(ctx context.Context, transactions []sqldb.TransactionID) error {
	if transactions == nil {
		return s.FollowDefinitions(ctx)
	}
	for _, transaction := range transactions {
		if err := s.followTo(ctx, transaction); err != nil {
			return err
		}
	}
	return nil
}

// followTo brings the definitions forward to what is committed, unless they have a
// transaction already, or do once no other catch up runs: one serves all that wait.
func (s *MetadefStore) followTo(ctx context.Context, transaction sqldb.TransactionID) error {
	if s.memory.held.Load().has(transaction) {
		return nil
	}
	return s.memory.exclusively(ctx, func() error {
		if s.memory.held.Load().has(transaction) {
			return nil
		}
		return s.catchUp(ctx)
	})
}

// catchUp is FollowDefinitions where no other catch up runs.
func (s *MetadefStore) catchUp(ctx context.Context) error {
	held := s.memory.held.Load()
	if held.definitions == nil {
		return nil
	}
	var next *heldDefinitions
	err := s.ReadAt(ctx, func(on sqldb.Conn, _ sqldb.Snapshot) (err error) {
		next, err = s.forward(ctx, on, held)
		return err
	})
	if err != nil {
		return fmt.Errorf("bring the definitions up to what is committed: %w", err)
	}
	s.memory.replace(next)
	return nil
}

// followOwn brings the definitions forward to a commit of this process, and has
// others told. Where the commit cannot be read soon, its writer is told that it
// cannot be shown; the next catch up brings it.
func (s *MetadefStore) followOwn(ctx context.Context, transaction sqldb.TransactionID, outcome sqldb.Outcome) error {
	if outcome == sqldb.Uncertain && s.memory.others.Reconcile != nil {
		s.memory.others.Reconcile(transaction)
		return nil
	}
	if s.memory.others.Tell != nil {
		defer s.memory.others.Tell()
	}
	ctx, cancel := context.WithTimeout(sqldb.Uncounted(context.WithoutCancel(ctx)), caughtUpWithin)
	defer cancel()
	for {
		err := s.followTo(ctx, transaction)
		if err == nil {
			return nil
		}
		s.Log.WarnContext(ctx, "cannot bring the definitions up to a commit, will try again", "error", err)
		if !pause.For(ctx, caughtUpWithin/20) {
			return err
		}
	}
}

// heldAt returns the definitions as the snapshot of a transaction sees them, given
// those that were held before it began.
func (s *MetadefStore) heldAt(ctx context.Context, on sqldb.Conn, before any) (any, error) {
	held := before.(*heldDefinitions)
	if held.definitions == nil {
		return held, nil
	}
	next, err := s.forward(ctx, on, held)
	if err != nil {
		return nil, err
	}
	if next.definitions != held.definitions || next.upTo.Oldest-held.upTo.Oldest > fewTransactions {
		s.memory.advance(next)
	}
	return next, nil
}

// forward returns the definitions as a transaction sees them that reads at one
// instant, given those of an earlier snapshot.
func (s *MetadefStore) forward(ctx context.Context, on sqldb.Conn, held *heldDefinitions) (*heldDefinitions, error) {
	at, changes, ok, err := s.changesSince(ctx, on, held)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return s.readAll(ctx, on, at)
	case changes.isEmpty():
		return &heldDefinitions{held.definitions, at}, nil
	}
	if changes.namespaces, err = s.readNamespaces(ctx, s.ClientOn(on), changes.namespaceNames); err != nil {
		return nil, err
	}
	return s.within(&heldDefinitions{held.with(changes), at}), nil
}

// changesSince returns what changed since a snapshot as a statement sees it, but
// for the namespaces themselves, and the snapshot of that statement. It reports
// false where the log of changes does not tell.
func (s *MetadefStore) changesSince(ctx context.Context, on sqldb.Conn, held *heldDefinitions) (at sqldb.Snapshot, changes definitionChanges, ok bool, err error) {
	at, notes, ok, err := s.NotesSince(ctx, on, held.upTo, namespaceKind, typeKind)
	if err != nil || !ok {
		return at, changes, ok, err
	}
	for _, note := range notes {
		if note.Kind == namespaceKind {
			changes.namespaceNames = append(changes.namespaceNames, note.Key)
		} else {
			changes.typeNames = append(changes.typeNames, note.Key)
		}
	}
	if len(changes.typeNames) == 0 {
		return at, changes, true, nil
	}
	// A type is noted, too, where others may know it than before.
	changes.types, err = s.readTypes(ctx, on, changes.typeNames)
	return at, changes.without(held.definitions), true, err
}

// unchangedIn returns the definitions of this process if the transaction of a
// client sees them as they are, and nil otherwise: then it is to read them itself.
func (s *MetadefStore) unchangedIn(ctx context.Context, client *ent.Client) (*definitions, error) {
	held := s.memory.held.Load()
	if held.definitions == nil || s.IsTrial(ctx) {
		return nil, nil
	}
	at, changes, ok, err := s.changesSince(ctx, clientConn{client}, held)
	if err != nil || !ok || !changes.isEmpty() {
		return nil, err
	}
	if at.Oldest-held.upTo.Oldest > fewTransactions {
		s.memory.advance(&heldDefinitions{held.definitions, at})
	}
	return held.definitions, nil
}

// clientConn is the connection of a client of ent.
type clientConn struct{ *ent.Client }

// ExecContext runs a statement that answers nothing.
func (c clientConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return c.Client.ExecContext(ctx, query, args...)
}

// definitionsOf returns the definitions as the reading of the context sees them,
// nil where they are not kept: then all that follows is read at one instant.
func (s *MetadefStore) definitionsOf(ctx context.Context) (*definitions, error) {
	value, err := s.ResidentOf(ctx, s.memory.resident)
	if err != nil {
		return nil, fmt.Errorf("bring the definitions to the instant that is read: %w", err)
	}
	held := value.(*heldDefinitions)
	if held.definitions == nil {
		s.ReadAtOnce(ctx)
	}
	return held.definitions, nil
}

// knownType returns the definitions as the reading of the context sees them and
// the row id of a resource type that the viewer knows by them. It reports false
// where the database is to be asked; what follows is then read at one instant.
func (s *MetadefStore) knownType(ctx context.Context, name string) (id int64, ok bool, err error) {
	held, err := s.definitionsOf(ctx)
	if err != nil || held == nil {
		return 0, false, err
	}
	if id, ok = held.knows(access.ViewerFrom(ctx), name); !ok {
		s.ReadAtOnce(ctx)
	}
	return id, ok, nil
}

// within returns definitions, or none of them where they take more memory than
// they may: then they are not kept until the server starts again.
func (s *MetadefStore) within(held *heldDefinitions) *heldDefinitions {
	if held.bytes <= s.options.ResidentBytes {
		return held
	}
	s.tooMany(held.bytes)
	return &heldDefinitions{}
}

func (s *MetadefStore) tooMany(bytes int64) {
	s.Log.Warn("the definitions take too much memory to be kept, and are read from the database", "bytes", bytes, "limit", s.options.ResidentBytes)
}

// exclusively runs a function while no other catch up runs.
func (m *residentDefinitions) exclusively(ctx context.Context, run func() error) error {
	select {
	case m.catching <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.catching }()
	return run()
}

// replace puts the definitions of a snapshot in place, which is taken by the one
// catch up that runs, unless those of a later one of the same run of the server
// are there.
func (m *residentDefinitions) replace(next *heldDefinitions) {
	m.applying.Lock()
	defer m.applying.Unlock()
	if held := m.held.Load(); held.definitions == nil || next.definitions == nil || next.upTo.Server != held.upTo.Server || held.upTo.IsBefore(next.upTo) {
		m.held.Store(next)
	}
}

// replaceAll puts definitions in place, whatever is there.
func (m *residentDefinitions) replaceAll(next *heldDefinitions) {
	m.applying.Lock()
	defer m.applying.Unlock()
	m.held.Store(next)
}

// advance puts the definitions of a snapshot in place if they are of a later one
// than those that are there.
func (m *residentDefinitions) advance(next *heldDefinitions) {
	m.applying.Lock()
	defer m.applying.Unlock()
	if held := m.held.Load(); held.definitions != nil && next.definitions != nil && next.upTo.Server == held.upTo.Server && held.upTo.IsBefore(next.upTo) {
		m.held.Store(next)
	}
}
