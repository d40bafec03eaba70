package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

func providerUUID(p *model.ResourceProvider) string { return p.UUID }

// providerLink returns the UUID of the resource that a provider is linked to.
func providerLink(p *model.ResourceProvider) string { return p.Resource }

// trees returns a function for Among that returns the keys of all providers in
// the trees of the given ones. Children, parents and roots are in memory, so
// that queries reach every provider of a tree without a load.
func trees(key func(*placement.Provider) string) func([]*model.ResourceProvider) []string {
	return func(providers []*model.ResourceProvider) []string {
		var keys []string
		seen := map[string]bool{}
		for _, provider := range providers {
			keys = append(keys, key(provider.Provider))
			if seen[provider.Provider.Root] {
				continue
			}
			seen[provider.Provider.Root] = true
			for _, member := range provider.World.Tree(provider.Provider.Root) {
				keys = append(keys, key(member))
			}
		}
		return keys
	}
}

// candidateCursor returns the position after which a page of candidates starts,
// the page size, and the problems of either. The position is nil without a
// cursor.
func candidateCursor(first *int, after *string) (*placement.Position, int, problem.Problems) {
	var problems problem.Problems
	request := page.Request{First: first}
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

// candidatesAsked returns the request that the arguments of a field describe.
func candidatesAsked(resources []*placement.Amount, requiredAll []string, requiredAny []string,
	requiredAnySets []*placement.TraitSet, forbidden []string, memberOf []*placement.AggregateFilter, inTree *string,
	firstOf []*placement.Alternative, groups []*placement.Group, groupPolicy placement.GroupPolicy,
	sameSubtree []*placement.Subtree, rootRequired []string, rootForbidden []string, tolerates []string,
	hosts *resource.Filter) *model.CandidatesAsked {
	return &model.CandidatesAsked{Hosts: hosts, Request: placement.Request{
		Unsuffixed: placement.Group{
			Resources: model.Values(resources), RequiredAll: requiredAll, RequiredAny: requiredAny,
			RequiredAnySets: model.Values(requiredAnySets),
			Forbidden:       forbidden, MemberOf: model.Values(memberOf),
			InTree: valueOf(inTree), FirstOf: model.Values(firstOf),
		},
		Groups: model.Values(groups), Policy: groupPolicy, SameSubtree: model.Values(sameSubtree),
		RootRequired: rootRequired, RootForbidden: rootForbidden, Tolerates: tolerates,
	}}
}

// worldOr returns the given world, or the stored one if it is nil.
func (r *Resolver) worldOr(ctx context.Context, world *placement.World) (*placement.World, error) {
	if world != nil {
		return world, nil
	}
	return r.Store.World(ctx)
}

// candidates returns a page of the candidates for a request in a world; nil is
// the stored one.
func (r *Resolver) candidates(ctx context.Context, world *placement.World, asked *model.CandidatesAsked, first *int,
	after *string) (*model.AllocationCandidateConnection, error) {
	world, request, position, limit, err := r.searchFor(ctx, world, asked, first, after)
	if err != nil {
		return nil, err
	}
	connection, err := model.CandidatesIn(world, request, position, limit)
	if err == nil {
		dataloader.RegisterLater(ctx, connection.Roots)
	}
	return connection, err
}

// inOrder returns a search with preferences and an order, its seed and its
// shapes.
func inOrder(asked model.CandidatesAsked, preferences []*model.PreferenceInput, order placement.CandidateOrder,
	seed int, shapes []*placement.Shape) *model.CandidatesAsked {
	asked.Preferences = preferences
	asked.Request.Order, asked.Request.Seed, asked.Request.Shapes = order, seed, model.Values(shapes)
	return &asked
}

// distinctIn sets which candidates of each shape the search lists, and returns
// the search.
func distinctIn(asked *model.CandidatesAsked, distinct placement.CandidateDistinct,
	alternatives int) *model.CandidatesAsked {
	asked.Request.Distinct, asked.Request.Alternatives = distinct, alternatives
	return asked
}

// searchFor returns the world to search, the request with its hosts, the
// position and the page size. It refuses invalid arguments. A nil world is the
// stored one.
func (r *Resolver) searchFor(ctx context.Context, world *placement.World, asked *model.CandidatesAsked, first *int,
	after *string) (*placement.World, *placement.Request, *placement.Position, int, error) {
	world, err := r.worldOr(ctx, world)
	if err != nil {
		return nil, nil, nil, 0, err
	}
	position, limit, problems := candidateCursor(first, after)
	request := asked.Request
	if request.Hosts, err = r.hostsOf(ctx, "hosts", asked.Hosts, &problems); err != nil {
		return nil, nil, nil, 0, err
	}
	if request.Preferences, err = r.preferencesOf(ctx, "preferences", asked.Preferences, &problems); err != nil {
		return nil, nil, nil, 0, err
	}
	err = append(problems, r.Store.CheckRequest(world, &request)...).Err()
	return world, &request, position, limit, err
}

func providersByUUID(s *store.Store, ctx context.Context, uuids []string) (map[string]*model.ResourceProvider, error) {
	world, err := s.World(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]*model.ResourceProvider{}
	for _, uuid := range uuids {
		if provider := model.ProviderAt(world, uuid); provider != nil {
			found[uuid] = provider
		}
	}
	return found, nil
}

// providersOfResources returns the providers that are linked to resources, by
// the ids of the resources.
func providersOfResources(s *store.Store, ctx context.Context,
	resources []int64) (map[int64]*model.ResourceProvider, error) {
	world, providers, err := s.ProvidersOfResources(ctx, resources)
	found := make(map[int64]*model.ResourceProvider, len(providers))
	for id, provider := range providers {
		found[id] = model.ProviderIn(world, provider)
	}
	return found, err
}

func consumersByUUID(s *store.Store, ctx context.Context, uuids []string) (map[string]*model.Consumer, error) {
	consumers, err := s.ConsumersByUUID(ctx, uuids)
	found := map[string]*model.Consumer{}
	for uuid, consumer := range consumers {
		found[uuid] = &model.Consumer{Consumer: consumer}
	}
	return found, err
}

func (r *Resolver) consumerByUUID(ctx context.Context, uuid string) (*model.Consumer, error) {
	consumer, err := r.Store.ConsumerByUUID(ctx, uuid)
	return &model.Consumer{Consumer: consumer}, err
}

// mappingsOfConsumers returns the mappings of consumers, by their UUIDs.
func mappingsOfConsumers(s *store.Store, ctx context.Context, uuids []string,
	_ dataloader.None) (map[string][]*model.GroupMapping, error) {
	mappings, err := s.MappingsOfConsumers(ctx, uuids)
	if err != nil {
		return nil, err
	}
	world, err := s.World(ctx)
	found := map[string][]*model.GroupMapping{}
	for uuid, of := range mappings {
		found[uuid] = model.MappingsIn(world, of)
	}
	return found, err
}

// heldMappings returns the mappings that came with a consumer from a mutation.
// It returns false for any other consumer, and if the world cannot be read.
func heldMappings(s *store.Store, ctx context.Context, of *model.Consumer,
	_ dataloader.None) ([]*model.GroupMapping, bool) {
	if of.Held == nil {
		return nil, false
	}
	world, err := s.World(ctx)
	return model.MappingsIn(world, of.Mappings), err == nil
}

// consumersOfResources returns the consumers for resources, by UUID. A viewer
// who may not read placement gets none, but may still see the resources.
func consumersOfResources(s *store.Store, ctx context.Context, uuids []string) (map[string]*model.Consumer, error) {
	found, err := consumersByUUID(s, ctx, uuids)
	if errors.Is(err, problem.ErrForbidden) {
		return nil, nil
	}
	return found, err
}

// allocationsOfResources returns the allocations of resources as consumers, by
// UUID. A viewer who may not read placement gets none.
func allocationsOfResources(s *store.Store, ctx context.Context,
	uuids []string) (map[string][]*placement.Allocation, error) {
	found, err := s.AllocationsOfConsumers(ctx, uuids)
	if errors.Is(err, problem.ErrForbidden) {
		return nil, nil
	}
	return found, err
}

// changedConsumers registers the consumers that a mutation changed, and returns
// them as nodes.
func changedConsumers(ctx context.Context, consumers ...*placement.Consumer) []*model.Consumer {
	nodes := model.ConsumersOf(consumers)
	dataloader.Register(ctx, nodes...)
	return nodes
}

// appliedMoves returns the outcomes of moves, and registers the consumers.
func appliedMoves(ctx context.Context, outcomes []store.AppliedMove) []*model.ApplyPlanResult {
	return lists.Map(outcomes, func(outcome store.AppliedMove) *model.ApplyPlanResult {
		return &model.ApplyPlanResult{Outcome: outcome.Outcome, Errors: rowErrors(outcome.Problems),
			Consumer: registered(ctx, model.ConsumerOf(outcome.Row))}
	})
}

// clearedResults returns the outcomes of consumers whose allocations were
// deleted, and registers the consumers.
func clearedResults(ctx context.Context, outcomes []store.ConsumerOutcome) []*model.DeleteAllocationsForManyResult {
	return lists.Map(outcomes, func(outcome store.ConsumerOutcome) *model.DeleteAllocationsForManyResult {
		return &model.DeleteAllocationsForManyResult{Errors: rowErrors(outcome.Problems),
			Consumer: registered(ctx, model.ConsumerOf(outcome.Row))}
	})
}

// explained registers the providers that an explanation shows, and returns it.
func explained(ctx context.Context, explanation *model.CandidateExplanation) *model.CandidateExplanation {
	if explanation != nil {
		dataloader.Register(ctx, explanation.NearestProviders()...)
	}
	return explanation
}

// registered registers a row, unless it is nil, and returns it.
func registered[Row any](ctx context.Context, row *Row) *Row {
	if row != nil {
		dataloader.Register(ctx, row)
	}
	return row
}

// cleared returns a field of a change: nil if it is absent, the empty string
// for null.
func cleared(field graphql.Omittable[*string]) *string {
	value, ok := field.ValueOK()
	if ok && value == nil {
		return new("")
	}
	return value
}

// updatedInventories returns the payload of an update of inventories, and
// registers the refused providers.
func updatedInventories(ctx context.Context, world *placement.World,
	updated *store.InventoriesUpdated) *model.UpdateInventoriesPayload {
	payload := &model.UpdateInventoriesPayload{Changed: updated.Changed,
		Unchanged: updated.Unchanged, Overused: updated.Overused,
		Refusals: []*model.InventoryRefusal{}}
	for i := range updated.Refused {
		one := &updated.Refused[i]
		payload.Refusals = append(payload.Refusals, &model.InventoryRefusal{
			ResourceProvider: registered(ctx, model.ProviderIn(world, &one.Provider)), Errors: rowErrors(one.Problems)})
	}
	return payload
}
