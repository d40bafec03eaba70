package placement

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"math"
	"slices"
)

// The orders of strategies. Each compares roots by a score first, then by uuid.
// Within one root it compares slot by slot: the providers of a slot by their
// score after the choices for the slots before, then by path. Scores are 64-bit
// floats; lower ones come first.
//
// The score of a root counts only inventories of its tree, not of providers of
// other trees that share with it.
const (
	// Spread lists the largest free share first. The share of a class is its
	// free units less the amount of the request, divided by its capacity. The
	// scarcest class of the request, with the least share, decides.
	Spread CandidateOrder = iota + BreadthFirst + 1
	// Pack lists the smallest free share first. The scarcest class of the root
	// decides, even if the request does not need it: a request without
	// accelerators is placed where few of them are free.
	Pack
	// Random orders by a hash of the uuid and Request.Seed.
	Random
	// LeastFragmenting lists the least loss of room for Request.Shapes first.
	// The loss is the weighted mean over the shapes, for the first candidate of
	// a root. The root's free share, as in Pack, is divided by the number of
	// roots and subtracted.
	LeastFragmenting
)

// isScored reports whether the order compares scores.
func (o CandidateOrder) isScored() bool { return o >= Spread }

// strategy ranks the roots and the options of one request.
type strategy struct {
	order CandidateOrder
	seed  uint64 // of mixedSeed
	// preferred has the scores of preferences by root, nil without preferences.
	preferred []int16
	// The first `asked` of uses are the classes of the request.
	uses    []classUse
	asked   int
	rooms   *roomFinder // of LeastFragmenting
	ranked  []rankedOption
	ordered [][]option // by depth; a search at a depth changes only deeper entries
}

type rankedOption struct {
	score float64
	option
}

func newStrategy(p *plan, r *Request) *strategy {
	st := &strategy{order: r.Order, seed: mixedSeed(r.Seed), uses: make([]classUse, p.classes), asked: p.classes,
		ordered: make([][]option, len(p.slots))}
	for _, s := range p.slots {
		for _, d := range s.demands {
			st.uses[d.index].amount += d.amount
			st.uses[d.index].class = d.class
		}
	}
	if r.Order == LeastFragmenting {
		st.rooms = p.world.newRoomFinder(r, len(p.slots))
	}
	return st
}

// scoredRoot is a root with its score of the order. Preferred is its score of the
// preferences, which compares first. Seq is its number in the order of uuids
// of all providers.
type scoredRoot struct {
	score     float64
	seq       int32
	id        int32
	preferred int16
}

// scored returns a root with the given score, and its score of preferences.
func (st *strategy) scored(score float64, seq, id int32) scoredRoot {
	root := scoredRoot{score: score, seq: seq, id: id}
	if st.preferred != nil {
		root.preferred = st.preferred[id]
	}
	return root
}

func (a *scoredRoot) isBefore(b *scoredRoot) bool {
	if a.preferred != b.preferred {
		return a.preferred > b.preferred
	}
	return a.score < b.score || a.score == b.score && a.seq < b.seq
}

// rootHeap is a heap of roots, the first in the order on top.
type rootHeap []scoredRoot

func (h rootHeap) Len() int { return len(h) }

func (h rootHeap) Less(i, j int) bool {
	return h[i].isBefore(&h[j])
}

func (h rootHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *rootHeap) Push(root any) { *h = append(*h, root.(scoredRoot)) }

func (h *rootHeap) Pop() any {
	last := len(*h) - 1
	root := (*h)[last]
	*h = (*h)[:last]
	return root
}

// scoredPage returns up to first candidates after a position, in the order of a
// strategy or with preferences. It scores every root that has a possible
// provider for each slot, and searches the best ones until the page is full.
func scoredPage(p *plan, r *Request, request fingerprint, after *Position, first int) (Page, error) {
	var page Page
	p.narrow()
	s := newSearch(p)
	s.strategy = newStrategy(p, r)
	var steps int
	s.strategy.preferred, steps = p.preferredBy(r)
	s.step(steps)
	roots := s.scoredRoots(after)
	var root scoredRoot
	round, skipped := 0, 0
	s.emit = func() bool {
		if round++; round <= skipped {
			return true
		}
		if len(page.Candidates) >= first {
			page.HasNext = true
			return false
		}
		page.Candidates = append(page.Candidates, s.buildCandidate())
		page.Positions = append(page.Positions,
			Position{request: request, anchor: s.anchor.root, isScored: true, score: root.score, round: round,
				preferred: root.preferred, isPreferred: s.strategy.preferred != nil})
		return true
	}
	for len(roots) > 0 && !page.HasNext && s.err == nil {
		root = heap.Pop(&roots).(scoredRoot)
		anchor := p.world.nodes.at(root.id).tree
		round, skipped = 0, 0
		if after != nil && anchor.root == after.anchor &&
			root.score == after.score && root.preferred == after.preferred {
			skipped = after.round
		}
		if s.enter(anchor) {
			s.assign(0, false)
		}
	}
	page.Steps = s.steps
	return page, s.err
}

// scoredRoots returns the roots from the root of a position on as a heap; nil is
// the beginning. It returns none for a request without slots, which has no
// candidates.
func (s *search) scoredRoots(after *Position) rootHeap {
	var roots rootHeap
	if len(s.slots) == 0 {
		return nil
	}
	seq := int32(-1)
	for uuid, id := range s.world.byUUID.all() {
		if seq++; !s.anchors.has(id) {
			continue
		}
		anchor := s.world.nodes.at(id).tree
		score, ok := s.scoreOf(anchor)
		if s.err != nil {
			return nil
		}
		root := s.strategy.scored(score, seq, id)
		if ok && (after == nil || cmp.Or(cmp.Compare(after.preferred, root.preferred), cmp.Compare(score, after.score),
			cmp.Compare(uuid, after.anchor)) >= 0) {
			roots = append(roots, root)
		}
	}
	heap.Init(&roots)
	return roots
}

