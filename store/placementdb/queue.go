package placementdb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// claimQueue lets claims and releases that wait share a transaction: while one is
// under way, those that arrive wait, and the next transaction takes them all, of
// whatever providers. So the round trips, the locks and the commit of one serve
// many. A claim that has waited for claimLate takes those that wait into another
// transaction beside it, of at most so many at once: where one waits for a lock,
// not all claims of the process do.
//
// What waits has no connection to the database: who leads a transaction has one for
// all. Viewers take turns, so that one of many claims, or of large ones, keeps
// others waiting for a transaction or two.
//
// docs/measured/steps.md says what that gains. A single client meets nobody, so the
// queue changes nothing for it.
type claimQueue struct {
	mu      sync.Mutex
	atOnce  int // how many transactions there are at most; 0 is one
	running int
	waiting []*waitingClaim
}

// claimLate is after how long a claim waits no more for the transactions under way.
// It is some times as long as one takes.
const claimLate = 20 * time.Millisecond

// waitingClaim is a claim, or a release of all that a consumer has, with its
// outcome.
type waitingClaim struct {
	ctx       context.Context
	claimant  claimant
	mutation  string // by which it is allowed, and recorded
	concerned concerned
	// judge applies the claim to the ledger of a transaction and sets the answer, or
	// returns why it is refused. It is called again where the transaction is tried
	// again.
	judge  func(c *claimTx) error
	answer any // points to what judge sets
	err    error

	lead chan []*waitingClaim // takes these to decide, itself first
	done chan struct{}        // closed when another one has decided it
}

// claimant is the viewer who claims: a user of a project.
type claimant struct{ user, project string }

const (
	// claimsAtOnce bounds how many claims share a transaction.
	claimsAtOnce = 64
	// concernedAtOnce bounds how many consumers and providers they concern; a single
	// claim may concern more.
	concernedAtOnce = 1000
)

// decide gets a claim decided, alone or with others, by this caller or another,
// and returns its error.
func (q *claimQueue) decide(ctx context.Context, w *waitingClaim, decide func(context.Context, []*waitingClaim) error) error {
	w.lead, w.done = make(chan []*waitingClaim, 1), make(chan struct{})
	if q.enter(w) {
		q.run(ctx, []*waitingClaim{w}, decide)
		return w.err
	}
	late := time.NewTimer(claimLate)
	defer late.Stop()
	gone := ctx.Done()
	for {
		select {
		case <-w.done:
			return w.err
		case together := <-w.lead:
			q.run(ctx, together, decide)
			return w.err
		case <-late.C:
			q.overtake(w)
		case <-gone:
			if q.leave(w) {
				return ctx.Err()
			}
			gone = nil // too late: it is being decided, or is to lead
		}
	}
}

// enter lets a claim wait, or says that it goes first.
func (q *claimQueue) enter(w *waitingClaim) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running == 0 {
		q.running = 1
		return true
	}
	q.waiting = append(q.waiting, w)
	return false
}

// overtake has a claim that still waits lead a transaction beside those under way,
// where there may be another one.
func (q *claimQueue) overtake(w *waitingClaim) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 && q.running < q.atOnce {
		q.running++
		q.waiting = slices.Insert(slices.Delete(q.waiting, i, i+1), 0, w)
		q.handOver()
	}
}

// leave takes a claim out that nobody has begun to decide.
func (q *claimQueue) leave(w *waitingClaim) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// run decides claims together and wakes whoever is next. A transaction for
// several does not end with the request of the one that leads it.
func (q *claimQueue) run(ctx context.Context, together []*waitingClaim, decide func(context.Context, []*waitingClaim) error) {
	defer q.next()
	if len(together) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	err := errUndecided
	defer func() {
		for i, w := range together {
			if err != nil {
				w.err = err
			}
			if i > 0 {
				close(w.done)
			}
		}
	}()
	err = decide(ctx, together)
}

// errUndecided is the error of claims whose decision panicked.
var errUndecided = errors.New("the transaction came to no end")

// next ends a transaction: what waits goes into the next one.
func (q *claimQueue) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running--
		return
	}
	q.handOver()
}

// handOver hands what waits, in turns of the viewers, to the first of those that do.
func (q *claimQueue) handOver() {
	q.waiting = inTurns(q.waiting)
	n, size := 1, q.waiting[0].concerned.size()
	for ; n < min(len(q.waiting), claimsAtOnce); n++ {
		if size += q.waiting[n].concerned.size(); size > concernedAtOnce {
			break
		}
	}
	together := slices.Clone(q.waiting[:n])
	q.waiting = slices.Clone(q.waiting[n:])
	together[0].lead <- together
}

// inTurns returns claims with the first one of each viewer before the second one of
// any, else in their order.
func inTurns(claims []*waitingClaim) []*waitingClaim {
	turns := make(map[*waitingClaim]int, len(claims))
	before := map[claimant]int{}
	for _, w := range claims {
		turns[w] = before[w.claimant]
		before[w.claimant]++
	}
	return slices.SortedStableFunc(slices.Values(claims), func(a, b *waitingClaim) int { return cmp.Compare(turns[a], turns[b]) })
}
