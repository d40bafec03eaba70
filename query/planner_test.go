package query_test

import (
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
)

var (
	pair = resource.Condition{Kind: resource.ConditionMetadata,
		Test: resource.Test{Name: "a", Operator: resource.Equals, Operands: []string{"x"}}}
	capability = resource.Condition{Kind: resource.ConditionCapability,
		Test: resource.Test{Name: "c", Operator: resource.Exists}}
	never = resource.Condition{Kind: resource.ConditionNever}
)

func all(of ...resource.Condition) []resource.Condition { return of }

func not(c resource.Condition) resource.Condition {
	return resource.Condition{Kind: resource.ConditionNot, Members: all(c)}
}

// TestChooseSelectsACompiler is the table of the planner's decisions.
func TestChooseSelectsACompiler(t *testing.T) {
	t.Parallel()
	kept := query.Counts{Resources: 100_000}
	matching := func(count int) query.Counts {
		return query.Counts{Resources: 100_000, Matching: count, Providers: 2_000}
	}
	page := func(of ...resource.Condition) query.Question {
		return query.Question{Use: query.Page, Conditions: of}
	}
	for name, test := range map[string]struct {
		question query.Question
		counts   query.Counts
		want     query.Compiler
	}{
		"not in memory":        {page(pair), query.Counts{Matching: 1}, query.SQL},
		"a page of everything": {page(), kept, query.SQL},
		"a page of a pair":     {page(pair), kept, query.Sets},
		"a capability":         {page(capability), kept, query.SQL},
		"a capability of few":  {page(capability, pair), matching(5_000), query.Narrowed},
		"a capability of many": {page(capability, pair), matching(5_001), query.SQL},
		"no capability":        {page(not(capability)), kept, query.SQL},
		"no pair":              {page(not(pair)), kept, query.Sets},
		"a search": {page(resource.Condition{Kind: resource.ConditionSearch,
			Test: resource.Test{Operands: []string{"x"}}}), kept, query.SQL},
		"a tag": {page(resource.Condition{Kind: resource.ConditionTag,
			Test: resource.Test{Operands: []string{"x"}}}), kept, query.Sets},
		"a tag and those below": {page(resource.Condition{Kind: resource.ConditionTag, Below: true}), kept,
			query.SQL},
		"nothing":               {page(never), kept, query.Sets},
		"a count of everything": {query.Question{Use: query.Count}, kept, query.Sets},
		"a count": {query.Question{Use: query.Count, Conditions: all(pair, not(pair))}, kept,
			query.Sets},
		"a count of some of few": {query.Question{Use: query.Count, Conditions: all(pair, capability)},
			matching(10), query.Narrowed},
		"a facet of everything": {query.Question{Use: query.Facet, By: resource.FacetTag}, kept, query.Sets},
		"a facet of capabilities": {query.Question{Use: query.Facet, By: resource.FacetCapabilityValue,
			Conditions: all(pair)}, matching(1), query.SQL},
		"a facet of each": {query.Question{Use: query.Facet, By: resource.FacetTag, IsNested: true},
			kept, query.SQL},
		"an explanation": {query.Question{Use: query.Explain, Conditions: all(pair)}, kept,
			query.Sets},
		"an explanation with a capability": {query.Question{Use: query.Explain, Conditions: all(pair, capability)},
			matching(1), query.SQL},
		"hosts": {query.Question{Use: query.Hosts, Conditions: all(pair)}, matching(16_000),
			query.Sets},
		"hosts of more than providers": {query.Question{Use: query.Hosts, Conditions: all(pair)}, matching(16_001),
			query.SQL},
		"hosts of few providers": {query.Question{Use: query.Hosts, Conditions: all(pair)},
			query.Counts{Resources: 100_000, Matching: 10_000}, query.Sets},
		"all hosts of few providers": {query.Question{Use: query.Hosts},
			query.Counts{Resources: 100_000, Matching: 10_001}, query.SQL},
	} {
		got := query.Choose(test.question, test.counts)
		if got.Compiler != test.want || got.Why == "" || !strings.HasPrefix(got.String(), test.want.String()) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
