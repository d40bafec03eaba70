package placementdb

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// modelDatabase is a sequential model of a database with snapshots. It has the
// state of each key after each commit, the running transactions with their
// locks, and the change log. A snapshot is the number of commits that it sees.
type modelDatabase struct {
	server  int64
	next    int64 // number of the next transaction
	rows    int64 // the last row id of a provider
	commits int
	open    []*modelTransaction
	history map[changeKey][]modelVersion // oldest first; begins with the initial state
	log     []modelNote
	uuids   int         // the number of providers, and of their names
	writes  []writeKind // the kinds of writes of transactions
}

// modelVersion is the state of a key from a commit on.
type modelVersion struct {
	commit      int                     // 0 for the initial state
	transaction changelog.TransactionID // zero for the initial state
	present     bool
	state       providerState // of a present provider
	rowOnly     bool          // only row and version of the state are known
}

// modelNote is a row of the change log.
type modelNote struct {
	changeKey
	transaction          int64
	commit, prunedCommit int // when it was added and pruned; 0 if not pruned
}

// modelTransaction is a running or past transaction.
type modelTransaction struct {
	changelog.TransactionID
	process int
	writes  map[changeKey]modelVersion
	order   []changeKey
	shared  map[changeKey]bool // keys locked against deletion until it ends
	moves   bool               // it moves a provider
	lost    bool               // COMMIT was sent and its answer lost
	commit  int                // 0 until it commits
	own     ownCommit
}

const (
	modelUUIDs  = 5
	modelTraits = 3
)

func modelUUID(i int) string  { return fmt.Sprintf("uuid-%d", i) }
func modelTrait(i int) string { return fmt.Sprintf("CUSTOM_TRAIT_%d", i) }

const modelClass = "CUSTOM_CLASS"

// newModelDatabase returns a database with a single trait.
func newModelDatabase(uuids int, writes []writeKind) *modelDatabase {
	d := &modelDatabase{server: 1, next: 100, uuids: uuids, writes: writes, history: map[changeKey][]modelVersion{}}
	for i := range modelUUIDs {
		d.history[changeKey{providerKind, modelUUID(i)}] = []modelVersion{{}}
	}
	for i := range modelTraits {
		d.history[changeKey{traitKind, modelTrait(i)}] = []modelVersion{{present: i == 0}}
	}
	d.history[changeKey{resourceClassKind, modelClass}] = []modelVersion{{}}
	return d
}

// snapshot returns the current snapshot.
func (d *modelDatabase) snapshot() changelog.Snapshot {
	s := changelog.Snapshot{Server: d.server, Oldest: d.next, Next: d.next}
	for _, tx := range d.open {
		s.Running = append(s.Running, tx.Number)
		s.Oldest = min(s.Oldest, tx.Number)
	}
	slices.Sort(s.Running)
	return s
}

// at returns the state of a key after a number of commits, with its index in
// the history.
func (d *modelDatabase) at(key changeKey, commits int) (int, modelVersion) {
	versions := d.history[key]
	i := len(versions) - 1
	for versions[i].commit > commits {
		i--
	}
	return i, versions[i]
}

// latest returns the current state of a key.
func (d *modelDatabase) latest(key changeKey) modelVersion {
	_, version := d.at(key, d.commits)
	return version
}

// begin begins a transaction.
func (d *modelDatabase) begin(process int) *modelTransaction {
	tx := &modelTransaction{TransactionID: changelog.TransactionID{Server: d.server, Number: d.next}, process: process,
		writes: map[changeKey]modelVersion{}, shared: map[changeKey]bool{}}
	d.next++
	d.open = append(d.open, tx)
	return tx
}

// end removes a transaction from the running ones.
func (d *modelDatabase) end(tx *modelTransaction) {
	d.open = slices.DeleteFunc(d.open, func(other *modelTransaction) bool { return other == tx })
}

