package graph

import (
	"cmp"
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

// pages load connections that are children of parents. Its loaders read the
// page, whether rows exist beyond the side where the page starts, and the
// count, each in one batch for all parents at a place.
type pages[Parent, Row any, K cmp.Ordered, A any] struct {
	page   *dataloader.ValueBy[*store.Store, Parent, page.Page[*Row], K, paged[A]]
	beyond *dataloader.ValueBy[*store.Store, Parent, bool, K, paged[A]]
	count  *dataloader.ValueBy[*store.Store, Parent, int, K, paged[A]]
}

// paged holds the arguments of a list, and the request for a page of that list.
type paged[A any] struct {
	List A
	Page page.Request
}

// newPages returns the loaders of a connection, which register the rows of its
// pages.
func newPages[Parent, Row any, K cmp.Ordered, A any](
	name string, key func(*Parent) K,
	list func(*store.Store, context.Context, []K, A, page.Request) (map[K]page.Page[*Row], error),
	beyond func(*store.Store, context.Context, []K, A, page.Request) (map[K]bool, error),
	count func(*store.Store, context.Context, []K, A) (map[K]int, error),
) *pages[Parent, Row, K, A] {
	return &pages[Parent, Row, K, A]{
		page: dataloader.NewRowsBy(name, key, ofPage(list), func(loaded page.Page[*Row]) []*Row {
			return loaded.Items
		}),
		beyond: dataloader.NewValueBy(name+".pageInfo", key, ofPage(beyond)),
		count: dataloader.NewValueBy(name+".totalCount", key,
			func(s *store.Store, ctx context.Context, keys []K, of paged[A]) (map[K]int, error) {
				return count(s, ctx, keys, of.List)
			}),
	}
}

// ofPage adapts a function that takes a list's arguments and a page request to
// the arguments of a loader.
func ofPage[K cmp.Ordered, V, A any](
	read func(*store.Store, context.Context, []K, A, page.Request) (map[K]V, error),
) func(*store.Store, context.Context, []K, paged[A]) (map[K]V, error) {
	return func(s *store.Store, ctx context.Context, keys []K, of paged[A]) (map[K]V, error) {
		return read(s, ctx, keys, of.List, of.Page)
	}
}

// among makes the loaders also fetch for the keys that a function returns for
// the parents at a place; see dataloader.ValueBy.Among.
func (l *pages[Parent, Row, K, A]) among(keys func([]*Parent) []K) *pages[Parent, Row, K, A] {
	l.page.Among(keys)
	l.beyond.Among(keys)
	l.count.Among(keys)
	return l
}

// owned makes the page loader call a function with each row and its parent.
func (l *pages[Parent, Row, K, A]) owned(owned func(*Parent, *Row)) *pages[Parent, Row, K, A] {
	l.page.Owned(func(parent *Parent, loaded page.Page[*Row]) {
		for _, row := range loaded.Items {
			owned(parent, row)
		}
	})
	return l
}

// connect returns the connection of a parent. It reads only the page. The
// count, and whether rows exist beyond the page, are read if selected.
func (l *pages[Parent, Row, K, A]) connect(
	ctx context.Context, s *store.Store, parent *Parent, list A, request page.Request,
) (*model.Connection[Row], error) {
	arguments := paged[A]{list, request}
	current, err := l.page.Load(ctx, s, parent, arguments)
	if err != nil {
		return nil, err
	}
	// Below this field the nearest rows of the parent's kind can be the rows of
	// the page. The context of the field still finds the parents.
	from := ctx
	connection := &model.Connection[Row]{Page: current, Backward: request.Backward(),
		Count: func(ctx context.Context) (int, error) {
			return l.count.LoadFrom(ctx, from, s, parent, arguments)
		}}
	if request.Backward() && request.Before != nil || !request.Backward() && request.After != nil {
		connection.Beyond = func(ctx context.Context) (bool, error) {
			return l.beyond.LoadFrom(ctx, from, s, parent, arguments)
		}
	}
	return connection, nil
}
