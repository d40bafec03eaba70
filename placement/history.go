package placement

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// CapacityBucketSize is the length of the buckets of the capacity history.
type CapacityBucketSize string

// The sizes, the finest first.
const (
	BucketOfFiveMinutes CapacityBucketSize = "FIVE_MINUTES"
	BucketOfHour        CapacityBucketSize = "HOUR"
	BucketOfDay         CapacityBucketSize = "DAY"
)

// CapacityBucketSizes returns all sizes, the finest first.
func CapacityBucketSizes() []CapacityBucketSize {
	return []CapacityBucketSize{BucketOfFiveMinutes, BucketOfHour, BucketOfDay}
}

// Duration returns the length of a bucket.
func (s CapacityBucketSize) Duration() time.Duration {
	switch s {
	case BucketOfHour:
		return time.Hour
	case BucketOfDay:
		return 24 * time.Hour
	}
	return 5 * time.Minute
}

// Age returns how long a bucket is kept after its begin. Eight days include the
// same weekday of last week, 400 days the same month of last year.
func (s CapacityBucketSize) Age() time.Duration {
	switch s {
	case BucketOfHour:
		return 35 * 24 * time.Hour
	case BucketOfDay:
		return 400 * 24 * time.Hour
	}
	return 8 * 24 * time.Hour
}

// Begin returns the start of the bucket of an instant, in UTC. Each bucket lies
// in one bucket of every larger size.
func (s CapacityBucketSize) Begin(at time.Time) time.Time { return at.UTC().Truncate(s.Duration()) }

// bucketsAhead is how far the clock may go back without losing buckets.
const bucketsAhead = 24 * time.Hour

// Kept returns the bounds, both exclusive, of the begins of the buckets that
// are kept at an instant. Buckets beyond the upper bound come from a wrong
// clock. This bound is the begin of a day, so that a bucket beyond it is
// deleted together with its hour and its day.
func (s CapacityBucketSize) Kept(now time.Time) (after, before time.Time) {
	return now.UTC().Add(-s.Age()), BucketOfDay.Begin(now.Add(bucketsAhead)).Add(BucketOfDay.Duration())
}

// CapacityHistoryGrouping selects the series of the capacity history.
type CapacityHistoryGrouping string

// The groupings.
const (
	HistoryByClass     CapacityHistoryGrouping = "RESOURCE_CLASS"
	HistoryByAggregate CapacityHistoryGrouping = "AGGREGATE" // of the root, with its tree
	HistoryByProject   CapacityHistoryGrouping = "PROJECT"   // of the consumers
	HistoryByFlavor    CapacityHistoryGrouping = "FLAVOR"
)

// CapacityHistoryGroupings returns all groupings.
func CapacityHistoryGroupings() []CapacityHistoryGrouping {
	return []CapacityHistoryGrouping{HistoryByClass, HistoryByAggregate, HistoryByProject, HistoryByFlavor}
}

const (
	// MaxHistorySeries is the maximum number of series of a grouping in a bucket.
	// Further series in the order of Compare are dropped. With names like uuids,
	// all buckets of a year then have less than 64 MB.
	MaxHistorySeries = 400
	// maxHistoryNames is the maximum number of bytes of the names of these series.
	maxHistoryNames = 32 << 10
)

// HistorySeries identifies a series within its grouping.
type HistorySeries struct {
	Group         string // an aggregate, a project, or the name of a flavor; "" for none
	ResourceClass string // "" for a flavor
	Flavor        string // the uuid of a flavor
}

// Compare orders series by group, class and uuid.
func (s HistorySeries) Compare(other HistorySeries) int {
	return cmp.Or(cmp.Compare(s.Group, other.Group), cmp.Compare(s.ResourceClass, other.ResourceClass),
		cmp.Compare(s.Flavor, other.Flavor))
}

// HistoryFigure is one of the figures of a series.
type HistoryFigure int

// The figures. A series by class or aggregate has all except FitsAtLeast and
// FitsAtMost, a series by flavor only these two, one by project used and held.
const (
	HistoryTotal HistoryFigure = iota
	HistoryReserved
	HistoryCapacity
	HistoryUsed
	HistoryHeld
	HistoryFitsAtLeast
	HistoryFitsAtMost
	HistoryFigures // the number of figures
)

// maxHistoryValue bounds figures, so that the sum of a day fits into an int64.
const maxHistoryValue = 1<<53 - 1

// HistoryRange is the minimum, the maximum and the sum of a figure.
type HistoryRange struct{ Min, Max, Sum int64 }

func (r HistoryRange) with(other HistoryRange) HistoryRange {
	return HistoryRange{min(r.Min, other.Min), max(r.Max, other.Max), min(r.Sum, math.MaxInt64-other.Sum) + other.Sum}
}

