package placement

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// randomContent returns the content of a sample with some of a few series.
func randomContent(r *rand.Rand) HistoryContent {
	sample := HistorySample{}
	var rows []HistoryRow
	for _, group := range []string{"", "a", "a b", "b"} {
		for _, class := range []string{"", "DISK_GB", "VCPU"} {
			if r.IntN(3) > 0 {
				values := []int64{r.Int64N(9), r.Int64N(3), -r.Int64N(2), math.MaxInt64 - r.Int64N(2), r.Int64()}
				rows = append(rows,
					newHistoryRow(HistorySeries{Group: group, ResourceClass: class}, HistoryTotal, values...))
			}
		}
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	sample.set(HistoryByClass, rows, r.IntN(5) == 0)
	return sample[HistoryByClass]
}

// summed is the definition of a bucket: of each series, the number of samples that
// have it and, by figure, the smallest, the largest and the sum of its values.
func summed(samples []HistoryContent) HistoryContent {
	var sum HistoryContent
	values := map[HistorySeries][][HistoryFigures]int64{}
	for _, sample := range samples {
		sum.IsCut = sum.IsCut || sample.IsCut
		for _, row := range sample.Rows {
			var of [HistoryFigures]int64
			for i := range of {
				of[i] = row.Figures[i].Sum
			}
			values[row.HistorySeries] = append(values[row.HistorySeries], of)
		}
	}
	for _, series := range slices.SortedFunc(maps.Keys(values), HistorySeries.Compare) {
		row := HistoryRow{HistorySeries: series, Samples: len(values[series])}
		for i := range row.Figures {
			row.Figures[i].Min = math.MaxInt64
			for _, of := range values[series] {
				row.Figures[i].Min, row.Figures[i].Max = min(row.Figures[i].Min, of[i]), max(row.Figures[i].Max, of[i])
				row.Figures[i].Sum += of[i]
			}
		}
		sum.Rows = append(sum.Rows, row)
	}
	return sum
}

// TestBucketsRollUpAsDefined rolls random samples up in random groups and orders,
// and compares them with the definition.
func TestBucketsRollUpAsDefined(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var samples, parts []HistoryContent
		for range 1 + r.IntN(12) {
			samples = append(samples, randomContent(r))
		}
		parts = slices.Clone(samples)
		for len(parts) > 1 {
			i := r.IntN(len(parts) - 1)
			if r.IntN(2) == 0 {
				parts[i], parts[i+1] = parts[i+1], parts[i]
			}
			packed, err := parts[i].With(parts[i+1]).Pack()
			if err != nil {
				t.Fatal(err)
			}
			if parts[i], err = UnpackHistory(packed); err != nil {
				t.Fatal(err)
			}
			parts = slices.Delete(parts, i+1, i+2)
		}
		if want := summed(samples); !slices.Equal(parts[0].Rows, want.Rows) || parts[0].IsCut != want.IsCut {
			t.Fatalf("rolled up %+v\nnot %+v", parts[0], want)
		}
	}
}

// TestLargeBucketsAreCutAlike cuts parts and compares with the cut whole.
func TestLargeBucketsAreCutAlike(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, length := range []int{1, 60, 200} {
		var samples []HistoryContent
		for range 4 {
			var rows []HistoryRow
			for _, n := range r.Perm(2 * MaxHistorySeries)[:MaxHistorySeries] {
				rows = append(rows, newHistoryRow(HistorySeries{Group: fmt.Sprintf("%0*d", length, n)}, HistoryUsed, 1))
			}
			samples = append(samples, HistoryContent{}.With(HistoryContent{Rows: rows}))
		}
		want := summed(samples).cut()
		var got, back HistoryContent
		for i, sample := range samples {
			got, back = got.With(sample), samples[len(samples)-1-i].With(back)
		}
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(back, want) ||
			!want.IsCut || len(want.Rows) > MaxHistorySeries {
			t.Fatalf("names of %d: %d and %d rows, want %d", length, len(got.Rows), len(back.Rows), len(want.Rows))
		}
	}
}

