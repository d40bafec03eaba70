// Package auditdb reads the audit log and deletes expired events. Transactions
// write the events that record them (sqldb.Tx).
package auditdb

import (
	"cmp"
	"context"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/auditevent"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// defaultAuditRetention is the default retention of audit events.
const defaultAuditRetention = 90 * 24 * time.Hour

const (
	// pruneEvery is the interval at which a server deletes expired events.
	pruneEvery = time.Hour
	// prunedAtOnce is the maximum number of events deleted in one statement,
	// because other writers wait for it.
	prunedAtOnce = 5000
)

// pruneAudit deletes expired events.
func (s *AuditStore) pruneAudit(ctx context.Context, events *ent.AuditEventClient) error {
	for {
		ids, err := events.Query().Where(auditevent.CreatedAtLT(s.Now().Add(-s.auditRetention))).
			Order(auditevent.ByCreatedAt(), auditevent.ByID()).Limit(prunedAtOnce).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if _, err := events.Delete().Where(paging.Among(auditevent.FieldID, ids)).Exec(ctx); err != nil {
			return err
		}
	}
}

var eventTable = sqldb.NewTable[ent.AuditEvent](auditevent.Table, auditevent.Columns)

var auditOrders = map[string]paging.SortKey{"CREATED_AT": {Column: auditevent.FieldCreatedAt, IsTime: true}}

// AuditEvents returns a page of the audit log, newest event first. It is empty
// for a viewer who may not read the log. By default only administrators may.
func (s *AuditStore) AuditEvents(ctx context.Context, filter audit.Filter,
	request page.Request) (page.Page[*audit.Event], error) {
	err := text.CheckAny("filter.userId", text.OrEmpty(filter.UserID),
		"filter.projectId", text.OrEmpty(filter.ProjectID),
		"filter.action", text.OrEmpty(filter.Action), "filter.key", text.OrEmpty(filter.Key))
	if err != nil {
		return page.Page[*audit.Event]{}, err
	}
	pages, err := paging.New("auditEvents", auditOrders, page.Order{Field: "CREATED_AT", Descending: true}, request)
	return paging.PageOf(sqldb.Unprepared(ctx), s.DB, eventTable, pages, err, auditNoun,
		func(row *ent.AuditEvent) (any, string) { return row.CreatedAt, row.UUID },
		visible.Events(ctx), s.keptEvents(filter.Since), eventsMatching(filter))
}

// CountAuditEvents returns the total number of events in AuditEvents.
func (s *AuditStore) CountAuditEvents(ctx context.Context, filter audit.Filter) (int, error) {
	return eventTable.Count(ctx, s.DB, visible.Events(ctx), s.keptEvents(filter.Since), eventsMatching(filter))
}

// AuditEventsByUUID returns the events with the uuids, or none to a viewer who
// may not read the audit log.
func (s *AuditStore) AuditEventsByUUID(ctx context.Context, uuids []string) (map[string]*audit.Event, error) {
	rows, err := s.Ent.AuditEvent.Query().
		Where(visible.Events(ctx), s.keptEvents(nil), paging.Among(auditevent.FieldUUID, uuids)).All(ctx)
	return paging.ByID(rows, err, "audit events", auditNoun, func(row *ent.AuditEvent) string { return row.UUID })
}

// keptEvents hides expired events that are not deleted yet, and events before
// since, if that is set. It is one condition, because SQLite would use an index
// for only one of two.
func (s *AuditStore) keptEvents(since *time.Time) predicate.AuditEvent {
	from := s.Now().Add(-s.auditRetention)
	if since != nil && since.After(from) {
		from = since.UTC()
	}
	return auditevent.CreatedAtGTE(from)
}

// eventsMatching keeps the events that match a filter, except its Since. The index
// of keys begins with the kind, so a filter with a key alone names all kinds.
func eventsMatching(filter audit.Filter) predicate.AuditEvent {
	return func(s *entsql.Selector) {
		for _, is := range []struct {
			column string
			value  *string
		}{
			{auditevent.FieldUserID, filter.UserID}, {auditevent.FieldProjectID, filter.ProjectID},
			{auditevent.FieldAction, filter.Action},
			{auditevent.FieldKind, (*string)(filter.Kind)}, {auditevent.FieldKey, filter.Key},
		} {
			if is.value != nil {
				s.Where(entsql.EQ(s.C(is.column), *is.value))
			}
		}
		if filter.Key != nil && filter.Kind == nil {
			var kinds []any
			for _, kind := range audit.Kinds() {
				kinds = append(kinds, string(kind))
			}
			s.Where(entsql.In(s.C(auditevent.FieldKind), kinds...))
		}
		if filter.Until != nil {
			s.Where(entsql.LT(s.C(auditevent.FieldCreatedAt), filter.Until.UTC()))
		}
	}
}

func auditNoun(row *ent.AuditEvent) *audit.Event {
	return &audit.Event{
		UUID: row.UUID, CreatedAt: row.CreatedAt.UTC(), UserID: row.UserID, ProjectID: row.ProjectID,
		Action: row.Action, Kind: audit.Kind(row.Kind), Key: row.Key,
		Before: (*text.JSON)(row.Before), After: (*text.JSON)(row.After),
	}
}

// AuditStore reads the audit log.
type AuditStore struct {
	*sqldb.DB
	auditRetention time.Duration
	stopPruning    func()
}

// Open returns the audit log of a database and starts deleting events older
// than retention. 0 means 90 days.
func Open(db *sqldb.DB, retention time.Duration) *AuditStore {
	s := &AuditStore{DB: db, auditRetention: cmp.Or(retention, defaultAuditRetention)}
	events := s.Ent.AuditEvent
	s.stopPruning = db.Repeat(pruneEvery, "cannot delete expired audit events, will retry",
		func(ctx context.Context) error { return s.pruneAudit(ctx, events) })
	return s
}

// Close stops deleting events.
func (s *AuditStore) Close() { s.stopPruning() }
