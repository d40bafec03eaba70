package graph_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// ways are how one answer shows a counter and a number of the same thing: by two
// paths that share their first steps, or none.
type ways struct {
	counter, number path
	shared          int // steps
	shown           shown
	numberFirst     bool   // in the document
	beside          string // another field, before these
}

// mutation returns the mutation whose payload shows both, "" for a query.
func (w ways) mutation() string {
	if len(w.counter) > 0 && w.counter[0].of == "Mutation" {
		return w.counter[0].field
	}
	return ""
}

// aliases returns the aliases of the two paths.
func (w ways) aliases() (counter, number string) {
	if w.shared > 0 {
		return "a", "a"
	}
	return "a", "b"
}

// wayFinder draws ways at random.
type wayFinder struct {
	schema *ast.Schema
	mu     sync.Mutex
	known  map[[2]string][]path
}

// between returns the paths from a type to another one.
func (f *wayFinder) between(from, to string) []path {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.known[[2]string{from, to}]
	if !ok {
		found = pathsTo(f.schema, from, to)
		slices.SortStableFunc(found, func(a, b path) int { return len(a) - len(b) })
		f.known[[2]string{from, to}] = found
	}
	return found
}

// draw returns how an answer may show a counter and a number of a facet: the
// number on the way to the counter, or both by paths that part somewhere.
func (f *wayFinder) draw(chance *rand.Rand, of facet) ways {
	for {
		w, ok := ways{}, false
		switch chance.IntN(6) {
		case 0:
			w, ok = f.drawOwn(chance, of)
		case 1:
			w, ok = f.drawAfter(chance, of)
		default:
			w, ok = f.drawBelow(chance, of, nil, "Query")
		}
		if !ok {
			continue
		}
		if chance.IntN(6) == 0 {
			w.beside = `beside: __schema { queryType { name } }`
			if w.mutation() != "" {
				w.beside = `beside: updateResourceType(input: {name: "${type}", protected: true}) { resourceType { namespaces { nodes { revision tags { name } } }
					resources { nodes { revision metadata { value } provider { generation allocations { nodes { used consumer { generation } } } } } } } }`
			}
		}
		return w
	}
}

// drawOwn draws from the payloads of the mutations that write the number.
func (f *wayFinder) drawOwn(chance *rand.Rand, of facet) (ways, bool) {
	write := of.writes[chance.IntN(len(of.writes))].mutation
	all := slices.DeleteFunc(slices.Clone(f.between("Mutation", of.of)), func(p path) bool { return p[0].field != write })
	begin := all[chance.IntN(len(all))][:1]
	w, ok := f.drawBelow(chance, of, begin, begin.end(""))
	return w, ok && len(w.number) > 1 && (isOwn(w.counter) || !isOwn(w.number))
}

// drawAfter draws from the payloads of mutations that write other things, on
// ways that go on to one of the same type before they go on to the facet's.
func (f *wayFinder) drawAfter(chance *rand.Rand, of facet) (ways, bool) {
	roots := steps(f.schema, "Mutation")
	root := roots[chance.IntN(len(roots))]
	if _, ok := touches[root.field]; !ok || of.writesBy(root.field) {
		return ways{}, false
	}
	below := steps(f.schema, root.on)
	begin := path{root, below[chance.IntN(len(below))]}
	around := f.between(begin.end(""), begin.end(""))
	short := min(chance.IntN(len(around)), chance.IntN(len(around)), chance.IntN(len(around)))
	begin = slices.Concat(begin, around[short])
	return f.drawBelow(chance, of, begin, begin.end(""))
}

