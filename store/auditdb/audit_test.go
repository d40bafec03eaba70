package auditdb_test

import (
	"database/sql"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAnIdleServerDeletesOldEvents opens a database with an expired event and
// waits.
func TestAnIdleServerDeletesOldEvents(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		open := func(later time.Duration) *store.Store {
			now := time.Now().Add(later)
			s, err := store.Open(t.Context(),
				store.Options{URL: url, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open(0)
		ctx := access.WithViewer(t.Context(),
			access.Viewer{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}})
		if _, err := s.CreateTrait(ctx, "CUSTOM_OLD"); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s = open(91 * 24 * time.Hour)
		storetest.Within(t, 10*time.Second, "without the event", func() bool {
			return len(s.AuditRows(t.Context())) == 0
		})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestEventsAreKeptAsLongAsTheyShall makes three changes: the second one day
// before the event of the first expires, the third one day after.
func TestEventsAreKeptAsLongAsTheyShall(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	storetest.EachURL(t, func(t *testing.T, url string) {
		for i, kept := range []struct{ asked, is time.Duration }{{0, 90 * day}, {7 * day, 7 * day}} {
			began := time.Now().Add(time.Duration(i) * 1000 * day)
			var later atomic.Int64 // several goroutines ask the store for the time
			s, err := store.Open(t.Context(), store.Options{
				URL: url, AuditRetention: kept.asked, Now: func() time.Time {
					return began.Add(time.Duration(later.Load()))
				}, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx := access.WithViewer(t.Context(),
				access.Viewer{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}})
			change := func(suffix string, events int) {
				t.Helper()
				name := "CUSTOM_" + string(rune('A'+i)) + suffix
				if _, err := s.CreateTrait(ctx, name); err != nil {
					t.Fatal(err)
				}
				if n, err := s.CountAuditEvents(ctx, audit.Filter{}); n != events || err != nil {
					t.Errorf("kept for %v: %d events, %v, want %d", kept.is, n, err, events)
				}
			}
			change("1", 1)
			later.Add(int64(kept.is - day))
			change("2", 2)
			later.Add(int64(2 * day))
			change("3", 2)
			later.Add(int64(kept.is + time.Second))
			if page, err := s.AuditEvents(ctx, audit.Filter{}, page.Request{}); err != nil || len(page.Items) != 0 {
				t.Errorf("kept for %v: %d events are shown after their time, %v", kept.is, len(page.Items), err)
			}
			if err := s.PruneAudit(t.Context()); err != nil {
				t.Error(err)
			}
			if ids := s.AuditRows(t.Context()); len(ids) != 0 {
				t.Errorf("kept for %v: the rows %v are still there", kept.is, ids)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestEventsAreFoundByIndex explains the statements that list and count the events
// of a kind, and of a key of any kind, among many events. It reads the statement
// that lists the events since a time.
func TestEventsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		if _, err := s.CreateTrait(ctx, "CUSTOM_ONE"); err != nil {
			t.Fatal(err)
		}
		many := `INSERT INTO audit_events (id, uuid, created_at, user_id, project_id, action, kind, key)
			WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
			SELECT i, 'uuid-' || i, created_at, 'ada', 'operations', 'setMetadata', 'Resource', 'key-' || i
			FROM n, audit_events WHERE kind = 'Trait'`
		for _, statement := range []string{many, "ANALYZE audit_events"} {
			if _, err := s.Pool.ExecContext(ctx, statement); err != nil {
				t.Fatal(err)
			}
		}
		explain := map[bool]string{true: "EXPLAIN ", false: "EXPLAIN QUERY PLAN "}[s.Postgres()]
		index := ""
		explained := store.EachStatement(ctx, func(query string, args any) {
			list, _ := args.([]any)
			plan := ""
			err := s.Query(ctx, s.Pool, explain+query, func(rows *sql.Rows) error {
				var line string
				into := []any{&line}
				if !s.Postgres() {
					into = []any{new(any), new(any), new(any), &line}
				}
				err := rows.Scan(into...)
				plan += line + "\n"
				return err
			}, list...)
			if err != nil || !regexp.MustCompile(`(?s)`+index).MatchString(plan) {
				t.Errorf("%s: %v\n%s", query, err, plan)
			}
		})
		later := time.Now().Add(time.Hour)
		one := store.EachStatement(ctx, func(query string, _ any) {
			if strings.Count(query, ">=") != 1 {
				t.Errorf("not one time from which events are wanted: %s", query)
			}
		})
		if events, err := s.AuditEvents(one, audit.Filter{Since: &later}, page.Request{}); err != nil ||
			len(events.Items) != 0 {
			t.Errorf("%d events, %v, want none", len(events.Items), err)
		}
		key, kind := "key-2000", audit.KindTrait
		for _, row := range []struct {
			filter audit.Filter
			index  string
		}{
			{audit.Filter{Key: &key}, `auditevent_kind_key_created_at_uuid.*kind.*key.*created_at`},
			{audit.Filter{Kind: &kind}, `auditevent_kind_created_at_uuid.*kind.*created_at`},
		} {
			index = row.index
			events, err := s.AuditEvents(explained, row.filter, page.Request{})
			if n := len(events.Items); err != nil || n != 1 {
				t.Errorf("%d events, %v, want 1", n, err)
			}
			if n, err := s.CountAuditEvents(explained, row.filter); err != nil || n != 1 {
				t.Errorf("counted %d events, %v, want 1", n, err)
			}
		}
	})
}
