package writer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/problem"
)

// answer writes the root fields of a query with the given function for each.
func answer(ctx context.Context, begin error, fields ...func(*writer.Writer, *document.Field) bool) (string, string) {
	plan := &document.Plan{Root: &document.Selection{}, Places: len(fields)}
	for i := range fields {
		name, before := fmt.Sprint("f", i), ","
		if i == 0 {
			before = "{"
		}
		plan.Root.Fields = append(plan.Root.Fields, &document.Field{
			Place: i, Number: i, Key: fmt.Appendf(nil, "%s%q:", before, name), Levels: 1, NullFails: true,
			AST: &ast.Field{Name: name, Alias: name, Position: &ast.Position{Line: 1, Column: i + 1}},
		})
	}
	w := writer.New(ctx, plan, writer.Options{
		Pieces: &writer.Pieces{}, Bytes: 100_000,
		Begin:   func(ctx context.Context, _ *document.Field) (context.Context, error) { return ctx, begin },
		Recover: func(_ context.Context, panicked any) error { return fmt.Errorf("recovered %v", panicked) },
	})
	for i, field := range plan.Root.Fields {
		w.Key(field)
		w.Root(ctx, field, func(f *document.Field) bool { return fields[i](w, f) })
	}
	w.Byte('}')
	return string(bytes.Join(w.Data(), nil)), w.Errors.Error()
}

func TestAnAnswerKeepsWhatDidNotFail(t *testing.T) {
	t.Parallel()
	fine := func(w *writer.Writer, _ *document.Field) bool { return w.String("\x01\"é") }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name         string
		ctx          context.Context
		begin        error
		field        func(*writer.Writer, *document.Field) bool
		data, errors string
	}{
		{"an error", t.Context(), nil, func(w *writer.Writer, f *document.Field) bool {
			w.Fail(f, errors.New("no"))
			return w.Absent(f)
		}, `{"f0":"\u0001\"é","f1":null}`, "input:1:2: f1 no\n"},
		{"a panic in a list", t.Context(), nil, func(w *writer.Writer, _ *document.Field) bool {
			w.Byte('[')
			w.Enter()
			w.At(3)
			panic("down")
		}, `{"f0":"\u0001\"é","f1":null}`, "input:1:2: f1[3] recovered down\n"},
		{"null without an error", t.Context(), nil, func(w *writer.Writer, _ *document.Field) bool { return w.Null() },
			`{"f0":"\u0001\"é","f1":null}`, "input: f1 must not be null\n"},
		{"an element that is null", t.Context(), nil, func(w *writer.Writer, f *document.Field) bool {
			start := w.Mark()
			w.Byte('[')
			w.Enter()
			w.At(0)
			w.FailNull(f)
			w.Leave()
			w.Drop(start)
			return w.Null()
		}, `{"f0":"\u0001\"é","f1":null}`, "input: f1[0] the requested element is null which the schema does not allow\n"},
		{"an end", ended, nil, func(w *writer.Writer, f *document.Field) bool {
			for {
				w.Key(f)
				w.Null()
			}
		}, `{"f0":"\u0001\"é","f1":null}`, "input:1:2: f1 context canceled\n"},
		{"too many bytes", t.Context(), nil, func(w *writer.Writer, f *document.Field) bool {
			for {
				w.Key(f)
				w.Null()
			}
		}, `{"f0":"\u0001\"é","f1":null}`, "input:1:2: f1 the answer has more than 100000 bytes; select fewer fields or request smaller pages\n"},
		{"one long value", t.Context(), nil, func(w *writer.Writer, _ *document.Field) bool {
			return w.String(strings.Repeat("x", 100_000))
		}, `{"f0":"\u0001\"é","f1":null}`, "input:1:2: f1 the answer has more than 100000 bytes; select fewer fields or request smaller pages\n"},
		{"many bytes that are taken back", t.Context(), nil, func(w *writer.Writer, _ *document.Field) bool {
			start := w.Mark()
			for range 100 {
				for range 15_000 {
					w.Element(1)
					w.Byte('0')
				}
				w.Drop(start)
			}
			return w.Null()
		}, `{"f0":"\u0001\"é","f1":null}`, "input: f1 must not be null\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			data, errs := answer(test.ctx, test.begin, fine, test.field)
			if data != test.data || errs != test.errors {
				t.Errorf("got %s\n%s", data, errs)
			}
		})
	}
	long := func(w *writer.Writer, _ *document.Field) bool { return w.String(strings.Repeat("x", 100_000)) }
	tooLong := "the answer has more than 100000 bytes; select fewer fields or request smaller pages\n"
	if data, errs := answer(t.Context(), nil, long, fine); data != `{"f0":null,"f1":null}` ||
		errs != "input:1:1: f0 "+tooLong+"input:1:2: f1 "+tooLong {
		t.Errorf("after an end: got %s\n%s", data, errs)
	}
	if data, errs := answer(t.Context(), errors.New("refused"), fine); data != `{"f0":null}` ||
		errs != "input:1:1: f0 refused\n" {
		t.Errorf("a refused field: got %s\n%s", data, errs)
	}
}

// TestARefusalForAllObjectsIsToldOnce fails a field with the same reason for
// more objects than MaxFailed allows.
func TestARefusalForAllObjectsIsToldOnce(t *testing.T) {
	t.Parallel()
	data, errs := answer(t.Context(), nil, func(w *writer.Writer, f *document.Field) bool {
		w.Byte('[')
		for i := range writer.MaxFailed + 5 {
			w.Element(i)
			w.Fail(f, problem.Refuse(problem.ErrForbidden, "closed").ForAll())
			w.Null()
		}
		w.Byte(']')
		return true
	})
	if strings.Count(data, "null") != writer.MaxFailed+5 || strings.Count(errs, "closed") != 1 {
		t.Errorf("%d values and the errors %s", strings.Count(data, "null"), errs)
	}
}