// HistoryRow is a series in a bucket.
type HistoryRow struct {
	HistorySeries
	Samples int // that have the series
	Figures [HistoryFigures]HistoryRange
}

// newHistoryRow returns the row of a sample. The values are consecutive figures
// that begin with first. They are clamped to [0, maxHistoryValue].
func newHistoryRow(of HistorySeries, first HistoryFigure, values ...int64) HistoryRow {
	row := HistoryRow{HistorySeries: of, Samples: 1}
	for i, value := range values {
		value = min(max(value, 0), maxHistoryValue)
		row.Figures[int(first)+i] = HistoryRange{value, value, value}
	}
	return row
}

// HistoryContent is the content of a bucket, or of one sample: all series of a
// grouping, in their order.
type HistoryContent struct {
	Rows []HistoryRow
	// IsCut means that some series are missing, because there were too many.
	IsCut bool
}

// With returns the samples of two buckets as one content. The order of merges
// does not matter, so samples can be added to a bucket in any order.
func (c HistoryContent) With(other HistoryContent) HistoryContent {
	sum := HistoryContent{IsCut: c.IsCut || other.IsCut, Rows: slices.Concat(c.Rows, other.Rows)}
	slices.SortStableFunc(sum.Rows, HistoryRow.compare)
	rows := sum.Rows[:0]
	for _, row := range sum.Rows {
		if last := len(rows) - 1; last >= 0 && rows[last].HistorySeries == row.HistorySeries {
			rows[last] = rows[last].with(row)
		} else {
			rows = append(rows, row)
		}
	}
	sum.Rows = rows
	return sum.cut()
}

// cut drops the rows beyond MaxHistorySeries and maxHistoryNames. Whether
// buckets are cut before a merge or only after it, the same rows remain: a row
// beyond the bounds of a bucket is beyond them in each bucket with more
// samples.
func (c HistoryContent) cut() HistoryContent {
	names := 0
	for i, row := range c.Rows {
		if names += len(row.Group) + len(row.ResourceClass); i == MaxHistorySeries || names > maxHistoryNames {
			return HistoryContent{Rows: c.Rows[:i], IsCut: true}
		}
	}
	return c
}

func (r HistoryRow) compare(other HistoryRow) int {
	return r.HistorySeries.Compare(other.HistorySeries)
}

func (r HistoryRow) with(other HistoryRow) HistoryRow {
	r.Samples += other.Samples
	for i := range r.Figures {
		r.Figures[i] = r.Figures[i].with(other.Figures[i])
	}
	return r
}

// HistorySample is the capacity at one instant. A grouping without content was
// not sampled.
type HistorySample map[CapacityHistoryGrouping]HistoryContent

func (s HistorySample) set(by CapacityHistoryGrouping, rows []HistoryRow, isCut bool) {
	slices.SortFunc(rows, HistoryRow.compare)
	s[by] = HistoryContent{Rows: rows, IsCut: isCut}.cut()
}

// SampleOf returns a sample of a world by class and aggregate. Held has the
// allocations of held consumers, which may be sums by provider and class.
func SampleOf(world *World, held []*Allocation) HistorySample {
	sample := HistorySample{}
	for grouping, by := range map[CapacityHistoryGrouping]CapacityGrouping{HistoryByClass: CapacityByClass,
		HistoryByAggregate: capacityByRootAggregate} {
		units := map[capacityKey]int64{}
		for _, of := range held {
			provider, ok := world.Provider(of.Provider)
			if !ok {
				continue // held was read at another instant than the world
			}
			for _, group := range world.groupsOf(provider, by) {
				units[capacityKey{group, of.ResourceClass}] += of.Used
			}
		}
		var rows []HistoryRow
		for _, sum := range world.Capacities(slices.Collect(world.Providers()), by, nil) {
			key := capacityKey{sum.Group(), sum.ResourceClass}
			rows = append(rows, newHistoryRow(HistorySeries{Group: key.group, ResourceClass: key.class}, HistoryTotal,
				sum.Total, sum.Reserved, sum.Capacity, sum.Used, units[key]))
		}
		sample.set(grouping, rows, false)
	}
	return sample
}

// AddProjects adds the usages of projects. isPart means that some are missing.
func (s HistorySample) AddProjects(usages []*UsageGroup, isPart bool) {
	var rows []HistoryRow
	for _, group := range usages {
		for _, usage := range group.Usages {
			rows = append(rows,
				newHistoryRow(HistorySeries{Group: *group.ProjectID, ResourceClass: usage.ResourceClass}, HistoryUsed,
					usage.Used, usage.Held))
		}
	}
	s.set(HistoryByProject, rows, isPart)
}

// FlavorFit is how many more consumers of a flavor fit.
type FlavorFit struct {
	*Fit
	Flavor string // the uuid of the flavor
}

