package origin

import "time"

// DefaultDelay is the time from when a thing is gone to the deletion of its
// resource: the default of `EndSyncInput.deleteAfter`.
const DefaultDelay = 7 * 24 * time.Hour

// MaxDeleted is the maximum number of resources that the end of a pass deletes. The
// next pass deletes more.
const MaxDeleted = 1000

// Difference is the difference that a page and the end of its pass would make.
// Its numbers count things in the range of the page, 0 without one.
type Difference struct {
	Changes []*Change
	// Present things are not gone before the end of the pass. Gone of them are
	// gone afterwards, unless a limit is exceeded. Deleted resources are
	// deleted.
	Present, Gone, Deleted int
}

// Change is the change of a resource by a sync.
type Change struct {
	Effect          Effect
	ForeignID, Name string
	Changed         []string // fields, and keys of metadata after "metadata.", sorted
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
	// Refused is Gone beyond a limit. The schema has it as a number only.
	Refused Effect = "REFUSED"
)
