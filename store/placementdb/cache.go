package placementdb

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// worldCache keeps the placement world of this process. Readers load a pointer
// and never wait. The world has everything that one snapshot saw, plus complete
// commits of this process that are newer than the snapshot.
type worldCache struct {
	held atomic.Pointer[heldWorld]
	// awaited is closed when the cache holds another world; nil if no goroutine
	// waits.
	awaited atomic.Pointer[chan struct{}]

	// applying is held while the next world is built. No database read happens
	// under it.
	applying sync.Mutex
	// ahead has the providers, by uuid, that commits of this process changed
	// after the snapshot. added has those commits.
	ahead map[string]aheadCommits
	added map[changelog.TransactionID]bool
}

// heldWorld is a world with its snapshot. A heldWorld is immutable.
type heldWorld struct {
	world *placement.World
	upTo  changelog.Snapshot
}

// aheadCommits has the numbers of the last commits of this process that changed
// one provider after the snapshot.
type aheadCommits struct {
	last int64
	// reborn is the number of the last one that created or deleted the
	// provider. row is the provider's row id before it. 0 means none.
	reborn, row int64
}

// providerState is a provider as committed, with the row id of its parent, 0
// for none.
type providerState struct {
	parentRow int64
	placement.Provider
}

// ownCommit is the effect of a transaction of this process. The transaction
// increments the version of each provider that it writes by one.
type ownCommit struct {
	transaction    changelog.TransactionID
	created        []providerState
	written        []providerState
	deleted        []placement.Provider // before the deletion
	added, removed placement.Names
	// more means that the transaction changed more than listed here.
	more bool
}

// reading is the part of a snapshot that was read: everything, or the things
// noted in the change log since the world's snapshot.
type reading struct {
	at         changelog.Snapshot
	everything bool
	only       *heldWorld // if set, the reading applies only to this world
	states     []providerState
	absent     []string         // uuids without a provider
	names      *placement.Names // all existing names; nil if unchanged
}

// World returns the current world.
func (c *worldCache) World() *placement.World { return c.held.Load().world }

// UpTo returns the snapshot of the world.
func (c *worldCache) UpTo() changelog.Snapshot { return c.held.Load().upTo }

// Shows reports whether the world has the commits of all given transactions,
// through its snapshot or as added commits of this process.
func (c *worldCache) Shows(transactions []changelog.TransactionID) bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	upTo := c.UpTo()
	return !slices.ContainsFunc(transactions, func(t changelog.TransactionID) bool {
		return !upTo.Contains(t) && !c.added[t]
	})
}

// hold replaces the world and wakes the goroutines that wait for another one.
func (c *worldCache) hold(next *heldWorld) {
	c.held.Store(next)
	if waiting := c.awaited.Swap(nil); waiting != nil {
		close(*waiting)
	}
}

// Next returns a channel that is closed when the cache holds another world.
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

// Apply updates the world to a snapshot. It keeps what newer commits of this
// process changed. If the snapshot lacks something that such a commit was built
// on, Apply changes nothing and returns false, and the caller must take a later
// snapshot. It does the same if r.only is a world that was replaced. The
// snapshot must come from the same run of the server as the world. If it is
// older than the world's, Apply changes nothing and returns true.
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

// isBefore reports whether a reading has an earlier snapshot than a world. That
// happens if an operation updated the world meanwhile.
func (r *reading) isBefore(held *heldWorld) bool { return r.at.IsBefore(held.upTo) }

// since returns the update that turns a world into the reading, except for the
// providers in stays.
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

// world builds a world from a reading of everything.
func (r *reading) world() *placement.World {
	providers := make([]placement.Provider, len(r.states))
	for i := range r.states {
		providers[i] = r.states[i].Provider
	}
	return placement.NewWorld(*r.names, providers)
}

// ApplyIfComplete adds a commit of this process to the world. If the world
// lacks a commit that this one was built on, or if that is unknown, it changes
// nothing and returns false. The caller must then update the world to a
// snapshot that sees this commit. If the world's snapshot sees the commit
// already, it changes nothing and returns true, since the world may have later
// commits, too.
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
		own := c.ahead[uuid]
		own.last = commit.transaction.Number
		c.ahead[uuid] = own
	}
	for i := range commit.created {
		c.ahead[commit.created[i].UUID] = aheadCommits{last: commit.transaction.Number,
			reborn: commit.transaction.Number}
	}
	for uuid := range update.deleted {
		before, _ := held.world.Provider(uuid)
		c.ahead[uuid] = aheadCommits{last: commit.transaction.Number,
			reborn: commit.transaction.Number, row: before.Row}
	}
	return true
}

