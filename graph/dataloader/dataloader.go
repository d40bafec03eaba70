// Package dataloader batches the reads of one operation without a clock.
// Whoever fetches rows registers them at their place in the operation; the
// first load of children below that place fetches the children of all rows
// registered there in one statement, and every later load finds its part. So
// the number of statements follows from the operation's shape, never from the
// number of rows or the load of the machine.
//
// Places are those of the operation's plan. For gqlgen's own executor, which
// has no plan and runs fields concurrently, they are made from the paths of
// fields, and everything here may be called concurrently.
package dataloader

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/problem"
)

// loads are what was read for one operation.
type loads struct {
	mu      sync.Mutex
	rows    map[placeKey]any // []*Parent
	batches map[batchKey]*batch
	places  map[string]*document.Field // of the fields that gqlgen's executor runs, by path
}

// placeKey is the place of rows of one kind in an operation.
type placeKey struct {
	place *document.Field
	kind  reflect.Type
}

type batchKey struct {
	at    placeKey
	load  string // which load, with its arguments
	alone any    // the parent's key, where the batch of its place was fetched without it
}

type batch struct {
	once   sync.Once
	values any // map[K]V, with every key that was requested
	err    error

	mu         sync.Mutex
	registered map[*document.Field]bool // the places at which the values are registered
}

type loadsKey struct{}

// With returns a context for the loads of an operation. Each field of a mutation
// has its own, so that nothing read before a write is shown after it.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadsKey{}, &loads{
		rows:    map[placeKey]any{},
		batches: map[batchKey]*batch{},
		places:  map[string]*document.Field{},
	})
}

func loadsOf(ctx context.Context) *loads { return ctx.Value(loadsKey{}).(*loads) }

// placeOf returns the place of the field that a context was given to.
func placeOf(ctx context.Context) *document.Field {
	if field := writer.FieldOf(ctx); field != nil {
		return field
	}
	l := loadsOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	place, _ := l.placeAt(graphql.GetFieldContext(ctx))
	return place
}

// placeAt returns the place of a field that gqlgen's executor runs, and its
// path: the response names from the root down, each with the type that it is a
// field of, without list indexes. Fields of different types may have the same
// name; their places differ.
func (l *loads) placeAt(fc *graphql.FieldContext) (*document.Field, string) {
	for fc != nil && (fc.Index != nil || fc.Field.Field == nil) {
		fc = fc.Parent
	}
	if fc == nil {
		return nil, ""
	}
	parent, path := l.placeAt(fc.Parent)
	path += "." + fc.Object + ":" + fc.Field.Alias
	place := l.places[path]
	if place == nil {
		place = &document.Field{Parent: parent, AST: fc.Field.Field, NonNull: fc.Field.Definition.Type.NonNull}
		l.places[path] = place
	}
	return place, path
}

// Register notes rows that the current field has fetched, so that their
// children are fetched for all of them at once.
func Register[Row any](ctx context.Context, rows ...*Row) {
	l := loadsOf(ctx)
	at := placeKey{place: placeOf(ctx), kind: reflect.TypeFor[Row]()}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, _ := l.rows[at].([]*Row)
	l.rows[at] = append(before, rows...) // whoever holds the rows of before sees no more
}

// Supply stores the values that the load of a name is to find below the current
// field, which has fetched them together with the parents.
func Supply[Parent, V any, K cmp.Ordered](ctx context.Context, name string, values map[K]V) {
	l := loadsOf(ctx)
	at := placeKey{place: placeOf(ctx), kind: reflect.TypeFor[Parent]()}
	b := &batch{registered: map[*document.Field]bool{}, values: values}
	b.once.Do(func() {})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches[batchKey{at: at, load: name}] = b
}

// Many returns the children of a parent and registers them. Fetch is called
// once for all parents at the parent's place, with the key of each. Name
// distinguishes loads of one kind of parent, arguments included.
func Many[Parent, Child any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K,
	fetch func(context.Context, []K) (map[K][]*Child, error),
) ([]*Child, error) {
	children, err := Load(ctx, name, parent, key, fetch, func(found map[K][]*Child) {
		for _, rows := range found {
			Register(ctx, rows...)
		}
	})
	if children == nil {
		children = []*Child{}
	}
	return children, err
}

