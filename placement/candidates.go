package placement

import (
	"cmp"
	"errors"
	"maps"
	"slices"
)

// Candidate is one way to serve a request: what each provider gives, by provider uuid and class, and who
// serves which group, by suffix with "" first. Providers that serve only resourceless groups appear in the
// mappings alone.
type Candidate struct {
	Allocations []ProviderAllocation
	Mappings    []Mapping
}

// Page is a run of candidates in the total order.
type Page struct {
	Candidates []Candidate
	Positions  []Position // of each candidate
	HasNext    bool
	Steps      int // search steps taken
}

// MaxSteps bounds the search for one answer. A step is one provider or one pairing looked at, some tens of
// nanoseconds; the count depends on the world, the request and the page alone, never on the machine.
const MaxSteps = 20_000_000

// MaxCount is how far callers are expected to let Count go.
const MaxCount = 10_000

// ErrTooComplex says that MaxSteps did not suffice.
var ErrTooComplex = errors.New("placement: the request needs too many search steps")

// Candidates lists up to first candidates after a position (nil: from the beginning), in the one total
// order: by the anchor root's uuid; then slot by slot, the classes of the unsuffixed group by name and then
// the suffixed groups by suffix, each by its provider's path of uuids. A candidate that several anchors
// allow belongs to the least. The world decides alone: what is listed can be claimed on it as it is. It
// fails with ErrTooComplex, or with ErrForeignPosition if the position came from another request.
func Candidates(w *World, r *Request, after *Position, first int) (Page, error) {
	var page Page
	hash := r.hash()
	if after != nil && after.request != hash {
		return page, ErrForeignPosition
	}
	s := newSearch(compile(w, r))
	s.after = after
	s.emit = func() bool {
		if len(page.Candidates) >= first {
			page.HasNext = true
			return false
		}
		page.Candidates = append(page.Candidates, s.candidate())
		page.Positions = append(page.Positions, s.position(hash))
		return true
	}
	err := s.run()
	page.Steps = s.steps
	return page, err
}

// Count is the number of candidates, counted without building them, up to a limit; exact is false when
// there are more.
func Count(w *World, r *Request, limit int) (n int, exact bool, err error) {
	exact = true
	s := newSearch(compile(w, r))
	s.emit = func() bool {
		exact = n < limit
		if exact {
			n++
		}
		return exact
	}
	err = s.run()
	return n, exact && err == nil, err
}

// search walks the assignments of slots to providers, anchor by anchor, in the total order.
type search struct {
	*problem
	after *Position
	emit  func() bool // for the assignment in chosen; false ends the search
	steps int
	err   error

	anchor  *tree
	options [][]option // per slot, in path order
	chosen  []option   // per slot, up to the current depth
	loads   []int64    // amount chosen so far, by provider's local number and merged class
	holders []int32    // suffixed slots served so far, by local number

	matchers    []*matcher
	clauseArena []uint64   // what own options meet, reused from anchor to anchor
	met         [][]uint64 // per depth: clauses met so far
	reach       [][]uint64 // per slot: clauses that this slot and later ones can still meet

	shared    map[string]*sharedOptions
	numbers   map[int32]int32 // local numbers of foreign sharing providers, counted from 0
	exhausted map[*sharedOptions]bool
}

// option is a provider that can serve a slot. Local numbers the providers of one anchor: its own by place,
// then the sharing ones of other trees.
type option struct {
	node  *node
	local int32
	meets []uint64 // clauses its traits meet, for the unsuffixed group
}

// sharedOptions are, per slot, the sharing providers that a set of aggregates makes usable.
type sharedOptions struct {
	options [][]option
	any     bool
}

func newSearch(p *problem) *search {
	s := &search{
		problem:   p,
		options:   make([][]option, len(p.slots)),
		chosen:    make([]option, len(p.slots)),
		shared:    map[string]*sharedOptions{},
		numbers:   map[int32]int32{},
		exhausted: map[*sharedOptions]bool{},
	}
	s.matchers = p.newMatchers()
	words := (len(p.clauses) + 63) / 64
	for range p.loose + 1 {
		s.met = append(s.met, make([]uint64, words))
		s.reach = append(s.reach, make([]uint64, words))
	}
	return s
}

