package web

import (
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
)

// TestGuessingIsAsSlowAsItsPriceSays guesses a token each millisecond for ten
// seconds at the default rate. Each guess costs 51 points.
func TestGuessingIsAsSlowAsItsPriceSays(t *testing.T) {
	t.Parallel()
	points := DefaultLimits().AddressPoints
	b := bucket{Limiter: newLimiter(points)}
	start, accepted := time.Now(), 0
	for i := range 10_000 {
		now := start.Add(time.Duration(i) * time.Millisecond)
		if b.take(1, now) == nil {
			accepted++
			b.charge(refusedPoints, now)
		}
	}
	if paid := int(14*points)/(1+refusedPoints) + 1; accepted > paid {
		t.Errorf("%d guesses were accepted, %d are paid for", accepted, paid)
	}
	if refused := b.take(1, start.Add(11*time.Second)); refused != nil {
		t.Errorf("a second later: %+v", refused)
	}
}

// TestTheBucketOfAViewerIsThatOfTheLargestRole compares the buckets of viewers
// with different roles. Some of the limits are off.
func TestTheBucketOfAViewerIsThatOfTheLargestRole(t *testing.T) {
	t.Parallel()
	of := func(limits Limits, roles ...string) float64 {
		return float64(newBuckets(limits).of(access.Viewer{UserID: "u", ProjectID: "p", Roles: roles}).Burst())
	}
	limits := Limits{PrincipalPoints: 10, ServicePoints: 30, AdminPoints: 20}
	for name, both := range map[string][2]float64{
		"member":                    {of(limits, "member"), 40},
		"administrator":             {of(limits, "admin"), 80},
		"service":                   {of(limits, "service"), 120},
		"service and administrator": {of(limits, "admin", "service"), 120},
		"smaller ones take nothing": {of(Limits{PrincipalPoints: 10, ServicePoints: 5, AdminPoints: 5}, "admin",
			"service"), 40},
		"an administrator unlimited":  {of(Limits{PrincipalPoints: 10, ServicePoints: 5}, "admin"), 0},
		"everybody unlimited":         {of(Limits{ServicePoints: 5, AdminPoints: 5}, "admin", "service"), 0},
		"a service, unlimited as one": {of(Limits{PrincipalPoints: 10, AdminPoints: 5}, "admin", "service"), 0},
	} {
		if both[0] != both[1] {
			t.Errorf("%s: the bucket holds %v, want %v", name, both[0], both[1])
		}
	}
	unlimited := newBuckets(Limits{}).of(access.Viewer{UserID: "u"})
	unlimited.charge(1_000_000, time.Now())
	if refused := unlimited.take(1_000_000, time.Now()); refused != nil || unlimited.isGreedy(time.Now()) ||
		!unlimited.wait(t.Context(), 1_000_000) {
		t.Errorf("without a limit: %+v", refused)
	}
}

// TestWaitingForADatabaseIsFree checks that only work counts as the time of an
// operation: the processor time of this process, and the time of statements in
// another process minus their waiting.
func TestWaitingForADatabaseIsFree(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		ran               ran
		isOutside, isLong bool
		want              int64
	}{
		"in memory":                 {ran{50 * ms, 12 * ms, 1}, false, false, 100_000},
		"in memory, waiting":        {ran{50 * ms, 1 * ms, 1}, false, false, 0},
		"beside nine others":        {ran{500 * ms, 100 * ms, 10}, false, true, 80_000},
		"a look-up in PostgreSQL":   {ran{19 * ms, 1 * ms, 1}, true, false, 0},
		"many rows of PostgreSQL":   {ran{30 * ms, 1 * ms, 1}, true, false, 100_000},
		"a search in PostgreSQL":    {ran{12 * ms, 1 * ms, 1}, true, true, 100_000},
		"a short one in PostgreSQL": {ran{1 * ms, 1 * ms, 1}, true, true, 0},
	} {
		if got := max(0, c.ran.cost(c.isOutside, c.isLong)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
