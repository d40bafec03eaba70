package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

func providerUUID(p *model.ResourceProvider) string { return p.UUID }

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
func (r *Resolver) resourcesOf(ctx context.Context, world *placement.World, providers []string) (map[string]*resource.Resource, error) {
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
	found := map[string]*resource.Resource{}
	for uuid, resource := range linked {
		if resources[resource] != nil {
			found[uuid] = resources[resource]
		}
	}
	return found, err
}

// candidateCursor reads the cursor of a page of candidates, and its size.
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

// violated adds violations of placement's rules to the problems of an input.
func violated(problems problem.Problems, violations []placement.Problem) problem.Problems {
	for _, violation := range violations {
		problems.Add(violation.Path, "%s", violation.Message)
	}
	return problems
}

// providers finds providers by uuid.
func (r *Resolver) providers(ctx context.Context, uuids []string) (map[string]*model.ResourceProvider, error) {
	world, err := r.Store.Providers(ctx, uuids)
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

// consumers finds consumers by uuid.
func (r *Resolver) consumers(ctx context.Context, uuids []string) (map[string]*model.Consumer, error) {
	consumers, err := r.Store.ConsumersByUUID(ctx, uuids)
	found := map[string]*model.Consumer{}
	for uuid, consumer := range consumers {
		found[uuid] = &model.Consumer{Consumer: consumer}
	}
	return found, err
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

// providerConnection is a connection of providers. All of it is in memory.
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
