package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// links is the number of writes in one round of a chain. The first links each
// write one namespace of a family. The last three write all its resources, all
// its providers, and all its consumers.
const links = thingsOfFamily + 3

// chain is a family that one client writes, link after link, round after round.
// Its state is the number of writes so far.
type chain struct {
	mu    sync.Mutex
	begun []int // when each write began, by the clock of all chains
	ended []int
}

// numberAt returns the number that a link has written at a state. It is 1
// before the first write.
func numberAt(state, link int) int { return 1 + (state+links-1-link)/links }

// seenNumber is a number that an answer showed.
type seenNumber struct{ family, link, n int }

// instantOf returns a time between first and last at which all numbers seen
// were current. It returns false if there is none. Begun and ended are the
// times of writes, by chain. A state may be current from the beginning of its
// own write to the end of the next.
func instantOf(begun, ended [][]int, all []seenNumber, first, last int) (int, bool) {
	for at := first; at <= last; at++ {
		explained := true
		for family := range begun {
			possible := false
			for state := 0; state <= len(begun[family]) && !possible; state++ {
				if state > 0 && begun[family][state-1] > at {
					break
				}
				if state < len(ended[family]) && ended[family][state] < at {
					continue
				}
				possible = !slices.ContainsFunc(all, func(s seenNumber) bool {
					return s.family == family && numberAt(state, s.link) != s.n
				})
			}
			explained = explained && possible
		}
		if explained {
			return at, true
		}
	}
	return 0, false
}

// TestInstantsOfChains checks instantOf with numbers of one instant, of two
// instants, and of another time.
func TestInstantsOfChains(t *testing.T) {
	t.Parallel()
	// Chain 0 writes at 10 to 11, 20 to 21, ..., chain 1 from 15 to 25, 35 to
	// 45, ...
	begun, ended := [][]int{{10, 20, 30, 40, 50, 60, 70}, {15, 35, 55}},
		[][]int{{11, 21, 31, 41, 51, 61, 71}, {25, 45, 65}}
	for _, one := range []struct {
		name        string
		seen        []seenNumber
		first, last int
		ok          bool
	}{
		{"nothing written", []seenNumber{{0, 0, 1}, {0, 1, 1}, {1, 0, 1}}, 0, 9, true},
		{"the first of two links", []seenNumber{{0, 0, 2}, {0, 1, 1}}, 0, 80, true},
		{"the second without the first", []seenNumber{{0, 0, 1}, {0, 1, 2}}, 0, 80, false},
		{"the second round", []seenNumber{{0, 0, 3}, {0, 5, 2}}, 0, 80, true},
		{"the second round before the first", []seenNumber{{0, 0, 3}, {0, 5, 1}}, 0, 80, false},
		{"too old", []seenNumber{{0, 0, 1}}, 12, 80, false},
		{"of the future", []seenNumber{{0, 0, 2}}, 0, 9, false},
		{"two chains at once", []seenNumber{{0, 1, 2}, {1, 0, 1}}, 0, 80, true},
		{"two chains, a write still going on", []seenNumber{{0, 0, 2}, {0, 1, 1}, {1, 0, 2}}, 0, 80, true},
		{"two chains apart", []seenNumber{{0, 0, 1}, {1, 1, 2}}, 0, 80, false},
		{"of no state", []seenNumber{{0, 0, 9}}, 0, 80, false},
	} {
		if at, ok := instantOf(begun, ended, one.seen, one.first, one.last); ok != one.ok {
			t.Errorf("%s: found %v at %d, want %v", one.name, ok, at, one.ok)
		}
	}
}

// chains are the families that clients write concurrently.
type chains struct {
	t         *testing.T
	executors []*graph.Executor
	facets    map[string]facet
	families  []*chain

	mu    sync.Mutex
	clock int
}

const chainsAtOnce = 3

// now advances the clock and returns the time.
func (c *chains) now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	return c.clock
}

// written returns the number of writes that have ended.
func (c *chains) written() (writes int) {
	for _, family := range c.families {
		family.mu.Lock()
		writes += len(family.ended)
		family.mu.Unlock()
	}
	return writes
}

