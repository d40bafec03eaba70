package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/google/uuid"
)

// Position is a position in the total order of one request's candidates. It
// names uuids, not rows, so that a search can continue from it after providers
// were added, changed or deleted.
type Position struct {
	request fingerprint
	anchor  string
	round   int // the candidate's number below its anchor; 0 in plain DepthFirst, whose positions have paths instead
	// score is the anchor's score in the order of a strategy.
	score    float64
	isScored bool
	// preferred is the anchor's score of preferences.
	preferred   int16
	isPreferred bool
	// combination is the index of the combination of alternatives, if there are
	// several.
	combination int
	isCombined  bool
	// paths are, per slot, the uuids from the root down to the provider. A
	// short path begins below the root, because the string had no room for the
	// whole path.
	paths []positionPath
}

// positionPath is the path of a provider, or the lower end of it.
type positionPath struct {
	uuids []string
	short bool
}

// ErrInvalidPosition is the error of a string that is not a position.
var ErrInvalidPosition = errors.New("placement: the text is not a position of candidates")

// ErrPositionMismatch is the error of a position that came from another
// request.
var ErrPositionMismatch = errors.New("placement: the position is of another request")

// ErrPositionGone is the error of a position with a shortened path if no
// provider of that path exists any more.
var ErrPositionGone = errors.New("placement: the position refers to providers that no longer exist")

// Limits of a position: lengths in characters, and slots. Paths are shortened
// to fit into usualPositionLength, which has room for at least the providers of
// 18 slots without their ancestors. Each further slot adds 24 characters.
const (
	usualPositionLength = 480
	maxPositionLength   = 65536
	maxPositionSlots    = MaxGroups + MaxResources
)

// String returns the position as a string of A-Z, a-z, 0-9, - and _, which
// ParsePosition reads. It is base64 of: the request's fingerprint; the anchor;
// a table of providers; per slot an index into that table, or no slots but the
// round and perhaps the score of an order; perhaps two bytes for the score of
// preferences; perhaps one byte for the combination. Indices begin at 1; 0
// means no provider. A table entry is a uuid and a number: 0 for a root, 1 for
// a provider whose ancestors are omitted, otherwise one plus the index of its
// parent, which precedes it. As many ancestors as fit are kept, nearest first.
func (p Position) String() string {
	deepest := 0
	for _, path := range p.paths {
		deepest = max(deepest, len(path.uuids))
	}
	text := p.withLevels(deepest)
	if len(text) > usualPositionLength {
		fitting := sort.Search(deepest, func(i int) bool { return len(p.withLevels(i+1)) > usualPositionLength })
		text = p.withLevels(max(1, fitting))
	}
	return text
}

// withLevels returns the string with at most the last levels uuids of each path.
func (p Position) withLevels(levels int) string {
	type entry struct {
		uuid  string
		above uint64
	}
	numbers := map[entry]uint64{}
	var table, slots []byte
	for _, path := range p.paths {
		uuids, above := path.uuids, uint64(0)
		if cut := len(uuids) - levels; cut > 0 {
			uuids, above = uuids[cut:], 1
		} else if path.short {
			above = 1
		}
		var last uint64
		for _, id := range uuids {
			e := entry{id, above}
			number, ok := numbers[e]
			if !ok {
				number = uint64(len(numbers)) + 1
				numbers[e] = number
				table = appendUUID(table, id)
				table = binary.AppendUvarint(table, above)
			}
			last, above = number, number+1
		}
		slots = binary.AppendUvarint(slots, last)
	}
	packed := appendUUID(p.request[:], p.anchor)
	packed = binary.AppendUvarint(packed, uint64(len(numbers)))
	packed = append(packed, table...)
	packed = binary.AppendUvarint(packed, uint64(len(p.paths)))
	if len(p.paths) == 0 {
		packed = binary.AppendUvarint(packed, uint64(p.round))
	}
	if p.isScored {
		packed = binary.BigEndian.AppendUint64(packed, math.Float64bits(p.score))
	}
	packed = append(packed, slots...)
	if p.isPreferred {
		packed = binary.BigEndian.AppendUint16(packed, uint16(p.preferred))
	}
	if p.isCombined {
		packed = append(packed, byte(p.combination))
	}
	return base64.RawURLEncoding.EncodeToString(packed)
}

