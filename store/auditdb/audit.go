package auditdb

import (
	"context"
	"fmt"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/auditevent"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// defaultAuditRetention is how long audit events are kept.
const defaultAuditRetention = 90 * 24 * time.Hour

const (
	// pruneEvery is how often a server deletes audit events that are too old.
	pruneEvery = time.Hour
	// prunedAtOnce bounds how many it deletes in one statement, which others
	// wait for.
	prunedAtOnce = 5000
)

// keepPruning deletes events that are kept no longer, at once and then again
// and again until the context ends. An idle server does so as well as a busy
// one.
func (s *AuditStore) keepPruning(ctx context.Context, events *ent.AuditEventClient) {
	for {
		if err := s.pruneAudit(ctx, events); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "audit events that are kept no longer could not be deleted, will try again", "error", err)
		}
		sqldb.Pause(ctx, pruneEvery)
		if ctx.Err() != nil {
			return
		}
	}
}

// pruneAudit deletes the events that are kept no longer.
func (s *AuditStore) pruneAudit(ctx context.Context, events *ent.AuditEventClient) error {
	for {
		ids, err := events.Query().Where(auditevent.CreatedAtLT(s.Now().Add(-s.auditRetention))).
			Order(auditevent.ByCreatedAt(), auditevent.ByID()).Limit(prunedAtOnce).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if _, err := events.Delete().Where(sqldb.Among(auditevent.FieldID, ids)).Exec(ctx); err != nil {
			return err
		}
	}
}

var auditOrders = map[string]sqldb.SortKey{"CREATED_AT": {Column: auditevent.FieldCreatedAt, IsTime: true}}

// AuditEvents returns a page of the audit log, the newest event first, for
// administrators.
func (s *AuditStore) AuditEvents(ctx context.Context, filter audit.Filter, request page.Request) (page.Page[*audit.Event], error) {
	paging, err := sqldb.NewPaging("auditEvents", auditOrders, page.Order{Field: "CREATED_AT", Descending: true}, request)
	if err != nil {
		return page.Page[*audit.Event]{}, err
	}
	rows, err := s.Ent.AuditEvent.Query().Where(visible.Events(ctx), s.keptEvents(), eventsMatching(filter), paging.Within).Order(paging.Sort).Limit(paging.Limit()).All(ctx)
	if err != nil {
		return page.Page[*audit.Event]{}, fmt.Errorf("list audit events: %w", err)
	}
	return sqldb.NewPage(paging, rows, auditNoun, func(row *ent.AuditEvent) (any, int64) { return row.CreatedAt, row.ID }), nil
}

// CountAuditEvents returns how many events AuditEvents goes through in all.
func (s *AuditStore) CountAuditEvents(ctx context.Context, filter audit.Filter) (int, error) {
	n, err := s.Ent.AuditEvent.Query().Where(visible.Events(ctx), s.keptEvents(), eventsMatching(filter)).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count audit events: %w", err)
	}
	return n, nil
}

// AuditEventsByID returns the events of the rows, for administrators; others
// see none.
func (s *AuditStore) AuditEventsByID(ctx context.Context, ids []int64) (map[int64]*audit.Event, error) {
	rows, err := s.Ent.AuditEvent.Query().Where(visible.Events(ctx), s.keptEvents(), sqldb.Among(auditevent.FieldID, ids)).All(ctx)
	return sqldb.ByID(rows, err, "audit events", auditNoun, func(row *ent.AuditEvent) int64 { return row.ID })
}

// keptEvents hides the events that are kept no longer and not yet deleted.
func (s *AuditStore) keptEvents() predicate.AuditEvent {
	return auditevent.CreatedAtGTE(s.Now().Add(-s.auditRetention))
}

// eventsMatching keeps the events that match a filter.
func eventsMatching(filter audit.Filter) predicate.AuditEvent {
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
