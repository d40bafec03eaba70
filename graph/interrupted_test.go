package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// moment is the time of an interruption within an operation: just before an SQL
// statement or a use of the context, counted from 0.
type moment struct {
	use bool
	at  int
}

var never = moment{at: -1}

func (m moment) String() string {
	switch {
	case m.at < 0:
		return "never"
	case m.use:
		return fmt.Sprintf("before use %d of the context", m.at)
	}
	return fmt.Sprintf("before statement %d", m.at)
}

// interruptedContext is the context of an operation that is interrupted at a
// use of the context.
type interruptedContext struct {
	context.Context
	moment moment
	uses   *atomic.Int64
	during func()
}

func (c interruptedContext) Value(key any) any {
	value := c.Context.Value(key)
	c.use()
	return value
}

func (c interruptedContext) Done() <-chan struct{} {
	c.use()
	return c.Context.Done()
}

func (c interruptedContext) use() {
	if c.uses.Add(1)-1 == int64(c.moment.at) && c.moment.use {
		c.during()
	}
}

// outcome is the result of an operation.
type outcome struct {
	data       map[string]any
	errors     []string
	codes      []string
	statements int
	uses       int    // of the context
	text       string // data and errors
}

// tooLong reports whether the length of the answer is the only error. A path
// that goes back and forth returns the same things many times. The mutation has
// already written by then.
func (o outcome) tooLong() bool { return slices.Equal(o.codes, []string{"QUERY_TOO_COMPLEX"}) }

// longestInterruption bounds the pause of an operation for another one. The
// other operation may have to wait for the first, for example if both write.
const (
	longestInterruption = 50 * time.Millisecond
	shortInterruption   = 5 * time.Millisecond
)

// interrupted runs an operation as an administrator. At a moment the operation
// pauses and other starts. The operation continues when other ends, or after a
// time limit.
func interrupted(executor *graph.Executor, query string, at moment, other func()) outcome {
	return interruptedAs(executor, "admin", query, nil, at, other)
}

// interruptedAs is interrupted as a viewer, with variables.
func interruptedAs(executor *graph.Executor, viewer, query string,
	variables map[string]any, at moment, other func()) outcome {
	ctx := access.WithViewer(graph.WithRequestID(context.Background(), "request"), viewers[viewer])
	sent, uses := &atomic.Int64{}, &atomic.Int64{}
	patient := longestInterruption
	if strings.HasPrefix(query, "mutation") {
		patient = shortInterruption
	}
	var once sync.Once
	var ended chan struct{}
	during := func() {
		once.Do(func() {
			ended = make(chan struct{})
			go func() { defer close(ended); other() }()
			select {
			case <-ended:
			case <-time.After(patient):
			}
		})
	}
	ctx = store.EachStatement(ctx, func(string, any) { // called before the statement is sent
		if sent.Add(1)-1 == int64(at.at) && !at.use {
			during()
		}
	})
	ctx = interruptedContext{ctx, at, uses, during}
	response := executor.ExecuteAny(ctx, &graphql.RawParams{Query: query, Variables: variables})
	once.Do(func() {}) // later uses of the context interrupt nothing
	if ended != nil {
		<-ended
	}
	errors, err := json.Marshal(response.Errors)
	if err != nil {
		errors = []byte(err.Error())
	}
	out := outcome{statements: int(sent.Load()), uses: int(uses.Load()),
		text: string(response.Data) + " " + string(errors)}
	decoder := json.NewDecoder(strings.NewReader(string(response.Data)))
	decoder.UseNumber()
	_ = decoder.Decode(&out.data) // absent data decodes to nil
	for _, err := range response.Errors {
		out.errors = append(out.errors, fmt.Sprintf("%v %s at %v", err.Extensions["code"], err.Message, err.Path))
		out.codes = append(out.codes, fmt.Sprint(err.Extensions["code"]))
	}
	return out
}

// pathDocument is a document with selections along paths through the schema.
// Paths with the same alias share their fields and arguments as far as they
// agree.
type pathDocument struct {
	schema *ast.Schema
	chance *rand.Rand
	family int
	ids    map[string][]string // of the family's objects, by type
	// roots are the root fields, without selections, of aliases with arguments
	// that do not come from familyArguments.
	roots    map[string]string
	mutation bool
	things   map[string]thing  // the thing that an alias's arguments lead to
	chosen   map[string]string // arguments, by place
	fields   []string
}

