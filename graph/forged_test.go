package graph_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestForgedIDsAndCursorsAreNoInternalErrors sends forged ids and cursors to
// every field that takes one: random bytes, and real ones mixed with parts of
// others and random bytes, with valid check sums. The field must refuse them or
// return something.
func TestForgedIDsAndCursorsAreNoInternalErrors(t *testing.T) {
	t.Parallel()
	seed, documents := soak.Seed(t), soak.Count(t, "CADASTRE_SOAK_FORGED", 1000)
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		f := newForger(t, executor, rand.New(rand.NewPCG(seed, 23)))
		codes := map[string]int{}
		for range documents {
			viewer := []string{"admin", "member", "reader"}[f.chance.IntN(3)]
			query := f.document()
			response := executor.ExecuteWhole(access.WithViewer(t.Context(), viewers[viewer]), query)
			if len(response.Errors) == 0 {
				codes["answered"]++
			}
			for _, err := range response.Errors {
				code := fmt.Sprint(err.Extensions["code"])
				codes[code]++
				if code == string(graph.CodeInternal) ||
					code == string(graph.CodeUnavailable) || code == string(graph.CodeTimeout) {
					t.Errorf("%s as %s: %v", query, viewer, err)
				}
			}
		}
		t.Logf("%d documents: %v", documents, codes)
		if codes["answered"] < documents/10 || codes["BAD_USER_INPUT"] < documents/4 {
			t.Error("the documents do not try enough")
		}
	})
}

// forger makes documents with forged ids and cursors.
type forger struct {
	chance  *rand.Rand
	fields  []string            // fields of Query or below node that take a cursor, with a %s for it
	nodes   map[string][]string // ids by type
	cursors map[string][]string // by field
}

func newForger(t *testing.T, executor *graph.Executor, chance *rand.Rand) *forger {
	t.Helper()
	f := &forger{chance: chance, nodes: map[string][]string{}, cursors: map[string][]string{}}
	ask := func(query string) string {
		return answerText(t, executeWhole(t, access.WithViewer(t.Context(), viewers["admin"]), executor, query))
	}
	everything := everyQuery(t, executor.Schema())
	for _, name := range slices.Sorted(maps.Keys(everything)) {
		query := everything[name]
		for _, found := range idInAnswer.FindAllStringSubmatch(ask(query), -1) {
			if node, ok := page.ParseNodeID(found[1]); ok && !slices.Contains(f.nodes[string(node.Kind)], found[1]) {
				f.nodes[string(node.Kind)] = append(f.nodes[string(node.Kind)], found[1])
			}
		}
	}
	add := func(of *ast.Definition, around string) {
		for _, field := range of.Fields {
			if field.Arguments.ForName("after") == nil || field.Arguments.ForName("first") == nil {
				continue // parts of a page: see TestForgedPartsAreNoInternalErrors
			}
			given := strings.Trim(requiredArguments[of.Name+"."+field.Name], "()")
			selected := "__typename"
			if strings.HasSuffix(field.Type.Name(), "Connection") {
				selected = "edges { cursor } pageInfo { hasNextPage hasPreviousPage }"
			}
			document := fmt.Sprintf(around, fmt.Sprintf("%s(%s %%s) { %s }", field.Name, given, selected))
			f.fields = append(f.fields, document)
			for _, found := range anyCursor.FindAllStringSubmatch(ask(fmt.Sprintf(document, "first: 2")), -1) {
				f.cursors[document] = append(f.cursors[document], found[1])
			}
		}
	}
	add(executor.Schema().Query, "{ %s }")
	for kind, ids := range f.nodes {
		for _, id := range ids[:min(10, len(ids))] {
			add(executor.Schema().Types[kind], fmt.Sprintf("{ node(id: %q) { ... on %s { %%s } } }", id, kind))
		}
	}
	slices.Sort(f.fields)
	if len(f.cursors) < 20 || len(f.nodes) < 11 {
		t.Errorf("cursors of %d fields, ids of %d types", len(f.cursors), len(f.nodes))
	}
	return f
}

// document returns a document with a forged id or cursor.
func (f *forger) document() string {
	switch f.chance.IntN(4) {
	case 0:
		return fmt.Sprintf(`{ node(id: %s) { __typename id } }`, jsonText(f.id()))
	case 1:
		return fmt.Sprintf(`{ nodes(ids: [%s, %s, %s]) { __typename id } }`,
			jsonText(f.id()), jsonText(f.id()), jsonText(f.id()))
	}
	field := f.fields[f.chance.IntN(len(f.fields))]
	argument := []string{"first: 2, after: %s", "last: 2, before: %s"}[f.chance.IntN(2)]
	return fmt.Sprintf(field, fmt.Sprintf(argument, jsonText(f.cursor(field))))
}

func jsonText(text string) string {
	out, _ := json.Marshal(text) // a string cannot fail
	return string(out)
}

// id returns a forged id, or a real one.
func (f *forger) id() string {
	kinds := slices.Sorted(maps.Keys(f.nodes))
	ids := f.nodes[kinds[f.chance.IntN(len(kinds))]]
	id := ids[f.chance.IntN(len(ids))]
	if f.chance.IntN(6) == 0 {
		return id
	}
	return f.mangled(id)
}

// cursor returns a forged cursor of a field, or a real one.
func (f *forger) cursor(field string) string {
	all := f.cursors[field]
	if len(all) == 0 || f.chance.IntN(4) == 0 {
		all = f.cursors[f.fields[f.chance.IntN(len(f.fields))]]
	}
	if len(all) == 0 {
		return f.mangled("")
	}
	cursor := all[f.chance.IntN(len(all))]
	switch f.chance.IntN(6) {
	case 0:
		return cursor
	case 1:
		return f.mangled(cursor)
	}
	text, _ := base64.RawURLEncoding.DecodeString(cursor)
	var known struct{ L, K, I string } // the JSON of a Position
	if json.Unmarshal(text, &known) != nil || known.L == "" {
		return f.mangled(cursor)
	}
	p := page.Position{List: known.L, Key: known.K, ID: known.I} // Cursor adds the check sum
	if f.chance.IntN(2) == 0 {
		p.Key = f.bytes(p.Key)
	} else {
		p.ID = f.bytes(p.ID)
	}
	return p.Cursor()
}

// mangled returns an encoded string with some bytes changed.
func (f *forger) mangled(encoded string) string {
	text, _ := base64.RawURLEncoding.DecodeString(encoded)
	out := f.bytes(string(text))
	if f.chance.IntN(8) == 0 {
		return out
	}
	return base64.RawURLEncoding.EncodeToString([]byte(out))
}

// bytes returns a string with some bytes changed, added and removed.
func (f *forger) bytes(text string) string {
	out := []byte(text)
	for range 1 + f.chance.IntN(3) {
		at := f.chance.IntN(len(out) + 1)
		odd := [][]byte{{0}, {0xff, 0xfe}, []byte("\x00"), []byte("'"), []byte("9223372036854775808"),
			[]byte("-1"), []byte("ſ"), []byte("\U0001F600"),
			[]byte("2026-13-41T99:99:99Z"), []byte("NaN"), []byte("%"), []byte(":"),
			[]byte(strings.Repeat("x", 3000)), {byte(f.chance.IntN(256))}}
		piece := odd[f.chance.IntN(len(odd))]
		switch f.chance.IntN(3) {
		case 0:
			out = slices.Insert(out, at, piece...)
		case 1:
			out = append(out[:at:at], piece...)
		default:
			out = slices.Delete(out, at, min(len(out), at+1+f.chance.IntN(4)))
		}
	}
	return string(out)
}