// Replace replaces the world by a reading of everything, from any run of the
// server. Like Apply, it keeps what newer commits of this process changed,
// returns false if the snapshot does not fit them, and returns true without a
// change if the snapshot is older than the world's.
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

// advance holds the updated world with its snapshot. It forgets the commits
// ahead that the snapshot sees, or all if the snapshot is of a later run of the
// server. It changes nothing and returns false if the update does not fit.
func (c *worldCache) advance(world *placement.World, update *worldUpdate, upTo changelog.Snapshot) bool {
	if !update.fits(world) {
		return false
	}
	if c.ahead == nil {
		c.ahead, c.added = map[string]aheadCommits{}, map[changelog.TransactionID]bool{}
	}
	if !update.isEmpty() {
		world = world.With(update.Update)
	}
	later := c.held.Load() != nil && c.held.Load().upTo.Branch < upTo.Branch
	c.hold(&heldWorld{world: world, upTo: upTo})
	maps.DeleteFunc(c.ahead, func(_ string, own aheadCommits) bool { return later || upTo.Sees(own.last) })
	maps.DeleteFunc(c.added, func(own changelog.TransactionID, _ bool) bool {
		return own.Server != upTo.Server || upTo.Contains(own)
	})
	return true
}

// staysAhead returns the uuids of the providers that commits of this process
// changed after the snapshot; none for a later run of the server, since the
// database has lost the commits that this run does not see. ok is false if the
// snapshot does not fit the commits: it saw another row than they were built
// on, or the order of its run and the world's is unknown. If the order is
// unknown, a snapshot fits once later transactions have passed the numbers of
// the commits.
func (c *worldCache) staysAhead(r *reading) (stays map[string]bool, ok bool) {
	stays = map[string]bool{}
	held := c.held.Load()
	rows, sameRun := r.rows(), r.at.Server == held.upTo.Server
	if held.upTo.Branch < r.at.Branch {
		return stays, true
	}
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

// rows returns the row id of each provider in a reading, by uuid, and 0 for an
// absent one.
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

// namesWithout returns the names that are not in others.
func namesWithout(names, others placement.Names) placement.Names {
	return placement.Names{Traits: lists.Without(names.Traits, others.Traits),
		ResourceClasses: lists.Without(names.ResourceClasses, others.ResourceClasses)}
}

// reading returns, for SQLite, the reading of a snapshot that sees a commit and
// all before it, given the world before the commit.
func (c *ownCommit) reading(world *placement.World) reading {
	next := c.transaction.Number + 1
	r := reading{at: changelog.Snapshot{Oldest: next, Next: next}, states: slices.Concat(c.created, c.written)}
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
			Traits: lists.Without(slices.Concat(there.Traits, c.added.Traits), c.removed.Traits),
			ResourceClasses: lists.Without(slices.Concat(there.ResourceClasses, c.added.ResourceClasses),
				c.removed.ResourceClasses),
		}
	}
	return r
}

func (c *ownCommit) changesNames() bool {
	return len(c.added.Traits)+len(c.removed.Traits)+len(c.added.ResourceClasses)+len(c.removed.ResourceClasses) > 0
}

// worldUpdate is an update of a world while it is collected.
type worldUpdate struct {
	placement.Update
	states  map[string]*providerState // by uuid
	deleted map[string]bool           // uuids of deleted providers, even if another provider gets the uuid
}

func newWorldUpdate() *worldUpdate {
	return &worldUpdate{states: map[string]*providerState{}, deleted: map[string]bool{}}
}

// isEmpty reports whether the update changes nothing.
func (u *worldUpdate) isEmpty() bool {
	return len(u.Providers)+len(u.Deleted)+len(u.Added.Traits)+len(u.Added.ResourceClasses)+
		len(u.Removed.Traits)+len(u.Removed.ResourceClasses) == 0
}

// put adds the state of a provider. If the world has another provider with the
// same uuid, put removes that one.
func (u *worldUpdate) put(world *placement.World, state providerState) {
	if held, found := world.Provider(state.UUID); found && held.Row != state.Row {
		u.remove(world, state.UUID)
	}
	u.states[state.UUID] = &state
	u.Providers = append(u.Providers, state.Provider)
}

// remove adds the removal of a provider, if the world has it.
func (u *worldUpdate) remove(world *placement.World, uuid string) {
	if _, found := world.Provider(uuid); found && !u.deleted[uuid] {
		u.deleted[uuid] = true
		u.Deleted = append(u.Deleted, uuid)
	}
}

// carry adds the state of a provider in one world, or its absence, to the
// update of another.
func (u *worldUpdate) carry(from, to *placement.World, uuid string) {
	provider, found := from.Provider(uuid)
	if !found {
		u.remove(to, uuid)
		return
	}
	state := providerState{Provider: *provider}
	if parent, found := from.Provider(provider.Parent); found {
		state.parentRow = parent.Row
	}
	u.put(to, state)
}

