package graph_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// brokenRule is a problem of metadata in an answer.
type brokenRule struct {
	Resource, Type, Project          string
	Key, Value, Rule, Message, Space string
}

// problemsPage is an answer of metadataProblems.
type problemsPage struct {
	Scanned, ResourceCount, ProblemCount int
	Complete                             bool
	ScannedTo                            *string
	PageInfo                             struct {
		EndCursor   *string
		HasNextPage bool
	}
	Edges []struct {
		Cursor string
		Node   struct{ Resource struct{ UUID string } }
	}
	Nodes []struct {
		Resource struct {
			UUID, ProjectID string
			Type            struct{ Name string }
		}
		Problems []struct {
			Key, Value, Rule, Message string
			Namespace                 *string
			Definition                *struct {
				Name      string
				Namespace struct{ Name string }
			}
		}
	}
	Counts []struct {
		Namespace, Key, Rule        *string
		ResourceCount, ProblemCount int
	}
}

// problemFields are all fields of problemsPage.
const problemFields = ` { scanned complete scannedTo resourceCount problemCount pageInfo { endCursor hasNextPage }
	nodes { resource { uuid projectId type { name } } problems { key value rule message namespace definition { name namespace { name } } } }
	edges { cursor node { resource { uuid } } } counts { namespace key rule resourceCount problemCount } }`

// broken returns the problems of the page.
func (p problemsPage) broken(t *testing.T) (broken []brokenRule) {
	t.Helper()
	for i, node := range p.Nodes {
		if p.Edges[i].Node.Resource.UUID != node.Resource.UUID {
			t.Fatalf("edges and nodes differ: %+v", p)
		}
		for _, problem := range node.Problems {
			one := brokenRule{Resource: node.Resource.UUID,
				Type: node.Resource.Type.Name, Project: node.Resource.ProjectID,
				Key: problem.Key, Value: problem.Value, Rule: problem.Rule, Message: problem.Message}
			if problem.Namespace != nil {
				one.Space = *problem.Namespace
			}
			if definition := problem.Definition; definition != nil && definition.Namespace.Name != one.Space {
				t.Errorf("%+v is of a definition of %s", one, definition.Namespace.Name)
			}
			broken = append(broken, one)
		}
	}
	return broken
}

// problemOracle checks resources one by one.
type problemOracle struct {
	*agreement
	viewer string
}

// reportedResource is a resource with the report on its metadata.
type reportedResource struct {
	UUID, ProjectID string
	Type            struct{ Name string }
	Metadata        []struct{ Key, Value string }
	MetadataReport  *report
}

// reported returns every resource that the viewer sees.
func (o problemOracle) reported() []reportedResource {
	o.t.Helper()
	answer := o.ask(o.viewer,
		`{ resources(first: 1000) { nodes { uuid projectId type { name } metadata { key value } metadataReport`+
			reportFields+` } } }`, nil)
	var page struct{ Nodes []reportedResource }
	if err := json.Unmarshal(answer.Data["resources"], &page); err != nil || len(answer.Errors) > 0 {
		o.t.Fatal(err, answer.Errors)
	}
	return page.Nodes
}

// checkTrue compares the viewer's reports with the reports of administrators, who see
// every definition. A valid item must not be reported as invalid, or the other
// way round. The viewer must get no report on resources of projects to which
// the viewer does not belong.
func (o problemOracle) checkTrue() {
	o.t.Helper()
	truth := map[string]reportedResource{}
	for _, of := range (problemOracle{o.agreement, "admin"}).reported() {
		truth[of.UUID] = of
	}
	for _, of := range o.reported() {
		told, right := of.MetadataReport, truth[of.UUID].MetadataReport
		if told == nil || right == nil {
			if viewer := viewers[o.viewer]; right == nil ||
				viewer.May(access.RuleResourcesWriteAny) || viewer.ProjectID == of.ProjectID {
				o.t.Fatalf("%s is told nothing of %s of %s", o.viewer, of.UUID, of.ProjectID)
			}
			continue
		}
		if told.Valid != right.Valid || told.Accepted != right.Accepted || told.Strict != right.Strict {
			o.t.Fatalf("%s is told of %s of %s\n%+v\nadministrators\n%+v", o.viewer, of.UUID, of.ProjectID, told, right)
		}
		for i, item := range told.Items {
			if item.Accepted != right.Items[i].Accepted ||
				(len(item.Violations) > 0) != (len(right.Items[i].Violations) > 0) {
				o.t.Fatalf("%s is told of %s of %s\n%+v\nadministrators\n%+v", o.viewer,
					of.UUID, of.ProjectID, item, right.Items[i])
			}
		}
	}
}

