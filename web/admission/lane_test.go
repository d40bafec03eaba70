package admission

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newLane returns a lane with a limit.
func newLane(limit int64) *queue { return NewGate(Lane{Limit: limit}).lanes[0] }

// TestNobodyHasMoreThanAShare has parties come and go at random. The total, and
// the use of each project, viewer and connection, never exceed their limits.
// The queue admits every party that may enter, and nothing is left.
func TestNobodyHasMoreThanAShare(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 1))
			g := newLane(int64(1 + chance.IntN(40)))
			var entered, refused atomic.Int64
			var clients sync.WaitGroup
			for client := range 24 {
				mine := rand.New(rand.NewPCG(seed, uint64(100+client)))
				of := Party{Viewer: fmt.Sprint("v", client%9),
					Project: fmt.Sprint("p", client%9%3), Trusted: client%9 == 0}
				if client%2 == 0 {
					of.Connection = fmt.Sprint("c", client/4)
				}
				clients.Go(func() {
					for range 30 {
						p, err := g.enter(t.Context(), of, 1+mine.Int64N(3),
							time.Duration(mine.IntN(400))*time.Millisecond)
						if err != nil {
							refused.Add(1)
							continue
						}
						entered.Add(1)
						g.check(t)
						time.Sleep(time.Duration(mine.IntN(20)) * time.Millisecond)
						if mine.IntN(2) == 0 {
							p.change(1)
						}
						p.leave()
						g.check(t)
					}
				})
			}
			clients.Wait()
			if len(g.shares) != 0 || g.used != 0 || len(g.waiting) != 0 {
				t.Errorf("left are %d used, %d shares, %d that wait", g.used, len(g.shares), len(g.waiting))
			}
			if entered.Load() == 0 {
				t.Error("nobody was let in")
			}
		})
	}
}

// check checks the invariants of a lane.
func (g *queue) check(t *testing.T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	const largest = 3 // a party that uses nothing may take any amount
	if g.used > max(g.Limit, largest) {
		t.Errorf("%d of %d are used", g.used, g.Limit)
	}
	most := map[kind]int64{project: g.Limit / 2, viewer: g.Limit / 4, connection: g.Limit / 8}
	for of, use := range g.shares {
		if of == (share{viewer, "v0", true}) {
			most[viewer] = g.Limit / 2
		} else if of.of == viewer {
			most[viewer] = g.Limit / 4
		}
		if use.used > max(most[of.of], largest) {
			t.Errorf("%v has %d of %d", of, use.used, g.Limit)
		}
	}
	if next := g.next(); next != nil && g.isFree(next.amount) {
		t.Errorf("somebody waits whose turn it is, with %d of %d in use", g.used, g.Limit)
	}
}

// TestTheNextOneIsOfAnotherProject has one viewer request everything all the
// time, and others now and then. The others wait for one operation to end, not
// for all.
func TestTheNextOneIsOfAnotherProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g := newLane(1)
		var greedy sync.WaitGroup
		for range 40 {
			greedy.Go(func() {
				for ctx.Err() == nil {
					if p, err := g.enter(ctx, Party{Viewer: "greedy", Project: "a"}, 1, time.Hour); err == nil {
						time.Sleep(time.Second)
						p.leave()
					}
				}
			})
		}
		for i := range 20 {
			time.Sleep(1700 * time.Millisecond)
			began := time.Now()
			p, err := g.enter(ctx, Party{Viewer: fmt.Sprint("modest", i%2), Project: "b"}, 1, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("waited %v for one operation of a second", waited)
			}
			p.leave()
		}
		stop()
		greedy.Wait()
	})
}

// TestALargeAmountIsNotWaitedForForEver has many small amounts come and go
// while a large one waits.
func TestALargeAmountIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g := newLane(100)
		var small sync.WaitGroup
		for client := range 30 {
			small.Go(func() {
				for ctx.Err() == nil {
					p, err := g.enter(ctx, Party{Viewer: fmt.Sprint(client), Project: fmt.Sprint(client)}, 5, time.Hour)
					if err == nil {
						time.Sleep(time.Duration(1+client) * time.Millisecond)
						p.leave()
					}
				}
			})
		}
		time.Sleep(time.Second)
		p, err := g.enter(ctx, Party{Viewer: "large", Project: "large"}, 90, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		p.leave()
		stop()
		small.Wait()
	})
}

