package placement

import "slices"

// MaxShapes is the maximum number of shapes of a request.
const MaxShapes = 32

// Shape is a request that later consumers may send, for LeastFragmenting. Apart
// from taints, only Groups constrain the providers.
type Shape struct {
	Resources []Amount
	Groups    []Group
	Policy    GroupPolicy
	Tolerates []string
	// Weight is the relative number of such requests, from 1 to MaxShapeWeight.
	Weight int
}

// MaxShapeWeight is the maximum weight of a Shape.
const MaxShapeWeight = 1_000_000

func (s *Shape) request() *Request {
	return &Request{Unsuffixed: Group{Resources: s.Resources}, Groups: s.Groups,
		Policy: s.Policy, Tolerates: s.Tolerates}
}

// roomFinder computes the room of one tree for shapes.
//
// The units of a shape have one kind for each class of its unsuffixed group and
// for each group; equal groups are one kind with a count. A provider takes a
// kind if it may serve the group alone. A tree has room for a shape if its
// providers take every kind at least as many times as the shape needs. Then its
// room is the sum of the free units of all providers that take a kind, in shares
// of the capacity of the class in the world. Without room for the whole shape it
// is 0. The room for all shapes is the weighted sum.
//
// So a loss of room is what "fragmentation gradient descent" (Weng et al.,
// USENIX ATC 2023) calls the growth of fragmentation, less the amounts asked,
// which are the same for all candidates.
type roomFinder struct {
	world      *World
	kinds      []roomKind
	shapes     []roomShape
	weight     float64   // of all shapes
	roots      float64   // in the world
	capacities []float64 // in the world, by the index of the class
	at         []room    // by depth: the room after the choices before it
	next       room
	now, then  []float64 // by the index of the class: the room for all shapes
}

type roomShape struct {
	weight   float64
	from, to int // of its kinds
}

type roomKind struct {
	slot
	count   int64
	isolate bool
	classes []int // of each demand: the index in capacities
	from    int   // the index of its first demand among the units of a room
}

// room is, for one tree, how many times its providers take each kind, and the
// free units of these providers, by kind and demand.
type room struct {
	times []int64
	units []float64
}

// newRoomFinder returns the finder for the shapes of a request with a number of
// slots. A request without shapes is its own only shape.
func (w *World) newRoomFinder(r *Request, slots int) *roomFinder {
	f := &roomFinder{world: w}
	shapes := r.Shapes
	if len(shapes) == 0 {
		shapes = []Shape{{Resources: r.Unsuffixed.Resources, Groups: r.Groups, Policy: r.Policy,
			Tolerates: r.tolerated(), Weight: 1}}
	}
	indexes, units := w.classesOf(shapes), 0
	for i := range shapes {
		f.addShape(&shapes[i], indexes, &units)
	}
	for range w.trees.all() {
		f.roots++
	}
	classes := 1
	for _, index := range indexes {
		classes = max(classes, index+1)
	}
	f.capacities = make([]float64, classes)
	for id := range w.idLimit {
		if n := w.nodes.at(id); n != nil {
			for k := range n.inventories {
				if index, ok := indexes[n.inventories[k].class]; ok {
					f.capacities[index] += float64(n.inventories[k].capacity)
				}
			}
		}
	}
	newRoom := func() room { return room{make([]int64, len(f.kinds)), make([]float64, units)} }
	for range slots + 1 {
		f.at = append(f.at, newRoom())
	}
	f.next, f.now, f.then = newRoom(), make([]float64, classes), make([]float64, classes)
	return f
}

// classesOf numbers the classes that shapes ask for, in the order of their
// names.
func (w *World) classesOf(shapes []Shape) map[int32]int {
	var names []string
	for i := range shapes {
		for _, group := range slices.Concat(shapes[i].Groups, []Group{{Resources: shapes[i].Resources}}) {
			for _, amount := range group.Resources {
				names = append(names, amount.ResourceClass)
			}
		}
	}
	indexes := map[int32]int{}
	for index, name := range sortedSet(names) {
		indexes[w.classes.lookup(name)] = index
	}
	return indexes
}

func (f *roomFinder) addShape(shape *Shape, indexes map[int32]int, units *int) {
	p := compile(f.world, shape.request())
	groups, from := bySuffix(shape.Groups), len(f.kinds)
	known := map[string]int{}
	for i := range p.slots {
		key := fingerprintWriter{}
		if i >= p.classSlots {
			group := groups[i-p.classSlots]
			group.Suffix = ""
			key.writeGroup(&group)
			if at, ok := known[string(key.text)]; ok {
				f.kinds[at].count++
				continue
			}
			known[string(key.text)] = len(f.kinds)
		}
		kind := roomKind{slot: p.slots[i], count: 1, isolate: p.isolate && i >= p.classSlots, from: *units}
		for _, d := range kind.demands {
			kind.classes = append(kind.classes, indexes[d.class])
		}
		*units += len(kind.demands)
		f.kinds = append(f.kinds, kind)
	}
	f.shapes = append(f.shapes, roomShape{float64(shape.Weight), from, len(f.kinds)})
	f.weight += float64(shape.Weight)
}

