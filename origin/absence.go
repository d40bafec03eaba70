package origin

// Reading is what a pass says of its reading of a scope.
type Reading struct {
	// Complete means that every page was read without an error.
	Complete bool
	// Seen is the number of things that were read.
	Seen int
	// Unknown is the number of rows without content, such as servers of a cell
	// that is down.
	Unknown int
}

// ProvesAbsence reports whether a thing that the reading does not have is
// absent.
func (r Reading) ProvesAbsence() bool { return r.Complete && r.Unknown == 0 }

// Limits are the most things of a scope that a pass may declare gone.
type Limits struct {
	Number int
	Share  float64 // of the things that are not gone, 0 to 1
	// Allow lifts both limits, and lets an empty reading count.
	Allow bool
}

// EnoughAbsences is the number of complete passes in a row without a thing after
// which it counts as absent.
const EnoughAbsences = 2

// Gone returns how many things a pass declares gone: all that are absent or,
// beyond a limit, none. Present is the number of things that are not gone yet,
// with those that are absent.
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
