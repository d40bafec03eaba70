package graph_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// recordNow records a sample of the fixture, with an open and a hidden flavor.
func recordNow(t *testing.T, s *store.Store, executor *graph.Executor) {
	t.Helper()
	for name, visibility := range map[string]string{"open": "PUBLIC", "hidden": "PRIVATE"} {
		answer := askAs(t, executor, viewers["admin"], fmt.Sprintf(`mutation { createResource(input: {type: "OS::Nova::Flavor", name: %q, projectId: "elsewhere",
			visibility: %s, metadata: [{key: "resources:VCPU", value: "1"}]}) { resource { name } } }`, name,
			visibility))
		if strings.Contains(answer, "errors") {
			t.Fatal(answer)
		}
	}
	ctx := access.WithViewer(t.Context(), viewers["admin"])
	world, err := s.World(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sample := placement.SampleOf(world, nil)
	fits, err := graph.FitsNamed(ctx, s, []string{"open", "hidden", "none"})
	if err != nil || len(fits) != 2 {
		t.Fatal(fits, err)
	}
	sample.AddFlavors(fits)
	usages, err := s.Usages(ctx, placement.UsageFilter{By: placement.UsagesByProject}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sample.AddProjects(usages, false)
	if _, err := s.RecordHistory(ctx, s.Now(), sample); err != nil {
		t.Fatal(err)
	}
}

// TestFitsNamedAsksTheSameForAnyNumberOfNames counts the statements for one flavor and
// for many, some with the same name. The oldest one counts: a member can choose the
// name and the uuid of a later one.
func TestFitsNamedAsksTheSameForAnyNumberOfNames(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFixture(t, url)
		executor := executorOf(t, s)
		for i := range 7 {
			answer := askAs(t, executor, viewers["admin"], fmt.Sprintf(`mutation { createResource(input: {type: "OS::Nova::Flavor",
				uuid: "0000000%d-0000-4000-8000-000000000000", name: "many%d", projectId: "elsewhere", visibility: PUBLIC,
				metadata: [{key: "resources:VCPU", value: "1"}]}) { resource { name } } }`, 7-i, i/2))
			if strings.Contains(answer, "errors") {
				t.Fatal(answer)
			}
		}
		ask := func(names ...string) (fits map[string]placement.FlavorFit, statements int) {
			ctx, count := store.CountStatements(access.WithViewer(t.Context(), viewers["admin"]))
			fits, err := graph.FitsNamed(ctx, s, names)
			if err != nil {
				t.Fatal(err)
			}
			return fits, count()
		}
		_, one := ask("many0")
		fits, all := ask("many0", "many1", "many2", "many3", "none")
		if len(fits) != 4 || !strings.HasPrefix(fits["many0"].Flavor, "00000007") || all != one {
			t.Errorf("%d statements for one flavor, %d for all: %+v", one, all, fits)
		}
	})
}

// bucket is a row of the history.
type bucket struct {
	ResourceClass, Aggregate, ProjectID, Flavor *string
	Samples                                     int
	Total, Reserved, Capacity, Used, Held       *struct{ Min, Max, Mean float64 }
	FitsAtLeast, FitsAtMost                     *struct{ Min, Max, Mean float64 }
}

// text returns the figures of a row that are present.
func (b bucket) text() string {
	var parts []string
	for _, name := range []*string{b.ResourceClass, b.ProjectID, b.Flavor} {
		if name != nil {
			parts = append(parts, *name)
		}
	}
	for _, figure := range []*struct{ Min, Max, Mean float64 }{b.Total, b.Reserved, b.Capacity, b.Used,
		b.Held, b.FitsAtLeast, b.FitsAtMost} {
		switch {
		case figure == nil:
			parts = append(parts, "-")
		case figure.Min != figure.Max || figure.Min != figure.Mean:
			parts = append(parts, fmt.Sprint(*figure))
		default:
			parts = append(parts, fmt.Sprint(figure.Max))
		}
	}
	return strings.Join(parts, " ")
}

// historyOf returns the rows of the history for a viewer, as text.
func historyOf(c counting, viewer, arguments string) []string {
	const figure = `{ min max mean }`
	var page struct{ CapacityHistory struct{ Nodes []bucket } }
	c.ask(viewer, strings.ReplaceAll(`{ capacityHistory(`+arguments+`, first: 1000) { nodes { resourceClass aggregate projectId flavor samples
		total FIGURE reserved FIGURE capacity FIGURE used FIGURE held FIGURE fitsAtLeast FIGURE fitsAtMost FIGURE } } }`, "FIGURE", figure), &page)
	var rows []string
	for _, of := range page.CapacityHistory.Nodes {
		rows = append(rows, of.text())
	}
	return rows
}