// commitTransaction makes a transaction's writes visible.
func (d *modelDatabase) commitTransaction(tx *modelTransaction) {
	d.end(tx)
	d.commits++
	tx.commit = d.commits
	tx.own.transaction = tx.TransactionID
	for _, key := range tx.order {
		version := tx.writes[key]
		before := d.latest(key)
		version.commit, version.transaction = d.commits, tx.TransactionID
		d.history[key] = append(d.history[key], version)
		d.log = append(d.log, modelNote{changeKey: key, transaction: tx.Number, commit: d.commits})
		tx.own.add(key, before, version)
	}
}

// add adds the change of a key.
func (c *ownCommit) add(key changeKey, before, after modelVersion) {
	switch key.kind {
	case traitKind, resourceClassKind:
		names := &c.removed
		if after.present {
			names = &c.added
		}
		if key.kind == traitKind {
			names.Traits = append(names.Traits, key.key)
		} else {
			names.ResourceClasses = append(names.ResourceClasses, key.key)
		}
	case providerKind:
		if before.present && (!after.present || after.state.Row != before.state.Row) {
			c.deleted = append(c.deleted, before.state.Provider)
		}
		switch {
		case !after.present:
		case !before.present || after.state.Row != before.state.Row:
			c.created = append(c.created, after.state)
		default:
			c.written = append(c.written, after.state)
		}
	}
}

// prune deletes the notes of transactions before the given one, and records
// that.
func (d *modelDatabase) prune(before int64) {
	d.commits++
	for i := range d.log {
		if note := &d.log[i]; note.transaction < before && note.prunedCommit == 0 {
			note.prunedCommit = d.commits
		}
	}
	d.log = append(d.log, modelNote{changeKey: changeKey{changelog.PrunedKind, fmt.Sprint(before)},
		transaction: d.next, commit: d.commits})
	d.next++
}

// crash ends every running transaction. The restarted server reuses numbers
// without a commit.
func (d *modelDatabase) crash(r *rand.Rand) (ended []*modelTransaction) {
	last := int64(100)
	for _, note := range d.log {
		last = max(last, note.transaction+1)
	}
	ended, d.open = d.open, nil
	d.server++
	d.next = last + r.Int64N(d.next-last+1)
	return ended
}

// notes returns the change log from a transaction on, as seen after a number of
// commits.
func (d *modelDatabase) notes(from int64, commits int) []placementNote {
	var notes []placementNote
	seen := map[changeKey]bool{}
	for _, note := range d.log {
		if note.transaction < from || note.commit > commits ||
			note.prunedCommit != 0 && note.prunedCommit <= commits || seen[note.changeKey] {
			continue
		}
		seen[note.changeKey] = true
		found := placementNote{changeKey: note.changeKey}
		if note.kind == providerKind {
			if _, version := d.at(note.changeKey, commits); version.present {
				found.row, found.version = version.state.Row, version.state.Version
			}
		}
		notes = append(notes, found)
	}
	return notes
}

// read returns the rows of a plan, as seen after a number of commits.
func (d *modelDatabase) read(p plan, at changelog.Snapshot, commits int) reading {
	r := reading{at: at, everything: p.everything, absent: p.absent}
	if p.everything || p.names {
		r.names = new(placement.Names)
	}
	for _, key := range d.keys() {
		_, version := d.at(key, commits)
		switch {
		case !version.present:
		case key.kind == providerKind && (p.everything || slices.Contains(p.rows, version.state.Row)):
			r.states = append(r.states, version.state)
		case key.kind == traitKind && r.names != nil:
			r.names.Traits = append(r.names.Traits, key.key)
		case key.kind == resourceClassKind && r.names != nil:
			r.names.ResourceClasses = append(r.names.ResourceClasses, key.key)
		}
	}
	return r
}

// keys returns every key, in a fixed order.
func (d *modelDatabase) keys() []changeKey {
	var keys []changeKey
	for i := range modelUUIDs {
		keys = append(keys, changeKey{providerKind, modelUUID(i)})
	}
	for i := range modelTraits {
		keys = append(keys, changeKey{traitKind, modelTrait(i)})
	}
	return append(keys, changeKey{resourceClassKind, modelClass})
}
