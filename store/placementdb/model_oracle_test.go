package placementdb

import (
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/placement/placementtest"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// oracle checks the worlds of one process against the history of the database,
// key by key. It does not know how the worlds came to be. It keeps the smallest
// set of whole commits that explains all worlds so far. A world is right if
// more commits can be added to the set so that the set explains this world,
// too.
//
// If a commit is in the set, so are the commits that it was built on. There is
// one exception: if a key was absent, then present, then absent again, both
// commits may be left out. A commit built on the absence of the key is the same
// with or without them.
type oracle struct {
	history map[changeKey][]modelVersion
	keys    []changeKey
	known   map[changeKey]int // the length of the history in places
	places  map[changelog.TransactionID]map[changeKey]int
	holds   map[changelog.TransactionID]string // the set, with the reason for each commit
	last    map[changeKey]int                  // the last place of each key in the set
}

// Reasons why a world must show a commit.
const (
	seenBefore = "I2: it was seen before"
	seenInPart = "I1: it is seen at another key"
	isAnswered = "I4: its writer was answered"
	isRead     = "I6: the snapshot of a catch up that ended sees it"
	isTold     = "I7: nothing is under way any more"
)

func newOracle(history map[changeKey][]modelVersion, keys []changeKey) *oracle {
	return &oracle{history: history, keys: keys, known: map[changeKey]int{},
		places: map[changelog.TransactionID]map[changeKey]int{},
		holds:  map[changelog.TransactionID]string{}, last: map[changeKey]int{}}
}

// learn reads new entries of the history.
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

// needs adds a commit to the set, with a reason. It ignores a transaction that
// changed nothing.
func (o *oracle) needs(transaction changelog.TransactionID, reason string) {
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

// needsAll adds all commits that a snapshot sees.
func (o *oracle) needsAll(commits int, reason string) {
	for _, key := range o.keys {
		for _, version := range o.history[key] {
			if version.commit > 0 && version.commit <= commits {
				o.needs(version.transaction, reason)
			}
		}
	}
}

// connect adds the commits between a place in a key's history and its neighbors
// in the set, where the key's state differs.
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

// same reports whether a key had the same state at two places.
func (o *oracle) same(key changeKey, a, b int) bool {
	x, y := &o.history[key][a], &o.history[key][b]
	return a == b || x.present == y.present && x.state.Row == y.state.Row && x.state.Version == y.state.Version
}

// judge returns the error of a world: a broken rule, or that no set of whole
// commits explains it.
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

// unexplained describes why the state of a key is wrong.
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

// describe describes a key in a world, and its last versions.
func (o *oracle) describe(w *placement.World, key changeKey) string {
	text := fmt.Sprintf("\n%v:", key)
	if held, found := w.Provider(key.key); found {
		text += fmt.Sprintf(" the world has row %d version %d;", held.Row, held.Version)
	}
	for place := max(0, len(o.history[key])-8); place < len(o.history[key]); place++ {
		v := &o.history[key][place]
		text += fmt.Sprintf(" %v: row %d version %d (%s);", v.transaction, v.state.Row,
			v.state.Version, o.holds[v.transaction])
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
	return held.Row == want.Row && held.Version == want.Version &&
		held.Name == want.Name && held.Parent == want.Parent &&
		held.Generation == want.Generation && slices.Equal(held.Traits, want.Traits) &&
		slices.Equal(held.Inventories, want.Inventories)
}

// brokenRule returns the rule that a world breaks, if any. The database obeys
// these rules at every instant.
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
				return fmt.Sprintf("I5: %s has the class %s, which does not exist",
					provider.UUID, inventory.ResourceClass)
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
