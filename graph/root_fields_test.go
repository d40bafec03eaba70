package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestRootFieldsAreNullable compares the fields of Query and Mutation with
// testdata/root_fields.txt. There the type of a field ends in `!` if the field
// is null only after an error. In the schema such a field is nullable and
// marked @semanticNonNull, and no other field is marked.
func TestRootFieldsAreNullable(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	var got []string
	for _, of := range []*ast.Definition{schema.Query, schema.Mutation} {
		for _, field := range of.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			name := of.Name + "." + field.Name
			if field.Type.NonNull {
				t.Errorf("%s cannot fail alone: its type is %s", name, field.Type)
			}
			row := name + ": " + field.Type.String()
			if field.Directives.ForName("semanticNonNull") != nil {
				row += "!"
			}
			got = append(got, row)
		}
	}
	slices.Sort(got)
	golden, err := os.ReadFile("testdata/root_fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Split(strings.TrimSpace(string(golden)), "\n"); !slices.Equal(got, want) {
		t.Errorf("testdata/root_fields.txt differs: the schema has\n%s", strings.Join(got, "\n"))
	}
}

// TestIntrospectionShowsSemanticNonNull checks that introspection returns the
// directive as the schema defines it.
func TestIntrospectionShowsSemanticNonNull(t *testing.T) {
	t.Parallel()
	executor := executorOf(t, storetest.Open(t, storetest.SQLite(t)))
	response := executor.Execute(t.Context(),
		&graphql.RawParams{Query: `{ __schema { directives { name locations args { name defaultValue } } } }`})
	const want = `{"name":"semanticNonNull","locations":["FIELD_DEFINITION"],"args":[{"name":"levels","defaultValue":"[0]"}]}`
	if answer := answerText(t, response); !strings.Contains(answer, want) {
		t.Errorf("%s is not in %s", want, answer)
	}
}

// TestRootFieldsFailAlone checks that a field of Query or Mutation that fails
// is null with its own error, and that the other fields have their values.
func TestRootFieldsFailAlone(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		for _, of := range []struct{ name, viewer, query, data, errors string }{
			{"a mutation beside one that is refused", "admin",
				`mutation { a: createTrait(input: {name: "CUSTOM_A"}) { trait { name } } b: createTrait(input: {name: "bad"}) { trait { name } } c: createTrait(input: {name: "CUSTOM_C"}) { trait { name } } }`,
				`{"a":{"trait":{"name":"CUSTOM_A"}},"b":null,"c":{"trait":{"name":"CUSTOM_C"}}}`, "b BAD_USER_INPUT"},
			{"a mutation under two names", "admin",
				`mutation { a: deleteTrait(input: {name: "CUSTOM_A"}) { trait { name } } b: deleteTrait(input: {name: "CUSTOM_A"}) { trait { name } } c: createTrait(input: {name: "CUSTOM_A"}) { trait { name } } }`,
				`{"a":{"trait":{"name":"CUSTOM_A"}},"b":null,"c":{"trait":{"name":"CUSTOM_A"}}}`, "b NOT_FOUND"},
			{"what a refused mutation left", "admin",
				`{ traits(filter: {startsWith: "CUSTOM_"}) { nodes { name } } }`,
				`{"traits":{"nodes":[{"name":"CUSTOM_A"},{"name":"CUSTOM_C"}]}}`, ""},
			{"a query beside one that is forbidden", "reader",
				`{ viewer { userId } auditEvents { totalCount } namespace(name: "Open") { name } usages(projectId: "nothing") { consumerCount } }`,
				`{"viewer":{"userId":"rae"},"auditEvents":null,"namespace":{"name":"Open"},"usages":[]}`,
				"auditEvents FORBIDDEN"},
			{"an error under two names", "reader",
				`{ a: auditEvents { totalCount } b: auditEvents { totalCount } c: node(id: "") { id } d: node(id: "") { id } }`,
				`{"a":null,"b":null,"c":null,"d":null}`,
				"a FORBIDDEN, b FORBIDDEN, c BAD_USER_INPUT, d BAD_USER_INPUT"},
			{"look-ups that find nothing", "reader",
				`{ namespace(name: "absent") { name } definitions(resourceType: "OS::Manila::Share") { namespace { name } } nodes(ids: []) { id } exportNamespaces(names: []) }`,
				`{"namespace":null,"definitions":[],"nodes":[],"exportNamespaces":[]}`, ""},
		} {
			ctx := access.WithViewer(t.Context(), viewers[of.viewer])
			response := executor.Execute(ctx, &graphql.RawParams{Query: of.query})
			if data, errs := string(response.Data), strings.Join(errorsOf(response), ", "); data != of.data ||
				errs != of.errors {
				t.Errorf("%s: got %s with the errors %q, want %s with %q", of.name, data, errs, of.data, of.errors)
			}
		}
	})
}

// errorsOf returns the path and code of each error.
func errorsOf(response *graphql.Response) []string {
	var out []string
	for _, err := range response.Errors {
		out = append(out, fmt.Sprintf("%s %s", err.Path, err.Extensions["code"]))
	}
	return out
}

