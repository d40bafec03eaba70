package resourcedb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourceorigin"
	"github.com/cadastre-dev/cadastre/ent/syncscope"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// EndSync ends a pass. If the pass read everything, things that have been
// absent for long enough are gone from now on, unless they exceed a limit: then
// all stay. Resources that have been gone for the delay are deleted, at most
// origin.MaxDeleted. A resource on which something depends stays. A pass that
// ends like the one before it has no event.
func (s *ResourceStore) EndSync(ctx context.Context, end origin.End) (origin.Ended, error) {
	var ended origin.Ended
	if err := checkInput(end.Check); err != nil {
		return ended, err
	}
	err := s.Write(ctx, "endSync", func(tx *sqldb.Tx) (err error) {
		before, now, err := s.hold(ctx, tx, end.Scope(), end.Pass)
		if err != nil {
			return err
		}
		ended = origin.Ended{}
		if end.Reading.ProvesAbsence() {
			if ended, err = s.declareGone(ctx, tx, end, now); err != nil {
				return err
			}
		}
		ended.Refused += end.Refused
		update := tx.SyncScope.Update().Where(ofScope(end.Scope())).ClearPass().ClearHeldUntil()
		if end.Reading.Complete {
			update.SetCompletedAt(now).ClearFailedAt().ClearFailure().SetFailures(0).SetRefused(ended.Refused)
		} else {
			update.SetFailedAt(now).SetFailure(text.OrEmpty(end.Failure)).AddFailures(1)
		}
		tx.KeepAnyway()
		isSame := end.Reading.Complete && before.CompletedAt != nil && before.FailedAt == nil &&
			ended == (origin.Ended{Refused: before.Refused})
		if isSame {
			return update.Exec(ctx)
		}
		tx.Record(ctx, sqldb.Event{Kind: "Sync", Key: end.Scope().Key(),
			After: sqldb.Fields{"complete": end.Reading.Complete, "seen": end.Reading.Seen,
				"gone": ended.Gone, "refused": ended.Refused, "deleted": ended.Deleted}})
		return update.Exec(ctx)
	}, &ended)
	if err != nil {
		return origin.Ended{}, fmt.Errorf("end a sync: %w", err)
	}
	return ended, nil
}

// dependents is the condition that something depends on a resource r of an
// origin o. The foreign id of a server is the uuid of its consumer. Its second
// resource, of another region or origin, has another uuid.
const dependents = `(EXISTS (SELECT 1 FROM resources c WHERE c.parent_id = r.id)
	OR EXISTS (SELECT 1 FROM resource_providers p WHERE p.resource_id = r.id)
	OR EXISTS (SELECT 1 FROM consumers u JOIN allocations a ON a.consumer_id = u.id WHERE u.uuid IN (r.uuid, o.foreign_id)))`

// declareGone sets the time of being gone, and deletes resources that have been
// gone for the delay.
func (s *ResourceStore) declareGone(ctx context.Context, tx *sqldb.Tx, end origin.End,
	now time.Time) (ended origin.Ended, err error) {
	present, err := tx.ResourceOrigin.Query().Where(ofScope(end.Scope()), resourceorigin.GoneAtIsNil()).Count(ctx)
	if err != nil {
		return ended, err
	}
	rows, absent, expired, err := s.lockAbsent(ctx, tx, end, now)
	if err != nil {
		return ended, err
	}
	ended.Gone = end.Reading.Gone(present, len(absent), end.Limits)
	if ended.Refused = len(absent) - ended.Gone; ended.Refused > 0 {
		absent = nil
	}
	isAbsent, isExpired := lists.Set(absent, lists.Itself), lists.Set(expired, lists.Itself)
	for _, row := range rows {
		switch {
		case isExpired[row.ID]:
			if err := s.removeResource(ctx, tx, row); err != nil {
				return ended, err
			}
			ended.Deleted++
		case isAbsent[row.ID]:
			noteResource(tx, row, row)
			tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: row.UUID, After: sqldb.Fields{"goneAt": now}})
		}
	}
	if len(absent) == 0 {
		return ended, nil
	}
	return ended, tx.ResourceOrigin.Update().Where(paging.Among(resourceorigin.FieldResourceID, absent)).SetGoneAt(now).
		Exec(ctx)
}

