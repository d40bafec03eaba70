package model

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
)

// AllocationCandidateConnection is a page of candidates, all from one world. It
// computes the count and the explanation only when they are selected.
type AllocationCandidateConnection struct {
	world   *placement.World
	request *placement.Request
	after   *placement.Position
	page    placement.Page
	count   func() (candidateCount, error)
	explain func() *CandidateExplanation
	scoring func() *placement.Scoring
	// Beside are the connections of the same batch, including this one. It is
	// nil for a single connection.
	Beside []*AllocationCandidateConnection
}

type candidateCount struct {
	n     int
	exact bool
}

// CandidatesIn returns a page of the candidates for a request in a world.
func CandidatesIn(world *placement.World, request *placement.Request, after *placement.Position,
	first int) (*AllocationCandidateConnection, error) {
	page, err := placement.Candidates(world, request, after, first)
	if err != nil {
		return nil, tooComplex(err)
	}
	return &AllocationCandidateConnection{world: world, request: request, after: after, page: page,
		count: sync.OnceValues(func() (candidateCount, error) {
			n, exact, err := placement.Count(world, request, placement.MaxCount)
			return candidateCount{n, exact}, tooComplex(err)
		}),
		explain: sync.OnceValue(func() *CandidateExplanation { return explanationIn(world, request) }),
		scoring: sync.OnceValue(func() *placement.Scoring { return world.Scoring(request.Preferences) }),
	}, nil
}

// tooComplex turns the errors of a search that have a cause in the request into
// refusals. It returns any other error, and nil, unchanged.
func tooComplex(err error) error {
	switch {
	case errors.Is(err, placement.ErrTooComplex):
		return problem.Refuse(problem.ErrTooComplex,
			"the search takes too many steps; request less at once").Because(err)
	case errors.Is(err, placement.ErrPositionMismatch):
		return problem.Invalid("after", "is a cursor of another request or order")
	case errors.Is(err, placement.ErrPositionGone):
		return problem.Invalid("after", "refers to providers that no longer exist; start from the first page")
	}
	return err
}

// Roots returns the roots of the trees with a provider in the page.
func (c *AllocationCandidateConnection) Roots() []*ResourceProvider {
	var roots []*ResourceProvider
	seen := map[string]bool{}
	add := func(uuid string) {
		if provider, ok := c.world.Provider(uuid); ok && !seen[provider.Root] {
			seen[provider.Root] = true
			roots = append(roots, ProviderAt(c.world, provider.Root))
		}
	}
	for _, candidate := range c.page.Candidates {
		for _, allocation := range candidate.Allocations {
			add(allocation.Provider)
		}
		for _, mapping := range candidate.Mappings {
			for _, uuid := range mapping.Providers {
				add(uuid)
			}
		}
	}
	return roots
}

// Nearest returns the providers of the near misses, of this connection and of
// the connections in Beside.
func (c *AllocationCandidateConnection) Nearest() []*ResourceProvider {
	var nearest []*ResourceProvider
	for _, one := range c.Beside {
		nearest = append(nearest, one.Explanation().NearestProviders()...)
	}
	if c.Beside == nil {
		nearest = c.Explanation().NearestProviders()
	}
	return nearest
}

// Nodes returns the candidates of the page.
func (c *AllocationCandidateConnection) Nodes() []AllocationCandidate {
	out := make([]AllocationCandidate, len(c.page.Candidates))
	for i := range c.page.Candidates {
		out[i] = AllocationCandidate{candidate: &c.page.Candidates[i], of: c}
	}
	return out
}

// Edges returns the candidates with their cursors.
func (c *AllocationCandidateConnection) Edges() []AllocationCandidateEdge {
	out := make([]AllocationCandidateEdge, len(c.page.Candidates))
	nodes := c.Nodes()
	for i := range nodes {
		out[i] = AllocationCandidateEdge{Cursor: c.page.Positions[i].String(), Node: &nodes[i]}
	}
	return out
}

