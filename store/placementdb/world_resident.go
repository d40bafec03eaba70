package placementdb

import (
	"sync"
	"sync/atomic"

	"github.com/cadastre-dev/cadastre/placement"
)

// resident is the placement world in memory. Readers take the pointer and never
// wait; whoever has news makes the next world, one at a time.
type resident struct {
	world atomic.Pointer[placement.World]

	// writing is held while the next world is made.
	writing sync.Mutex
	// rows are the rows that the world's providers come from, by uuid, deleted
	// ones included: news can arrive out of order, and a uuid can be given again.
	rows map[string]residentRow
	// deleted are the uuids of deleted rows, oldest first.
	deleted []string

	// naming is held from before a trait or class is written until the world
	// knows, so that two changes of one name arrive in order.
	naming sync.Mutex
}

type residentRow struct {
	id      int64
	deleted bool
}

// maxDeleted bounds how many deleted providers are remembered: more than can be
// deleted between a commit and its arrival in the world.
const maxDeleted = 10_000

// providerRow is a provider as committed, with the number of its row.
type providerRow struct {
	id int64
	placement.Provider
}

// news is what a committed transaction did to the world.
type news struct {
	states         []providerRow
	deleted        []deletedRow
	added, removed placement.Names
}

type deletedRow struct {
	id      int64
	uuid    string
	version int64 // when it was deleted, 0 if that is not known
}

// apply brings the world up to the news, whatever it lacks. News that is older
// than what the world holds changes nothing.
func (r *resident) apply(n news) {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.put(n)
}

// follow applies the news of one transaction if the world has all that this
// transaction saw; else it reports false. With a part of the news a reader
// would see one half of an earlier transaction, and the other not.
func (r *resident) follow(n news) bool {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.lacks(n) {
		return false
	}
	r.put(n)
	return true
}

// lacks tells whether a transaction changed a state that the world does not have
// yet. Each transaction moves the version of a provider that it writes by one.
func (r *resident) lacks(n news) bool {
	world := r.world.Load()
	for _, state := range n.states {
		row, held := r.rows[state.UUID], int64(-1)
		switch provider, found := world.Provider(state.UUID); {
		case row.id == state.id && row.deleted:
			continue
		case found && row.id == state.id:
			held = provider.Version
		case found && row.id < state.id:
			return true
		}
		if _, found := world.Provider(state.Parent); state.Version > held && state.Parent != "" && !found {
			return true
		}
		if state.Version > held+1 {
			return true
		}
	}
	for _, gone := range n.deleted {
		if provider, found := world.Provider(gone.uuid); found && r.rows[gone.uuid].id == gone.id && provider.Version < gone.version {
			return true
		}
	}
	return false
}

func (r *resident) put(n news) {
	change := placement.Update{Added: n.added, Removed: n.removed}
	for _, gone := range n.deleted {
		if held, known := r.rows[gone.uuid]; known && held.id > gone.id {
			continue
		}
		r.rows[gone.uuid] = residentRow{id: gone.id, deleted: true}
		r.deleted = append(r.deleted, gone.uuid)
		change.Deleted = append(change.Deleted, gone.uuid)
	}
	for _, state := range n.states {
		held, known := r.rows[state.UUID]
		switch {
		case known && (held.id > state.id || held.id == state.id && held.deleted):
			continue
		case known && held.id < state.id:
			change.Deleted = append(change.Deleted, state.UUID)
		}
		r.rows[state.UUID] = residentRow{id: state.id}
		change.Providers = append(change.Providers, state.Provider)
	}
	r.forget()
	r.world.Store(r.world.Load().With(change))
}

// replace makes these the rows of the world. What it had and they lack was
// deleted: a state of that may still be on its way.
func (r *resident) replace(states []providerRow) {
	rows := make(map[string]residentRow, len(states))
	for _, state := range states {
		rows[state.UUID] = residentRow{id: state.id}
	}
	for uuid, held := range r.rows {
		if _, there := rows[uuid]; there {
			continue
		}
		rows[uuid] = residentRow{id: held.id, deleted: true}
		if !held.deleted {
			r.deleted = append(r.deleted, uuid)
		}
	}
	r.rows = rows
	r.forget()
}

// row is the number of the row that a provider of the world comes from, 0 for
// none.
func (r *resident) row(uuid string) int64 {
	r.writing.Lock()
	defer r.writing.Unlock()
	if held := r.rows[uuid]; !held.deleted {
		return held.id
	}
	return 0
}

// forget drops the oldest deleted rows when there are too many.
func (r *resident) forget() {
	for len(r.deleted) > maxDeleted {
		if r.rows[r.deleted[0]].deleted {
			delete(r.rows, r.deleted[0])
		}
		r.deleted = r.deleted[1:]
	}
}
