package resourcedb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestPartsAreFoundEitherWay pages through random searches. The pages must be
// the same whatever number of rows counts as few and however many resources the
// walk reads, always in one statement.
func TestPartsAreFoundEitherWay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		chance := rand.New(rand.NewPCG(31, 32))
		fillParts(t, s, chance)
		for range 60 {
			filter, order, request := searchOfParts(chance)
			viewer := []context.Context{storetest.AsAdmin(), asMember("demo")}[chance.IntN(2)]
			few, walked := []int{0, 1, 4, 20}[chance.IntN(4)], []int{1, 3, 9, 40, 200}[chance.IntN(5)]
			want := pagesOf(t, viewer, s.ResourceStore, filter, order, request)
			got := pagesOf(t, viewer, resourcedb.Walking(s.ResourceStore, few, walked), filter, order, request)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v by %+v, few %d, walked %d:\ngot  %v\nwant %v", filter, order, few, walked, got, want)
			}
			if count, err := s.CountResources(viewer, filter); err != nil || count != len(want) {
				t.Errorf("%+v: %d resources on pages, %d counted, %v", filter, len(want), count, err)
			}
		}
	})
}

// partsOfTexts are substrings of many names and values, of some, and of none.
var partsOfTexts = []string{"common", "every second", "rare", "absent", "COMM", "nd 1"}

// fillParts creates resources with such names and values.
func fillParts(t *testing.T, s *store.Store, chance *rand.Rand) {
	t.Helper()
	for i := range 60 {
		part := func() string {
			switch chance.IntN(20) {
			case 0:
				return "rare"
			case 1, 2, 3, 4, 5, 6, 7, 8:
				return fmt.Sprint("every second ", chance.IntN(4))
			}
			return "Common"
		}
		input := resource.Input{Type: []string{"physical:host", "OS::Cinder::Volume"}[chance.IntN(2)],
			Name: fmt.Sprint(part(), " ", chance.IntN(30)), Description: new(part()),
			ProjectID:  new([]string{"demo", "other"}[chance.IntN(2)]),
			Visibility: new([]access.Visibility{access.Public, access.Private}[chance.IntN(2)])}
		for k := range chance.IntN(4) {
			input.Metadata = append(input.Metadata, metadef.KeyValue{Key: fmt.Sprint("k", k), Value: part()})
		}
		if _, err := s.CreateResource(storetest.AsAdmin(), input); err != nil {
			t.Fatal(i, err)
		}
	}
}

// searchOfParts returns a random search with a random order and page size.
func searchOfParts(chance *rand.Rand) (resource.Filter, page.Order, page.Request) {
	part := func() *string { return new(partsOfTexts[chance.IntN(len(partsOfTexts))]) }
	var filter resource.Filter
	for filter.Search == nil && filter.NameContains == nil && filter.Where == nil && filter.Metadata == nil {
		if chance.IntN(2) == 0 {
			filter.Search = part()
		}
		if chance.IntN(4) == 0 {
			filter.NameContains = part()
		}
		if chance.IntN(4) == 0 {
			filter.Where = &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: fmt.Sprint("k",
				chance.IntN(3)), Contains: part()}}
		}
	}
	for filter.Where == nil && chance.IntN(2) == 0 {
		filter.Metadata = append(filter.Metadata,
			metadef.KeyValue{Key: fmt.Sprint("k", chance.IntN(3)), Value: pairValue(chance)})
	}
	if filter.Where == nil && chance.IntN(2) == 0 {
		filter.Where = new(pairCondition(chance, 2))
	}
	if chance.IntN(3) == 0 {
		filter.Types = []string{"physical:host"}
	}
	if chance.IntN(4) == 0 {
		filter.ProjectID = new("demo")
	}
	order := page.Order{Field: []string{"NAME", "CREATED_AT", "UPDATED_AT", "PROJECT", "TYPE"}[chance.IntN(5)],
		Descending: chance.IntN(2) == 0}
	size := 1 + chance.IntN(9)
	if chance.IntN(2) == 0 {
		return filter, order, page.Request{Last: &size}
	}
	return filter, order, page.Request{First: &size}
}

// pairValue returns a value of many items, of some, or of none.
func pairValue(chance *rand.Rand) string {
	return []string{"Common", "rare", "every second 1", "every second 2", "common"}[chance.IntN(5)]
}

