package graph_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// strictType is a strict type. The namespaces of strictContent apply to it.
const strictType = "Acme::Box"

// strictContent returns definitions of every kind for a strict type: public
// ones, those owned by project demo, and those shared with it. If vault is set,
// it adds contradicting definitions of project vault.
func strictContent(vault bool) store.Content {
	content := store.Content{
		Definitions: []string{
			`{"namespace": "Open", "visibility": "public", "owner": "operations",
			  "properties": {
			    "cores": {"title": "Cores", "type": "integer", "minimum": 1, "maximum": 50000},
			    "ratio": {"title": "Ratio", "type": "number", "maximum": 9.5},
			    "fast": {"title": "Fast", "type": "boolean"},
			    "mode": {"title": "Mode", "type": "string", "enum": ["a", "b", "c d"], "operators": ["<or>"]},
			    "features": {"title": "Features", "type": "array", "items": {"type": "string", "enum": ["aes", "vme"]}, "maxItems": 2},
			    "both": {"title": "Both", "type": "string", "enum": ["x", "y"]}},
			  "objects": [{"name": "Disk", "required": ["disk_size", "disk_kind"], "properties": {
			    "disk_size": {"title": "Size", "type": "integer"}, "disk_kind": {"title": "Kind", "type": "string", "maxLength": 4},
			    "disk_note": {"title": "Note", "type": "string"}}}],
			  "resource_type_associations": [{"name": "Acme::Box"}, {"name": "Acme::Box", "prefix": "hw:", "properties_target": "image"}]}`,
			`{"namespace": "Team", "visibility": "private", "owner": "demo",
			  "properties": {"both": {"title": "Both", "type": "string", "enum": ["y", "z"]}, "team": {"title": "Team", "type": "string", "pattern": "^t"}},
			  "objects": [{"name": "Lease", "required": ["until"], "properties": {
			    "until": {"title": "Until", "type": "integer"}, "note": {"title": "Note", "type": "string", "minLength": 2}}}],
			  "resource_type_associations": [{"name": "Acme::Box", "prefix": "own:"}, {"name": "Acme::Box"}]}`,
		},
		Resources: []store.ResourceRecord{
			{UUID: boxOf("demo"), Type: strictType, Name: "box", ProjectID: "demo", Visibility: access.Private},
			{UUID: boxOf("operations"), Type: strictType, Name: "box",
				ProjectID: "operations", Visibility: access.Public},
			{UUID: boxOf("elsewhere"), Type: strictType, Name: "box",
				ProjectID: "elsewhere", Visibility: access.Private},
			{UUID: shownVaultBox, Type: strictType, Name: "box", ProjectID: "vault", Visibility: access.Public},
		},
	}
	if vault {
		content.Definitions = append(content.Definitions,
			`{"namespace": "Vault", "visibility": "private", "owner": "vault",
			  "properties": {"cores": {"title": "Cores", "type": "integer", "maximum": 41000}, "secret": {"title": "Secret", "type": "string", "enum": ["s"]},
			    "colour": {"title": "Colour", "type": "string"}},
			  "objects": [{"name": "Seal", "required": ["seal"], "properties": {"seal": {"title": "Seal", "type": "string"}, "fast": {"title": "Fast", "type": "boolean"}}}],
			  "resource_type_associations": [{"name": "Acme::Box"}, {"name": "Acme::Box", "prefix": "hw:"}]}`)
	}
	return content
}

// shownVaultBox is a public resource of the project with the private
// definitions.
const shownVaultBox = "b0000000-0000-4000-8000-000000000005"

func boxOf(project string) string {
	return map[string]string{
		"demo": "b0000000-0000-4000-8000-000000000001", "operations": "b0000000-0000-4000-8000-000000000002",
		"elsewhere": "b0000000-0000-4000-8000-000000000003", "vault": "b0000000-0000-4000-8000-000000000004",
	}[project]
}

