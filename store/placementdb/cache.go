package placementdb

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// worldCache keeps the placement world of this process. Readers take a pointer
// and never wait. Its world is what one snapshot saw, with the commits of this
// process that the snapshot did not see yet, each of them whole.
type worldCache struct {
	held atomic.Pointer[heldWorld]
	// awaited is closed when another world is held; nil where nobody waits for it.
	awaited atomic.Pointer[chan struct{}]

	// applying is held while the next world is made. Nothing is read from the
	// database under it.
	applying sync.Mutex
	// ahead has the providers, by uuid, that commits of this process changed
	// which the snapshot did not see yet, and added those commits.
	ahead map[string]aheadCommits
	added map[sqldb.TransactionID]bool
}

// heldWorld is a world and how far it has come. It never changes.
type heldWorld struct {
	world *placement.World
	upTo  sqldb.Snapshot
}

// aheadCommits is what commits of this process did to one provider, by the
// numbers of their transactions.
type aheadCommits struct {
	last int64
	// reborn is the last one that created or deleted it, and row the row that it
	// had before that, 0 for none.
	reborn, row int64
}

// providerState is a provider as committed, with the row of its parent, 0 for
// none.
type providerState struct {
	parentRow int64
	placement.Provider
}

// ownCommit is what a transaction of this process changed. It moves the version
// of each provider that it writes by one.
type ownCommit struct {
	transaction    sqldb.TransactionID
	created        []providerState
	written        []providerState
	deleted        []placement.Provider // as they were
	added, removed placement.Names
	// more says that it changed more than stands here.
	more bool
}

// reading is what a snapshot saw of what was noted in the change log since the
// snapshot that the world has, or of everything.
type reading struct {
	at         sqldb.Snapshot
	everything bool
	only       *heldWorld // unless nil, the reading is of no use to another one
	states     []providerState
	absent     []string         // uuids that no provider has
	names      *placement.Names // all that exist; nil if none came or went
}

// World returns the world.
func (c *worldCache) World() *placement.World { return c.held.Load().world }

// UpTo returns the snapshot that the world has.
func (c *worldCache) UpTo() sqldb.Snapshot { return c.held.Load().upTo }

// Shows reports whether the world is known to have all that some transactions
// committed: those that its snapshot sees, and those of this process that were added.
func (c *worldCache) Shows(transactions []sqldb.TransactionID) bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	upTo := c.UpTo()
	return !slices.ContainsFunc(transactions, func(t sqldb.TransactionID) bool { return !upTo.Contains(t) && !c.added[t] })
}

// hold makes a world the one that is held, and tells those who wait for another.
func (c *worldCache) hold(next *heldWorld) {
	c.held.Store(next)
	if waiting := c.awaited.Swap(nil); waiting != nil {
		close(*waiting)
	}
}

// Next returns a channel that is closed once another world is held than now.
func (c *worldCache) Next() <-chan struct{} {
	next := make(chan struct{})
	for {
		if waiting := c.awaited.Load(); waiting != nil {
			return *waiting
		}
		if c.awaited.CompareAndSwap(nil, &next) {
			return next
		}
	}
}

// Apply brings the world forward to a snapshot. What commits of this process
// changed that the snapshot does not see stays. Apply reports false, and changes
// nothing, if the two do not go together, since the snapshot lacks what such a
// commit was built on: then a later snapshot is to be taken. The snapshot is of
// the run of the server that the world has; one that is older than the world's
// changes nothing, and Apply reports true.
func (c *worldCache) Apply(r reading) bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	held := c.held.Load()
	if r.only != nil && r.only != held {
		return false
	}
	if r.isBefore(held) {
		return true
	}
	stays, ok := c.staysAhead(&r)
	if !ok {
		return false
	}
	return c.advance(held.world, r.since(held.world, stays), r.at)
}

// isBefore reports whether a world has a later snapshot of the same run of the
// server than a reading: one that an operation read meanwhile.
func (r *reading) isBefore(held *heldWorld) bool {
	return r.at.Server == held.upTo.Server && r.at.IsBefore(held.upTo)
}

// since returns what a reading found to be other than in a world that was held
// before, but for providers that stay as they are.
func (r *reading) since(world *placement.World, stays map[string]bool) *worldUpdate {
	update := newWorldUpdate()
	for _, state := range r.states {
		if !stays[state.UUID] {
			update.put(world, state)
		}
	}
	for _, uuid := range r.absent {
		if !stays[uuid] {
			update.remove(world, uuid)
		}
	}
	if r.names != nil {
		there := world.Names()
		update.Added, update.Removed = namesWithout(*r.names, there), namesWithout(there, *r.names)
	}
	return update
}

// world returns the world of a reading of everything.
func (r *reading) world() *placement.World {
	providers := make([]placement.Provider, len(r.states))
	for i := range r.states {
		providers[i] = r.states[i].Provider
	}
	return placement.NewWorld(*r.names, providers)
}

