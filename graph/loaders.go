package graph

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// loaders batches the reads of one operation without a clock. Whoever fetches
// rows registers their ids for the place in the operation where it stands; the
// first child load from below that place fetches for all ids registered there,
// in one statement, and every later one finds its part. So the number of
// statements follows from the operation's shape, and never from how many rows
// there are or how busy the machine is.
type loaders struct {
	mu      sync.Mutex
	rows    map[place][]int64
	batches map[batchKey]*batch
}

// place is where rows of one kind stand in an operation: the response names from
// the root down, without list positions.
type place struct {
	path string
	kind reflect.Type
}

type batchKey struct {
	place place
	load  string // which load, with its arguments
}

type batch struct {
	once   sync.Once
	values any // map[int64]V
	err    error
}

type loadersKey struct{}

// WithLoaders gives an operation its loaders. A mutation's fields each get their
// own, so that nothing read before a write is shown after it.
func WithLoaders(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadersKey{}, &loaders{
		rows:    map[place][]int64{},
		batches: map[batchKey]*batch{},
	})
}

// path is the place of a field in its operation.
func path(fc *graphql.FieldContext) string {
	var names []string
	for ; fc != nil; fc = fc.Parent {
		if fc.Index == nil && fc.Field.Field != nil {
			names = append(names, fc.Field.Alias)
		}
	}
	return strings.Join(names, ".")
}

// register notes rows of kind T that the current field has fetched.
func register[T any](ctx context.Context, ids []int64) {
	l := ctx.Value(loadersKey{}).(*loaders)
	at := place{path: path(graphql.GetFieldContext(ctx)), kind: reflect.TypeFor[T]()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows[at] = append(l.rows[at], ids...)
}

// load gives what fetch finds for the row id of kind T: fetched once for all
// rows of that kind at the nearest place above the current field that has
// registered any. Name tells loads of one kind apart, arguments included.
func load[T, V any](ctx context.Context, name string, id int64, fetch func(context.Context, []int64) (map[int64]V, error)) (V, error) {
	l := ctx.Value(loadersKey{}).(*loaders)
	ids, at := l.group(ctx, reflect.TypeFor[T](), id)
	key := batchKey{place: at, load: name}
	l.mu.Lock()
	b := l.batches[key]
	if b == nil {
		b = &batch{}
		l.batches[key] = b
	}
	l.mu.Unlock()
	b.once.Do(func() {
		values, err := fetch(ctx, ids)
		b.values, b.err = values, err
	})
	if b.err != nil {
		var none V
		return none, b.err
	}
	return b.values.(map[int64]V)[id], nil
}

// group is the ids to fetch together with a row, and their place.
func (l *loaders) group(ctx context.Context, kind reflect.Type, id int64) ([]int64, place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for fc := graphql.GetFieldContext(ctx).Parent; fc != nil; fc = fc.Parent {
		at := place{path: path(fc), kind: kind}
		if ids, ok := l.rows[at]; ok {
			return ids, at
		}
	}
	return []int64{id}, place{path: path(graphql.GetFieldContext(ctx)), kind: kind}
}