// run emits every candidate after the position.
func (s *search) run() error {
	if len(s.slots) == 0 {
		return nil
	}
	start := ""
	if s.after != nil {
		start = s.after.anchor
	}
	for root, anchor := range s.world.trees.from(start) {
		if !s.enter(anchor) {
			if s.err != nil {
				return s.err
			}
			continue
		}
		if !s.place(0, s.after != nil && root == start) {
			return s.err
		}
	}
	return s.err
}

// step counts work; it reports false when there was too much.
func (s *search) step(n int) bool {
	if s.steps += n; s.steps > MaxSteps {
		s.err = ErrTooComplex
		return false
	}
	return true
}

// enter prepares the search below an anchor: every slot's options, narrowed by what no assignment can get
// around. It reports false when nothing can come of it.
func (s *search) enter(anchor *tree) bool {
	if !s.step(1) || !s.anchored(anchor) {
		return false
	}
	s.anchor = anchor
	shared := s.sharedFor(anchor)
	s.clauseArena = s.clauseArena[:0]
	ownless := true
	for i := range s.slots {
		own, ok := s.fill(i, anchor, shared)
		if !ok {
			return false
		}
		ownless = ownless && own == 0
	}
	if ownless {
		// Only providers of other trees: every anchor with the same aggregates has the same assignments.
		if s.exhausted[shared] {
			return false
		}
		s.exhausted[shared] = true
	}
	if locals := len(anchor.members) + len(s.numbers); len(s.holders) < locals {
		s.holders = make([]int32, locals)
		s.loads = make([]int64, locals*s.classes)
	}
	return s.narrowSubtrees() && s.reachClauses() && s.matchAll()
}

// fill lists the options of a slot in path order and says how many are of the anchor's own tree; it reports
// false when there are none at all.
func (s *search) fill(i int, anchor *tree, shared *sharedOptions) (own int, ok bool) {
	slot := &s.slots[i]
	options := s.options[i][:0]
	var foreign []option
	if shared != nil {
		foreign = shared.options[i]
		if !s.step(len(foreign)) {
			return 0, false
		}
	}
	base := int32(len(anchor.members))
	next := 0
	for ; next < len(foreign) && foreign[next].node.tree.root < anchor.root; next++ {
		options = append(options, foreign[next].shifted(base))
	}
	if !s.step(len(anchor.members)) {
		return 0, false
	}
	for place, id := range anchor.members {
		if !s.hasRoom(slot, id) {
			continue
		}
		if n := s.world.nodes.at(id); s.serves(slot, n, anchor) {
			options = append(options, option{node: n, local: int32(place), meets: s.meets(i, n)})
			own++
		}
	}
	for ; next < len(foreign); next++ {
		if foreign[next].node.tree != anchor {
			options = append(options, foreign[next].shifted(base))
		} else {
			own++ // at home the provider is an own option; the anchor is not interchangeable with others
		}
	}
	s.options[i] = options
	return own, len(options) > 0
}

func (o option) shifted(base int32) option {
	o.local += base
	return o
}

// hasRoom is the quick test of the columns and sets before the provider itself is touched.
func (s *search) hasRoom(slot *slot, id int32) bool {
	if !slot.allowed.has(id) {
		return false
	}
	for i := range slot.demands {
		d := &slot.demands[i]
		if d.class == unknown {
			return false
		}
		if c := s.world.columns.at(d.class); c.rooms.at(id) <= d.amount {
			return false
		}
	}
	return true
}

