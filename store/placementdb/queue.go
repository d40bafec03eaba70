package placementdb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
)

// claimQueue lets waiting claims and releases share a transaction. While one
// transaction runs, new claims wait. The next transaction takes up to
// claimsAtOnce of them, of any providers. So the claims share round trips,
// locks and a commit. A claim that has waited for claimLate starts another
// transaction with the waiting claims, up to atOnce transactions. So if one
// transaction waits for a lock, not all claims of the process do.
//
// A waiting claim holds no database connection. The leader of a transaction has
// one for all its claims. The queue is round-robin by viewer. So a viewer with
// many or large claims delays others by a transaction or two at most.
//
// For the effect see docs/measured/steps.md. A claim never waits in the queue
// if no other claim of the process runs.
type claimQueue struct {
	mu      sync.Mutex
	atOnce  int // the limit for running transactions; 0 is one
	running int
	waiting []*waitingClaim
}

// claimLate is how long a claim waits before it may start another transaction.
// It is several times the duration of a transaction.
const claimLate = 20 * time.Millisecond

// waitingClaim is a claim, or a release of all allocations of consumers, with
// its outcome.
type waitingClaim struct {
	ctx       context.Context
	claimant  claimant
	mutation  string // decides the permission; recorded in events
	concerned concerned
	// choose, unless nil, chooses in a world, sets concerned, and returns the
	// world after the claim or the refusal. isGuess means that the world has
	// choices of earlier claims, which judge may refuse.
	choose func(world *placement.World, isGuess bool) (*placement.World, error)
	// round is the number of choices of the claim, including the current one.
	round int
	// judge applies the claim to the ledger of a transaction and sets the
	// answer, or returns the refusal. A retry of the transaction calls it
	// again.
	judge  func(c *claimTx) error
	answer any // points to the result of judge
	// written are the consumers that judge wrote; nil means all that the claim
	// concerns.
	written []string
	// taken are the accepted candidates; isMisleading is whether other chosen ones
	// are unused.
	taken        []*placement.Candidate
	isMisleading bool
	err          error

	lead chan []*waitingClaim // receives the claims to decide, this claim first
	done chan struct{}        // closed when another caller has decided it
}

// claimant is the viewer of a claim: a user in a project.
type claimant struct{ user, project string }

const (
	// claimsAtOnce bounds the claims in a transaction.
	claimsAtOnce = 64
	// concernedAtOnce bounds the consumers and providers of a transaction. A
	// single claim may exceed it.
	concernedAtOnce = 1000
)

// decide queues a claim and returns its error once it is decided, alone or with
// others, by this caller or another one. If ctx ends while the claim waits, the
// claim leaves the queue, and decide returns the error of ctx.
func (q *claimQueue) decide(ctx context.Context, w *waitingClaim,
	decide func(context.Context, []*waitingClaim) error) error {
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
			gone = nil // too late: another caller decides it, or it is about to lead
		}
	}
}

// enter queues a claim, or returns true if it may run immediately.
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

// overtake lets a waiting claim lead another transaction, if the limit allows
// one.
func (q *claimQueue) overtake(w *waitingClaim) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 && q.running < q.atOnce {
		q.running++
		q.waiting = slices.Insert(slices.Delete(q.waiting, i, i+1), 0, w)
		q.handOver()
	}
}

// leave removes a claim from the queue. It returns false if the claim no longer
// waits.
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

// run decides claims together and then starts the next transaction. A
// transaction for several claims outlives the request of its leader.
func (q *claimQueue) run(ctx context.Context, together []*waitingClaim,
	decide func(context.Context, []*waitingClaim) error) {
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
var errUndecided = errors.New("the transaction did not end")

// next ends a transaction and starts the next one with the waiting claims.
func (q *claimQueue) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running--
		return
	}
	q.handOver()
}

// handOver passes waiting claims, ordered round-robin by viewer, to the first
// of them, within claimsAtOnce and concernedAtOnce.
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

// inTurns orders claims round-robin by viewer, and otherwise keeps their order.
func inTurns(claims []*waitingClaim) []*waitingClaim {
	turns := make(map[*waitingClaim]int, len(claims))
	before := map[claimant]int{}
	for _, w := range claims {
		turns[w] = before[w.claimant]
		before[w.claimant]++
	}
	return slices.SortedStableFunc(slices.Values(claims), func(a, b *waitingClaim) int {
		return cmp.Compare(turns[a], turns[b])
	})
}
