package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestNoUpdateIsLost increments numbers of things that have a generation or
// revision, along every path of the schema that shows both. Clients read
// counter and number in one answer, while others write, and send the counter
// with their write. At the end each number must have grown by 1 for each
// accepted write.
//
// With CADASTRE_SOAK_WRITES the test also runs on one server with PostgreSQL.
// With two servers, consecutive requests of a client go to the same server or
// to different ones.
func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	finder, writes := &wayFinder{schema: schemaOf()}, soak.Count(t, "CADASTRE_SOAK_WRITES", 0)
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		loseNoUpdate(t, finder, storetest.SQLite(t), 1, writes/databases)
	})
	if writes > 0 {
		t.Run("postgres", func(t *testing.T) {
			t.Parallel()
			loseNoUpdate(t, finder, storetest.Postgres(t), 1, writes/databases)
		})
	}
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		loseNoUpdate(t, finder, storetest.Postgres(t), 2, writes/databases)
	})
}

func loseNoUpdate(t *testing.T, finder *wayFinder, url string, servers, writes int) {
	schema := finder.schema
	facets := facetsOf(nil)
	executors := openFamilies(t, url, servers, len(facets))
	associations := associationsOf(t, executors[0], len(facets))
	facets = facetsOf(func(of thing) string { return associations[of] })
	covered := &coverage{reached: map[string]bool{}, tried: map[string]int{}}
	seed := soak.Seed(t)
	var working sync.WaitGroup
	var every []*adders
	for family, of := range facets {
		a := &adders{t: t, facet: of, family: family, schema: schema, executors: executors,
			ids: idsOfFamily(t, executors[0], schema, family)}
		a.begin()
		every = append(every, a)
		working.Go(func() {
			a.addByAll(finder, covered, seed, writes/len(facets))
		})
	}
	working.Wait()
	insist(every, finder, covered, seed)
	var total result
	for _, a := range every {
		out := a.end()
		a.report(out)
		total.add(out)
	}
	t.Logf("%d writes with %d accepted and %d lost; %d states seen, %d of them torn", total.attempts,
		total.accepted, total.lost, total.seen, total.torn)
	for _, step := range covered.missed("") {
		t.Logf("no number was reached by: %s", step)
	}
	if total.accepted*2 < total.attempts {
		t.Error("less than half of the writes were accepted")
	}
}

// databases is the number of databases in a test: SQLite, and PostgreSQL with
// one server and with two.
const databases = 3

// addersAtOnce is the number of concurrent clients of a family, not counting
// interrupting ones.
const addersAtOnce = 2

// drawn is the number of ways that each client considers. Most of them contain
// no new step.
var drawn = soak.Rounds(1000)

// addByAll has the clients of a family add along ways that cover new steps, and
// then along any way until there were enough writes.
func (a *adders) addByAll(finder *wayFinder, covered *coverage, seed uint64, writes int) {
	var clients sync.WaitGroup
	for client := range addersAtOnce {
		clients.Go(func() {
			chance := rand.New(rand.NewPCG(seed, uint64(a.family*addersAtOnce+client)))
			for i := 0; i < drawn || a.written() < writes; i++ {
				w := finder.draw(chance, a.facet)
				counter, number := stepsOf(a.facet, w)
				if i >= drawn || covered.wants(slices.Concat(counter, number)) {
					covered.noteBoth(counter, number, a.try(chance, w))
				}
			}
		})
	}
	clients.Wait()
}

// written returns the number of attempted writes.
func (a *adders) written() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.attempts
}

// insisted is the number of ways with a step to a counter that insist draws
// before it gives up.
const insisted = 1000

// insist tries further ways for missed steps to counters. It fails for steps
// that lead to no thing.
func insist(every []*adders, finder *wayFinder, covered *coverage, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 31))
	for _, step := range covered.missed("counter of", "a counter in") {
		if strings.Contains(step, ": Drain") || strings.Contains(step, "Rebalance") ||
			strings.Contains(step, "PlaceRefusal") || strings.HasSuffix(step, "updateInventories") ||
			strings.Contains(step, "CapacityDifference") {
			// Whether a plan has a move, or a place or an update was refused, depends on the room at that
			// instant. A what-if without changes has no difference.
			continue
		}
		for range insisted {
			if covered.has(step) {
				break
			}
			a := every[chance.IntN(len(every))]
			if w, ok := finder.drawTaking(chance, a.facet, step); ok {
				counter, number := stepsOf(a.facet, w)
				covered.noteBoth(counter, number, a.try(chance, w))
			}
		}
		if !covered.has(step) {
			every[0].t.Errorf("not reached: %s", step)
		}
	}
}