// TestWhoWaitsInVainIsToldWhy checks the error of each wait.
func TestWhoWaitsInVainIsToldWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newLane(8)
		enter := func(viewer, project string, amount int64) error {
			_, err := g.enter(t.Context(), Party{Viewer: viewer, Project: project}, amount, time.Second)
			return err
		}
		for i, of := range []struct {
			viewer, project string
			amount          int64
			want            error
		}{
			{"ada", "one", 2, nil},          // a quarter
			{"ada", "one", 1, ErrOverShare}, // more than a quarter for one viewer
			{"bob", "one", 2, nil},
			{"eve", "one", 1, ErrOverShare}, // the project has its half
			{"joe", "two", 5, errFull},
			{"joe", "two", 4, nil}, // a viewer that uses nothing may take any amount
		} {
			got := enter(of.viewer, of.project, of.amount)
			if !errors.Is(got, of.want) {
				t.Errorf("%d: %s of %s is told %v, want %v", i, of.viewer, of.project, got, of.want)
			}
		}
		want := Count{Waits: 2, Waited: 2 * time.Second, OverShare: 2}
		if got := g.tally.All()["one"]; got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		if got := g.tally.All()["two"]; got.Full != 1 || got.OverShare != 0 {
			t.Errorf("counted %+v of another project", got)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err := g.enter(gone, Party{Viewer: "zoe", Project: "three"}, 5, time.Second)
		if got := g.tally.All()["three"]; !errors.Is(err, context.Canceled) || got != (Count{Waits: 1}) {
			t.Errorf("a client that has gone: %v, counted %+v", err, got)
		}
		for range waitingOfViewer {
			go func() { _ = enter("ada", "one", 1) }()
		}
		synctest.Wait()
		began := time.Now()
		if err := enter("ada", "one", 1); !errors.Is(err, ErrOverShare) || time.Since(began) > 0 {
			t.Errorf("one more that waits is told %v after %v", err, time.Since(began))
		}
	})
}

// TestCountsAreBounded counts for more projects than maxCounted.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	c := &Counts{}
	for i := range 3 * maxCounted {
		c.Add(fmt.Sprint(i%(2*maxCounted)), 0, ErrOverShare)
	}
	all, sum := c.All(), uint64(0)
	for _, of := range all {
		sum += of.OverShare
	}
	if len(all) != maxCounted+1 || sum != 3*maxCounted || all["0"].OverShare != 2 ||
		all[others].OverShare != maxCounted {
		t.Errorf("%d counted, %d in all, %+v of the first, %+v of others", len(all), sum, all["0"], all[others])
	}
}

// TestAPassUsesSeveralLanes takes amounts of lanes with and without limits, and
// gives them back, some twice.
func TestAPassUsesSeveralLanes(t *testing.T) {
	t.Parallel()
	g := NewGate(Lane{Name: "a", Limit: 8}, Lane{Name: "free"}, Lane{Name: "b", Limit: 2})
	used := func(want ...int64) {
		t.Helper()
		for i, of := range g.Usage() {
			if of.Used != want[i] || of.Projects["p"] != want[i] {
				t.Errorf("%s: %d are used, %d of the project, want %d", of.Lane, of.Used, of.Projects["p"], want[i])
			}
		}
	}
	pass := g.Pass(Party{Viewer: "v", Project: "p"})
	for lane, amount := range []int64{3, 100, 1} {
		if err := pass.Take(t.Context(), lane, amount); err != nil || pass.Uses(lane) != (lane != 1) {
			t.Errorf("lane %d: %v, used: %v", lane, err, pass.Uses(lane))
		}
	}
	used(3, 0, 1)
	other := g.Pass(Party{Viewer: "v", Project: "p"})
	if err := other.Take(t.Context(), 2, 2); !errors.Is(err, ErrOverShare) || other.Uses(2) {
		t.Errorf("over the share: %v", err)
	}
	other.Give()
	pass.Give(2)
	pass.Change(2, 7) // uses nothing of this lane
	pass.Change(0, 5)
	used(5, 0, 0)
	pass.Give()
	pass.Give()
	used(0, 0, 0)
}
