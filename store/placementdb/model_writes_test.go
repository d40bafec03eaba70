package placementdb

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
)

// The writes of a model transaction. They obey the rules of the data and the
// locks of other transactions. Where a real transaction would wait for a lock,
// the model does nothing.

// sees returns the state of a key as a transaction sees it.
func (d *modelDatabase) sees(tx *modelTransaction, key changeKey) modelVersion {
	if version, written := tx.writes[key]; written {
		return version
	}
	return d.latest(key)
}

// mayWrite reports whether no other running transaction writes a key. For a
// deletion no other transaction may share the key either.
func (d *modelDatabase) mayWrite(tx *modelTransaction, key changeKey, goes bool) bool {
	for _, other := range d.open {
		if _, written := other.writes[key]; other != tx && (written || goes && other.shared[key]) {
			return false
		}
	}
	return true
}

// share locks a present key against deletion until the transaction ends.
func (d *modelDatabase) share(tx *modelTransaction, key changeKey) bool {
	if !d.sees(tx, key).present {
		return false
	}
	for _, other := range d.open {
		if version, written := other.writes[key]; other != tx && written &&
			(!version.present || version.state.Row != d.latest(key).state.Row) {
			return false
		}
	}
	tx.shared[key] = true
	return true
}

func (tx *modelTransaction) write(key changeKey, version modelVersion) {
	if _, written := tx.writes[key]; !written {
		tx.order = append(tx.order, key)
	}
	tx.writes[key] = version
}

// nameIsTaken reports whether a provider has a name, or may get it from a
// running transaction.
func (d *modelDatabase) nameIsTaken(tx *modelTransaction, name string) bool {
	for i := range modelUUIDs {
		key := changeKey{providerKind, modelUUID(i)}
		if seen := d.sees(tx, key); seen.present && seen.state.Name == name {
			return true
		}
		for _, other := range d.open {
			if version := other.writes[key]; version.present && version.state.Name == name {
				return true
			}
		}
	}
	return false
}

// writeKind is a kind of change.
type writeKind int

const (
	writeTrait writeKind = iota // creates or deletes it
	writeClass
	writeProvider // creates it, or changes its traits and inventories
	deleteProvider
	renameProvider
	moveProvider
	noteProvider     // leaves it unchanged, like setProviderTraits with its current traits
	writeKinds   int = iota
)

// change makes one random change, if it is allowed.
func (d *modelDatabase) change(tx *modelTransaction, r *rand.Rand) {
	key := changeKey{providerKind, modelUUID(r.IntN(d.uuids))}
	kind := d.writes[r.IntN(len(d.writes))]
	switch seen := d.sees(tx, key); {
	case kind == writeTrait:
		d.changeName(tx, changeKey{traitKind, modelTrait(r.IntN(modelTraits))})
	case kind == writeClass:
		d.changeName(tx, changeKey{resourceClassKind, modelClass})
	case !seen.present:
		d.create(tx, key, r)
	case kind == deleteProvider:
		d.remove(tx, key)
	default:
		d.update(tx, key, r, kind)
	}
}

// changeName creates a trait or class, or deletes it if no provider has it.
func (d *modelDatabase) changeName(tx *modelTransaction, key changeKey) {
	if _, written := tx.writes[key]; written || !d.mayWrite(tx, key, true) {
		return
	}
	there := d.sees(tx, key).present
	for i := range modelUUIDs {
		provider := changeKey{providerKind, modelUUID(i)}
		if seen := d.sees(tx, provider); there && seen.present && hasName(&seen.state.Provider, key) {
			return
		}
	}
	tx.write(key, modelVersion{present: !there})
}

func hasName(p *placement.Provider, key changeKey) bool {
	for _, trait := range p.Traits {
		if key == (changeKey{traitKind, trait}) {
			return true
		}
	}
	return len(p.Inventories) > 0 && key == changeKey{resourceClassKind, p.Inventories[0].ResourceClass}
}

// create creates a provider with an unused uuid.
func (d *modelDatabase) create(tx *modelTransaction, key changeKey, r *rand.Rand) {
	name := fmt.Sprintf("name %d", r.IntN(d.uuids))
	if !d.mayWrite(tx, key, true) || d.nameIsTaken(tx, name) {
		return
	}
	d.rows++
	state := providerState{Provider: placement.Provider{UUID: key.key, Name: name, Row: d.rows}}
	if r.IntN(2) == 0 && !d.putBelow(tx, &state, r) {
		return
	}
	d.give(tx, &state, r)
	tx.write(key, modelVersion{present: true, state: state})
}

// putBelow moves a provider below a parent.
func (d *modelDatabase) putBelow(tx *modelTransaction, state *providerState, r *rand.Rand) bool {
	parent := changeKey{providerKind, modelUUID(r.IntN(d.uuids))}
	above := d.sees(tx, parent)
	for at := above; at.present; at = d.sees(tx, changeKey{providerKind, at.state.Parent}) {
		if at.state.UUID == state.UUID {
			return false
		}
		if at.state.Parent == "" {
			break
		}
	}
	if parent.key == state.UUID || !d.share(tx, parent) {
		return false
	}
	state.Parent, state.parentRow = parent.key, above.state.Row
	return true
}

// give sets the traits and inventories of a provider at random.
func (d *modelDatabase) give(tx *modelTransaction, state *providerState, r *rand.Rand) {
	state.Traits, state.Inventories = nil, nil
	if trait := (changeKey{traitKind, modelTrait(r.IntN(modelTraits))}); r.IntN(2) == 0 && d.share(tx, trait) {
		state.Traits = []string{trait.key}
	}
	if class := (changeKey{resourceClassKind, modelClass}); r.IntN(3) == 0 && d.share(tx, class) {
		state.Inventories = []placement.Inventory{{ResourceClass: class.key,
			Total: 10, Capacity: 10, Used: r.Int64N(10)}}
	}
}

// remove deletes a provider without children.
func (d *modelDatabase) remove(tx *modelTransaction, key changeKey) {
	if !d.mayWrite(tx, key, true) || tx.shared[key] {
		return
	}
	for i := range modelUUIDs {
		child := changeKey{providerKind, modelUUID(i)}
		if seen := d.sees(tx, child); seen.present && seen.state.Parent == key.key {
			return
		}
	}
	if !d.latest(key).present { // created and deleted in one transaction
		return
	}
	tx.write(key, modelVersion{})
}

// update changes a provider's traits and inventories, its name or its parent.
// It increments the version even if nothing else changes.
func (d *modelDatabase) update(tx *modelTransaction, key changeKey, r *rand.Rand, kind writeKind) {
	if !d.mayWrite(tx, key, false) {
		return
	}
	state := d.sees(tx, key).state
	switch kind {
	case renameProvider:
		name := fmt.Sprintf("name %d", r.IntN(d.uuids))
		if d.nameIsTaken(tx, name) {
			return
		}
		state.Name = name
	case moveProvider:
		if slices.ContainsFunc(d.open, func(other *modelTransaction) bool { return other != tx && other.moves }) {
			return
		}
		state.Parent, state.parentRow = "", 0
		if r.IntN(3) > 0 && !d.putBelow(tx, &state, r) {
			return
		}
		tx.moves = true
	case writeProvider:
		d.give(tx, &state, r)
	}
	if _, written := tx.writes[key]; !written {
		state.Version++
	}
	if kind != noteProvider {
		state.Generation = tx.Number
	}
	tx.write(key, modelVersion{present: true, state: state})
}
