package resident_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resident"
)

// thing is a resource: its items by key, and its tags.
type thing struct {
	items map[string]string
	tags  map[string]string // names by folded name
}

// created returns the time of creation. Some things have the same time, some
// are old.
func (of thing) created() int64 {
	own, _ := strconv.ParseInt(of.items["own"], 10, 64)
	return own/10 - 50
}

// rowOf returns the row id of a resource.
func rowOf(uuid string) int64 {
	number, _ := strconv.ParseInt(uuid, 10, 64)
	return 1000 - number
}

// built returns the things as resources.
func built(things map[string]thing) *resident.Resources {
	b := resident.NewBuilder()
	for _, uuid := range slices.Sorted(maps.Keys(things)) {
		number := b.Resource(uuid, rowOf(uuid), things[uuid].created(), 0)
		for key, value := range things[uuid].items {
			b.Value(number, resident.Column{Kind: resident.OfItem, Key: key}, value)
		}
		b.Value(number, resident.Column{Kind: resident.OfName}, things[uuid].items["own"])
		for folded, name := range things[uuid].tags {
			b.Value(number, resident.Column{Kind: resident.OfTag}, resident.TagValue(folded, name))
		}
	}
	return b.Resources()
}

func randomThing(chance *rand.Rand) thing {
	of := thing{map[string]string{}, map[string]string{}}
	for _, key := range []string{"a", "b", "own"} {
		switch {
		case key == "own":
			of.items[key] = fmt.Sprint(chance.IntN(1000))
		case chance.IntN(2) == 0:
			of.items[key] = []string{"", "x", "xy", "z"}[chance.IntN(4)]
		}
	}
	if chance.IntN(2) == 0 {
		of.tags["t"] = []string{"T", "t"}[chance.IntN(2)]
	}
	return of
}

// condition returns a random condition on the items of things.
func condition(chance *rand.Rand, depth int) resource.Condition {
	kind := []resource.ConditionKind{resource.ConditionMetadata, resource.ConditionAll, resource.ConditionAny,
		resource.ConditionNot, resource.ConditionNever}[chance.IntN(5)]
	switch {
	case depth == 0 || kind == resource.ConditionMetadata:
		test := resource.Test{Name: []string{"a", "b", "none"}[chance.IntN(3)],
			Operator: []resource.Operator{resource.Exists, resource.Equals, resource.HasPrefix,
				resource.Has}[chance.IntN(4)], Operands: []string{[]string{"", "x", "xy"}[chance.IntN(3)]}}
		return resource.Condition{Kind: resource.ConditionMetadata, Test: test}
	case kind == resource.ConditionNot:
		return resource.Condition{Kind: kind, Members: []resource.Condition{condition(chance, depth-1)}}
	}
	return resource.Condition{Kind: kind,
		Members: []resource.Condition{condition(chance, depth-1), condition(chance, depth-1)}}
}

// holds evaluates a condition on a thing directly.
func (of thing) holds(c resource.Condition) bool {
	switch c.Kind {
	case resource.ConditionAll:
		return of.holds(c.Members[0]) && of.holds(c.Members[1])
	case resource.ConditionAny:
		return of.holds(c.Members[0]) || of.holds(c.Members[1])
	case resource.ConditionNot:
		return !of.holds(c.Members[0])
	case resource.ConditionNever:
		return false
	}
	value, has := of.items[c.Test.Name]
	switch c.Test.Operator {
	case resource.Equals:
		return has && value == c.Test.Operands[0]
	case resource.HasPrefix:
		return has && strings.HasPrefix(value, c.Test.Operands[0])
	case resource.Has:
		return has && strings.Contains(value, c.Test.Operands[0])
	}
	return has
}

// TestResourcesCountWhatThereIs compares counts with an evaluation of every
// single thing, through random changes of few things and of many. Earlier
// Resources must not change.
func TestResourcesCountWhatThereIs(t *testing.T) {
	chance := rand.New(rand.NewPCG(15, 4))
	things := map[string]thing{}
	held := built(things)
	uuid := func() string { return fmt.Sprintf("%04d", chance.IntN(400)) }
	for round := range 600 {
		before, count := held, held.Count()
		changed, named := map[string]thing{}, map[string]bool{}
		for range []int{1, 1, 3, 100}[chance.IntN(4)] {
			name := uuid()
			named[name] = true
			delete(things, name)
			delete(changed, name)
			if chance.IntN(3) > 0 {
				things[name] = randomThing(chance)
				changed[name] = things[name]
			}
		}
		held = held.With(slices.Collect(maps.Keys(named)), built(changed))
		if before.Count() != count || held.Count() != len(things) {
			t.Fatalf("round %d: %d before, then %d; now %d of %d", round, count,
				before.Count(), held.Count(), len(things))
		}
		c := condition(chance, 2)
		clause := resident.Compile(c, nil)
		compareCounts(t, held, things, c, clause)
		compareFirst(t, chance, held, things, c, clause)
	}
}

