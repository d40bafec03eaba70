package main

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// What one request of a load in bulk holds.
const (
	createdAtOnce = 500
	claimedAtOnce = 200
	bulkLoaders   = 4 // requests that are under way at once
)

// createsMany reports whether a server creates many things in one transaction; an
// older one does not.
func createsMany(ctx context.Context, c *client) (bool, error) {
	var answer struct {
		Schema struct {
			MutationType struct{ Fields []struct{ Name string } }
		} `json:"__schema"`
	}
	err := c.ask(ctx, request{Query: `{ __schema { mutationType { fields { name } } } }`}, &answer)
	var names []string
	for _, field := range answer.Schema.MutationType.Fields {
		names = append(names, field.Name)
	}
	return slices.Contains(names, "createResourceProviders") && slices.Contains(names, "createResources"), err
}

// loadInBulk writes the traits, resources, providers and consumers of the world,
// many in a transaction.
func (w *world) loadInBulk(ctx context.Context, c *client) error {
	for traits := range slices.Chunk(w.traits, fieldsAtOnce) {
		if err := c.askPatiently(ctx, manyFields("createTrait", "CreateTraitInput", traits)); err != nil {
			return err
		}
	}
	if err := inChunks(ctx, w.resources, createdAtOnce, func(ctx context.Context, some []object) error {
		return c.askPatiently(ctx, many("createResources", "CreateResourcesInput", object{"items": some}))
	}); err != nil {
		return err
	}
	for depth := range maxDepth {
		var there []provider
		for _, p := range w.providers {
			if p.depth == depth {
				there = append(there, p)
			}
		}
		if err := inChunks(ctx, there, createdAtOnce, func(ctx context.Context, some []provider) error {
			var items []object
			for _, p := range some {
				items = append(items, p.input())
			}
			return c.askPatiently(ctx, many("createResourceProviders", "CreateResourceProvidersInput", object{"items": items}))
		}); err != nil {
			return err
		}
	}
	var consumers []object
	for _, p := range w.providers {
		consumers = append(consumers, p.consumers...)
	}
	return inChunks(ctx, consumers, claimedAtOnce, func(ctx context.Context, some []object) error {
		return c.askPatiently(ctx, many("setAllocations", "SetAllocationsInput", object{"consumers": some}))
	})
}

// input returns what creates a provider with all that is its own.
func (p provider) input() object {
	one := object{"uuid": p.uuid, "name": p.name, "inventories": p.inventories}
	if p.traits != nil {
		one["traits"] = p.traits
	}
	if p.aggregates != nil {
		one["aggregates"] = p.aggregates
	}
	if p.resource != "" {
		one["resource"] = p.resource
	}
	if p.parent != "" {
		one["parent"] = p.parent
	}
	return one
}

// many returns a mutation with one field.
func many(field, inputType string, input object) request {
	return request{
		Query:     "mutation($input: " + inputType + "!) { " + field + "(input: $input) { __typename } }",
		Variables: object{"input": input},
	}
}

// inChunks sends chunks of some things, a few at a time.
func inChunks[T any](ctx context.Context, all []T, size int, send func(context.Context, []T) error) error {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(bulkLoaders)
	for some := range slices.Chunk(all, size) {
		group.Go(func() error { return send(sending, some) })
	}
	return group.Wait()
}
