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
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Writer writes one answer. A value that may not be null and has none is an
// error: what was written of the object around it is taken back, up to the
// nearest value that may be null. So every method that writes a value reports
// whether it did; false asks the caller to take back its own.
type Writer struct {
	Errors gqlerror.List

	buf     []byte   // the piece that is being written
	room    int      // how long buf may be where a value begins
	full    [][]byte // the pieces before it
	written int      // the bytes in full
	values  int      // how many values began, for the look at the time

	options  Options
	ctx      context.Context // of the root field
	contexts []Place
	bound    []map[string]any
	kept     map[int]resolved         // by place
	told     map[*document.Field]bool // whose refusal for all objects is among the errors
	indexes  []int                    // in the lists that are being written, from the root down
	current  *document.Field
	failed   int   // the errors before the root field that is being written
	stopped  error // why no further root field is written
}

// Options say how an answer is written.
type Options struct {
	Variables map[string]any
	// Pieces lends the memory of the answer.
	Pieces *Pieces
	// Bytes bounds the answer; 0 is no limit. The root field that goes beyond it
	// is null, and so are the ones after it, each with an error.
	Bytes int
	// Finish makes a root field that began go on when its context has ended: what
	// a mutation has committed is answered. Its resolvers may fail by then.
	Finish bool
	// Begin is called before each root field. It returns the context that the
	// field and all below it run in, or why the field is refused.
	Begin func(context.Context, *document.Field) (context.Context, error)
	// Recover returns the error of a panic.
	Recover func(context.Context, any) error
}

// New returns a writer of the answer to an operation.
func New(ctx context.Context, plan *document.Plan, options Options) *Writer {
	w := &Writer{
		buf: options.Pieces.take(), options: options, ctx: ctx,
		contexts: make([]Place, plan.Places), bound: make([]map[string]any, plan.Places),
	}
	w.room = w.roomNow()
	return w
}

// Place is the context of the resolver of one field.
type Place struct {
	context.Context
	Field *document.Field
	// Loads is what package dataloader has read there.
	Loads any
}

type placeKey struct{}

