package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestEveryFieldCanBeGrantedToOthers overrides the permission of each field of
// Query and Mutation, so that only services may use it. Administrators must
// then be refused.
func TestEveryFieldCanBeGrantedToOthers(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, storetest.Open(t, url))
		schema := executor.Schema()
		for _, field := range slices.Concat(schema.Query.Fields, schema.Mutation.Fields) {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			policy := newPolicy(t, map[string][]string{field.Name: {access.RoleService}})
			permission, _ := access.PermissionOf(field.Name)
			for name, may := range map[string]bool{"admin": false, "service": true} {
				viewer := viewers[name].WithPolicy(policy)
				answer := askAs(t, executor, viewer, sample(schema, field))
				if forbidden := strings.Contains(answer, `"FORBIDDEN"`); !permission.AfterVisibility &&
					forbidden == may {
					t.Errorf("%s as %s: %s", field.Name, name, answer)
				}
				if asking, err := viewer.Authorize(field.Name); asking.May(permission.Rule) != may {
					t.Errorf("%s as %s: may %v, %v", field.Name, name, !may, err)
				}
			}
		}
	})
}

// TestOverridesHoldForRows grants other roles the permissions that are checked
// after a row is found: to write definitions, and to read private data.
func TestOverridesHoldForRows(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		for _, of := range []struct{ rule, query, has string }{
			{"definitions.write",
				`mutation { updateNamespace(input: {name: "Open", description: "by a reader"}) { namespace { description } } }`, "by a reader"},
			{"updateNamespace",
				`mutation { updateNamespace(input: {name: "Open", description: "by field"}) { namespace { description } } }`, "by field"},
			{"definitions.write", `mutation { createNamespace(input: {name: "Reader"}) { namespace { owner } } }`,
				"demo"},
			{"resourceTypes.write",
				`mutation { updateResourceType(input: {name: "physical:host", strict: true}) { resourceType { strict } } }`, "true"},
			{"capabilities.private",
				`{ resourceType(name: "physical:host") { capability(name: "marker_capability") { private } } }`,
				"true"},
			{"audit.read", `{ auditEvents(filter: {key: "Open"}) { nodes { key } } }`, "Open"},
			{"placement.write", `mutation { createTrait(input: {name: "CUSTOM_READER"}) { trait { name } } }`,
				"CUSTOM_READER"},
		} {
			if answer := askAs(t, executor, viewers["reader"], of.query); !strings.Contains(answer, `"FORBIDDEN"`) {
				t.Errorf("%s without a policy: %s", of.rule, answer)
			}
			policy := newPolicy(t, map[string][]string{of.rule: {access.RoleReader}})
			if answer := askAs(t, executor, viewers["reader"].WithPolicy(policy), of.query); strings.Contains(answer,
				`"code":`) || !strings.Contains(answer, of.has) {
				t.Errorf("%s granted to readers: %s", of.rule, answer)
			}
			if answer := askAs(t, executor, viewers["admin"].WithPolicy(policy),
				of.query); !strings.Contains(answer, `"FORBIDDEN"`) {
				t.Errorf("%s taken from administrators: %s", of.rule, answer)
			}
		}
	})
}

// TestOverridesHoldBelowARow reads definitions and a provider below a resource,
// as readers without permission for them.
func TestOverridesHoldBelowARow(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		closed := newPolicy(t, map[string][]string{"definitions.read": {access.RoleAdmin}})
		query := `{ resource(uuid: "` + publicHost +
			`") { name type { namespaces { totalCount nodes { name } } } metadata { definitions { name } } } }`
		for viewer, count := range map[string]string{"reader": `"totalCount":0,"nodes":[]`, "admin": `"totalCount":2`} {
			answer := askAs(t, executor, viewers[viewer].WithPolicy(closed), query)
			if !strings.Contains(answer, count) || !strings.Contains(answer, `"name":"host"`) {
				t.Errorf("definitions below a resource as %s, closed to all but administrators: %s", viewer, answer)
			}
		}
		closed = newPolicy(t, map[string][]string{"placement.read": {access.RoleAdmin}})
		query = `{ resource(uuid: "` + publicHost + `") { name provider { name } } node(id: "` +
			page.GlobalID(page.KindResourceProvider, provider, "") + `") { id ... on ResourceProvider { name } } }`
		for viewer, seen := range map[string]bool{"reader": false, "admin": true} {
			answer := askAs(t, executor, viewers[viewer].WithPolicy(closed), query)
			if strings.Contains(answer, `"name":"root"`) != seen || !strings.Contains(answer, `"name":"host"`) {
				t.Errorf("a provider below a resource as %s, closed to all but administrators: %s", viewer, answer)
			}
		}
	})
}

// TestOverridesHoldForOtherProjects writes a resource of another project.
func TestOverridesHoldForOtherProjects(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		write := `mutation { setMetadata(input: {resource: "` + publicHost +
			`", items: [{key: "size", value: "4711"}]}) { resource { metadata { value } } } }`
		for _, of := range []struct {
			rules map[string][]string
			code  string
		}{
			{nil, "FORBIDDEN"},
			{map[string][]string{"resources.writeAny": {access.RoleMember}}, ""},
			{map[string][]string{"resources.writeAny": {access.RoleMember}, "setMetadata": {access.RoleAdmin}},
				"FORBIDDEN"},
			{map[string][]string{"setMetadata": {access.RoleMember}}, "FORBIDDEN"},
		} {
			answer := askAs(t, executor, viewers["member"].WithPolicy(newPolicy(t, of.rules)), write)
			if of.code == "" && !strings.Contains(answer, "4711") || !strings.Contains(answer, of.code) {
				t.Errorf("another project's resource under %v: %s", of.rules, answer)
			}
		}
	})
}

func newPolicy(t *testing.T, rules map[string][]string) *access.Policy {
	t.Helper()
	policy, err := access.NewPolicy(rules)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// askAs returns the answer to a query as JSON.
func askAs(t *testing.T, executor *graph.Executor, viewer access.Viewer, query string) string {
	t.Helper()
	return answerText(t, executor.Execute(access.WithViewer(t.Context(), viewer), &graphql.RawParams{Query: query}))
}
