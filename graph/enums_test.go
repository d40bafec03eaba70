package graph_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestEnumsHaveWhatThereIs compares the values of enums with the constants of
// the packages behind them.
func TestEnumsHaveWhatThereIs(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	var clauses []string
	for _, field := range schema.Types["ResourceFilter"].Fields {
		if field.Name != "unknownKeys" { // it sets how requirements are read
			clauses = append(clauses, access.EnumName(field.Name))
		}
	}
	var rules []string
	for _, rule := range metadef.RuleNames() {
		rules = append(rules, access.EnumName(rule))
	}
	var kinds []string
	for _, kind := range audit.Kinds() {
		kinds = append(kinds, string(kind))
	}
	if want := found(t, "../gqlgen.yml", `(?m)/audit\.Kind([A-Za-z]+)\}`); !slices.Equal(kinds, want) {
		t.Errorf("audit.Kinds is %q, want %q", kinds, want)
	}
	for enum, want := range map[string][]string{
		"ResourceClauseKind": clauses,
		"ViolationRule":      rules,
		"ConstraintKind":     found(t, "../placement/explain.go", `ConstraintKind = "([A-Z_]+)"`),
		"AuditKind":          found(t, "../gqlgen.yml", `(?m)^      ([A-Z_]+): \{value: .*/audit\.Kind`),
	} {
		var got []string
		for _, value := range schema.Types[enum].EnumValues {
			got = append(got, value.Name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", enum, got, want)
		}
	}
}

// found returns the matches of the first group of a pattern in a file.
func found(t *testing.T, file, pattern string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		all = append(all, match[1])
	}
	return all
}

// TestEnumsStandBesideTexts reads the explanations of a request, a filter and a
// value. Each explained thing has a kind, the path of its argument, and a
// message.
func TestEnumsStandBesideTexts(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		for query, want := range map[string]string{
			`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 9}], groups: [{suffix: "a", resources: [{resourceClass: "VCPU", amount: 1}], forbidden: ["HW_CPU_X86_AVX"]}]) { explain { steps { kind path constraint remaining } } } }`: `"steps":[` +
				`{"kind":"RESOURCE_CLASS","path":"resources","constraint":"resources VCPU","remaining":1},` +
				`{"kind":"RESOURCE_AMOUNT","path":"resources","constraint":"resources VCPU:9","remaining":0},` +
				`{"kind":"RESOURCE_CLASS","path":"groups[0].resources","constraint":"groups[0].resources VCPU","remaining":1},` +
				`{"kind":"RESOURCE_AMOUNT","path":"groups[0].resources","constraint":"groups[0].resources VCPU:1","remaining":1},` +
				`{"kind":"FORBIDDEN_TRAIT","path":"groups[0].forbidden","constraint":"groups[0].forbidden HW_CPU_X86_AVX","remaining":1},` +
				`{"kind":"ONE_ROOT","path":null,"constraint":"one tree for all groups","remaining":0}]`,
			`{ explainResources(filter: {name: "host", tags: [{name: "other"}, {name: "top"}], where: {metadata: {key: "size", exists: true}}, requirements: [{key: "arch", requirement: "x86"}]}) { clauses { kind path clause remaining } } }`: `"clauses":[` +
				`{"kind":"NAME","path":"filter.name","clause":"name","remaining":1},` +
				`{"kind":"TAGS","path":"filter.tags[0]","clause":"tags other","remaining":0},` +
				`{"kind":"TAGS","path":"filter.tags[1]","clause":"tags top","remaining":0},` +
				`{"kind":"WHERE","path":"filter.where","clause":"where[0]","remaining":0},` +
				`{"kind":"REQUIREMENTS","path":"filter.requirements[0]","clause":"requirements arch: x86","remaining":0}]`,
			`{ validateMetadata(resourceType: "physical:host", values: [{key: "size", value: "x"}]) { items { violations { rule } } } }`: `{"rule":"TYPE"}`,
		} {
			if answer := askAs(t, executor, viewers["admin"], query); !strings.Contains(answer, want) {
				t.Errorf("%s\ngot %s\nwant %s", query, answer, want)
			}
		}
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		executor.Execute(ctx,
			&graphql.RawParams{Query: `mutation { createTrait(input: {name: "CUSTOM_X"}) { trait { id } } }`})
		const want = `{"auditEvents":{"nodes":[{"action":"createTrait","operation":"CREATE_TRAIT","kind":"TRAIT","key":"CUSTOM_X"}]}}`
		if answer := askAs(t, executor, viewers["admin"],
			`{ auditEvents(filter: {kind: TRAIT}) { nodes { action operation kind key } } }`); !strings.Contains(answer,
			want) {
			t.Errorf("got %s, want %s", answer, want)
		}
	})
}
