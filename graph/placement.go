package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

func providerUUID(p *model.ResourceProvider) string { return p.UUID }

// forTrees extends a load of providers to all providers of their trees:
// children, parents and roots are in memory and reach every provider of a tree
// without another load.
func forTrees[V any](world *placement.World, fetch func(context.Context, []string) (map[string]V, error)) func(context.Context, []string) (map[string]V, error) {
	return func(ctx context.Context, uuids []string) (map[string]V, error) {
		all := treesOf(world, uuids)
		found, err := fetch(ctx, all)
		return dataloader.WithEvery(all, found), err
	}
}

// treesOf returns the UUIDs of all providers of the trees of some providers.
func treesOf(world *placement.World, uuids []string) []string {
	all := slices.Clone(uuids)
	seen := map[string]bool{}
	for _, uuid := range uuids {
		provider, ok := world.Provider(uuid)
		if !ok || seen[provider.Root] {
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

// resourcesOf returns the resources that providers are linked to, by the UUIDs
// of the providers.
func (r *Resolver) resourcesOf(ctx context.Context, world *placement.World, providers []string) (map[string]*resource.Resource, error) {
	linked := map[string]string{}
	var uuids []string
	for _, uuid := range providers {
		if provider, ok := world.Provider(uuid); ok && provider.Resource != "" {
			linked[uuid], uuids = provider.Resource, append(uuids, provider.Resource)
		}
	}
	if len(uuids) == 0 {
		return nil, nil
	}
	resources, err := r.Store.ResourcesByUUID(ctx, uuids)
	found := map[string]*resource.Resource{}
	for uuid, link := range linked {
		if resources[link] != nil {
			found[uuid] = resources[link]
		}
	}
	return found, err
}

// candidateCursor returns where a page of candidates starts, its size, and what
// is wrong with either.
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

// addProblems adds the problems of a placement request to those of an input.
func addProblems(problems problem.Problems, more []placement.Problem) problem.Problems {
	for _, one := range more {
		problems.Add(one.Path, "%s", one.Message)
	}
	return problems
}

// providers returns the providers of UUIDs.
func (r *Resolver) providers(ctx context.Context, uuids []string) (map[string]*model.ResourceProvider, error) {
	world, err := r.Store.World(ctx)
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

// consumers returns the consumers of UUIDs.
func (r *Resolver) consumers(ctx context.Context, uuids []string) (map[string]*model.Consumer, error) {
	consumers, err := r.Store.ConsumersByUUID(ctx, uuids)
	found := map[string]*model.Consumer{}
	for uuid, consumer := range consumers {
		found[uuid] = &model.Consumer{Consumer: consumer}
	}
	return found, err
}

// changedConsumers returns the consumers that a mutation changed as nodes, with
// the allocations that it left them.
func changedConsumers(ctx context.Context, consumers ...*placement.Consumer) []*model.Consumer {
	nodes := model.ConsumersOf(consumers)
	held := make(map[string][]*placement.Allocation, len(nodes))
	for _, consumer := range nodes {
		held[consumer.UUID] = consumer.Held
	}
	dataloader.Register(ctx, nodes...)
	dataloader.Supply[model.Consumer](ctx, "allocations", held)
	return nodes
}

// registered registers a row, unless it is nil, and returns it.
func registered[Row any](ctx context.Context, row *Row) *Row {
	if row != nil {
		dataloader.Register(ctx, row)
	}
	return row
}

// cleared returns a field of a change: nil for one that is absent, the empty
// string for null.
func cleared(field graphql.Omittable[*string]) *string {
	value, ok := field.ValueOK()
	if ok && value == nil {
		return new("")
	}
	return value
}

// providerConnection returns a connection of providers, all of one world.
func providerConnection(
	ctx context.Context, request page.Request,
	list func(context.Context, page.Request) (store.ProviderPage, error),
) (*model.ResourceProviderConnection, error) {
	total := 0
	connection, err := connect(ctx, request, func(ctx context.Context, request page.Request) (page.Page[*model.ResourceProvider], error) {
		current, err := list(ctx, request)
		total = current.Total
		return page.Page[*model.ResourceProvider]{Items: model.ProvidersIn(current.World, current.Items), Cursors: current.Cursors, HasMore: current.HasMore}, err
	}, func(context.Context) (int, error) { return total, nil })
	return &model.ResourceProviderConnection{Connection: connection}, err
}