// lockAbsent locks the resources that are absent for long enough, and at most
// MaxDeleted that have been gone for the delay, and returns their rows. absent
// and expired are the ids of the ones on which nothing depends.
func (s *ResourceStore) lockAbsent(ctx context.Context, tx *sqldb.Tx, end origin.End,
	now time.Time) (rows []*ent.Resource, absent, expired []int64, err error) {
	found := func(condition, limit string, arg any) ([]int64, error) {
		return sqldb.Column[int64](ctx, s.DB, tx,
			`SELECT r.id FROM resource_origins o JOIN resources r ON r.id = o.resource_id
			WHERE o.origin = $1 AND o.region = $2 AND o.kind = $3 AND `+condition+
				` AND NOT `+dependents+` ORDER BY r.id `+limit,
			end.Origin, end.Region, end.Kind, arg)
	}
	if absent, err = found("o.gone_at IS NULL AND o.absent >= $4", "", origin.EnoughAbsences); err != nil {
		return nil, nil, nil, err
	}
	if expired, err = found("o.gone_at <= "+s.Time("$4"),
		"LIMIT "+strconv.Itoa(origin.MaxDeleted), now.Add(-end.Delay)); err != nil {
		return nil, nil, nil, err
	}
	ids := slices.Concat(absent, expired)
	rows, err = tx.Resource.Query().Where(paging.Among(entresource.FieldID, ids), s.Locked()).Order(entresource.ByID()).
		All(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	unused, err := sqldb.Column[int64](ctx, s.DB, tx, `SELECT r.id FROM resource_origins o JOIN resources r ON r.id = o.resource_id WHERE `+
		s.Listed("r.id", "$1", "bigint")+` AND NOT `+dependents, sqldb.JSONOf(ids))
	isUnused := lists.Set(unused, lists.Itself)
	isUsed := func(id int64) bool { return !isUnused[id] }
	return rows, slices.DeleteFunc(absent, isUsed), slices.DeleteFunc(expired, isUsed), err
}

// Syncs returns the state of the passes over each scope, by origin, region and
// kind, at most maxScopes. It does not check the viewer.
func (s *ResourceStore) Syncs(ctx context.Context) ([]*origin.State, error) {
	rows, err := s.Ent.SyncScope.Query().Order(syncscope.ByOrigin(), syncscope.ByRegion(), syncscope.ByKind()).
		Limit(maxScopes).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list syncs: %w", err)
	}
	now := s.Now()
	states := lists.Map(rows, func(row *ent.SyncScope) *origin.State {
		return &origin.State{Scope: origin.Scope{Origin: row.Origin, Region: row.Region, Kind: row.Kind},
			Running:     row.HeldUntil != nil && row.HeldUntil.After(now),
			CompletedAt: sqldb.InUTC(row.CompletedAt), Lag: secondsSince(row.CompletedAt, now),
			FailedAt: sqldb.InUTC(row.FailedAt), Failure: row.Failure,
			Failures: row.Failures, Refused: row.Refused}
	})
	byScope := lists.ByKey(states, func(state *origin.State) origin.Scope { return state.Scope })
	err = s.Query(ctx, s.Pool, `SELECT origin, region, kind, SUM(CASE WHEN gone_at IS NULL THEN 1 ELSE 0 END),
		SUM(CASE WHEN gone_at IS NULL AND absent > 0 THEN 1 ELSE 0 END), SUM(CASE WHEN gone_at IS NULL THEN 0 ELSE 1 END)
		FROM resource_origins GROUP BY origin, region, kind`, func(rows *sql.Rows) error {
		var scope origin.Scope
		var count origin.State
		err := rows.Scan(&scope.Origin, &scope.Region, &scope.Kind, &count.Present, &count.Absent, &count.Gone)
		if state := byScope[scope]; state != nil {
			state.Present, state.Absent, state.Gone = count.Present, count.Absent, count.Gone
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count synced things: %w", err)
	}
	return states, nil
}

// secondsSince returns the whole seconds from a time, at least 0; nil for none.
func secondsSince(then *time.Time, now time.Time) *int {
	if then == nil {
		return nil
	}
	return new(max(0, int(now.Sub(*then)/time.Second)))
}

// maxScopes is the maximum number of scopes in an answer.
const maxScopes = 1000

// OriginsOf returns where resources are from, by row id. A resource that no sync
// wrote has none. OriginsOf does not check the viewer.
func (s *ResourceStore) OriginsOf(ctx context.Context, ids []int64) (map[int64]*origin.Origin, error) {
	origins := map[int64]*origin.Origin{}
	err := s.Query(ctx, s.Pool, `SELECT o.resource_id, o.origin, o.region, o.kind, o.foreign_id, o.observed_at, o.absent, o.gone_at, s.completed_at
		FROM resource_origins o LEFT JOIN syncs s ON s.origin = o.origin AND s.region = o.region AND s.kind = o.kind
		WHERE `+s.Listed("o.resource_id", "$1", "bigint"), func(rows *sql.Rows) error {
		var id int64
		var absent int
		var completed *time.Time
		o := new(origin.Origin)
		err := rows.Scan(&id, &o.Origin, &o.Region, &o.Kind, &o.ForeignID,
			&o.ObservedAt, &absent, &o.GoneAt, &completed)
		if absent == 0 && completed != nil && completed.After(o.ObservedAt) {
			o.ObservedAt = *completed
		}
		o.ObservedAt, o.GoneAt = o.ObservedAt.UTC(), sqldb.InUTC(o.GoneAt)
		origins[id] = o
		return err
	}, sqldb.JSONOf(ids))
	if err != nil {
		return nil, fmt.Errorf("look up origins of resources: %w", err)
	}
	return origins, nil
}
