package placementdb

import (
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

func stateOf(uuid string, row, version int64) providerState {
	return providerState{Provider: placement.Provider{UUID: uuid, Name: uuid, Row: row, Version: version}}
}

// loadedCache returns a cache with the providers a and b of the snapshot before
// transaction 10.
func loadedCache(t *testing.T) *worldCache {
	t.Helper()
	c := new(worldCache)
	if !c.Replace(reading{at: sqldb.Snapshot{Server: 1, Oldest: 10, Next: 10}, everything: true, names: new(placement.Names),
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

// TestACacheForgetsWhatASnapshotSees holds that a cache keeps track of no more
// commits than are ahead of its snapshot.
func TestACacheForgetsWhatASnapshotSees(t *testing.T) {
	t.Parallel()
	c := loadedCache(t)
	for i, uuid := range []string{"a", "b"} {
		if !c.ApplyIfComplete(&ownCommit{transaction: sqldb.TransactionID{Server: 1, Number: int64(10 + i)}, written: []providerState{stateOf(uuid, int64(1+i), 1)}}) {
			t.Fatalf("the first change of %s is not complete", uuid)
		}
	}
	if !c.Apply(reading{at: sqldb.Snapshot{Server: 1, Oldest: 11, Next: 12, Running: []int64{11}}, states: []providerState{stateOf("b", 2, 0)}}) {
		t.Fatal("the snapshot does not go with the commit that it does not see")
	}
	if _, ahead := c.ahead["b"]; len(c.ahead) != 1 || !ahead || versionOf(t, c, "b") != 1 {
		t.Errorf("with a snapshot that lacks the change of b, %v are ahead and b has the version %d", c.ahead, versionOf(t, c, "b"))
	}
	if !c.Apply(reading{at: sqldb.Snapshot{Server: 1, Oldest: 12, Next: 12}}) || len(c.ahead) > 0 {
		t.Errorf("with a snapshot that sees both, %v are ahead", c.ahead)
	}
}

// TestALaterRunOfTheServerIsTheTruth holds that a world of a database that lost
// commits has lost them too.
func TestALaterRunOfTheServerIsTheTruth(t *testing.T) {
	t.Parallel()
	c := loadedCache(t)
	c.ApplyIfComplete(&ownCommit{transaction: sqldb.TransactionID{Server: 1, Number: 10}, written: []providerState{stateOf("a", 1, 1)}})
	if !c.Replace(reading{at: sqldb.Snapshot{Server: 2, Oldest: 9, Next: 9}, everything: true, names: new(placement.Names), states: []providerState{stateOf("a", 1, 0)}}) {
		t.Fatal("the world of a later run of the server is not taken")
	}
	if versionOf(t, c, "a") != 0 || len(c.ahead) > 0 {
		t.Errorf("a has the version %d, and %v are ahead", versionOf(t, c, "a"), c.ahead)
	}
}
