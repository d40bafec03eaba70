package placement

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// holding is an allocation in the form that an evacuation reads.
type holding struct {
	consumer int32 // its number
	class    int32
	used     int64
	node     *node
}

// holdings are the allocations of consumers, by tree.
type holdings struct {
	world     *World
	consumers []string // uuids, by number
	in        map[*providerTree][]holding
	// The holdings of each consumer with allocations in several trees are in
	// several, from the index in starts to the next one.
	several []holding
	starts  []int32
	numbers map[string]int32    // of consumers
	fresh   map[int32][]holding // in place of several, for consumers that have changed; see replace
	count   int
	needs   map[string]*relocation // by key
	names   map[int32]string       // of classes
	totals  map[int32]wideSum      // capacities, by class
}

// relocation is what some consumers lose alike: amounts that they need
// elsewhere. Size compares relocations: the sum over the classes of the amount
// divided by the capacity that the world has.
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

// holdingsOf returns allocations by tree. It leaves out providers that the world
// does not have.
func (w *World) holdingsOf(allocations []*Allocation) *holdings {
	h := &holdings{world: w, in: map[*providerTree][]holding{}, needs: map[string]*relocation{}, names: map[int32]string{}, totals: map[int32]wideSum{}}
	h.numbers = make(map[string]int32, len(allocations)/4)
	nodes, classes := make(map[string]*node, w.Len()), map[string]int32{}
	all := make([]holding, 0, len(allocations))
	for _, allocation := range allocations {
		n, ok := nodes[allocation.Provider]
		if !ok {
			if id, known := w.byUUID.get(allocation.Provider); known {
				n = w.nodes.at(id)
			}
			nodes[allocation.Provider] = n
		}
		if n == nil {
			continue
		}
		class, ok := classes[allocation.ResourceClass]
		if !ok {
			class = w.classes.lookup(allocation.ResourceClass)
			classes[allocation.ResourceClass], h.names[class] = class, allocation.ResourceClass
		}
		all = append(all, holding{h.numberOf(allocation.Consumer), class, allocation.Used, n})
	}
	h.count = len(all)
	for _, held := range all {
		h.in[held.node.tree] = append(h.in[held.node.tree], held)
	}
	h.addSeveral(all)
	h.addTotals()
	return h
}

// numberOf returns the number of a consumer.
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

// severalOf returns the holdings of a consumer with allocations in several trees,
// none for another one.
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

// replace replaces the holdings in changed trees of a world of the same shape.
// Allocations are all allocations of the consumers on these trees. It returns the
// trees for whose loss the consumers differ.
func (h *holdings) replace(changed map[*providerTree]bool, allocations []*Allocation) map[*providerTree]bool {
	before, after := h.holdingsIn(changed), map[int32][]holding{}
	for _, a := range allocations {
		if id, ok := h.world.byUUID.get(a.Provider); ok {
			class, consumer := h.world.classes.lookup(a.ResourceClass), h.numberOf(a.Consumer)
			h.names[class] = a.ResourceClass
			after[consumer] = append(after[consumer], holding{consumer, class, a.Used, h.world.nodes.at(id)})
		}
	}
	for consumer, all := range before {
		if after[consumer] == nil {
			after[consumer] = slices.DeleteFunc(slices.Clone(all), func(held holding) bool { return changed[held.node.tree] })
		}
	}
	for tree := range changed {
		h.count -= len(h.in[tree])
		delete(h.in, tree)
	}
	differing := map[*providerTree]bool{}
	for consumer, all := range after {
		h.put(changed, before[consumer], all, differing)
	}
	return differing
}

// holdingsIn returns all holdings of the consumers with holdings in some trees.
func (h *holdings) holdingsIn(trees map[*providerTree]bool) map[int32][]holding {
	all := map[int32][]holding{}
	for tree := range trees {
		for _, held := range h.in[tree] {
			if several := h.severalOf(held.consumer); len(several) > 0 {
				all[held.consumer] = several
			} else {
				all[held.consumer] = append(all[held.consumer], held)
			}
		}
	}
	return all
}

