package graph_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
)

// state is the state of a thing at one instant.
type state struct{ counter, n int }

// adders are clients that increment the numbers of one facet in one family.
type adders struct {
	t         *testing.T
	facet     facet
	family    int
	schema    *ast.Schema
	ids       map[string][]string
	executors []*graph.Executor

	touching sync.Mutex // held while a mutation of touches runs, from preparation to undo

	mu       sync.Mutex
	turn     int
	now      map[thing]state       // as the last accepted write left it
	history  map[thing]map[int]int // the number that was written with each counter
	seen     []seen                // states that the history does not explain
	states   int                   // number of states seen
	attempts int
	accepted int
	n        int                 // of the last document
	errors   map[string][]string // failures, with examples
}

// seen is a state that an answer showed.
type seen struct {
	thing  thing
	state  state
	later  bool // the number may be newer than the counter
	query  string
	moment moment // the moment of another write
}

// executor returns the executors of the servers in turn.
func (a *adders) executor() *graph.Executor {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn++
	return a.executors[a.turn%len(a.executors)]
}

// begin reads the states before the first write.
func (a *adders) begin() {
	a.now, a.history, a.errors = map[thing]state{}, map[thing]map[int]int{}, map[string][]string{}
	for index := range thingsOfFamily {
		of := thing{a.family, index}
		a.now[of] = a.read(of)
		a.history[of] = map[int]int{a.now[of].counter: a.now[of].n}
		if a.now[of].n != 1 {
			a.t.Fatalf("%s %s of %v begins at %v", a.facet.of, a.facet.name, of, a.now[of])
		}
	}
}

// read reads the state of a thing while no client writes it.
func (a *adders) read(of thing) state {
	look := map[string]string{"Consumer": `consumer(uuid: "${consumer}")`,
		"ResourceProvider": `resourceProvider(uuid: "${provider}")`,
		"Namespace":        `namespace(name: "${mark}")`, "Resource": `resource(uuid: "${resource}")`}[a.facet.of]
	d := a.document(rand.New(rand.NewPCG(0, 0)))
	d.roots["a"] = os.Expand(look, of.variable)
	root := path{{"Query", strings.Split(look, "(")[0], a.facet.of}}
	counter := counterOf(a.schema.Types[a.facet.of])
	ways := simplePaths(a.schema, a.facet.of, func(to string) bool { return to == a.facet.shows[0].of })
	slices.SortStableFunc(ways, func(a, b path) int { return len(a) - len(b) })
	number := slices.Concat(root, ways[0])
	d.show("a", root, counter)
	d.show("a", number, a.facet.shows[0].leaves)
	answer := interrupted(a.executors[0], d.String(), never, nil)
	var out state
	for _, object := range d.objectsAt(answer.data, "a", root, counter) {
		out.counter = intOf(object[counter])
	}
	for _, object := range d.objectsAt(answer.data, "a", number, a.facet.shows[0].leaves) {
		for _, found := range a.facet.shows[0].read(object) {
			if found.thing == of {
				out.n = found.n
			}
		}
	}
	return out
}

func (a *adders) document(chance *rand.Rand) *pathDocument {
	return &pathDocument{schema: a.schema, chance: chance, family: a.family, ids: a.ids,
		roots: map[string]string{}, things: map[string]thing{}, chosen: map[string]string{}}
}

// identity is the field that identifies things of a type with a counter.
var identity = map[string]string{"Consumer": "uuid", "ResourceProvider": "uuid",
	"Namespace": "name", "Resource": "uuid"}

// thingOf returns the thing behind an object of an answer.
func thingOf(object map[string]any) (thing, bool) {
	var of thing
	if uuid, ok := object["uuid"].(string); ok {
		_, err := fmt.Sscanf(uuid[8:], "-0000-4000-8000-%06d%06d", &of.family, &of.index)
		return of, err == nil
	}
	return thingMarked(object["name"])
}

// writesBy reports whether a mutation writes the number of a facet.
func (f facet) writesBy(mutation string) bool {
	return slices.ContainsFunc(f.writes, func(w numberWrite) bool { return w.mutation == mutation })
}

// write writes a number of a thing and requires its current counter.
func (a *adders) write(chance *rand.Rand, of thing, base state) {
	write := a.facet.writes[chance.IntN(len(a.facet.writes))]
	answer := interrupted(a.executor(), "mutation { "+write.field(of, base.counter, base.n+1)+" { __typename } }",
		never, nil)
	a.wrote(write, of, base, answer)
}

// wrote records a write.
func (a *adders) wrote(write numberWrite, of thing, base state, answer outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempts++
	switch {
	case len(answer.errors) == 0, answer.tooLong():
		a.accepted++
		after := state{base.counter + write.by, base.n + 1}
		if after.counter > a.now[of].counter {
			a.now[of] = after
		}
		a.history[of][after.counter] = after.n
	case !slices.Equal(answer.codes, []string{"CONCURRENT_UPDATE"}):
		a.note(write.mutation+": "+answer.errors[0], fmt.Sprint(base))
	}
}