// PageInfo returns the cursors of the page and whether other pages exist.
func (c *AllocationCandidateConnection) PageInfo() *PageInfo {
	info := &PageInfo{HasNext: c.page.HasNext}
	if n := len(c.page.Positions); n > 0 {
		start, end := c.page.Positions[0].String(), c.page.Positions[n-1].String()
		info.StartCursor, info.EndCursor = &start, &end
	}
	if c.after != nil {
		info.behind = func(context.Context) (bool, error) {
			first, err := placement.Candidates(c.world, c.request, nil, 1)
			behind := len(first.Positions) > 0 &&
				(info.StartCursor == nil || first.Positions[0].String() != *info.StartCursor)
			return behind, tooComplex(err)
		}
	}
	return info
}

// TotalCount returns the number of candidates, up to placement.MaxCount.
func (c *AllocationCandidateConnection) TotalCount() (int, error) {
	count, err := c.count()
	return count.n, err
}

// TotalCountIsExact reports whether TotalCount counts all candidates.
func (c *AllocationCandidateConnection) TotalCountIsExact() (bool, error) {
	count, err := c.count()
	return count.exact, err
}

// ProviderSummaries returns the providers of all trees with a provider in the
// page.
func (c *AllocationCandidateConnection) ProviderSummaries() []ProviderSummary {
	providers := ProvidersIn(c.world, placement.ProviderSummaries(c.world, c.page.Candidates))
	out := make([]ProviderSummary, len(providers))
	for i, provider := range providers {
		out[i] = ProviderSummary{provider}
	}
	return out
}

// Explanation returns the number of providers that remained after each step of
// the search, and the near misses.
func (c *AllocationCandidateConnection) Explanation() *CandidateExplanation { return c.explain() }

// NearestProviders returns the providers of the near misses.
func (e *CandidateExplanation) NearestProviders() []*ResourceProvider {
	nearest := make([]*ResourceProvider, len(e.Nearest))
	for i, miss := range e.Nearest {
		nearest[i] = miss.Provider()
	}
	return nearest
}

func explanationIn(world *placement.World, request *placement.Request) *CandidateExplanation {
	return explanationOf(world, placement.Explain(world, request))
}

func explanationOf(world *placement.World, explanation placement.Explanation) *CandidateExplanation {
	out := &CandidateExplanation{Considered: explanation.Considered, Steps: explanation.Steps}
	for i := range explanation.Nearest {
		out.Nearest = append(out.Nearest, &NearMiss{NearMiss: &explanation.Nearest[i], world: world})
	}
	return out
}

// PlacePayload is the payload of the mutation place: the outcome of each
// consumer.
type PlacePayload struct {
	Results []*PlaceResult
	explain func() *CandidateExplanation
}

// PlacedIn returns the payload of outcomes. World is the world that had no room
// for a consumer, or nil if there was room. It is searched again only if the
// explanation is selected.
func PlacedIn(world *placement.World, placing *placement.Placing, results []*PlaceResult) *PlacePayload {
	return &PlacePayload{results, sync.OnceValue(func() *CandidateExplanation {
		if world == nil {
			return nil
		}
		return explanationOf(world, placing.Explain(world))
	})}
}

// PlaceRefusal is why the last mutation `place` for a consumer was refused.
// Explained returns the stored explanation, or nil if there is none.
type PlaceRefusal struct {
	Consumer  string
	ProjectID string
	RefusedAt time.Time
	Errors    []*RowError
	Explained func(*placement.World) *placement.Explanation
}

// Explanation returns why there was no room, without near misses that the world
// lacks. It returns nil if another rule refused the consumer, or if no
// explanation is stored.
func (r *PlaceRefusal) Explanation(world *placement.World) *CandidateExplanation {
	explanation := r.Explained(world)
	if explanation == nil {
		return nil
	}
	return explanationOf(world, *explanation)
}

// Explanation returns why there was no room, nil if there was.
func (p *PlacePayload) Explanation() *CandidateExplanation { return p.explain() }

// AllocationCandidate is one way to serve a request.
type AllocationCandidate struct {
	candidate *placement.Candidate
	of        *AllocationCandidateConnection
}

// Allocations returns one entry for each provider, with its amounts.
func (c *AllocationCandidate) Allocations() []CandidateAllocation {
	return allocationsIn(c.of.world, c.candidate.Allocations)
}

// allocationsIn returns allocations with their providers from a world.
func allocationsIn(world *placement.World, allocations []placement.ProviderAllocation) []CandidateAllocation {
	out := make([]CandidateAllocation, len(allocations))
	for i, allocation := range allocations {
		provider, _ := world.Provider(allocation.Provider)
		out[i] = CandidateAllocation{node: ResourceProvider{Provider: provider, World: world},
			Resources: allocation.Resources}
	}
	return out
}

