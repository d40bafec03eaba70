package placement

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// Position is a place in the total order of one request's candidates. It names uuids, not rows, so a search
// can go on from it after providers came, changed or vanished.
type Position struct {
	request fingerprint
	anchor  string
	paths   [][]string // per slot: the uuids from the root to the provider
}

// ErrInvalidPosition says that a text is no position.
var ErrInvalidPosition = errors.New("placement: not a position of candidates")

// ErrPositionMismatch says that a position came from another request.
var ErrPositionMismatch = errors.New("placement: a position of another request")

// A position of the largest request over providers some thousand levels deep fits.
const (
	maxPositionText  = 65536
	maxPositionSlots = MaxGroups + MaxResources
)

// String is the position as text of A-Z, a-z, 0-9, - and _, which ParsePosition reads. The form is: the
// request's fingerprint; the anchor; a table of providers, each a uuid and the number of its parent, which
// stands before it, plus one; and per slot a number in that table.
func (p Position) String() string {
	type entry struct {
		uuid   string
		parent uint64
	}
	numbers := map[entry]uint64{}
	var table []byte
	var slots []byte
	for _, path := range p.paths {
		var last uint64
		for _, uuid := range path {
			e := entry{uuid, last}
			number, found := numbers[e]
			if !found {
				number = uint64(len(numbers)) + 1
				numbers[e] = number
				table = append(table, packUUID(uuid)...)
				table = binary.AppendUvarint(table, last)
			}
			last = number
		}
		slots = binary.AppendUvarint(slots, last)
	}
	packed := slices.Concat(p.request[:], packUUID(p.anchor))
	packed = binary.AppendUvarint(packed, uint64(len(numbers)))
	packed = append(packed, table...)
	packed = binary.AppendUvarint(packed, uint64(len(p.paths)))
	return base64.RawURLEncoding.EncodeToString(append(packed, slots...))
}

// ParsePosition reads what String wrote; anything else is ErrInvalidPosition.
func ParsePosition(text string) (Position, error) {
	if len(text) > maxPositionText {
		return Position{}, fmt.Errorf("%w: longer than %d characters", ErrInvalidPosition, maxPositionText)
	}
	packed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return Position{}, fmt.Errorf("%w: not base64", ErrInvalidPosition)
	}
	r := positionReader{rest: packed}
	var p Position
	copy(p.request[:], r.take(len(p.request)))
	p.anchor = unpackUUID(r.take(16))

	uuids, parents := []string{""}, []int{0} // entry 0 stands for "no provider"
	for range r.count(len(r.rest) / 17) {
		uuids = append(uuids, unpackUUID(r.take(16)))
		parents = append(parents, r.count(len(parents)-1))
	}
	for range r.count(maxPositionSlots) {
		var path []string
		for i := r.count(len(uuids) - 1); i > 0; i = parents[i] {
			path = append(path, uuids[i])
		}
		slices.Reverse(path)
		p.paths = append(p.paths, path)
	}
	if r.failed || len(r.rest) > 0 {
		return Position{}, ErrInvalidPosition
	}
	return p, nil
}

// positionReader reads packed positions of any origin; after the first failure it yields zeros.
type positionReader struct {
	rest   []byte
	failed bool
}

func (r *positionReader) take(n int) []byte {
	if r.failed || len(r.rest) < n {
		r.failed = true
		return make([]byte, n)
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *positionReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if r.failed || size <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *positionReader) count(limit int) int {
	n := r.number()
	if n > uint64(limit) {
		r.failed = true
		return 0
	}
	return int(n)
}

// packUUID is the 16 bytes of a canonical uuid.
func packUUID(uuid string) []byte {
	packed, _ := hex.DecodeString(string(bytes.ReplaceAll([]byte(uuid), []byte("-"), nil)))
	return append(packed, make([]byte, 16)...)[:16]
}

func unpackUUID(packed []byte) string {
	text := hex.EncodeToString(packed)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// comparePath orders a node against the path of a position's slot.
func (w *World) comparePath(n *node, paths [][]string, slot int) int {
	if slot >= len(paths) {
		return 1
	}
	return slices.Compare(w.path(n), paths[slot])
}

// position is where the chosen assignment stands.
func (s *search) position(request fingerprint) Position {
	p := Position{request: request, anchor: s.anchor.root, paths: make([][]string, len(s.chosen))}
	for i, o := range s.chosen {
		p.paths[i] = s.world.path(o.node)
	}
	return p
}

// fingerprint identifies a request.
type fingerprint [8]byte

// hash is the fingerprint of what the request means: the order of its lists and repetitions do not count.
func (r *Request) hash() fingerprint {
	var text []byte
	put := func(parts ...string) {
		text = binary.AppendUvarint(text, uint64(len(parts)))
		for _, part := range parts {
			text = binary.AppendUvarint(text, uint64(len(part)))
			text = append(text, part...)
		}
	}
	sets := func(lists [][]string) {
		canonical := make([][]string, len(lists))
		for i, list := range lists {
			canonical[i] = sortedSet(list)
		}
		slices.SortFunc(canonical, slices.Compare)
		canonical = slices.CompactFunc(canonical, slices.Equal)
		put(fmt.Sprint(len(canonical)))
		for _, list := range canonical {
			put(list...)
		}
	}
	group := func(g *Group) {
		put(g.Suffix, canonicalOr(g.InTree))
		resources := slices.SortedFunc(slices.Values(g.Resources), compareAmounts)
		put(fmt.Sprint(len(resources)))
		for _, amount := range resources {
			put(amount.ResourceClass, fmt.Sprint(amount.Amount))
		}
		sets(g.clauses())
		put(sortedSet(g.Forbidden)...)
		var anyOf [][]string
		var noneOf []string
		for _, filter := range g.MemberOf {
			if len(filter.AnyOf) > 0 {
				anyOf = append(anyOf, canonicalAll(filter.AnyOf))
			}
			noneOf = append(noneOf, canonicalAll(filter.NoneOf)...)
		}
		sets(anyOf)
		put(sortedSet(noneOf)...)
	}
	group(&r.Unsuffixed)
	groups := slices.Clone(r.Groups)
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Suffix, b.Suffix) })
	put(fmt.Sprint(len(groups)), fmt.Sprint(r.Policy))
	for i := range groups {
		group(&groups[i])
	}
	var subtrees [][]string
	for _, subtree := range r.SameSubtree {
		subtrees = append(subtrees, subtree.Suffixes)
	}
	sets(subtrees)
	put(sortedSet(r.RootRequired)...)
	put(sortedSet(r.RootForbidden)...)

	sum := sha256.Sum256(text)
	return fingerprint(sum[:8])
}

func canonicalAll(uuids []string) []string {
	canonical := make([]string, len(uuids))
	for i, uuid := range uuids {
		canonical[i] = canonicalOr(uuid)
	}
	return canonical
}