// readsOn reports whether the test needs another answer: until it has enough
// answers and, if possible, enough writes during them.
func (c *chains) readsOn(answers int) bool {
	return answers < chainAnswers || answers < 10*chainAnswers && c.written() < 10*links
}

// awaitWrites waits until some writes have begun and ended, up to a limit.
func (c *chains) awaitWrites() {
	began := c.now()
	for deadline := time.Now().Add(longestInterruption); c.now() < began+4*chainsAtOnce &&
		time.Now().Before(deadline); began++ {
		time.Sleep(time.Millisecond)
	}
}

// write returns the mutation that writes a number for a link.
func (c *chains) write(family, link, n int) string {
	things := make([]thing, thingsOfFamily)
	for index := range things {
		things[index] = thing{family, index}
	}
	each := func(text func(thing) string) string {
		var out []string
		for _, of := range things {
			out = append(out, text(of))
		}
		return strings.Join(out, ", ")
	}
	switch link - thingsOfFamily {
	case 0:
		return `setMetadataOnResources(input: {items: [` + each(func(of thing) string {
			return fmt.Sprintf(`{resource: %q, items: [{key: "shared", value: %q}]}`, of.resource(), of.text(n))
		}) + `]})`
	case 1:
		return `reshape(input: {inventories: [` + each(func(of thing) string {
			return fmt.Sprintf(`{provider: %q, inventories: [{resourceClass: %q, total: %d}]}`,
				of.provider(), of.class(), baseTotal+n)
		}) + `]})`
	case 2:
		return `setAllocations(input: {consumers: [` +
			each(func(of thing) string { return consumerClaim(of, n-1, n, 1) }) + `]})`
	}
	return fmt.Sprintf(`updateProperty(input: {namespace: %q, name: "shared", maximum: %d})`, things[link].mark(), n)
}

// keepWriting writes a chain until done is closed.
func (c *chains) keepWriting(family int, done chan struct{}) {
	of := c.families[family]
	chance := rand.New(rand.NewPCG(uint64(family), 23))
	for state := 0; ; state++ {
		select {
		case <-done:
			return
		default:
		}
		link := state % links
		of.mu.Lock()
		of.begun = append(of.begun, c.now())
		of.mu.Unlock()
		query := "mutation { " + c.write(family, link, numberAt(state+1, link)) + " { __typename } }"
		if answer := interrupted(c.executors[chance.IntN(len(c.executors))], query,
			never, nil); len(answer.errors) > 0 {
			c.t.Errorf("%v: %s", answer.errors, query)
			return
		}
		of.mu.Lock()
		of.ended = append(of.ended, c.now())
		of.mu.Unlock()
		time.Sleep(time.Duration(chance.IntN(4)) * time.Millisecond)
	}
}

// linkFacets are the facets that show the writes of links. The number does not
// follow from the other parts that they show.
var linkFacets = map[string][]string{"maximum": {"maximum", "jsonSchema", "exportNamespaces"},
	"item": {"value", "values"}, "total": {"total", "capacity"}, "used": {"used", "free"}}

// linkOf returns the link that writes the number of a thing in a facet.
func linkOf(facet string, of thing) int {
	switch facet {
	case "item":
		return thingsOfFamily
	case "total":
		return thingsOfFamily + 1
	case "used":
		return thingsOfFamily + 2
	}
	return of.index
}

