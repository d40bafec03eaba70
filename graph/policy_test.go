package graph_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestEveryFieldCanBeGivenToOthers overrides each field of Query and Mutation, so
// that services alone may use it: administrators may no more.
func TestEveryFieldCanBeGivenToOthers(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := graph.NewExecutor(&graph.Resolver{Store: storetest.Open(t, url)}, slog.New(slog.NewTextHandler(testWriter{t}, nil)))
		schema := executor.Schema()
		for _, field := range slices.Concat(schema.Query.Fields, schema.Mutation.Fields) {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			policy, err := access.NewPolicy(map[string][]string{field.Name: {access.RoleService}})
			if err != nil {
				t.Fatal(err)
			}
			permission, _ := access.PermissionOf(field.Name)
			for name, may := range map[string]bool{"admin": false, "service": true} {
				viewer := viewers[name].Under(policy)
				ctx := access.WithViewer(t.Context(), viewer)
				answer := answerText(t, executor.Execute(ctx, &graphql.RawParams{Query: sample(schema, field)}))
				if forbidden := strings.Contains(answer, `"FORBIDDEN"`); !permission.AfterVisibility && forbidden == may {
					t.Errorf("%s as %s: %s", field.Name, name, answer)
				}
				if asking, err := viewer.Asking(field.Name); asking.May(permission.Rule) != may {
					t.Errorf("%s as %s: may %v, %v", field.Name, name, !may, err)
				}
			}
		}
	})
}

// TestOverridesHoldForRows gives other roles what the table asks for once a thing
// is found: to write definitions and the resources of other projects, and to read
// what is private in them.
func TestOverridesHoldForRows(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openWalked(t, url)
		executor := graph.NewExecutor(&graph.Resolver{Store: s}, slog.New(slog.NewTextHandler(testWriter{t}, nil)))
		for _, of := range []struct{ rule, query, has string }{
			{"definitions.write", `mutation { updateNamespace(input: {name: "Open", description: "by a reader"}) { namespace { description } } }`, "by a reader"},
			{"updateNamespace", `mutation { updateNamespace(input: {name: "Open", description: "by field"}) { namespace { description } } }`, "by field"},
			{"definitions.write", `mutation { createNamespace(input: {name: "Reader"}) { namespace { owner } } }`, "demo"},
			{"resourceTypes.write", `mutation { updateResourceType(input: {name: "physical:host", strict: true}) { resourceType { strict } } }`, "true"},
			{"capabilities.private", `{ resourceType(name: "physical:host") { capability(name: "marker_capability") { private } } }`, "true"},
			{"audit.read", `{ auditEvents(filter: {key: "Open"}) { nodes { key } } }`, "Open"},
			{"placement.write", `mutation { createTrait(input: {name: "CUSTOM_READER"}) { trait { name } } }`, "CUSTOM_READER"},
		} {
			ask := func(viewer access.Viewer) string {
				return answerText(t, executor.Execute(access.WithViewer(t.Context(), viewer), &graphql.RawParams{Query: of.query}))
			}
			if answer := ask(viewers["reader"]); !strings.Contains(answer, `"FORBIDDEN"`) {
				t.Errorf("%s without a policy: %s", of.rule, answer)
			}
			policy, err := access.NewPolicy(map[string][]string{of.rule: {access.RoleReader}})
			if err != nil {
				t.Fatal(err)
			}
			if answer := ask(viewers["reader"].Under(policy)); strings.Contains(answer, `"code":`) || !strings.Contains(answer, of.has) {
				t.Errorf("%s given to readers: %s", of.rule, answer)
			}
			if answer := ask(viewers["admin"].Under(policy)); !strings.Contains(answer, `"FORBIDDEN"`) {
				t.Errorf("%s taken from administrators: %s", of.rule, answer)
			}
		}
		closed, err := access.NewPolicy(map[string][]string{"definitions.read": {access.RoleAdmin}})
		if err != nil {
			t.Fatal(err)
		}
		nested := `{ resource(uuid: "` + publicHost + `") { name type { namespaces { totalCount nodes { name } } } metadata { definitions { name } } } }`
		for viewer, count := range map[string]string{"reader": `"totalCount":0,"nodes":[]`, "admin": `"totalCount":2`} {
			answer := answerText(t, executor.Execute(access.WithViewer(t.Context(), viewers[viewer].Under(closed)), &graphql.RawParams{Query: nested}))
			if !strings.Contains(answer, count) || !strings.Contains(answer, `"name":"host"`) {
				t.Errorf("definitions below a resource as %s, closed to all but administrators: %s", viewer, answer)
			}
		}
		closed, err = access.NewPolicy(map[string][]string{"placement.read": {access.RoleAdmin}})
		if err != nil {
			t.Fatal(err)
		}
		nested = `{ resource(uuid: "` + publicHost + `") { name provider { name } } node(id: "` +
			page.NodeID{Kind: page.KindResourceProvider, Key: provider}.String() + `") { id ... on ResourceProvider { name } } }`
		for viewer, seen := range map[string]bool{"reader": false, "admin": true} {
			answer := answerText(t, executor.Execute(access.WithViewer(t.Context(), viewers[viewer].Under(closed)), &graphql.RawParams{Query: nested}))
			if strings.Contains(answer, `"name":"root"`) != seen || !strings.Contains(answer, `"name":"host"`) {
				t.Errorf("a provider below a resource as %s, closed to all but administrators: %s", viewer, answer)
			}
		}
		write := `mutation { setMetadata(input: {resource: "` + publicHost + `", items: [{key: "size", value: "4711"}]}) { resource { metadata { value } } } }`
		for _, of := range []struct {
			rules map[string][]string
			code  string
		}{
			{nil, "FORBIDDEN"},
			{map[string][]string{"resources.writeAny": {access.RoleMember}}, ""},
			{map[string][]string{"resources.writeAny": {access.RoleMember}, "setMetadata": {access.RoleAdmin}}, "FORBIDDEN"},
			{map[string][]string{"setMetadata": {access.RoleMember}}, "FORBIDDEN"},
		} {
			policy, err := access.NewPolicy(of.rules)
			if err != nil {
				t.Fatal(err)
			}
			answer := answerText(t, executor.Execute(access.WithViewer(t.Context(), viewers["member"].Under(policy)), &graphql.RawParams{Query: write}))
			if of.code == "" && !strings.Contains(answer, "4711") || !strings.Contains(answer, of.code) {
				t.Errorf("another project's resource under %v: %s", of.rules, answer)
			}
		}
	})
}