// Mappings returns the providers of each group.
func (c *AllocationCandidate) Mappings() []GroupMapping {
	out := make([]GroupMapping, len(c.candidate.Mappings))
	for i, mapping := range c.candidate.Mappings {
		out[i] = GroupMapping{Suffix: mapping.Suffix, uuids: mapping.Providers, world: c.of.world}
	}
	return out
}

// Score returns the sum of the weights of the preferences that hold.
func (c *AllocationCandidate) Score() int {
	_, score := c.scored()
	return score
}

// Terms returns each preference with its weight and whether it holds.
func (c *AllocationCandidate) Terms() []*PreferenceTerm {
	terms, _ := c.scored()
	return terms
}

// Alternatives returns the alternative chosen for each group with alternatives.
func (c *AllocationCandidate) Alternatives() []placement.GroupAlternative {
	return append([]placement.GroupAlternative{}, c.candidate.Alternatives...)
}

func (c *AllocationCandidate) scored() ([]*PreferenceTerm, int) {
	return TermsOf(c.of.request.Preferences, c.of.scoring().Holds(c.candidate.Root))
}

// TermsOf returns the terms of a score, and the score: the sum of the weights
// of the preferences for which holds is true.
func TermsOf(preferences []placement.Preference, holds []bool) (terms []*PreferenceTerm, score int) {
	terms = make([]*PreferenceTerm, 0, len(holds))
	for i, held := range holds {
		terms = append(terms, &PreferenceTerm{Index: i, Weight: preferences[i].Weight, Holds: held})
		if held {
			score += preferences[i].Weight
		}
	}
	return terms, score
}

// Claim returns the candidate as the schema's CandidateClaim.
func (c *AllocationCandidate) Claim() *placement.Candidate { return c.candidate }

// CandidateAllocation is the amounts of one provider.
type CandidateAllocation struct {
	node      ResourceProvider
	Resources []placement.Amount
}

// Provider returns the provider.
func (a *CandidateAllocation) Provider() *ResourceProvider { return &a.node }

// GroupMapping is a group with the providers that serve it.
type GroupMapping struct {
	Suffix string
	uuids  []string
	world  *placement.World
}

// MappingsIn returns mappings with their providers from a world.
func MappingsIn(world *placement.World, mappings []placement.Mapping) []*GroupMapping {
	out := make([]*GroupMapping, len(mappings))
	for i, mapping := range mappings {
		out[i] = &GroupMapping{Suffix: mapping.Suffix, uuids: mapping.Providers, world: world}
	}
	return out
}

// ProvidersOfMappings returns the providers in mappings.
func ProvidersOfMappings(mappings []*GroupMapping) []*ResourceProvider {
	var out []*ResourceProvider
	for _, mapping := range mappings {
		providers := mapping.Providers()
		for k := range providers {
			out = append(out, &providers[k])
		}
	}
	return out
}

// Providers returns the providers that serve the group. It omits providers that
// are not in the world.
func (m *GroupMapping) Providers() []ResourceProvider {
	out := make([]ResourceProvider, 0, len(m.uuids))
	for _, uuid := range m.uuids {
		if provider, ok := m.world.Provider(uuid); ok {
			out = append(out, ResourceProvider{Provider: provider, World: m.world})
		}
	}
	return out
}

// ProviderSummary is a provider with its inventories and traits.
type ProviderSummary struct{ Provider *ResourceProvider }

// Inventories returns all inventories of the provider.
func (s *ProviderSummary) Inventories() []Inventory { return s.Provider.Inventories() }

// Traits returns all traits of the provider.
func (s *ProviderSummary) Traits() []string { return s.Provider.Traits }

// CandidateExplanation has the number of providers that remained after each
// step of a search, and the near misses.
type CandidateExplanation struct {
	Considered int
	Steps      []placement.ExplanationStep
	Nearest    []*NearMiss
}

// NearMiss is a tree that almost serves a request.
type NearMiss struct {
	*placement.NearMiss
	world *placement.World
}

// Provider returns the root of the tree.
func (m *NearMiss) Provider() *ResourceProvider { return ProviderIn(m.world, m.NearMiss.Provider) }
