package placementdb

import (
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

func stateOf(uuid string, row, version int64) providerState {
	return providerState{Provider: placement.Provider{UUID: uuid, Name: uuid, Row: row, Version: version}}
}

// loadedCache returns a cache with the providers a and b, as of the snapshot
// before transaction 10.
func loadedCache(t *testing.T) *worldCache {
	t.Helper()
	c := new(worldCache)
	if !c.Replace(reading{at: changelog.Snapshot{Server: 1, Oldest: 10, Next: 10},
		everything: true, names: new(placement.Names),
		states: []providerState{stateOf("a", 1, 0), stateOf("b", 2, 0)}}) {
		t.Fatal("an empty cache takes no world")
	}
	return c
}

func versionOf(t *testing.T, c *worldCache, uuid string) int64 {
	t.Helper()
	provider, found := c.World().Provider(uuid)
	if !found {
		return -1
	}
	return provider.Version
}

// TestACacheForgetsWhatASnapshotSees checks that a cache tracks only commits
// that are newer than its snapshot.
func TestACacheForgetsWhatASnapshotSees(t *testing.T) {
	t.Parallel()
	c := loadedCache(t)
	for i, uuid := range []string{"a", "b"} {
		if !c.ApplyIfComplete(&ownCommit{transaction: changelog.TransactionID{Server: 1, Number: int64(10 + i)},
			written: []providerState{stateOf(uuid, int64(1+i), 1)}}) {
			t.Fatalf("the first change of %s is not complete", uuid)
		}
	}
	if !c.Apply(reading{at: changelog.Snapshot{Server: 1, Oldest: 11, Next: 12, Running: []int64{11}},
		states: []providerState{stateOf("b", 2, 0)}}) {
		t.Fatal("the snapshot does not go with the commit that it does not see")
	}
	for number, shown := range map[int64]bool{9: true, 10: true, 11: true, 12: false} {
		if c.Shows([]changelog.TransactionID{{Server: 1, Number: number}}) != shown ||
			c.Shows([]changelog.TransactionID{{Server: 2, Number: number}}) {
			t.Errorf("transaction %d is shown or not, want %v of this run of the server", number, shown)
		}
	}
	if _, ahead := c.ahead["b"]; len(c.ahead) != 1 || len(c.added) != 1 || !ahead || versionOf(t, c, "b") != 1 {
		t.Errorf("with a snapshot that lacks the change of b, %v are ahead and b has the version %d", c.ahead,
			versionOf(t, c, "b"))
	}
	if !c.Apply(reading{at: changelog.Snapshot{Server: 1, Oldest: 12, Next: 12}}) || len(c.ahead) > 0 ||
		len(c.added) > 0 || !c.Shows([]changelog.TransactionID{{Server: 1, Number: 11}}) {
		t.Errorf("with a snapshot that sees both, %v are ahead", c.ahead)
	}
}

// TestALaterRunOfTheServerIsTheTruth checks a database that lost commits. The
// world must lose them too, once later transactions have passed their numbers.
func TestALaterRunOfTheServerIsTheTruth(t *testing.T) {
	t.Parallel()
	c := loadedCache(t)
	c.ApplyIfComplete(&ownCommit{transaction: changelog.TransactionID{Server: 1, Number: 10},
		written: []providerState{stateOf("a", 1, 1)}})
	later := reading{at: changelog.Snapshot{Server: 2, Oldest: 10, Next: 10}, everything: true,
		names: new(placement.Names), states: []providerState{stateOf("a", 1, 0)}}
	if c.Replace(later) {
		t.Error("a commit of this process is lost while the later run of the server may not have seen its end")
	}
	later.at = changelog.Snapshot{Server: 2, Oldest: 11, Next: 11}
	if !c.Replace(later) || versionOf(t, c, "a") != 0 || len(c.ahead) > 0 {
		t.Errorf("a has the version %d, and %v are ahead", versionOf(t, c, "a"), c.ahead)
	}
}

// TestAWorldObeysTheRules checks that an update does not fit if it breaks a
// rule in combination with unchanged providers.
func TestAWorldObeysTheRules(t *testing.T) {
	t.Parallel()
	with := func(state providerState, change func(*providerState)) providerState {
		change(&state)
		return state
	}
	named := placement.Names{Traits: []string{"T"}, ResourceClasses: []string{"C"}}
	world := placement.NewWorld(named, []placement.Provider{stateOf("a", 1, 0).Provider,
		with(stateOf("b", 2, 0), func(p *providerState) { p.Parent = "a" }).Provider,
		with(stateOf("c", 3, 0), func(p *providerState) { p.Traits = []string{"T"} }).Provider,
		with(stateOf("d", 4, 0), func(p *providerState) {
			p.Inventories = []placement.Inventory{{ResourceClass: "C"}}
		}).Provider})
	for name, c := range map[string]struct {
		fits    bool
		states  []providerState
		deleted []string
		removed placement.Names
	}{
		"nothing":           {fits: true},
		"a name of another": {states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) { p.Name = "a" })}},
		"a name of one that goes": {fits: true,
			states:  []providerState{with(stateOf("e", 5, 0), func(p *providerState) { p.Name = "c" })},
			deleted: []string{"c"}},
		"a name that another gives up": {fits: true,
			states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) { p.Name = "c" }),
				with(stateOf("c", 3, 1), func(p *providerState) { p.Name = "x" })}},
		"no such parent": {states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) {
			p.Parent, p.parentRow = "z", 9
		})}},
		"an earlier parent": {states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) {
			p.Parent, p.parentRow = "a", 9
		})}},
		"a parent that goes": {states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) {
			p.Parent, p.parentRow = "c", 3
		})}, deleted: []string{"c"}},
		"a parent": {fits: true,
			states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) {
				p.Parent, p.parentRow = "b", 2
			})}},
		"a loop": {states: []providerState{with(stateOf("a", 1, 1), func(p *providerState) {
			p.Parent, p.parentRow = "b", 2
		})}},
		"a child that stays":      {deleted: []string{"a"}},
		"a child that goes along": {fits: true, deleted: []string{"a", "b"}},
		"no such trait":           {states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) { p.Traits = []string{"X"} })}},
		"no such class": {states: []providerState{with(stateOf("e", 5, 0), func(p *providerState) {
			p.Inventories = []placement.Inventory{{ResourceClass: "X"}}
		})}},
		"a trait that is used": {removed: placement.Names{Traits: []string{"T"}}},
		"a class that is used": {removed: placement.Names{ResourceClasses: []string{"C"}}},
		"a trait that is given up": {fits: true, removed: placement.Names{Traits: []string{"T"}},
			states: []providerState{stateOf("c", 3, 1)}},
		"a class that goes along": {fits: true, removed: placement.Names{ResourceClasses: []string{"C"}},
			deleted: []string{"d"}},
		"a trait that goes and is had": {removed: placement.Names{Traits: []string{"T"}},
			states: []providerState{with(stateOf("c", 3, 1), func(p *providerState) { p.Traits = []string{"T"} })}},
	} {
		update := newWorldUpdate()
		update.Removed = c.removed
		for _, uuid := range c.deleted {
			update.remove(world, uuid)
		}
		for _, state := range c.states {
			update.put(world, state)
		}
		if got := update.fits(world); got != c.fits {
			t.Errorf("%s: fits is %t", name, got)
		}
	}
}

