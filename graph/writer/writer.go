// Package writer has the types that generated code uses to write an answer: a
// buffer of fields, the errors so far, and the place of a resolver in the
// operation.
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
	"github.com/cadastre-dev/cadastre/internal/tracing"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Writer writes one answer. A null where the schema requires a value is an
// error, and the objects around the null are dropped, up to the nearest value
// that may be null. So each method that writes a value reports whether it did.
// After false the caller must drop its own value.
type Writer struct {
	Errors gqlerror.List

	buf     []byte   // the current piece
	room    int      // the maximum length of buf where a value begins
	full    [][]byte // the pieces before it
	written int      // the bytes in full
	values  int      // how many values began, to know when to check the time

	options  Options
	ctx      context.Context // of the root field
	contexts []Place
	bound    []map[string]any
	kept     map[int]resolved         // by place
	told     map[*document.Field]bool // fields with an added error that concerns all objects
	indexes  []int                    // in the current lists, from the root down
	current  *document.Field
	failed   int   // the number of errors before the current root field
	stopped  error // why no further root field is written
}

// Options control how an answer is written.
type Options struct {
	Variables map[string]any
	// Pieces lends the memory of the answer.
	Pieces *Pieces
	// Bytes bounds the answer; 0 is no limit. A root field that exceeds it is
	// null with an error, and so are the root fields after it.
	Bytes int
	// Finish makes a root field continue after its context has ended, so that
	// the answer shows the changes that the mutation has committed. Its
	// resolvers may still fail.
	Finish bool
	// Begin is called before each root field. It returns the context for the
	// field and all below it, or why the field is refused.
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
	// Loads is the data that package dataloader has read there.
	Loads any
}

type placeKey struct{}

