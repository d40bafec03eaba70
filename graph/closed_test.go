package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestClosedDiscoveryIsToldOnce reads the capabilities of many things while
// discovery is closed. The answer must have one error for each place in the
// document, at the first thing there.
func TestClosedDiscoveryIsToldOnce(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := openPrivate(t, url, resource.DiscoveryAdmin, "1")
		ctx := access.WithViewer(t.Context(), viewers["member"])
		response := executor.Execute(ctx, &graphql.RawParams{Query: `{
			resources { nodes { name capabilities { name } again: capabilities { value } } totalCount }
			more: resources(first: 3) { edges { node { capabilities { name } type { capability(name: "arch") { name } } } } }
			resourceTypes { nodes { capabilities { name } } }
			resource(uuid: "00000000-0000-4000-8000-000000000000") { capabilities { name } }
		}`})
		var got []string
		for _, err := range response.Errors {
			got = append(got, fmt.Sprint(err.Path, " ", err.Extensions["code"]))
		}
		want := []string{
			"more.edges[0].node.capabilities FORBIDDEN",
			"more.edges[0].node.type.capability FORBIDDEN", "resource.capabilities FORBIDDEN",
			"resourceTypes.nodes[0].capabilities FORBIDDEN", "resources.nodes[0].again FORBIDDEN",
			"resources.nodes[0].capabilities FORBIDDEN",
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if text := answerText(t, response); len(text) < 500 {
			t.Errorf("the rest is not answered: %s", text)
		}
	})
}
