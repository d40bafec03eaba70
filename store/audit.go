package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/auditevent"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/text"
)

// defaultAuditRetention is how long audit events are kept.
const defaultAuditRetention = 90 * 24 * time.Hour

const (
	// pruneEvery is how often a server deletes audit events that are too old.
	pruneEvery = time.Hour
	// prunedAtOnce bounds how many it deletes in one statement, which others wait
	// for.
	prunedAtOnce = 5000
)

// fields is how a thing looked in the audit log: its fields under their names in
// the API.
type fields map[string]any

// change is what a mutation does to one thing, for the audit log. Before and
// after are fields or a document; nil stands for nothing.
type change struct {
	action        string // the name of the mutation
	kind          string // the type of the thing
	key           string // its name or uuid
	before, after any
}

// errNothingAccepted ends a mutation of which every part was refused, or which
// was only to say what it would do: without an event and without a change.
var errNothingAccepted = errors.New("nothing of the mutation was accepted")

// mutate is transact for a mutation: one that is accepted and leaves no event of
// a change leaves the one given, so that none goes unseen.
func (s *Store) mutate(ctx context.Context, asked change, write func(tx *ent.Tx) error) error {
	err := s.transact(ctx, func(tx *ent.Tx) error {
		s.recorded.Store(tx, false)
		defer s.recorded.Delete(tx)
		if err := write(tx); err != nil {
			return err
		}
		if recorded, _ := s.recorded.Load(tx); recorded == true {
			return nil
		}
		return s.record(ctx, tx, asked)
	})
	if errors.Is(err, errNothingAccepted) {
		return nil
	}
	return err
}

// record writes an audit event into the transaction of the change that it tells
// of, and a line without values into the log once that is committed.
func (s *Store) record(ctx context.Context, tx *ent.Tx, c change) error {
	return s.recordAll(ctx, tx, []attributed{{ctx: ctx, change: c}})
}

// attributed is a change with the context of the request that made it.
type attributed struct {
	ctx context.Context
	change
}

// recordAll is record for several changes that share a transaction, whoever made
// each.
func (s *Store) recordAll(ctx context.Context, tx *ent.Tx, changes []attributed) error {
	if len(changes) == 0 {
		return nil
	}
	for chunk := range slices.Chunk(changes, rowsAtOnce) {
		creates := make([]*ent.AuditEventCreate, len(chunk))
		for i, c := range chunk {
			var err error
			if creates[i], err = s.auditEvent(tx, c); err != nil {
				return fmt.Errorf("record %s: %w", c.action, err)
			}
		}
		if err := tx.AuditEvent.CreateBulk(creates...).Exec(ctx); err != nil {
			return fmt.Errorf("record %s: %w", chunk[0].action, err)
		}
	}
	s.recorded.CompareAndSwap(tx, false, true)
	tx.OnCommit(func(commit ent.Committer) ent.Committer {
		return ent.CommitFunc(func(committing context.Context, tx *ent.Tx) error {
			err := commit.Commit(committing, tx)
			if err == nil {
				s.logChanges(changes)
			}
			return err
		})
	})
	return nil
}

// auditEvent is a change as an event to be written. One that leaves a thing as it
// was has neither before nor after.
func (s *Store) auditEvent(tx *ent.Tx, c attributed) (*ent.AuditEventCreate, error) {
	viewer := access.ViewerFrom(c.ctx)
	create := tx.AuditEvent.Create().SetCreatedAt(s.now()).
		SetUserID(viewer.UserID).SetProjectID(viewer.ProjectID).SetAction(c.action).SetKind(c.kind).SetKey(c.key)
	before, err := changeText(c.before)
	if err != nil {
		return nil, err
	}
	after, err := changeText(c.after)
	if err != nil || textOrEmpty(before) == textOrEmpty(after) {
		return create, err
	}
	return create.SetNillableBefore(before).SetNillableAfter(after), nil
}

// changeText is one side of a change; nil for nothing.
func changeText(noun any) (*string, error) {
	if noun == nil {
		return nil, nil
	}
	raw, err := json.Marshal(noun)
	text := string(raw)
	return &text, err
}

func (s *Store) logChanges(changes []attributed) {
	for _, c := range changes {
		viewer := access.ViewerFrom(c.ctx)
		s.log.InfoContext(c.ctx, "changed", "action", c.action, "kind", c.kind, "key", c.key,
			"user", viewer.UserID, "project", viewer.ProjectID, "requestId", s.requestID(c.ctx))
	}
}