// TestAnOlderSnapshotTakesNothingBack updates a world to an instant that an
// operation read during a catch up. The older snapshot of the catch up must
// change nothing.
func TestAnOlderSnapshotTakesNothingBack(t *testing.T) {
	t.Parallel()
	older := changelog.Snapshot{Server: 1, Oldest: 10, Next: 11, Running: []int64{10}}
	for name, instant := range map[string]changelog.Snapshot{
		"with more that had begun": {Server: 1, Oldest: 12, Next: 12},
		"with more that had ended": {Server: 1, Oldest: 11, Next: 11},
	} {
		for _, take := range []func(*worldCache, reading) bool{(*worldCache).Apply, (*worldCache).Replace} {
			c := loadedCache(t)
			if !c.ApplyIfComplete(&ownCommit{transaction: changelog.TransactionID{Server: 1, Number: 10},
				created: []providerState{stateOf("c", 3, 0)}}) {
				t.Fatal("a commit that is built on nothing is not complete")
			}
			if !c.Apply(reading{at: instant, only: c.held.Load()}) {
				t.Fatal("the instant is not taken")
			}
			if !take(c, reading{at: older, everything: true, names: new(placement.Names), absent: []string{"c"}}) {
				t.Errorf("%s: the catch up does not end", name)
			}
			if versionOf(t, c, "c") != 0 || c.UpTo().Oldest != instant.Oldest {
				t.Errorf("%s: c has the version %d, and the world is up to %+v", name, versionOf(t, c, "c"), c.UpTo())
			}
		}
	}
}

// TestAReadyWorldIsFresh checks that a world which counts as fresh was complete
// within StaleAfter, and that a process catches up often enough for that.
func TestAReadyWorldIsFresh(t *testing.T) {
	t.Parallel()
	for _, listening := range []bool{true, false} {
		for since := time.Duration(0); since < 2*StaleAfter; since += 100 * time.Millisecond {
			if age := ageOf(since, listening); age <= StaleAfter && since > StaleAfter || age > since {
				t.Errorf("a world that was complete %s ago is taken to be %s old, listening %t", since, age, listening)
			}
		}
		if wait := pollAfter(listening, false); wait != poll {
			t.Errorf("after a catch up that failed, listening %t, the next one comes after %s", listening, wait)
		}
	}
	if wait := pollAfter(true, true) + pollAfter(true, true)/4; wait > StaleAfter*5/6 {
		t.Errorf("a process that is told of nothing catches up after %s", wait)
	}
	if wait := pollAfter(false, true); wait != poll {
		t.Errorf("a process that cannot listen catches up after %s", wait)
	}
}
