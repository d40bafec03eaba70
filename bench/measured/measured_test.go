package measured

import (
	"path/filepath"
	"reflect"
	"testing"
)

// TestMeasurementsAreMerged replaces measurements by newer ones.
func TestMeasurementsAreMerged(t *testing.T) {
	t.Parallel()
	line := func(kind, work, database string, figure float64) Line {
		return Line{Kind: kind, Work: work, Database: database, Figures: map[string]float64{"peakBytes": figure}}
	}
	file := filepath.Join(t.TempDir(), "lines.jsonl")
	old := []Line{line(run, "", "", 1), line(Attack, "a", SQLite, 1),
		line(Attack, "b", SQLite, 1), line(Faults, "", Postgres, 1)}
	newer := []Line{line(run, "", "", 2), line(Attack, "b", SQLite, 2), line(Attack, "a", Postgres, 2)}
	for _, lines := range [][]Line{old, newer} {
		if err := Merge(file, lines); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadFile(file)
	want := []Line{newer[0], old[1], newer[1], old[3], newer[2]}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
