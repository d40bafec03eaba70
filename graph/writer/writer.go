// Package writer holds what the generated code writes an answer with: a buffer
// that fields are appended to one after the other, the errors met on the way,
// and what a resolver must know of the place it is called at.
package writer

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/text"
)

// Writer writes one answer. A value that may not be null and has none is an
// error: what was written of the object around it is taken back, up to the
// nearest value that may be null. So every method that writes a value reports
// whether it did; false asks the caller to take back its own.
type Writer struct {
	Buf    []byte
	Errors gqlerror.List

	options  Options
	ctx      context.Context // of the root field
	contexts []place
	bound    []map[string]any
	indexes  []int // in the lists that are being written, from the root down
	current  *document.Field
}

// Options say how an answer is written.
type Options struct {
	Variables map[string]any
	// Begin is called before each root field. It returns the context that the
	// field and all below it run in, or why the field is refused.
	Begin func(context.Context, *document.Field) (context.Context, error)
	// Recover returns the error of a panic.
	Recover func(context.Context, any) error
}

// New returns a writer that appends to a buffer the answer to an operation.
func New(ctx context.Context, plan *document.Plan, buffer []byte, options Options) *Writer {
	return &Writer{
		Buf: buffer, options: options, ctx: ctx,
		contexts: make([]place, plan.Places), bound: make([]map[string]any, plan.Places),
	}
}

// place is the context of the resolver of one field.
type place struct {
	context.Context
	field *document.Field
}

type fieldKey struct{}

// Value returns the field for its own key.
func (p *place) Value(key any) any {
	if key == (fieldKey{}) {
		return p.field
	}
	return p.Context.Value(key)
}

// FieldOf returns the field whose resolver a context was given to, and nil for
// other contexts.
func FieldOf(ctx context.Context) *document.Field {
	field, _ := ctx.Value(fieldKey{}).(*document.Field)
	return field
}

// Root writes a root field, unless it is refused. A panic below it is an error
// of the field at which it happened, and the root field is null.
func (w *Writer) Root(ctx context.Context, f *document.Field, write func(*document.Field) bool) (ok bool) {
	start := len(w.Buf)
	w.indexes, w.current = w.indexes[:0], f
	defer func() {
		if panicked := recover(); panicked != nil {
			w.Fail(w.current, w.options.Recover(ctx, panicked))
			w.Buf = w.Buf[:start]
			ok = w.Absent(f)
		}
	}()
	below, err := w.options.Begin(ctx, f)
	if err != nil {
		w.Fail(f, err)
		return w.Absent(f)
	}
	w.ctx = below
	failed := len(w.Errors)
	ok = write(f)
	if f.NullFails && len(w.Errors) == failed && string(w.Buf[start:]) == "null" {
		w.add(ErrNull, w.path(f), nil)
	}
	return ok
}

// ErrNull is the error of a field that is null although nothing failed.
var ErrNull = errors.New("must not be null")

// Context returns the context for the resolver of a field.
func (w *Writer) Context(f *document.Field) context.Context {
	at := &w.contexts[f.Place]
	if at.Context == nil {
		at.Context, at.field = w.ctx, f
	}
	return at
}

// Arguments returns the arguments of a field, and nil where they were not bound
// yet.
func (w *Writer) Arguments(f *document.Field) map[string]any { return w.bound[f.Place] }

// Bind binds the arguments of a field. It returns nil and adds an error where
// one of them is not of its type.
func (w *Writer) Bind(f *document.Field, bind func(context.Context, map[string]any) (map[string]any, error)) map[string]any {
	ctx := graphql.WithFieldContext(w.ctx, w.fieldContext(f))
	bound, err := bind(ctx, f.AST.ArgumentMap(w.options.Variables))
	if err != nil {
		w.add(err, w.path(f), nil)
		return nil
	}
	w.bound[f.Place] = bound
	return bound
}

// fieldContext returns the context that the generated code finds the path of a
// field in.
func (w *Writer) fieldContext(f *document.Field) *graphql.FieldContext {
	var at *graphql.FieldContext
	for _, element := range w.path(f) {
		next := &graphql.FieldContext{Parent: at}
		switch element := element.(type) {
		case ast.PathIndex:
			next.Index = new(int(element))
		case ast.PathName:
			next.Field.Field = &ast.Field{Alias: string(element)}
		}
		at = next
	}
	return at
}

// Key begins a field.
func (w *Writer) Key(f *document.Field) {
	w.current = f
	w.Buf = append(w.Buf, f.Key...)
}