// drawBelow draws paths that begin with some steps, or in a type.
func (f *wayFinder) drawBelow(chance *rand.Rand, of facet, begin path, from string) (ways, bool) {
	counters := f.between(from, of.of)
	if len(counters) == 0 {
		return ways{}, false
	}
	counter := counters[chance.IntN(len(counters))]
	w := ways{counter: slices.Concat(begin, counter), shown: of.shows[chance.IntN(len(of.shows))], numberFirst: chance.IntN(2) == 0}
	if w.shown.of == "Query" {
		return w, from == "Query"
	}
	w.shared = len(begin)
	above := slices.IndexFunc(counter, func(s step) bool { return s.on == w.shown.of }) + 1
	switch chance.IntN(3) {
	case 0:
		if passes := func(p path) bool { return slices.ContainsFunc(p, func(s step) bool { return s.on == w.shown.of }) }; above == 0 && slices.ContainsFunc(counters, passes) {
			return ways{}, false
		}
		w.shared += above
	case 1:
		if n := len(counter); n > 0 {
			w.shared += n - min(chance.IntN(n), chance.IntN(n))
		}
	}
	rest := f.between(w.counter[:w.shared].end("Query"), w.shown.of)
	if len(rest) == 0 {
		return ways{}, false
	}
	at := min(chance.IntN(len(rest)), chance.IntN(len(rest)))
	if above > 0 && w.shared == len(begin)+above {
		at = 0
	}
	w.number = slices.Concat(w.counter[:w.shared], rest[at])
	return w, len(w.number) > 0
}

// coverage is which steps were taken by ways that reached a thing.
type coverage struct {
	mu      sync.Mutex
	reached map[string]bool
	tried   map[string]int // steps of ways that reached nothing, so far
}

// stepsOf returns what a way is to cover: every step on the way to the counters
// of a type, and the last one on the way to what shows numbers.
func stepsOf(of facet, w ways) (counter, number []string) {
	name := func(kind string, p path) (out []string) {
		for _, s := range p {
			out = append(out, fmt.Sprintf("%s: %s.%s %s", kind, s.of, s.field, s.on))
		}
		return out
	}
	if mutation := w.mutation(); mutation != "" {
		if of.writesBy(mutation) {
			kind := fmt.Sprintf("%s in the payload of %s, own: counter %t, number %t", of.name, mutation, isOwn(w.counter), isOwn(w.number))
			return []string{kind}, []string{kind + " " + w.shown.of}
		}
		return []string{"a counter in the payload of " + mutation}, []string{w.shown.of + " in a payload"}
	}
	last := w.number[max(0, len(w.number)-1):]
	return name("counter of "+of.of, w.counter), append(name("number in "+w.shown.of, last), of.name+" in "+w.shown.of+" "+w.shown.leaves)
}

// mostTries is how many ways that take a step are tried in vain.
const mostTries = 3

// wants reports whether any of some steps was not reached.
func (c *coverage) wants(steps []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(steps, func(step string) bool { return !c.reached[step] && c.tried[step] < mostTries })
}

// note notes the steps of a path that was tried.
func (c *coverage) note(steps []string, reached bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, step := range steps {
		if reached {
			c.reached[step] = true
		} else {
			c.tried[step]++
		}
	}
}

// noteBoth notes the steps of a way, which may have reached nothing by one of its
// paths alone.
func (c *coverage) noteBoth(counter, number []string, shows reached) {
	if shows.both || !shows.counter || shows.number {
		c.note(counter, shows.both)
	}
	if shows.both || !shows.number || shows.counter {
		c.note(number, shows.both)
	}
}

// has reports whether a step was reached.
func (c *coverage) has(step string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached[step]
}

// missed returns the steps with one of some beginnings that no way reached a
// thing by, sorted.
func (c *coverage) missed(beginnings ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for step := range c.tried {
		if !c.reached[step] && slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(step, b) }) {
			out = append(out, step)
		}
	}
	slices.Sort(out)
	return out
}

// state is what a thing has at an instant.
type state struct{ counter, n int }

// adders are the clients that add to the numbers of one facet in one family.
type adders struct {
	t         *testing.T
	facet     facet
	family    int
	schema    *ast.Schema
	ids       map[string][]string
	executors []*graph.Executor

	touching sync.Mutex // held while what touches write is changed

	mu       sync.Mutex
	turn     int
	now      map[thing]state       // as the last accepted write left it
	history  map[thing]map[int]int // numbers by counter, as they were written
	seen     []seen                // but for what is in the history
	states   int                   // that were seen
	attempts int
	accepted int
	n        int                 // of the last document
	errors   map[string][]string // what went wrong, with examples
}