// everything returns all violations in the metadataReports that the viewer
// sees, without namespaces, and the number of these reports.
func (o problemOracle) everything() (broken []brokenRule, resources int) {
	o.t.Helper()
	for _, of := range o.reported() {
		if of.MetadataReport == nil {
			continue
		}
		resources++
		for i, item := range of.MetadataReport.Items {
			for _, violation := range item.Violations {
				broken = append(broken, brokenRule{Resource: of.UUID, Type: of.Type.Name, Project: of.ProjectID,
					Key: item.Key, Value: of.Metadata[i].Value, Rule: violation.Rule, Message: violation.Message})
			}
		}
	}
	slices.SortStableFunc(broken, func(a, b brokenRule) int { return cmp.Compare(a.Resource, b.Resource) })
	return broken, resources
}

// page returns an answer of metadataProblems, and checks the number of
// statements, which does not depend on the data.
func (o problemOracle) page(arguments string) (page problemsPage) {
	o.t.Helper()
	ctx, statements := store.CountStatements(access.WithViewer(o.t.Context(), viewers[o.viewer]))
	response := o.executor.Execute(ctx,
		&graphql.RawParams{Query: `{ metadataProblems(` + arguments + `)` + problemFields + ` }`})
	var data struct{ MetadataProblems *problemsPage }
	if err := json.Unmarshal(response.Data, &data); err != nil || data.MetadataProblems == nil {
		o.t.Fatalf("metadataProblems(%s) as %s: %v", arguments, o.viewer, response.Errors)
	}
	page = *data.MetadataProblems
	want := 2
	if strings.Contains(arguments, "namespace:") || strings.Contains(arguments, "types:") {
		want++ // the names
	}
	if len(page.Nodes) > 0 {
		want++ // the types of resources
	}
	if statements() != want {
		o.t.Errorf("metadataProblems(%s) as %s takes %d statements, want %d", arguments, o.viewer, statements(), want)
	}
	return page
}

// walk returns all problems under a filter, page by page, and the number of
// scanned resources.
func (o problemOracle) walk(filter string, first, scan int) (broken []brokenRule, scanned int) {
	o.t.Helper()
	after := ""
	for range 1000 {
		page := o.page(fmt.Sprintf("filter: {%s}, first: %d, scan: %d%s", filter, first, scan, after))
		of := page.broken(o.t)
		o.checkCounts(page, of)
		broken, scanned = append(broken, of...), scanned+page.Scanned
		if !page.PageInfo.HasNextPage {
			if !page.Complete {
				o.t.Fatalf("an incomplete page is the last: %+v", page)
			}
			return broken, scanned
		}
		after = fmt.Sprintf(", after: %q", *page.PageInfo.EndCursor)
	}
	o.t.Fatal("the walk has no end")
	return nil, 0
}