// attempt is a document that reads a counter and a number, each along one way.
type attempt struct {
	ways
	document *pathDocument
	target   thing
	base     state       // of the target, before the document runs
	own      bool        // whether the document writes the number of the target
	write    numberWrite // the write, if own
	at       moment      // the moment of another write
}

// after returns the state of the target after the document's write.
func (d *attempt) after() state { return state{d.base.counter + d.write.by, d.base.n + 1} }

// mixed reports whether the document shows two times: of counter and number one
// as after its own write, and the other as after a later write.
func (d *attempt) mixed() bool { return d.own && isOwn(d.counter) != isOwn(d.number) }

// prepare makes the document for a pair of ways, and the things that it needs.
// Undo removes these things.
func (a *adders) prepare(chance *rand.Rand, w ways, at moment) (d *attempt, undo func()) {
	d = &attempt{ways: w, document: a.document(chance), target: thing{a.family, chance.IntN(thingsOfFamily)}, at: at}
	a.mu.Lock()
	d.base = a.now[d.target]
	a.n++
	n := a.family*1_000_000 + a.n
	a.mu.Unlock()
	undo = func() {}
	mutation := w.mutation()
	d.own, d.document.mutation = a.facet.writesBy(mutation), mutation != ""
	switch {
	case d.own:
		of := a.facet.writes
		d.write = of[slices.IndexFunc(of, func(w numberWrite) bool { return w.mutation == mutation })]
		d.document.roots["a"] = d.write.field(d.target, d.base.counter, d.base.n+1)
	case mutation != "":
		a.touching.Lock()
		d.document.roots["a"] = touches[mutation].prepared(a.t, a.executors[0], d.target, n)
		undo = func() {
			touches[mutation].undo(a.t, a.executors[0], d.target, n)
			a.touching.Unlock()
		}
	}
	if w.beside != "" {
		d.document.fields = append(d.document.fields, filled(w.beside, d.target, n, ""))
	}
	inCounter, inNumber := w.aliases()
	show := []func(){
		func() {
			d.document.show(inCounter, w.counter, identity[a.facet.of]+" "+counterOf(a.schema.Types[a.facet.of]))
		},
		func() { d.document.show(inNumber, w.number, w.shown.leaves) },
	}
	if w.numberFirst {
		slices.Reverse(show)
	}
	show[0]()
	show[1]()
	return d, undo
}

// run runs the document. At its moment, another client adds 1 to the target.
func (a *adders) run(chance *rand.Rand, d *attempt) outcome {
	other := rand.New(rand.NewPCG(chance.Uint64(), 0))
	executor := a.executor()
	if d.document.mutation {
		executor = a.executors[0] // has the prepared things
	}
	answer := interrupted(executor, d.document.String(), d.at, func() {
		a.mu.Lock()
		base := a.now[d.target]
		a.mu.Unlock()
		if d.own {
			base = d.after() // the state once the document has written
		}
		a.write(other, d.target, base)
	})
	if d.own {
		a.wrote(d.write, d.target, d.base, answer)
	}
	return answer
}

// counted has the counters and the numbers of a thing in an answer.
type counted struct{ counters, numbers []int }

// find returns the counters and numbers of the things in an answer.
func (a *adders) find(d *attempt, answer outcome) map[thing]counted {
	found := map[thing]counted{}
	inCounter, inNumber := d.aliases()
	for _, object := range d.document.objectsAt(answer.data, inCounter, d.counter, "") {
		if of, ok := thingOf(object); ok {
			shown := found[of]
			shown.counters = append(shown.counters, intOf(object[counterOf(a.schema.Types[a.facet.of])]))
			found[of] = shown
		}
	}
	for _, object := range d.document.objectsAt(answer.data, inNumber, d.number, d.shown.leaves) {
		for _, number := range d.shown.read(object) {
			shown := found[number.thing]
			shown.numbers = append(shown.numbers, number.n)
			found[number.thing] = shown
		}
	}
	// A payload shows its own change as the mutation left it, and everything
	// else at a later time. A counter may therefore come with a later number,
	// but not the other way around.
	if d.mixed() && isOwn(d.number) {
		delete(found, d.target)
	}
	for of, shown := range found {
		found[of] = counted{distinct(shown.counters), distinct(shown.numbers)}
	}
	return found
}

// keep records the states in an answer. It returns the things with both a
// counter and a number.
func (a *adders) keep(d *attempt, found map[thing]counted) (whole []thing, shows reached) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for index := range thingsOfFamily {
		of := thing{a.family, index}
		shown := found[of]
		if d.own && of == d.target {
			a.checkOwn(d, shown)
		}
		for _, counter := range shown.counters {
			for _, n := range shown.numbers {
				a.states++
				if now, ok := a.history[of][counter]; !ok || now != n {
					a.seen = append(a.seen,
						seen{of, state{counter, n}, d.mixed() && of == d.target, d.document.String(), d.at})
				}
			}
		}
		shows.counter = shows.counter || len(shown.counters) > 0
		shows.number = shows.number || len(shown.numbers) > 0
		if len(shown.counters) > 0 && len(shown.numbers) > 0 {
			shows.both, whole = true, append(whole, of)
		}
	}
	return whole, shows
}

