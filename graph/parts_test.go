package graph_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestForgedPartsAreNoInternalErrors asks for parts of a namespace by positions
// with right sums that no answer has.
func TestForgedPartsAreNoInternalErrors(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor, chance := executorOf(t, openFixture(t, url)), rand.New(rand.NewPCG(6, 4))
		answered := 0
		for range 300 {
			key := fmt.Sprintf("%d %d %d", chance.IntN(3), chance.IntN(6)-1, []int64{0, 0, 1, -1, 61, 1 << 40, 1<<63 - 1}[chance.IntN(7)])
			if chance.IntN(5) == 0 {
				key = []string{"", " ", "\x00", "1", "1 2", "1 2 3 4", "1 1 99999999999999999999", "a b c"}[chance.IntN(8)]
			}
			after := page.Position{List: "parts of a namespace", Key: key, ID: []string{"Open", "Open", "marker", ""}[chance.IntN(4)]}.Cursor()
			response := executor.Execute(access.WithViewer(t.Context(), viewers["member"]), &graphql.RawParams{Query: fmt.Sprintf(`{ exportNamespacePart(name: "Open", after: %q) { text next } }`, after)})
			if len(response.Errors) == 0 {
				answered++
			}
			for _, err := range response.Errors {
				if code := fmt.Sprint(err.Extensions["code"]); code == string(graph.CodeInternal) || code == string(graph.CodeUnavailable) {
					t.Errorf("%q: %v", key, err)
				}
			}
		}
		if answered == 0 {
			t.Error("nothing was answered")
		}
	})
}

// TestADryRunOfPartsSaysWhatItWouldBreak narrows a property by a staged file and
// by a document: the answers are the same, but for the cursor.
func TestADryRunOfPartsSaysWhatItWouldBreak(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		ask := func(query string) string {
			return answerText(t, executor.Execute(access.WithViewer(t.Context(), viewers["admin"]), &graphql.RawParams{Query: query}))
		}
		const narrow = `{\"namespace\": \"Open\", \"properties\": {\"size\": {\"title\": \"Size\", \"type\": \"integer\", \"minimum\": 7}}}`
		ask(`mutation { stageNamespacePart(input: {upload: "77777777-7777-4777-8777-777777777777", part: 0, text: "` + narrow + `"}) { parts } }`)
		try := func(file string) string {
			return ask(`mutation { importNamespaces(input: {mode: PREFER_NEW, dryRun: true, ` + file + `}, problems: {first: 10}) { reports { outcome } problems { nodes { resource { name } } } } }`)
		}
		document := try(`documents: ["` + narrow + `"]`)
		for range 2 { // a dry run keeps the parts
			if parts := try(`uploads: [{upload: "77777777-7777-4777-8777-777777777777", parts: 1}]`); parts != document || !strings.Contains(parts, `"host"`) {
				t.Errorf("the document answers %s, the parts %s", document, parts)
			}
		}
	})
}
