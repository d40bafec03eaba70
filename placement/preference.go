package placement

import (
	"cmp"
	"maps"
	"slices"
)

// Limits of preferences.
const (
	MaxPreferences = 64
	MaxWeight      = 100 // of a preference, in either direction
)

// Preference adds a weight to the score of the roots that it holds for. Exactly
// one of Trait, Aggregate and Hosts is set. It follows `PreferenceInput`.
//
// A preference is about a host, not about the providers that serve: all
// candidates of a root have one score, and claims never change it.
type Preference struct {
	// Trait holds for the roots of trees with a provider that has the trait.
	Trait string
	// Aggregate, a uuid, holds for the roots of trees with a member of it.
	Aggregate string
	// Hosts holds for the roots that are linked to one of its resources.
	Hosts  *Hosts
	Weight int
}

// isPreferring reports whether preferences change the order of candidates.
func (r *Request) isPreferring() bool {
	return slices.ContainsFunc(r.Preferences, func(p Preference) bool { return p.Weight != 0 })
}

func (v *validator) checkPreferences(preferences []Preference) {
	v.atMost(MaxPreferences, "preferences", len(preferences))
	if len(preferences) > MaxPreferences {
		return
	}
	for i, p := range preferences {
		path, given := at("preferences", i), 0
		if p.Trait != "" {
			v.checkTrait(under(path, "trait"), p.Trait)
			given++
		}
		if p.Aggregate != "" {
			v.checkUUID(under(path, "aggregate"), p.Aggregate)
			given++
		}
		if p.Hosts != nil {
			given++
		}
		v.require(given == 1, path, "must have exactly one of trait, aggregate and hosts")
		v.require(-MaxWeight <= p.Weight && p.Weight <= MaxWeight,
			under(path, "weight"), "must be between -100 and 100")
	}
}

// Scoring knows which roots the preferences of a request hold for, in one world.
type Scoring struct {
	world *World
	terms []scoringTerm
}

// scoringTerm holds the roots of a preference, and perhaps providers that are no
// roots.
type scoringTerm struct {
	roots  mask
	weight int
}

// Scoring returns the scoring by valid preferences.
func (w *World) Scoring(preferences []Preference) *Scoring {
	s := &Scoring{world: w}
	for _, p := range preferences {
		s.terms = append(s.terms, scoringTerm{w.rootsWith(p), p.Weight})
	}
	return s
}

// rootsWith returns the roots that a preference holds for; for Hosts perhaps
// other linked providers, too.
func (w *World) rootsWith(p Preference) mask {
	var providers mask
	switch {
	case p.Hosts != nil:
		return w.linked(p.Hosts)
	case p.Trait != "":
		providers = w.matching([][]string{{p.Trait}}, nil, nil)
	default:
		providers = w.matching(nil, nil, []AggregateFilter{{AnyOf: []string{p.Aggregate}}})
	}
	roots := w.newMask()
	for id := range providers.all() {
		if root := w.rootOf.at(id); root != 0 {
			roots.add(root - 1)
		}
	}
	return roots
}

// Holds reports which preferences hold for a root, in their order.
func (s *Scoring) Holds(root string) []bool {
	holds := make([]bool, len(s.terms))
	id, ok := s.world.byUUID.get(root)
	for i, term := range s.terms {
		holds[i] = ok && term.roots.has(id)
	}
	return holds
}

// scores returns the scores of roots by id, and the work in steps.
func (s *Scoring) scores() (scores []int16, steps int) {
	scores = make([]int16, s.world.idLimit)
	for _, term := range s.terms {
		for id := range term.roots.all() {
			scores[id] += int16(term.weight)
			steps++
		}
	}
	return scores, steps / 16 // an addition costs a fraction of a step
}

// preferredBy returns the scores of roots by id, nil if no preference has a
// weight other than 0, and the work in steps.
func (p *plan) preferredBy(r *Request) (scores []int16, steps int) {
	if !r.isPreferring() {
		return nil, 0
	}
	return p.world.Scoring(r.Preferences).scores()
}

// scoreLevel is the anchors of one score, by uuid.
type scoreLevel struct {
	score int16
	trees []*providerTree // nil for all
}

// levels returns the anchors by their scores, the highest first; for nil scores
// one level of all anchors.
func (p *plan) levels(scores []int16) []scoreLevel {
	if scores == nil {
		return []scoreLevel{{}}
	}
	byScore := map[int16][]*providerTree{}
	for _, tree := range p.world.trees.all() {
		if root := tree.members[0]; p.anchors.has(root) {
			byScore[scores[root]] = append(byScore[scores[root]], tree)
		}
	}
	var levels []scoreLevel
	for _, score := range slices.SortedFunc(maps.Keys(byScore), func(a, b int16) int { return cmp.Compare(b, a) }) {
		levels = append(levels, scoreLevel{score, byScore[score]})
	}
	return levels
}
