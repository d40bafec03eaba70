package placement

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// holding is an allocation in the form that an evacuation reads.
type holding struct {
	consumer int32 // index in holdings.consumers
	class    int32
	used     int64
	node     *node
}

// holdings are the allocations of consumers, by tree.
type holdings struct {
	world     *World
	consumers []string // uuids, by number
	in        map[*providerTree][]holding
	// several has the holdings of the consumers with allocations in several trees.
	// The holdings of consumer n are several[starts[n]:starts[n+1]].
	several []holding
	starts  []int32
	numbers map[string]int32    // of consumers
	fresh   map[int32][]holding // instead of several, for changed consumers; see move
	moved   map[int32]bool      // consumers that the last replace has changed
	count   int
	needs   map[string]*relocation // by key
	names   map[int32]string       // of classes
	totals  map[int32]wideSum      // capacities, by class
}

// relocation is the amounts that consumers lose and need elsewhere. Consumers
// with equal needs share it. Size orders relocations: it is the sum over the
// classes of the amount divided by the world's capacity of the class.
type relocation struct {
	Request
	amounts []Amount // by class name
	size    float64
	finder  *firstFit // of a survivor, nil before the first use
}

// evacuee is a consumer on trees that are lost.
type evacuee struct {
	consumer string
	number   int32 // of the consumer
	need     *relocation
	lost     []holding // in the order of trees and paths, then by class
	stays    []holding // on other trees
}

// holdingsOf returns allocations as holdings by tree. It leaves out allocations
// on providers that the world does not have.
func (w *World) holdingsOf(allocations []*Allocation) *holdings {
	h := &holdings{world: w, in: map[*providerTree][]holding{}, needs: map[string]*relocation{},
		names: map[int32]string{}, totals: map[int32]wideSum{}}
	h.numbers = make(map[string]int32, len(allocations)/4)
	all := h.holdingsFrom(allocations)
	h.count = len(all)
	for _, held := range all {
		h.in[held.node.tree] = append(h.in[held.node.tree], held)
	}
	h.addSeveral(all)
	h.addTotals()
	return h
}

func (h *holdings) numberOf(consumer string) int32 {
	number, ok := h.numbers[consumer]
	if !ok {
		number = int32(len(h.consumers))
		h.numbers[consumer] = number
		h.consumers = append(h.consumers, consumer)
	}
	return number
}

// addSeveral lists the holdings of the consumers with allocations in several
// trees.
func (h *holdings) addSeveral(all []holding) {
	first, several := make([]*providerTree, len(h.consumers)), make([]bool, len(h.consumers))
	for _, held := range all {
		if first[held.consumer] == nil {
			first[held.consumer] = held.node.tree
		}
		several[held.consumer] = several[held.consumer] || first[held.consumer] != held.node.tree
	}
	h.starts = make([]int32, len(h.consumers)+1)
	for _, held := range all {
		if several[held.consumer] {
			h.starts[held.consumer+1]++
		}
	}
	for i := range h.consumers {
		h.starts[i+1] += h.starts[i]
	}
	h.several = make([]holding, h.starts[len(h.consumers)])
	next := slices.Clone(h.starts)
	for _, held := range all {
		if several[held.consumer] {
			h.several[next[held.consumer]] = held
			next[held.consumer]++
		}
	}
}

// severalOf returns the holdings of a consumer with allocations in several
// trees, an empty list for any other consumer.
func (h *holdings) severalOf(consumer int32) []holding {
	if fresh, ok := h.fresh[consumer]; ok || int(consumer)+1 >= len(h.starts) {
		return fresh
	}
	return h.several[h.starts[consumer]:h.starts[consumer+1]]
}

// elsewhere returns the holdings of a consumer outside trees that are lost.
func (h *holdings) elsewhere(consumer int32, lost map[*providerTree]bool) (stays []holding) {
	for _, held := range h.severalOf(consumer) {
		if !lost[held.node.tree] {
			stays = append(stays, held)
		}
	}
	return stays
}

// replace replaces the holdings in the trees that changed in a newer world of
// the same shape. New holdings refer to the nodes of h.world, whose free units
// may be out of date. Allocations are all allocations of the consumers that
// have any on the changed trees. replace sets moved to the consumers whose
// holdings differ, and returns the trees whose loss now has another effect on
// these consumers.
func (h *holdings) replace(changed map[*providerTree]bool, allocations []*Allocation) map[*providerTree]bool {
	before, after := h.holdingsIn(changed), h.holdingsFrom(allocations)
	slices.SortFunc(before, compareHoldings)
	slices.SortFunc(after, compareHoldings)
	h.moved = map[int32]bool{}
	var gone, come []holding
	differing := map[*providerTree]bool{}
	for len(before)+len(after) > 0 {
		var was, is []holding
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].consumer < after[0].consumer:
			was, before = ofFirst(before)
			is = slices.DeleteFunc(slices.Clone(was), func(held holding) bool { return changed[held.node.tree] })
		case len(before) == 0 || after[0].consumer < before[0].consumer:
			is, after = ofFirst(after)
		default:
			was, before = ofFirst(before)
			is, after = ofFirst(after)
		}
		if !slices.EqualFunc(was, is, holding.is) {
			h.move(was, is, differing)
			gone, come = append(gone, was...), append(come, is...)
		}
	}
	h.exchange(changed, gone, come)
	return differing
}