// AddFlavors adds how many more consumers of flavors fit, by their names.
func (s HistorySample) AddFlavors(fits map[string]FlavorFit) {
	var rows []HistoryRow
	for name, fit := range fits {
		rows = append(rows,
			newHistoryRow(HistorySeries{Group: name, Flavor: fit.Flavor}, HistoryFitsAtLeast, fit.AtLeast, fit.AtMost))
	}
	s.set(HistoryByFlavor, rows, false)
}

// storedHistory is the content of a bucket as JSON. It has columns, which
// compress to a third of the size of rows. A column with only zero values is
// absent. A group is empty if it equals the group of the previous row.
type storedHistory struct {
	Groups  []string                     `json:"g,omitempty"`
	Classes []string                     `json:"c,omitempty"`
	Flavors []string                     `json:"f,omitempty"`
	Samples []int                        `json:"n"`
	Figures [HistoryFigures]storedFigure `json:"v"`
	IsCut   bool                         `json:"cut,omitempty"`
}

// storedFigure has the ranges of a figure: minimum, maximum less minimum, and sum
// less the product of minimum and samples.
type storedFigure struct {
	Min    []int64 `json:"m,omitempty"`
	Spread []int64 `json:"s,omitempty"`
	Rest   []int64 `json:"r,omitempty"`
}

// Pack returns the content as a string: base64 of the compressed JSON.
func (c HistoryContent) Pack() (string, error) {
	stored, last := storedHistory{Samples: []int{}, IsCut: c.IsCut}, ""
	for _, row := range c.Rows {
		group := row.Group
		if group == last {
			group = ""
		}
		last = row.Group
		stored.Groups, stored.Classes = append(stored.Groups, group), append(stored.Classes, row.ResourceClass)
		stored.Flavors, stored.Samples = append(stored.Flavors, row.Flavor), append(stored.Samples, row.Samples)
		for i, of := range row.Figures {
			to := &stored.Figures[i]
			to.Min, to.Spread = append(to.Min, of.Min), append(to.Spread, of.Max-of.Min)
			to.Rest = append(to.Rest, of.Sum-of.Min*int64(row.Samples))
		}
	}
	stored.Groups, stored.Classes, stored.Flavors = columnOf(stored.Groups),
		columnOf(stored.Classes), columnOf(stored.Flavors)
	for i, of := range stored.Figures {
		stored.Figures[i] = storedFigure{columnOf(of.Min), columnOf(of.Spread), columnOf(of.Rest)}
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	to := base64.NewEncoder(base64.StdEncoding, &packed)
	compressed, err := flate.NewWriter(to, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := compressed.Write(text); err != nil {
		return "", err
	}
	if err := errors.Join(compressed.Close(), to.Close()); err != nil {
		return "", err
	}
	return packed.String(), nil
}

// columnOf returns a column, or nil if all its values are zero.
func columnOf[V comparable](values []V) []V {
	var zero V
	if slices.ContainsFunc(values, func(value V) bool { return value != zero }) {
		return values
	}
	return nil
}

// valueIn returns a value of a column, zero for an absent column.
func valueIn[V any](column []V, i int) (value V) {
	if i < len(column) {
		value = column[i]
	}
	return value
}

// maxHistoryText bounds the bytes of JSON that UnpackHistory reads, because
// corrupt content might decompress to more.
const maxHistoryText = 4 << 20

// UnpackHistory returns the content that Pack wrote. The empty string is a
// bucket without samples. The error means that the string is corrupt.
func UnpackHistory(packed string) (content HistoryContent, err error) {
	if packed == "" {
		return content, nil
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(base64.NewDecoder(base64.StdEncoding,
		bytes.NewReader([]byte(packed)))), maxHistoryText))
	if err != nil {
		return content, fmt.Errorf("read a bucket of the capacity history: %w", err)
	}
	var stored storedHistory
	if err := json.Unmarshal(text, &stored); err != nil {
		return content, fmt.Errorf("read a bucket of the capacity history: %w", err)
	}
	content.IsCut = stored.IsCut
	group := ""
	for i, samples := range stored.Samples {
		if of := valueIn(stored.Groups, i); of != "" {
			group = of
		}
		row := HistoryRow{Samples: samples, HistorySeries: HistorySeries{Group: group,
			ResourceClass: valueIn(stored.Classes, i), Flavor: valueIn(stored.Flavors, i)}}
		for at, of := range stored.Figures {
			least := valueIn(of.Min, i)
			row.Figures[at] = HistoryRange{Min: least, Max: least + valueIn(of.Spread, i),
				Sum: least*int64(samples) + valueIn(of.Rest, i)}
		}
		content.Rows = append(content.Rows, row)
	}
	return content, nil
}
