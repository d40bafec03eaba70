package graph

import (
	"cmp"
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
)

// connectWithin returns a connection that is a child of a parent. Its page, its
// count and whether rows exist beyond the start of the page are each read for
// all parents at the parent's place at once, by their keys. Name distinguishes
// loads of one kind of parent, arguments included.
func connectWithin[Parent, Row any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K, request page.Request,
	list func(context.Context, []K) (map[K]page.Page[*Row], error),
	beyond func(context.Context, []K) (map[K]bool, error),
	count func(context.Context, []K) (map[K]int, error),
) (*model.Connection[Row], error) {
	current, err := dataloader.Load(ctx, name, parent, key, list, func(pages map[K]page.Page[*Row]) {
		for _, loaded := range pages {
			dataloader.Register(ctx, loaded.Items...)
		}
	})
	if err != nil {
		return nil, err
	}
	// Below this field the nearest rows of the parent's kind can be those of the
	// page: parents are looked up from here.
	here := ctx
	connection := &model.Connection[Row]{Page: current, Backward: request.Backward(), Count: func(context.Context) (int, error) {
		return dataloader.Load(here, "count of "+name, parent, key, count, dataloader.Nothing[int, K])
	}}
	if request.Backward() && request.Before != nil || !request.Backward() && request.After != nil {
		connection.Beyond = func(context.Context) (bool, error) {
			return dataloader.Load(here, "behind "+name, parent, key, beyond, dataloader.Nothing[bool, K])
		}
	}
	return connection, nil
}