// openStrict opens a store with strictContent.
func openStrict(t *testing.T, url string, vault bool) *graph.Executor {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{
		URL: url, Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
			return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		Resources: store.ResourceOptions{ProtectedMetadataKeys: []string{"team"}, Limits: &resource.Limits{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), strictContent(vault)); err != nil {
		t.Fatal(err)
	}
	executor := executorOf(t, s)
	for _, write := range []string{
		`updateResourceType(input: {name: "Acme::Box", strict: true}) { resourceType { strict } }`,
		`createNamespace(input: {name: "Lent", owner: "operations", properties: [{name: "lent", title: "Lent", type: INTEGER, maximum: 7}],
			resourceTypeAssociations: [{resourceType: "Acme::Box"}]}) { namespace { name } }`,
		`shareNamespace(input: {namespace: "Lent", projectId: "demo", role: READER}) { namespace { name } }`,
		`shareNamespace(input: {namespace: "Open", projectId: "demo", role: EDITOR}) { namespace { name } }`,
	} {
		if answer := askAs(t, executor, viewers["admin"],
			"mutation { "+write+" }"); strings.Contains(answer, `"errors"`) {
			t.Fatal(answer)
		}
	}
	return executor
}

// strictItems returns random items that may break definitions.
func strictItems(chance *rand.Rand) []any {
	pick := func(texts ...string) string { return texts[chance.IntN(len(texts))] }
	items := []any{}
	seen := map[string]bool{}
	for range chance.IntN(5) {
		key := pick("cores", "cores", "ratio", "fast", "mode", "features", "both", "both", "disk_size", "disk_kind",
			"disk_note", "hw:cores", "hw:disk_size",
			"team", "own:team", "until", "note", "own:until", "own:note", "lent",
			"secret", "seal", "colour", "hw:secret",
			"CORES", "capabilities:cores", "capabilities:until", "capabilities:features", "coers",
			"unknown", "", strings.Repeat("k", 256))
		if seen[key] {
			continue
		}
		seen[key] = true
		value := pick("1", "2", "40999", "41001", "50001", "a", "x", "y", "z", "true", "s", "c d", "<or> a <or> b",
			"<or> a,c d", "<in> aes", "aes,vme", `["aes", "mmx"]`,
			"1.5", "t1", "7", "8", "", strings.Repeat("v", 1024), "<all-in> aes vme", "longer than four")
		items = append(items, map[string]any{"key": key, "value": value})
	}
	return items
}

// TestStrictTypesTellNothingPrivate sends the same random writes to two
// servers. One server has definitions for the strict type, and later a
// resource, that are private to another project. Viewers who may not see them
// must get the same bytes with the same number of statements, along every path
// and in dry runs.
func TestStrictTypesTellNothingPrivate(t *testing.T) {
	t.Parallel()
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := &strictWorlds{t: t, plain: openStrict(t, url(t), false), vault: openStrict(t, url(t), true)}
			for _, executor := range []*graph.Executor{w.plain, w.vault} {
				w.must(executor, `mutation($one: UUID!, $other: UUID!) { setMetadataOnResources(input: {items: [
					{resource: $one, items: [{key: "disk_size", value: "7"}, {key: "disk_kind", value: "fast"}, {key: "cores", value: "40000"}]},
					{resource: $other, items: [{key: "both", value: "x"}, {key: "cores", value: "30000"}]}]}) { resources { uuid } } }`,
					map[string]any{"one": boxOf("demo"), "other": boxOf("operations")})
			}
			chance := rand.New(rand.NewPCG(5, 12))
			asking := []string{"member", "member", "reader", "foreign", "nobody", "service"}
			rounds := soak.Rounds(800)
			for round := range rounds {
				if round == rounds/2 { // from here on a resource differs, too, which services see
					asking = asking[:5]
					w.must(w.vault, `mutation($uuid: UUID) { createResource(input: {uuid: $uuid, type: "Acme::Box", name: "box", projectId: "vault", visibility: PRIVATE,
						metadata: [{key: "disk_size", value: "7"}, {key: "disk_kind", value: "fast"}, {key: "cores", value: "40000"}, {key: "both", value: "x"}]}) { resource { uuid } } }`,
						map[string]any{"uuid": boxOf("vault")})
				}
				query, variables := strictRequest(chance, round)
				viewer := asking[chance.IntN(len(asking))]
				if viewer == "service" && variables["project"] == "vault" {
					continue // a service that acts for a project gets the refusals of that project's definitions
				}
				w.compare(viewer, query, variables)
			}
			if w.differ < rounds/80 || w.accepted < rounds/8 || w.dry < rounds/80 {
				t.Errorf("%d requests are accepted, %d dry runs find problems and administrators see %d differences: the requests do not distinguish enough", w.accepted, w.dry, w.differ)
			}
		})
	}
}

