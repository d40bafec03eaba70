package graph_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestWhatIsDeletedMeanwhileIsNotFound reads the type of a capability after
// both were deleted.
func TestWhatIsDeletedMeanwhileIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		resolver := &graph.Resolver{Store: storetest.Open(t, url)}
		definition := graph.NewExecutor(resolver, slog.Default()).
			Schema().Types["Capability"].Fields.ForName("resourceType")
		ctx := dataloader.With(access.WithViewer(t.Context(), viewers["admin"]))
		ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{
			Field: graphql.CollectedField{Field: &ast.Field{Name: "resourceType",
				Alias: "resourceType", Definition: definition}},
		})
		_, err := resolver.Capability().ResourceType(ctx, &resource.Capability{ResourceTypeID: 4711})
		if !errors.Is(err, problem.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestADeletedResourceIsAnsweredWhole selects all fields of a resource that the
// mutation has deleted.
func TestADeletedResourceIsAnsweredWhole(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, storetest.Open(t, url))
		schema := executor.Schema()
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		for _, query := range []string{
			`mutation { createResource(input: {type: "physical:host", name: "h", uuid: "` + noUUID +
				`", metadata: [{key: "k", value: "v"}]}) { __typename } }`,
			`mutation { deleteResource(input: {uuid: "` + noUUID + `"}) { resource { ` +
				selection(t, schema, schema.Types["Resource"], 2) + ` } } }`,
		} {
			if answer := answerText(t,
				executor.Execute(ctx, &graphql.RawParams{Query: query})); strings.Contains(answer, `"code":`) {
				t.Errorf("%.100s: %s", query, answer)
			}
		}
	})
}
