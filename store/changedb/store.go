// Package changedb reads the log of changes for clients: the changes that a
// viewer may see, in commit order. Each transaction writes its own rows
// (sqldb.Tx).
package changedb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/ent/sealingkey"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// ChangeStore reads the log of changes.
type ChangeStore struct {
	*sqldb.DB
	sealer    *change.Sealer
	discovers func(access.Viewer) bool
	horizon   *horizon
	follower  *follower
}

// Open returns the log of changes of a database. discovers reports whether a
// viewer may read capabilities. definitions and world update the in-memory
// copies of definitions and of placement. The store withholds changes that the
// copies do not have yet.
func Open(ctx context.Context, db *sqldb.DB, discovers func(access.Viewer) bool,
	definitions, world Show) (*ChangeStore, error) {
	s := &ChangeStore{DB: db, discovers: discovers}
	s.horizon = newHorizon(db, memoriesOf(definitions, world), s.checkThere)
	s.follower = newFollower(s)
	key, err := s.sealingKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the key of cursors: %w", err)
	}
	if s.sealer, err = change.NewSealer(key); err != nil {
		return nil, err
	}
	db.AddResident(s.horizon.resident)
	db.AfterCommits(s.follower.wake)
	return s, nil
}

// Close stops the follower.
func (s *ChangeStore) Close() { s.follower.close() }

// keyName is the name of the sealing key for cursors.
const keyName = "changes"

// sealingKey returns the key with which all servers of the database seal
// cursors. The first server creates it.
func (s *ChangeStore) sealingKey(ctx context.Context) ([]byte, error) {
	find := func() ([]string, error) {
		return s.Ent.SealingKey.Query().Where(sealingkey.Name(keyName)).Select(sealingkey.FieldValue).Strings(ctx)
	}
	found, err := find()
	if err == nil && len(found) == 0 {
		key := make([]byte, change.KeySize)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		err = s.Execute(ctx, s.Pool,
			`INSERT INTO sealing_keys (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`,
			keyName, hex.EncodeToString(key), s.Now())
		if err == nil {
			found, err = find()
		}
		if err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(found[0])
}

// Cursor returns the cursor of a position.
func (s *ChangeStore) Cursor(p change.Position) string { return s.sealer.Seal(p) }

// PositionOf returns the position of a cursor. It returns ErrInvalidInput for a
// cursor of another database, and for a position older than the retention.
func (s *ChangeStore) PositionOf(cursor string) (change.Position, error) {
	p, err := s.sealer.Open(cursor)
	if err != nil {
		return change.Position{}, err
	}
	return p, s.checkKept(p)
}

// checkKept refuses a position after which changes may have been deleted.
func (s *ChangeStore) checkKept(p change.Position) error {
	if p.IsZero() || !p.At.Before(s.Now().Add(-s.KeepsChanges())) {
		return nil
	}
	return problem.Invalid("after",
		"has expired: it is from %s, and changes are kept for %s; read the current state, then continue from the cursor \"latest\"",
		p.At.UTC().Format(time.RFC3339), s.KeepsChanges())
}

// mustBeThere reports whether a position is of a change that is too young to be
// pruned.
func (s *ChangeStore) mustBeThere(p change.Position) bool {
	return p.ID > 0 && p.Row.After(s.Now().Add(-s.KeepsChanges()))
}

// checkThere refuses the position of a change that the database has lost.
func (s *ChangeStore) checkThere(ctx context.Context, p change.Position) error {
	there := !s.mustBeThere(p)
	if there {
		return nil
	}
	ctx = sqldb.Uncounted(sqldb.Apart(ctx))
	err := s.Query(ctx, s.Pool, `SELECT created_at FROM changes WHERE id = $1`, func(rows *sql.Rows) error {
		var at time.Time
		err := rows.Scan(&at)
		there = at.Equal(p.Row)
		return err
	}, p.ID)
	if err == nil && !there {
		err = refuseLost()
	}
	return err
}

func refuseLost() error {
	return problem.Invalid("after", "is of a change that the database has lost; "+
		"read the current state, then continue from the cursor \"latest\"")
}

// asOfNow returns the position p with the current time, for a viewer who has
// seen everything settled so far. The time is truncated to the hour, so that
// repeated requests without new changes mostly return the same cursor. With a
// retention below ten hours, it is truncated to a tenth of the retention.
func (s *ChangeStore) asOfNow(p change.Position) change.Position {
	p.At = s.Now().Truncate(min(time.Hour, s.KeepsChanges()/10))
	return p
}

// Changes returns the next changes after a position that match the filter and
// that the viewer may see, at most limit, in commit order, and whether there
// are more. They include all commits from before the call. But if a transaction
// takes too long to commit, or an in-memory copy to be updated, the list ends
// before the first change that is not settled. In a sqldb.Reading they include
// the commits that were settled before the Reading began; see Settle.
func (s *ChangeStore) Changes(ctx context.Context, filter change.Filter, after change.Position,
	limit int) (changes []*change.Change, more bool, err error) {
	if err := s.checkKept(after); err != nil {
		return nil, false, err
	}
	upTo, err := s.settledIn(ctx)
	if err != nil {
		return nil, false, err
	}
	of := page{reader: s.reader(ctx), filter: filter, after: after.ID, upTo: upTo, limit: limit}
	if s.mustBeThere(after) {
		of.row = after.Row
	}
	return s.read(ctx, of)
}

// Latest returns the position of the newest change that matches the filter and
// that the viewer may see. A client that reads the current state in the same
// Reading or later, and continues from this position, misses nothing. Latest
// returns ErrUnavailable if it is not known yet which changes are settled: from
// the position before all, the client would get the changes of months.
func (s *ChangeStore) Latest(ctx context.Context, filter change.Filter) (change.Position, error) {
	upTo, err := s.settledIn(ctx)
	if err == nil && upTo == unknown {
		err = problem.Refuse(problem.ErrUnavailable, "the newest change is not known yet, try again").After(time.Second)
	}
	if err != nil {
		return change.Position{}, err
	}
	newest, _, err := s.read(ctx, page{reader: s.reader(ctx), filter: filter, upTo: upTo, limit: 1, newestFirst: true})
	if err != nil || len(newest) == 0 {
		return s.asOfNow(change.Position{}), err
	}
	return s.asOfNow(newest[0].Position()), nil
}

// HasChanges reports whether any change up to a position, itself included,
// matches the filter and may be seen by the viewer.
func (s *ChangeStore) HasChanges(ctx context.Context, filter change.Filter, upTo change.Position) (bool, error) {
	_, more, err := s.read(ctx, page{reader: s.reader(ctx), filter: filter, upTo: upTo.ID, newestFirst: true})
	return more, err
}

// After returns the position from which to continue, after Changes returned
// changes and more for a position. It is the position of the last change, or the
// given one without changes. Unless more is set, its time is the current one;
// see asOfNow.
func (s *ChangeStore) After(position change.Position, changes []*change.Change, more bool) change.Position {
	if len(changes) > 0 {
		position = changes[len(changes)-1].Position()
	}
	if more {
		return position
	}
	return s.asOfNow(position)
}

// reader returns the viewer's view of the log.
func (s *ChangeStore) reader(ctx context.Context) change.Reader {
	return visible.Changes(ctx, s.discovers)
}
