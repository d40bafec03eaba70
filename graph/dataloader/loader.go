package dataloader

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/tracing"
	"github.com/cadastre-dev/cadastre/problem"
)

// None is the type of the arguments of a loader without arguments.
type None = struct{}

// loader fetches values by the keys of their parents, for all parents at a
// place in one batch. S is the source that it fetches from.
type loader[S, Parent, V any, K cmp.Ordered, A any] struct {
	name     string // the name of its field
	key      func(*Parent) K
	among    func([]*Parent) []K // nil if the keys are the keys of the parents
	fetch    func(S, context.Context, []K, A) (map[K]V, error)
	register func(*place, map[K]V) // nil if the values hold no rows to register
	// held returns the value that came together with a parent, if there is one.
	// It is nil for loaders that always fetch.
	held func(S, context.Context, *Parent, A) (V, bool)
	// owned sets the parent of a fetched value before the value is shown. It is
	// nil for values without a link to their parents.
	owned func(*Parent, V)
	// shown returns a value as the field shows it, or why the field cannot. It is
	// nil for values that are shown as they are.
	shown func(context.Context, V) (V, error)
}

// load returns the value of a parent, the zero value for the zero key. It
// fetches for all rows of the parent's type at the nearest place above the
// field of the context from. All loads of one loader at one place have the same
// arguments.
func (l *loader[S, Parent, V, K, A]) load(ctx, from context.Context, s S, parent *Parent, arguments A) (V, error) {
	var none V
	var nothing K
	id := l.key(parent)
	if id == nothing {
		return none, nil
	}
	here := placeOf(ctx)
	start := here
	if from != ctx {
		start = placeOf(from)
	}
	here.of.mu.Lock()
	defer here.of.mu.Unlock()
	b := l.calledAt(here)
	if b == nil {
		b = l.batch(ctx, start, s, arguments)
		l.registerAt(here, b.values)
		here.called = append(here.called, b)
	}
	value, ok := b.values[id]
	if !ok && b.err == nil {
		return l.alone(ctx, here, b, s, parent)
	}
	return value, b.err
}

// calledAt returns the batch that the loader has already found at a place, or
// nil.
func (l *loader[S, Parent, V, K, A]) calledAt(here *place) *batch[K, V, A] {
	for _, called := range here.called {
		if b, ok := called.(*batch[K, V, A]); ok && b.loader == l {
			return b
		}
	}
	return nil
}

// batch returns the batch for all parents at the nearest place above start that
// has any. The first call with the arguments fetches the values.
func (l *loader[S, Parent, V, K, A]) batch(ctx context.Context, start *place, s S, arguments A) *batch[K, V, A] {
	parents, above := rowsAbove[Parent](start)
	for _, known := range above.batches {
		if b, ok := known.(*batch[K, V, A]); ok && b.loader == l && reflect.DeepEqual(b.arguments, arguments) {
			return b
		}
	}
	held, parents := l.heldBy(ctx, s, parents, arguments)
	keys := l.keys(parents)
	b := &batch[K, V, A]{loader: l, arguments: arguments}
	var found map[K]V
	if len(keys) > 0 {
		loading, end := tracing.Load(ctx, l.name, len(keys))
		found, b.err = l.fetch(s, loading, keys, arguments)
		end(b.err)
	}
	b.values = WithEvery(keys, found)
	l.own(parents, b.values)
	maps.Copy(b.values, held)
	above.batches = append(above.batches, b)
	return b
}

// heldBy returns the values that came with parents, and the parents without
// one.
func (l *loader[S, Parent, V, K, A]) heldBy(ctx context.Context, s S, parents []*Parent,
	arguments A) (held map[K]V, others []*Parent) {
	if l.held == nil {
		return nil, parents
	}
	held = map[K]V{}
	for _, parent := range parents {
		if value, ok := l.held(s, ctx, parent, arguments); ok {
			held[l.key(parent)] = value
		} else {
			others = append(others, parent)
		}
	}
	return held, others
}

