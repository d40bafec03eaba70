package fill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"text/template"

	"github.com/cadastre-dev/cadastre/internal/soak"
)

var functions = Functions{"quote": func(of ...any) any { return fmt.Sprintf("%q", fmt.Sprint(of[0])) }}

// samples use every action and function.
var samples = []string{
	`{{.a}} {{quote .b}}{{with .d}} {{.a}}{{else}} none of {{.b}}{{end}}{{with .b}}{{.}}{{else}}no b of {{.a}}{{end}}`,
	`{{range .c}}- {{.a}} {{range .c}}{{.b}}, {{else}}empty {{.a}}{{end}}{{end}}`,
	`{{$x := .a}}{{range $i, $of := .c}}{{if $i}}, {{end}}{{$x}} {{$of.a}} {{if lt $i 2}}low{{else if gt $i 3}}high{{end}}{{end}}`,
	`{{range $name, $value := .d}}{{$name}}={{$value}} {{end}}{{if not .d}}no d{{end}}{{len .c}}`,
	`{{define "one"}}{{with .}}{{.a}}{{range .c}}{{template "one" .}}{{end}}{{else}}nil{{end}}{{end}}{{template "one" .}}{{template "one" .d}}`,
	`{{if eq (quote .a) "\"1\""}}{{$x := .b}}{{if .d}}{{$x := 3}}{{$x}}{{end}}{{$x}}{{end}}{{quote (index .d "a")}}`,
	`{{$i := .a}}{{range $i, $of := .c}}{{$i}}{{end}}{{$i}}{{with $i := .b}}{{$i}}{{end}}{{$i}}`,
	`{{with $x := .b}}{{$x}}{{end}}{{if $y := .a}}{{$y}}{{end}}{{$.a}}`,
}

// thing returns a random value as JSON decodes it.
func thing(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case depth == 0 || n == 0:
		return []any{"", "x", true, false, json.Number("0"), json.Number("1"), "<&>"}[r.IntN(7)]
	default:
		return object(r, depth-1)
	}
}

// object returns an object with a, b, the list c, and the object d.
func object(r *rand.Rand, depth int) map[string]any {
	of := map[string]any{"a": fmt.Sprint(r.IntN(3)), "b": thing(r, 0), "c": []any{}, "d": map[string]any{"a": "1"}}
	for range r.IntN(6) {
		if depth > 0 {
			of["c"] = append(of["c"].([]any), object(r, depth-1))
		}
	}
	for i := range r.IntN(3) {
		of["d"].(map[string]any)[string(rune('a'+i))] = thing(r, 0)
	}
	return of
}

// TestFillIsTextTemplate fills templates with random objects, and compares them
// with text/template.
func TestFillIsTextTemplate(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(soak.Seed(t), 2))
	for _, text := range samples {
		known := template.FuncMap{"quote": functions["quote"]}
		want, err := template.New("t").Funcs(known).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse("t", text, functions)
		if err != nil {
			t.Fatal(err)
		}
		for range soak.Rounds(200) {
			with := object(r, 3)
			var wanted strings.Builder
			if err := want.Execute(&wanted, with); err != nil {
				t.Fatal(err)
			}
			if found, err := got.Execute(with); err != nil || found != wanted.String() {
				t.Fatalf("%s of %v is %q, %v; want %q", text, with, found, err, wanted.String())
			}
		}
	}
}

// TestWrongTemplates fills templates that cannot be filled. Each must be an
// error.
func TestWrongTemplates(t *testing.T) {
	t.Parallel()
	if _, err := Parse("t", "{{none .a}}", functions); err == nil {
		t.Error("an unknown function is no error")
	}
	for _, text := range []string{"{{len .a}}", "{{lt .a 1}}", "{{break}}", "{{(.a).b}}"} {
		of, err := Parse("t", text, functions)
		if err == nil {
			_, err = of.Execute(map[string]any{"a": "x"})
		}
		if err == nil {
			t.Errorf("%s is no error", text)
		}
	}
}
