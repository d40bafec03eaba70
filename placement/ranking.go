package placement

import (
	"container/heap"
	"math"
	"slices"
	"sync"
	"weak"
)

// Rankings keeps the ranked roots of recent requests for Placing.Choose, which
// then scores only the roots whose use has changed. It is safe for concurrent
// use. The zero value is ready; nil keeps nothing.
type Rankings struct {
	mutex sync.Mutex
	kept  []*ranking // the last used first
}

// maxRanked is the maximum number of providers in all rankings together,
// without the newest ranking. A ranking has about 50 bytes for each.
const maxRanked = 2_000_000

// take removes and returns the ranking of a request, nil if there is none for
// the shape of the world. It drops the rankings of other shapes.
func (r *Rankings) take(request fingerprint, w *World) *ranking {
	if r == nil {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.kept = slices.DeleteFunc(r.kept, func(k *ranking) bool { return k.shape != w.shape })
	at := slices.IndexFunc(r.kept, func(k *ranking) bool { return k.request == request })
	if at < 0 {
		return nil
	}
	found := r.kept[at]
	r.kept = slices.Delete(r.kept, at, at+1)
	return found
}

// keep adds a ranking, unless it cannot be updated to later worlds (isKept).
func (r *Rankings) keep(one *ranking) {
	if r == nil || one == nil || !one.isKept {
		return
	}
	one.unpark(nil)
	one.plan.world = nil // so that the memory of the world can be freed
	if one.strategy.rooms != nil {
		one.strategy.rooms.world = nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.kept = slices.Insert(r.kept, 0, one)
	r.kept = r.kept[:min(len(r.kept), 1+maxRanked/max(1, len(one.scores)))]
}

// ranking holds the roots that can serve one request, by score. A stamp for each
// provider identifies the state that its score is of, so the ranking keeps no
// provider in memory.
type ranking struct {
	request  fingerprint
	shape    *byte // of the world: its masks and trees stay true while use alone changes
	plan     *plan
	strategy *strategy
	anchors  mask // of the plan, before use narrowed them
	isKept   bool

	// Scores has the score of each root by id, NaN for one that cannot serve or
	// is taken out. An entry of roots with another score is void. Roots has the
	// roots with scores up to upTo. Under Random a root that is not in roots
	// may have the score of another seed.
	roots  rootHeap
	upTo   float64
	scores []float64
	seqs   []int32 // by id: the numbers in the order of uuids
	// For Random: the anchors with their hashes, and the share of the range of
	// scores that the heap of a new seed covers.
	ids    []int32
	hashes []uint64
	share  float64

	// Parked are the roots that a tally does not allow, by Tally.refuses. They stay
	// out of roots until there is another tally, and count again once their zone is
	// open.
	parked   map[int]*rootHeap
	parkedBy *Tally

	chunks []weak.Pointer[chunk[*node]]
	stamps []uint64 // by id
	// Forgotten are the roots that count as changed, in chunks that may not have.
	forgotten []int32
}

// ranked returns the fingerprint for a ranking, which is the same for all seeds.
func (r *Request) ranked() fingerprint {
	request := *r
	request.Seed = 0
	return request.fingerprint()
}

func newRanking(w *World, r *Request) *ranking {
	p := compile(w, r).narrowAnchors()
	k := &ranking{request: r.ranked(), shape: w.shape, plan: p, anchors: slices.Clone(p.anchors)}
	// The roots that a filter chooses change with resources. A sharing provider
	// makes candidates depend on other trees.
	k.isKept = len(p.slots) > 0 && !r.hasHosts() && !p.mayShare()
	p.narrow()
	k.strategy = newStrategy(p, r)
	k.strategy.preferred, _ = p.preferredBy(r)
	return k
}

// hasHosts reports whether a filter of resources chooses or prefers roots.
func (r *Request) hasHosts() bool {
	return r.Hosts != nil || slices.ContainsFunc(r.Preferences, func(p Preference) bool { return p.Hosts != nil })
}

// mayShare reports whether a sharing provider may serve a slot by its traits,
// aggregates and classes.
func (p *plan) mayShare() bool { return slices.ContainsFunc(p.world.sharingNodes(), p.maySlotsUse) }

// search returns a search of a world of the same shape.
func (k *ranking) search(w *World) *search {
	k.plan.world = w
	if k.strategy.rooms != nil {
		k.strategy.rooms.world = w
	}
	s := newSearch(k.plan)
	s.strategy = k.strategy
	return s
}

// rank scores all roots.
func (k *ranking) rank(s *search) {
	limit := s.world.idLimit
	k.scores, k.seqs, k.stamps = make([]float64, limit), make([]int32, limit), make([]uint64, limit)
	k.chunks = make([]weak.Pointer[chunk[*node]], len(s.world.nodes.chunks))
	for id := range k.scores {
		k.scores[id] = math.NaN()
	}
	seq := int32(0)
	for _, id := range s.world.byUUID.all() {
		k.seqs[id] = seq
		seq++
	}
	if k.isKept {
		k.changed(s.world)
	}
	if k.strategy.order == Random {
		for id := range limit {
			if n := s.world.nodes.at(id); n != nil && k.anchors.has(id) {
				k.ids, k.hashes = append(k.ids, id), append(k.hashes, n.hash)
			}
		}
	}
	k.roots, k.upTo = s.scoredRoots(nil), math.Inf(1)
	for _, root := range k.roots {
		k.scores[root.id] = root.score
	}
	k.share = firstOfRandom / float64(max(firstOfRandom, len(k.roots)))
}

// follow scores the roots whose use has changed. Under Random it also rebuilds
// the heap for another seed.
func (k *ranking) follow(s *search, seed int) {
	k.plan.anchors = k.anchors
	k.scoreAgain(s, k.changed(s.world))
	if k.strategy.order != Random {
		return
	}
	k.strategy.seed = mixedSeed(seed)
	if k.strategy.preferred == nil { // preferences come before the score
		k.upTo = randomScores * k.share
	}
	k.rebuild()
}

// firstOfRandom is the usual number of roots in the heap for a new seed.
// Building a heap of 100,000 took four fifths of the time of a placing.
const firstOfRandom = 16

// fill adds the roots with the next higher scores to an empty heap.
func (k *ranking) fill() {
	for len(k.roots) == 0 && !math.IsInf(k.upTo, 1) {
		above := k.upTo
		k.share = min(1, 2*k.share) // most roots in the heap had no candidate
		if k.upTo *= 16; k.upTo >= randomScores {
			k.upTo = math.Inf(1)
		}
		k.add(above)
	}
}

// changed returns the trees with providers whose state has changed since the
// last call.
func (k *ranking) changed(w *World) map[*providerTree]bool {
	trees := map[*providerTree]bool{}
	for _, id := range k.forgotten {
		n := w.nodes.at(id)
		k.stamps[id], trees[n.tree] = n.stamp, true
	}
	k.forgotten = k.forgotten[:0]
	for i, c := range w.nodes.chunks {
		seen := k.chunks[i].Value()
		if seen == c {
			continue
		}
		k.chunks[i] = weak.Make(c)
		for j, n := range c.items {
			if n != nil && (seen == nil || seen.items[j] != n) && n.stamp != k.stamps[n.id] {
				k.stamps[n.id] = n.stamp
				trees[n.tree] = true
			}
		}
	}
	return trees
}

// forget makes a root count as changed: a claim of the candidate that was taken
// from it may fail.
func (k *ranking) forget(root int32) {
	k.forgotten = append(k.forgotten, root)
}

// scoreAgain scores the roots of some trees again.
func (k *ranking) scoreAgain(s *search, trees map[*providerTree]bool) {
	for tree := range trees {
		root := tree.members[0]
		if k.scores[root] = math.NaN(); !s.anchors.has(root) {
			continue
		}
		if score, ok := s.scoreOf(tree); ok {
			k.push(root, score)
		}
	}
}

// push sets the score of a root, and adds the root to the heap if the score is
// not above upTo.
func (k *ranking) push(id int32, score float64) {
	if k.scores[id] = score; score > k.upTo {
		return
	}
	heap.Push(&k.roots, k.strategy.scored(score, k.seqs[id], id))
	if len(k.roots) > 2*len(k.scores) { // most are void
		k.rebuild()
	}
}

// rebuild rebuilds the heap from the scores.
func (k *ranking) rebuild() {
	k.roots = k.roots[:0]
	k.add(math.Inf(-1))
}

// add adds the roots with scores greater than above and up to upTo to the heap.
// The heap must have none of these roots.
func (k *ranking) add(above float64) {
	if k.strategy.order == Random {
		first, seed := uint64(max(0, above+1)), k.strategy.seed
		width := uint64(min(k.upTo, randomScores)) - first
		for i, hash := range k.hashes {
			score := randomScore(seed, hash)
			if score-first > width { // also if score < first: the difference wraps around
				continue
			}
			if id := k.ids[i]; k.scores[id] < randomScores { // false for NaN
				k.scores[id] = float64(score)
				k.roots = append(k.roots, k.strategy.scored(float64(score), k.seqs[id], id))
			}
		}
		above = max(above, randomScores-1)
	}
	for id := 0; above < k.upTo && id < len(k.scores); id++ {
		if score := k.scores[id]; score > above && score <= k.upTo { // false for NaN
			k.roots = append(k.roots, k.strategy.scored(score, k.seqs[id], int32(id)))
		}
	}
	heap.Init(&k.roots)
}

// unpark puts the roots back that another tally parked, unless they have a newer
// score.
func (k *ranking) unpark(tally *Tally) {
	if tally == k.parkedBy {
		return
	}
	for _, roots := range k.parked {
		for _, root := range *roots {
			if k.scores[root.id] == root.score {
				k.push(root.id, root.score)
			}
		}
	}
	k.parked, k.parkedBy = map[int]*rootHeap{}, tally
}

func (k *ranking) park(zone int, root scoredRoot) {
	if k.parked[zone] == nil {
		k.parked[zone] = new(rootHeap)
	}
	heap.Push(k.parked[zone], root)
}

// open returns the heaps of the roots that a tally may allow.
func (k *ranking) open(tally *Tally) []*rootHeap {
	heaps := []*rootHeap{&k.roots}
	for zone, roots := range k.parked {
		if zone != never && len(*roots) > 0 && tally.isOpen(zone) {
			heaps = append(heaps, roots)
		}
	}
	return heaps
}

// pop takes the first root from heaps that are open.
func (k *ranking) pop(heaps []*rootHeap) (root scoredRoot, ok bool) {
	k.fill()
	var first *rootHeap
	for _, roots := range heaps {
		if len(*roots) > 0 && (first == nil || (*roots)[0].isBefore(&(*first)[0])) {
			first = roots
		}
	}
	if first == nil {
		return root, false
	}
	return heap.Pop(first).(scoredRoot), true
}

// best returns the first candidate that the tally allows, and its root. A nil
// tally allows all. The root leaves the heap, and so do the roots before it
// that have no candidate. If there is no candidate, isEmpty reports whether no
// root is left.
func (k *ranking) best(s *search, tally *Tally) (candidate *Candidate, of scoredRoot, isEmpty bool) {
	k.unpark(tally)
	var refused []scoredRoot
	defer func() {
		for _, root := range refused {
			k.scores[root.id] = root.score
			heap.Push(&k.roots, root)
		}
	}()
	s.emit = func() bool {
		found := s.buildCandidate()
		if tally.isByLevel() && !tally.Allows(&found) {
			return true
		}
		candidate = &found
		return false
	}
	heaps := k.open(tally)
	for s.err == nil {
		root, ok := k.pop(heaps)
		if !ok {
			break
		}
		if k.scores[root.id] != root.score {
			continue
		}
		if zone, isRefused := tally.refuses(root.id); isRefused {
			k.park(zone, root)
			s.step(1)
			continue
		}
		k.scores[root.id] = math.NaN()
		anchor := s.world.nodes.at(root.id).tree
		if k.strategy.order == LeastFragmenting { // providers that share may have filled
			score, ok := s.scoreOf(anchor)
			if ok && score != root.score {
				k.push(root.id, score)
				continue
			}
		}
		s.tally = tally
		if s.enter(anchor) {
			s.assign(0, false)
		}
		if s.tally = nil; candidate != nil {
			return candidate, root, false
		}
		if tally.isByLevel() { // other candidates of the root may fit later
			refused = append(refused, root)
		}
	}
	return nil, of, len(refused)+len(k.parked) == 0
}
