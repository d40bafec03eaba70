// Package dataloader batches the reads of one operation without a clock. A
// resolver that fetches rows registers them at their place in the operation.
// The first load of children below that place fetches the children of all
// registered rows in one statement. Later loads find their part of the result.
// So the number of statements follows from the operation's shape, never from
// the number of rows or the load of the machine.
//
// A loader describes one batch: the field, the key of a parent, how values are
// fetched by keys, and which rows of the result have children to load. Places
// are numbered by the operation's plan, and each place has at most one batch of
// a loader for the same arguments. gqlgen's own executor has no plan and runs
// fields concurrently. For it, places come from the paths of fields, and the
// package is safe for concurrent use.
package dataloader

import (
	"cmp"
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/writer"
)

// loads holds the rows and batches that were read for one operation.
type loads struct {
	mu     sync.Mutex
	places []*place                   // by number; nil where no field read anything
	byPath map[string]*document.Field // the fields that gqlgen's executor runs
}

// place holds the rows and batches that were read at one place of an operation.
type place struct {
	of      *loads
	field   *document.Field
	rows    []any // *rows of each kind registered here
	batches []any // *batch of each load for the rows registered here
	called  []any // *batch of each loader called here, shared of each instance of Once
}

// rows are the rows of one kind at a place.
type rows[Row any] struct {
	all   []*Row
	later []func() []*Row // functions that return rows to be added to all
}

// batch is the result of one load for all rows at a place.
type batch[K cmp.Ordered, V, A any] struct {
	loader    any // *loader
	arguments A
	values    map[K]V // with every key that was requested
	err       error
}

type loadsKey struct{}

// With returns a context for the loads of an operation. The caller must make a
// context for each field of a mutation, so that no value read before a write is
// shown after it.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadsKey{}, &loads{})
}

// placeOf returns the place of the field that the context belongs to.
func placeOf(ctx context.Context) *place {
	at := writer.PlaceOf(ctx)
	if at == nil {
		l := ctx.Value(loadsKey{}).(*loads)
		l.mu.Lock()
		defer l.mu.Unlock()
		field, _ := l.fieldAt(graphql.GetFieldContext(ctx))
		return l.at(field)
	}
	if here, ok := at.Loads.(*place); ok {
		return here
	}
	here := ctx.Value(loadsKey{}).(*loads).at(at.Field)
	at.Loads = here
	return here
}

func (l *loads) at(field *document.Field) *place {
	for len(l.places) <= field.Place {
		l.places = append(l.places, nil)
	}
	here := l.places[field.Place]
	if here == nil {
		here = &place{of: l, field: field}
		l.places[field.Place] = here
	}
	return here
}

// fieldAt returns the field of a plan that corresponds to a field of gqlgen's
// executor, and the field's path. The path has the response names from the root
// down, each with the type that has the field, without list indexes. Fields of
// different types may have the same name; their places differ.
func (l *loads) fieldAt(fc *graphql.FieldContext) (*document.Field, string) {
	for fc != nil && (fc.Index != nil || fc.Field.Field == nil) {
		fc = fc.Parent
	}
	if fc == nil {
		return nil, ""
	}
	parent, path := l.fieldAt(fc.Parent)
	path += "." + fc.Object + ":" + fc.Field.Alias
	field := l.byPath[path]
	if field == nil {
		if l.byPath == nil {
			l.byPath = map[string]*document.Field{}
		}
		field = &document.Field{Place: len(l.byPath), Parent: parent, AST: fc.Field.Field,
			NonNull: fc.Field.Definition.Type.NonNull}
		l.byPath[path] = field
	}
	return field, path
}

// Register notes rows that the current field has fetched. A load then fetches
// the children of all of them in one batch.
func Register[Row any](ctx context.Context, registered ...*Row) {
	here := placeOf(ctx)
	here.of.mu.Lock()
	defer here.of.mu.Unlock()
	registerRows(here, registered)
}

func registerRows[Row any](here *place, registered []*Row) {
	if len(registered) == 0 {
		return
	}
	of := rowsToBeAt[Row](here)
	of.all = append(of.all, registered...)
}

// RegisterLater notes rows that the current field has in memory, like Register.
// A load below the field calls the function when it needs the rows.
func RegisterLater[Row any](ctx context.Context, registered func() []*Row) {
	here := placeOf(ctx)
	here.of.mu.Lock()
	defer here.of.mu.Unlock()
	of := rowsToBeAt[Row](here)
	of.later = append(of.later, registered)
}

// shared has the values that Once computed at a place, by key.
type shared[K comparable, V any] map[K]V

// Once returns the value of compute for a key. It computes the value once for
// each key at the place of the current field, whose arguments are the same for
// all parents. It keeps no errors. Many parents can lead to one key; then the
// work grows with the number of keys, not of parents.
func Once[K comparable, V any](ctx context.Context, key K, compute func() (V, error)) (V, error) {
	here := placeOf(ctx)
	known := sharedAt[K, V](here)
	here.of.mu.Lock()
	value, ok := known[key]
	here.of.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := compute()
	if err != nil {
		return value, err
	}
	here.of.mu.Lock()
	defer here.of.mu.Unlock()
	known[key] = value
	return value, nil
}

// sharedAt returns the values that Once keeps at a place for keys and values of
// these types.
func sharedAt[K comparable, V any](here *place) shared[K, V] {
	here.of.mu.Lock()
	defer here.of.mu.Unlock()
	for _, called := range here.called {
		if of, ok := called.(shared[K, V]); ok {
			return of
		}
	}
	of := shared[K, V]{}
	here.called = append(here.called, of)
	return of
}

// rowsToBeAt returns the rows of a kind at a place, to add more to them.
func rowsToBeAt[Row any](here *place) *rows[Row] {
	of := rowsAt[Row](here)
	if of == nil {
		of = &rows[Row]{}
		here.rows = append(here.rows, of)
	}
	return of
}

// rowsAt returns the rows of a kind that are registered at a place, or nil.
func rowsAt[Row any](here *place) *rows[Row] {
	for _, of := range here.rows {
		if of, ok := of.(*rows[Row]); ok {
			return of
		}
	}
	return nil
}

// rowsAbove returns the rows of a kind that are registered at the nearest place
// above, and that place. If there is none, it returns no rows and the given
// place.
func rowsAbove[Row any](here *place) ([]*Row, *place) {
	places := here.of.places
	for field := here.field.Parent; field != nil; field = field.Parent {
		if field.Place >= len(places) || places[field.Place] == nil {
			continue
		}
		if of := rowsAt[Row](places[field.Place]); of != nil {
			for _, more := range of.later {
				of.all = append(of.all, more()...)
			}
			of.later = nil
			return of.all, places[field.Place]
		}
	}
	return nil, here
}
