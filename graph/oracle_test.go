package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestTheWriterAnswersAsTheExecutorOfGqlgen runs random documents with both
// executors. The data, the errors and the numbers of SQL statements must be
// equal. The documents have variables, fragments, aliases, directives, repeated
// fields, refused arguments and introspection. If equal fields have several
// aliases, the writer resolves them once and may need fewer statements.
//
// CADASTRE_SOAK_DOCUMENTS sets the number of documents, four of five of them on
// SQLite. CADASTRE_SOAK_SEED sets the seed. Documents have up to five levels.
// With more than 200,000 documents, only every twentieth does, and the others
// have one or two.
func TestTheWriterAnswersAsTheExecutorOfGqlgen(t *testing.T) {
	t.Parallel()
	seed, documents := soak.Seed(t), soak.Count(t, "CADASTRE_SOAK_DOCUMENTS", 1500)
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openNow(t, url)
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), largeFixture()); err != nil {
			t.Fatal(err)
		}
		executor := graph.NewExecutor(&graph.Resolver{Store: s}, slog.New(slog.DiscardHandler))
		ids := idsOfEverything(t, executor)
		rounds := documents / 5
		if strings.HasSuffix(t.Name(), "/sqlite") {
			rounds = documents - rounds
		}
		var oracles [2]oracle
		t.Run("rounds", func(t *testing.T) {
			for i := range oracles {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					oracles[i] = oracle{t: t, executor: executor, ids: ids}
					for round := i; round < rounds; round += len(oracles) {
						chance := rand.New(rand.NewPCG(seed, uint64(round)))
						levels := 2 + chance.IntN(4)
						if documents > 200_000 && round%40 > 1 {
							levels = 1 + chance.IntN(2)
						}
						oracles[i].compare(chance, round, levels)
					}
				})
			}
		})
		o := oracles[0].with(oracles[1])
		t.Logf("%d documents", rounds)
		t.Logf("%d answers are whole, %d have errors beside data, %d have no data, %d bytes, %d statements saved",
			o.whole, o.partial, o.refused, o.bytes, o.saved)
		if o.whole < rounds/4 || o.partial < rounds/20 || o.saved < rounds/100 {
			t.Error("the documents do not try enough")
		}
	})
}

// oracle compares the writer with gqlgen's executor.
type oracle struct {
	t        *testing.T
	executor *graph.Executor
	ids      []string

	whole, partial, refused, bytes, saved int
}

// with returns the sums of the counts.
func (o oracle) with(other oracle) oracle {
	o.whole += other.whole
	o.partial += other.partial
	o.refused += other.refused
	o.bytes += other.bytes
	o.saved += other.saved
	return o
}

// compare runs one random document of the given depth with both executors.
func (o *oracle) compare(chance *rand.Rand, round, levels int) {
	o.t.Helper()
	random := &randomDocument{chance: chance, types: o.executor.Schema().Types, ids: o.ids,
		variants: map[string][]string{}, fragments: map[string][]string{}, polite: chance.IntN(3) > 0}
	query, variables := random.write(levels)
	viewer := []string{"admin", "admin", "admin", "service", "member", "reader"}[chance.IntN(6)]
	if random.polite {
		viewer = "admin"
	}
	operation := o.executor.Operation(query, variables)
	got, want := o.ask(viewer, operation, o.executor.Respond), o.ask(viewer, operation, o.executor.RespondByGqlgen)
	switch {
	case got.errors == "null":
		o.whole++
	case got.data == "null":
		o.refused++
	default:
		o.partial++
	}
	o.bytes += len(got.data)
	o.saved += want.statements - got.statements
	fewer := got.statements < want.statements && strings.Contains(query, repeats)
	if got.data != want.data || got.errors != want.errors || got.statements != want.statements && !fewer {
		o.t.Fatalf("round %d as %s: %s\n%v\ngot %d statements:\n%s\n%s\nwant %d:\n%s\n%s", round, viewer, query,
			variables, got.statements, got.data, got.errors, want.statements, want.data, want.errors)
	}
}

// response is the result of an operation.
type response struct {
	data, errors string
	statements   int
}

func (o *oracle) ask(viewer string, operation *document.Operation,
	run func(context.Context, *document.Operation) *graphql.Response) response {
	o.t.Helper()
	ctx := access.WithViewer(graph.WithRequestID(o.t.Context(), "request"), viewers[viewer])
	ctx, count := store.CountStatements(ctx)
	answer := run(ctx, operation)
	list, err := json.Marshal(answer.Errors)
	if err != nil {
		o.t.Fatal(err)
	}
	return response{string(answer.Data), string(list), count()}
}

