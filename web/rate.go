package web

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/lru"
)

// maxBuckets bounds how many buckets are kept; those not used for longest go
// first, and they are full again.
const maxBuckets = 20_000

// refusedPoints is what a request without a valid token takes from its address's
// bucket, besides the one point of every request: so guessing is slow.
const refusedPoints = 50

// pointCost is how much cost a point of a principal's budget buys.
const pointCost = 1000

// buckets are token buckets by key.
type buckets struct {
	perSecond float64
	burst     int
	byKey     *lru.Cache[*rate.Limiter]
}

// newBuckets makes buckets that fill at so many points a second and hold four
// seconds of them; nil, which holds nothing back, for zero.
func newBuckets(perSecond float64) *buckets {
	if perSecond <= 0 {
		return nil
	}
	return &buckets{perSecond: perSecond, burst: max(1, int(math.Ceil(4*perSecond))), byKey: lru.New[*rate.Limiter](maxBuckets)}
}

func (b *buckets) of(key string) *rate.Limiter {
	return b.byKey.GetOrCreate(key, 1, func() *rate.Limiter { return rate.NewLimiter(rate.Limit(b.perSecond), b.burst) })
}

// take takes points from a bucket, or says in how many seconds that may go. More
// than a full bucket takes a full one.
func (b *buckets) take(key string, points int, now time.Time) *refusal {
	if b == nil {
		return nil
	}
	limiter := b.of(key)
	points = min(points, b.burst)
	if limiter.AllowN(now, points) {
		return nil
	}
	wait := (float64(points) - limiter.TokensAt(now)) / b.perSecond
	return &refusal{status: 429, code: graph.CodeRateLimited, retryAfter: max(1, int(math.Ceil(wait))),
		message: "too many requests, or too expensive ones; try again later"}
}

// charge takes points that were not asked for, and those that are not there from
// what comes in next: a bucket that could not owe would be charged the one point
// of a request only, as soon as it is empty.
func (b *buckets) charge(key string, points int, now time.Time) {
	if b == nil {
		return
	}
	limiter := b.of(key)
	limiter.ReserveN(now, min(points, b.burst))
}

// principal is the key of a viewer's bucket.
func principal(viewer access.Viewer) string { return viewer.UserID + "\x00" + viewer.ProjectID }

// slots bounds how many operations are worked on at once.
type slots chan struct{}

// newSlots makes so many slots; nil, which always has one, for zero.
func newSlots(count int) slots {
	if count <= 0 {
		return nil
	}
	return make(slots, count)
}

// slotWait is how long a request waits for a slot.
const slotWait = time.Second

// take waits a moment for a slot; the caller gives it back.
func (s slots) take(ctx context.Context) (giveBack func(), problem *refusal) {
	if s == nil {
		return func() {}, nil
	}
	giveBack = func() { <-s }
	select {
	case s <- struct{}{}:
		return giveBack, nil
	default:
	}
	timer := time.NewTimer(slotWait)
	defer timer.Stop()
	select {
	case s <- struct{}{}:
		return giveBack, nil
	case <-ctx.Done():
	case <-timer.C:
	}
	return nil, &refusal{status: 503, code: graph.CodeUnavailable, retryAfter: 1, message: "the server is busy; try again later"}
}