// read reads numbers of some families, each along a random path. It returns the
// numbers in the answer.
func (c *chains) read(finder *wayFinder, ids []map[string][]string, chance *rand.Rand,
	executor *graph.Executor) (query string, all []seenNumber, answer outcome, first, last int) {
	documents := map[string]*pathDocument{}
	type asked struct {
		alias, facet string
		shown        shown
		path         path
	}
	var every []asked
	var fields []string
	for i := range 3 + chance.IntN(4) {
		family := chance.IntN(chainsAtOnce)
		name := []string{"maximum", "item", "total", "used"}[chance.IntN(4)]
		among := slices.DeleteFunc(slices.Clone(c.facets[name].shows), func(s shown) bool {
			of := strings.Fields(s.leaves)
			return !slices.Contains(linkFacets[name], of[len(of)-1])
		})
		one := asked{alias: fmt.Sprintf("f%d_%d", family, i), facet: name, shown: among[chance.IntN(len(among))]}
		if one.shown.of != "Query" {
			all := finder.between("Query", one.shown.of)
			one.path = all[min(chance.IntN(len(all)), chance.IntN(len(all)))]
		}
		d := &pathDocument{schema: finder.schema, chance: chance, family: family, ids: ids[family],
			roots: map[string]string{}, things: map[string]thing{}, chosen: map[string]string{}}
		d.show(one.alias, one.path, one.shown.leaves)
		documents[one.alias] = d
		every, fields = append(every, one), append(fields, d.fields...)
	}
	query = "{ " + strings.Join(fields, " ") + " }"
	at := []moment{never, {at: chance.IntN(10)}, {use: true, at: chance.IntN(100)}}[chance.IntN(3)]
	first = c.now()
	answer = interrupted(executor, query, at, c.awaitWrites)
	last = c.now()
	for _, one := range every {
		for _, object := range documents[one.alias].objectsAt(answer.data, one.alias, one.path, one.shown.leaves) {
			for _, found := range one.shown.read(object) {
				if found.thing.index < thingsOfFamily && found.thing.family < chainsAtOnce {
					all = append(all, seenNumber{found.thing.family, linkOf(one.facet, found.thing), found.n})
				}
			}
		}
	}
	return query, all, answer, first, last
}

// chainAnswers is the number of answers that the test reads.
var chainAnswers = soak.Rounds(150)

// TestWritersAreSeenInTheirOrder has several clients write chains concurrently,
// on one server or two. Each client waits for a write before it sends the next.
// The test reads some of the written numbers along random paths, across
// definitions, resources, providers and allocations. Everything in an answer
// must have been current at one instant between the request and its end.
func TestWritersAreSeenInTheirOrder(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		seeInOrder(t, url, 1)
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		seeInOrder(t, storetest.Postgres(t), 2)
	})
}

func seeInOrder(t *testing.T, url string, servers int) {
	executors := openFamilies(t, url, servers, chainsAtOnce)
	finder := &wayFinder{schema: schemaOf()}
	c := &chains{t: t, executors: executors, facets: map[string]facet{}}
	for _, of := range facetsOf(nil) {
		c.facets[of.name] = of
	}
	var ids []map[string][]string
	for family := range chainsAtOnce {
		c.families = append(c.families, &chain{})
		ids = append(ids, idsOfFamily(t, executors[0], finder.schema, family))
	}
	done := make(chan struct{})
	var writers sync.WaitGroup
	for family := range c.families {
		writers.Go(func() { c.keepWriting(family, done) })
	}
	type answered struct {
		query       string
		seen        []seenNumber
		first, last int
	}
	var answers []answered
	chance := rand.New(rand.NewPCG(soak.Seed(t), 29))
	numbers := 0
	for n := 0; c.readsOn(n); n++ {
		query, seen, answer, first, last := c.read(finder, ids, chance, executors[chance.IntN(servers)])
		if len(answer.errors) > 0 {
			t.Errorf("%v: %s", answer.errors, query)
		}
		if answer.statements == 0 && servers > 1 {
			first = 0 // from memory, which may miss a write of the other server
		}
		answers, numbers = append(answers, answered{query, seen, first, last}), numbers+len(seen)
	}
	close(done)
	writers.Wait()
	var begun, ended [][]int
	writes := 0
	for _, family := range c.families {
		begun, ended = append(begun, family.begun), append(ended, family.ended)
		writes += len(family.ended)
	}
	torn := 0
	for _, a := range answers {
		if _, ok := instantOf(begun, ended, a.seen, a.first, a.last); !ok {
			if torn++; torn <= 3 {
				slices.SortFunc(a.seen, func(x, y seenNumber) int { return (x.family-y.family)*100 + x.link - y.link })
				t.Errorf("of no single instant: (family, link, number) %v: %s", slices.Compact(a.seen), a.query)
			}
		}
	}
	t.Logf("%d answers with %d numbers, %d of them of no single instant; %d writes",
		len(answers), numbers, torn, writes)
	if numbers < 4*chainAnswers || writes < 10*links {
		t.Error("too few")
	}
}