// keys returns the sorted keys of parents, without duplicates and without the
// zero key, which refers to nothing.
func (l *loader[S, Parent, V, K, A]) keys(parents []*Parent) []K {
	var keys []K
	if l.among != nil {
		keys = l.among(parents)
	} else {
		keys = make([]K, len(parents))
		for i, parent := range parents {
			keys[i] = l.key(parent)
		}
	}
	var nothing K
	keys = slices.DeleteFunc(keys, func(key K) bool { return key == nothing })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// alone fetches the value of a parent that is not registered at its place.
func (l *loader[S, Parent, V, K, A]) alone(ctx context.Context, here *place,
	b *batch[K, V, A], s S, parent *Parent) (V, error) {
	id := l.key(parent)
	if alone, ok := ctx.Value(aloneKey{}).(func(string)); ok {
		alone(l.name)
	}
	found, err := l.fetch(s, ctx, []K{id}, b.arguments)
	value := found[id]
	if err == nil {
		l.own([]*Parent{parent}, found)
		b.values[id] = value
		l.registerAt(here, map[K]V{id: value})
	}
	return value, err
}

// own links fetched values to their parents.
func (l *loader[S, Parent, V, K, A]) own(parents []*Parent, fetched map[K]V) {
	if l.owned == nil {
		return
	}
	for _, parent := range parents {
		if value, ok := fetched[l.key(parent)]; ok {
			l.owned(parent, value)
		}
	}
}

func (l *loader[S, Parent, V, K, A]) registerAt(here *place, values map[K]V) {
	if l.register != nil {
		l.register(here, values)
	}
}

type aloneKey struct{}

// WatchAlone returns a context in which alone is called with the name of each
// loader that fetches for a single row, because the row was not registered.
func WatchAlone(ctx context.Context, alone func(loader string)) context.Context {
	return context.WithValue(ctx, aloneKey{}, alone)
}

// WithEvery adds the zero value for every key that found lacks, and returns
// found. A nil map becomes a new one.
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

// ValueBy loads one value of each parent. The value depends on arguments.
type ValueBy[S, Parent, V any, K cmp.Ordered, A any] struct {
	loader[S, Parent, V, K, A]
}

// NewValueBy returns a loader of values that hold no rows to register.
func NewValueBy[S, Parent, V any, K cmp.Ordered, A any](
	name string, key func(*Parent) K, fetch func(S, context.Context, []K, A) (map[K]V, error),
) *ValueBy[S, Parent, V, K, A] {
	return &ValueBy[S, Parent, V, K, A]{loader[S, Parent, V, K, A]{name: name, key: key, fetch: fetch}}
}

// NewRowsBy returns a loader of values that hold rows, which it registers.
func NewRowsBy[S, Parent, V, Row any, K cmp.Ordered, A any](
	name string, key func(*Parent) K, fetch func(S, context.Context, []K, A) (map[K]V, error), rows func(V) []*Row,
) *ValueBy[S, Parent, V, K, A] {
	l := NewValueBy(name, key, fetch)
	l.register = func(here *place, values map[K]V) {
		for _, value := range values {
			registerRows(here, rows(value))
		}
	}
	return l
}

// NewManyBy returns a loader of the rows of each parent, which it registers. A
// parent without rows has an empty list.
func NewManyBy[S, Parent, Child any, K cmp.Ordered, A any](
	name string, key func(*Parent) K, fetch func(S, context.Context, []K, A) (map[K][]*Child, error),
) *ValueBy[S, Parent, []*Child, K, A] {
	l := NewRowsBy(name, key, fetch, func(children []*Child) []*Child { return children })
	l.shown = func(_ context.Context, children []*Child) ([]*Child, error) {
		if children == nil {
			return []*Child{}, nil
		}
		return children, nil
	}
	return l
}

// Held makes the loader use the value that came together with a parent, if
// there is one. It returns the loader.
func (l *ValueBy[S, Parent, V, K, A]) Held(
	held func(S, context.Context, *Parent, A) (V, bool),
) *ValueBy[S, Parent, V, K, A] {
	l.held = held
	return l
}

// Among makes the loader fetch for all keys that the function returns for the
// parents at a place. Use it if fields of parents reach other parents in
// memory.
func (l *ValueBy[S, Parent, V, K, A]) Among(keys func([]*Parent) []K) { l.among = keys }

// Owned makes the loader call a function with each parent and its fetched
// value, once and before anything is shown. It returns the loader.
func (l *ValueBy[S, Parent, V, K, A]) Owned(owned func(*Parent, V)) *ValueBy[S, Parent, V, K, A] {
	l.owned = owned
	return l
}

// Load returns the value of a parent.
func (l *ValueBy[S, Parent, V, K, A]) Load(ctx context.Context, s S, parent *Parent, arguments A) (V, error) {
	return l.LoadFrom(ctx, ctx, s, parent, arguments)
}

// LoadFrom returns the value of a parent that is an object above the field of
// the context from.
func (l *ValueBy[S, Parent, V, K, A]) LoadFrom(ctx, from context.Context, s S, parent *Parent, arguments A) (V, error) {
	value, err := l.load(ctx, from, s, parent, arguments)
	if err != nil || l.shown == nil {
		return value, err
	}
	return l.shown(ctx, value)
}

// Value loads one value of each parent.
type Value[S, Parent, V any, K cmp.Ordered] struct {
	ValueBy[S, Parent, V, K, None]
}

// NewValue returns a loader of values that hold no rows to register.
func NewValue[S, Parent, V any, K cmp.Ordered](
	name string, key func(*Parent) K, fetch func(S, context.Context, []K) (map[K]V, error),
) *Value[S, Parent, V, K] {
	return &Value[S, Parent, V, K]{*NewValueBy(name, key, without(fetch))}
}

// NewMany returns a loader of the rows of each parent, which it registers. A
// parent without rows has an empty list.
func NewMany[S, Parent, Child any, K cmp.Ordered](
	name string, key func(*Parent) K, fetch func(S, context.Context, []K) (map[K][]*Child, error),
) *Value[S, Parent, []*Child, K] {
	return &Value[S, Parent, []*Child, K]{*NewManyBy(name, key, without(fetch))}
}

// NewOne returns a loader of the row that each parent refers to, which it
// registers. The row is nil if it does not exist or is not visible. A key of 0
// or the empty string refers to nothing. If the schema requires a value, a
// missing row means that it and the parent were deleted after the parent was
// read. The error is then ErrNotFound.
func NewOne[S, Parent, Child any, K cmp.Ordered](
	name string, key func(*Parent) K, fetch func(S, context.Context, []K) (map[K]*Child, error),
) *Value[S, Parent, *Child, K] {
	l := NewValue(name, key, fetch)
	l.register = func(here *place, values map[K]*Child) {
		children := make([]*Child, 0, len(values))
		for _, child := range values {
			if child != nil {
				children = append(children, child)
			}
		}
		registerRows(here, children)
	}
	l.shown = func(ctx context.Context, child *Child) (*Child, error) {
		if field := placeOf(ctx).field; child == nil && field.NonNull {
			return nil, problem.Refuse(problem.ErrNotFound, "the %s was deleted meanwhile", field.AST.Name)
		}
		return child, nil
	}
	return l
}

// without adapts a fetch without arguments to the type of one with arguments.
func without[S, V any, K cmp.Ordered](fetch func(S, context.Context, []K) (map[K]V, error)) func(S,
	context.Context, []K, None) (map[K]V, error) {
	return func(s S, ctx context.Context, keys []K, _ None) (map[K]V, error) { return fetch(s, ctx, keys) }
}

// Registering makes a loader also register rows inside its values. It returns
// the loader.
func Registering[S, Parent, Child, Row any, K cmp.Ordered](l *Value[S, Parent, *Child, K],
	rows func(*Child) []*Row) *Value[S, Parent, *Child, K] {
	children := l.register
	l.register = func(here *place, values map[K]*Child) {
		children(here, values)
		for _, child := range values {
			if child != nil {
				registerRows(here, rows(child))
			}
		}
	}
	return l
}

// Held makes the loader use the value that came together with a parent, if
// there is one. It returns the loader.
func (l *Value[S, Parent, V, K]) Held(held func(*Parent) (V, bool)) *Value[S, Parent, V, K] {
	l.held = func(_ S, _ context.Context, parent *Parent, _ None) (V, bool) { return held(parent) }
	return l
}

// Among makes the loader fetch for all keys that the function returns for the
// parents at a place; see ValueBy.Among. It returns the loader.
func (l *Value[S, Parent, V, K]) Among(keys func([]*Parent) []K) *Value[S, Parent, V, K] {
	l.among = keys
	return l
}

// Supply stores values for later loads below the current field, which has
// fetched them together with the parents.
func (l *Value[S, Parent, V, K]) Supply(ctx context.Context, values map[K]V) {
	here := placeOf(ctx)
	here.of.mu.Lock()
	defer here.of.mu.Unlock()
	here.batches = append(here.batches, &batch[K, V, None]{loader: &l.loader, values: values})
}

// Load returns the value of a parent.
func (l *Value[S, Parent, V, K]) Load(ctx context.Context, s S, parent *Parent) (V, error) {
	return l.ValueBy.Load(ctx, s, parent, None{})
}
