package graph_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// contentOf returns all rows of all tables, as text.
func contentOf(t *testing.T, db *sql.DB, url string) map[string]string {
	t.Helper()
	names := `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`
	if strings.HasPrefix(url, "postgres") {
		names = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name`
	}
	content := map[string]string{}
	for _, name := range rowsOf(t, db, names) {
		rows := rowsOf(t, db, `SELECT * FROM "`+name+`"`)
		slices.Sort(rows)
		content[name] = strings.Join(rows, "\n")
	}
	if len(content) < 20 {
		t.Fatalf("there are %d tables only", len(content))
	}
	return content
}

// rowsOf returns the rows of a query, each as text.
func rowsOf(t *testing.T, db *sql.DB, query string) (texts []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		var cells []string
		for _, value := range values {
			cells = append(cells, value.(*sql.NullString).String)
		}
		texts = append(texts, strings.Join(cells, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return texts
}

// dryRunner makes changes of definitions, each after a dry run.
type dryRunner struct {
	problemOracle
	db  *sql.DB
	url string
}

// randomChange returns a mutation with a placeholder for the dry run, and its
// variables.
func (d dryRunner) randomChange() (mutation string, variables map[string]any) {
	number := []int{1, 2, 40000, 41000, 50000}[d.chance.IntN(5)]
	pick := func(texts ...string) string { return texts[d.chance.IntN(len(texts))] }
	document := func(namespace, visibility string) string {
		text, err := json.Marshal(map[string]any{"namespace": namespace,
			"visibility": visibility, "owner": "operations",
			"properties": map[string]any{"cores": map[string]any{"title": "Cores",
				"type": "integer", "maximum": number},
				"unknown": map[string]any{"title": "Unknown", "type": pick("integer", "boolean")},
				"both":    map[string]any{"title": "Both", "type": "string", "enum": []string{pick("x", "y")}}},
			"resource_type_associations": []any{map[string]any{"name": strictType, "prefix": pick("hw:", "new:")},
				map[string]any{"name": pick(strictType, "Acme::New")}}})
		if err != nil {
			d.t.Fatal(err)
		}
		return string(text)
	}
	changes := []string{
		fmt.Sprintf(`updateProperty(input: {namespace: "Open", name: "cores", maximum: %d DRY})`, number),
		fmt.Sprintf(`updateProperty(input: {namespace: "Open", name: "both", enum: ["%s"] DRY})`, pick("x", "y", "z")),
		fmt.Sprintf(`updateProperty(input: {namespace: "Open", name: "mode", newName: "%s" DRY})`,
			pick("mode", "modes")),
		fmt.Sprintf(`updateProperty(input: {namespace: "Team", object: "Lease", name: "until", maximum: %d DRY})`,
			number),
		fmt.Sprintf(`updateObject(input: {namespace: "Open", name: "Disk", required: [%s] DRY})`,
			pick("", `"disk_note"`, `"disk_size", "disk_kind"`)),
		fmt.Sprintf(`updateNamespace(input: {name: "%s", visibility: %s DRY})`,
			pick("Open", "Team", "Vault", "Lent"), pick("PUBLIC", "PRIVATE")),
		fmt.Sprintf(`updateNamespace(input: {name: "Team", owner: "%s" DRY})`, pick("demo", "vault", "elsewhere")),
		`updateNamespace(input: {name: "Lent", newName: "Given" DRY})`,
		`updateNamespace(input: {name: "Given", newName: "Lent" DRY})`,
		fmt.Sprintf(`updateResourceType(input: {name: "Acme::Box", strict: %v DRY})`, d.chance.IntN(2) == 0),
		`importNamespaces(input: {documents: $documents, mode: ` +
			pick("SKIP", "MERGE", "PREFER_NEW", "OVERWRITE") + ` DRY})`,
	}
	mutation = changes[d.chance.IntN(len(changes))]
	if strings.Contains(mutation, "$documents") {
		variables = map[string]any{"documents": []any{document(pick("Open", "Lent",
			fmt.Sprint("Brought ", d.chance.IntN(3))), pick("public", "private")),
			document(fmt.Sprint("Brought ", d.chance.IntN(3)), "public")}}
	}
	return mutation, variables
}

// run sends a mutation and returns its answer.
func (d dryRunner) run(mutation string, variables map[string]any) (answer struct {
	Problems *problemsPage
	Reports  json.RawMessage
}, errors string) {
	d.t.Helper()
	declared, field := "", mutation[:strings.Index(mutation, "(")]
	if variables != nil {
		declared = "($documents: [String!]!)"
	}
	selected := "problems" + problemFields + " " + map[string]string{
		"importNamespaces":   "reports { namespace outcome warnings errors differences }",
		"updateNamespace":    "namespace { id }",
		"updateProperty":     "propertyDefinition { id } namespace { id }",
		"updateObject":       "objectDefinition { id } namespace { id }",
		"updateResourceType": "resourceType { id }"}[field]
	response := d.executor.Execute(access.WithViewer(d.t.Context(), viewers[d.viewer]),
		&graphql.RawParams{Query: "mutation" + declared + " { it: " + mutation + " { " + selected + " } }",
			Variables: variables})
	if len(response.Errors) > 0 {
		text, err := json.Marshal(response.Errors)
		if err != nil || strings.Contains(string(text), "INTERNAL") {
			d.t.Fatalf("%s as %s: %s", mutation, d.viewer, text)
		}
		return answer, string(text)
	}
	var data map[string]*struct {
		Problems *problemsPage
		Reports  json.RawMessage
	}
	if err := json.Unmarshal(response.Data, &data); err != nil {
		d.t.Fatal(err)
	}
	d.checkIdentified(mutation, string(response.Data))
	return *data["it"], ""
}

// checkIdentified checks that a dry run shows no object under an id, because
// the object is not stored that way, and that a change shows the changed
// object.
func (d dryRunner) checkIdentified(mutation, answer string) {
	d.t.Helper()
	isDry := strings.Contains(mutation, "dryRun")
	for _, field := range []string{"namespace", "propertyDefinition", "objectDefinition", "resourceType"} {
		if strings.Contains(answer, `"`+field+`":{`) && isDry ||
			strings.Contains(answer, `"`+field+`":null`) && !isDry {
			d.t.Fatalf("%s shows %s", mutation, answer)
		}
	}
	if isDry && strings.Contains(answer, `"definition":{`) {
		d.t.Fatalf("%s shows a definition: %s", mutation, answer)
	}
}

// tryAll makes a dry run page by page, and returns all problems that the change
// would cause.
func (d dryRunner) tryAll(mutation string, variables map[string]any) (broken []brokenRule, reports, errors string) {
	d.t.Helper()
	dry := strings.Replace(mutation, "DRY", ", dryRun: true", 1)
	first, scan, after := 1+d.chance.IntN(40), 1+d.chance.IntN(60), ""
	for range 1000 {
		here := strings.TrimSuffix(dry, ")") + fmt.Sprintf(", problems: {first: %d, scan: %d%s})", first, scan, after)
		answer, errors := d.run(here, variables)
		if errors != "" {
			return nil, "", errors
		}
		of := answer.Problems.broken(d.t)
		d.checkCounts(*answer.Problems, of)
		if broken = append(broken, of...); !answer.Problems.PageInfo.HasNextPage {
			return broken, string(answer.Reports), ""
		}
		after = fmt.Sprintf(", after: %q", *answer.Problems.PageInfo.EndCursor)
	}
	d.t.Fatal("the dry run has no end")
	return nil, "", ""
}

// TestADryRunSaysWhatTheChangeBreaks makes random changes of definitions, first
// as a dry run and then for real, as viewers with and without permission. The
// dry run must leave every table unchanged, be refused for the same reason as
// the change, and list exactly the new problems that metadataProblems lists
// afterwards.
func TestADryRunSaysWhatTheChangeBreaks(t *testing.T) {
	t.Parallel()
	rounds := soak.Count(t, "CADASTRE_SOAK_METADATA", 45)
	storetest.EachURL(t, func(t *testing.T, url string) {
		a := &agreement{t: t, executor: openStrict(t, url, true), chance: rand.New(rand.NewPCG(soak.Seed(t), 20))}
		d := dryRunner{problemOracle: problemOracle{agreement: a}, db: storetest.Database(t, url), url: url}
		for round := range 3 {
			a.makeBroken(round)
		}
		counts := map[string]int{}
		for round := range rounds {
			if round%15 == 14 {
				a.makeBroken(round)
			}
			if a.chance.IntN(2) == 0 {
				a.ask("admin", `mutation { a: updateProperty(input: {namespace: "Open", name: "cores", maximum: 60000}) { __typename } b: updateProperty(input: {namespace: "Open", name: "both", enum: null}) { __typename }
					c: updateObject(input: {namespace: "Open", name: "Disk", required: []}) { __typename } d: updateResourceType(input: {name: "Acme::Box", strict: false}) { __typename } }`, nil)
			}
			d.viewer = []string{"admin", "admin", "admin", "admin", "member", "service"}[a.chance.IntN(6)]
			counts[d.round()]++
		}
		t.Logf("%v", counts)
		for outcome, least := range map[string]int{"breaks": rounds / 10,
			"breaks nothing": rounds / 10, "refused": rounds / 10} {
			if counts[outcome] < least {
				t.Errorf("%d changes are %q only: %v", counts[outcome], outcome, counts)
			}
		}
	})
}

// round makes one change and returns its outcome.
func (d dryRunner) round() string {
	d.t.Helper()
	mutation, variables := d.randomChange()
	before, _ := d.walk("", 1000, 1000)
	stored := contentOf(d.t, d.db, d.url)
	would, wouldReport, wouldRefuse := d.tryAll(mutation, variables)
	for name, rows := range contentOf(d.t, d.db, d.url) {
		if rows != stored[name] {
			d.t.Fatalf("the dry run of %s as %s changes the table %s from\n%s\nto\n%s",
				mutation, d.viewer, name, stored[name], rows)
		}
	}
	done, refused := d.run(strings.Replace(mutation, " DRY", "", 1), variables)
	if refused != wouldRefuse || string(done.Reports) != wouldReport || done.Problems != nil {
		d.t.Fatalf("the dry run of %s as %s says %s %s, the change %s %s", mutation, d.viewer,
			wouldRefuse, wouldReport, refused, done.Reports)
	}
	if refused != "" {
		return "refused"
	}
	there := map[[3]string]bool{}
	for _, one := range before {
		there[[3]string{one.Resource, one.Key, one.Rule}] = true
	}
	after, _ := d.walk("", 1000, 1000)
	anew := slices.DeleteFunc(after, func(one brokenRule) bool {
		return there[[3]string{one.Resource, one.Key, one.Rule}]
	})
	if !slices.Equal(would, anew) {
		d.t.Fatalf("the dry run of %s %v as %s says that there would be\n%+v\nthe change makes\n%+v",
			mutation, variables, d.viewer, would, anew)
	}
	if len(anew) > 0 {
		return "breaks"
	}
	return "breaks nothing"
}
