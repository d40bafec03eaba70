package placementdb

import (
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// modelProcess is a process of the model: the cache and the follower's decision,
// with the model for a database.
type modelProcess struct {
	database *modelDatabase
	cache    worldCache
	now      modelLook
	looks    int                       // that have begun
	ended    int                       // the last one that has ended
	lost     map[*modelTransaction]int // the look that can tell what became of it
	deciding func(held *heldWorld, at sqldb.Snapshot, notes []placementNote) plan
}

// modelLook is a way from what was held to a snapshot.
type modelLook struct {
	held    *heldWorld // nil when none is under way
	plan    plan
	read    bool
	reading reading
	commits int // that the snapshot sees
}

func newModelProcess(d *modelDatabase, _ int) worldUnderTest {
	return newDecidingProcess(d, decide)
}

func newDecidingProcess(d *modelDatabase, deciding func(*heldWorld, sqldb.Snapshot, []placementNote) plan) *modelProcess {
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