// ParsePosition parses a string that String returned. The error wraps
// ErrInvalidPosition.
func ParsePosition(text string) (Position, error) {
	if len(text) > maxPositionLength {
		return Position{}, fmt.Errorf("%w: longer than %d characters", ErrInvalidPosition, maxPositionLength)
	}
	packed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return Position{}, fmt.Errorf("%w: not base64", ErrInvalidPosition)
	}
	r := positionReader{rest: packed}
	var p Position
	copy(p.request[:], r.readBytes(len(p.request)))
	p.anchor = r.readUUID()

	uuids, above := []string{""}, []int{0} // entry 0 stands for "no provider"
	for range r.readCount(len(r.rest) / (len(uuid.UUID{}) + 1)) {
		uuids = append(uuids, r.readUUID())
		above = append(above, r.readCount(len(above)))
	}
	for range r.readCount(maxPositionSlots) {
		var path positionPath
		for i := r.readCount(len(uuids) - 1); i > 0; i = above[i] - 1 {
			path.uuids = append(path.uuids, uuids[i])
			path.short = above[i] == 1
		}
		slices.Reverse(path.uuids)
		p.paths = append(p.paths, path)
	}
	if len(p.paths) == 0 {
		p.round = r.readCount(MaxSteps)
		if p.isScored = len(r.rest) >= 8; p.isScored {
			p.score = math.Float64frombits(binary.BigEndian.Uint64(r.readBytes(8)))
		}
		if p.isPreferred = len(r.rest) >= 2; p.isPreferred {
			p.preferred = int16(binary.BigEndian.Uint16(r.readBytes(2)))
		}
	}
	if p.isCombined = len(r.rest) > 0; p.isCombined {
		p.combination = int(r.readBytes(1)[0])
	}
	if r.failed || len(r.rest) > 0 {
		return Position{}, ErrInvalidPosition
	}
	return p, nil
}

// in returns the position with whole paths. It completes a short path by the
// path of its first provider that still exists, or returns ErrPositionGone.
func (p *Position) in(w *World) (*Position, error) {
	whole := *p
	whole.paths = slices.Clone(p.paths)
	for slot, path := range p.paths {
		if !path.short {
			continue
		}
		known := slices.IndexFunc(path.uuids, w.byUUID.has)
		if known < 0 {
			return nil, ErrPositionGone
		}
		id, _ := w.byUUID.get(path.uuids[known])
		whole.paths[slot] = positionPath{uuids: append(w.pathOf(w.nodes.at(id)), path.uuids[known+1:]...)}
	}
	return &whole, nil
}

// appendUUID appends the 16 bytes of a uuid.
func appendUUID(packed []byte, text string) []byte {
	id, _ := uuid.Parse(text)
	return append(packed, id[:]...)
}

// positionReader reads packed positions from untrusted input. After the first
// failure it returns zeros.
type positionReader struct {
	rest   []byte
	failed bool
}

func (r *positionReader) readBytes(n int) []byte {
	if r.failed || len(r.rest) < n {
		r.failed = true
		return make([]byte, n)
	}
	read := r.rest[:n]
	r.rest = r.rest[n:]
	return read
}

func (r *positionReader) readUUID() string {
	var id uuid.UUID
	return uuid.UUID(r.readBytes(len(id))).String()
}