// pairCondition returns a random condition on metadata and names.
func pairCondition(chance *rand.Rand, depth int) resource.ConditionInput {
	if depth > 0 {
		members := []resource.ConditionInput{pairCondition(chance, depth-1),
			pairCondition(chance, depth-1)}[:1+chance.IntN(2)]
		switch chance.IntN(5) {
		case 0:
			return resource.ConditionInput{All: members}
		case 1, 2:
			return resource.ConditionInput{Any: members}
		case 3:
			return resource.ConditionInput{Not: &members[0]}
		}
	}
	of := resource.MetadataCondition{Key: fmt.Sprint("k", chance.IntN(3))}
	switch chance.IntN(6) {
	case 0:
		of.Prefix = new([]string{"ever", "r", "x"}[chance.IntN(3)])
	case 1:
		of.Exists = new(chance.IntN(2) == 0)
	case 2:
		of.In = []string{pairValue(chance), pairValue(chance)}
	case 3:
		of.Contains = new(partsOfTexts[chance.IntN(len(partsOfTexts))])
	default:
		of.Equals = new(pairValue(chance))
	}
	return resource.ConditionInput{Metadata: &of}
}

// pagesOf pages through a search and returns the ids. Each page must take one
// statement, and one more if the order is by type.
func pagesOf(t *testing.T, viewer context.Context, s *resourcedb.ResourceStore, filter resource.Filter,
	order page.Order, request page.Request) (ids []int64) {
	t.Helper()
	for range 100 {
		ctx, statements := store.CountStatements(viewer)
		got, err := s.Resources(ctx, filter, order, request)
		if err != nil {
			t.Fatal(err)
		}
		if n := statements(); n > 4 {
			t.Errorf("%d statements", n)
		}
		of := []int64{}
		for _, r := range got.Items {
			of = append(of, r.ID)
		}
		if request.Last != nil {
			slices.Reverse(of)
		}
		ids = append(ids, of...)
		if !got.HasMore {
			return ids
		}
		if request.Last != nil {
			request.Before = &got.Cursors[0]
		} else {
			request.After = &got.Cursors[len(got.Cursors)-1]
		}
	}
	t.Error("the pages have no end")
	return ids
}

// TestFrequentPartsAreFoundInTheOrder checks that the page of a substring that
// every resource has reads few resources and items, and so does the page of a
// substring that one resource has.
func TestFrequentPartsAreFoundInTheOrder(t *testing.T) {
	t.Parallel()
	count := planSize()
	storetest.EachURL(t, func(t *testing.T, url string) {
		fillResources(t, url, count)
		s := resourcedb.Walking(storetest.Open(t, url).ResourceStore, 100, 400)
		for _, test := range []struct {
			filter resource.Filter
			found  int
		}{
			{resource.Filter{Search: new("resource")}, 20},
			{resource.Filter{Search: new("Value-")}, 20},
			{resource.Filter{Search: new("resource-000077")}, 1},
			{resource.Filter{NameContains: new("ource-")}, 20},
			{resource.Filter{Where: &resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key-3",
				Contains: new("value-")}}}, 20},
		} {
			recording, recorded := resourcedb.RecordStatements(s)
			got, err := recording.Resources(storetest.AsAdmin(), test.filter,
				page.Order{Field: "NAME"}, page.Request{First: new(20)})
			if err != nil || len(got.Items) != test.found {
				t.Fatalf("%d resources, %v", len(got.Items), err)
			}
			statement := (*recorded)[len(*recorded)-1]
			most := 700
			if strings.HasPrefix(url, "postgres") {
				most += count // with so few resources, a rare name makes it look at each
			}
			if looked := lookedAt(t, recording, statement); looked == 0 && test.found > 1 || looked > most {
				t.Errorf("%d rows of %d resources with 5 items each are looked at:\n%s\n%s", looked, count,
					statement.Query, resourcedb.Explain(t, recording, statement))
			}
		}
	})
}

// actualRows matches the rows that EXPLAIN (ANALYZE) of PostgreSQL reports for
// a scan of a table, and the rows that the scan read and dropped.
var actualRows = regexp.MustCompile(`(?m)^.*Scan.* on (?:resources|metadata_items).*\(actual rows=([0-9.]+) loops=([0-9]+)\)$|Rows Removed by (?:Filter|Index Recheck): ([0-9]+)`)

// lookedAt returns the number of rows that a statement reads. On SQLite, it is
// the number of strings that the statement compares.
func lookedAt(t *testing.T, s *resourcedb.ResourceStore, statement resourcedb.Statement) int {
	t.Helper()
	if s.Pool.Dialect() != "postgres" {
		before := comparisons.Load()
		rows, err := s.Pool.QueryContext(t.Context(), strings.ReplaceAll(statement.Query, "instr(", "counted_instr("),
			statement.Args...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			continue
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		return int(comparisons.Load() - before)
	}
	plan := resourcedb.Explain(t, s,
		resourcedb.Statement{Query: "(ANALYZE, TIMING OFF, COSTS OFF) " + statement.Query, Args: statement.Args})
	total := 0
	for _, found := range actualRows.FindAllStringSubmatch(plan, -1) {
		rows, _ := strconv.ParseFloat(found[1], 64) // 0 for ""
		loops, _ := strconv.Atoi(found[2])
		removed, _ := strconv.Atoi(found[3])
		total += int(rows)*loops + removed
	}
	return total
}
