package placement

import (
	"slices"
	"time"
)

const (
	// MaxHistoryBuckets is the maximum number of buckets between Since and Until.
	MaxHistoryBuckets = 1000
	// defaultHistoryBuckets is the number of buckets of a query without Since.
	defaultHistoryBuckets = 100
)

// HistoryQuery selects rows of one grouping in buckets of one size.
type HistoryQuery struct {
	By     CapacityHistoryGrouping
	Bucket CapacityBucketSize
	CapacityHistoryFilter
}

// CapacityHistoryFilter selects rows of the capacity history. Until nil means
// now, Since nil the last 100 buckets before Until. A nil list is no condition,
// an empty list selects nothing. It follows `CapacityHistoryFilter`.
type CapacityHistoryFilter struct {
	Since, Until    *time.Time
	ResourceClasses []string
	Aggregates      []string
	ProjectIDs      []string
	Flavors         []string
}

// Range returns the begin of the first bucket, and the time before which all
// buckets begin.
func (q *HistoryQuery) Range(now time.Time) (first, until time.Time) {
	until = now.UTC()
	if q.Until != nil {
		until = q.Until.UTC()
	}
	if q.Since == nil {
		return q.Bucket.Begin(until.Add(-1)).Add(-(defaultHistoryBuckets - 1) * q.Bucket.Duration()), until
	}
	return q.Bucket.Begin(*q.Since), until
}

// Validate returns every problem of the query.
func (q *HistoryQuery) Validate(now time.Time) []Problem {
	v := validator{}
	if q.By == HistoryByProject && q.Bucket == BucketOfFiveMinutes {
		v.add("bucket", "projects have no buckets of five minutes")
	}
	_, until := q.Range(now)
	switch {
	case q.Since != nil && !q.Since.Before(until):
		v.add("filter.since", "must be before until")
	case q.Since != nil && until.Sub(*q.Since) > MaxHistoryBuckets*q.Bucket.Duration():
		v.add("filter.since", "must be at most %d buckets before until", MaxHistoryBuckets)
	}
	for _, of := range []struct {
		path  string
		names []string
		isOf  bool
	}{
		{"filter.resourceClasses", q.ResourceClasses, q.By != HistoryByFlavor},
		{"filter.aggregates", q.Aggregates, q.By == HistoryByAggregate},
		{"filter.projectIds", q.ProjectIDs, q.By == HistoryByProject},
		{"filter.flavors", q.Flavors, q.By == HistoryByFlavor},
	} {
		if of.names != nil && !of.isOf {
			v.add(of.path, "is not allowed when grouping by %s", q.By)
		}
		v.atMost(MaxFilterList, of.path, len(of.names))
	}
	return v.problems
}

// wants reports whether the query selects a series.
func (q *HistoryQuery) wants(of HistorySeries) bool {
	groups := map[CapacityHistoryGrouping][]string{
		HistoryByAggregate: q.Aggregates, HistoryByProject: q.ProjectIDs, HistoryByFlavor: q.Flavors}[q.By]
	return (groups == nil || slices.Contains(groups, of.Group)) &&
		(q.ResourceClasses == nil || slices.Contains(q.ResourceClasses, of.ResourceClass))
}

// OfProject returns the query for the rows of one project alone. It selects
// nothing if the query is for other projects.
func (q HistoryQuery) OfProject(project string) HistoryQuery {
	if q.ProjectIDs == nil || slices.Contains(q.ProjectIDs, project) {
		q.ProjectIDs = []string{project}
	} else {
		q.ProjectIDs = []string{}
	}
	return q
}

// CapacityRange is the minimum, maximum and mean of a figure in a bucket.
type CapacityRange struct {
	Min, Max int64
	Mean     float64
}

// CapacityBucket is a row of the capacity history: a series in a bucket. Fields
// that its grouping lacks are nil. Held is also nil if the viewer may not see
// it.
type CapacityBucket struct {
	BeginsAt time.Time

	ResourceClass, Aggregate, ProjectID, Flavor *string

	Series  HistorySeries
	Samples int

	Total, Reserved, Capacity, Used, Held, FitsAtLeast, FitsAtMost *CapacityRange
}

// Rows returns the wanted rows of a bucket. Without seesHeld they lack the held
// units, except by project.
func (q *HistoryQuery) Rows(beginsAt time.Time, content HistoryContent, seesHeld bool) []*CapacityBucket {
	var rows []*CapacityBucket
	for i := range content.Rows {
		if of := &content.Rows[i]; q.wants(of.HistorySeries) {
			rows = append(rows, q.row(beginsAt, of, seesHeld))
		}
	}
	return rows
}

func (q *HistoryQuery) row(beginsAt time.Time, of *HistoryRow, seesHeld bool) *CapacityBucket {
	row := &CapacityBucket{BeginsAt: beginsAt.UTC(), Series: of.HistorySeries, Samples: of.Samples}
	figure := func(figure HistoryFigure) *CapacityRange {
		sum := of.Figures[figure]
		return &CapacityRange{Min: sum.Min, Max: sum.Max, Mean: float64(sum.Sum) / float64(of.Samples)}
	}
	if q.By == HistoryByFlavor {
		row.Flavor, row.FitsAtLeast, row.FitsAtMost = &row.Series.Group,
			figure(HistoryFitsAtLeast), figure(HistoryFitsAtMost)
		return row
	}
	row.ResourceClass, row.Used = &row.Series.ResourceClass, figure(HistoryUsed)
	if seesHeld || q.By == HistoryByProject {
		row.Held = figure(HistoryHeld)
	}
	switch {
	case q.By == HistoryByProject:
		row.ProjectID = &row.Series.Group
		return row
	case row.Series.Group != "":
		row.Aggregate = &row.Series.Group
	}
	row.Total, row.Reserved, row.Capacity = figure(HistoryTotal), figure(HistoryReserved), figure(HistoryCapacity)
	return row
}
