package placementdb

import (
	"fmt"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// modelProcess is a process of the model: the real cache and the follower's
// decision, on the model database.
type modelProcess struct {
	database *modelDatabase
	cache    worldCache
	now      modelLook
	looks    int                       // the number of started looks
	ended    int                       // the number of the last look that ended
	lost     map[*modelTransaction]int // the look that can show its outcome
	read     modelInstant
	deciding func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan
}

// modelLook is a catch up: from the held world to a snapshot.
type modelLook struct {
	held    *heldWorld // nil if none runs
	plan    plan
	read    bool
	reading reading
	commits int // seen by the snapshot
}

// modelInstant is an operation that reads at one instant: from the held world
// to a snapshot, as in PlacementStore.heldAt.
type modelInstant struct {
	held    *heldWorld // nil if none runs
	at      changelog.Snapshot
	plan    plan
	taken   bool
	reading reading
	commits int // seen by the snapshot
}

func newModelProcess(d *modelDatabase, _ int) worldUnderTest {
	return newDecidingProcess(d, decide)
}

func newDecidingProcess(d *modelDatabase,
	deciding func(*heldWorld, changelog.Snapshot, []placementNote) plan) *modelProcess {
	p := &modelProcess{database: d, deciding: deciding, lost: map[*modelTransaction]int{}}
	p.cache.Replace(d.read(plan{everything: true}, d.snapshot(), d.commits))
	return p
}

func (p *modelProcess) world() *placement.World { return p.cache.World() }

func (p *modelProcess) publish(tx *modelTransaction) bool {
	return p.cache.ApplyIfComplete(&tx.own) || p.resolve(tx)
}

func (p *modelProcess) resolve(tx *modelTransaction) bool {
	look, asked := p.lost[tx]
	if !asked {
		p.lost[tx] = p.looks + 1
		return false
	}
	return p.ended >= look && p.cache.UpTo().HasEnded(tx.TransactionID)
}

func (p *modelProcess) look(everything bool) {
	p.looks++
	p.now = modelLook{held: p.cache.held.Load(), plan: plan{everything: everything}}
}

func (p *modelProcess) looking() bool { return p.now.held != nil }

func (p *modelProcess) step() int {
	look := &p.now
	if !look.read {
		at := p.database.snapshot()
		look.commits, look.read = p.database.commits, true
		if !look.plan.everything {
			look.plan = p.deciding(look.held, at, p.database.notes(look.held.upTo.Oldest, look.commits))
		}
		look.reading = p.database.read(look.plan, at, look.commits)
		return -1
	}
	apply := p.cache.Apply
	if look.plan.everything {
		apply = p.cache.Replace
	}
	if !apply(look.reading) {
		p.look(false)
		return -1
	}
	look.held, p.ended = nil, p.looks
	return look.commits
}

// instant runs the next step of an operation that reads at one instant. It
// returns the error of the world read, or "".
func (p *modelProcess) instant() string {
	now := &p.read
	switch {
	case now.held == nil:
		*now = modelInstant{held: p.cache.held.Load()}
		return ""
	case !now.taken:
		now.at, now.commits, now.taken = p.database.snapshot(), p.database.commits, true
		now.plan = p.deciding(now.held, now.at, p.database.notes(now.held.upTo.Oldest, now.commits))
		now.reading = p.database.read(now.plan, now.at, now.commits)
		return ""
	}
	world := now.held.world
	switch {
	case now.plan.everything:
		world = now.reading.world()
	case now.plan.isEmpty():
		p.cache.Apply(reading{at: now.at, only: now.held})
	default:
		world = world.With(now.reading.since(world, nil).Update)
	}
	now.held = nil
	if wrong := brokenRule(world); wrong != "" {
		return "at an instant: " + wrong
	}
	for _, key := range p.database.keys() {
		if _, version := p.database.at(key, now.commits); !version.isIn(world, key) {
			return fmt.Sprintf("I9: the world of the instant %+v has not %v as it is there", now.at, key)
		}
	}
	return ""
}