// readCount returns a number, and fails if it exceeds the limit.
func (r *positionReader) readCount(limit int) int {
	n, size := binary.Uvarint(r.rest)
	if r.failed || size <= 0 || n > uint64(limit) {
		r.failed = true
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

// compare orders the path of a node against the position's path for a slot. It
// returns 1 if the position has no such slot.
func (p *Position) compare(w *World, n *node, slot int) int {
	if slot >= len(p.paths) {
		return 1
	}
	return slices.Compare(w.pathOf(n), p.paths[slot].uuids)
}

// currentPosition returns the position of the chosen assignment.
func (s *search) currentPosition(request fingerprint) Position {
	p := Position{request: request, anchor: s.anchor.root, paths: make([]positionPath, len(s.chosen))}
	for i, o := range s.chosen {
		if i > 0 && o.node == s.chosen[i-1].node {
			p.paths[i] = p.paths[i-1] // paths are never changed
		} else {
			p.paths[i].uuids = s.world.pathOf(o.node)
		}
	}
	return p
}

// fingerprint identifies a request.
type fingerprint [8]byte

// fingerprint returns the fingerprint of the request's meaning. Duplicate traits,
// aggregates and suffixes do not matter, nor does the order of lists other than
// FirstOf and Shapes.
func (r *Request) fingerprint() fingerprint {
	if all := r.combinations(); len(all) == 1 {
		r = &all[0].Request
	}
	var w fingerprintWriter
	w.writeGroup(&r.Unsuffixed)
	w.writeList(fmt.Sprint(len(r.Groups)), fmt.Sprint(r.Policy))
	for _, g := range bySuffix(r.Groups) {
		w.writeGroup(&g)
	}
	var subtrees [][]string
	for _, subtree := range r.SameSubtree {
		subtrees = append(subtrees, subtree.Suffixes)
	}
	w.writeSets(subtrees)
	w.writeSet(r.RootRequired)
	w.writeSet(r.RootForbidden)
	if r.Hosts != nil {
		w.writeList(r.Hosts.Filter)
	}
	if len(r.Tolerates) > 0 {
		w.writeList(append(sortedSet(r.Tolerates), "tolerates")...)
	}
	w.writePreferences(r)
	w.writeOrder(r)
	if r.Distinct != DistinctNone {
		w.writeList("distinct", fmt.Sprint(r.Alternatives))
	}
	sum := sha256.Sum256(w.text)
	return fingerprint(sum[:8])
}

// fingerprintWriter encodes requests so that requests of different meaning have
// different encodings.
type fingerprintWriter struct{ text []byte }

func (w *fingerprintWriter) writeList(list ...string) {
	w.text = binary.AppendUvarint(w.text, uint64(len(list)))
	for _, s := range list {
		w.text = binary.AppendUvarint(w.text, uint64(len(s)))
		w.text = append(w.text, s...)
	}
}

// writeOrder writes the order, with its seed or its shapes.
func (w *fingerprintWriter) writeOrder(r *Request) {
	switch r.Order {
	case DepthFirst:
	case Random:
		w.writeList("order", fmt.Sprint(r.Order), fmt.Sprint(r.Seed))
	case LeastFragmenting:
		w.writeList("order", fmt.Sprint(r.Order), fmt.Sprint(len(r.Shapes)))
		for i := range r.Shapes {
			shape := r.Shapes[i].request().fingerprint()
			w.writeList(string(shape[:]), fmt.Sprint(r.Shapes[i].Weight))
		}
	default:
		w.writeList("order", fmt.Sprint(r.Order))
	}
}

// writePreferences writes the preferences that change the order.
func (w *fingerprintWriter) writePreferences(r *Request) {
	var terms [][]string
	for _, p := range r.Preferences {
		if p.Weight == 0 {
			continue
		}
		term := []string{"trait", p.Trait, fmt.Sprint(p.Weight)}
		switch {
		case p.Hosts != nil:
			term[0], term[1] = "hosts", p.Hosts.Filter
		case p.Aggregate != "":
			term[0], term[1] = "aggregate", canonicalOr(p.Aggregate)
		}
		terms = append(terms, term)
	}
	slices.SortFunc(terms, slices.Compare)
	for _, term := range terms {
		w.writeList(append(term, "preference")...)
	}
}

func (w *fingerprintWriter) writeSet(list []string) { w.writeList(sortedSet(list)...) }

func (w *fingerprintWriter) writeSets(lists [][]string) {
	sorted := make([][]string, len(lists))
	for i, list := range lists {
		sorted[i] = sortedSet(list)
	}
	slices.SortFunc(sorted, slices.Compare)
	sorted = slices.CompactFunc(sorted, slices.Equal)
	w.writeList(fmt.Sprint(len(sorted)))
	for _, list := range sorted {
		w.writeList(list...)
	}
}

func (w *fingerprintWriter) writeGroup(g *Group) {
	w.writeList(g.Suffix, canonicalOr(g.InTree))
	amounts := slices.SortedFunc(slices.Values(g.Resources), func(a, b Amount) int {
		return cmp.Compare(a.ResourceClass, b.ResourceClass)
	})
	w.writeList(fmt.Sprint(len(amounts)))
	for _, amount := range amounts {
		w.writeList(amount.ResourceClass, fmt.Sprint(amount.Amount))
	}
	w.writeSets(g.clauses())
	w.writeSet(g.Forbidden)
	w.writeMemberOf(g.MemberOf)
	for i := range g.FirstOf {
		a := Group{}.with(&g.FirstOf[i])
		w.writeList("alternative")
		w.writeGroup(&a)
	}
}

func (w *fingerprintWriter) writeMemberOf(filters []AggregateFilter) {
	var anyOf [][]string
	var noneOf []string
	for _, filter := range filters {
		if len(filter.AnyOf) > 0 {
			anyOf = append(anyOf, canonicalAll(filter.AnyOf))
		}
		noneOf = append(noneOf, canonicalAll(filter.NoneOf)...)
	}
	w.writeSets(anyOf)
	w.writeSet(noneOf)
}

func canonicalAll(uuids []string) []string {
	canonical := make([]string, len(uuids))
	for i, text := range uuids {
		canonical[i] = canonicalOr(text)
	}
	return canonical
}