// sharedFor lists the sharing providers that the anchor's aggregates make usable; nil when there are none.
func (s *search) sharedFor(anchor *tree) *sharedOptions {
	if len(anchor.aggregates) == 0 {
		return nil
	}
	var key []byte
	for _, id := range anchor.aggregates {
		if entry := s.world.aggregated.at(id); len(entry.sharers) > 0 {
			key = append(key, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		}
	}
	if len(key) == 0 {
		return nil
	}
	if shared, found := s.shared[string(key)]; found {
		return shared
	}
	s.clauseArena = nil
	ids := map[int32]bool{}
	for _, id := range anchor.aggregates {
		for _, sharer := range s.world.aggregated.at(id).sharers {
			ids[sharer] = true
		}
	}
	nodes := make([]*node, 0, len(ids))
	for id := range maps.Keys(ids) {
		nodes = append(nodes, s.world.nodes.at(id))
	}
	slices.SortFunc(nodes, comparePlaces)

	shared := &sharedOptions{options: make([][]option, len(s.slots))}
	for i := range s.slots {
		slot := &s.slots[i]
		s.step(len(nodes))
		for _, n := range nodes {
			if s.serves(slot, n, nil) {
				number, found := s.numbers[n.id]
				if !found {
					number = int32(len(s.numbers))
					s.numbers[n.id] = number
				}
				shared.options[i] = append(shared.options[i], option{node: n, local: number, meets: s.meets(i, n)})
			}
		}
	}
	s.shared[string(key)] = shared
	s.clauseArena = nil // it holds what the shared options meet, which stays
	return shared
}

// meets are the clauses of the unsuffixed group that a provider's traits meet, nil for other slots.
func (s *search) meets(i int, n *node) []uint64 {
	if i >= s.loose || len(s.clauses) == 0 {
		return nil
	}
	words := (len(s.clauses) + 63) / 64
	start := len(s.clauseArena)
	s.clauseArena = append(s.clauseArena, make([]uint64, words)...)
	meets := s.clauseArena[start : start+words : start+words]
	for c, clause := range s.clauses {
		if intersects(clause, n.traits) {
			meets[c/64] |= 1 << (c % 64)
		}
	}
	return meets
}

// reachClauses works out which clauses each slot and those after it can meet; false if some clause never is.
func (s *search) reachClauses() bool {
	if len(s.clauses) == 0 {
		return true
	}
	for i := s.loose - 1; i >= 0; i-- {
		copy(s.reach[i], s.reach[i+1])
		for _, o := range s.options[i] {
			for word := range o.meets {
				s.reach[i][word] |= o.meets[word]
			}
		}
	}
	return s.clausesWithin(s.reach[0], s.met[0])
}

// clausesWithin says whether two sets together hold every clause.
func (s *search) clausesWithin(a, b []uint64) bool {
	for c := range s.clauses {
		if (a[c/64]|b[c/64])&(1<<(c%64)) == 0 {
			return false
		}
	}
	return true
}

// place chooses a provider for the slot at this depth and goes on to the next. Tight means that all slots
// so far were chosen as in the position to continue after. It reports false when the search has ended.
func (s *search) place(depth int, tight bool) bool {
	if depth == len(s.slots) {
		if tight || !s.isFirstAnchor() {
			return s.err == nil
		}
		return s.emit()
	}
	for _, o := range s.options[depth] {
		if !s.step(1) {
			return false
		}
		stillTight := false
		if tight {
			order := s.world.comparePath(o.node, s.after.paths, depth)
			if order < 0 {
				continue
			}
			stillTight = order == 0
		}
		if !s.fits(depth, o) {
			continue
		}
		s.choose(depth, o)
		if s.promising(depth) && !s.place(depth+1, stillTight) {
			s.release(depth, o)
			return false
		}
		s.release(depth, o)
		if s.err != nil {
			return false
		}
	}
	return true
}

// fits says whether a provider can take a slot on top of what is chosen already.
func (s *search) fits(i int, o option) bool {
	if s.isolate && i >= s.loose && s.holders[o.local] > 0 {
		return false
	}
	for _, d := range s.slots[i].demands {
		if !d.merged {
			continue
		}
		sum := s.loads[int(o.local)*s.classes+d.index] + d.amount
		if stock := o.node.stock(d.class); sum > stock.free || sum > stock.maxUnit {
			return false
		}
	}
	return true
}

func (s *search) choose(i int, o option) {
	s.chosen[i] = o
	for _, d := range s.slots[i].demands {
		if d.merged {
			s.loads[int(o.local)*s.classes+d.index] += d.amount
		}
	}
	if i >= s.loose {
		s.holders[o.local]++
	} else if len(s.clauses) > 0 {
		for word := range o.meets {
			s.met[i+1][word] = s.met[i][word] | o.meets[word]
		}
	}
}

func (s *search) release(i int, o option) {
	for _, d := range s.slots[i].demands {
		if d.merged {
			s.loads[int(o.local)*s.classes+d.index] -= d.amount
		}
	}
	if i >= s.loose {
		s.holders[o.local]--
	}
}

// promising prunes: it reports false only if no choice for the slots after this depth completes a candidate.
func (s *search) promising(depth int) bool {
	if depth < s.loose && len(s.clauses) > 0 && !s.clausesWithin(s.met[depth+1], s.reach[depth+1]) {
		return false
	}
	for _, subtree := range s.subtrees {
		if !s.subtreePossible(subtree, depth) {
			return false
		}
	}
	for _, m := range s.matchers {
		if !s.rematch(m, depth) {
			return false
		}
	}
	return s.err == nil
}

// isFirstAnchor says whether no lesser anchor allows the same assignment. One that needs a provider of the
// anchor's own has only this anchor.
func (s *search) isFirstAnchor() bool {
	least := s.chosen[0].node
	for _, o := range s.chosen {
		if !o.node.sharing {
			return true
		}
	}
	if least.tree.root < s.anchor.root && s.allows(least.tree) {
		return false
	}
	for _, id := range least.aggregates {
		roots := s.world.aggregated.at(id).roots
		for root, rootID := range roots.all() {
			if root >= s.anchor.root {
				break
			}
			if !s.step(1) || s.allows(s.world.nodes.at(rootID).tree) {
				return false
			}
		}
	}
	return true
}

// allows says whether the chosen providers, all of them sharing, could serve from another anchor too.
func (s *search) allows(anchor *tree) bool {
	if !s.anchored(anchor) {
		return false
	}
	for i, o := range s.chosen {
		if !o.node.reaches(anchor) || !s.serves(&s.slots[i], o.node, anchor) {
			return false
		}
	}
	return true
}

// candidate builds what is chosen.
func (s *search) candidate() Candidate {
	var candidate Candidate
	given := map[*node]map[string]int64{}
	for i, o := range s.chosen {
		if len(s.slots[i].demands) > 0 && given[o.node] == nil {
			given[o.node] = map[string]int64{}
		}
		for _, d := range s.slots[i].demands {
			given[o.node][d.name] += d.amount
		}
	}
	for n, amounts := range given {
		allocation := ProviderAllocation{Provider: n.provider.UUID}
		for class, amount := range amounts {
			allocation.Resources = append(allocation.Resources, Amount{ResourceClass: class, Amount: amount})
		}
		slices.SortFunc(allocation.Resources, compareAmounts)
		candidate.Allocations = append(candidate.Allocations, allocation)
	}
	slices.SortFunc(candidate.Allocations, func(a, b ProviderAllocation) int { return cmp.Compare(a.Provider, b.Provider) })

	if s.loose > 0 {
		mapping := Mapping{}
		for _, o := range s.chosen[:s.loose] {
			mapping.Providers = append(mapping.Providers, o.node.provider.UUID)
		}
		mapping.Providers = sortedSet(mapping.Providers)
		candidate.Mappings = append(candidate.Mappings, mapping)
	}
	for i := s.loose; i < len(s.slots); i++ {
		uuid := s.chosen[i].node.provider.UUID
		candidate.Mappings = append(candidate.Mappings, Mapping{Suffix: s.slots[i].suffix, Providers: []string{uuid}})
	}
	return candidate
}

func compareAmounts(a, b Amount) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) }