// strictWorlds are two servers, one with additional private data. It counts
// accepted requests, dry runs with problems, and differences that
// administrators see.
type strictWorlds struct {
	t                     *testing.T
	plain, vault          *graph.Executor
	accepted, dry, differ int
}

// ask returns the answer to a request and the number of statements.
func (w *strictWorlds) ask(executor *graph.Executor, viewer, query string, variables map[string]any) (string, int) {
	w.t.Helper()
	ctx, statements := store.CountStatements(access.WithViewer(w.t.Context(), viewers[viewer]))
	return answerText(w.t, executor.Execute(ctx, &graphql.RawParams{Query: query, Variables: variables})), statements()
}

// must sends a request that must succeed.
func (w *strictWorlds) must(executor *graph.Executor, query string, variables map[string]any) {
	w.t.Helper()
	if answer, _ := w.ask(executor, "admin", query, variables); strings.Contains(answer, "errors") {
		w.t.Fatal(answer)
	}
}

// compare sends one request to both servers and compares the answers.
func (w *strictWorlds) compare(viewer, query string, variables map[string]any) {
	w.t.Helper()
	one, first := w.ask(w.plain, viewer, query, variables)
	other, second := w.ask(w.vault, viewer, query, variables)
	if one != other || first != second {
		w.t.Fatalf("%s asks %s %v\nwithout what is private, %d statements: %s\nwith it, %d: %s", viewer, query,
			variables, first, one, second, other)
	}
	if !strings.Contains(one, `"errors"`) {
		w.accepted++
	}
	if strings.Contains(query, "dryRun") && strings.Contains(one, `"rule"`) {
		w.dry++
	}
	if strings.Contains(query, "project:") {
		variables["project"] = "vault"
		one, _ = w.ask(w.plain, "admin", query, variables)
		if other, _ = w.ask(w.vault, "admin", query, variables); one != other {
			w.differ++
		}
	}
}

// reportFields are the fields of a report that are equal in two databases.
const reportFields = ` { valid accepted strict items { key isCustom suggestion operator values accepted definitions { name baseName namespace { name } } violations { rule message } } }`

