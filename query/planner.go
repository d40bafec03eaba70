// Package query decides how conditions on resources are answered. A condition is
// a tree, resource.Condition, and two compilers turn it into an answer: one into
// SQL (store/resourcedb), one into sets of resources in memory
// (resource/resident). Choose selects between them. It is a pure function of the
// tree and of counts, and every threshold of the choice is in this package.
package query

import (
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/resource"
)

// Use is what an answer is needed for.
type Use int

// The uses.
const (
	Page    Use = iota // one page of resources, in order
	Count              // how many resources there are
	Facet              // how many resources have each value
	Explain            // how many resources each condition holds of
	Hosts              // the resources of providers
)

// String returns the word for the use in a log.
func (u Use) String() string { return [...]string{"page", "count", "facet", "explain", "hosts"}[u] }

// Compiler is how conditions are answered.
type Compiler int

// The compilers.
const (
	// SQL has the database decide every condition.
	SQL Compiler = iota
	// Sets has memory decide every condition.
	Sets
	// Narrowed has memory decide the conditions that it can. The database decides
	// the others, of the resources that are left.
	Narrowed
)

// String returns the word for the compiler in a log.
func (c Compiler) String() string { return [...]string{"sql", "sets", "sets, then sql"}[c] }

// Question is a tree of conditions and what its answer is for.
type Question struct {
	Use Use
	// Conditions must all hold.
	Conditions []resource.Condition
	// IsNested is whether each of several parents has an answer of its own.
	IsNested bool
	// By is what a facet counts, empty for any other use.
	By resource.FacetKind
}

// Counts are what the choice depends on besides the tree.
type Counts struct {
	Resources int // in memory, 0 where resources are not in memory
	Matching  int // resources that meet the conditions which sets decide
	Providers int
}

// The thresholds. With them, BenchmarkFilters of store/resourcedb takes 0.4 to
// 5.3 ms for each page of 100,000 resources on SQLite and 0.9 to 7.7 on
// PostgreSQL, on two cores.
const (
	// maxNarrowed is how many ids one statement gets at most. The database takes
	// 0.3 us for each id, and more than 5 ms where it must sort 20,000 resources.
	maxNarrowed = 5_000
	// fewHosts and hostsOfAProvider bound the resources that memory returns as
	// hosts: it does not know which of them have providers. Above fewHosts, and
	// above hostsOfAProvider for each provider, the database is faster.
	fewHosts         = 10_000
	hostsOfAProvider = 8
)

// Walk bounds the two ways to a page of a search for a part of texts. The database
// chooses within the statement.
type Walk struct {
	// Few is up to how many rows of the index are few. The database sorts those. It
	// takes about as long to look at the resources of a few pages.
	Few int
	// Most is how many resources the database looks at in the order of the list,
	// where there are more rows. Where these have no whole page, it sorts
	// everything that the index finds.
	Most int
}

// TextWalk is the walk of a search. Few rows take 3 ms on SQLite and 1 ms on
// PostgreSQL, a whole walk 9 and 5.
var TextWalk = Walk{Few: 1000, Most: 4000}

// Decision is how a question is answered, and why.
type Decision struct {
	Compiler Compiler
	Why      string
}

// String returns the decision as the log of slow operations has it.
func (d Decision) String() string { return d.Compiler.String() + ": " + d.Why }

// Choose selects the compiler of a question. Where sets decide part of the tree, the
// number of resources that they leave selects it.
func Choose(q Question, counts Counts) Decision {
	decided := 0
	for _, c := range q.Conditions {
		if DecidedBySets(c) {
			decided++
		}
	}
	all := decided == len(q.Conditions)
	switch {
	case counts.Resources == 0:
		return Decision{SQL, "resources are not in memory"}
	case q.IsNested || q.By == resource.FacetCapabilityValue:
		return Decision{SQL, "memory has no such groups"}
	case q.Use == Page && len(q.Conditions) == 0:
		return Decision{SQL, "an index has the page"}
	case decided == 0 && !all, q.Use == Explain && !all:
		return Decision{SQL, "sets decide too few conditions"}
	case q.Use == Hosts && all:
		return chooseHosts(counts)
	case all:
		return Decision{Sets, "sets decide all conditions"}
	case counts.Matching <= maxNarrowed:
		return Decision{Narrowed, fmt.Sprintf("%d resources are left", counts.Matching)}
	}
	return Decision{SQL, fmt.Sprintf("%d resources are left, more than %d", counts.Matching, maxNarrowed)}
}

// chooseHosts is Choose for hosts where sets decide all conditions.
func chooseHosts(counts Counts) Decision {
	if most := max(fewHosts, hostsOfAProvider*counts.Providers); counts.Matching > most {
		return Decision{SQL, fmt.Sprintf("%d resources match, more than %d", counts.Matching, most)}
	}
	return Decision{Sets, fmt.Sprintf("%d resources match", counts.Matching)}
}

// DecidedBySets reports whether sets decide a condition.
func DecidedBySets(c resource.Condition) bool {
	switch c.Kind {
	case resource.ConditionCapability, resource.ConditionSearch, resource.ConditionUpdatedSince, resource.ConditionParent, resource.ConditionAncestor:
		return false
	case resource.ConditionMetadata:
		return slices.Contains([]resource.Operator{resource.Exists, resource.Equals, resource.HasPrefix, resource.Has}, c.Test.Operator)
	case resource.ConditionTag:
		return !c.Below
	}
	return !slices.ContainsFunc(c.Members, func(member resource.Condition) bool { return !DecidedBySets(member) })
}
