package placementdb

import (
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/placement/placementtest"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// oracle judges the worlds of one process by what the database was, key by key.
// It knows nothing of how they came to be: it keeps the least set of whole
// commits that explains all worlds so far, and a world is right if commits can
// be added to the set so that it explains this one as well.
//
// A commit of the set has what it was built on in the set, with one exception:
// where a key was not there, then was, and then was not again, both may be left
// out, since what is built on its absence is the same with and without them.
type oracle struct {
	history map[changeKey][]modelVersion
	keys    []changeKey
	known   map[changeKey]int // how much of the history is in places
	places  map[sqldb.TransactionID]map[changeKey]int
	holds   map[sqldb.TransactionID]string // the set: why a commit is in it
	last    map[changeKey]int              // the last place of each key that is in the set
}

// Why a commit has to be seen.
const (
	seenBefore = "I2: it was seen before"
	seenInPart = "I1: it is seen at another key"
	isAnswered = "I4: its writer was answered"
	isRead     = "I6: the snapshot of a catch up that ended sees it"
	isTold     = "I7: nothing is under way any more"
)

func newOracle(history map[changeKey][]modelVersion, keys []changeKey) *oracle {
	return &oracle{history: history, keys: keys, known: map[changeKey]int{}, places: map[sqldb.TransactionID]map[changeKey]int{},
		holds: map[sqldb.TransactionID]string{}, last: map[changeKey]int{}}
}

// learn takes in what the history has grown by.
func (o *oracle) learn() {
	for _, key := range o.keys {
		versions := o.history[key]
		for place := max(1, o.known[key]); place < len(versions); place++ {
			by := versions[place].transaction
			if o.places[by] == nil {
				o.places[by] = map[changeKey]int{}
			}
			o.places[by][key] = place
		}
		o.known[key] = len(versions)
	}
}

// needs makes a commit be seen, for a reason. A transaction that changed nothing
// is none.
func (o *oracle) needs(transaction sqldb.TransactionID, reason string) {
	o.learn()
	if _, held := o.holds[transaction]; held || o.places[transaction] == nil {
		return
	}
	o.holds[transaction] = reason
	for _, key := range o.keys {
		if place, wrote := o.places[transaction][key]; wrote {
			o.last[key] = max(o.last[key], place)
			o.connect(key, place)
		}
	}
}

// needsAll makes all be seen that a snapshot sees.
func (o *oracle) needsAll(commits int, reason string) {
	for _, key := range o.keys {
		for _, version := range o.history[key] {
			if version.commit > 0 && version.commit <= commits {
				o.needs(version.transaction, reason)
			}
		}
	}
}

// connect makes a place of a key's history follow one that is in the set, and the
// next one that is in the set follow it.
func (o *oracle) connect(key changeKey, place int) {
	before := place - 1
	for before > 0 && !o.has(key, before) {
		before--
	}
	if !o.same(key, before, place-1) {
		o.needs(o.history[key][place-1].transaction, seenInPart)
	}
	for after := place + 1; after <= o.last[key]; after++ {
		if o.has(key, after) {
			if !o.same(key, place, after-1) {
				o.needs(o.history[key][after-1].transaction, seenInPart)
			}
			return
		}
	}
}

func (o *oracle) has(key changeKey, place int) bool {
	_, held := o.holds[o.history[key][place].transaction]
	return held
}

// same reports whether a key was the same at two places.
func (o *oracle) same(key changeKey, a, b int) bool {
	x, y := &o.history[key][a], &o.history[key][b]
	return a == b || x.present == y.present && x.state.Row == y.state.Row && x.state.Version == y.state.Version
}

// judge returns what is wrong with a world: with its parts, or since no set of
// whole commits explains it.
func (o *oracle) judge(w *placement.World) string {
	if wrong := brokenRule(w); wrong != "" {
		return wrong
	}
	o.learn()
	for again := true; again; {
		again = false
		for _, key := range o.keys {
			versions, last := o.history[key], o.last[key]
			if versions[last].isIn(w, key) {
				continue
			}
			next := slices.IndexFunc(versions[last:], func(v modelVersion) bool { return v.isIn(w, key) })
			if next < 0 {
				return o.unexplained(w, key)
			}
			o.needs(versions[last+next].transaction, seenInPart)
			again = true
		}
	}
	for transaction := range o.holds {
		o.holds[transaction] = seenBefore
	}
	return ""
}

// unexplained says in which way a key is not what it has to be.
func (o *oracle) unexplained(w *placement.World, key changeKey) string {
	wanted := o.history[key][o.last[key]]
	reason := o.holds[wanted.transaction]
	_, there := w.Provider(key.key)
	switch {
	case !slices.ContainsFunc(o.history[key], func(v modelVersion) bool { return v.isIn(w, key) }):
		reason = "I0: it was never what the world has"
	case reason == seenBefore && !wanted.present && (there || key.kind != providerKind):
		reason = "I3: it was deleted, and is there again"
	}
	text := fmt.Sprintf("%v has to be as %v left it, or later: %s", key, wanted.transaction, reason)
	for _, other := range o.keys {
		if _, wrote := o.places[wanted.transaction][other]; wrote {
			text += o.describe(w, other)
		}
	}
	return text
}

// describe says what a key is in a world, and was at last.
func (o *oracle) describe(w *placement.World, key changeKey) string {
	text := fmt.Sprintf("\n%v:", key)
	if held, found := w.Provider(key.key); found {
		text += fmt.Sprintf(" the world has row %d version %d;", held.Row, held.Version)
	}
	for place := max(0, len(o.history[key])-8); place < len(o.history[key]); place++ {
		v := &o.history[key][place]
		text += fmt.Sprintf(" %v: row %d version %d (%s);", v.transaction, v.state.Row, v.state.Version, o.holds[v.transaction])
	}
	return text
}

// isIn reports whether a world has this version of a key.
func (v *modelVersion) isIn(w *placement.World, key changeKey) bool {
	switch key.kind {
	case traitKind:
		return w.HasTrait(key.key) == v.present
	case resourceClassKind:
		return w.HasResourceClass(key.key) == v.present
	}
	held, found := w.Provider(key.key)
	if !found || !v.present {
		return found == v.present
	}
	want := &v.state.Provider
	if v.rowOnly {
		return held.Row == want.Row && held.Version == want.Version
	}
	return held.Row == want.Row && held.Version == want.Version && held.Name == want.Name && held.Parent == want.Parent &&
		held.Generation == want.Generation && slices.Equal(held.Traits, want.Traits) && slices.Equal(held.Inventories, want.Inventories)
}

// brokenRule returns which rule a world breaks that the database holds at every
// instant.
func brokenRule(w *placement.World) string {
	var providers []placement.Provider
	for provider := range w.Providers() {
		if _, found := w.Provider(provider.Parent); provider.Parent != "" && !found {
			return fmt.Sprintf("I5: the parent of %s is not there", provider.UUID)
		}
		for _, trait := range provider.Traits {
			if !w.HasTrait(trait) {
				return fmt.Sprintf("I5: %s has the trait %s, which does not exist", provider.UUID, trait)
			}
		}
		for _, inventory := range provider.Inventories {
			if !w.HasResourceClass(inventory.ResourceClass) {
				return fmt.Sprintf("I5: %s has the class %s, which does not exist", provider.UUID, inventory.ResourceClass)
			}
		}
		if above := w.Tree(provider.UUID)[0]; above.Parent != "" || provider.Root != above.UUID {
			return fmt.Sprintf("I5: %s is below itself", provider.UUID)
		}
		providers = append(providers, *provider)
	}
	if w.Len() != len(providers) {
		return fmt.Sprintf("I5: the world has %d providers and lists %d", w.Len(), len(providers))
	}
	if difference := placementtest.Difference(w, placement.NewWorld(w.Names(), providers)); difference != "" {
		return "I5: the world is not that of its providers: " + difference
	}
	return ""
}