// checkCounts compares the counts of a page with its problems, unless more
// problems follow on other pages.
func (o problemOracle) checkCounts(page problemsPage, broken []brokenRule) {
	o.t.Helper()
	if page.ResourceCount != len(page.Nodes) {
		return // there are more
	}
	problems, resources := map[string]int{}, map[string]map[string]bool{}
	for _, one := range broken {
		group := one.Space + " " + one.Key + " " + one.Rule
		problems[group]++
		if resources[group] == nil {
			resources[group] = map[string]bool{}
		}
		resources[group][one.Resource] = true
	}
	counted := 0
	for _, count := range page.Counts {
		space := ""
		if count.Namespace != nil {
			space = *count.Namespace
		}
		group := space + " " + *count.Key + " " + *count.Rule
		if counted += count.ProblemCount; problems[group] != count.ProblemCount ||
			len(resources[group]) != count.ResourceCount {
			o.t.Errorf("%s is counted as %+v, there are %d problems of %d resources", group, count,
				problems[group], len(resources[group]))
		}
	}
	if counted != len(broken) || page.ProblemCount != len(broken) {
		o.t.Errorf("%d problems, %d in groups, are counted of %d", page.ProblemCount, counted, len(broken))
	}
}

// without returns problems without their namespaces.
func without(broken []brokenRule) []brokenRule {
	broken = slices.Clone(broken)
	for i := range broken {
		broken[i].Space = ""
	}
	return broken
}

// TestMetadataProblemsAreWhatReportsSay makes random changes of metadata and
// definitions. For every viewer, metadataProblems must list exactly the
// violations in the reports on each resource, under every filter and for any
// page size.
func TestMetadataProblemsAreWhatReportsSay(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		chance := rand.New(rand.NewPCG(soak.Seed(t), 19))
		a := &agreement{t: t, executor: openStrict(t, url, true), chance: chance}
		seen, filtered, hidden := 0, 0, 0
		for round := range 6 {
			a.makeBroken(round)
			for _, viewer := range []string{"admin", "service", "member", "reader", "foreign"} {
				o := problemOracle{a, viewer}
				o.checkTrue()
				want, resources := o.everything()
				got, scanned := o.walk("", 1000, 1+chance.IntN(20))
				if !slices.Equal(without(got), want) || scanned != resources {
					t.Fatalf("%s is told of %d resources\n%+v\nthe reports on %d say\n%+v", viewer,
						scanned, without(got), resources, want)
				}
				seen += len(got)
				for _, one := range got {
					if one.Rule == "HIDDEN" {
						hidden++
					}
				}
				for range 3 {
					filter, keeps := randomProblemFilter(chance, got)
					kept := slices.DeleteFunc(slices.Clone(got), func(one brokenRule) bool { return !keeps(one) })
					filtered += len(kept)
					if got, _ := o.walk(filter, 1+chance.IntN(3), 1+chance.IntN(9)); !slices.Equal(got, kept) {
						t.Fatalf("under {%s} %s is told of\n%+v\nwant\n%+v", filter, viewer, got, kept)
					}
				}
			}
		}
		if seen < 200 || filtered < 50 || hidden == 0 {
			t.Errorf("%d problems, %d under filters, %d hidden: the writes do not break enough", seen, filtered, hidden)
		}
	})
}

// makeBroken writes metadata that breaks definitions, while the definitions
// change. The type is not strict during these writes.
func (a *agreement) makeBroken(round int) {
	a.t.Helper()
	for n := range 10 {
		if n%3 == 0 {
			a.changeDefinitions()
		}
		a.ask("admin", `mutation { updateResourceType(input: {name: "Acme::Box", strict: false}) { __typename } }`, nil)
		a.ask("admin",
			`mutation($new: UUID!, $items: [KeyValueInput!]!, $project: String!) { createResource(input: {uuid: $new, type: "Acme::Box", name: "new", visibility: `+
				[]string{"PUBLIC", "PRIVATE"}[a.chance.IntN(2)]+
				`, projectId: $project, metadata: $items}) { __typename } }`, map[string]any{
				"new":     fmt.Sprintf("d%07x-0000-4000-8000-000000000000", a.chance.IntN(1<<28)),
				"items":   strictItems(a.chance),
				"project": []string{"demo", "demo", "operations", "vault", "elsewhere"}[a.chance.IntN(5)]})
	}
	a.ask("admin", fmt.Sprintf(`mutation { updateResourceType(input: {name: "Acme::Box", strict: %v}) { __typename } }`,
		round%2 == 0), nil)
}