// Fail adds the error of a field.
func (w *Writer) Fail(f *document.Field, err error) {
	var at []gqlerror.Location
	if position := f.AST.Position; position != nil && position.Line != 0 {
		at = []gqlerror.Location{{Line: position.Line, Column: position.Column}}
	}
	w.add(err, w.path(f), at)
}

// FailNull adds the error of a value that is null where the schema has none.
func (w *Writer) FailNull(f *document.Field) bool {
	w.add(errors.New("the requested element is null which the schema does not allow"), w.path(f), nil)
	return false
}

func (w *Writer) add(err error, path ast.Path, at []gqlerror.Location) {
	shown := gqlerror.WrapPath(path, err)
	if already, ok := errors.AsType[*gqlerror.Error](err); ok {
		own := *already
		shown = &own
	}
	if shown.Path == nil {
		shown.Path = path
	}
	if shown.Locations == nil {
		shown.Locations = at
	}
	w.Errors = append(w.Errors, shown)
}

// path returns where in the answer a field is, or the element of its list that
// is being written.
func (w *Writer) path(f *document.Field) ast.Path {
	var fields []*document.Field
	for at := f; at != nil; at = at.Parent {
		fields = append(fields, at)
	}
	var path ast.Path
	for _, at := range slices.Backward(fields) {
		path = append(path, ast.PathName(at.AST.Alias))
		for level := at.Lists; level < min(at.Lists+at.Levels, len(w.indexes)); level++ {
			path = append(path, ast.PathIndex(w.indexes[level]))
		}
	}
	return path
}

// Enter begins a list whose elements have paths, At its element of an index,
// and Leave ends it.
func (w *Writer) Enter() { w.indexes = append(w.indexes, 0) }

// At begins the element of an index.
func (w *Writer) At(i int) { w.indexes[len(w.indexes)-1] = i }

// Leave ends a list.
func (w *Writer) Leave() { w.indexes = w.indexes[:len(w.indexes)-1] }

// Ended reports whether the time for the answer is over, every few elements of
// a list, and adds an error at the element if so.
func (w *Writer) Ended(f *document.Field, i int) bool {
	const few = 64
	if i%few != few-1 || w.ctx.Err() == nil {
		return false
	}
	w.add(w.ctx.Err(), w.path(f), nil)
	return true
}

// Drop takes back what was written since a start.
func (w *Writer) Drop(start int) bool {
	w.Buf = w.Buf[:start]
	return false
}

// Absent writes null for a field without a value, where it may be null.
func (w *Writer) Absent(f *document.Field) bool {
	if f.NonNull {
		return false
	}
	return w.Null()
}

// Null writes null.
func (w *Writer) Null() bool {
	w.Buf = append(w.Buf, "null"...)
	return true
}

// Raw writes a value that is JSON.
func (w *Writer) Raw(json string) bool {
	w.Buf = append(w.Buf, json...)
	return true
}

// Byte writes one byte.
func (w *Writer) Byte(b byte) { w.Buf = append(w.Buf, b) }

// Write writes a part of a value that is JSON.
func (w *Writer) Write(json []byte) (int, error) {
	w.Buf = append(w.Buf, json...)
	return len(json), nil
}

// String writes a string.
func (w *Writer) String(value string) bool {
	w.Buf = text.AppendQuoted(w.Buf, value)
	return true
}

// Boolean writes a boolean.
func (w *Writer) Boolean(value bool) bool {
	w.Buf = strconv.AppendBool(w.Buf, value)
	return true
}

// Integer writes an integer.
func (w *Writer) Integer(value int64) bool {
	w.Buf = strconv.AppendInt(w.Buf, value, 10)
	return true
}

// Float writes a number, which must be finite.
func (w *Writer) Float(f *document.Field, value float64) bool {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		w.add(errors.New("the number is not finite"), w.path(f), nil)
		return w.Null()
	}
	w.Buf = strconv.AppendFloat(w.Buf, value, 'g', -1, 64)
	return true
}

// Time writes a time in UTC, in the form of RFC 3339.
func (w *Writer) Time(value time.Time) bool {
	w.Buf = append(w.Buf, '"')
	w.Buf = value.UTC().AppendFormat(w.Buf, time.RFC3339Nano)
	w.Buf = append(w.Buf, '"')
	return true
}

// JSON writes a value that is JSON; the empty one stands for an absent value.
func (w *Writer) JSON(value text.JSON) bool {
	if value == "" {
		return w.Null()
	}
	return w.Raw(string(value))
}
