package placementdb

import (
	"strconv"

	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// placementNote is a row of the change log, with the provider that it concerns
// as the snapshot sees it.
type placementNote struct {
	changeKey
	row, version int64 // of the provider; row 0 if there is none
}

// plan lists the rows to read from a snapshot to update the world to it.
type plan struct {
	everything bool     // the change log does not reach back, or is of another run of the server
	rows       []int64  // row ids of providers
	absent     []string // uuids of providers that the snapshot lacks
	names      bool
}

func (p plan) isEmpty() bool { return !p.everything && !p.names && len(p.rows)+len(p.absent) == 0 }

// changeKey identifies a thing in the world: a provider by uuid, a trait or a
// resource class by name.
type changeKey struct{ kind, key string }

// Kinds of changes.
const (
	providerKind      = "ResourceProvider"
	traitKind         = "Trait"
	resourceClassKind = "ResourceClass"
)

// decide returns what to read from a snapshot, given the held world and the
// change log as the snapshot sees it. The notes must include all transactions
// that the held snapshot may have missed: those from its oldest on. More notes
// do no harm. A provider that is absent in the snapshot was deleted, or was
// created after the snapshot. staysAhead decides which.
func decide(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
	if at.Server != held.upTo.Server {
		return plan{everything: true}
	}
	var p plan
	for _, note := range notes {
		switch note.kind {
		case changelog.PrunedKind:
			if kept, err := strconv.ParseInt(note.key, 10, 64); err != nil || kept > held.upTo.Oldest {
				return plan{everything: true}
			}
		case traitKind, resourceClassKind:
			p.names = true
		case providerKind:
			provider, found := held.world.Provider(note.key)
			switch {
			case note.row == 0:
				p.absent = append(p.absent, note.key)
			case !found || provider.Row != note.row || provider.Version != note.version:
				p.rows = append(p.rows, note.row)
			}
		}
	}
	return p
}