// counted is the result of counting the things that meet a condition one by
// one.
type counted struct {
	matching     []int64 // row ids
	values, keys map[string]int
	tag          resident.Count // the tag "t" in its first spelling
}

func countOf(things map[string]thing, c resource.Condition) counted {
	n := counted{values: map[string]int{}, keys: map[string]int{}}
	for uuid, of := range things {
		if !of.holds(c) {
			continue
		}
		n.matching = append(n.matching, rowOf(uuid))
		n.values[of.items["own"]]++
		for key := range of.items {
			n.keys[key]++
		}
		if name, has := of.tags["t"]; has {
			if n.tag.Count == 0 || name < n.tag.Value {
				n.tag.Value = name
			}
			n.tag.Group = "t"
			n.tag.Count++
		}
	}
	return n
}

func compareCounts(t *testing.T, held *resident.Resources, things map[string]thing,
	c resource.Condition, clause resident.Clause) {
	t.Helper()
	n, clauses := countOf(things, c), []resident.Clause{clause}
	if got := held.CountMatching(clauses); got != len(n.matching) {
		t.Fatalf("%+v: %d, want %d", c, got, len(n.matching))
	}
	rows := held.Matching(clauses)
	slices.Sort(rows)
	if slices.Sort(n.matching); !slices.Equal(rows, n.matching) {
		t.Fatalf("%+v: %v, want %v", c, rows, n.matching)
	}
	considered, passing, remaining := held.Explain(resident.All(), []resident.Clause{clause, resident.Not(clause)})
	if want := []int{len(n.matching), len(things) - len(n.matching)}; considered != len(things) ||
		!slices.Equal(passing, want) || !slices.Equal(remaining, []int{len(n.matching), 0}) {
		t.Fatalf("%+v: of %d %v pass and %v remain, want %v", c, considered, passing, remaining, want)
	}
	for what, of := range map[string]struct {
		got  []resident.Count
		want map[string]int
	}{
		"values": {held.CountValues(resident.Column{Kind: resident.OfItem, Key: "own"}, clauses, "", 5), n.values},
		"keys":   {held.CountKeys(clauses, "", 5), n.keys},
	} {
		if want := firstOf(of.want, 5); !slices.Equal(of.got, want) {
			t.Fatalf("%s of %+v: %v, want %v", what, c, of.got, want)
		}
	}
	got := held.CountValues(resident.Column{Kind: resident.OfTag}, clauses, "", 5)
	if len(got) == 0 && n.tag.Count > 0 || len(got) > 0 && got[0] != n.tag {
		t.Fatalf("tags of %+v: %v, want %v", c, got, n.tag)
	}
}

// compareFirst compares a page in the order of names, or of their sort keys,
// with the sorted list of all things.
func compareFirst(t *testing.T, chance *rand.Rand, held *resident.Resources, things map[string]thing,
	c resource.Condition, clause resident.Clause) {
	t.Helper()
	order, name := resident.Order{In: resident.Column{Kind: resident.OfName}, Descending: chance.IntN(2) == 0},
		func(value string) string { return value }
	switch chance.IntN(3) {
	case 0:
		order.In.Kind = resident.Created
		name = func(value string) string {
			return resident.TimeKey(thing{items: map[string]string{"own": value}}.created())
		}
	case 1:
		name = func(value string) string { // a distinct one for each
			bytes := []byte(value)
			slices.Reverse(bytes)
			return string(bytes)
		}
		order.Name = name
	}
	type at struct{ key, uuid string }
	var all []at
	for uuid, of := range things {
		all = append(all, at{name(of.items["own"]), uuid})
	}
	compare := func(a, b at) int { return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.uuid, b.uuid)) }
	slices.SortFunc(all, compare)
	if order.Descending {
		slices.Reverse(all)
	}
	for range chance.IntN(3) {
		if len(all) > 0 {
			bound := all[chance.IntN(len(all))]
			order.Bounds = append(order.Bounds,
				resident.Bound{IsBelow: chance.IntN(2) == 0, Key: bound.key, UUID: bound.uuid})
		}
	}
	var want []int64
	for _, of := range all {
		isWithin := !slices.ContainsFunc(order.Bounds, func(bound resident.Bound) bool {
			compared := compare(of, at{bound.Key, bound.UUID})
			return bound.IsBelow && compared >= 0 || !bound.IsBelow && compared <= 0
		})
		if isWithin && things[of.uuid].holds(c) {
			want = append(want, rowOf(of.uuid))
		}
	}
	most := chance.IntN(20)
	if got := held.First([]resident.Clause{clause}, order, most); !slices.Equal(got, want[:min(most, len(want))]) {
		t.Fatalf("%d of %+v: %v, want %v", most, order, got, want)
	}
}

func firstOf(counts map[string]int, first int) []resident.Count {
	var all []resident.Count
	for value, count := range counts {
		all = append(all, resident.Count{Group: value, Value: value, Count: count})
	}
	slices.SortFunc(all, func(a, b resident.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	return all[:min(first, len(all))]
}
