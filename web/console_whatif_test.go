package web_test

import (
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

// TestWhatIfOfTheConsole asks what if by random changes and compares the numbers
// with the API, applies plans, and reads the fits and the history of the overview.
func TestWhatIfOfTheConsole(t *testing.T) {
	t.Parallel()
	inABrowser(t, "console_whatif.js", func(*testing.T, looked) {})
}

// recordHistory gives a cloud a history: a sample of each day of a month, then
// one every five minutes of some hours, except for an hour without a server.
func recordHistory(t *testing.T, s *store.Store) {
	t.Helper()
	viewer := access.Viewer{UserID: "history", Roles: []string{access.RoleService}}
	world, err := s.World(access.WithViewer(t.Context(), viewer))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	record := func(at time.Time, used int64) {
		sample := placement.SampleOf(world, nil)
		for i := range sample[placement.HistoryByClass].Rows {
			figures := &sample[placement.HistoryByClass].Rows[i].Figures
			part := figures[placement.HistoryCapacity].Sum * used / 100
			figures[placement.HistoryUsed] = placement.HistoryRange{Min: part, Max: part, Sum: part}
		}
		if isAdded, err := s.RecordHistory(t.Context(), at, sample); err != nil || !isAdded {
			t.Fatalf("a sample at %v: %v, %v", at, isAdded, err)
		}
	}
	for days := 30; days > 1; days-- {
		record(now.AddDate(0, 0, -days).Add(-3*time.Hour), int64(days*7%60)) // not at the begin of a period
	}
	for samples := 48; samples > 0; samples-- {
		if samples < 18 || samples > 30 {
			record(now.Add(-5*time.Minute*time.Duration(samples)), int64(30+samples*11%50))
		}
	}
}

// TestPlacingOnTheConsole previews, places, confirms and releases consumers of a
// flavor, and compares the page with the API.
func TestPlacingOnTheConsole(t *testing.T) {
	t.Parallel()
	inABrowser(t, "console_place.js", func(*testing.T, looked) {})
}