// follows reports whether a world has the states that a commit was built on. It
// returns false for a commit that does not list all its changes, or that
// changed names, since names have no versions.
func (c *ownCommit) follows(world *placement.World) bool {
	if c.more || c.changesNames() {
		return false
	}
	goes := make(map[string]bool, len(c.deleted))
	for i := range c.deleted {
		goes[c.deleted[i].UUID] = true
		held, found := world.Provider(c.deleted[i].UUID)
		if !found || held.Row != c.deleted[i].Row || held.Version != c.deleted[i].Version {
			return false
		}
	}
	for i := range c.created {
		if _, found := world.Provider(c.created[i].UUID); found && !goes[c.created[i].UUID] {
			return false
		}
	}
	for i := range c.written {
		state := &c.written[i]
		held, found := world.Provider(state.UUID)
		if !found || held.Row != state.Row || held.Version != state.Version-1 {
			return false
		}
	}
	return true
}

func all(names []string, hold func(string) bool) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !hold(name) })
}

// fits reports whether the updated world obeys the rules of the database:
// parents exist, no provider is below itself, names are unique, and the traits
// and classes of a provider exist. The world before the update obeys the rules.
// The changed states obey them among themselves, since they come from one
// instant of the database. So fits checks only changed states against unchanged
// ones.
func (u *worldUpdate) fits(world *placement.World) bool {
	for _, state := range u.states {
		if !u.nameIsFree(world, state) || !u.parentIsThere(world, state) ||
			u.closesLoop(world, state) || !u.namesExist(world, state) {
			return false
		}
	}
	for uuid := range u.deleted {
		for _, child := range world.Children(uuid) {
			if !u.deleted[child.UUID] && u.states[child.UUID] == nil {
				return false
			}
		}
	}
	return u.removedAreUnused(world)
}

func (u *worldUpdate) nameIsFree(world *placement.World, state *providerState) bool {
	holder, taken := world.ProviderNamed(state.Name)
	if !taken || holder.UUID == state.UUID {
		return true
	}
	if next := u.states[holder.UUID]; next != nil {
		return next.Name != state.Name
	}
	return u.deleted[holder.UUID]
}

func (u *worldUpdate) parentIsThere(world *placement.World, state *providerState) bool {
	if state.Parent == "" {
		return true
	}
	if u.states[state.Parent] != nil {
		return true
	}
	parent, found := world.Provider(state.Parent)
	return found && !u.deleted[state.Parent] && parent.Row == state.parentRow
}

// closesLoop reports whether a provider with a new parent is above itself.
func (u *worldUpdate) closesLoop(world *placement.World, state *providerState) bool {
	if held, found := world.Provider(state.UUID); found && held.Parent == state.Parent {
		return false // the loop must contain another provider with a new parent
	}
	seen := map[string]bool{}
	for above := state.Parent; above != ""; {
		if seen[above] {
			return true
		}
		seen[above] = true
		if next := u.states[above]; next != nil {
			above = next.Parent
		} else if provider, found := world.Provider(above); found {
			above = provider.Parent
		} else {
			return false
		}
	}
	return false
}

func (u *worldUpdate) namesExist(world *placement.World, state *providerState) bool {
	return all(state.Traits, func(name string) bool {
		return slices.Contains(u.Added.Traits, name) || world.HasTrait(name) && !slices.Contains(u.Removed.Traits, name)
	}) && !slices.ContainsFunc(state.Inventories, func(i placement.Inventory) bool {
		name := i.ResourceClass
		return !slices.Contains(u.Added.ResourceClasses, name) &&
			(!world.HasResourceClass(name) || slices.Contains(u.Removed.ResourceClasses, name))
	})
}

// removedAreUnused reports whether no unchanged provider has a removed name.
// Names are rarely removed, so it scans all providers.
func (u *worldUpdate) removedAreUnused(world *placement.World) bool {
	if len(u.Removed.Traits)+len(u.Removed.ResourceClasses) == 0 {
		return true
	}
	for provider := range world.Providers() {
		if u.deleted[provider.UUID] || u.states[provider.UUID] != nil {
			continue
		}
		if slices.ContainsFunc(provider.Traits, func(name string) bool {
			return slices.Contains(u.Removed.Traits, name)
		}) ||
			slices.ContainsFunc(provider.Inventories, func(i placement.Inventory) bool {
				return slices.Contains(u.Removed.ResourceClasses, i.ResourceClass)
			}) {
			return false
		}
	}
	return true
}