// report logs the result of the writes and fails for lost updates, torn states
// and errors.
func (a *adders) report(out result) {
	a.t.Logf("%s of %s: %d accepted of %d", a.facet.name, a.facet.of, out.accepted, out.attempts)
	if out.lost != 0 || out.torn != 0 {
		a.t.Errorf("%s of %s: %d of %d accepted writes are lost; %d of %d states seen are torn:\n%s", a.facet.name,
			a.facet.of, out.lost, out.accepted, out.torn, out.seen, strings.Join(out.examples, "\n"))
	}
	for err, examples := range a.errors {
		a.t.Errorf("%s of %s: %d times %s: %s", a.facet.name, a.facet.of, len(examples), err, examples[0])
	}
}

// note records a failure.
func (a *adders) note(err, example string) { a.errors[err] = append(a.errors[err], example) }

// associationsOf returns the ids of the associations with a prefix, by thing.
func associationsOf(t *testing.T, executor *graph.Executor, families int) map[thing]string {
	t.Helper()
	found := map[thing]string{}
	for family := range families {
		for index := range thingsOfFamily {
			of := thing{family, index}
			answer := interrupted(executor,
				fmt.Sprintf(`{ namespace(name: %q) { resourceTypeAssociations { id prefix } } }`, of.mark()), never,
				nil)
			if len(answer.errors) > 0 {
				t.Fatal(answer.errors)
			}
			for _, association := range answer.data["namespace"].(map[string]any)["resourceTypeAssociations"].([]any) {
				if association := association.(map[string]any); association["prefix"] != nil {
					found[of] = association["id"].(string)
				}
			}
		}
	}
	return found
}

// waysToIDs caches short paths to objects of a type.
var waysToIDs memo[typeIn, []path]

// idsOfFamily returns the ids of objects of a family, by type. It finds them
// along short paths.
func idsOfFamily(t *testing.T, executor *graph.Executor, schema *ast.Schema, family int) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, of := range schema.PossibleTypes["Node"] {
		all := waysToIDs.of(typeIn{schema, of.Name}, func() []path {
			all := simplePaths(schema, "Query", func(to string) bool { return to == of.Name })
			all = slices.DeleteFunc(all, func(p path) bool { return p[0].field == "node" || p[0].field == "nodes" })
			slices.SortStableFunc(all, func(a, b path) int { return len(a) - len(b) })
			return all[:min(len(all), 3)]
		})
		for at := range thingsOfFamily * len(all) {
			p := all[at/thingsOfFamily]
			d := &pathDocument{schema: schema, chance: rand.New(rand.NewPCG(0, 0)),
				family: family, roots: map[string]string{},
				things: map[string]thing{"a": {family, at % thingsOfFamily}}, chosen: map[string]string{}}
			d.show("a", p, "id")
			for _, object := range d.objectsAt(interrupted(executor, d.String(), never, nil).data, "a", p, "id") {
				if id, ok := object["id"].(string); ok && !slices.Contains(out[of.Name], id) {
					out[of.Name] = append(out[of.Name], id)
				}
			}
		}
	}
	return out
}

// TestEveryExpectingMutationWritesANumber checks that each mutation with a
// counter in its input is in a facet or in withoutNumber.
func TestEveryExpectingMutationWritesANumber(t *testing.T) {
	t.Parallel()
	known := slices.Clone(withoutNumber)
	schema := schemaOf()
	for _, of := range facetsOf(nil) {
		if !slices.Contains(countedTypes(schema), of.of) {
			t.Errorf("%s has no counter", of.of)
		}
		for _, write := range of.writes {
			known = append(known, write.mutation)
		}
	}
	slices.Sort(known)
	if known = slices.Compact(known); !slices.Equal(known, expecting(schema)) {
		t.Errorf("mutations with a counter in the input are\n%v, facets and withoutNumber have\n%v", expecting(schema),
			known)
	}
}