// show selects leaves of the type at the end of a path.
func (d *pathDocument) show(alias string, p path, leaves string) {
	if len(p) == 0 {
		d.fields = append(d.fields, alias+": "+leaves+d.arguments(alias, "Query."+leaves, ""))
		return
	}
	text, place := leaves, alias
	var begins []string
	for _, s := range p {
		place += "." + s.field
		begins = append(begins, s.field+d.arguments(place, s.of+"."+s.field, s.on))
	}
	begins[0] = alias + ": " + begins[0]
	if root, ok := d.roots[alias]; ok {
		begins[0] = alias + ": " + root
	}
	for i := len(p) - 1; i >= 0; i-- {
		if d.abstract(p[i]) {
			text = "__typename ... on " + p[i].on + " { " + text + " }"
		}
		text = begins[i] + " { " + text + " }"
	}
	d.fields = append(d.fields, text)
}

func (d *pathDocument) abstract(s step) bool {
	return d.schema.Types[d.schema.Types[s.of].Fields.ForName(s.field).Type.Name()].IsAbstractType()
}

// arguments returns the arguments of a field. They are the same for the same
// place.
func (d *pathDocument) arguments(place, field, on string) string {
	if arguments, ok := d.chosen[place]; ok {
		return arguments
	}
	alias, _, _ := strings.Cut(place, ".")
	of, ok := d.things[alias]
	if !ok {
		of = thing{d.family, d.chance.IntN(thingsOfFamily)}
		d.things[alias] = of
	}
	arguments := ""
	if among := familyArguments[field]; len(among) > 0 {
		arguments = os.Expand(among[d.chance.IntN(len(among))], func(name string) string {
			if name == "id" && len(d.ids[on]) > 0 {
				return d.ids[on][d.chance.IntN(len(d.ids[on]))]
			}
			return of.variable(name)
		})
	}
	d.chosen[place] = arguments
	return arguments
}

func (d *pathDocument) String() string {
	text := "{ " + strings.Join(d.fields, " ") + " }"
	if len(d.roots) > 0 && d.mutation {
		return "mutation " + text
	}
	return text
}

// objectsAt returns the objects at the end of a path in an answer.
func (d *pathDocument) objectsAt(data map[string]any, alias string, p path, leaves string) []map[string]any {
	if len(p) == 0 {
		return []map[string]any{{leaves: data[alias]}}
	}
	var out []map[string]any
	var walk func(value any, rest path, on step)
	walk = func(value any, rest path, on step) {
		switch value := value.(type) {
		case []any:
			for _, member := range value {
				walk(member, rest, on)
			}
		case map[string]any:
			if of, ok := value["__typename"]; ok && d.abstract(on) && of != on.on {
				return
			}
			if len(rest) == 0 {
				out = append(out, value)
				return
			}
			walk(value[rest[0].field], rest[1:], rest[0])
		}
	}
	walk(data[alias], p[1:], p[0])
	return out
}

// TestOperationsAreInterrupted checks that an interruption happens before every
// statement of an operation, and at the uses of its context. No two runs need
// have the same number of uses. Otherwise the tests with interruptions would
// find nothing.
func TestOperationsAreInterrupted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), fixture()); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		query := `{ namespaces { totalCount nodes { properties { name } tags { name } } } }`
		quiet := interrupted(executor, query, never, nil)
		if quiet.statements != 4 || quiet.uses == 0 {
			t.Fatalf("%d statements, %d uses of the context: %s", quiet.statements, quiet.uses, quiet.text)
		}
		happens := func(at moment) (happened bool) {
			interrupted(executor, query, at, func() { happened = true })
			return happened
		}
		for at := range quiet.statements {
			if !happens(moment{at: at}) {
				t.Errorf("nothing happened %v of %d", moment{at: at}, quiet.statements)
			}
		}
		for at := range quiet.uses / 2 {
			if !happens(moment{use: true, at: at}) {
				t.Errorf("nothing happened %v of about %d", moment{use: true, at: at}, quiet.uses)
			}
		}
		if happens(moment{at: quiet.statements}) || happens(moment{use: true, at: 10 * quiet.uses}) {
			t.Error("something happened after the end")
		}
	})
}
