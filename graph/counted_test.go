package graph_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestABulkSaysHowManyRowsAreWrong sends 1,000 wrong rows that must all be
// written or none. The answer lists 20 errors and the number of all.
func TestABulkSaysHowManyRowsAreWrong(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		executor := executorOf(t, s)
		rows, items := make([]any, 1000), make([]any, 1000)
		for i := range rows {
			items[i] = map[string]any{"key": "", "value": "v"}
			rows[i] = map[string]any{"type": "physical:host",
				"name": fmt.Sprint("host ", i), "metadata": items[i : i+1]}
		}
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		for _, one := range []struct {
			field, input string
			of           map[string]any
			want         string
		}{
			{"createResources", "CreateResourcesInput", map[string]any{"items": rows},
				"the input has 1000 problems; the first 20 are listed"},
			{"setMetadata", "SetMetadataInput", map[string]any{"resource": storetest.UUID(1), "items": items},
				"problems; the first 20 are listed"},
		} {
			answer := answerText(t, executor.Execute(ctx, &graphql.RawParams{
				Query: fmt.Sprintf(`mutation($input: %s!) { %s(input: $input) { __typename } }`, one.input,
					one.field),
				Variables: map[string]any{"input": one.of},
			}))
			if !strings.Contains(answer, one.want) || strings.Count(answer, `"message"`) != 21 ||
				!regexp.MustCompile(`"problems":\d{3,}`).MatchString(answer) {
				t.Errorf("%s: %d errors: %.2000s", one.field, strings.Count(answer, `"message"`), answer)
			}
		}
	})
}

// TestAConditionPassesAlone explains a filter with and without types. The
// number of resources that pass a condition on a capability is the same.
func TestAConditionPassesAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		executor := executorOf(t, s)
		for i, kind := range []string{"physical:host", "OS::Cinder::Volume", "OS::Cinder::Volume"} {
			answer := askAs(t, executor, viewers["admin"], fmt.Sprintf(
				`mutation { createResource(input: {type: %q, name: "r%d", capabilities: [{key: "speed", value: "%d"}]}) { __typename } }`, kind, i, i+1))
			if strings.Contains(answer, "errors") {
				t.Fatal(answer)
			}
		}
		askAs(t, executor, viewers["admin"],
			`mutation { createResource(input: {type: "OS::Cinder::Volume", name: "odd", capabilities: [{key: "speed", value: "fast"}]}) { __typename } }`)
		for _, condition := range []string{
			`requirements: [{key: "speed", requirement: ">= 1"}]`, `where: {capability: {name: "speed", gte: "1"}}`,
			`where: {not: {capability: {name: "speed", exists: false}}}`,
			`matching: "[\">=\", \"$speed\", \"1\"]"`,
		} {
			passing := func(types string) []string {
				answer := askAs(t, executor, viewers["admin"],
					fmt.Sprintf(`{ explainResources(filter: {%s %s}) { clauses { kind passing notNumbers remaining } } }`, types, condition))
				return regexp.MustCompile(`"kind":"[^T][A-Z_]+","passing":\d+,"notNumbers":\d+`).
					FindAllString(answer, -1)
			}
			alone, typed := passing(""), passing(`types: ["physical:host"]`)
			if len(alone) != 1 || fmt.Sprint(alone) != fmt.Sprint(typed) {
				t.Errorf("%s: %q alone, %q with types", condition, alone, typed)
			}
		}
	})
}

// TestAListSaysWhichNamesExist filters lists by names, some of which do not
// exist.
func TestAListSaysWhichNamesExist(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		executor := executorOf(t, s)
		for list, names := range map[string][2]string{
			"traits":          {`"HW_CPU_X86_AVX2", "CUSTOM_NONE", "not a trait"`, `{"name":"HW_CPU_X86_AVX2"}`},
			"resourceClasses": {`"VCPU", "CUSTOM_NONE", "not a class"`, `{"name":"VCPU"}`},
			"resourceTypes":   {`"physical:host", "No::Such::Type"`, `{"name":"physical:host"}`},
		} {
			ask := func(filter string) string {
				return askAs(t, executor, viewers["reader"],
					fmt.Sprintf(`{ %s(filter: {names: [%s] %s}) { nodes { name } } }`, list, names[0], filter))
			}
			if answer, want := ask("ignoreUnknown: true"),
				fmt.Sprintf(`{"data":{%q:{"nodes":[%s]}}}`, list, names[1]); answer != want {
				t.Errorf("got %s, want %s", answer, want)
			}
			if answer := ask(""); !strings.Contains(answer, `"code":"BAD_USER_INPUT"`) {
				t.Errorf("unknown names are not refused: %s", answer)
			}
		}
	})
}
