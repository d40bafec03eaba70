package query_test

import (
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
)

var (
	pair       = resource.Condition{Kind: resource.ConditionMetadata, Test: resource.Test{Name: "a", Operator: resource.Equals, Operands: []string{"x"}}}
	capability = resource.Condition{Kind: resource.ConditionCapability, Test: resource.Test{Name: "c", Operator: resource.Exists}}
	never      = resource.Condition{Kind: resource.ConditionNever}
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
		"not in memory":                    {page(pair), query.Counts{Matching: 1}, query.SQL},
		"a page of everything":             {page(), kept, query.SQL},
		"a page of a pair":                 {page(pair), kept, query.Sets},
		"a capability":                     {page(capability), kept, query.SQL},
		"a capability of few":              {page(capability, pair), matching(5_000), query.Narrowed},
		"a capability of many":             {page(capability, pair), matching(5_001), query.SQL},
		"no capability":                    {page(not(capability)), kept, query.SQL},
		"no pair":                          {page(not(pair)), kept, query.Sets},
		"a search":                         {page(resource.Condition{Kind: resource.ConditionSearch, Test: resource.Test{Operands: []string{"x"}}}), kept, query.SQL},
		"a tag":                            {page(resource.Condition{Kind: resource.ConditionTag, Test: resource.Test{Operands: []string{"x"}}}), kept, query.Sets},
		"a tag and those below":            {page(resource.Condition{Kind: resource.ConditionTag, Below: true}), kept, query.SQL},
		"nothing":                          {page(never), kept, query.Sets},
		"a count of everything":            {query.Question{Use: query.Count}, kept, query.Sets},
		"a count":                          {query.Question{Use: query.Count, Conditions: all(pair, not(pair))}, kept, query.Sets},
		"a count of some of few":           {query.Question{Use: query.Count, Conditions: all(pair, capability)}, matching(10), query.Narrowed},
		"a facet of everything":            {query.Question{Use: query.Facet, By: resource.FacetTag}, kept, query.Sets},
		"a facet of capabilities":          {query.Question{Use: query.Facet, By: resource.FacetCapabilityValue, Conditions: all(pair)}, matching(1), query.SQL},
		"a facet of each":                  {query.Question{Use: query.Facet, By: resource.FacetTag, IsNested: true}, kept, query.SQL},
		"an explanation":                   {query.Question{Use: query.Explain, Conditions: all(pair)}, kept, query.Sets},
		"an explanation with a capability": {query.Question{Use: query.Explain, Conditions: all(pair, capability)}, matching(1), query.SQL},
		"hosts":                            {query.Question{Use: query.Hosts, Conditions: all(pair)}, matching(16_000), query.Sets},
		"hosts of more than providers":     {query.Question{Use: query.Hosts, Conditions: all(pair)}, matching(16_001), query.SQL},
		"hosts of few providers":           {query.Question{Use: query.Hosts, Conditions: all(pair)}, query.Counts{Resources: 100_000, Matching: 10_000}, query.Sets},
		"all hosts of few providers":       {query.Question{Use: query.Hosts}, query.Counts{Resources: 100_000, Matching: 10_001}, query.SQL},
	} {
		got := query.Choose(test.question, test.counts)
		if got.Compiler != test.want || got.Why == "" || !strings.HasPrefix(got.String(), test.want.String()) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestEstimatesRevealNoRows holds that an estimate grows with sizes, and not with
// a few rows, and that sets are estimated as less work than SQL.
func TestEstimatesRevealNoRows(t *testing.T) {
	t.Parallel()
	sizes := query.Sizes{Resources: 100_000, Items: 800_000, Tags: 10_000, Members: 50_000, Providers: 10_000, IsResident: true}
	more, fewer := sizes, sizes
	more.Resources, more.Items, more.Tags, more.Members = more.Resources+1_000, more.Items+10_000, more.Tags+1_000, more.Members+5_000
	fewer.Resources, fewer.Items = 1_000, 8_000
	inDatabase := sizes
	inDatabase.IsResident = false
	for _, use := range []query.Use{query.Page, query.Count, query.Facet, query.Explain, query.Hosts} {
		for _, conditions := range [][]resource.Condition{all(pair), all(pair, not(pair)), all(capability), all(pair, capability)} {
			q := query.Question{Use: use, Conditions: conditions, By: resource.FacetProject}
			got := query.Estimate(q, 50, sizes)
			if got != query.Estimate(q, 50, more) {
				t.Errorf("%s: %+v, with 1,000 hidden resources %+v", use, got, query.Estimate(q, 50, more))
			}
			if less := query.Estimate(q, 50, fewer); less.Units() > got.Units() && less.Compiler == got.Compiler {
				t.Errorf("%s: %+v for 1,000 resources, %+v for 100,000", use, less, got)
			}
			if got.Compiler == query.Sets && 10*got.Units() > query.Estimate(q, 50, inDatabase).Units() {
				t.Errorf("%s: %+v by sets, %+v by SQL", use, got, query.Estimate(q, 50, inDatabase))
			}
		}
	}
}
