package placement

import (
	"slices"
	"strings"
)

// TaintPrefix begins the names of taints. A taint is a trait that repels. Only
// requests that tolerate it may use its provider and the provider's descendants,
// or have a root with it as their anchor. Claims ignore taints.
const TaintPrefix = "CUSTOM_TAINT_"

// maxTaintSteps is the maximum number of steps of an explanation that concern a
// single taint each. One more step counts the other taints together.
const maxTaintSteps = 16

// tolerated returns the traits that the request tolerates: Tolerates, and every
// trait that it requires. All groups tolerate them.
func (r *Request) tolerated() []string {
	tolerated := slices.Concat(r.Tolerates, r.RootRequired, slices.Concat(r.Unsuffixed.clauses()...))
	for i := range r.Groups {
		tolerated = append(tolerated, slices.Concat(r.Groups[i].clauses()...)...)
	}
	return tolerated
}

func (v *validator) checkTaints(path string, taints []string) {
	v.checkTraits(path, taints)
	for i, name := range taints {
		v.require(!v.world.HasTrait(name) ||
			strings.HasPrefix(name, TaintPrefix), at(path, i), "must begin with "+TaintPrefix)
	}
}

// taints returns the taints that providers have had, by name.
func (w *World) taints() (taints []string) {
	for name := range w.traits.ids.from(TaintPrefix) {
		if !strings.HasPrefix(name, TaintPrefix) {
			break
		}
		taints = append(taints, name)
	}
	return taints
}

// untolerated returns the taints that a request does not tolerate, by name.
func (w *World) untolerated(r *Request) []string {
	taints := w.taints()
	if len(taints) == 0 {
		return nil
	}
	tolerated := r.tolerated()
	return slices.DeleteFunc(taints, func(name string) bool { return slices.Contains(tolerated, name) })
}

// repelledBy returns the providers with any of some taints and their
// descendants.
func (w *World) repelledBy(taints []string) mask {
	repelled := w.newMask()
	for id := range w.union(w.traitSets(w.traits.lookupAll(taints))).all() {
		n := w.nodes.at(id)
		for _, member := range n.tree.members[n.index:n.tree.ends[n.index]] {
			repelled.add(member)
		}
	}
	return repelled
}

// repel removes the providers that some taints repel from the providers allowed
// for each slot, and from the anchors.
func (p *plan) repel(taints []string) {
	repelled := p.world.repelledBy(taints)
	if repelled.isEmpty() {
		return
	}
	left := p.world.allIDs()
	left.without(repelled)
	for i := range p.slots {
		if s := &p.slots[i]; s.allowed == nil {
			s.allowed = left
		} else {
			s.allowed.keep(left)
		}
	}
	p.restrictAnchors(slices.Clone(left))
}

// explainTaints removes the repelled providers from all, one taint after the
// other.
func (e *explainer) explainTaints(taints []string) {
	for steps := 0; len(taints) > 0; {
		some, constraint := taints[:1], "tolerates "+taints[0]
		if steps == maxTaintSteps {
			some, constraint = taints, "tolerates"
		}
		taints = taints[len(some):]
		before := e.all.size()
		e.all.without(e.repelledBy(some))
		if after := e.all.size(); after < before {
			e.add(ConstraintTaint, "tolerates", constraint, before, after)
			steps++
		}
	}
}