func TestEachInstantIsInOneBucketOfEachSize(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		at := time.Unix(r.Int64N(1<<32), r.Int64N(1e9)).In(time.FixedZone("", r.IntN(50000)))
		var inner time.Time
		for i, size := range CapacityBucketSizes() {
			begin := size.Begin(at)
			if at.Before(begin) || !at.Before(begin.Add(size.Duration())) ||
				begin.Unix()%int64(size.Duration()/time.Second) != 0 {
				t.Fatalf("%s is in the %s of %s", at, size, begin)
			}
			if i > 0 && size.Begin(inner) != begin {
				t.Fatalf("the part %s of the %s of %s is in that of %s", inner, size, begin, size.Begin(inner))
			}
			inner = begin
		}
	}
}

func TestAgesAndWrongClocks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 13, 7, 0, 0, time.UTC)
	for _, of := range []struct {
		size  CapacityBucketSize
		begin string
		kept  bool
	}{
		{BucketOfFiveMinutes, "2026-03-02T13:10:00Z", true},
		{BucketOfFiveMinutes, "2026-03-02T13:05:00Z", false},
		{BucketOfHour, "2026-02-03T14:00:00Z", true},
		{BucketOfHour, "2026-02-03T13:00:00Z", false},
		{BucketOfDay, "2025-02-04T00:00:00Z", true},
		{BucketOfDay, "2025-02-03T00:00:00Z", false},
		{BucketOfDay, "2026-03-11T00:00:00Z", true},
		{BucketOfDay, "2026-03-12T00:00:00Z", false},
		{BucketOfHour, "2026-03-11T23:00:00Z", true},
		{BucketOfFiveMinutes, "2026-03-11T23:55:00Z", true},
		{BucketOfFiveMinutes, "2026-03-12T00:00:00Z", false},
	} {
		begin, err := time.Parse(time.RFC3339, of.begin)
		if err != nil {
			t.Fatal(err)
		}
		if after, before := of.size.Kept(now); (begin.After(after) && begin.Before(before)) != of.kept {
			t.Errorf("the bucket %s of %s: want kept %v", of.size, of.begin, of.kept)
		}
	}
}

func TestBrokenContentIsRefused(t *testing.T) {
	t.Parallel()
	packed, err := randomContent(rand.New(rand.NewPCG(7, 8))).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"AAAA", "-", packed[:len(packed)/2], strings.ToLower(packed)} {
		if _, err := UnpackHistory(wrong); err == nil {
			t.Errorf("%.20s is read", wrong)
		}
	}
}

func TestHistoryQueriesAreChecked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 13, 7, 0, 0, time.UTC)
	first, late := now.Add(-MaxHistoryBuckets*time.Hour), now.Add(time.Hour)
	early := first.Add(-1)
	many := make([]string, MaxFilterList+1)
	for _, of := range []struct {
		query HistoryQuery
		want  string
	}{
		{HistoryQuery{By: HistoryByClass, Bucket: BucketOfHour}, ""},
		{HistoryQuery{HistoryByClass, BucketOfHour, CapacityHistoryFilter{Since: &first}}, ""},
		{HistoryQuery{By: HistoryByProject, Bucket: BucketOfFiveMinutes}, "bucket"},
		{HistoryQuery{HistoryByClass, BucketOfHour, CapacityHistoryFilter{Since: &early, Aggregates: many}},
			"filter.since filter.aggregates filter.aggregates"},
		{HistoryQuery{HistoryByFlavor, BucketOfDay,
			CapacityHistoryFilter{Since: &early, ResourceClasses: []string{}, ProjectIDs: []string{}}},
			"filter.resourceClasses filter.projectIds"},
		{HistoryQuery{HistoryByProject, BucketOfDay, CapacityHistoryFilter{Since: &late, Flavors: []string{"x"}}},
			"filter.since filter.flavors"},
	} {
		var paths []string
		for _, p := range of.query.Validate(now) {
			paths = append(paths, p.Path)
		}
		if got := strings.Join(paths, " "); got != of.want {
			t.Errorf("%+v: %s, want %s", of.query, got, of.want)
		}
	}
	query := HistoryQuery{By: HistoryByClass, Bucket: BucketOfHour}
	first, until := query.Range(now)
	// 100 buckets, with the one that has begun
	if until != now || first != time.Date(2026, 3, 6, 10, 0, 0, 0, time.UTC) {
		t.Errorf("by default %s to %s", first, until)
	}
}