// enter computes the room of a tree before any choice.
func (f *roomFinder) enter(anchor *providerTree) {
	clear(f.at[0].times)
	clear(f.at[0].units)
	for _, id := range anchor.members {
		f.add(&f.at[0], f.world.nodes.at(id), nil, 1)
	}
}

// add adds the times and units of a provider to a room, or removes them if sign is
// -1. Taken returns the units of a class that choices already take from the
// provider; nil means none.
func (f *roomFinder) add(to *room, n *node, taken func(class int32) int64, sign int64) {
	for i := range f.kinds {
		kind := &f.kinds[i]
		if times := kind.timesOn(n, taken); times > 0 {
			to.times[i] += sign * times
			for k := range kind.demands {
				class := kind.demands[k].class
				free := n.inventoryOf(class).free
				if taken != nil {
					free -= taken(class)
				}
				to.units[kind.from+k] += float64(sign * free)
			}
		}
	}
}

// timesOn returns how many times a provider takes a kind.
func (k *roomKind) timesOn(n *node, taken func(class int32) int64) int64 {
	if !k.allowed.has(n.id) || !k.inTree.allows(n.tree) {
		return 0
	}
	times := int64(MaxAmount)
	if k.isolate || len(k.demands) == 0 {
		times = 1
	}
	for i := range k.demands {
		d := &k.demands[i]
		inventory := n.inventoryOf(d.class)
		if !inventory.fits(d.amount) {
			return 0
		}
		free := min(inventory.free, int64(inventory.maxUnit))
		if taken != nil {
			free = min(inventory.free-taken(d.class), int64(inventory.maxUnit))
		}
		times = min(times, free/d.amount)
	}
	return max(0, times)
}

// change sets f.next to the room after one more choice at a depth.
func (f *roomFinder) change(s *search, depth int, o option) {
	copy(f.next.times, f.at[depth].times)
	copy(f.next.units, f.at[depth].units)
	if o.node.tree != s.anchor {
		return
	}
	before := func(class int32) int64 { return s.takenOf(o.node, class, s.chosen[:depth]) }
	after := func(class int32) int64 { return before(class) + s.slots[depth].amountOf(class) }
	f.add(&f.next, o.node, before, -1)
	f.add(&f.next, o.node, after, 1)
}

// choose records the room after a choice at a depth.
func (f *roomFinder) choose(s *search, depth int, o option) {
	f.change(s, depth, o)
	f.at[depth+1], f.next = f.next, f.at[depth+1]
}

// lossBy returns the loss of room by one more choice at a depth.
func (f *roomFinder) lossBy(s *search, depth int, o option) float64 {
	f.change(s, depth, o)
	return f.difference(&f.at[depth], &f.next)
}

// lost returns the loss of room between two depths.
func (f *roomFinder) lost(from, to int) float64 { return f.difference(&f.at[from], &f.at[to]) }

// difference returns the room for all shapes before less the room after.
func (f *roomFinder) difference(before, after *room) float64 {
	f.sum(f.now, before)
	f.sum(f.then, after)
	loss := 0.0
	for i, capacity := range f.capacities {
		if lost := f.now[i] - f.then[i]; lost != 0 {
			loss += lost / capacity
		}
	}
	return loss
}

// sum sets sums to the units of each class in the rooms of the shapes, weighted.
func (f *roomFinder) sum(sums []float64, of *room) {
	clear(sums)
	for _, shape := range f.shapes {
		kinds := f.kinds[shape.from:shape.to]
		lacks := false
		for i := range kinds {
			lacks = lacks || of.times[shape.from+i] < kinds[i].count
		}
		if lacks {
			continue
		}
		for i := range kinds {
			for k, class := range kinds[i].classes {
				sums[class] += shape.weight * of.units[kinds[i].from+k]
			}
		}
	}
}

// takenOf returns the units of a class that the choices take from a provider.
func (s *search) takenOf(n *node, class int32, chosen []option) (taken int64) {
	for i, o := range chosen {
		if o.node == n {
			taken += s.slots[i].amountOf(class)
		}
	}
	return taken
}

// amountOf returns the amount of a class that a slot asks for, 0 for none.
func (s *slot) amountOf(class int32) int64 {
	i := slices.IndexFunc(s.demands, func(d demand) bool { return d.class == class })
	if i < 0 {
		return 0
	}
	return s.demands[i].amount
}