// strictRequest returns a random request about a resource of the strict type.
func strictRequest(chance *rand.Rand, round int) (query string, variables map[string]any) {
	projects := []string{"demo", "operations", "elsewhere", "vault"}
	project := projects[chance.IntN(len(projects))]
	keys := []string{"cores", "disk_size", "disk_kind", "until", "fast", "seal"}
	variables = map[string]any{
		"uuid": boxOf(project), "items": strictItems(chance), "keys": []any{keys[chance.IntN(len(keys))]},
		"new": fmt.Sprintf("c0000000-0000-4000-8000-%012d", round), "project": project,
	}
	requests := []string{
		`mutation($uuid: UUID!, $items: [KeyValueInput!]!) { setMetadata(input: {resource: $uuid, items: $items}) { resource { metadata { key value } metadataReport` + reportFields + ` } } }`,
		`mutation($uuid: UUID!, $items: [KeyValueInput!]!) { setMetadataOnResources(input: {items: [{resource: $uuid, items: $items}]}) { resources { metadata { key value definitions { name } } } } }`,
		`mutation($uuid: UUID!, $items: [KeyValueInput!]!) { replaceMetadata(input: {resource: $uuid, items: $items}) { resource { revision } retained { key } } }`,
		`mutation($uuid: UUID!, $keys: [String!]!) { deleteMetadata(input: {resource: $uuid, keys: $keys}) { resource { metadata { key value } } } }`,
		`mutation($new: UUID!, $items: [KeyValueInput!]!) { createResource(input: {uuid: $new, type: "Acme::Box", name: "new", metadata: $items}) { resource { metadata { key value } } } }`,
		`mutation($new: UUID!, $items: [KeyValueInput!]!, $project: String) { createResource(input: {uuid: $new, type: "Acme::Box", name: "", projectId: $project, serviceMetadata: $items}) { resource { name } } }`,
		`query($uuid: UUID!, $items: [KeyValueInput!]!) { validateMetadata(resource: $uuid, values: $items)` +
			reportFields + ` }`,
		`query($items: [KeyValueInput!]!, $project: String) { validateMetadata(resourceType: "Acme::Box", project: $project, values: $items)` + reportFields + ` }`,
		`query($items: [KeyValueInput!]!) { validateMetadata(resourceType: "Acme::Box", values: $items)` +
			reportFields + ` }`,
		`query($uuid: UUID!) { resource(uuid: $uuid) { metadataReport` + reportFields +
			` } resources(filter: {types: ["Acme::Box"]}) { nodes { metadata { key definitions { name } } metadataReport` + reportFields + ` } } }`,
		`query { metadataProblems` + problemFields +
			` some: metadataProblems(filter: {namespace: "Vault"}) { scanned counts { key } } }`,
		`mutation { updateProperty(input: {namespace: "Open", name: "cores", maximum: ` +
			fmt.Sprint(chance.IntN(60000)) + `, dryRun: true}, problems: {scan: 2}) { problems` + problemFields +
			` } }`,
		`mutation { updateProperty(input: {namespace: "Open", name: "both", enum: ["z"], dryRun: true}) { problems` + problemFields + ` }
			updateObject(input: {namespace: "Open", name: "Disk", required: ["disk_note"], dryRun: true}) { problems` + problemFields + ` }
			updateNamespace(input: {name: "Open", newName: "Opened", dryRun: true}) { problems` + problemFields +
			` } }`,
		`mutation { importNamespaces(input: {documents: ["{\"namespace\": \"Open\", \"visibility\": \"public\", \"owner\": \"operations\", \"resource_type_associations\": [{\"name\": \"Acme::Box\"}]}"],
			mode: OVERWRITE, dryRun: true}) { reports { outcome errors } problems` + problemFields + ` } }`,
		`query($keys: [String!]!, $project: String) { metadataProblems(filter: {rule: HIDDEN, resources: {projectId: $project}}, scan: 2) { scanned scannedTo nodes { problems { key value message } } }
			metadataKeys(filter: {where: {metadata: {key: "cores", in: $keys}}}) { totalCount } }`,
	}
	query = requests[chance.IntN(len(requests))]
	for name := range variables {
		if !strings.Contains(query, "$"+name) {
			delete(variables, name)
		}
	}
	return query, variables
}

// report is an answer of validateMetadata or metadataReport.
type report struct {
	Valid, Accepted, Strict bool
	Items                   []struct {
		Key        string
		Accepted   bool
		Violations []struct{ Rule, Message string }
	}
}

// refusedItems returns the indexes of the refused items in the report, once for
// each violation that refuses the item.
func (r report) refusedItems() (refused []int) {
	for i, item := range r.Items {
		if item.Accepted {
			continue
		}
		for _, violation := range item.Violations {
			// On a type that is not strict, violations of definitions are only
			// advice.
			if r.Strict || slices.Contains([]string{"KEY", "VALUE", "USER_MODIFIABLE"}, violation.Rule) {
				refused = append(refused, i)
			}
		}
	}
	return refused
}

// broken returns the violations of the report with their keys.
func (r report) broken() map[string]bool {
	broken := map[string]bool{}
	for _, item := range r.Items {
		for _, violation := range item.Violations {
			broken[item.Key+" "+violation.Rule] = true
		}
	}
	return broken
}

// agreement validates writes and makes them.
type agreement struct {
	t        *testing.T
	executor *graph.Executor
	chance   *rand.Rand
}

type strictAnswer struct {
	Data   map[string]json.RawMessage
	Errors []struct {
		Message    string
		Extensions struct{ Code, Field string }
	}
}

func (a *agreement) ask(viewer, query string, variables map[string]any) (answer strictAnswer) {
	a.t.Helper()
	response := a.executor.Execute(access.WithViewer(a.t.Context(), viewers[viewer]),
		&graphql.RawParams{Query: query, Variables: variables})
	text := answerText(a.t, response)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || strings.Contains(text, `"INTERNAL"`) {
		a.t.Fatalf("%s %v: %v", query, variables, text)
	}
	return answer
}