// Value returns the place for placeKey, and otherwise the value of the inner
// context.
func (p *Place) Value(key any) any {
	if key == (placeKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// PlaceOf returns the place of the resolver that a context belongs to, or nil
// for other contexts.
func PlaceOf(ctx context.Context) *Place {
	place, _ := ctx.Value(placeKey{}).(*Place)
	return place
}

// Root writes a root field, or null with an error if Options.Begin refuses the
// field. A panic becomes an error of the field where it happened, and the root
// field is null.
func (w *Writer) Root(ctx context.Context, f *document.Field, write func(*document.Field) bool) (ok bool) {
	start, failed := w.Mark(), len(w.Errors)
	w.indexes, w.current, w.failed, w.told = w.indexes[:0], f, failed, nil
	ctx, end := tracing.Field(ctx, f.AST.Name)
	defer func() { end(w.failedSince(failed)) }()
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

// failedSince returns the first error after the given number of errors.
func (w *Writer) failedSince(first int) error {
	if len(w.Errors) > first {
		return w.Errors[first]
	}
	return nil
}

// NotNullSince adds ErrNull if a field wrote null since start without an error.
// Failed is the number of errors before the field.
func (w *Writer) NotNullSince(f *document.Field, start Mark, failed int) {
	if len(w.Errors) == failed && w.isNullSince(start) {
		w.add(ErrNull, w.path(f), nil)
	}
}

// stop is the panic that ends a root field for the reason in Writer.stopped.
// overrun is the panic that ends a root field after more than MaxFailed errors.
type (
	stop    struct{}
	overrun struct{}
)

// MaxFailed bounds the errors of one root field. A field with more errors is
// null and keeps the first document.MaxErrors of them.
const MaxFailed = 1000

// recovered makes a root field null after a panic.
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

// Arguments returns the arguments of a field, or nil if they are not bound yet.
func (w *Writer) Arguments(f *document.Field) map[string]any { return w.bound[f.Place] }

// Bind binds the arguments of a field. If an argument does not have its type,
// it returns nil and adds an error.
func (w *Writer) Bind(f *document.Field,
	bind func(context.Context, map[string]any) (map[string]any, error)) map[string]any {
	ctx := graphql.WithFieldContext(w.ctx, w.fieldContext(f))
	bound, err := bind(ctx, f.AST.ArgumentMap(w.options.Variables))
	if err != nil {
		w.add(err, w.path(f), nil)
		return nil
	}
	w.bound[f.Place] = bound
	return bound
}

// resolved is the result of a field, kept for fields that repeat it.
type resolved struct {
	value any
	err   error
}

// Keep keeps the result of a field on the current object for the fields that
// repeat it. The result on the next object replaces it.
func (w *Writer) Keep(f *document.Field, value any, err error) {
	if w.kept == nil {
		w.kept = map[int]resolved{}
	}
	w.kept[f.Place] = resolved{value, err}
}

// Kept returns the result that the field repeats, and whether it is known.
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

// fieldContext returns the context from which generated code reads the path of
// a field.
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

// Key begins a field. It ends the root field if the answer is too long or the
// time is over.
func (w *Writer) Key(f *document.Field) {
	w.current = f
	w.begin()
	w.buf = append(w.buf, f.Key...)
}

// begin prepares for the next value. It ends the root field if the answer is
// too long or the time is over.
func (w *Writer) begin() {
	if len(w.buf) >= w.room {
		w.turn()
	}
	if w.values++; w.values%betweenLooks == 0 && !w.options.Finish {
		w.look()
	}
}

// betweenLooks is the number of values between two checks of the time.
const betweenLooks = 256

func (w *Writer) look() {
	if err := w.ctx.Err(); err != nil {
		w.stopped = err
		panic(stop{})
	}
}

// turn begins the next piece if the current one is full. It ends the root field
// if the answer is too long.
func (w *Writer) turn() {
	if limit := w.options.Bytes; limit > 0 && w.written+len(w.buf) > limit {
		w.stopped = problem.Refuse(problem.ErrTooComplex,
			"the answer has more than %d bytes; select fewer fields or request smaller pages", limit)
		panic(stop{})
	}
	if len(w.buf) >= turnAt {
		w.full = append(w.full, w.buf)
		w.written += len(w.buf)
		w.buf = w.options.Pieces.take()
	}
	w.room = w.roomNow()
}

// roomNow returns the maximum length of the current piece where a value begins.
func (w *Writer) roomNow() int {
	if limit := w.options.Bytes; limit > 0 {
		return min(turnAt, limit-w.written+1)
	}
	return turnAt
}

// Mark is a position in an answer.
type Mark struct{ piece, at int }

// Mark returns the current end of the answer.
func (w *Writer) Mark() Mark { return Mark{len(w.full), len(w.buf)} }

// isNullSince reports whether exactly null was written since a position.
func (w *Writer) isNullSince(start Mark) bool {
	return start.piece == len(w.full) && string(w.buf[start.at:]) == "null"
}

// Data returns the answer in pieces. The caller must return them with
// Pieces.Give.
func (w *Writer) Data() [][]byte { return append(w.full, w.buf) }

// Fail adds the error of a field. An error for all objects is added only once,
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

// FailNull adds the error of a value that is null though the schema requires
// one. It returns false.
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

// path returns the path of a field in the answer, or of the current element of
// its list.
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

// Enter begins a list whose elements have paths.
func (w *Writer) Enter() { w.indexes = append(w.indexes, 0) }

// At begins the element with an index in the list that Enter began last.
func (w *Writer) At(i int) {
	w.indexes[len(w.indexes)-1] = i
	w.Element(i)
}

// Element begins an element by its index, in a list without paths.
func (w *Writer) Element(i int) {
	if i > 0 {
		w.buf = append(w.buf, ',')
	}
	w.begin()
}

// Leave ends a list.
func (w *Writer) Leave() { w.indexes = w.indexes[:len(w.indexes)-1] }

// Drop removes everything that was written since a position. It returns false.
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

// Absent writes null for a field without a value, if the field may be null.
func (w *Writer) Absent(f *document.Field) bool {
	if f.NonNull {
		return false
	}
	return w.Null()
}

// Null writes null. It returns true.
func (w *Writer) Null() bool {
	w.buf = append(w.buf, "null"...)
	return true
}

// Raw writes a JSON value.
func (w *Writer) Raw(json string) bool {
	w.buf = append(w.buf, json...)
	return true
}

// Byte writes one byte.
func (w *Writer) Byte(b byte) { w.buf = append(w.buf, b) }

// Write writes a part of a JSON value.
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

// Float writes a number, or null with an error if the number is not finite.
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

// JSON writes a JSON value, or null for the empty string.
func (w *Writer) JSON(value text.JSON) bool {
	if value == "" {
		return w.Null()
	}
	return w.Raw(string(value))
}
