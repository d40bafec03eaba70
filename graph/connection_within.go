package graph

import (
	"cmp"
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
)

// connectWithin makes a connection that hangs off a parent. Its page, its count
// and its look back are each taken for all parents at the parent's place at
// once, by their keys. Name tells loads of one kind of parent apart, arguments
// included.
func connectWithin[Parent, Row any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K, request page.Request,
	list func(context.Context, []K) (map[K]page.Page[*Row], error),
	behind func(context.Context, []K) (map[K]bool, error),
	count func(context.Context, []K) (map[K]int, error),
) (*model.Connection[Row], error) {
	page, err := load(ctx, name, parent, key, list, func(pages map[K]page.Page[*Row]) {
		for _, page := range pages {
			register(ctx, page.Items...)
		}
	})
	if err != nil {
		return nil, err
	}
	// Below this field the rows of the page are the nearest of their kind, which
	// can be the parent's: parents are looked for from here.
	here := ctx
	connection := &model.Connection[Row]{Page: page, Backward: request.Backward(), Count: func(context.Context) (int, error) {
		return load(here, "count of "+name, parent, key, count, registerNothing[int, K])
	}}
	if request.Backward() && request.Before != nil || !request.Backward() && request.After != nil {
		connection.Beyond = func(context.Context) (bool, error) {
			return load(here, "behind "+name, parent, key, behind, registerNothing[bool, K])
		}
	}
	return connection, nil
}

func registerNothing[V any, K cmp.Ordered](map[K]V) {}