// One returns the row that a parent refers to and registers it, or nil where it
// does not exist or is not visible. A key of 0 or the empty string
// refers to nothing. Where the schema has no null, the parent was deleted since
// it was read, together with the row: the error is ErrNotFound.
func One[Parent, Child any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K,
	fetch func(context.Context, []K) (map[K]*Child, error),
) (*Child, error) {
	child, err := Load(ctx, name, parent, key, fetch, func(found map[K]*Child) {
		for _, row := range found {
			if row != nil {
				Register(ctx, row)
			}
		}
	})
	if err == nil && child == nil {
		if field := placeOf(ctx); field.NonNull {
			return nil, problem.Refuse(problem.ErrNotFound, "the %s was deleted meanwhile", field.AST.Name)
		}
	}
	return child, err
}

// Load returns the value of a parent from the batch of its place. RegisterAll
// registers the rows of a batch at the place of the current field.
func Load[Parent, V any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K,
	fetch func(context.Context, []K) (map[K]V, error), registerAll func(map[K]V),
) (V, error) {
	var none V
	var nothing K
	id := key(parent)
	if id == nothing {
		return none, nil
	}
	rows, at := rowsAbove[Parent](ctx)
	b := loadsOf(ctx).batch(batchKey{at: at, load: name})
	values, err := valuesOf(ctx, b, rows, key, fetch)
	if _, ok := values[id]; !ok && err == nil {
		b = loadsOf(ctx).batch(batchKey{at: at, load: name, alone: id})
		values, err = valuesOf(ctx, b, []*Parent{parent}, key, fetch)
	}
	if err != nil {
		return none, err
	}
	b.registerAt(placeOf(ctx), func() { registerAll(values) })
	return values[id], nil
}

// valuesOf returns the values of a batch. The first caller fetches them, for
// all rows that refer to anything.
func valuesOf[Parent, V any, K cmp.Ordered](
	ctx context.Context, b *batch, rows []*Parent, key func(*Parent) K, fetch func(context.Context, []K) (map[K]V, error),
) (map[K]V, error) {
	b.once.Do(func() {
		var nothing K
		keys := make([]K, 0, len(rows))
		for _, row := range rows {
			if id := key(row); id != nothing {
				keys = append(keys, id)
			}
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		var found map[K]V
		if len(keys) > 0 {
			found, b.err = fetch(ctx, keys)
		}
		b.values = WithEvery(keys, found)
	})
	return b.values.(map[K]V), b.err
}

// WithEvery returns the values found with the zero value for every other key.
func WithEvery[K cmp.Ordered, V any](keys []K, found map[K]V) map[K]V {
	if found == nil {
		found = make(map[K]V, len(keys))
	}
	for _, key := range keys {
		if _, ok := found[key]; !ok {
			var none V
			found[key] = none
		}
	}
	return found
}

// registerAt calls register once for each place that has values of the batch,
// before anything below that place loads more.
func (b *batch) registerAt(place *document.Field, register func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.registered[place] {
		register()
		b.registered[place] = true
	}
}

// rowsAbove returns the rows of a kind that are registered at the nearest place
// above the current field, and that place.
func rowsAbove[Parent any](ctx context.Context) ([]*Parent, placeKey) {
	current := placeOf(ctx)
	l := loadsOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := reflect.TypeFor[Parent]()
	for place := current.Parent; place != nil; place = place.Parent {
		above := placeKey{place: place, kind: kind}
		if rows, ok := l.rows[above].([]*Parent); ok {
			return rows, above
		}
	}
	return nil, placeKey{place: current, kind: kind}
}

// batch returns the batch of a key, the same for every caller.
func (l *loads) batch(key batchKey) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batches[key]
	if b == nil {
		b = &batch{registered: map[*document.Field]bool{}}
		l.batches[key] = b
	}
	return b
}

// Nothing registers none of the values of a load.
func Nothing[V any, K cmp.Ordered](map[K]V) {}