// seen is a state that an answer showed.
type seen struct {
	thing  thing
	state  state
	later  bool // the number may be later than the counter
	query  string
	moment moment // of another write
}

// executor returns the executor of one server after the other.
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

// read reads the state of a thing that nobody writes.
func (a *adders) read(of thing) state {
	look := map[string]string{"Consumer": `consumer(uuid: "${consumer}")`, "ResourceProvider": `resourceProvider(uuid: "${provider}")`,
		"Namespace": `namespace(name: "${mark}")`, "Resource": `resource(uuid: "${resource}")`}[a.facet.of]
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

// identity is what to select of the types with a counter, to know which thing it
// is.
var identity = map[string]string{"Consumer": "uuid", "ResourceProvider": "uuid", "Namespace": "name", "Resource": "uuid"}

// thingOf returns the thing that an object is.
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

// write writes a number of a thing that must have a counter.
func (a *adders) write(chance *rand.Rand, of thing, base state) {
	write := a.facet.writes[chance.IntN(len(a.facet.writes))]
	answer := interrupted(a.executor(), "mutation { "+write.field(of, base.counter, base.n+1)+" { __typename } }", never, nil)
	a.wrote(write, of, base, answer)
}

// wrote notes a write.
func (a *adders) wrote(write numberWrite, of thing, base state, answer outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempts++
	switch {
	case len(answer.errors) == 0:
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

// attempt is a document that shows a counter and a number by some ways.
type attempt struct {
	ways
	document *pathDocument
	target   thing
	base     state       // of the target, before
	own      bool        // whether the document writes the number of the target
	write    numberWrite // by which it does
	at       moment      // of another write
}

// after returns what the target is after the document's own write.
func (d *attempt) after() state { return state{d.base.counter + d.write.by, d.base.n + 1} }

// mixed reports whether the document shows one of counter and number as its own
// write left it, and the other as it is later.
func (d *attempt) mixed() bool { return d.own && isOwn(d.counter) != isOwn(d.number) }

// prepare makes the document of some ways, and what goes before it. Undo is what
// goes after it.
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
		executor = a.executors[0] // which has what was prepared
	}
	answer := interrupted(executor, d.document.String(), d.at, func() {
		a.mu.Lock()
		base := a.now[d.target]
		a.mu.Unlock()
		if d.own {
			base = d.after() // which is there once the document has written
		}
		a.write(other, d.target, base)
	})
	if d.own {
		a.wrote(d.write, d.target, d.base, answer)
	}
	return answer
}

// counted are the counters and the numbers that an answer shows of a thing.
type counted struct{ counters, numbers []int }

// find returns what the answer shows of the things.
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
	// What the mutation itself changed is shown as it left it, what is beyond as it
	// is later: a counter may come with a later number, never the other way around.
	if d.mixed() && isOwn(d.number) {
		delete(found, d.target)
	}
	for of, shown := range found {
		found[of] = counted{distinct(shown.counters), distinct(shown.numbers)}
	}
	return found
}

// keep notes what the answer shows, and returns of which things it shows both.
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
					a.seen = append(a.seen, seen{of, state{counter, n}, d.mixed() && of == d.target, d.document.String(), d.at})
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