// Value returns the place for its own key.
func (p *Place) Value(key any) any {
	if key == (placeKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// PlaceOf returns the place whose resolver a context was given to, and nil for
// other contexts.
func PlaceOf(ctx context.Context) *Place {
	place, _ := ctx.Value(placeKey{}).(*Place)
	return place
}

// Root writes a root field, unless it is refused. A panic below it is an error
// of the field at which it happened, and the root field is null.
func (w *Writer) Root(ctx context.Context, f *document.Field, write func(*document.Field) bool) (ok bool) {
	start, failed := w.Mark(), len(w.Errors)
	w.indexes, w.current, w.failed, w.told = w.indexes[:0], f, failed, nil
	defer func() {
		if panicked := recover(); panicked != nil {
			ok = w.recovered(ctx, f, start, failed, panicked)
		}
	}()
	if w.stopped != nil {
		panic(stop{})
	}
	below, err := w.options.Begin(ctx, f)
	if err != nil {
		w.Fail(f, err)
		return w.Absent(f)
	}
	w.ctx = below
	ok = write(f)
	if w.options.Bytes > 0 && w.written+len(w.buf) > w.options.Bytes {
		w.turn()
	}
	if f.NullFails {
		w.NotNullSince(f, start, failed)
	}
	return ok
}

// NotNullSince adds an error to a field that is null although nothing failed
// since so many errors were there.
func (w *Writer) NotNullSince(f *document.Field, start Mark, failed int) {
	if len(w.Errors) == failed && w.isNullSince(start) {
		w.add(ErrNull, w.path(f), nil)
	}
}

// stop is the panic that ends a root field for the reason in stopped, and
// overrun the one that ends it because too much failed in it.
type (
	stop    struct{}
	overrun struct{}
)

// MaxFailed bounds the errors in one root field: with more of them it is null,
// and has its first ones.
const MaxFailed = 1000

// recovered makes a root field null that a panic ended.
func (w *Writer) recovered(ctx context.Context, f *document.Field, start Mark, failed int, panicked any) bool {
	switch panicked.(type) {
	case stop:
		w.Errors = w.Errors[:failed]
		w.Fail(f, w.stopped)
	case overrun:
		w.Errors = w.Errors[:failed+document.MaxErrors]
	default:
		w.Fail(w.current, w.options.Recover(ctx, panicked))
	}
	w.Drop(start)
	return w.Absent(f)
}

// ErrNull is the error of a field that is null although nothing failed.
var ErrNull = errors.New("must not be null")

// Context returns the context for the resolver of a field.
func (w *Writer) Context(f *document.Field) context.Context {
	at := &w.contexts[f.Place]
	if at.Context == nil {
		at.Context, at.Field = w.ctx, f
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

// resolved is what a field was resolved to, for those that repeat it.
type resolved struct {
	value any
	err   error
}

// Keep keeps what a field was resolved to, until the same is kept of the next
// object.
func (w *Writer) Keep(f *document.Field, value any, err error) {
	if w.kept == nil {
		w.kept = map[int]resolved{}
	}
	w.kept[f.Place] = resolved{value, err}
}

// Kept returns what the field was resolved to that another one repeats, and
// whether it is known.
func Kept[V any](w *Writer, f *document.Field) (value V, known bool, err error) {
	if !f.Repeats {
		return value, false, nil
	}
	of, known := w.kept[f.Place]
	if !known {
		return value, false, nil
	}
	value, _ = of.value.(V) // nil is of no type
	return value, true, of.err
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

// Key begins a field. It ends the root field when the answer is too long, or
// its time is over.
func (w *Writer) Key(f *document.Field) {
	w.current = f
	w.begin()
	w.buf = append(w.buf, f.Key...)
}

// begin looks whether a value may begin.
func (w *Writer) begin() {
	if len(w.buf) >= w.room {
		w.turn()
	}
	if w.values++; w.values%betweenLooks == 0 && !w.options.Finish {
		w.look()
	}
}

// betweenLooks is how many values are written between two looks at the time.
const betweenLooks = 256

func (w *Writer) look() {
	if err := w.ctx.Err(); err != nil {
		w.stopped = err
		panic(stop{})
	}
}

// turn begins the next piece.
func (w *Writer) turn() {
	if limit := w.options.Bytes; limit > 0 && w.written+len(w.buf) > limit {
		w.stopped = problem.Refuse(problem.ErrTooComplex, "the answer has more than %d bytes; select less, or ask for smaller pages", limit)
		panic(stop{})
	}
	if len(w.buf) >= turnAt {
		w.full = append(w.full, w.buf)
		w.written += len(w.buf)
		w.buf = w.options.Pieces.take()
	}
	w.room = w.roomNow()
}

// roomNow returns how long the current piece may be where a value begins.
func (w *Writer) roomNow() int {
	if limit := w.options.Bytes; limit > 0 {
		return min(turnAt, limit-w.written+1)
	}
	return turnAt
}

// Mark is a position in an answer.
type Mark struct{ piece, at int }

// Mark returns the end of what was written.
func (w *Writer) Mark() Mark { return Mark{len(w.full), len(w.buf)} }

// isNullSince reports whether null is what was written since a position.
func (w *Writer) isNullSince(start Mark) bool {
	return start.piece == len(w.full) && string(w.buf[start.at:]) == "null"
}

// Data returns the answer in its pieces. The caller returns them to the pool.
func (w *Writer) Data() [][]byte { return append(w.full, w.buf) }

// Fail adds the error of a field. One that is the same for all objects is added
// for the first of them.
func (w *Writer) Fail(f *document.Field, err error) {
	if problem.IsForAll(err) {
		if w.told[f] {
			return
		}
		if w.told == nil {
			w.told = map[*document.Field]bool{}
		}
		w.told[f] = true
	}
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
	if len(w.Errors)-w.failed > MaxFailed {
		panic(overrun{})
	}
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
func (w *Writer) At(i int) {
	w.indexes[len(w.indexes)-1] = i
	w.Element(i)
}

// Element begins the element of an index, in a list whose elements need no
// paths.
func (w *Writer) Element(i int) {
	if i > 0 {
		w.buf = append(w.buf, ',')
	}
	w.begin()
}

// Leave ends a list.
func (w *Writer) Leave() { w.indexes = w.indexes[:len(w.indexes)-1] }

// Drop takes back what was written since a position.
func (w *Writer) Drop(start Mark) bool {
	for start.piece < len(w.full) {
		w.options.Pieces.Give(w.buf)
		last := len(w.full) - 1
		w.buf, w.full = w.full[last], w.full[:last]
		w.written -= len(w.buf)
		w.room = w.roomNow()
	}
	w.buf = w.buf[:start.at]
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
	w.buf = append(w.buf, "null"...)
	return true
}

// Raw writes a value that is JSON.
func (w *Writer) Raw(json string) bool {
	w.buf = append(w.buf, json...)
	return true
}

// Byte writes one byte.
func (w *Writer) Byte(b byte) { w.buf = append(w.buf, b) }

// Write writes a part of a value that is JSON.
func (w *Writer) Write(json []byte) (int, error) {
	w.buf = append(w.buf, json...)
	return len(json), nil
}

// String writes a string.
func (w *Writer) String(value string) bool {
	w.buf = text.AppendQuoted(w.buf, value)
	return true
}

// Boolean writes a boolean.
func (w *Writer) Boolean(value bool) bool {
	w.buf = strconv.AppendBool(w.buf, value)
	return true
}

// Integer writes an integer.
func (w *Writer) Integer(value int64) bool {
	w.buf = strconv.AppendInt(w.buf, value, 10)
	return true
}

// Float writes a number, which must be finite.
func (w *Writer) Float(f *document.Field, value float64) bool {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		w.add(errors.New("the number is not finite"), w.path(f), nil)
		return w.Null()
	}
	w.buf = strconv.AppendFloat(w.buf, value, 'g', -1, 64)
	return true
}

// Time writes a time in UTC, in the form of RFC 3339.
func (w *Writer) Time(value time.Time) bool {
	w.buf = append(w.buf, '"')
	w.buf = value.UTC().AppendFormat(w.buf, time.RFC3339Nano)
	w.buf = append(w.buf, '"')
	return true
}

// JSON writes a value that is JSON; the empty one stands for an absent value.
func (w *Writer) JSON(value text.JSON) bool {
	if value == "" {
		return w.Null()
	}
	return w.Raw(string(value))
}
