package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Errors of Pass.Take. Neither reveals the use by others.
var (
	// ErrOverShare means that the viewer, project or connection is at its
	// share: the operation waited without success behind others of the same
	// share, or too many of the viewer's operations wait.
	ErrOverShare = errors.New("over the share of one viewer, project or connection")
	// errFull means that an operation waited without success for any other
	// reason.
	errFull = errors.New("everything is in use")
)

// Party identifies the owner of an operation.
type Party struct {
	Viewer  string // unique among all projects
	Project string
	// Connection identifies the client's connection; empty is none.
	Connection string
	// Trusted is whether the viewer may have as much as a project.
	Trusted bool
}

// waitingOfViewer is how many operations of one viewer may wait in a lane. This
// is more than browsers, and clients with pools, send together.
const waitingOfViewer = 64

// queue is a lane with its current use and the holds that wait for it.
type queue struct {
	Lane

	mu      sync.Mutex
	used    int64
	shares  map[share]*use // shares of parties that use something or wait
	spare   []*use         // unused ones
	waiting []*hold        // in the order of arrival
	turn    uint64         // counts the admissions
	tally   Counts
}

// share identifies an owner of part of a lane: a viewer, a project or a
// connection.
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
	kinds // the number of kinds
)

// use is the current use of a share.
type use struct {
	used    int64
	holds   int // holds that are admitted or wait
	waiting int
	turn    uint64 // the turn of its latest admission
}

// hold is the amount that an operation uses of a lane, or waits for. A nil hold
// takes nothing. Only one goroutine may use it.
type hold struct {
	lane   *queue
	of     Party
	shares [kinds]*use
	most   [kinds]int64
	amount int64
	let    chan struct{} // closed on admission
	came   uint64        // the turn when it began to wait
}

// hadATurn reports whether another hold of the same viewer, project or
// connection was admitted since this one began to wait.
func (w *hold) hadATurn() bool {
	return slices.ContainsFunc(w.shares[:], func(of *use) bool { return of != nil && of.turn > w.came })
}

// enter takes an amount. It waits up to wait or until the context ends, then
// returns ErrOverShare, errFull or context.Canceled. If too many of the viewer's operations wait,
// it returns ErrOverShare without waiting. An unused lane or share admits any
// amount, so no amount is too large. If the lane has no limit, the hold is nil.
func (g *queue) enter(ctx context.Context, of Party, amount int64, wait time.Duration) (*hold, error) {
	if g.Limit <= 0 {
		return nil, nil
	}
	p := &hold{lane: g, of: of, amount: amount}
	if in, err := g.begin(p); err != nil {
		g.tally.Add(of.Project, 0, err)
		return nil, err
	} else if in {
		return p, nil
	}
	began := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.let:
	case <-timer.C:
	case <-ctx.Done():
	}
	err := g.giveUp(p)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		err = context.Canceled // the client has gone, which is no refusal
	}
	g.tally.Add(of.Project, time.Since(began), err)
	if g.Waited != nil {
		g.Waited(ctx, g.Name, began, err)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// begin admits a hold, makes it wait, or refuses it if too many holds of its
// viewer wait. in reports whether the hold is admitted.
func (g *queue) begin(p *hold) (in bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.find(p)
	if len(g.waiting) == 0 && p.isWithinShares() && g.isFree(p.amount) {
		g.let(p)
		return true, nil
	}
	if p.shares[viewer].waiting >= waitingOfViewer {
		g.forget(p)
		return false, ErrOverShare
	}
	p.let, p.came = make(chan struct{}), g.turn
	for _, of := range p.shares {
		if of != nil {
			of.waiting++
		}
	}
	g.waiting = append(g.waiting, p)
	g.letIn()
	select {
	case <-p.let:
		return true, nil
	default:
		return false, nil
	}
}

// giveUp stops waiting. It returns nil if the hold is admitted.
func (g *queue) giveUp(p *hold) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-p.let:
		return nil
	default:
	}
	err := errFull
	if !p.isWithinShares() || p.hadATurn() {
		err = ErrOverShare
	}
	g.drop(p)
	g.forget(p)
	g.letIn() // the holds that waited behind it
	return err
}

// change changes the amount, whether or not the lane is full.
func (p *hold) change(amount int64) {
	if p == nil {
		return
	}
	g := p.lane
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(p, amount-p.amount)
	p.amount = amount
	g.letIn()
}

// leave releases the amount.
func (p *hold) leave() {
	if p == nil {
		return
	}
	g := p.lane
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(p, -p.amount)
	g.forget(p)
	g.letIn()
}

// letIn admits holds in turn while there is room. If the next hold does not
// fit, no other hold passes it.
func (g *queue) letIn() {
	for next := g.next(); next != nil && g.isFree(next.amount); next = g.next() {
		g.drop(next)
		g.let(next)
		close(next.let)
	}
}

// next returns the hold to admit next, or nil. Of the waiting holds that fit
// their shares, it prefers the project, then the viewer, admitted longest ago.
func (g *queue) next() *hold {
	var next *hold
	for _, w := range g.waiting {
		if w.isWithinShares() && (next == nil || w.isBefore(next)) {
			next = w
		}
	}
	return next
}

func (g *queue) let(w *hold) {
	g.turn++
	g.add(w, w.amount)
	for _, of := range w.shares {
		if of != nil {
			of.turn = g.turn
		}
	}
}

func (g *queue) add(w *hold, amount int64) {
	g.used += amount
	for _, of := range w.shares {
		if of != nil {
			of.used += amount
		}
	}
}

// drop removes a hold from the queue.
func (g *queue) drop(w *hold) {
	i := slices.Index(g.waiting, w)
	g.waiting = slices.Delete(g.waiting, i, i+1)
	for _, of := range w.shares {
		if of != nil {
			of.waiting--
		}
	}
}

// isFree reports whether the lane is unused or has room for an amount.
func (g *queue) isFree(amount int64) bool { return g.used == 0 || g.used+amount <= g.Limit }

// isWithinShares reports whether the shares of a hold are unused or have room.
func (w *hold) isWithinShares() bool {
	for i, of := range w.shares {
		if of != nil && of.used > 0 && of.used+w.amount > w.most[i] {
			return false
		}
	}
	return true
}

// isBefore reports whether the hold is due before another.
func (w *hold) isBefore(other *hold) bool {
	for i := range viewer + 1 {
		if w.shares[i].turn != other.shares[i].turn {
			return w.shares[i].turn < other.shares[i].turn
		}
	}
	return false
}

// find sets the shares of a new hold and their limits. It adds missing shares.
func (g *queue) find(p *hold) {
	most := [kinds]int64{project: g.Limit / 2, viewer: g.Limit / 4, connection: g.Limit / 8}
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
		known.holds++
		p.shares[i], p.most[i] = known, most[i]
	}
}

// forget releases the shares of a hold, and deletes shares without holds.
func (g *queue) forget(p *hold) {
	for i, of := range p.of.shares() {
		known := p.shares[i]
		if known == nil {
			continue
		}
		if known.holds--; known.holds == 0 {
			delete(g.shares, of)
			*known = use{}
			g.spare = append(g.spare, known)
		}
	}
}

// unused returns an empty use, a spare one if possible.
func (g *queue) unused() *use {
	if last := len(g.spare) - 1; last >= 0 {
		of := g.spare[last]
		g.spare = g.spare[:last]
		return of
	}
	return &use{}
}

func (p Party) shares() [kinds]share {
	return [kinds]share{
		project:    {project, p.Project, true},
		viewer:     {viewer, p.Viewer, true},
		connection: {connection, p.Connection, p.Connection != ""},
	}
}
