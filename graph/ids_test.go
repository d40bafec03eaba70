package graph_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/vektah/gqlparser/v2/ast"
)

var (
	anyCursor = regexp.MustCompile(`"(?:cursor|startCursor|endCursor)":"([^"]+)"`)
	// checkSum is the check sum of a cursor. It may happen to have no letters.
	checkSum = regexp.MustCompile(`"s":"[^"]*"`)
	// rowNumber matches a number that could be the id of a row, as a whole
	// member of a cursor or as part of an id.
	rowNumber = regexp.MustCompile(`"\d+"|^[A-Za-z]+:(?:[^:]*:)?\d+$`)
)

// TestIDsLeadBackAndCountNothing queries everything as an administrator. Every
// id must find its node again. No id or cursor may contain a number, because it
// could reveal how much others write.
func TestIDsLeadBackAndCountNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		ask := func(query string) string {
			return answerText(t, executeWhole(t, access.WithViewer(t.Context(), viewers["admin"]), executor, query))
		}
		kinds, cursors := map[page.Kind]int{}, 0
		seen := map[string]bool{}
		for name, query := range everyQuery(t, executor.Schema()) {
			answer := ask(query)
			for _, found := range anyCursor.FindAllStringSubmatch(answer, -1) {
				cursors++
				if text, err := base64.RawURLEncoding.DecodeString(found[1]); err != nil ||
					rowNumber.Match(checkSum.ReplaceAll(text, nil)) {
					t.Errorf("%s has a cursor with a number: %s, %v", name, text, err)
				}
			}
			for _, found := range idInAnswer.FindAllStringSubmatch(answer, -1) {
				id := found[1]
				if seen[id] {
					continue
				}
				text, _ := base64.RawURLEncoding.DecodeString(id)
				kind, _, _ := strings.Cut(string(text), ":")
				if rowNumber.Match(text) {
					t.Errorf("%s has the id %s", name, text)
				}
				if !isNode(executor.Schema(), kind, query) {
					continue // a key without a node, at least in this query
				}
				seen[id] = true
				node, ok := page.ParseNodeID(id)
				if !ok || rowNumber.Match(text) {
					t.Errorf("%s has the id %s", name, text)
				}
				kinds[node.Kind]++
				if back := ask(fmt.Sprintf(`{ node(id: %q) { id __typename } }`, id)); !strings.Contains(back,
					`"id":"`+id+`"`) || !strings.Contains(back, `"`+string(node.Kind)+`"`) {
					t.Errorf("%s leads to %s", text, back)
				}
			}
		}
		if len(kinds) < 11 || cursors < 50 {
			t.Errorf("%d cursors, and ids of %v only", cursors, kinds)
		}
	})
}

// isNode reports whether the objects of a type in the answer of a query can be
// found by id. Providers that whatIf adds cannot.
func isNode(schema *ast.Schema, name, query string) bool {
	if name == string(page.KindResourceProvider) && strings.Contains(query, "addProvider") {
		return false
	}
	return slices.ContainsFunc(schema.PossibleTypes["Node"], func(of *ast.Definition) bool { return of.Name == name })
}
