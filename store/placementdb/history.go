package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// HistoryDue reports whether the bucket of five minutes at a time has no sample
// yet, and whether its sample must include the projects: their use is a sum
// over all allocations, so they are sampled once an hour.
func (s *PlacementStore) HistoryDue(ctx context.Context, at time.Time) (isDue, withProjects bool, err error) {
	isDue, withProjects = true, true
	err = s.Query(ctx, s.Pool, `SELECT b.series FROM capacity_buckets b
		WHERE b.size = 'FIVE_MINUTES' AND b.series = 'RESOURCE_CLASS' AND b.begins_at = `+s.Time("$1")+`
		OR b.size = 'HOUR' AND b.series = 'PROJECT' AND b.begins_at = `+s.Time("$2"), func(rows *sql.Rows) error {
		var series placement.CapacityHistoryGrouping
		err := rows.Scan(&series)
		isDue, withProjects = isDue && series != placement.HistoryByClass, withProjects &&
			series != placement.HistoryByProject
		return err
	}, placement.BucketOfFiveMinutes.Begin(at), placement.BucketOfHour.Begin(at))
	if err != nil {
		return false, false, fmt.Errorf("look for the last bucket of the capacity history: %w", err)
	}
	return isDue, withProjects, nil
}

// RecordHistory adds a sample to the capacity history and deletes old buckets.
// It adds only the first sample for a bucket of five minutes, even if several
// servers sample: the rows of that sample are the lease. It reports whether it
// added the sample.
func (s *PlacementStore) RecordHistory(ctx context.Context, at time.Time,
	sample placement.HistorySample) (isAdded bool, err error) {
	err = s.Act(ctx, "recordHistory", func(tx *sqldb.Tx) error {
		isAdded = false
		begin := placement.BucketOfFiveMinutes.Begin(at)
		err := s.Query(ctx, tx, `INSERT INTO capacity_buckets (size, begins_at, series, content) VALUES ('FIVE_MINUTES', `+s.Time("$1")+`, 'RESOURCE_CLASS', '')
			ON CONFLICT (size, begins_at, series) DO NOTHING RETURNING id`, func(rows *sql.Rows) error {
			isAdded = true
			return rows.Scan(new(int64))
		}, begin)
		if err != nil || !isAdded {
			return err
		}
		tx.KeepAnyway()
		for _, size := range placement.CapacityBucketSizes() {
			if err := s.addToBucket(ctx, tx, size, size.Begin(at), sample); err != nil {
				return err
			}
		}
		return s.deleteBuckets(ctx, tx, at)
	})
	if err != nil {
		return false, fmt.Errorf("record the capacity history: %w", err)
	}
	return isAdded, nil
}

// addToBucket adds a sample to the buckets of a size. Projects have no buckets
// of five minutes. It locks the rows in the order of their series; another
// transaction may create them first.
func (s *PlacementStore) addToBucket(ctx context.Context, tx *sqldb.Tx, size placement.CapacityBucketSize,
	begin time.Time, sample placement.HistorySample) error {
	var series []placement.CapacityHistoryGrouping
	for _, by := range placement.CapacityHistoryGroupings() {
		if _, ok := sample[by]; ok && (by != placement.HistoryByProject || size != placement.BucketOfFiveMinutes) {
			series = append(series, by)
		}
	}
	slices.Sort(series)
	names := sqldb.JSONOf(series)
	err := s.Execute(ctx, tx, `INSERT INTO capacity_buckets (size, begins_at, series, content) SELECT $1, `+s.Time("$2")+`, d.series, ''
		FROM `+s.Rows("$3", "d", "series text")+
		` WHERE true ORDER BY d.series ON CONFLICT (size, begins_at, series) DO NOTHING`,
		size, begin,
		sqldb.JSONOf(lists.Map(series, func(of placement.CapacityHistoryGrouping) []any { return []any{of} })))
	if err != nil {
		return err
	}
	var rows [][]any
	err = s.Query(ctx, tx, `SELECT b.id, b.series, b.content FROM capacity_buckets b WHERE b.size = $1 AND b.begins_at = `+s.Time("$2")+`
		AND `+s.Listed("b.series", "$3", "text")+` ORDER BY b.series`+s.Locking("UPDATE"), func(found *sql.Rows) error {
		var id int64
		var by placement.CapacityHistoryGrouping
		var packed string
		if err := found.Scan(&id, &by, &packed); err != nil {
			return err
		}
		content, err := placement.UnpackHistory(packed)
		if err != nil {
			return err
		}
		packed, err = content.With(sample[by]).Pack()
		rows = append(rows, []any{id, packed})
		return err
	}, size, begin, names)
	if err != nil {
		return err
	}
	return s.Execute(ctx, tx, `UPDATE capacity_buckets SET content = d.content FROM `+s.Rows("$1", "d", "id bigint", "content text")+`
		WHERE capacity_buckets.id = d.id`, sqldb.JSONOf(rows))
}