// put adds the holdings of a consumer in changed trees. If holdings differ from the
// ones before, it adds their trees, and the trees with a holding of the same class:
// see occupied.
func (h *holdings) put(changed map[*providerTree]bool, before, after []holding, differing map[*providerTree]bool) {
	isSeveral := false
	for _, held := range after {
		isSeveral = isSeveral || held.node.tree != after[0].node.tree
		if changed[held.node.tree] {
			h.in[held.node.tree] = append(h.in[held.node.tree], held)
			h.count++
		}
	}
	all, differ := slices.Concat(before, after), false
	for _, held := range all {
		isSame := func(other holding) bool {
			return other.node.id == held.node.id && other.class == held.class && other.used == held.used
		}
		if slices.ContainsFunc(before, isSame) && slices.ContainsFunc(after, isSame) {
			continue
		}
		differ = true
		for _, other := range all {
			if other.class == held.class {
				differing[other.node.tree] = true
			}
		}
	}
	if !differ {
		return
	}
	if h.fresh == nil {
		h.fresh = map[int32][]holding{}
	}
	if h.fresh[all[0].consumer] = nil; isSeveral {
		h.fresh[all[0].consumer] = after
	}
}

// addTotals adds up the capacities of the world.
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
	slices.SortFunc(lost, func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), comparePaths(a.node, b.node), cmp.Compare(h.names[a.class], h.names[b.class]))
	})
	var evacuees []evacuee
	for len(lost) > 0 {
		n := 1
		for n < len(lost) && lost[n].consumer == lost[0].consumer {
			n++
		}
		evacuees = append(evacuees, evacuee{h.consumers[lost[0].consumer], lost[0].consumer, h.relocationOf(lost[:n]), lost[:n:n], h.elsewhere(lost[0].consumer, trees)})
		lost = lost[n:]
	}
	slices.SortFunc(evacuees, func(a, b evacuee) int {
		return cmp.Or(cmp.Compare(b.need.size, a.need.size), cmp.Compare(a.consumer, b.consumer))
	})
	return evacuees
}

// relocationOf returns the relocation of lost holdings.
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

// sortedAmounts returns amounts by the name of their class.
func sortedAmounts(sums map[string]int64) []Amount {
	amounts := make([]Amount, 0, len(sums))
	for class, amount := range sums {
		amounts = append(amounts, Amount{class, amount})
	}
	slices.SortFunc(amounts, func(a, b Amount) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) })
	return amounts
}

// requestOf returns the request for lost holdings. The unsuffixed group has the
// amounts on roots. The amounts on any other provider are a group. So are those
// on a further root with a class that the unsuffixed group already has.
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

// occupied returns the inventories that must not serve the evacuee: what stays
// of it uses the class there, and both parts would be one allocation.
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
	// Request asks for these amounts. Consumers with equal needs have the same one.
	Request *Request
}

// IsStored reports whether the consumer is stored. Others exist in a Foreseen
// alone.
func (u *Unplaced) IsStored() bool { return u.Consumer[0] != foreseenPrefix[0] }

// unplaced returns the evacuee as one that does not fit.
func (e *evacuee) unplaced() Unplaced { return e.need.unplaced(e.consumer) }

// unplaced returns a consumer with the need as one that does not fit.
func (r *relocation) unplaced(consumer string) Unplaced {
	return Unplaced{consumer, r.amounts, &r.Request}
}

// moveOf returns the move of an evacuee to a candidate.
func (h *holdings) moveOf(e *evacuee, candidate *Candidate) Move {
	after := h.partsOf(e.stays)
	for _, allocation := range candidate.Allocations {
		for _, amount := range allocation.Resources {
			after = append(after, part{allocation.Provider, amount})
		}
	}
	sortParts(after)
	return Move{Consumer: e.consumer, From: allocationsOf(h.partsOf(e.lost)), To: candidate.Allocations, Allocations: allocationsOf(after)}
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
