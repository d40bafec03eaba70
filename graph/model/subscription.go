package model

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

// Answered is a part of an event that is sent only where its answer differs from the
// one before. Its cursor is made of the answer: until that is there, Cursor stands
// in its place, as something that nothing else in the answer can be.
type Answered struct {
	Cursor string
	Kept   *Kept // nil for an event of one stream
}

// NewAnswered returns what an event is made of, which is kept there.
func NewAnswered(kept *Kept) Answered { return Answered{Cursor: rand.Text(), Kept: kept} }

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

// Kept is the answer to an event of several streams, as the first of them made it.
type Kept struct {
	sync.Mutex
	Answer any // nil until it is made
	Cursor string
	At     time.Time // when it began to be made
	Failed bool      // whether it cannot be kept
}

// Changed is a part of an event that tells of a change.
type Changed struct {
	Cursor string // behind the change
	Change *change.Change
	Kept   *Kept // nil for an event of one stream
}

// KeptIn returns where the answer to the event is kept.
func (c *Changed) KeptIn() *Kept { return c.Kept }

// ResourceChange says that a resource changed.
type ResourceChange struct{ Changed }

// NamespaceChange says that a namespace changed.
type NamespaceChange struct{ Changed }

// ResourceProviderChange says that a resource provider changed.
type ResourceProviderChange struct{ Changed }
