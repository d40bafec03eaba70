package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Check is here for the tests alone: whoever claims a candidate is judged by a Ledger.

// ErrNotCandidate says that a candidate does not serve the request; the error that wraps it says why.
var ErrNotCandidate = errors.New("placement: not a candidate")

// Check tests one candidate against the definitions, without search: whoever serves each group must meet
// it from one common anchor, the amounts must be exactly those asked and must fit together. Every candidate
// that Candidates lists passes; so would one that was built elsewhere and is valid.
func Check(w *World, r *Request, candidate Candidate) error {
	p := compile(w, r)
	chosen, err := p.assign(candidate)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotCandidate, err)
	}
	if err := p.holds(chosen); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCandidate, err)
	}
	for _, anchor := range w.trees.all() {
		if p.anchoredAt(chosen, anchor) {
			return nil
		}
	}
	return fmt.Errorf("%w: no root from which every provider may serve its group", ErrNotCandidate)
}

// assign reads from a candidate which provider serves which slot, and tests that nothing else is given.
func (p *plan) assign(candidate Candidate) ([]*node, error) {
	given := map[string]map[string]int64{}
	for _, allocation := range candidate.Allocations {
		if given[allocation.Provider] != nil {
			return nil, fmt.Errorf("provider %s gives twice", allocation.Provider)
		}
		given[allocation.Provider] = map[string]int64{}
		for _, amount := range allocation.Resources {
			given[allocation.Provider][amount.ResourceClass] += amount.Amount
		}
	}
	mapped := map[string][]string{}
	for _, mapping := range candidate.Mappings {
		mapped[mapping.Suffix] = mapping.Providers
	}

	chosen := make([]*node, len(p.slots))
	choose := func(i int, uuid string) error {
		id, found := p.world.byUUID.get(uuid)
		if !found {
			return fmt.Errorf("no provider %s", uuid)
		}
		chosen[i] = p.world.nodes.at(id)
		for _, d := range p.slots[i].demands {
			given[uuid][d.name] -= d.amount
		}
		return nil
	}
	groups := 0
	for i := p.classSlots; i < len(p.slots); i++ {
		serving := mapped[p.slots[i].suffix]
		if len(serving) != 1 {
			return nil, fmt.Errorf("%d providers serve group %q", len(serving), p.slots[i].suffix)
		}
		for _, d := range p.slots[i].demands {
			if given[serving[0]] == nil {
				return nil, fmt.Errorf("%s gives nothing of %s", serving[0], d.name)
			}
		}
		if err := choose(i, serving[0]); err != nil {
			return nil, err
		}
		groups++
	}
	// What the suffixed groups leave is the unsuffixed group's, each class whole and from one provider.
	serving := map[string]bool{}
	for i := range p.classSlots {
		d := p.slots[i].demands[0]
		for _, uuid := range slices.Sorted(maps.Keys(given)) {
			if given[uuid][d.name] == d.amount && slices.Contains(mapped[""], uuid) && chosen[i] == nil {
				if err := choose(i, uuid); err != nil {
					return nil, err
				}
				serving[uuid] = true
			}
		}
		if chosen[i] == nil {
			return nil, fmt.Errorf("no provider gives %d %s to the unsuffixed group", d.amount, d.name)
		}
	}
	if p.classSlots > 0 {
		groups++
	}
	if len(serving) != len(mapped[""]) || len(mapped) != groups {
		return nil, errors.New("the mappings name providers or groups that are not asked")
	}
	for _, uuid := range slices.Sorted(maps.Keys(given)) {
		for _, class := range slices.Sorted(maps.Keys(given[uuid])) {
			if rest := given[uuid][class]; rest != 0 {
				return nil, fmt.Errorf("%s gives %d more %s than is asked", uuid, rest, class)
			}
		}
	}
	return chosen, nil
}

// holds tests what concerns the assignment as a whole and not its anchor.
func (p *plan) holds(chosen []*node) error {
	for _, clause := range p.clauses {
		met := false
		for _, n := range chosen[:p.classSlots] {
			met = met || intersects(clause, n.traits)
		}
		if !met {
			return errors.New("the providers of the unsuffixed group lack a required trait")
		}
	}
	if p.isolate {
		for i, n := range chosen[p.classSlots:] {
			if slices.Contains(chosen[p.classSlots:p.classSlots+i], n) {
				return fmt.Errorf("%s serves two isolated groups", n.provider.UUID)
			}
		}
	}
	for _, subtree := range p.subtrees {
		if !slices.ContainsFunc(subtree, func(top int) bool {
			return !slices.ContainsFunc(subtree, func(i int) bool { return !chosen[top].covers(chosen[i]) })
		}) {
			return errors.New("the providers of a same-subtree constraint have no ancestor among them")
		}
	}
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
		for _, s := range n.stocks {
			if sum := sums[key{n, s.class}]; sum > 0 && (sum > s.free || sum > s.maxUnit) {
				return fmt.Errorf("%s cannot give the sum of what is asked of it", n.provider.UUID)
			}
		}
	}
	return nil
}

// anchoredAt says whether an anchor lets every chosen provider serve its slot.
func (p *plan) anchoredAt(chosen []*node, anchor *tree) bool {
	if !p.anchored(anchor) {
		return false
	}
	for i, n := range chosen {
		if !n.reaches(anchor) || !p.serves(&p.slots[i], n, anchor) {
			return false
		}
	}
	return true
}

// IsDescendant says whether a provider is another one or lies below it. A move of a provider below its own
// descendant would be a loop.
func (w *World) IsDescendant(uuid, of string) bool {
	id, found := w.byUUID.get(uuid)
	ancestor, alsoFound := w.byUUID.get(of)
	return found && alsoFound && w.nodes.at(ancestor).covers(w.nodes.at(id))
}
