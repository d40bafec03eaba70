package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
)

// connect makes a connection of one page, and registers its rows. List fetches a page of the same list
// under the same order, count counts the list.
func connect[Row any](
	ctx context.Context, request page.Request,
	list func(context.Context, page.Request) (page.Page[*Row], error),
	count func(context.Context) (int, error),
) (*model.Connection[Row], error) {
	page, err := list(ctx, request)
	if err != nil {
		return nil, err
	}
	register(ctx, page.Items...)
	return model.NewConnection(page, request, list, count), nil
}

// descending tells whether an optional direction is from the greatest down.
func descending(direction model.OrderDirection) bool { return direction == model.OrderDirectionDesc }
