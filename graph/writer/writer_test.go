package writer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/writer"
)

// answer writes the root fields of a query by a function for each.
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
	w := writer.New(ctx, plan, nil, writer.Options{
		Begin:   func(ctx context.Context, _ *document.Field) (context.Context, error) { return ctx, begin },
		Recover: func(_ context.Context, panicked any) error { return fmt.Errorf("recovered %v", panicked) },
	})
	for i, field := range plan.Root.Fields {
		w.Key(field)
		w.Root(ctx, field, func(f *document.Field) bool { return fields[i](w, f) })
	}
	w.Byte('}')
	return string(w.Buf), w.Errors.Error()
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
			start := len(w.Buf)
			w.Byte('[')
			w.Enter()
			w.At(0)
			w.FailNull(f)
			w.Leave()
			w.Drop(start)
			return w.Null()
		}, `{"f0":"\u0001\"é","f1":null}`, "input: f1[0] the requested element is null which the schema does not allow\n"},
		{"an end in a list", ended, nil, func(w *writer.Writer, f *document.Field) bool {
			w.Enter()
			for i := 0; ; i++ {
				w.At(i)
				if w.Ended(f, i) {
					w.Leave()
					return w.Null()
				}
			}
		}, `{"f0":"\u0001\"é","f1":null}`, "input: f1[63] context canceled\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			data, errs := answer(test.ctx, test.begin, fine, test.field)
			if data != test.data || errs != test.errors {
				t.Errorf("got %s\n%s", data, errs)
			}
		})
	}
	if data, errs := answer(t.Context(), errors.New("refused"), fine); data != `{"f0":null}` || errs != "input:1:1: f0 refused\n" {
		t.Errorf("a refused field: got %s\n%s", data, errs)
	}
}
