package metadefdb

import (
	"context"
	"database/sql"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Definitions are kept in memory (store/resident): they are read often and changed
// rarely. Each writer waits until a snapshot shows its commit.
//
//   - A reading at one instant gets the definitions of that instant.
//   - Everything else reads them as the process has them, which is as fresh as the
//     last commit that it made or was told of.
//   - A write that is judged by them makes sure in its transaction that the database
//     has the same (unchangedIn), and reads them there otherwise.
//
// Where they would take too much memory they are not kept, and everything reads
// the database: the two must give the same answers.

// DefaultResidentBytes is how much memory definitions take at most to be kept.
const DefaultResidentBytes = 256 << 20

// keepDefinitions makes the definitions follow the database, once they are loaded.
func (s *MetadefStore) keepDefinitions() {
	s.memory = resident.New(s.DB, resident.Domain[definitions]{
		Name:    "definitions",
		Kinds:   []string{namespaceKind, typeKind},
		Load:    s.readAll,
		Differs: s.differs,
		Next:    s.readChanged,
		Size:    func(d *definitions) int64 { return d.bytes },
		Most:    s.options.ResidentBytes,
	})
	s.memory.FollowCommits()
}

// LoadDefinitions loads the definitions to keep them in memory, unless they take
// more than they may.
func (s *MetadefStore) LoadDefinitions(ctx context.Context, others resident.Others) error {
	s.memory.Tells(others)
	return s.ReloadDefinitions(ctx)
}

// ReloadDefinitions makes the definitions in memory anew from the database: for
// what is written past the store.
func (s *MetadefStore) ReloadDefinitions(ctx context.Context) error {
	if s.options.ResidentBytes < 0 {
		return nil
	}
	return s.memory.Load(ctx)
}

// FollowDefinitions brings the definitions forward to what is committed.
func (s *MetadefStore) FollowDefinitions(ctx context.Context) error { return s.memory.CatchUp(ctx) }

// ShowDefinitions brings the definitions forward until they show what some
// transactions changed that are committed; for nil, all that were before the call.
func (s *MetadefStore) ShowDefinitions(ctx context.Context, transactions []sqldb.TransactionID) error {
	return s.memory.Show(ctx, transactions)
}

// namesIn returns the names of namespaces and of types that notes are about.
func namesIn(notes []sqldb.Note) (namespaces, types []string) {
	for _, note := range notes {
		if note.Kind == namespaceKind {
			namespaces = append(namespaces, note.Key)
		} else {
			types = append(types, note.Key)
		}
	}
	return sqldb.Distinct(namespaces), sqldb.Distinct(types)
}

// differs returns the notes without those of types that are as they were: a type is
// noted, too, where others may know it than before.
func (s *MetadefStore) differs(ctx context.Context, on sqldb.Conn, held *definitions, notes []sqldb.Note) ([]sqldb.Note, error) {
	_, names := namesIn(notes)
	if len(names) == 0 {
		return notes, nil
	}
	types, err := s.readTypes(ctx, on, names)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(notes, func(note sqldb.Note) bool { return note.Kind == typeKind && held.isSame(note.Key, types) }), nil
}

// readChanged returns the definitions after the changes that notes tell of.
func (s *MetadefStore) readChanged(ctx context.Context, on sqldb.Conn, held *definitions, notes []sqldb.Note) (*definitions, error) {
	var changed changedThings
	var err error
	changed.namespaceNames, changed.typeNames = namesIn(notes)
	if len(changed.typeNames) > 0 {
		if changed.types, err = s.readTypes(ctx, on, changed.typeNames); err != nil {
			return nil, err
		}
	}
	if len(changed.namespaceNames) > 0 {
		if changed.namespaces, err = s.readNamespaces(ctx, s.ClientOn(on), changed.namespaceNames); err != nil {
			return nil, err
		}
	}
	return held.with(changed), nil
}

// unchangedIn returns the definitions of this process if the transaction of a
// client sees them as they are, and nil otherwise: then it is to read them itself.
func (s *MetadefStore) unchangedIn(ctx context.Context, client *ent.Client) (*definitions, error) {
	return s.memory.Unchanged(ctx, clientConn{client})
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
	return s.memory.Of(ctx)
}

// knownType returns the row id of a resource type that the viewer knows by the
// definitions as the reading of the context sees them. It reports false
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
