// Package admission decides which operations go on now and which wait. A Gate
// bounds something that all of them share: places, connections, bytes. No viewer
// can take more than a quarter of it and no project more than half, and those who
// wait go on in turns: of projects first, then of the viewers of a project.
package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Errors of Gate.Enter. Neither says what others do.
var (
	// ErrOverShare is for somebody who waited in vain behind others of the same
	// viewer, project or connection, or of whom too many wait.
	ErrOverShare = errors.New("over the share of one viewer, project or connection")
	// ErrFull is for everybody else who waited in vain.
	ErrFull = errors.New("everything is in use")
)

// Party is on whose behalf an operation runs.
type Party struct {
	Viewer  string // unique among all projects
	Project string
	// Connection tells the connections of clients apart; empty is none.
	Connection string
	// Trusted is whether the viewer may have as much as a project.
	Trusted bool
}

// waitingOfViewer is how many operations of one viewer may wait at a gate: more
// than browsers, and clients with pools, send at once.
const waitingOfViewer = 64

// Gate bounds an amount that is in use at once. A nil Gate bounds nothing.
type Gate struct {
	limit int64

	mu      sync.Mutex
	used    int64
	shares  map[share]*use // of those who are in or wait
	spare   []*use         // of nobody
	waiting []*waiter      // in the order in which they came
	turn    uint64         // counts those who were let in
	tally   Counts
}

// share is what has a share of a gate: a viewer, a project or a connection.
type share struct {
	of     kind
	name   string
	exists bool // false for no connection
}

type kind int

const (
	project kind = iota
	viewer
	connection
	kinds // how many there are
)

// use is what a share has.
type use struct {
	used    int64
	passes  int // of those who are in or wait
	waiting int
	turn    uint64 // in which it was let in last
}

type waiter struct {
	shares [kinds]*use
	most   [kinds]int64
	amount int64
	let    chan struct{} // closed when it is let in
	came   uint64        // the turn when it began to wait
}

// hadATurn reports whether somebody of the same viewer, project or connection was
// let in meanwhile.
func (w *waiter) hadATurn() bool {
	return slices.ContainsFunc(w.shares[:], func(of *use) bool { return of != nil && of.turn > w.came })
}

// NewGate returns a gate for so much, nil for 0.
func NewGate(limit int64) *Gate {
	if limit <= 0 {
		return nil
	}
	return &Gate{limit: limit, shares: map[share]*use{}}
}

// Pass is what somebody took from a gate. A nil Pass took nothing. One goroutine
// uses it.
type Pass struct {
	gate   *Gate
	of     Party
	waiter waiter
	left   bool
}

// Enter takes an amount, for which it waits no longer than some time, and returns
// ErrOverShare or ErrFull if that was in vain. A share that has nothing may take
// any amount: so none is too much for ever.
func (g *Gate) Enter(ctx context.Context, of Party, amount int64, wait time.Duration) (*Pass, error) {
	if g == nil {
		return nil, nil
	}
	p := &Pass{gate: g, of: of, waiter: waiter{amount: amount}}
	if in, err := g.begin(p); err != nil {
		g.tally.Add(of.Project, counted(0, err))
		return nil, err
	} else if in {
		return p, nil
	}
	began := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.waiter.let:
	case <-timer.C:
	case <-ctx.Done():
	}
	err := g.giveUp(p)
	g.tally.Add(of.Project, counted(time.Since(began), err))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// counted returns the count of somebody who waited for some time.
func counted(waited time.Duration, err error) Count {
	of := Count{Waits: 1, Waited: waited}
	switch err {
	case ErrOverShare:
		of.OverShare = 1
	case ErrFull:
		of.Full = 1
	}
	return of
}

// begin lets somebody in or has them wait.
func (g *Gate) begin(p *Pass) (in bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.find(p)
	if len(g.waiting) == 0 && p.waiter.isWithinShares() && g.isFree(p.waiter.amount) {
		g.let(&p.waiter)
		return true, nil
	}
	if p.waiter.shares[viewer].waiting >= waitingOfViewer {
		g.forget(p)
		return false, ErrOverShare
	}
	p.waiter.let, p.waiter.came = make(chan struct{}), g.turn
	for _, of := range p.waiter.shares {
		if of != nil {
			of.waiting++
		}
	}
	g.waiting = append(g.waiting, &p.waiter)
	g.letIn()
	select {
	case <-p.waiter.let:
		return true, nil
	default:
		return false, nil
	}
}

// giveUp ends waiting: it returns nil for somebody who is in.
func (g *Gate) giveUp(p *Pass) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-p.waiter.let:
		return nil
	default:
	}
	err := ErrFull
	if !p.waiter.isWithinShares() || p.waiter.hadATurn() {
		err = ErrOverShare
	}
	g.drop(&p.waiter)
	g.forget(p)
	g.letIn() // whoever waited behind
	return err
}

