package changelog_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// TestSnapshotSeesWhatHasEnded checks that a snapshot sees the transactions
// that had ended in the same run of the server.
func TestSnapshotSeesWhatHasEnded(t *testing.T) {
	t.Parallel()
	s, err := changelog.ParseSnapshot(1, "10:20:10,14,15")
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int64]bool{9: true, 10: false, 11: true, 14: false,
		15: false, 19: true, 20: false, 21: false} {
		if got := s.Contains(changelog.TransactionID{Server: 1, Number: number}); got != want {
			t.Errorf("contains %d: %t", number, got)
		}
		if s.Contains(changelog.TransactionID{Server: 2, Number: number}) {
			t.Errorf("contains %d of another run of the server", number)
		}
	}
	if s, err := changelog.ParseSnapshot(1, "20:20:"); err != nil || !s.Sees(19) || s.Sees(20) {
		t.Errorf("with none that runs: %+v, %v", s, err)
	}
	for _, wrong := range []string{"", "10", "10:20", "a:20:", "10:b:", "10:20:c", "10:20:10:"} {
		if _, err := changelog.ParseSnapshot(1, wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

// TestWhatACrashUndidHasEnded checks that a transaction lost in a crash counts
// as ended.
func TestWhatACrashUndidHasEnded(t *testing.T) {
	t.Parallel()
	s := changelog.Snapshot{Server: 2, Oldest: 10, Next: 12, Running: []int64{10}}
	for of, want := range map[changelog.TransactionID]bool{
		{Server: 2, Number: 9}: true, {Server: 2, Number: 10}: false,
		{Server: 2, Number: 11}: true, {Server: 2, Number: 12}: false,
		{Server: 1, Number: 9}: true, {Server: 1, Number: 10}: false,
		{Server: 1, Number: 11}: true, {Server: 1, Number: 12}: true,
	} {
		if got := s.HasEnded(of); got != want {
			t.Errorf("%+v has ended: %t", of, got)
		}
	}
}
