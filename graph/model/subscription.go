package model

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

// Answered is the part of an event whose answer is sent only if it differs from
// the previous answer. The cursor is a hash of the answer. While the answer is
// written, Cursor is a random placeholder that cannot occur elsewhere in the
// answer.
type Answered struct {
	Cursor string
	Kept   *Kept // nil for an event of one stream
}

// NewAnswered returns an Answered with a new placeholder. Kept is the place
// where equal streams share the answer, or nil.
func NewAnswered(kept *Kept) Answered { return Answered{Cursor: rand.Text(), Kept: kept} }

// Answers returns a itself.
func (a *Answered) Answers() *Answered { return a }

// CapacityChange reports that capacity sums need a new answer, and which ones.
type CapacityChange struct {
	Answered
	Filter          *ResourceProviderFilter
	GroupBy         placement.CapacityGrouping
	ResourceClasses []string
}

// SurvivalChange reports that failures need a new answer, and which ones.
type SurvivalChange struct {
	Answered
	By         placement.FailureGrouping
	Capability *string
	Filter     *ResourceProviderFilter
}

// AllocationCandidatesChange reports that candidates need a new search.
type AllocationCandidatesChange struct {
	Answered
	Asked *CandidatesAsked
}

// CandidatesAsked is a request for candidates as a client sends it. Its hosts
// are not looked up yet.
type CandidatesAsked struct {
	Request placement.Request
	Hosts   *resource.Filter
	// Preferences of Request, whose hosts are not looked up yet.
	Preferences []*PreferenceInput
}

// Kept is an answer that equal streams share. The first stream makes it.
type Kept struct {
	sync.Mutex
	Answer any // nil until it is made
	Cursor string
	At     time.Time // when the stream began to make it
	Failed bool      // whether an answer had errors or was too large to be kept
}

// Changed is the part of an event that describes a change.
type Changed struct {
	Cursor string // after the change
	Change *change.Change
	Kept   *Kept // nil for an event of one stream
}

// KeptIn returns the place where the answer to the event is kept.
func (c *Changed) KeptIn() *Kept { return c.Kept }

// ResourceChange reports that a resource changed.
type ResourceChange struct{ Changed }

// NamespaceChange reports that a namespace changed.
type NamespaceChange struct{ Changed }

// ResourceProviderChange reports that a resource provider changed.
type ResourceProviderChange struct{ Changed }

// ConsumerChange reports that a consumer changed.
type ConsumerChange struct{ Changed }