// add reads a counter and a number by some ways, and writes one more. At a
// moment of the read, another client adds 1 to a thing. It returns the answer of
// the read, and what of any thing that showed.
func (a *adders) add(chance *rand.Rand, w ways, at moment) (answer outcome, shows reached) {
	d, undo := a.prepare(chance, w, at)
	defer undo()
	answer = a.run(chance, d)
	if len(answer.errors) > 0 {
		if !d.own {
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
	a.write(chance, of, state{shown.counters[chance.IntN(len(shown.counters))], shown.numbers[chance.IntN(len(shown.numbers))]})
	return answer, shows
}

// checkOwn compares what a payload shows of the thing that its mutation changed
// with what the mutation made of it.
func (a *adders) checkOwn(d *attempt, shown counted) {
	wanted := d.after()
	if isOwn(d.counter) && len(shown.counters) > 0 && !slices.Equal(shown.counters, []int{wanted.counter}) ||
		isOwn(d.number) && len(shown.numbers) > 0 && !slices.Equal(shown.numbers, []int{wanted.n}) {
		a.note(fmt.Sprintf("the payload of %s is not as it made the thing: own counter %v, own number %v", d.mutation(), isOwn(d.counter), isOwn(d.number)),
			fmt.Sprintf("another write %v: %v became %v, shown are %v and %v: %s", d.at, wanted.counter, wanted.n, shown.counters, shown.numbers, d.document))
	}
}

// reached is what of a thing an answer shows.
type reached struct{ counter, number, both bool }

// distinct returns the numbers of a list, sorted, each once.
func distinct(numbers []int) []int {
	out := slices.Sorted(slices.Values(numbers))
	return slices.Compact(out)
}

// try adds by some ways, and returns what they show: once undisturbed, then with
// another write before one of the statements, and before uses of the context,
// for a payload among the later ones.
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

// result is what came of the writes of a facet.
type result struct {
	attempts, accepted, lost, seen, torn int
	examples                             []string
}

// add adds what came of the writes of another facet.
func (r *result) add(other result) {
	r.attempts, r.accepted, r.lost = r.attempts+other.attempts, r.accepted+other.accepted, r.lost+other.lost
	r.seen, r.torn = r.seen+other.seen, r.torn+other.torn
}

// end compares what things have with what was written, and what was seen with
// the history.
func (a *adders) end() result {
	out := result{attempts: a.attempts, accepted: a.accepted, lost: a.accepted, seen: a.states}
	for index := range thingsOfFamily {
		of := thing{a.family, index}
		out.lost -= a.read(of).n - 1
	}
	shown := map[string]bool{}
	for _, s := range a.seen {
		n, ok := a.history[s.thing][s.state.counter]
		if ok && (n == s.state.n || s.later && s.state.n > n) {
			continue
		}
		out.torn++
		if !shown[s.query] && len(out.examples) < 2 {
			shown[s.query] = true
			out.examples = append(out.examples, fmt.Sprintf("another write %v, %v: the counter %d had the number %d, shown is %d: %s",
				s.moment, s.thing, s.state.counter, n, s.state.n, s.query))
		}
	}
	return out
}

// TestNoUpdateIsLost adds 1 to numbers, of things that have a generation or
// revision, by every path of the schema that shows both: clients read counter
// and number in one answer, while others write, and give back the counter with
// their write. At the end a number is what it was and one more for each write
// that was accepted.
func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	finder := &wayFinder{schema: schemaOf(), known: map[[2]string][]path{}}
	storetest.EachURL(t, func(t *testing.T, url string) {
		loseNoUpdate(t, finder, url, 1)
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		loseNoUpdate(t, finder, storetest.Postgres(t), 2)
	})
}

func loseNoUpdate(t *testing.T, finder *wayFinder, url string, servers int) {
	schema := finder.schema
	facets := facetsOf(nil)
	executors := openFamilies(t, url, servers, len(facets))
	associations := associationsOf(t, executors[0], len(facets))
	facets = facetsOf(func(of thing) string { return associations[of] })
	covered := &coverage{reached: map[string]bool{}, tried: map[string]int{}}
	seed := soakSeed(t)
	var working sync.WaitGroup
	var every []*adders
	for family, of := range facets {
		a := &adders{t: t, facet: of, family: family, schema: schema, executors: executors, ids: idsOfFamily(t, executors[0], schema, family)}
		a.begin()
		every = append(every, a)
		working.Go(func() { a.addByAll(finder, covered, seed, soakCount(t, "CADASTRE_SOAK_WRITES")/len(facets)/databases) })
	}
	working.Wait()
	insist(every, finder, covered, seed)
	var total result
	for _, a := range every {
		out := a.end()
		a.report(out)
		total.add(out)
	}
	t.Logf("%d writes with %d accepted and %d lost; %d states seen, %d of them torn", total.attempts, total.accepted, total.lost, total.seen, total.torn)
	for _, step := range covered.missed("") {
		t.Logf("no number was reached by: %s", step)
	}
	if total.accepted*2 < total.attempts {
		t.Error("less than half of the writes were accepted")
	}
}

// databases are how many a test runs on: SQLite, and PostgreSQL with one server
// and with two.
const databases = 3

// addersAtOnce is how many clients of a family add at once, beside those that
// interrupt them.
const addersAtOnce = 2

// drawn is how many ways are looked at for one of the clients; most take no step
// that was not taken.
const drawn = 1000

// addByAll has the clients of a family add by ways until all steps are covered,
// and further by any until there were as many writes as wanted.
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

// written returns how many writes were attempted.
func (a *adders) written() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.attempts
}

