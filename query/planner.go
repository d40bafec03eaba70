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

// Use is the purpose of an answer.
type Use int

// The uses.
const (
	Page    Use = iota // one page of resources, in order
	Count              // how many resources there are
	Facet              // how many resources have each value
	Explain            // how many resources meet each condition
	Hosts              // the resources of providers
)

// String returns the word for the use in a log.
func (u Use) String() string { return [...]string{"page", "count", "facet", "explain", "hosts"}[u] }

// Compiler is a way to answer conditions.
type Compiler int

// The compilers.
const (
	// SQL evaluates every condition in the database.
	SQL Compiler = iota
	// Sets evaluates every condition in memory.
	Sets
	// Narrowed first evaluates in memory the conditions that sets support. The
	// database then evaluates the others on the remaining resources.
	Narrowed
)

// String returns the word for the compiler in a log.
func (c Compiler) String() string { return [...]string{"sql", "sets", "sets, then sql"}[c] }

// Question is a tree of conditions and the use of its answer.
type Question struct {
	Use Use
	// Conditions must all hold.
	Conditions []resource.Condition
	// IsNested reports whether each of several parents needs a separate answer.
	IsNested bool
	// By is the kind of a facet, empty for any other use.
	By resource.FacetKind
}

// Counts are the sizes that the choice depends on.
type Counts struct {
	Resources int // in memory, 0 if resources are not in memory
	Matching  int // resources that meet the conditions that sets decide
	Providers int
}

// The thresholds. With them, BenchmarkFilters of store/resourcedb takes 0.4 to
// 5.3 ms for each page of 100,000 resources on SQLite and 0.9 to 7.7 on
// PostgreSQL, on two cores.
const (
	// maxNarrowed is the maximum number of ids in one statement. The database
	// takes 0.3 us for each id, and more than 5 ms if it must sort 20,000
	// resources.
	maxNarrowed = 5_000
	// fewHosts and hostsOfAProvider limit the resources that memory returns as
	// hosts. Memory does not know which resources have providers. The database
	// is faster above fewHosts resources and above hostsOfAProvider resources
	// for each provider.
	fewHosts         = 10_000
	hostsOfAProvider = 8
)

// Walk has the limits for a page of a substring search. The statement can sort
// all rows that the index finds, or walk the resources in the order of the
// list. The database chooses within the statement.
type Walk struct {
	// Few is the maximum number of rows of the index that the database sorts
	// without a walk. Sorting them takes about as long as a walk through a few
	// pages.
	Few int
	// Most is the maximum length of a walk, in resources. If a walk of that
	// length does not fill a page, the database sorts everything that the index
	// finds.
	Most int
}

// TextWalk has the limits that searches use. Sorting Few rows takes 3 ms on
// SQLite and 1 ms on PostgreSQL, a walk of Most resources 9 ms and 5 ms.
var TextWalk = Walk{Few: 1000, Most: 4000}

// Decision is the compiler for a question and the reason for it.
type Decision struct {
	Compiler Compiler
	Why      string
}

// String returns the decision as the log of slow operations shows it.
func (d Decision) String() string { return d.Compiler.String() + ": " + d.Why }

// Choose selects the compiler of a question. If sets can decide only a part of
// the tree, the choice depends on the number of resources that meet that part.
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
		return Decision{SQL, "memory cannot group by parent or by capability value"}
	case q.Use == Page && len(q.Conditions) == 0:
		return Decision{SQL, "an index has the page"}
	case !all && (decided == 0 || q.Use == Explain): // an explanation needs each condition
		return Decision{SQL, fmt.Sprintf("sets decide %d of %d conditions", decided, len(q.Conditions))}
	case q.Use == Hosts && all:
		return chooseHosts(counts)
	case all:
		return Decision{Sets, "sets decide all conditions"}
	case counts.Matching <= maxNarrowed:
		return Decision{Narrowed, fmt.Sprintf("%d resources are left", counts.Matching)}
	}
	return Decision{SQL, fmt.Sprintf("%d resources are left, more than %d", counts.Matching, maxNarrowed)}
}

// chooseHosts is Choose for hosts if sets can decide all conditions.
func chooseHosts(counts Counts) Decision {
	if most := max(fewHosts, hostsOfAProvider*counts.Providers); counts.Matching > most {
		return Decision{SQL, fmt.Sprintf("%d resources match, more than %d", counts.Matching, most)}
	}
	return Decision{Sets, fmt.Sprintf("%d resources match", counts.Matching)}
}

// DecidedBySets reports whether sets can decide a condition.
func DecidedBySets(c resource.Condition) bool {
	switch c.Kind {
	case resource.ConditionCapability, resource.ConditionSearch, resource.ConditionUpdatedSince,
		resource.ConditionParent, resource.ConditionAncestor:
		return false
	case resource.ConditionMetadata:
		return slices.Contains([]resource.Operator{resource.Exists, resource.Equals, resource.HasPrefix, resource.Has},
			c.Test.Operator)
	case resource.ConditionTag:
		return !c.Below
	}
	return !slices.ContainsFunc(c.Members, func(member resource.Condition) bool { return !DecidedBySets(member) })
}