// Change changes what a pass has taken, whether or not the gate is full.
func (p *Pass) Change(amount int64) {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(&p.waiter, amount-p.waiter.amount)
	p.waiter.amount = amount
	g.letIn()
}

// Leave gives back what a pass has taken. A second time does nothing.
func (p *Pass) Leave() {
	if p == nil || p.left {
		return
	}
	p.left = true
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(&p.waiter, -p.waiter.amount)
	g.forget(p)
	g.letIn()
}

// letIn lets in everybody whose turn it is, as far as there is room. Where there
// is none for the next one, nobody goes before.
func (g *Gate) letIn() {
	for next := g.next(); next != nil && g.isFree(next.amount); next = g.next() {
		g.drop(next)
		g.let(next)
		close(next.let)
	}
}

// next returns whose turn it is, nil for nobody's: of the project and then of the
// viewer who were let in longest ago.
func (g *Gate) next() *waiter {
	var next *waiter
	for _, w := range g.waiting {
		if w.isWithinShares() && (next == nil || w.isBefore(next)) {
			next = w
		}
	}
	return next
}

func (g *Gate) let(w *waiter) {
	g.turn++
	g.add(w, w.amount)
	for _, of := range w.shares {
		if of != nil {
			of.turn = g.turn
		}
	}
}

func (g *Gate) add(w *waiter, amount int64) {
	g.used += amount
	for _, of := range w.shares {
		if of != nil {
			of.used += amount
		}
	}
}

// drop takes somebody out of those who wait.
func (g *Gate) drop(w *waiter) {
	i := slices.Index(g.waiting, w)
	g.waiting = slices.Delete(g.waiting, i, i+1)
	for _, of := range w.shares {
		if of != nil {
			of.waiting--
		}
	}
}

// isFree reports whether there is room for an amount.
func (g *Gate) isFree(amount int64) bool { return g.used == 0 || g.used+amount <= g.limit }

// isWithinShares reports whether all shares may have what is asked for.
func (w *waiter) isWithinShares() bool {
	for i, of := range w.shares {
		if of != nil && of.used > 0 && of.used+w.amount > w.most[i] {
			return false
		}
	}
	return true
}

// isBefore reports whether it is somebody's turn before another's.
func (w *waiter) isBefore(other *waiter) bool {
	for i := range viewer + 1 {
		if w.shares[i].turn != other.shares[i].turn {
			return w.shares[i].turn < other.shares[i].turn
		}
	}
	return false
}

// find finds the shares of somebody who comes.
func (g *Gate) find(p *Pass) {
	most := [kinds]int64{project: g.limit / 2, viewer: g.limit / 4, connection: g.limit / 8}
	if p.of.Trusted {
		most[viewer] = most[project]
	}
	for i, of := range p.of.shares() {
		if !of.exists {
			continue
		}
		known := g.shares[of]
		if known == nil {
			known = g.unused()
			g.shares[of] = known
		}
		known.passes++
		p.waiter.shares[i], p.waiter.most[i] = known, most[i]
	}
}

// forget forgets somebody who has gone, and shares that nobody has a part in.
func (g *Gate) forget(p *Pass) {
	for i, of := range p.of.shares() {
		known := p.waiter.shares[i]
		if known == nil {
			continue
		}
		if known.passes--; known.passes == 0 {
			delete(g.shares, of)
			*known = use{}
			g.spare = append(g.spare, known)
		}
	}
}

// unused returns a use of nothing: one that nobody has any more, if there is one.
func (g *Gate) unused() *use {
	if last := len(g.spare) - 1; last >= 0 {
		of := g.spare[last]
		g.spare = g.spare[:last]
		return of
	}
	return &use{}
}

// shares returns the shares that a party has a part in.
func (p Party) shares() [kinds]share {
	return [kinds]share{
		project:    {project, p.Project, true},
		viewer:     {viewer, p.Viewer, true},
		connection: {connection, p.Connection, p.Connection != ""},
	}
}

// InUse returns how much is in use, and how many wait.
func (g *Gate) InUse() (used int64, waiting int) {
	if g == nil {
		return 0, 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used, len(g.waiting)
}

// InUseByProjects returns how much the projects have that have anything.
func (g *Gate) InUseByProjects() map[string]int64 {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]int64{}
	for of, use := range g.shares {
		if of.of == project && use.used > 0 {
			out[of.name] = use.used
		}
	}
	return out
}

// Counts returns how often the projects waited and were refused.
func (g *Gate) Counts() map[string]Count {
	if g == nil {
		return nil
	}
	return g.tally.All()
}
