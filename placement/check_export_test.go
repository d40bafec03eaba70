package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Check is for tests alone. In the program a Ledger decides whether a candidate
// can be claimed.

// ErrNotCandidate means that a candidate does not serve the request; the error
// that wraps it says why.
var ErrNotCandidate = errors.New("placement: not a candidate")

// Check tests one candidate against the definitions, without search: the
// providers of each group must meet its constraints from one common anchor, and
// the amounts must be exactly the requested ones and fit together. Every
// candidate that Candidates lists passes. A valid candidate from elsewhere
// passes too.
func Check(w *World, r *Request, candidate Candidate) error {
	p := compile(w, r)
	chosen, err := p.assignmentOf(candidate)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotCandidate, err)
	}
	for _, check := range []func([]*node) error{p.checkClauses, p.checkIsolation, p.checkSubtrees, p.checkSums} {
		if err := check(chosen); err != nil {
			return fmt.Errorf("%w: %w", ErrNotCandidate, err)
		}
	}
	for _, anchor := range w.trees.all() {
		if p.isAnchored(chosen, anchor) {
			return nil
		}
	}
	return fmt.Errorf("%w: no root from which every provider may serve its group", ErrNotCandidate)
}

// candidateReader determines the provider of each slot of a candidate.
type candidateReader struct {
	*plan
	left    map[string]map[string]int64 // by provider and class: amounts not assigned to a slot yet
	serving map[string][]string         // by suffix
	chosen  []*node
}

// assignmentOf returns the provider of each slot of a candidate. It fails if
// the candidate contains anything else.
func (p *plan) assignmentOf(candidate Candidate) ([]*node, error) {
	c := &candidateReader{plan: p, left: map[string]map[string]int64{}, serving: map[string][]string{},
		chosen: make([]*node, len(p.slots))}
	for _, allocation := range candidate.Allocations {
		if c.left[allocation.Provider] != nil {
			return nil, fmt.Errorf("two allocations on provider %s", allocation.Provider)
		}
		c.left[allocation.Provider] = map[string]int64{}
		for _, amount := range allocation.Resources {
			c.left[allocation.Provider][amount.ResourceClass] += amount.Amount
		}
	}
	for _, mapping := range candidate.Mappings {
		c.serving[mapping.Suffix] = mapping.Providers
	}
	for _, read := range []func() error{c.readSuffixed, c.readUnsuffixed, c.readRest} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return c.chosen, nil
}

func (c *candidateReader) choose(i int, uuid string) error {
	id, ok := c.world.byUUID.get(uuid)
	if !ok {
		return fmt.Errorf("no provider %s", uuid)
	}
	c.chosen[i] = c.world.nodes.at(id)
	for _, d := range c.slots[i].demands {
		if c.left[uuid] == nil {
			return fmt.Errorf("no allocation of %s on %s", d.name, uuid)
		}
		c.left[uuid][d.name] -= d.amount
	}
	return nil
}

func (c *candidateReader) readSuffixed() error {
	for i := c.classSlots; i < len(c.slots); i++ {
		serving := c.serving[c.slots[i].suffix]
		if len(serving) != 1 {
			return fmt.Errorf("%d providers serve group %q", len(serving), c.slots[i].suffix)
		}
		if err := c.choose(i, serving[0]); err != nil {
			return err
		}
	}
	return nil
}

// readUnsuffixed assigns the amounts that the suffixed groups leave, each class
// whole and to one provider.
func (c *candidateReader) readUnsuffixed() error {
	serving := map[string]bool{}
	for i := range c.classSlots {
		d := c.slots[i].demands[0]
		uuids := slices.Sorted(maps.Keys(c.left))
		k := slices.IndexFunc(uuids, func(uuid string) bool {
			return c.left[uuid][d.name] == d.amount && slices.Contains(c.serving[""], uuid)
		})
		if k < 0 {
			return fmt.Errorf("no provider of %d %s for the unsuffixed group", d.amount, d.name)
		}
		if err := c.choose(i, uuids[k]); err != nil {
			return err
		}
		serving[uuids[k]] = true
	}
	if len(serving) != len(c.serving[""]) {
		return errors.New("the mapping of the unsuffixed group names other providers")
	}
	return nil
}

// readRest fails if the candidate contains more than the slots ask for.
func (c *candidateReader) readRest() error {
	groups := len(c.slots) - c.classSlots
	if c.classSlots > 0 {
		groups++
	}
	if len(c.serving) != groups {
		return errors.New("the mappings name groups that are not asked for")
	}
	for _, uuid := range slices.Sorted(maps.Keys(c.left)) {
		for _, class := range slices.Sorted(maps.Keys(c.left[uuid])) {
			if left := c.left[uuid][class]; left != 0 {
				return fmt.Errorf("%d %s more than asked for on %s", left, class, uuid)
			}
		}
	}
	return nil
}

func (p *plan) checkClauses(chosen []*node) error {
	for _, clause := range p.clauses {
		if !slices.ContainsFunc(chosen[:p.classSlots], func(n *node) bool { return intersects(clause, n.traits) }) {
			return errors.New("the providers of the unsuffixed group lack a required trait")
		}
	}
	return nil
}

func (p *plan) checkIsolation(chosen []*node) error {
	suffixed := chosen[p.classSlots:]
	for i, n := range suffixed {
		if p.isolate && slices.Contains(suffixed[:i], n) {
			return fmt.Errorf("%s serves two isolated groups", n.provider.UUID)
		}
	}
	return nil
}

func (p *plan) checkSubtrees(chosen []*node) error {
	for _, subtree := range p.subtrees {
		if !slices.ContainsFunc(subtree, func(top int) bool {
			return !slices.ContainsFunc(subtree, func(i int) bool { return !chosen[top].covers(chosen[i]) })
		}) {
			return errors.New("the providers of a same-subtree constraint have no ancestor among them")
		}
	}
	return nil
}

func (p *plan) checkSums(chosen []*node) error {
	type key struct {
		n     *node
		class int32
	}
	sums := map[key]int64{}
	for i, n := range chosen {
		for _, d := range p.slots[i].demands {
			sums[key{n, d.class}] += d.amount
		}
	}
	for _, n := range chosen {
		for _, i := range n.inventories {
			if sum := sums[key{n, i.class}]; sum > 0 && (sum > i.free || sum > int64(i.maxUnit)) {
				return fmt.Errorf("the sum of the amounts on %s does not fit", n.provider.UUID)
			}
		}
	}
	return nil
}

// isAnchored reports whether every chosen provider can serve its slot from an
// anchor.
func (p *plan) isAnchored(chosen []*node, anchor *providerTree) bool {
	if !p.mayAnchor(anchor) {
		return false
	}
	for i, n := range chosen {
		if !n.reaches(anchor) || !p.serves(&p.slots[i], n, anchor) {
			return false
		}
	}
	return true
}

// IsDescendant reports whether a provider is the other one or its descendant.
func (w *World) IsDescendant(uuid, of string) bool {
	id, ok := w.byUUID.get(uuid)
	ancestor, ancestorOK := w.byUUID.get(of)
	return ok && ancestorOK && w.nodes.at(ancestor).covers(w.nodes.at(id))
}

// FitsBySearch is Fits without the count of trees of one provider.
func FitsBySearch(w *World, r *Request) Fit {
	f := newFitter(w, r)
	f.searchTrees()
	return f.finish(r)
}
