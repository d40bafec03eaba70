package graph

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/problem"
)

// loaders batches the reads of one operation without a clock. Whoever fetches
// rows registers them at the place in the operation where they stand; the first
// child load from below that place fetches for all rows registered there, in one
// statement, and every later one finds its part. So the number of statements
// follows from the operation's shape, and never from how many rows there are or
// how busy the machine is.
type loaders struct {
	mu      sync.Mutex
	rows    map[place]any // []*Parent
	batches map[batchKey]*batch
}

// place is where rows of one kind stand in an operation: the response names from
// the root down, each with the type that it is a field of, without list positions.
// Fields of different types may share a name, and are different places.
type place struct {
	path string
	kind reflect.Type
}

type batchKey struct {
	place place
	load  string // which load, with its arguments
	alone any    // the parent's key, where the batch of its place was fetched without it
}

type batch struct {
	once   sync.Once
	values any // map[K]V, with every key that was asked for
	err    error

	mu         sync.Mutex
	registered map[string]bool // the places at which the values are registered
}

type loadersKey struct{}

// WithLoaders gives an operation its loaders. Each field of a mutation gets its
// own, so that nothing read before a write is shown after it.
func WithLoaders(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadersKey{}, &loaders{
		rows:    map[place]any{},
		batches: map[batchKey]*batch{},
	})
}

func loadersOf(ctx context.Context) *loaders { return ctx.Value(loadersKey{}).(*loaders) }

// path is the place of a field in its operation.
func path(fc *graphql.FieldContext) string {
	var names []string
	for ; fc != nil; fc = fc.Parent {
		if fc.Index == nil && fc.Field.Field != nil {
			names = append(names, fc.Object+":"+fc.Field.Alias)
		}
	}
	return strings.Join(names, ".")
}

// register notes rows that the current field has fetched, so that what hangs off
// them is fetched for all of them at once.
func register[Row any](ctx context.Context, rows ...*Row) {
	l := loadersOf(ctx)
	at := place{path: path(graphql.GetFieldContext(ctx)), kind: reflect.TypeFor[Row]()}
	l.mu.Lock()
	defer l.mu.Unlock()
	there, _ := l.rows[at].([]*Row)
	l.rows[at] = append(slices.Clip(there), rows...)
}

// supply gives what the load of this name is to find below the current field,
// which has fetched it along with the parents.
func supply[Parent, V any, K cmp.Ordered](ctx context.Context, name string, values map[K]V) {
	l := loadersOf(ctx)
	at := place{path: path(graphql.GetFieldContext(ctx)), kind: reflect.TypeFor[Parent]()}
	b := &batch{registered: map[string]bool{}, values: values}
	b.once.Do(func() {})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches[batchKey{place: at, load: name}] = b
}

// loadMany gives the children of a parent, and registers them: fetch is called
// once for all parents at the parent's place, with the key of each. Name tells
// loads of one kind of parent apart, arguments included.
func loadMany[Parent, Child any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K,
	fetch func(context.Context, []K) (map[K][]*Child, error),
) ([]*Child, error) {
	children, err := load(ctx, name, parent, key, fetch, func(found map[K][]*Child) {
		for _, rows := range found {
			register(ctx, rows...)
		}
	})
	if children == nil {
		children = []*Child{}
	}
	return children, err
}

// loadOne gives what a parent refers to, and registers it; nil where there is
// nothing, or nothing visible. A key of 0, or the empty text, refers to nothing.
// Where the schema has no null the parent was deleted since it was read, with what
// it refers to: that is not found.
func loadOne[Parent, Child any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K,
	fetch func(context.Context, []K) (map[K]*Child, error),
) (*Child, error) {
	child, err := load(ctx, name, parent, key, fetch, func(found map[K]*Child) {
		for _, row := range found {
			if row != nil {
				register(ctx, row)
			}
		}
	})
	if field := graphql.GetFieldContext(ctx).Field; err == nil && child == nil && field.Definition.Type.NonNull {
		return nil, problem.Refuse(problem.ErrNotFound, "the %s was deleted meanwhile", field.Name)
	}
	return child, err
}

func load[Parent, V any, K cmp.Ordered](
	ctx context.Context, name string, parent *Parent, key func(*Parent) K,
	fetch func(context.Context, []K) (map[K]V, error), register func(map[K]V),
) (V, error) {
	var none V
	var nothing K
	id := key(parent)
	if id == nothing {
		return none, nil
	}
	rows, at := rowsAbove[Parent](ctx)
	b := loadersOf(ctx).batch(batchKey{place: at, load: name})
	values, err := valuesOf(ctx, b, rows, key, fetch)
	if _, asked := values[id]; !asked && err == nil {
		b = loadersOf(ctx).batch(batchKey{place: at, load: name, alone: id})
		values, err = valuesOf(ctx, b, []*Parent{parent}, key, fetch)
	}
	if err != nil {
		return none, err
	}
	b.registerAt(path(graphql.GetFieldContext(ctx)), func() { register(values) })
	return values[id], nil
}

// valuesOf are the values of a batch, which the first who asks fetches for all
// rows that refer to anything.
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
		b.values = withEvery(keys, found)
	})
	return b.values.(map[K]V), b.err
}

// withEvery adds the keys for which nothing was found.
func withEvery[K cmp.Ordered, V any](keys []K, found map[K]V) map[K]V {
	if found == nil {
		found = make(map[K]V, len(keys))
	}
	for _, key := range keys {
		if _, there := found[key]; !there {
			var none V
			found[key] = none
		}
	}
	return found
}

// registerAt registers the values at a place that takes them from the batch,
// once, before anything below that place asks for more.
func (b *batch) registerAt(at string, register func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.registered[at] {
		register()
		b.registered[at] = true
	}
}

// rowsAbove are the rows of a kind at the nearest place above the
// current field that has registered any, and that place.
func rowsAbove[Parent any](ctx context.Context) ([]*Parent, place) {
	l := loadersOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	current := graphql.GetFieldContext(ctx)
	kind := reflect.TypeFor[Parent]()
	for fc := current.Parent; fc != nil; fc = fc.Parent {
		above := place{path: path(fc), kind: kind}
		if rows, ok := l.rows[above].([]*Parent); ok {
			return rows, above
		}
	}
	return nil, place{path: path(current), kind: kind}
}

// batch is the batch of a key, the same for all who ask.
func (l *loaders) batch(key batchKey) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batches[key]
	if b == nil {
		b = &batch{registered: map[string]bool{}}
		l.batches[key] = b
	}
	return b
}
