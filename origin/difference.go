package origin

import "time"

// DefaultDelay is the time from when a thing is gone to the deletion of its
// resource: the default of `EndSyncInput.deleteAfter`.
const DefaultDelay = 7 * 24 * time.Hour

// MaxDeleted is the maximum number of resources that the end of a pass deletes. The
// next pass deletes more.
const MaxDeleted = 1000

// Difference is the difference that a page and the end of its pass would make.
// Its numbers count things in the range of the page. They are 0 without a
// range.
type Difference struct {
	Changes []*Change
	// Present counts the things that are not gone before the end of the pass.
	// Gone counts the present things that are gone afterwards, unless a limit
	// is exceeded. Deleted counts the resources that have been gone for
	// DefaultDelay and that nothing depends on.
	Present, Gone, Deleted int
}

// Change is the change of a resource by a sync.
type Change struct {
	Effect          Effect
	ForeignID, Name string
	Changed         []string // fields, `metadata.KEY` and `capabilities.NAME`, sorted
}

// Effect is the effect of a sync on a resource.
type Effect string

// The effects, as the schema has them.
const (
	Created  Effect = "CREATED"
	Updated  Effect = "UPDATED"
	Returned Effect = "RETURNED"
	Absent   Effect = "ABSENT"
	Gone     Effect = "GONE"
	Deleted  Effect = "DELETED"
	// Refused replaces Gone if a limit is exceeded. The schema does not have it.
	Refused Effect = "REFUSED"
)

// Reading describes how completely a pass read a scope.
type Reading struct {
	// Complete means that every page was read without an error.
	Complete bool
	// Seen is the number of things that were read.
	Seen int
	// Unknown is the number of rows without content, such as servers of a cell
	// that is down.
	Unknown int
}

// ProvesAbsence reports whether a thing that the reading lacks is absent.
func (r Reading) ProvesAbsence() bool { return r.Complete && r.Unknown == 0 }

// Limits bound the things of a scope that a pass may declare gone.
type Limits struct {
	Number int
	Share  float64 // of the things that are not gone, 0 to 1
	// Allow lifts both limits, and lets an empty reading count.
	Allow bool
}

// EnoughAbsences is the number of consecutive complete passes without a thing
// after which a pass may declare the thing gone.
const EnoughAbsences = 2

// Gone returns how many things a pass declares gone: absent, or 0 if the
// reading does not prove absence. Unless limits.Allow is set, it is also 0 if
// absent exceeds a limit or the pass read no things. present is the number of
// things that are not gone yet, including the absent ones.
func (r Reading) Gone(present, absent int, limits Limits) int {
	switch {
	case !r.ProvesAbsence():
		return 0
	case limits.Allow:
		return absent
	case r.Seen == 0, absent > limits.Number, float64(absent) > limits.Share*float64(present):
		return 0
	}
	return absent
}
