package placementdb

import (
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
)

// worldUpdate is an update of a world that is still to be judged.
type worldUpdate struct {
	placement.Update
	states  map[string]*providerState // by uuid
	deleted map[string]bool           // uuids of what goes, also where another of the uuid comes
}

func newWorldUpdate() *worldUpdate {
	return &worldUpdate{states: map[string]*providerState{}, deleted: map[string]bool{}}
}

// put adds the state of a provider. If the world has another provider of the
// same uuid, put adds its removal too.
func (c *worldUpdate) put(world *placement.World, state providerState) {
	if held, found := world.Provider(state.UUID); found && held.Row != state.Row {
		c.remove(world, state.UUID)
	}
	c.states[state.UUID] = &state
	c.Providers = append(c.Providers, state.Provider)
}

// remove adds that a world's provider goes.
func (c *worldUpdate) remove(world *placement.World, uuid string) {
	if _, found := world.Provider(uuid); found && !c.deleted[uuid] {
		c.deleted[uuid] = true
		c.Deleted = append(c.Deleted, uuid)
	}
}

// carry adds what makes a provider in a world what it is in another one.
func (c *worldUpdate) carry(from, to *placement.World, uuid string) {
	provider, found := from.Provider(uuid)
	if !found {
		c.remove(to, uuid)
		return
	}
	state := providerState{Provider: *provider}
	if parent, found := from.Provider(provider.Parent); found {
		state.parentRow = parent.Row
	}
	c.put(to, state)
}

// follows reports whether a world has the states that a commit was built on.
// Names have no versions, so of a commit that changed names this is not known.
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
		if !found || held.Row != state.Row || held.Version != state.Version && held.Version != state.Version-1 {
			return false
		}
	}
	return true
}

func all(names []string, hold func(string) bool) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !hold(name) })
}

// fits reports whether a world with the change obeys the rules that the database
// holds at every instant: each provider's parent is there and no provider is
// below itself, no two providers have one name, and a provider has traits and
// classes that exist. The world without the change obeys them, and so does what
// changes for itself, which one instant of the database has: only what changes is
// looked at, together with what does not.
func (c *worldUpdate) fits(world *placement.World) bool {
	for _, state := range c.states {
		if !c.nameIsFree(world, state) || !c.parentIsThere(world, state) || c.closesLoop(world, state) || !c.namesExist(world, state) {
			return false
		}
	}
	for uuid := range c.deleted {
		for _, child := range world.Children(uuid) {
			if !c.deleted[child.UUID] && c.states[child.UUID] == nil {
				return false
			}
		}
	}
	return c.removedAreUnused(world)
}

func (c *worldUpdate) nameIsFree(world *placement.World, state *providerState) bool {
	holder, taken := world.ProviderNamed(state.Name)
	if !taken || holder.UUID == state.UUID {
		return true
	}
	if next := c.states[holder.UUID]; next != nil {
		return next.Name != state.Name
	}
	return c.deleted[holder.UUID]
}

func (c *worldUpdate) parentIsThere(world *placement.World, state *providerState) bool {
	if state.Parent == "" {
		return true
	}
	if c.states[state.Parent] != nil {
		return true
	}
	parent, found := world.Provider(state.Parent)
	return found && !c.deleted[state.Parent] && parent.Row == state.parentRow
}

// closesLoop reports whether a provider with a new parent has itself above it.
func (c *worldUpdate) closesLoop(world *placement.World, state *providerState) bool {
	if held, found := world.Provider(state.UUID); found && held.Parent == state.Parent {
		return false // another provider of the loop has a new parent
	}
	seen := map[string]bool{}
	for above := state.Parent; above != ""; {
		if seen[above] {
			return true
		}
		seen[above] = true
		if next := c.states[above]; next != nil {
			above = next.Parent
		} else if provider, found := world.Provider(above); found {
			above = provider.Parent
		} else {
			return false
		}
	}
	return false
}

func (c *worldUpdate) namesExist(world *placement.World, state *providerState) bool {
	return all(state.Traits, func(name string) bool {
		return slices.Contains(c.Added.Traits, name) || world.HasTrait(name) && !slices.Contains(c.Removed.Traits, name)
	}) && !slices.ContainsFunc(state.Inventories, func(i placement.Inventory) bool {
		name := i.ResourceClass
		return !slices.Contains(c.Added.ResourceClasses, name) && (!world.HasResourceClass(name) || slices.Contains(c.Removed.ResourceClasses, name))
	})
}

// removedAreUnused reports whether no provider that stays as it is has a name
// that goes. Names go seldom, so that all providers are looked at.
func (c *worldUpdate) removedAreUnused(world *placement.World) bool {
	if len(c.Removed.Traits)+len(c.Removed.ResourceClasses) == 0 {
		return true
	}
	for provider := range world.Providers() {
		if c.deleted[provider.UUID] || c.states[provider.UUID] != nil {
			continue
		}
		if slices.ContainsFunc(provider.Traits, func(name string) bool { return slices.Contains(c.Removed.Traits, name) }) ||
			slices.ContainsFunc(provider.Inventories, func(i placement.Inventory) bool {
				return slices.Contains(c.Removed.ResourceClasses, i.ResourceClass)
			}) {
			return false
		}
	}
	return true
}