// deleteBuckets deletes the buckets that are too old, and the ones that a wrong
// clock put into the future.
func (s *PlacementStore) deleteBuckets(ctx context.Context, tx *sqldb.Tx, now time.Time) error {
	for _, size := range placement.CapacityBucketSizes() {
		after, before := size.Kept(now)
		err := s.Execute(ctx, tx, `DELETE FROM capacity_buckets WHERE size = $1 AND (begins_at <= `+s.Time("$2")+
			` OR begins_at >= `+s.Time("$3")+`)`,
			size, after, before)
		if err != nil {
			return err
		}
	}
	return nil
}

// History returns the rows of the capacity history that a query selects and the
// viewer sees, in the order of time, group and class. isCut means that some
// buckets lack series. With problems there are no rows. By default any role may
// call it. The caller hides flavors.
func (s *PlacementStore) History(ctx context.Context, query placement.HistoryQuery) (
	all []*placement.CapacityBucket, isCut bool, problems problem.Problems, err error,
) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, false, nil, err
	}
	seesAll, now := visible.SeesEveryConsumer(ctx), s.Now()
	if problems = historyProblems(&query, now); len(problems) > 0 {
		return nil, false, problems, nil
	}
	if query.By == placement.HistoryByProject && !seesAll {
		query = query.OfProject(access.ViewerFrom(ctx).ProjectID)
	}
	kept, _ := query.Bucket.Kept(now)
	first, until := query.Range(now)
	err = s.Query(ctx, s.Pool, `SELECT b.begins_at, b.content FROM capacity_buckets b WHERE b.size = $1 AND b.series = $2
		AND b.begins_at >= `+s.Time("$3")+` AND b.begins_at < `+s.Time("$4")+` AND b.begins_at > `+s.Time("$5")+
		` ORDER BY b.begins_at`, func(rows *sql.Rows) error {
		var begin time.Time
		var packed string
		if err := rows.Scan(&begin, &packed); err != nil {
			return err
		}
		content, err := placement.UnpackHistory(packed)
		isCut = isCut || content.IsCut
		all = append(all, query.Rows(begin, content, seesAll)...)
		return err
	}, query.Bucket, query.By, first, until, kept)
	if err != nil {
		return nil, false, nil, fmt.Errorf("read the capacity history: %w", err)
	}
	return all, isCut, nil, nil
}

// historyProblems returns the problems of a query, sorted by field.
func historyProblems(query *placement.HistoryQuery, now time.Time) problem.Problems {
	problems := problemsOf(query.Validate(now))
	for path, names := range map[string][]string{
		"filter.resourceClasses": query.ResourceClasses,
		"filter.projectIds":      query.ProjectIDs, "filter.flavors": query.Flavors,
	} {
		for i, name := range names {
			text.Check(&problems, problem.Index(path, i), name, 0, placement.MaxNameLength)
		}
	}
	slices.SortStableFunc(problems, func(a, b problem.Problem) int { return strings.Compare(a.Field, b.Field) })
	return problems
}