// presentOf returns the present figures in the same form.
func presentOf(c counting) (classes, projects, flavors []string) {
	var now struct {
		Capacity struct {
			Nodes []struct {
				ResourceClass                   string
				Total, Reserved, Capacity, Used float64
			}
		}
		Usages []struct {
			ProjectID string
			Usages    []struct {
				ResourceClass string
				Used, Held    float64
			}
		}
		Resources struct {
			Nodes []struct {
				Name string
				Fits struct{ AtLeast, AtMost float64 }
			}
		}
	}
	c.ask("admin", `{ capacity { nodes { resourceClass total reserved capacity used } } usages(groupBy: PROJECT) { projectId usages { resourceClass used held } }
		resources(filter: {types: ["OS::Nova::Flavor"], projectId: "elsewhere"}) { nodes { name fits { atLeast atMost } } } }`, &now)
	for _, of := range now.Capacity.Nodes {
		classes = append(classes,
			fmt.Sprintf("%s %v %v %v %v 0 - -", of.ResourceClass, of.Total, of.Reserved, of.Capacity, of.Used))
	}
	for _, group := range now.Usages {
		for _, of := range group.Usages {
			projects = append(projects,
				fmt.Sprintf("%s %s - - - %v %v - -", of.ResourceClass, group.ProjectID, of.Used, of.Held))
		}
	}
	for _, of := range now.Resources.Nodes {
		flavors = append(flavors, fmt.Sprintf("%s - - - - - %v %v", of.Name, of.Fits.AtLeast, of.Fits.AtMost))
	}
	return classes, projects, flavors
}

// times are the times and cursors of answers.
var times = regexp.MustCompile(`"(beginsAt|cursor)":"[^"]*"`)

// TestTheHistoryIsTheCapacityOfItsTime compares a sample with the answers of
// capacity, usages and fits, as an administrator and as a reader.
func TestTheHistoryIsTheCapacityOfItsTime(t *testing.T) {
	t.Parallel()
	var answers []string
	t.Run("", func(t *testing.T) {
		storetest.EachURL(t, func(t *testing.T, url string) {
			s := openFixture(t, url)
			executor := executorOf(t, s)
			recordNow(t, s, executor)
			c := counting{t, executor}
			classes, projects, flavors := presentOf(c)
			own := slices.DeleteFunc(slices.Clone(projects), func(of string) bool {
				return !strings.Contains(of, " "+viewers["reader"].ProjectID+" ")
			})
			open := slices.DeleteFunc(slices.Clone(flavors), func(of string) bool {
				return !strings.HasPrefix(of, "open")
			})
			if len(classes) == 0 || len(projects) <= len(own) || len(flavors) != 2 {
				t.Fatal(classes, projects, flavors)
			}
			var unheld []string
			for _, of := range classes {
				unheld = append(unheld, strings.Replace(of, " 0 - -", " - - -", 1))
			}
			for _, of := range []struct {
				viewer, arguments string
				want              []string
			}{
				{"admin", `bucket: DAY`, classes},
				{"reader", `bucket: FIVE_MINUTES`, unheld},
				{"admin", `groupBy: PROJECT`, projects},
				{"reader", `groupBy: PROJECT`, own},
				{"admin", `groupBy: FLAVOR`, flavors},
				{"reader", `groupBy: FLAVOR, bucket: DAY`, open},
				{"reader", `groupBy: FLAVOR, filter: {flavors: ["hidden"]}`, nil},
				{"admin", `filter: {until: "2020-01-01T00:00:00Z"}`, nil},
			} {
				got := historyOf(c, of.viewer, of.arguments)
				slices.Sort(of.want)
				if slices.Sort(got); !slices.Equal(got, of.want) {
					t.Errorf("%s %s: %q, want %q", of.viewer, of.arguments, got, of.want)
				}
			}
			answers = append(answers, times.ReplaceAllString(askAs(t, executor, viewers["admin"],
				`{ capacityHistory(groupBy: AGGREGATE, last: 3) {
				totalCount isIncomplete edges { cursor node { beginsAt aggregate resourceClass used { mean } } } pageInfo { hasPreviousPage } } }`), ""))
		})
	})
	if len(answers) == 2 && answers[0] != answers[1] || strings.Contains(answers[0], "errors") {
		t.Errorf("the databases answer %q", answers)
	}
}

func TestTheHistoryRefusesBadInput(t *testing.T) {
	t.Parallel()
	executor := executorOf(t, openFixture(t, storetest.SQLite(t)))
	for query, want := range map[string][]string{
		`{ capacityHistory(groupBy: PROJECT, bucket: FIVE_MINUTES, filter: {since: "2020-01-01T00:00:00Z", aggregates: [], projectIds: ["\u0000"]}) { totalCount } }`: {
			"bucket", "filter.aggregates", "filter.projectIds[0]", "filter.since"},
		`{ capacityHistory(filter: {since: "2026-01-02T00:00:00Z", until: "2026-01-01T00:00:00Z"}, groupBy: FLAVOR, first: 1001) { totalCount } }`: {"filter.since", "first"},
		`{ capacityHistory(first: 1001, after: "x") { totalCount } }`:                                                                              {"after", "first"},
	} {
		response := executor.Execute(access.WithViewer(t.Context(), viewers["reader"]),
			&graphql.RawParams{Query: query})
		var got []string
		for _, err := range response.Errors {
			got = append(got, fmt.Sprint(err.Extensions["field"]))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
