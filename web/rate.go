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
	"github.com/cadastre-dev/cadastre/web/admission"
)

// maxBuckets bounds the number of viewers' buckets, and of addresses' buckets.
// The caches drop the least recently used ones, which are likely full again.
const maxBuckets = 20_000

// Points, in addition to the one point of every request.
const (
	// pointCost is the cost that one point pays for.
	pointCost = 1000
	// writePoints is the price of each root field of a mutation, and of each
	// call of a door that writes, for viewers who are neither administrators
	// nor services: by default about 50 a second, after a burst of about 200.
	writePoints = 20
	// refusedPoints is the price of a request without a valid token. It makes
	// guessing slow.
	refusedPoints = 50
)

// buckets are token buckets, one for each viewer and one for each address. Each
// holds four seconds of its rate.
type buckets struct {
	limits             Limits
	viewers, addresses *lru.Cache[*rate.Limiter]
	proven             *lru.Cache[bucket] // of viewers, by addresses and the valid tokens that they sent
	seed               maphash.Seed
	refused            *admission.Counts
}

func newBuckets(limits Limits) *buckets {
	return &buckets{limits, lru.New[*rate.Limiter](maxBuckets),
		lru.New[*rate.Limiter](maxBuckets), lru.New[bucket](maxBuckets),
		maphash.MakeSeed(), &admission.Counts{}}
}

// bucket is the bucket of a viewer or of an address.
type bucket struct {
	*rate.Limiter
	project string            // of the viewer
	refused *admission.Counts // by projects; nil for an address
}

// newLimiter returns a full bucket. A rate of 0 admits everything.
func newLimiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(4*perSecond))))
}

// of returns the bucket of a viewer. Its rate is the highest rate among the
// viewer's roles.
func (b *buckets) of(viewer access.Viewer) bucket {
	key, points := principal(viewer), b.limits.PrincipalPoints
	grow := func(role string, size float64) {
		if points > 0 && (size <= 0 || size > points) {
			key, points = key+role, size
		}
	}
	if viewer.IsService() {
		grow("\x00service", b.limits.ServicePoints)
	}
	if viewer.IsAdmin() {
		grow("\x00admin", b.limits.AdminPoints)
	}
	limiter := b.viewers.GetOrCreate(key, 1, func() *rate.Limiter { return newLimiter(points) })
	return bucket{limiter, viewer.ProjectID, b.refused}
}

// take takes points. If the bucket does not hold them, take returns a refusal
// with the seconds until the next try. Points beyond the size of the bucket
// count as a full bucket.
func (b bucket) take(points int, now time.Time) *refusal {
	points = min(points, b.Burst())
	if b.AllowN(now, points) {
		return nil
	}
	if b.refused != nil {
		b.refused.Add(b.project, 0, admission.ErrOverShare)
	}
	wait := (float64(points) - b.TokensAt(now)) / float64(b.Limit())
	return &refusal{status: http.StatusTooManyRequests, code: graph.CodeRateLimited,
		retryAfter: max(1, int(math.Ceil(wait))),
		message:    "too many requests or too expensive ones; try again later"}
}

// charge takes points even if the bucket does not hold them: the bucket can owe
// points. Otherwise an empty bucket would pay no more than the one point of a
// request.
func (b bucket) charge(points int, now time.Time) {
	for ; points > 0 && b.Burst() > 0; points -= b.Burst() { // one reservation takes at most a full bucket
		b.ReserveN(now, min(points, b.Burst()))
	}
}

// wait waits until the bucket holds the points, and takes them. It returns
// false if the context ends first.
func (b bucket) wait(ctx context.Context, points int) bool {
	return b.WaitN(ctx, min(points, b.Burst())) == nil
}

// isGreedy reports whether more than an eighth of a full bucket is spent: half a
// second of the rate.
func (b bucket) isGreedy(now time.Time) bool { return b.TokensAt(now) < float64(b.Burst())*7/8 }

// arrival is a request whose token is not checked yet.
type arrival struct {
	buckets *buckets
	address bucket
	sent    string // identifies the address and the token; tokens are not kept
	payer   bucket // the viewer's, if this address sent this valid token before
}

// arrive returns the arrival of a request with a token from an address.
func (b *buckets) arrive(from string, header http.Header) arrival {
	var hash maphash.Hash
	hash.SetSeed(b.seed)
	for _, name := range []string{"Authorization", "X-Auth-Token"} {
		for _, value := range header[name] {
			_, _ = hash.WriteString(value)
			_ = hash.WriteByte(0)
		}
	}
	sent := string(binary.NativeEndian.AppendUint64([]byte(from), hash.Sum64()))
	limiter := b.addresses.GetOrCreate(from, 1, func() *rate.Limiter { return newLimiter(b.limits.AddressPoints) })
	payer, _ := b.proven.Get(sent)
	return arrival{b, bucket{Limiter: limiter}, sent, payer}
}

// isProven reports whether the address sent the token before and it was valid.
func (a arrival) isProven() bool { return a.payer.Limiter != nil }

// take takes the point of the request before the token is checked. The viewer
// pays if the token was valid before, otherwise the address. So clients that
// guess tokens do not lock out others at their address.
func (a arrival) take() *refusal {
	if a.isProven() {
		return a.payer.take(1, time.Now())
	}
	return a.address.take(1, time.Now())
}

// prove notes that the token belongs to the viewer, and returns the viewer's
// bucket.
func (a arrival) prove(viewer access.Viewer) bucket {
	payer := a.buckets.of(viewer)
	a.buckets.proven.Add(a.sent, payer, 1)
	return payer
}

// disprove notes that the token is not valid, and charges the address. This
// makes guessing slow.
func (a arrival) disprove() {
	a.buckets.proven.Remove(a.sent)
	a.address.charge(refusedPoints, time.Now())
}

// principal returns the key of a viewer: its user and project.
func principal(viewer access.Viewer) string { return viewer.UserID + "\x00" + viewer.ProjectID }