// is reports whether two holdings of a consumer are the same.
func (held holding) is(other holding) bool {
	return held.node.id == other.node.id && held.class == other.class && held.used == other.used
}

// compareHoldings orders holdings by consumer, provider and class.
func compareHoldings(a, b holding) int {
	return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.node.id, b.node.id), cmp.Compare(a.class, b.class))
}

// ofFirst returns the holdings of the first consumer of a list, and the rest.
func ofFirst(list []holding) (first, others []holding) {
	n := 1
	for n < len(list) && list[n].consumer == list[0].consumer {
		n++
	}
	return list[:n:n], list[n:]
}

// holdingsFrom returns allocations as holdings. It leaves out allocations on
// providers that the world does not have.
func (h *holdings) holdingsFrom(allocations []*Allocation) []holding {
	nodes, classes := map[string]*node{}, map[string]int32{}
	all := make([]holding, 0, len(allocations))
	for _, a := range allocations {
		n, ok := nodes[a.Provider]
		if !ok {
			if id, known := h.world.byUUID.get(a.Provider); known {
				n = h.world.nodes.at(id)
			}
			nodes[a.Provider] = n
		}
		class, ok := classes[a.ResourceClass]
		if !ok {
			class = h.world.classes.lookup(a.ResourceClass)
			classes[a.ResourceClass], h.names[class] = class, a.ResourceClass
		}
		if n != nil {
			all = append(all, holding{h.numberOf(a.Consumer), class, a.Used, n})
		}
	}
	return all
}

// holdingsIn returns all holdings, in any tree, of the consumers that have one
// in the given trees.
func (h *holdings) holdingsIn(trees map[*providerTree]bool) (all []holding) {
	for tree := range trees {
		for _, held := range h.in[tree] {
			several := h.severalOf(held.consumer)
			if len(several) == 0 {
				all = append(all, held)
				continue
			}
			first := slices.IndexFunc(several, func(of holding) bool { return trees[of.node.tree] })
			if held.is(several[first]) {
				all = append(all, several...)
			}
		}
	}
	return all
}

// move notes in moved and fresh that a consumer has other holdings. It adds to
// differing the trees of the holdings that change, and of all the consumer's
// holdings of the same classes: see occupied.
func (h *holdings) move(before, after []holding, differing map[*providerTree]bool) {
	all := slices.Concat(before, after)
	for _, held := range all {
		if slices.ContainsFunc(before, held.is) && slices.ContainsFunc(after, held.is) {
			continue
		}
		for _, other := range all {
			if other.class == held.class {
				differing[other.node.tree] = true
			}
		}
	}
	if h.fresh == nil {
		h.fresh = map[int32][]holding{}
	}
	h.moved[all[0].consumer], h.fresh[all[0].consumer] = true, nil
	if slices.ContainsFunc(after, func(held holding) bool { return held.node.tree != after[0].node.tree }) {
		h.fresh[all[0].consumer] = after
	}
}

// exchange removes all holdings of moved consumers from the changed trees, and
// adds the holdings in come that are on these trees.
func (h *holdings) exchange(changed map[*providerTree]bool, gone, come []holding) {
	left := map[*providerTree]bool{}
	for _, held := range gone {
		if tree := held.node.tree; changed[tree] && !left[tree] {
			left[tree] = true
			h.count -= len(h.in[tree])
			h.in[tree] = slices.DeleteFunc(h.in[tree], func(of holding) bool { return h.moved[of.consumer] })
			h.count += len(h.in[tree])
		}
	}
	for _, held := range come {
		if changed[held.node.tree] {
			h.in[held.node.tree] = append(h.in[held.node.tree], held)
			h.count++
		}
	}
}

// addTotals adds up the capacities of the world by class.
func (h *holdings) addTotals() {
	for id := range h.world.idLimit {
		n := h.world.nodes.at(id)
		if n == nil {
			continue
		}
		for i := range n.inventories {
			total := h.totals[n.inventories[i].class]
			total.add(n.inventories[i].capacity)
			h.totals[n.inventories[i].class] = total
		}
	}
}

// evacuees returns the consumers with allocations in trees that are lost: the
// largest need first, then by uuid.
func (h *holdings) evacuees(trees map[*providerTree]bool) []evacuee {
	var lost []holding
	for tree := range trees {
		lost = append(lost, h.in[tree]...)
	}
	return h.evacueesOf(lost, trees)
}

func (h *holdings) movedEvacuees(trees map[*providerTree]bool) []evacuee {
	var lost []holding
	for tree := range trees {
		for _, held := range h.in[tree] {
			if h.moved[held.consumer] {
				lost = append(lost, held)
			}
		}
	}
	return h.evacueesOf(lost, trees)
}