// randomProblemFilter returns a filter that matches a problem or nothing, and
// the function that selects the same problems.
func randomProblemFilter(chance *rand.Rand, among []brokenRule) (filter string, keeps func(brokenRule) bool) {
	of := brokenRule{Key: "none", Rule: "PATTERN", Space: "Open", Type: strictType, Project: "vault"}
	if len(among) > 0 && chance.IntN(5) > 0 {
		of = among[chance.IntN(len(among))]
	}
	conditions := []struct {
		text  string
		field func(brokenRule) string
	}{
		{fmt.Sprintf("namespace: %q", of.Space), func(b brokenRule) string { return b.Space }},
		{fmt.Sprintf("key: %q", of.Key), func(b brokenRule) string { return b.Key }},
		{"rule: " + of.Rule, func(b brokenRule) string { return b.Rule }},
		{fmt.Sprintf("resources: {types: [%q], projectIds: [%q]}", of.Type, of.Project), func(b brokenRule) string {
			return b.Type + b.Project
		}},
	}
	var texts []string
	chosen := []int{}
	for i, condition := range conditions {
		if (i > 0 || of.Space != "") && chance.IntN(2) == 0 {
			chosen, texts = append(chosen, i), append(texts, condition.text)
		}
	}
	return strings.Join(texts, ", "), func(one brokenRule) bool {
		return !slices.ContainsFunc(chosen, func(i int) bool {
			return conditions[i].field(one) != conditions[i].field(of)
		})
	}
}

// TestScansSayHowFarTheyLooked checks that the counts of pages along scannedTo
// add up for any number of nodes, and that one answer has all problems of the
// arguments.
func TestScansSayHowFarTheyLooked(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		a := &agreement{t: t, executor: openStrict(t, url, true), chance: rand.New(rand.NewPCG(7, 7))}
		a.makeBroken(1)
		o := problemOracle{a, "admin"}
		want, resources := o.everything()
		problems, scanned, after := 0, 0, ""
		for complete := false; !complete; {
			page := o.page("first: 0, scan: 3" + after)
			if len(page.Nodes) > 0 || page.ResourceCount > 0 && !page.PageInfo.HasNextPage {
				t.Fatalf("a page of no nodes is %+v", page)
			}
			problems, scanned, complete = problems+page.ProblemCount, scanned+page.Scanned, page.Complete
			after = fmt.Sprintf(", after: %q", *page.ScannedTo)
		}
		if problems != len(want) || scanned != resources || problems == 0 {
			t.Errorf("%d problems of %d resources are counted, there are %d of %d",
				problems, scanned, len(want), resources)
		}
		if last := o.page("scan: 3" + after); last.Scanned != 0 || !last.Complete ||
			last.ScannedTo != nil || last.PageInfo.HasNextPage {
			t.Errorf("after the last resource there is %+v", last)
		}
		refuseWrongScans(t, a)
	})
}

// refuseWrongScans checks the fields of errors for invalid arguments.
func refuseWrongScans(t *testing.T, a *agreement) {
	t.Helper()
	for query, fields := range map[string][]string{
		`{ metadataProblems(first: -1, scan: 0, after: "x", filter: {key: "\u0000", namespace: "` +
			strings.Repeat("n", 81) + `", resources: {name: "\u0000"}}) { scanned } }`: {
			"after", "filter.key", "filter.namespace", "filter.resources.name", "first", "scan"},
		`{ metadataProblems(first: 1001, scan: 1001) { scanned } }`:                     {"first", "scan"},
		`{ metadataProblems { counts(by: [KEY, KEY], first: 1001) { problemCount } } }`: {"by[1]", "first"},
	} {
		var got []string
		for _, err := range a.ask("admin", query, nil).Errors {
			if got = append(got, err.Extensions.Field); err.Extensions.Code != "BAD_USER_INPUT" {
				t.Errorf("%s: %v", query, err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, fields) {
			t.Errorf("%s is refused for %q, want %q", query, got, fields)
		}
	}
}