// scoreOf returns the score of a root. False means that the root cannot serve
// or that the steps are used up, true that the root may serve.
func (s *search) scoreOf(anchor *providerTree) (score float64, ok bool) {
	if !s.step(1) {
		return 0, false
	}
	switch s.strategy.order {
	case DepthFirst, BreadthFirst: // only preferences give a score
		return 0, true
	case Random:
		return float64(randomScore(s.strategy.seed, s.world.nodes.at(anchor.members[0]).hash)), true
	case LeastFragmenting:
		loss, ok := s.lossOf(anchor)
		return loss/s.strategy.rooms.weight - s.shareOf(anchor)/s.strategy.rooms.roots, ok
	case Spread:
		return -s.shareOf(anchor), true
	default:
		return s.shareOf(anchor), true
	}
}

// classUse is the amount of a class that a request asks for, with the free units
// and the capacity of one tree.
type classUse struct {
	class          int32
	amount         int64
	free, capacity float64
}

// shareOf returns the free share of the scarcest class of a tree once it serves
// the request: for Spread of the classes of the request, else of all classes. It
// is 0 if the tree has no capacity of any.
func (s *search) shareOf(anchor *providerTree) float64 {
	uses := s.strategy.uses[:s.strategy.asked]
	for i := range uses {
		uses[i].free, uses[i].capacity = 0, 0
	}
	for _, id := range anchor.members {
		inventories := s.world.nodes.at(id).inventories
		for i := range inventories {
			inventory := &inventories[i]
			k := slices.IndexFunc(uses, func(u classUse) bool { return u.class == inventory.class })
			if k < 0 && s.strategy.order != Spread {
				k, uses = len(uses), append(uses, classUse{class: inventory.class})
			}
			if k >= 0 {
				uses[k].free += float64(max(0, inventory.free))
				uses[k].capacity += float64(inventory.capacity)
			}
		}
	}
	s.strategy.uses = uses
	least := math.Inf(1)
	for i := range uses {
		if u := &uses[i]; u.capacity > 0 {
			least = min(least, (u.free-float64(u.amount))/u.capacity)
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// lossOf returns the loss of room by the first candidate of a root. It reports
// false if the root has no candidate.
func (s *search) lossOf(anchor *providerTree) (loss float64, ok bool) {
	emit := s.emit
	defer func() { s.emit = emit }()
	s.emit = func() bool {
		loss, ok = s.strategy.rooms.lost(0, len(s.slots)), true
		return false
	}
	if s.enter(anchor) {
		s.assign(0, false)
	}
	return loss, ok
}

// inOrder returns the options of the slot at this depth in the order of the
// search, perhaps without some that do not fit.
func (s *search) inOrder(depth int) []option {
	if s.strategy == nil {
		return s.options[depth]
	}
	ranked, ordered := s.strategy.ranked[:0], s.strategy.ordered[depth][:0]
	if s.step(len(s.options[depth])) {
		for _, o := range s.options[depth] {
			if s.fits(depth, o) {
				ranked = append(ranked, rankedOption{s.optionScore(depth, o), o})
			}
		}
	}
	slices.SortStableFunc(ranked, func(a, b rankedOption) int { return cmp.Compare(a.score, b.score) })
	for i := range ranked {
		ordered = append(ordered, ranked[i].option)
	}
	s.strategy.ranked, s.strategy.ordered[depth] = ranked, ordered
	return ordered
}

func (s *search) optionScore(depth int, o option) float64 {
	switch s.strategy.order {
	case DepthFirst, BreadthFirst:
		return 0
	case Random:
		return float64(randomScore(s.strategy.seed, o.node.hash))
	case LeastFragmenting:
		return s.strategy.rooms.lossBy(s, depth, o)
	case Spread:
		return -s.shareLeft(depth, o)
	default:
		return s.shareLeft(depth, o)
	}
}

// shareLeft returns the least free share of the classes of a slot on a provider
// that serves it, 0 for a slot without amounts.
func (s *search) shareLeft(depth int, o option) float64 {
	demands := s.slots[depth].demands
	if len(demands) == 0 {
		return 0
	}
	least := math.Inf(1)
	for i := range demands {
		d := &demands[i]
		inventory := o.node.inventoryOf(d.class)
		left := inventory.free - d.amount
		if d.merged {
			left -= s.amountsChosen[int(o.local)*s.classes+d.index]
		}
		least = min(least, float64(left)/float64(inventory.capacity))
	}
	return least
}

// randomScore returns the score of a uuid's hash for a mixed seed: the upper 53
// bits of both, mixed by the last steps of MurmurHash3. The score is less than
// randomScores, so a float64 holds it exactly.
func randomScore(seed, hash uint64) uint64 { return mixed(hash^seed) >> 11 }

func mixedSeed(seed int) uint64 { return mixed(uint64(seed) + 1) }

const randomScores = 1 << 53

func mixed(hash uint64) uint64 {
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	return hash ^ hash>>33
}

// hashOf returns the 64-bit FNV-1a hash of a string.
func hashOf(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // a hash never fails
	return hash.Sum64()
}