// metadataReport returns the report on a resource's metadata.
func (a *agreement) metadataReport(uuid string) (of report) {
	answer := a.ask("admin", `query($uuid: UUID!) { resource(uuid: $uuid) { metadataReport`+reportFields+` } }`,
		map[string]any{"uuid": uuid})
	var shown struct{ MetadataReport report }
	if err := json.Unmarshal(answer.Data["resource"], &shown); err != nil {
		a.t.Fatal(err)
	}
	return shown.MetadataReport
}

// TestValidateMetadataAgreesWithTheWrite writes random metadata on a strict
// type while its definitions change. The write must refuse exactly the items
// that validateMetadata refuses, with the same number of reasons. An accepted
// write must not add violations. CADASTRE_SOAK_METADATA sets the number of
// writes on each database.
func TestValidateMetadataAgreesWithTheWrite(t *testing.T) {
	t.Parallel()
	writes := soak.Count(t, "CADASTRE_SOAK_METADATA", 500)
	storetest.EachURL(t, func(t *testing.T, url string) {
		a := &agreement{t: t, executor: openStrict(t, url, true), chance: rand.New(rand.NewPCG(soak.Seed(t), 3))}
		counts := map[string]int{}
		for n := range writes {
			if n%25 == 24 {
				a.changeDefinitions()
			}
			counts[a.write(n)]++
		}
		t.Logf("%d metadata: %v", writes, counts)
		for outcome, least := range map[string]int{"accepted": writes / 10,
			"BAD_USER_INPUT": writes / 10, "FORBIDDEN": writes / 250} {
			if counts[outcome] < least {
				t.Errorf("%d writes are %s only", counts[outcome], outcome)
			}
		}
	})
}

// changeDefinitions changes definitions, so that existing metadata may break
// them.
func (a *agreement) changeDefinitions() {
	number := []int{2, 41000, 50000}[a.chance.IntN(3)]
	writes := []string{
		fmt.Sprintf(`updateProperty(input: {namespace: "Open", name: "cores", maximum: %d}) { __typename }`, number),
		fmt.Sprintf(`updateProperty(input: {namespace: "Team", object: "Lease", name: "until", maximum: %d}) { __typename }`, number),
		`updateObject(input: {namespace: "Team", name: "Lease", required: []}) { __typename }`,
		`updateObject(input: {namespace: "Team", name: "Lease", required: ["until", "note"]}) { __typename }`,
		`shareNamespace(input: {namespace: "Lent", projectId: "demo", role: READER}) { namespace { name } }`,
		`shareNamespace(input: {namespace: "Open", projectId: "demo", role: EDITOR}) { namespace { name } }`,
		`unshareNamespace(input: {namespace: "Lent", projectId: "demo"}) { namespace { name } }`,
		fmt.Sprintf(`updateResourceType(input: {name: "Acme::Box", strict: %v}) { __typename }`, a.chance.IntN(3) > 0),
	}
	if answer := a.ask("admin", "mutation { "+writes[a.chance.IntN(len(writes))]+" }", nil); len(answer.Errors) > 0 &&
		answer.Errors[0].Extensions.Code != "NOT_FOUND" {
		a.t.Fatal(answer.Errors)
	}
}

