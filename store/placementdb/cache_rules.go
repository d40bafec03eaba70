package placementdb

import (
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
)

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