// insist tries further ways that take the steps to counters that were missed, and
// fails for those that no way reaches a thing by.
func insist(every []*adders, finder *wayFinder, covered *coverage, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 31))
	for _, step := range covered.missed("counter of", "a counter in") {
		for range 30_000 {
			if covered.has(step) {
				break
			}
			a := every[chance.IntN(len(every))]
			w := finder.draw(chance, a.facet)
			if counter, number := stepsOf(a.facet, w); slices.Contains(counter, step) {
				covered.noteBoth(counter, number, a.try(chance, w))
			}
		}
		if !covered.has(step) {
			every[0].t.Errorf("not reached: %s", step)
		}
	}
}

// report says what came of the writes.
func (a *adders) report(out result) {
	a.t.Logf("%s of %s: %d accepted of %d", a.facet.name, a.facet.of, out.accepted, out.attempts)
	if out.lost != 0 || out.torn != 0 {
		a.t.Errorf("%s of %s: %d of %d accepted writes are lost; %d of %d states seen are torn:\n%s", a.facet.name, a.facet.of,
			out.lost, out.accepted, out.torn, out.seen, strings.Join(out.examples, "\n"))
	}
	for err, examples := range a.errors {
		a.t.Errorf("%s of %s: %d times %s: %s", a.facet.name, a.facet.of, len(examples), err, examples[0])
	}
}

// note notes something that went wrong.
func (a *adders) note(err, example string) { a.errors[err] = append(a.errors[err], example) }

// soakSeed returns CADASTRE_SOAK_SEED, 1 without it.
func soakSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("CADASTRE_SOAK_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// soakCount returns a number of the environment, 0 without it.
func soakCount(t *testing.T, name string) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// associationsOf returns the ids of the associations with a prefix, by their
// namespaces.
func associationsOf(t *testing.T, executor *graph.Executor, families int) map[thing]string {
	t.Helper()
	found := map[thing]string{}
	for family := range families {
		for index := range thingsOfFamily {
			of := thing{family, index}
			answer := interrupted(executor, fmt.Sprintf(`{ namespace(name: %q) { resourceTypeAssociations { id prefix } } }`, of.mark()), never, nil)
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

// idsOfFamily returns the ids of objects of a family, by type: those at the end
// of a short path.
func idsOfFamily(t *testing.T, executor *graph.Executor, schema *ast.Schema, family int) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, of := range schema.PossibleTypes["Node"] {
		all := simplePaths(schema, "Query", func(to string) bool { return to == of.Name })
		all = slices.DeleteFunc(all, func(p path) bool { return p[0].field == "node" || p[0].field == "nodes" })
		slices.SortStableFunc(all, func(a, b path) int { return len(a) - len(b) })
		for at := range thingsOfFamily * min(len(all), 3) {
			p := all[at/thingsOfFamily]
			d := &pathDocument{schema: schema, chance: rand.New(rand.NewPCG(0, 0)), family: family, roots: map[string]string{},
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

// TestEveryExpectingMutationWritesANumber holds that the mutations that can be
// given a counter are those of the facets and of withoutNumber.
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
		t.Errorf("mutations with a counter in the input are\n%v, facets and withoutNumber have\n%v", expecting(schema), known)
	}
}