// ApplyIfComplete adds a commit of this process to the world. It reports false,
// and changes nothing, if the world lacks a commit that this one was built on, or
// if this is not known: then the world is to be brought forward to a snapshot
// that sees this commit. A commit that the world's snapshot sees changes nothing:
// what came after it may be there already.
func (c *worldCache) ApplyIfComplete(commit *ownCommit) bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	held := c.held.Load()
	if held.upTo.Contains(commit.transaction) {
		return true
	}
	if held.upTo.Server != commit.transaction.Server || !commit.follows(held.world) {
		return false
	}
	update := newWorldUpdate()
	for i := range commit.deleted {
		update.remove(held.world, commit.deleted[i].UUID)
	}
	for _, state := range commit.created {
		update.put(held.world, state)
	}
	for _, state := range commit.written {
		update.put(held.world, state)
	}
	if !update.fits(held.world) {
		return false
	}
	c.hold(&heldWorld{world: held.world.With(update.Update), upTo: held.upTo})
	c.added[commit.transaction] = true
	for uuid := range update.states {
		c.ahead[uuid] = c.ahead[uuid].after(commit.transaction.Number)
	}
	for i := range commit.created {
		c.ahead[commit.created[i].UUID] = aheadCommits{last: commit.transaction.Number, reborn: commit.transaction.Number}
	}
	for uuid := range update.deleted {
		before, _ := held.world.Provider(uuid)
		c.ahead[uuid] = aheadCommits{last: commit.transaction.Number, reborn: commit.transaction.Number, row: before.Row}
	}
	return true
}

// after returns the commits with one more, which neither created nor deleted.
func (a aheadCommits) after(number int64) aheadCommits {
	a.last = number
	return a
}

// Replace makes a world of all that a later snapshot saw, of whichever run of the
// server. As with Apply, what commits of this process changed that the snapshot
// does not see stays, and Replace reports false if that does not go together.
func (c *worldCache) Replace(r reading) bool {
	world, update := r.world(), newWorldUpdate()
	c.applying.Lock()
	defer c.applying.Unlock()
	if held := c.held.Load(); held != nil {
		if r.isBefore(held) {
			return true
		}
		stays, ok := c.staysAhead(&r)
		if !ok {
			return false
		}
		for uuid := range stays {
			update.carry(held.world, world, uuid)
		}
	}
	return c.advance(world, update, r.at)
}

// advance makes a changed world the one that is held, up to a later snapshot, if
// the update fits.
func (c *worldCache) advance(world *placement.World, update *worldUpdate, upTo sqldb.Snapshot) bool {
	if !update.fits(world) {
		return false
	}
	if c.ahead == nil {
		c.ahead, c.added = map[string]aheadCommits{}, map[sqldb.TransactionID]bool{}
	}
	if !update.isEmpty() {
		world = world.With(update.Update)
	}
	c.hold(&heldWorld{world: world, upTo: upTo})
	maps.DeleteFunc(c.ahead, func(_ string, own aheadCommits) bool { return upTo.Sees(own.last) })
	maps.DeleteFunc(c.added, func(own sqldb.TransactionID, _ bool) bool { return own.Server != upTo.Server || upTo.Contains(own) })
	return true
}

// staysAhead returns the uuids of what commits of this process changed that a
// snapshot does not see. It reports false if the snapshot sees something else
// than what they were built on, or is of another run of the server: that one has
// seen the end of whatever ran before.
func (c *worldCache) staysAhead(r *reading) (stays map[string]bool, ok bool) {
	stays = map[string]bool{}
	rows, sameRun := r.rows(), r.at.Server == c.held.Load().upTo.Server
	for uuid, own := range c.ahead {
		if r.at.Sees(own.last) {
			continue
		}
		if !sameRun {
			return nil, false
		}
		row, read := rows[uuid]
		if (read || r.everything) && row != own.row && !r.at.Sees(own.reborn) {
			return nil, false
		}
		stays[uuid] = true
	}
	return stays, true
}

// rows returns the row of each provider that a reading found, by uuid, and 0 for
// one that it found absent.
func (r *reading) rows() map[string]int64 {
	rows := make(map[string]int64, len(r.states)+len(r.absent))
	for i := range r.states {
		rows[r.states[i].UUID] = r.states[i].Row
	}
	for _, uuid := range r.absent {
		rows[uuid] = 0
	}
	return rows
}

// namesWithout returns the names that are not among others.
func namesWithout(names, others placement.Names) placement.Names {
	return placement.Names{Traits: sqldb.Without(names.Traits, others.Traits), ResourceClasses: sqldb.Without(names.ResourceClasses, others.ResourceClasses)}
}

// reading returns what the snapshot that follows a commit sees of it, given the
// world before.
func (c *ownCommit) reading(world *placement.World) reading {
	next := c.transaction.Number + 1
	r := reading{at: sqldb.Snapshot{Oldest: next, Next: next}, states: slices.Concat(c.created, c.written)}
	created := make(map[string]bool, len(c.created))
	for i := range c.created {
		created[c.created[i].UUID] = true
	}
	for i := range c.deleted {
		if uuid := c.deleted[i].UUID; !created[uuid] {
			r.absent = append(r.absent, uuid)
		}
	}
	if c.changesNames() {
		there := world.Names()
		r.names = &placement.Names{
			Traits:          sqldb.Without(slices.Concat(there.Traits, c.added.Traits), c.removed.Traits),
			ResourceClasses: sqldb.Without(slices.Concat(there.ResourceClasses, c.added.ResourceClasses), c.removed.ResourceClasses),
		}
	}
	return r
}

func (c *ownCommit) changesNames() bool {
	return len(c.added.Traits)+len(c.removed.Traits)+len(c.added.ResourceClasses)+len(c.removed.ResourceClasses) > 0
}
