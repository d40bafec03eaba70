// Package admission decides which operations run now and which wait. A Gate
// bounds shared resources: places, database connections, bytes. A client's
// connection can take an eighth of a resource, a viewer a quarter or, if
// trusted, half, a project half; the first amount that each takes may be
// larger. The queue is round-robin by project, then by viewer.
package admission

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Lane is a part of a gate with a limit and a queue.
type Lane struct {
	Name  string
	Limit int64 // 0 is no limit
	Wait  time.Duration
	// Waited, unless nil, is called after each wait, with the reason if it failed.
	Waited func(ctx context.Context, lane string, began time.Time, err error)
}

// maxLanes is the maximum number of lanes of a gate.
const maxLanes = 4

// Gate bounds the current use by all operations, lane by lane.
type Gate struct{ lanes []*queue }

// NewGate returns a gate with lanes, at most maxLanes.
func NewGate(lanes ...Lane) *Gate {
	g := &Gate{}
	for _, of := range lanes {
		g.lanes = append(g.lanes, &queue{Lane: of, shares: map[share]*use{}})
	}
	return g
}

// Pass is the use of a gate by one operation. Only one goroutine may use it.
type Pass struct {
	gate  *Gate
	of    Party
	holds [maxLanes]*hold
}

// Pass returns a pass that uses nothing.
func (g *Gate) Pass(of Party) Pass { return Pass{gate: g, of: of} }

// Take takes an amount from a lane that the pass does not use yet. It waits up
// to Lane.Wait, and returns ErrOverShare, errFull or context.Canceled if it is
// not admitted.
func (p *Pass) Take(ctx context.Context, lane int, amount int64) error {
	of, err := p.gate.lanes[lane], error(nil)
	p.holds[lane], err = of.enter(ctx, p.of, amount, of.Wait)
	return err
}

// Change changes the amount that the pass uses of a lane. It never waits, and
// changes nothing if the pass uses nothing of the lane.
func (p *Pass) Change(lane int, amount int64) { p.holds[lane].change(amount) }

// Uses reports whether the pass uses something of a lane that has a limit.
func (p *Pass) Uses(lane int) bool { return p.holds[lane] != nil }

// Give releases the use of lanes, or of all lanes without an argument.
func (p *Pass) Give(lanes ...int) {
	for _, lane := range lanes {
		p.holds[lane].leave()
		p.holds[lane] = nil
	}
	if len(lanes) == 0 {
		p.Give(0, 1, 2, 3)
	}
}

// Usage is the use of a lane.
type Usage struct {
	Lane     string
	Used     int64
	Waiting  int
	Projects map[string]int64 // projects that use something
	Counts   map[string]Count // projects that waited or were refused
}

// Usage returns the use of each lane.
func (g *Gate) Usage() (all []Usage) {
	for _, of := range g.lanes {
		all = append(all, of.usage())
	}
	return all
}

func (g *queue) usage() Usage {
	g.mu.Lock()
	defer g.mu.Unlock()
	projects := map[string]int64{}
	for of, use := range g.shares {
		if of.of == project && use.used > 0 {
			projects[of.name] = use.used
		}
	}
	return Usage{g.Name, g.used, len(g.waiting), projects, g.tally.All()}
}

// maxCounted bounds the projects with separate counts. All other projects
// are counted together, as others.
const maxCounted = 1000

// others is the name for all projects without separate counts. No project
// has this name.
const others = "\x00others"

// Count has the waits and refusals of a project.
type Count struct {
	Waits     uint64 // operations that waited, or were refused without waiting
	Waited    time.Duration
	OverShare uint64 // refused by ErrOverShare
	Full      uint64 // refused by errFull
}

// Counts are counts by project. The zero value has none.
type Counts struct {
	mu        sync.Mutex
	byProject map[string]Count
}

// Add counts an operation of a project that waited for some time, and its error.
func (c *Counts) Add(project string, waited time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byProject == nil {
		c.byProject = map[string]Count{}
	}
	of, known := c.byProject[project]
	if !known && len(c.byProject) >= maxCounted {
		project = others
		of = c.byProject[project]
	}
	of.Waits++
	of.Waited += waited
	switch err {
	case ErrOverShare:
		of.OverShare++
	case errFull:
		of.Full++
	}
	c.byProject[project] = of
}

// All returns the counts of all projects that have any.
func (c *Counts) All() map[string]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byProject)
}