// idsOfEverything returns ids of nodes of every kind, and some invalid ids.
func idsOfEverything(t *testing.T, executor *graph.Executor) []string {
	t.Helper()
	ctx := access.WithViewer(t.Context(), viewers["admin"])
	types := executor.Schema().Types
	met := map[string]string{}
	asked := selector{t, executor, ctx}
	for round := range uint64(10) {
		nodesIn(asked.ask(pick(rand.New(rand.NewPCG(round, 6)), types, types["Query"], 4).plain()), met)
	}
	ids := []string{"", "nonsense"}
	for id := range met {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// randomDocument makes a valid document with one query.
type randomDocument struct {
	chance *rand.Rand
	types  map[string]*ast.Definition
	ids    []string
	// variants are the arguments of the fields of a type so far. The first ones
	// need no alias.
	variants map[string][]string
	// fragments are the names of the fragments on a type.
	fragments map[string][]string
	text      []string // the fragments
	// polite documents have no refused arguments.
	polite bool
	// plain documents have no variables.
	plain bool
}

// declarations are the variables with possible values.
var declarations = map[string]struct {
	typ    string
	values []any
}{
	"yes":   {"Boolean!", []any{true, true, false}},
	"maybe": {"Boolean = true", []any{nil, true, false}},
	"first": {"Int", []any{json.Number("1"), json.Number("2"), json.Number("0"), json.Number("1001"), nil}},
	"text":  {"String", []any{"size", "Top", "", nil}},
}

// harmless are arguments that accept any value.
var harmless = []string{"first", "includePrivate", "resourceType", "search", "startsWith"}

// write returns a document of the given depth and its variables. A nil value
// omits the variable.
func (r *randomDocument) write(levels int) (string, map[string]any) {
	body := r.selection(r.types["Query"], "", levels)
	var declared []string
	values := map[string]any{}
	for _, name := range []string{"first", "maybe", "text", "yes"} {
		if strings.Contains(body+strings.Join(r.text, ""), "$"+name) {
			of := declarations[name]
			declared = append(declared, "$"+name+": "+of.typ)
			value := of.values[r.chance.IntN(len(of.values))]
			if r.polite {
				value = of.values[0]
			}
			if value != nil {
				values[name] = value
			}
		}
	}
	head := "query"
	if len(declared) > 0 {
		head += "(" + strings.Join(declared, ", ") + ")"
	}
	return head + " " + body + "\n" + strings.Join(r.text, "\n"), values
}

func (r *randomDocument) oneIn(n int) bool { return r.chance.IntN(n) == 0 }

// selection returns a selection of a type. Prefix begins the aliases of fields
// below an interface, because its types must not share names.
func (r *randomDocument) selection(of *ast.Definition, prefix string, levels int) string {
	out := []string{"__typename" + r.directives()}
	if r.oneIn(3) {
		out[0] = "again: __typename"
	}
	if of.Name == "Node" {
		return r.nodeSelection(out, levels)
	}
	for range 1 + r.chance.IntN(2) {
		for _, field := range of.Fields {
			rare := 4
			if of.Name == "Query" {
				rare = 10
			}
			if !r.oneIn(rare) || strings.HasPrefix(field.Name, "__") && !r.oneIn(2) {
				continue
			}
			below := r.types[field.Type.Name()]
			if !below.IsLeafType() && levels <= 0 {
				continue
			}
			text := r.field(of, field, prefix) + r.directives()
			if !below.IsLeafType() {
				text += " " + r.selection(below, "", r.levelsBelow(field, levels))
			}
			out = append(out, text)
		}
	}
	if prefix == "" && levels > 0 {
		out = append(out, r.spread(of, levels)...)
	}
	r.chance.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return "{ " + strings.Join(out, " ") + " }"
}

// nodeSelection returns a selection of nodes: the id, and fragments on some of
// their types.
func (r *randomDocument) nodeSelection(out []string, levels int) string {
	for _, concrete := range []string{"Namespace", "Tag", "Resource", "ResourceProvider", "Consumer", "MetadataItem",
		"ObjectDefinition", "PropertyDefinition"} {
		if r.oneIn(2) {
			out = append(out, "... on "+concrete+r.directives()+" "+
				r.selection(r.types[concrete], concrete+"_", levels-1))
		}
	}
	return "{ id " + strings.Join(out, " ") + " }"
}

// levelsBelow returns the number of levels below a field. Validation allows few
// levels of introspection.
func (r *randomDocument) levelsBelow(field *ast.FieldDefinition, levels int) int {
	switch field.Name {
	case "__schema":
		return min(levels-1, 3)
	case "__type":
		return min(levels-1, 2)
	}
	return levels - 1
}

// spread returns a fragment on a type, or nothing.
func (r *randomDocument) spread(of *ast.Definition, levels int) []string {
	switch {
	case r.oneIn(4):
		return []string{"..." + r.directives() + " " + r.selection(of, "", levels-2)}
	case r.oneIn(4):
		return []string{"... on " + of.Name + r.directives() + " " + r.selection(of, "", levels-2)}
	case r.oneIn(4):
		if len(r.fragments[of.Name]) == 0 || r.oneIn(2) {
			text := r.selection(of, "", levels-2)
			name := fmt.Sprintf("F%d", len(r.text))
			r.text = append(r.text, "fragment "+name+" on "+of.Name+" "+text)
			r.fragments[of.Name] = append(r.fragments[of.Name], name)
			return []string{"..." + name + r.directives()}
		}
		among := r.fragments[of.Name]
		return []string{"..." + among[r.chance.IntN(len(among))] + r.directives()}
	}
	return nil
}

// directives sometimes returns a directive.
func (r *randomDocument) directives() string {
	number := r.chance.IntN(16)
	if r.plain {
		number = -1
	}
	switch number {
	case 0:
		return " @include(if: $yes)"
	case 1:
		return " @skip(if: $maybe)"
	case 2:
		return " @include(if: true) @skip(if: false)"
	}
	return ""
}

// repeats is the suffix of an alias for a field that may equal another one.
const repeats = "_again: "

// field returns a field with arguments, with an alias that identifies the
// arguments.
func (r *randomDocument) field(of *ast.Definition, field *ast.FieldDefinition, prefix string) string {
	name := of.Name + "." + field.Name
	arguments := r.arguments(field, strings.TrimSuffix(strings.TrimPrefix(requiredArguments[name], "("), ")"))
	variant := slices.Index(r.variants[name], arguments)
	if variant < 0 {
		variant = len(r.variants[name])
		r.variants[name] = append(r.variants[name], arguments)
	}
	text := field.Name
	switch {
	case r.oneIn(8):
		text = fmt.Sprintf("%s%s_%d%s%s", prefix, field.Name, variant, repeats, field.Name)
	case variant > 0 || prefix != "":
		text = fmt.Sprintf("%s%s_%d: %s", prefix, field.Name, variant, field.Name)
	}
	if arguments != "" {
		text += "(" + arguments + ")"
	}
	return text
}

// required returns the required arguments of a field, with random ids.
func (r *randomDocument) required(field *ast.FieldDefinition, required string) string {
	switch {
	case field.Name == "__type":
		required = fmt.Sprintf("name: %q",
			[]string{"Namespace", "Node", "NamespaceFilter", "OrderDirection", "UUID", "nothing"}[r.chance.IntN(6)])
	case field.Name == "node" && r.polite && field.Arguments.ForName("id") != nil:
		required = fmt.Sprintf("id: %q", r.ids[2+r.chance.IntN(len(r.ids)-2)])
	case field.Name == "node" && field.Arguments.ForName("id") != nil:
		required = fmt.Sprintf("id: %q", r.ids[r.chance.IntN(len(r.ids))])
	case field.Name == "nodes" && field.Arguments.ForName("ids") != nil:
		var ids []string
		for range r.chance.IntN(8) {
			ids = append(ids, r.ids[2+r.chance.IntN(len(r.ids)-2)])
		}
		quoted, _ := json.Marshal(ids)
		required = "ids: " + strings.ReplaceAll(string(quoted), "null", "[]")
	}
	return required
}

// arguments returns the required arguments of a field, and random other ones.
func (r *randomDocument) arguments(field *ast.FieldDefinition, required string) string {
	var out []string
	required = r.required(field, required)
	if required != "" {
		out = append(out, required)
	}
	for _, argument := range field.Arguments {
		if strings.Contains(required, argument.Name+":") || argument.Type.NonNull ||
			r.polite && !slices.Contains(harmless, argument.Name) {
			continue
		}
		value := r.leaf(argument.Type)
		wanted := 6
		if argument.Name == "first" {
			wanted = 2
		}
		if value != "" && r.oneIn(wanted) {
			out = append(out, argument.Name+": "+value)
		}
	}
	return strings.Join(out, ", ")
}

// leaf returns a random value of a scalar type, or the empty string for other
// types.
func (r *randomDocument) leaf(of *ast.Type) string {
	values := map[string][]string{
		"Int": {"1", "2", "$first"}, "Boolean": {"true"}, "String": {`"size"`, `"physical:host"`, `"bad"`, "$text"},
	}
	switch {
	case r.plain:
		values["Int"], values["String"] = []string{"1", "2", "20"}, []string{`"physical:host"`}
	case !r.polite:
		values["Int"] = []string{"1", "2", "2", "3", "0", "$first"}
	}
	among := values[of.NamedType]
	if len(among) == 0 {
		return ""
	}
	return among[r.chance.IntN(len(among))]
}
