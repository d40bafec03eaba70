package origin

import "time"

// DefaultDelay is the time from being gone to the deletion. It is the default of
// `EndSyncInput.deleteAfter`.
const DefaultDelay = 7 * 24 * time.Hour

// MaxDeleted is the maximum number of resources that the end of a pass deletes. The
// next pass deletes more.
const MaxDeleted = 1000

// Difference is the difference that a page would make, and the end of its pass.
// Its numbers are of the things in the range of the page, 0 without one.
type Difference struct {
	Changes []*Change
	// Present are not gone before the end of the pass. Gone of them are gone after
	// it, if no limit is exceeded. Deleted are the resources that it deletes.
	Present, Gone, Deleted int
}

// Change says how a sync changes a resource.
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