// add reads a counter and a number, each along one way, and increments the
// number. Another client increments a thing at a moment of the read. Add
// returns the answer of the read and which parts of any thing it showed.
func (a *adders) add(chance *rand.Rand, w ways, at moment) (answer outcome, shows reached) {
	d, undo := a.prepare(chance, w, at)
	defer undo()
	answer = a.run(chance, d)
	if len(answer.errors) > 0 {
		if !d.own && !answer.tooLong() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.note(answer.errors[0]+" after "+w.mutation(), fmt.Sprint(at, ": ", d.document))
		}
		return answer, shows
	}
	found := a.find(d, answer)
	whole, shows := a.keep(d, found)
	if !shows.both {
		return answer, shows
	}
	of := whole[chance.IntN(len(whole))]
	if slices.Contains(whole, d.target) {
		of = d.target
	}
	shown := found[of]
	a.write(chance, of,
		state{shown.counters[chance.IntN(len(shown.counters))], shown.numbers[chance.IntN(len(shown.numbers))]})
	return answer, shows
}

// checkOwn compares the payload of a mutation with the state that the mutation
// made.
func (a *adders) checkOwn(d *attempt, shown counted) {
	wanted := d.after()
	if isOwn(d.counter) && len(shown.counters) > 0 && !slices.Equal(shown.counters, []int{wanted.counter}) ||
		isOwn(d.number) && len(shown.numbers) > 0 && !slices.Equal(shown.numbers, []int{wanted.n}) {
		a.note(fmt.Sprintf("the payload of %s is not as it made the thing: own counter %v, own number %v",
			d.mutation(), isOwn(d.counter), isOwn(d.number)),
			fmt.Sprintf("another write %v: %v became %v, shown are %v and %v: %s", d.at, wanted.counter, wanted.n,
				shown.counters, shown.numbers, d.document))
	}
}

// reached tells which parts of a thing an answer shows.
type reached struct{ counter, number, both bool }

// distinct returns the sorted distinct numbers of a list.
func distinct(numbers []int) []int {
	out := slices.Sorted(slices.Values(numbers))
	return slices.Compact(out)
}

// try adds along a pair of ways and returns the answers. The first run is
// undisturbed. Then another write happens before a statement or a use of the
// context, for a payload before one of the later ones.
func (a *adders) try(chance *rand.Rand, w ways) (shows reached) {
	var answer outcome
	for tries := 0; tries < 5 && !shows.both; tries++ {
		var now reached
		answer, now = a.add(chance, w, never)
		shows = reached{shows.counter || now.counter, shows.number || now.number, now.both}
	}
	if !shows.both || answer.statements == 0 {
		return shows
	}
	a.add(chance, w, moment{at: chance.IntN(answer.statements)})
	if !a.facet.writesBy(w.mutation()) {
		a.add(chance, w, moment{use: true, at: chance.IntN(answer.uses)})
		return shows
	}
	for range 3 {
		a.add(chance, w, moment{use: true, at: answer.uses/2 + chance.IntN(answer.uses/2+1)})
	}
	return shows
}

// result counts the writes of a facet by outcome.
type result struct {
	attempts, accepted, lost, seen, torn int
	examples                             []string
}

// add adds the result of another facet.
func (r *result) add(other result) {
	r.attempts, r.accepted, r.lost = r.attempts+other.attempts, r.accepted+other.accepted, r.lost+other.lost
	r.seen, r.torn = r.seen+other.seen, r.torn+other.torn
}

// end compares the numbers of things with the writes, and the states seen with
// the history.
func (a *adders) end() result {
	out := result{attempts: a.attempts, accepted: a.accepted, seen: a.states}
	// A server that did not write last learns of the write soon.
	patience.Until(a.t, 5*time.Second, func() bool {
		out.lost = a.accepted
		for index := range thingsOfFamily {
			out.lost -= a.read(thing{a.family, index}).n - 1
		}
		return out.lost == 0
	})
	shown := map[string]bool{}
	for _, s := range a.seen {
		n, ok := a.history[s.thing][s.state.counter]
		if ok && (n == s.state.n || s.later && s.state.n > n) {
			continue
		}
		out.torn++
		if !shown[s.query] && len(out.examples) < 2 {
			shown[s.query] = true
			out.examples = append(out.examples,
				fmt.Sprintf("another write %v, %v: the counter %d had the number %d, shown is %d: %s",
					s.moment, s.thing, s.state.counter, n, s.state.n, s.query))
		}
	}
	return out
}