// TestEveryRootFieldThatFailedHasAnError checks that the limit of errors in one
// answer leaves each failed root field at least one error.
func TestEveryRootFieldThatFailedHasAnError(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, storetest.Open(t, url))
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		var many strings.Builder
		for i := range 60 {
			fmt.Fprintf(&many, `m%02d: createTrait(input: {name: "bad %d"}) { trait { name } } `, i, i)
		}
		response := executor.Execute(ctx, &graphql.RawParams{Query: "mutation { " + many.String() + "}"})
		if errs := errorsOf(response); len(errs) != 60 || len(slices.Compact(errs)) != 60 {
			t.Errorf("60 fields failed: %q", errs)
		}
		// One field with 30 errors and two fields with one each: 20 errors, one
		// with the number of the others, and one for each of the two.
		bad := strings.Repeat(`"bad" `, 30)
		response = executor.Execute(ctx,
			&graphql.RawParams{Query: `{ a: nodes(ids: [` + bad +
				`]) { id } b: node(id: "bad") { id } c: node(id: "bad") { id } }`})
		if errs := errorsOf(response); len(errs) != 23 || errs[20] != "a BAD_USER_INPUT" ||
			errs[21] != "b BAD_USER_INPUT" || errs[22] != "c BAD_USER_INPUT" {
			t.Errorf("30 errors, 1 and 1: %q", errs)
		}
	})
}

// endsAfter is the log of a server that ends a context when it logs the
// count-th change.
type endsAfter struct {
	count int
	end   context.CancelFunc
}

func (e *endsAfter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("msg=changed")) {
		if e.count--; e.count == 0 {
			e.end()
		}
	}
	return len(line), nil
}

// TestMutationsThatMeetTheirDeadline ends the context of sixty mutations after
// 24 are committed. These must show their data. No other mutation may begin,
// and each of the others must have an error.
func TestMutationsThatMeetTheirDeadline(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx, cancel := context.WithCancel(access.WithViewer(t.Context(), viewers["admin"]))
		defer cancel()
		s, err := store.Open(t.Context(),
			store.Options{URL: url, Log: slog.New(slog.NewTextHandler(&endsAfter{24, cancel}, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		executor := executorOf(t, s)
		var query strings.Builder
		for i := range 60 {
			name := fmt.Sprintf("CUSTOM_%02d", i)
			if i >= 24 && i%2 == 0 {
				name = "bad" // BAD_USER_INPUT if it began
			}
			fmt.Fprintf(&query, `m%02d: createTrait(input: {name: %q}) { trait { name } } `, i, name)
		}
		response := executor.Execute(ctx, &graphql.RawParams{Query: "mutation { " + query.String() + "}"})
		showsCommitted(t, response)
		after := askAs(t, executor, viewers["admin"], `{ traits(filter: {startsWith: "CUSTOM_"}) { totalCount } }`)
		if !strings.Contains(after, `"totalCount":24`) {
			t.Errorf("afterwards there are not 24 traits: %s", after)
		}
	})
}

// showsCommitted checks that the first 24 of sixty mutations show their data,
// and that each of the others has an error.
func showsCommitted(t *testing.T, response *graphql.Response) {
	t.Helper()
	var data map[string]*struct{ Trait struct{ Name string } }
	if err := json.Unmarshal(response.Data, &data); err != nil || len(data) != 60 {
		t.Fatalf("%v in %s", err, response.Data)
	}
	for i := range 60 {
		key := fmt.Sprintf("m%02d", i)
		if shown := data[key]; i < 24 && (shown == nil || shown.Trait.Name != fmt.Sprintf("CUSTOM_%02d", i)) ||
			i >= 24 && shown != nil {
			t.Errorf("%s shows %v", key, shown)
		}
		if i >= 24 && (len(response.Errors) != 36 || errorsOf(response)[i-24] != key+" TIMEOUT") {
			t.Fatalf("%s does not have its error: %q", key, errorsOf(response))
		}
	}
}

// TestAMarkedFieldIsNotNullWithoutAnError makes fields of Query return null. If
// a field is marked and nothing failed in it, the answer must have an internal
// error.
func TestAMarkedFieldIsNotNullWithoutAnError(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	for _, of := range []struct {
		field  string
		failed error
		want   string
	}{
		{"viewer", nil, "key must not be null"},
		{"viewer", errors.New("failed"), "key failed"},
		{"namespace", nil, ""},
	} {
		ctx := graphql.WithOperationContext(t.Context(),
			&graphql.OperationContext{Operation: &ast.OperationDefinition{Operation: ast.Query}})
		ctx = graphql.WithResponseContext(ctx, graphql.DefaultErrorPresenter, graphql.DefaultRecover)
		ctx = graphql.WithRootFieldContext(ctx, &graphql.RootFieldContext{Field: graphql.CollectedField{
			Field: &ast.Field{Alias: "key", Name: of.field, Definition: schema.Query.Fields.ForName(of.field)}}})
		graph.AroundRootField(ctx, func(ctx context.Context) graphql.Marshaler {
			if of.failed != nil {
				graphql.AddError(graphql.WithFieldContext(ctx,
					&graphql.FieldContext{Field: graphql.GetRootFieldContext(ctx).Field}), of.failed)
			}
			return graphql.Null
		})
		got := ""
		for _, err := range graphql.GetErrors(ctx) {
			got += fmt.Sprintf("%s %s", err.Path, err.Message)
		}
		if got != of.want {
			t.Errorf("%s: got the errors %q, want %q", of.field, got, of.want)
		}
	}
}
