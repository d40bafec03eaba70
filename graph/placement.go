package graph

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

// ResourceProvider is a provider as one world has it: what is selected under it
// comes from that same world.
type ResourceProvider struct {
	*placement.Provider
	world *placement.World
}

func providerIn(world *placement.World, provider *placement.Provider) *ResourceProvider {
	if provider == nil {
		return nil
	}
	return &ResourceProvider{Provider: provider, world: world}
}

func providerAt(world *placement.World, uuid string) *ResourceProvider {
	provider, _ := world.Provider(uuid)
	return providerIn(world, provider)
}

func providerUUID(p *ResourceProvider) string { return p.UUID }

// forTrees makes a load of providers serve all providers of the trees that hold
// them: what is in memory leads from a provider to any other of its tree without a
// load.
func forTrees[V any](world *placement.World, fetch func(context.Context, []string) (map[string]V, error)) func(context.Context, []string) (map[string]V, error) {
	return func(ctx context.Context, uuids []string) (map[string]V, error) {
		all := treesOf(world, uuids)
		found, err := fetch(ctx, all)
		return withEvery(all, found), err
	}
}

// treesOf are the uuids of all providers of the trees that hold these.
func treesOf(world *placement.World, uuids []string) []string {
	all := slices.Clone(uuids)
	seen := map[string]bool{}
	for _, uuid := range uuids {
		provider, found := world.Provider(uuid)
		if !found || seen[provider.Root] {
			continue
		}
		seen[provider.Root] = true
		for _, member := range world.Tree(provider.Root) {
			all = append(all, member.UUID)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// resourcesOf finds the resources that providers are linked to, by the uuids of
// the providers.
func (r *Resolver) resourcesOf(ctx context.Context, world *placement.World, providers []string) (map[string]*catalog.Resource, error) {
	linked := map[string]string{}
	var uuids []string
	for _, uuid := range providers {
		if provider, found := world.Provider(uuid); found && provider.Resource != "" {
			linked[uuid], uuids = provider.Resource, append(uuids, provider.Resource)
		}
	}
	if len(uuids) == 0 {
		return nil, nil
	}
	resources, err := r.Store.ResourcesByUUID(ctx, uuids)
	found := map[string]*catalog.Resource{}
	for uuid, resource := range linked {
		if resources[resource] != nil {
			found[uuid] = resources[resource]
		}
	}
	return found, err
}

func providersIn(world *placement.World, providers []*placement.Provider) []*ResourceProvider {
	out := make([]*ResourceProvider, len(providers))
	for i, provider := range providers {
		out[i] = providerIn(world, provider)
	}
	return out
}

// NodeID is the global id.
func (p *ResourceProvider) NodeID() string {
	return catalog.NodeID{Kind: catalog.KindResourceProvider, Key: p.UUID}.String()
}

// Parent is the provider directly above, nil for a root.
func (p *ResourceProvider) Parent() *ResourceProvider { return providerAt(p.world, p.Provider.Parent) }

// Root is the root of the tree.
func (p *ResourceProvider) Root() *ResourceProvider {
	if root := providerAt(p.world, p.Provider.Root); root != nil {
		return root
	}
	return p
}

// Children is a page of the providers directly below, by name.
func (p *ResourceProvider) Children(first *int, after *string, last *int, before *string) (*ResourceProviderConnection, error) {
	connection, err := connectList("children of a provider", providersIn(p.world, p.world.Children(p.UUID)),
		pageRequest(first, after, last, before), func(child *ResourceProvider) (name, id string) { return child.Name, child.UUID })
	return &ResourceProviderConnection{connection}, err
}

// Inventory is the inventory of a class, nil if there is none.
func (p *ResourceProvider) Inventory(resourceClass string) *placement.Inventory {
	for i := range p.Inventories {
		if p.Inventories[i].ResourceClass == resourceClass {
			return &p.Inventories[i]
		}
	}
	return nil
}

// ResourceProviderConnection is a page of providers.
type ResourceProviderConnection struct {
	*Connection[ResourceProvider]
}

// ResourceProviderEdge is a provider in a page.
type ResourceProviderEdge struct{ Edge[ResourceProvider] }

// Edges are the providers with their cursors.
func (c *ResourceProviderConnection) Edges() []ResourceProviderEdge {
	return edges[ResourceProviderEdge](c.Connection)
}

// providerConnection is a connection of providers. All of it is in memory.
func providerConnection(
	ctx context.Context, request catalog.PageRequest,
	list func(context.Context, catalog.PageRequest) (store.ProviderPage, error),
) (*ResourceProviderConnection, error) {
	total := 0
	connection, err := connect(ctx, request, func(ctx context.Context, request catalog.PageRequest) (catalog.Page[*ResourceProvider], error) {
		page, err := list(ctx, request)
		total = page.Total
		return catalog.Page[*ResourceProvider]{Items: providersIn(page.World, page.Items), Cursors: page.Cursors, HasMore: page.HasMore}, err
	}, func(context.Context) (int, error) { return total, nil })
	return &ResourceProviderConnection{connection}, err
}

// Consumer is a consumer.
type Consumer struct{ *placement.Consumer }

// NodeID is the global id.
func (c *Consumer) NodeID() string {
	return catalog.NodeID{Kind: catalog.KindConsumer, Key: c.UUID}.String()
}

func consumersOf(consumers []*placement.Consumer) []*Consumer {
	out := make([]*Consumer, len(consumers))
	for i, consumer := range consumers {
		out[i] = &Consumer{consumer}
	}
	return out
}

// AllocationCandidateConnection is a page of candidates, all of one world.
// What costs more than the page is worked out only when it is selected.
type AllocationCandidateConnection struct {
	world   *placement.World
	request *placement.Request
	after   *placement.Position
	page    placement.Page
	count   func() (candidateCount, error)
}

type candidateCount struct {
	n     int
	exact bool
}

// AllocationCandidateEdge is a candidate in a page.
type AllocationCandidateEdge struct {
	Cursor string
	Node   *AllocationCandidate
}

// candidatesIn decides a page of candidates in a world.
func candidatesIn(world *placement.World, request *placement.Request, after *placement.Position, first int) (*AllocationCandidateConnection, error) {
	page, err := placement.Candidates(world, request, after, first)
	if err != nil {
		return nil, tooComplex(err)
	}
	return &AllocationCandidateConnection{world: world, request: request, after: after, page: page,
		count: sync.OnceValues(func() (candidateCount, error) {
			n, exact, err := placement.Count(world, request, placement.MaxCount)
			return candidateCount{n, exact}, tooComplex(err)
		}),
	}, nil
}

// tooComplex makes a refusal of what placement gave up.
func tooComplex(err error) error {
	switch {
	case errors.Is(err, placement.ErrTooComplex):
		return catalog.Refuse(catalog.ErrTooComplex, "the request needs too long a search; ask for less at once").Because(err)
	case errors.Is(err, placement.ErrPositionMismatch):
		return catalog.Invalid("after", "is a cursor of another request")
	}
	return err
}

// roots are the roots of the trees that have a part in the page.
func (c *AllocationCandidateConnection) roots() []*ResourceProvider {
	var roots []*ResourceProvider
	seen := map[string]bool{}
	add := func(uuid string) {
		if provider, found := c.world.Provider(uuid); found && !seen[provider.Root] {
			seen[provider.Root] = true
			roots = append(roots, providerAt(c.world, provider.Root))
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

// Nodes are the candidates of the page.
func (c *AllocationCandidateConnection) Nodes() []*AllocationCandidate {
	out := make([]*AllocationCandidate, len(c.page.Candidates))
	for i := range c.page.Candidates {
		out[i] = &AllocationCandidate{candidate: &c.page.Candidates[i], world: c.world}
	}
	return out
}

// Edges are the candidates with their cursors.
func (c *AllocationCandidateConnection) Edges() []*AllocationCandidateEdge {
	out := make([]*AllocationCandidateEdge, len(c.page.Candidates))
	for i, node := range c.Nodes() {
		out[i] = &AllocationCandidateEdge{Cursor: c.page.Positions[i].String(), Node: node}
	}
	return out
}

// PageInfo tells where the page stands in the list.
func (c *AllocationCandidateConnection) PageInfo() *PageInfo {
	info := &PageInfo{HasNext: c.page.HasNext}
	if n := len(c.page.Positions); n > 0 {
		start, end := c.page.Positions[0].String(), c.page.Positions[n-1].String()
		info.StartCursor, info.EndCursor = &start, &end
	}
	if c.after != nil {
		info.behind = func(context.Context) (bool, error) {
			first, err := placement.Candidates(c.world, c.request, nil, 1)
			behind := len(first.Positions) > 0 && (info.StartCursor == nil || first.Positions[0].String() != *info.StartCursor)
			return behind, tooComplex(err)
		}
	}
	return info
}

// TotalCount is how many candidates there are, up to a limit.
func (c *AllocationCandidateConnection) TotalCount() (int, error) {
	count, err := c.count()
	return count.n, err
}

// TotalCountIsExact tells whether TotalCount did not stop at its limit.
func (c *AllocationCandidateConnection) TotalCountIsExact() (bool, error) {
	count, err := c.count()
	return count.exact, err
}

// ProviderSummaries are the providers of all trees that have a part in the page.
func (c *AllocationCandidateConnection) ProviderSummaries() []*ProviderSummary {
	providers := placement.ProviderSummaries(c.world, c.page.Candidates)
	out := make([]*ProviderSummary, len(providers))
	for i, provider := range providers {
		out[i] = &ProviderSummary{providerIn(c.world, provider)}
	}
	return out
}

// Explain says where the providers went.
func (c *AllocationCandidateConnection) Explain(ctx context.Context) *CandidateExplanation {
	explanation := placement.Explain(c.world, c.request)
	out := &CandidateExplanation{Considered: explanation.Considered, Steps: explanation.Steps}
	for i := range explanation.Nearest {
		out.Nearest = append(out.Nearest, &NearMiss{NearMiss: &explanation.Nearest[i], world: c.world})
		register(ctx, out.Nearest[i].Provider())
	}
	return out
}

// AllocationCandidate is one way to serve a request.
type AllocationCandidate struct {
	candidate *placement.Candidate
	world     *placement.World
}

// Allocations are what each provider gives.
func (c *AllocationCandidate) Allocations() []*CandidateAllocation {
	out := make([]*CandidateAllocation, len(c.candidate.Allocations))
	for i, allocation := range c.candidate.Allocations {
		out[i] = &CandidateAllocation{Provider: providerAt(c.world, allocation.Provider), Resources: allocation.Resources}
	}
	return out
}

// Mappings are which providers serve which group.
func (c *AllocationCandidate) Mappings() []*GroupMapping {
	out := make([]*GroupMapping, len(c.candidate.Mappings))
	for i, mapping := range c.candidate.Mappings {
		out[i] = &GroupMapping{Suffix: mapping.Suffix}
		for _, uuid := range mapping.Providers {
			out[i].Providers = append(out[i].Providers, providerAt(c.world, uuid))
		}
	}
	return out
}

// CandidateAllocation is what one provider gives.
type CandidateAllocation struct {
	Provider  *ResourceProvider
	Resources []placement.Amount
}

// GroupMapping is which providers serve a group.
type GroupMapping struct {
	Suffix    string
	Providers []*ResourceProvider
}

// ProviderSummary is a provider with what it has.
type ProviderSummary struct{ Provider *ResourceProvider }

// Inventories are all its inventories.
func (s *ProviderSummary) Inventories() []placement.Inventory { return s.Provider.Inventories }

// Traits are all its traits.
func (s *ProviderSummary) Traits() []string { return s.Provider.Traits }

// CandidateExplanation is where the providers went.
type CandidateExplanation struct {
	Considered int
	Steps      []placement.ExplanationStep
	Nearest    []*NearMiss
}

// NearMiss is a tree that lacks little.
type NearMiss struct {
	*placement.NearMiss
	world *placement.World
}

// Provider is the root of the tree.
func (m *NearMiss) Provider() *ResourceProvider { return providerIn(m.world, m.NearMiss.Provider) }

// candidateCursor reads the cursor of a page of candidates, and its size.
func candidateCursor(first *int, after *string) (*placement.Position, int, catalog.Problems) {
	var problems catalog.Problems
	request := catalog.PageRequest{First: first}
	request.Check(&problems)
	if after == nil {
		return nil, request.Limit(), problems
	}
	position, err := placement.ParsePosition(*after)
	if err != nil {
		problems.Add("after", "is not a cursor of this list under this order")
	}
	return &position, request.Limit(), problems
}

// violated adds violations of placement's rules to the problems of an input.
func violated(problems catalog.Problems, violations []placement.Problem) catalog.Problems {
	for _, violation := range violations {
		problems.Add(violation.Path, "%s", violation.Message)
	}
	return problems
}

// providers finds providers by uuid.
func (r *Resolver) providers(ctx context.Context, uuids []string) (map[string]*ResourceProvider, error) {
	world, err := r.Store.Providers(ctx, uuids)
	if err != nil {
		return nil, err
	}
	found := map[string]*ResourceProvider{}
	for _, uuid := range uuids {
		if provider := providerAt(world, uuid); provider != nil {
			found[uuid] = provider
		}
	}
	return found, nil
}

// consumers finds consumers by uuid.
func (r *Resolver) consumers(ctx context.Context, uuids []string) (map[string]*Consumer, error) {
	consumers, err := r.Store.ConsumersByUUID(ctx, uuids)
	found := map[string]*Consumer{}
	for uuid, consumer := range consumers {
		found[uuid] = &Consumer{consumer}
	}
	return found, err
}

// values are what pointers point to.
func values[T any](pointers []*T) []T {
	if pointers == nil {
		return nil
	}
	out := make([]T, len(pointers))
	for i, pointer := range pointers {
		out[i] = *pointer
	}
	return out
}

// registered registers a row that was looked up, and gives it.
func registered[Row any](ctx context.Context, row *Row) *Row {
	if row != nil {
		register(ctx, row)
	}
	return row
}

// cleared is a field of a change: nil for one that is absent, the empty text for
// null.
func cleared(given graphql.Omittable[*string]) *string {
	value, ok := given.ValueOK()
	if ok && value == nil {
		return new("")
	}
	return value
}

// ConsumerConnection is a page of consumers.
type ConsumerConnection struct{ *Connection[Consumer] }

// ConsumerEdge is a consumer in a page.
type ConsumerEdge struct{ Edge[Consumer] }

// Edges are the consumers with their cursors.
func (c *ConsumerConnection) Edges() []ConsumerEdge { return edges[ConsumerEdge](c.Connection) }

// AllocationConnection is a page of allocations.
type AllocationConnection struct {
	*Connection[placement.Allocation]
}

// AllocationEdge is an allocation in a page.
type AllocationEdge struct{ Edge[placement.Allocation] }

// Edges are the allocations with their cursors.
func (c *AllocationConnection) Edges() []AllocationEdge { return edges[AllocationEdge](c.Connection) }

// TraitConnection is a page of traits.
type TraitConnection struct{ *Connection[placement.Trait] }

// TraitEdge is a trait in a page.
type TraitEdge struct{ Edge[placement.Trait] }

// Edges are the traits with their cursors.
func (c *TraitConnection) Edges() []TraitEdge { return edges[TraitEdge](c.Connection) }

// ResourceClassConnection is a page of resource classes.
type ResourceClassConnection struct {
	*Connection[placement.ResourceClass]
}

// ResourceClassEdge is a resource class in a page.
type ResourceClassEdge struct{ Edge[placement.ResourceClass] }

// Edges are the resource classes with their cursors.
func (c *ResourceClassConnection) Edges() []ResourceClassEdge {
	return edges[ResourceClassEdge](c.Connection)
}
