package placementdb

import (
	"strconv"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// placementNote is a row of the change log as a snapshot sees it, with what
// the snapshot sees of the provider that it is about.
type placementNote struct {
	changeKey
	row, version int64 // of the provider; row 0 if there is none
}

// plan is what is to be read from a snapshot to bring the world forward to it.
type plan struct {
	everything bool    // the change log does not reach back to the world
	rows       []int64 // rows of providers
	absent     []string
	names      bool
}

func (p plan) isEmpty() bool { return !p.everything && !p.names && len(p.rows)+len(p.absent) == 0 }

// changeKey names what a transaction can change in the world: a provider by its
// uuid, a trait or a resource class by its name.
type changeKey struct{ kind, key string }

// Kinds of what a transaction changes.
const (
	providerKind      = "ResourceProvider"
	traitKind         = "Trait"
	resourceClassKind = "ResourceClass"
)

// decide returns what is to be read from a snapshot, given what is held and what
// the snapshot sees in the change log of transactions that the held snapshot may
// not have seen: those from its oldest on. Notes of others do no harm. What is
// absent at the snapshot was deleted, or is not known to it yet: the cache knows
// which.
func decide(held *heldWorld, at sqldb.Snapshot, notes []placementNote) plan {
	if at.Server != held.upTo.Server {
		return plan{everything: true}
	}
	var p plan
	for _, note := range notes {
		switch note.kind {
		case sqldb.PrunedKind:
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