func (h *holdings) evacueesOf(lost []holding, trees map[*providerTree]bool) []evacuee {
	slices.SortFunc(lost, func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), comparePaths(a.node, b.node),
			cmp.Compare(h.names[a.class], h.names[b.class]))
	})
	var evacuees []evacuee
	for len(lost) > 0 {
		var of []holding
		of, lost = ofFirst(lost)
		evacuees = append(evacuees, evacuee{h.consumers[of[0].consumer], of[0].consumer, h.relocationOf(of), of,
			h.elsewhere(of[0].consumer, trees)})
	}
	slices.SortFunc(evacuees, func(a, b evacuee) int { return compareEvacuees(a.need, b.need, a.consumer, b.consumer) })
	return evacuees
}

// compareEvacuees orders consumers: the largest need first, then by uuid.
func compareEvacuees(a, b *relocation, consumerA, consumerB string) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(consumerA, consumerB))
}

func (h *holdings) relocationOf(lost []holding) *relocation {
	key := make([]byte, 0, 64)
	for i, held := range lost {
		kind := byte(0)
		if held.node.index == 0 {
			kind = 1
		}
		if i > 0 && lost[i-1].node == held.node {
			kind += 2
		}
		key = binary.AppendVarint(binary.AppendVarint(append(key, kind), int64(held.class)), held.used)
	}
	if known := h.needs[string(key)]; known != nil {
		return known
	}
	need := &relocation{Request: h.requestOf(lost)}
	sums := map[string]int64{}
	for _, held := range lost {
		sums[h.names[held.class]] = sumUpTo(sums[h.names[held.class]], held.used)
	}
	need.amounts = sortedAmounts(sums)
	for _, amount := range need.amounts {
		need.size += float64(amount.Amount) / max(1, h.totals[h.world.classes.lookup(amount.ResourceClass)].float64())
	}
	h.needs[string(key)] = need
	return need
}

// sortedAmounts returns the sums of classes as amounts, sorted by class.
func sortedAmounts(sums map[string]int64) []Amount {
	amounts := make([]Amount, 0, len(sums))
	for class, amount := range sums {
		amounts = append(amounts, Amount{class, amount})
	}
	slices.SortFunc(amounts, func(a, b Amount) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) })
	return amounts
}

// requestOf returns the request for lost holdings. The unsuffixed group has the
// amounts on roots. The amounts on each other provider are a suffixed group,
// and so are the amounts on a further root whose classes the unsuffixed group
// already has.
func (h *holdings) requestOf(lost []holding) Request {
	var r Request
	unsuffixed := map[int32]bool{}
	var last *node // of the last group
	for _, held := range lost {
		amount := Amount{h.names[held.class], held.used}
		if held.node.index == 0 && !unsuffixed[held.class] {
			unsuffixed[held.class] = true
			r.Unsuffixed.Resources = append(r.Unsuffixed.Resources, amount)
			continue
		}
		if last != held.node {
			last = held.node
			r.Groups = append(r.Groups, Group{Suffix: fmt.Sprintf("%06d", len(r.Groups))})
		}
		of := &r.Groups[len(r.Groups)-1]
		of.Resources = append(of.Resources, amount)
	}
	return r
}

// occupied returns the inventories that must not serve the evacuee: it keeps an
// allocation from each, and loses another of the same class. A consumer can
// have only one allocation from an inventory.
func (e *evacuee) occupied() (keys []claimKey) {
	for _, held := range e.stays {
		if slices.ContainsFunc(e.lost, func(lost holding) bool { return lost.class == held.class }) {
			keys = append(keys, claimKey{held.node.id, held.class})
		}
	}
	return keys
}

// Unplaced is a consumer that does not fit elsewhere, with the amounts that it
// loses.
type Unplaced struct {
	Consumer  string
	Resources []Amount
	// Request asks for these amounts. Consumers with equal needs share one
	// Request.
	Request *Request
}

// IsStored reports whether a consumer of an Allocation, a Move or an Unplaced is
// stored. A consumer that is not stored was placed by a WhatIfChange.
func IsStored(consumer string) bool { return consumer[0] != foreseenPrefix[0] }

// unplaced returns the evacuee as a consumer that does not fit.
func (e *evacuee) unplaced() Unplaced { return e.need.unplaced(e.consumer) }

// unplaced returns a consumer with this need as one that does not fit.
func (r *relocation) unplaced(consumer string) Unplaced {
	return Unplaced{consumer, r.amounts, &r.Request}
}

func (h *holdings) moveOf(e *evacuee, candidate *Candidate) Move {
	after := h.partsOf(e.stays)
	for _, allocation := range candidate.Allocations {
		for _, amount := range allocation.Resources {
			after = append(after, part{allocation.Provider, amount})
		}
	}
	sortParts(after)
	return Move{Consumer: e.consumer, From: allocationsOf(h.partsOf(e.lost)),
		To: candidate.Allocations, Allocations: allocationsOf(after)}
}

// partsOf returns holdings as sorted parts.
func (h *holdings) partsOf(held []holding) []part {
	parts := make([]part, len(held))
	for i, one := range held {
		parts[i] = part{one.node.provider.UUID, Amount{h.names[one.class], one.used}}
	}
	sortParts(parts)
	return parts
}
