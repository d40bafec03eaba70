package query

import (
	"math/bits"

	"github.com/cadastre-dev/cadastre/resource"
)

// Sizes are how many rows the tables have, about, and whether resources are in
// memory.
type Sizes struct {
	Resources  int64
	Items      int64 // of metadata
	Tags       int64 // on resources
	Members    int64 // of capabilities
	Providers  int64
	IsResident bool
}

// Work is what a question takes, about.
type Work struct {
	Compiler Compiler
	// Rows is how many rows the database looks at. One takes about 1 us.
	Rows int64
	// Steps is how many words and members of sets are combined in memory. One
	// takes about 2 ns.
	Steps int64
}

// Units returns the work in rows of the database.
func (w Work) Units() int64 { return w.Rows + w.Steps/stepsOfARow }

// stepsOfARow is how many steps in memory take as long as one row.
const stepsOfARow = 500

// Estimate returns the work of a question, given the size of its page or the
// number of values that a facet returns. It is for admission: it reads nothing.
// Sizes are rounded up to a power of two, so that the estimate does not reveal
// how many rows there are that the viewer must not see.
func Estimate(q Question, page int64, sizes Sizes) Work {
	sizes = sizes.rounded()
	counts := Counts{Providers: int(sizes.Providers)}
	if sizes.IsResident {
		counts.Resources = int(sizes.Resources)
	}
	likely := sizes.Resources
	for _, c := range q.Conditions {
		likely = min(likely, mostMatching(c, sizes))
		if DecidedBySets(c) {
			counts.Matching = int(likely)
		}
	}
	work := Work{Compiler: Choose(q, counts).Compiler}
	for _, c := range q.Conditions {
		if work.Compiler != SQL && DecidedBySets(c) {
			work.Steps += stepsOf(c, sizes)
		} else {
			work.Rows += rowsOf(c, sizes)
		}
	}
	switch {
	case work.Compiler == Sets && q.Use == Facet:
		work.Steps += sizes.valuesOf(q.By)
	case work.Compiler == Sets:
		work.Steps += sizes.Resources / 64
	case q.Use == Facet:
		work.Rows += likely + min(likely, sizes.valuesOf(q.By))
	case q.Use != Page || len(q.Conditions) > 0:
		work.Rows += likely
	}
	if q.Use == Page {
		work.Rows += page + 1
	}
	return work
}

// rounded returns the sizes as powers of two.
func (s Sizes) rounded() Sizes {
	for _, size := range []*int64{&s.Resources, &s.Items, &s.Tags, &s.Members, &s.Providers} {
		if *size > 1 {
			*size = 1 << min(bits.Len64(uint64(*size-1)), 62)
		}
	}
	return s
}

// valuesOf returns how many rows have the values that a facet counts.
func (s Sizes) valuesOf(by resource.FacetKind) int64 {
	switch by {
	case resource.FacetTag:
		return s.Tags
	case resource.FacetMetadataKey:
		return s.Items
	case resource.FacetCapabilityValue:
		return s.Members
	}
	return s.Resources // which have at most one value of each other kind
}

// mostMatching returns how many resources meet a condition at most.
func mostMatching(c resource.Condition, sizes Sizes) int64 {
	switch c.Kind {
	case resource.ConditionNever:
		return 0
	case resource.ConditionUUID:
		return min(int64(len(c.Test.Operands)), sizes.Resources)
	case resource.ConditionAll:
		most := sizes.Resources
		for _, member := range c.Members {
			most = min(most, mostMatching(member, sizes))
		}
		return most
	}
	return sizes.Resources
}

// rowsOf returns how many rows the database looks at to decide a condition.
func rowsOf(c resource.Condition, sizes Sizes) int64 {
	switch c.Kind {
	case resource.ConditionMetadata:
		return min(sizes.Items, sizes.Resources)
	case resource.ConditionCapability:
		return min(sizes.Members, sizes.Resources*max(1, int64(len(c.Test.Operands))))
	case resource.ConditionTag:
		return min(sizes.Tags, sizes.Resources)
	case resource.ConditionSearch:
		return 2*sizes.Resources + sizes.Items
	case resource.ConditionNever, resource.ConditionUUID:
		return mostMatching(c, sizes)
	case resource.ConditionAll, resource.ConditionAny, resource.ConditionNot:
		var rows int64
		for _, member := range c.Members {
			rows += rowsOf(member, sizes)
		}
		return rows
	}
	return sizes.Resources
}

// textSteps is how many steps it takes to look for a part of one text.
const textSteps = 15

// stepsOf returns how many steps sets take to decide a condition: one for each
// member and for 64 resources.
func stepsOf(c resource.Condition, sizes Sizes) int64 {
	steps := sizes.Resources/64 + 1
	for _, member := range c.Members {
		steps += stepsOf(member, sizes)
	}
	switch {
	case len(c.Members) > 0 || c.Kind == resource.ConditionNever:
		return steps
	case c.Kind == resource.ConditionNameContains || c.Kind == resource.ConditionMetadata && c.Test.Operator == resource.Has:
		return steps + textSteps*sizes.Resources
	}
	return steps + mostMatching(c, sizes)
}