// keepPruning deletes events that are kept no longer, at once and then again and
// again until the context ends. An idle server does so as well as a busy one.
func (s *Store) keepPruning(ctx context.Context, events *ent.AuditEventClient) {
	for {
		if err := s.pruneAudit(ctx, events); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "audit events that are kept no longer could not be deleted, will try again", "error", err)
		}
		pause(ctx, pruneEvery)
		if ctx.Err() != nil {
			return
		}
	}
}

// pruneAudit deletes the events that are kept no longer.
func (s *Store) pruneAudit(ctx context.Context, events *ent.AuditEventClient) error {
	for {
		ids, err := events.Query().Where(auditevent.CreatedAtLT(s.now().Add(-s.auditRetention))).
			Order(auditevent.ByCreatedAt(), auditevent.ByID()).Limit(prunedAtOnce).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if _, err := events.Delete().Where(among(auditevent.FieldID, ids)).Exec(ctx); err != nil {
			return err
		}
	}
}

var auditOrders = map[string]sortKey{"CREATED_AT": {column: auditevent.FieldCreatedAt, isTime: true}}

// AuditEvents is a page of the audit log, the newest event first, for
// administrators.
func (s *Store) AuditEvents(ctx context.Context, filter audit.Filter, request page.Request) (page.Page[*audit.Event], error) {
	if err := audit.MayAudit(access.ViewerFrom(ctx)); err != nil {
		return page.Page[*audit.Event]{}, err
	}
	paging, err := newPaging("auditEvents", auditOrders, page.Order{Field: "CREATED_AT", Descending: true}, request)
	if err != nil {
		return page.Page[*audit.Event]{}, err
	}
	rows, err := s.ent.AuditEvent.Query().Where(s.keptEvents(), eventsThat(filter), paging.within).Order(paging.sort).Limit(paging.limit()).All(ctx)
	if err != nil {
		return page.Page[*audit.Event]{}, fmt.Errorf("list audit events: %w", err)
	}
	return newPage(paging, rows, auditNoun, func(row *ent.AuditEvent) (any, int64) { return row.CreatedAt, row.ID }), nil
}

// CountAuditEvents is how many events AuditEvents goes through in all.
func (s *Store) CountAuditEvents(ctx context.Context, filter audit.Filter) (int, error) {
	if err := audit.MayAudit(access.ViewerFrom(ctx)); err != nil {
		return 0, err
	}
	n, err := s.ent.AuditEvent.Query().Where(s.keptEvents(), eventsThat(filter)).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count audit events: %w", err)
	}
	return n, nil
}

// AuditEventsByID are the events of the rows, for administrators; others see
// none.
func (s *Store) AuditEventsByID(ctx context.Context, ids []int64) (map[int64]*audit.Event, error) {
	if audit.MayAudit(access.ViewerFrom(ctx)) != nil {
		return nil, nil
	}
	rows, err := s.ent.AuditEvent.Query().Where(s.keptEvents(), among(auditevent.FieldID, ids)).All(ctx)
	return byID(rows, err, "audit events", auditNoun, func(row *ent.AuditEvent) int64 { return row.ID })
}

// keptEvents hides the events that are kept no longer and not yet deleted.
func (s *Store) keptEvents() predicate.AuditEvent {
	return auditevent.CreatedAtGTE(s.now().Add(-s.auditRetention))
}

// eventsThat keeps the events that a filter wants.
func eventsThat(filter audit.Filter) predicate.AuditEvent {
	return func(s *entsql.Selector) {
		for _, is := range []struct {
			column string
			value  *string
		}{
			{auditevent.FieldUserID, filter.UserID}, {auditevent.FieldProjectID, filter.ProjectID},
			{auditevent.FieldAction, filter.Action}, {auditevent.FieldKind, filter.Kind}, {auditevent.FieldKey, filter.Key},
		} {
			if is.value != nil {
				s.Where(entsql.EQ(s.C(is.column), *is.value))
			}
		}
		if filter.Since != nil {
			s.Where(entsql.GTE(s.C(auditevent.FieldCreatedAt), filter.Since.UTC()))
		}
		if filter.Until != nil {
			s.Where(entsql.LT(s.C(auditevent.FieldCreatedAt), filter.Until.UTC()))
		}
	}
}

func auditNoun(row *ent.AuditEvent) *audit.Event {
	return &audit.Event{
		ID: row.ID, CreatedAt: row.CreatedAt.UTC(), UserID: row.UserID, ProjectID: row.ProjectID,
		Action: row.Action, Kind: row.Kind, Key: row.Key,
		Before: (*text.JSON)(row.Before), After: (*text.JSON)(row.After),
	}
}