// write validates and makes one random write, and returns its outcome.
func (a *agreement) write(n int) string {
	a.t.Helper()
	viewer := []string{"member", "member", "admin", "service"}[a.chance.IntN(4)]
	project := []string{"demo", "demo", "operations", "elsewhere"}[a.chance.IntN(4)]
	if viewer == "member" {
		project = "demo"
	}
	items := strictItems(a.chance)
	variables := map[string]any{"uuid": boxOf(project), "items": items, "project": project,
		"new": fmt.Sprintf("d0000000-0000-4000-8000-%012d", n)}
	before := a.metadataReport(boxOf(project))
	mutation, validation := a.randomWrite(variables, before)
	var expected report
	if validation != "" {
		answer := a.ask(viewer, validation, variables)
		if len(answer.Errors) > 0 {
			a.t.Fatalf("%s %v: %v", validation, variables, answer.Errors)
		}
		if err := json.Unmarshal(answer.Data["validateMetadata"], &expected); err != nil {
			a.t.Fatal(err)
		}
	}
	answer := a.ask(viewer, "mutation("+variablesOf(mutation)+") { "+mutation+" { __typename } }", variables)
	outcome := "accepted"
	if len(answer.Errors) > 0 {
		outcome = answer.Errors[0].Extensions.Code
		for _, err := range answer.Errors {
			if err.Extensions.Code == "FORBIDDEN" {
				outcome = "FORBIDDEN" // among other codes
			}
		}
	}
	if validation != "" {
		a.compare(fmt.Sprintf("%s by %s of %v", mutation, viewer, variables), expected, answer)
	}
	if after := a.metadataReport(boxOf(project)); after.Strict && outcome == "accepted" {
		for violation := range after.broken() {
			if !before.broken()[violation] {
				a.t.Fatalf("%s of %v breaks %s anew", mutation, variables, violation)
			}
		}
	}
	return outcome
}

// randomWrite returns a random mutation and the query that validates it. The
// query is empty if there is none.
func (a *agreement) randomWrite(variables map[string]any, before report) (mutation, validation string) {
	validation = `query($uuid: UUID!, $items: [KeyValueInput!]!) { validateMetadata(resource: $uuid, values: $items)` +
		reportFields + ` }`
	switch a.chance.IntN(10) {
	case 0, 1, 2:
		return `createResource(input: {uuid: $new, type: "Acme::Box", name: "new", projectId: $project, metadata: $items})`,
			`query($items: [KeyValueInput!]!, $project: String!) { validateMetadata(resourceType: "Acme::Box", project: $project, values: $items)` + reportFields + ` }`
	case 3:
		return `setMetadataOnResources(input: {items: [{resource: $uuid, items: $items}]})`, validation
	case 4:
		return `replaceMetadata(input: {resource: $uuid, items: $items})`, ""
	case 5:
		variables["keys"] = []any{"none"}
		if len(before.Items) > 0 {
			variables["keys"] = []any{before.Items[a.chance.IntN(len(before.Items))].Key}
		}
		return `deleteMetadata(input: {resource: $uuid, keys: $keys})`, ""
	}
	return `setMetadata(input: {resource: $uuid, items: $items})`, validation
}

// variablesOf returns the declarations of the variables of a mutation.
func variablesOf(mutation string) string {
	var declared []string
	for name, of := range map[string]string{"uuid": "UUID!", "items": "[KeyValueInput!]!", "project": "String!",
		"new": "UUID!", "keys": "[String!]!"} {
		if strings.Contains(mutation, "$"+name) {
			declared = append(declared, "$"+name+": "+of)
		}
	}
	return strings.Join(declared, ", ")
}

// compare compares the validation with the result of the write.
func (a *agreement) compare(what string, expected report, answer strictAnswer) {
	a.t.Helper()
	refused := expected.refusedItems()
	if expected.Accepted != (len(answer.Errors) == 0) || expected.Accepted != (len(refused) == 0) {
		a.t.Fatalf("%s: validated as accepted %v, refused %v: %v", what, expected.Accepted, refused, answer.Errors)
	}
	var told []int
	for _, err := range answer.Errors {
		var at int
		place := err.Extensions.Field[strings.LastIndex(err.Extensions.Field, "[")+1:]
		if _, scanErr := fmt.Sscanf(place, "%d]", &at); scanErr != nil {
			a.t.Fatalf("%s: %v", what, err)
		}
		told = append(told, at)
		if !slices.ContainsFunc(expected.Items[at].Violations, func(v struct{ Rule, Message string }) bool {
			code := "BAD_USER_INPUT"
			if v.Rule == "USER_MODIFIABLE" {
				code = "FORBIDDEN"
			}
			return strings.HasSuffix(err.Message, v.Message) && err.Extensions.Code == code
		}) {
			a.t.Fatalf("%s: item %d is told %q, validated as %v", what, at, err.Message, expected.Items[at].Violations)
		}
	}
	slices.Sort(told)
	if !slices.Equal(told, refused) {
		a.t.Fatalf("%s: validated as refused %v, the write refuses %v: %v", what, refused, told, answer.Errors)
	}
}
