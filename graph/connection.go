package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

// connect returns the connection of a page and registers its rows. List returns
// pages of one list, always in the same order. Count returns the length of that
// list.
func connect[Row any](
	ctx context.Context, request page.Request,
	list func(context.Context, page.Request) (page.Page[*Row], error),
	count func(context.Context) (int, error),
) (*model.Connection[Row], error) {
	current, err := list(ctx, request)
	if err != nil {
		return nil, err
	}
	dataloader.Register(ctx, current.Items...)
	return model.NewConnection(current, request, list, count), nil
}

// connectWorld returns a connection of items of one world. In returns the rows
// of items of that world.
func connectWorld[Item, Row any](
	ctx context.Context, request page.Request,
	list func(context.Context, page.Request) (store.WorldPage[Item], error),
	in func(*placement.World, []Item) []*Row,
) (*model.Connection[Row], error) {
	var total func() int
	return connect(ctx, request, func(ctx context.Context, request page.Request) (page.Page[*Row], error) {
		current, err := list(ctx, request)
		total = current.Total
		return page.Of(current.Page, in(current.World, current.Items)), err
	}, func(context.Context) (int, error) { return total(), nil })
}

func descending(direction model.OrderDirection) bool { return direction == model.OrderDirectionDesc }
