package document

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph/document/documenttest"
	"github.com/cadastre-dev/cadastre/schema"
)

// BenchmarkPrepare prepares operations from cached documents, from new
// documents, from a document with many values in its variables, and from a
// document that is refused for its number of places.
func BenchmarkPrepare(b *testing.B) {
	loaded := gqlparser.MustLoadSchema(&ast.Source{Input: schema.SDL()})
	page := map[string]any{"first": json.Number("20"), "yes": true}
	var values []any
	for i := range 1000 {
		values = append(values, map[string]any{"key": fmt.Sprint("key_", i), "value": "value"})
	}
	const dashboard = `query Dashboard($first: Int, $yes: Boolean!) {
		viewer { userId roles } namespaces(first: $first, filter: {search: "x", resourceTypes: ["a", "b"]}) { totalCount ...page nodes { ...all } }
		resources(first: $first) { nodes { uuid name type { name } metadata @include(if: $yes) { key value definitions { name } } } pageInfo { ...info } }
		resourceProviders(first: $first) { nodes { name generation inventories { resourceClass total free } traits allocations { totalCount } } } }
		fragment all on Namespace { name displayName properties { name title type default } objects { name properties { name } } tags { name } }
		fragment page on NamespaceConnection { pageInfo { ...info } } fragment info on PageInfo { endCursor hasNextPage }`
	for _, of := range []struct {
		name, text string
		variables  map[string]any
	}{
		{"a viewer", "{ viewer { userId } }", nil},
		{"a dashboard", dashboard, page},
		{"2000 values",
			`query($values: [KeyValueInput!]!) { validateMetadata(resourceType: "t", values: $values) { valid } }`,
			map[string]any{"values": values}},
		{"multiplying fragments", documenttest.Multiplied(20, 5, "name"), nil},
	} {
		b.Run("kept/"+of.name, func(b *testing.B) {
			b.ReportAllocs()
			reader := NewReader(loaded, noNodes, DefaultLimits())
			for b.Loop() {
				reader.Prepare(Request{Text: of.text, Variables: of.variables})
			}
		})
		b.Run("new/"+of.name, func(b *testing.B) {
			b.ReportAllocs()
			reader := NewReader(loaded, noNodes, DefaultLimits())
			for i := 0; b.Loop(); i++ {
				reader.Prepare(Request{Text: fmt.Sprintf("%s #%d", of.text, i), Variables: of.variables})
			}
		})
	}
}
