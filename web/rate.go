package web

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/lru"
)

// maxBuckets bounds how many buckets are kept. The least recently used go
// first, which are full again anyway.
const maxBuckets = 20_000

// refusedPoints is what a request without a valid token takes from the bucket
// of its address, besides the one point of every request. It makes guessing
// slow.
const refusedPoints = 50

// pointCost is the cost that one point of a viewer's budget pays for.
const pointCost = 1000

// buckets are token buckets by key.
type buckets struct {
	perSecond float64
	burst     int
	byKey     *lru.Cache[*rate.Limiter]
}

// newBuckets returns buckets that fill at so many points a second and hold four
// seconds of them. For zero it returns nil, which admits everything.
func newBuckets(perSecond float64) *buckets {
	if perSecond <= 0 {
		return nil
	}
	return &buckets{perSecond: perSecond, burst: max(1, int(math.Ceil(4*perSecond))), byKey: lru.New[*rate.Limiter](maxBuckets)}
}

func (b *buckets) of(key string) *rate.Limiter {
	return b.byKey.GetOrCreate(key, 1, func() *rate.Limiter { return rate.NewLimiter(rate.Limit(b.perSecond), b.burst) })
}

// take takes points from a bucket, or refuses and says in how many seconds to
// try again. More points than a bucket holds take a full one.
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
		message: "too many requests or too expensive ones; try again later"}
}

// charge takes points whether or not the bucket holds them: it can owe.
// Otherwise an empty bucket would be charged for no more than the one point of
// a request.
func (b *buckets) charge(key string, points int, now time.Time) {
	if b == nil {
		return
	}
	limiter := b.of(key)
	for ; points > 0; points -= b.burst { // which is as many as can be reserved at once
		limiter.ReserveN(now, min(points, b.burst))
	}
}

// addresses are the buckets of addresses: one for requests whose token was valid
// when that address sent it before, and one for all others. So whoever guesses
// tokens does not lock out those who share the address and have one.
type addresses struct {
	proven, unproven *buckets
	seen             *lru.Cache[struct{}] // addresses with valid tokens that they sent
	seed             maphash.Seed
}

func newAddresses(perSecond float64) addresses {
	return addresses{newBuckets(perSecond), newBuckets(perSecond), lru.New[struct{}](maxBuckets), maphash.MakeSeed()}
}

// sent returns what stands for the token, valid or not, that an address sent.
// Tokens are not kept.
func (a addresses) sent(from string, header http.Header) string {
	var hash maphash.Hash
	hash.SetSeed(a.seed)
	for _, name := range []string{"Authorization", "X-Auth-Token"} {
		for _, value := range header[name] {
			_, _ = hash.WriteString(value)
			_ = hash.WriteByte(0)
		}
	}
	return string(binary.NativeEndian.AppendUint64([]byte(from), hash.Sum64()))
}

// of returns the buckets that a request takes its point from, by what sent
// returned for it.
func (a addresses) of(sent string) *buckets {
	if _, ok := a.seen.Get(sent); ok {
		return a.proven
	}
	return a.unproven
}

// prove notes that a token was valid.
func (a addresses) prove(sent string) { a.seen.Add(sent, struct{}{}, 1) }

// disprove notes that a token was not, and makes guessing slow.
func (a addresses) disprove(from, sent string) {
	a.seen.Remove(sent)
	a.unproven.charge(from, refusedPoints, time.Now())
}

// budgets are the buckets of viewers, by what their roles entitle them to.
type budgets struct{ ordinary, service, admin *buckets }

func newBudgets(limits Limits) budgets {
	return budgets{ordinary: newBuckets(limits.PrincipalPoints), service: newBuckets(limits.ServicePoints), admin: newBuckets(limits.AdminPoints)}
}

// take takes points from a viewer's bucket.
func (b budgets) take(viewer access.Viewer, points int, now time.Time) *refusal {
	return b.of(viewer).take(principal(viewer), points, now)
}

// charge takes points from a viewer's bucket, which can owe.
func (b budgets) charge(viewer access.Viewer, points int, now time.Time) {
	if points > 0 {
		b.of(viewer).charge(principal(viewer), points, now)
	}
}

// wait takes points from a viewer's bucket as soon as it holds them. It reports
// false where the context ended before.
func (b budgets) wait(ctx context.Context, viewer access.Viewer, points int) bool {
	of := b.of(viewer)
	if of == nil {
		return ctx.Err() == nil
	}
	return of.of(principal(viewer)).WaitN(ctx, min(points, of.burst)) == nil
}

// isGreedy reports whether a viewer has spent an eighth of what a full bucket
// holds: half a second of what they may spend, at once.
func (b budgets) isGreedy(viewer access.Viewer, now time.Time) bool {
	of := b.of(viewer)
	return of != nil && of.of(principal(viewer)).TokensAt(now) < float64(of.burst)*7/8
}

// of returns the largest of the budgets that the viewer's roles have.
func (b budgets) of(viewer access.Viewer) *buckets {
	of := b.ordinary
	if viewer.IsService() {
		of = of.larger(b.service)
	}
	if viewer.IsAdmin() {
		of = of.larger(b.admin)
	}
	return of
}

// larger returns the buckets that fill faster; nil ones admit everything.
func (b *buckets) larger(other *buckets) *buckets {
	if b == nil || other != nil && b.perSecond >= other.perSecond {
		return b
	}
	return other
}

// principal returns the key of a viewer's bucket.
func principal(viewer access.Viewer) string { return viewer.UserID + "\x00" + viewer.ProjectID }
