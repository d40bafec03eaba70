package model

import (
	"crypto/rand"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

// Answered is a part of an event that is sent only where its answer differs from the
// one before. Its cursor is made of the answer: until that is there, Cursor stands
// in its place, as something that nothing else in the answer can be.
type Answered struct {
	Cursor string
	// After is the cursor of the answer that the client had when it asked; empty is
	// none.
	After string
}

// NewAnswered returns what an event is made of after a cursor.
func NewAnswered(after string) Answered { return Answered{Cursor: rand.Text(), After: after} }

// Answers returns the part.
func (a *Answered) Answers() *Answered { return a }

// CapacityChange says that sums of capacity are to be made anew, and which.
type CapacityChange struct {
	Answered
	Filter          *ResourceProviderFilter
	GroupBy         placement.CapacityGrouping
	ResourceClasses []string
}

// AllocationCandidatesChange says that candidates are to be looked for anew.
type AllocationCandidatesChange struct {
	Answered
	Asked *CandidatesAsked
}

// CandidatesAsked is a request for candidates as a client sends it, whose hosts are
// still to be looked up.
type CandidatesAsked struct {
	Request placement.Request
	Hosts   *resource.Filter
}

// Changed is a part of an event that tells of a change.
type Changed struct {
	Cursor string // behind the change
	Change *change.Change
}

// ResourceChange says that a resource changed.
type ResourceChange struct{ Changed }

// NamespaceChange says that a namespace changed.
type NamespaceChange struct{ Changed }

// ResourceProviderChange says that a resource provider changed.
type ResourceProviderChange struct{ Changed }
