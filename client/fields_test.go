package client_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestOptionalFieldsOfInputs encodes every optional field of every input
// absent, as null and with a value, and checks the JSON.
func TestOptionalFieldsOfInputs(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t)
	for _, input := range inputs {
		required := 0
		for _, of := range schema.Types[input.Name()].Fields {
			field, found := fieldNamed(input, of.Name)
			switch {
			case !found:
				t.Errorf("%s.%s is not in the client", input.Name(), of.Name)
			case isOptional(of):
				checkStates(t, input, field)
			default:
				required++
			}
		}
		if empty := encoded(t, reflect.New(input).Interface()); len(empty) != required {
			t.Errorf("an empty %s is sent with %v, want its %d required fields", input.Name(), empty, required)
		}
	}
}

// isOptional reports whether a field of an input can be absent.
func isOptional(of *ast.FieldDefinition) bool { return !of.Type.NonNull || of.DefaultValue != nil }

// checkStates encodes a field of an input absent, as null and with a value.
func checkStates(t *testing.T, input reflect.Type, field reflect.StructField) {
	t.Helper()
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if field.Type.PkgPath() != reflect.TypeFor[optional.Of[string]]().PkgPath() {
		t.Errorf("%s.%s is a %s: it cannot be absent, null or a value", input.Name(), name, field.Type)
		return
	}
	made := reflect.New(input)
	for key, isNull := range map[bool]bool{false: true, true: false} {
		state := reflect.MakeMap(field.Type)
		state.SetMapIndex(reflect.ValueOf(key), reflect.Zero(field.Type.Elem()))
		made.Elem().FieldByIndex(field.Index).Set(state)
		sent, found := encoded(t, made.Interface())[name]
		canBeNull := slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map}, field.Type.Elem().Kind()) // a nil list
		if !found || isNull && sent != nil || !isNull && sent == nil && !canBeNull {
			t.Errorf("%s.%s as null %v is sent as %v, %v", input.Name(), name, isNull, sent, found)
		}
	}
}

// TestEveryFieldArrives sets each field of each writing input through the
// client, on both databases. It looks for the value in the payload and in a
// later query. An update without a field keeps the value. Null clears the
// field, or is refused if the description says so. The fields come from the
// schema, so the test finds any field that a create, a bulk create, an update
// or a read loses.
func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t)
	storetest.EachURL(t, func(t *testing.T, url string) {
		var shown []seen
		t.Run("written", func(t *testing.T) {
			w := newWriter(t, schema, url)
			w.must(fixtures, nil)
			w.checkMutations()
			shown = w.shownLast
		})
		t.Run("read by another server", func(t *testing.T) {
			w := newWriter(t, schema, url)
			for _, one := range shown {
				one.check(w)
			}
		})
	})
}

// writer sends mutations.
type writer struct {
	t         *testing.T
	schema    *ast.Schema
	to        *client.Client
	made      int // number of objects that were set up
	shownLast []seen
}

// newWriter serves a database. If it was empty, it gets the demo cloud.
func newWriter(t *testing.T, schema *ast.Schema, url string) *writer {
	t.Helper()
	s := demotest.Open(t, url)
	return &writer{t: t, schema: schema, to: client.New(demotest.ServeStore(t, s), client.WithToken(demo.AdminToken))}
}

// seen is an object after a mutation.
type seen struct {
	mutation, field, query string
	sent                   any
}

// check reads the object again.
func (s seen) check(w *writer) {
	if answer := w.must(s.query, nil); !shows(answer["node"], s.sent) {
		w.t.Errorf("%s: input.%s is %v, a query has %v", s.mutation, s.field, s.sent, answer["node"])
	}
}

// object is a JSON object.
type object = map[string]any

// checkMutations checks every mutation that writes fields.
func (w *writer) checkMutations() {
	for _, mutation := range w.schema.Mutation.Fields {
		input := mutation.Arguments.ForName("input")
		if input == nil || slices.ContainsFunc(notWriters, func(prefix string) bool {
			return strings.HasPrefix(mutation.Name, prefix)
		}) {
			continue
		}
		if len(bases[input.Type.Name()]) == 0 {
			w.t.Errorf("%s: bases lacks a %s", mutation.Name, input.Type.Name())
			continue
		}
		w.checkMutation(mutation, w.schema.Types[input.Type.Name()])
	}
}

// checkMutation checks each field of the input of a mutation.
func (w *writer) checkMutation(mutation *ast.FieldDefinition, input *ast.Definition) {
	for _, fields := range w.pathsOf(input, nil) {
		base := bases[input.Name][0]
		if isIdentity(mutation.Name, fields, base) {
			continue
		}
		noun, path := w.nounOf(w.schema.Types[mutation.Type.Name()], fields[0].Name)
		shown, found := w.shown(noun, fields, len(path) == 2)
		if !found {
			w.t.Errorf("%s: no field of %s shows input.%s", mutation.Name, noun.Name, dotted(fields))
			continue
		}
		w.checkField(attempt{w, mutation, input, fields, path, shown, noun})
	}
}

// copied returns a copy of JSON.
func copied(of any) (made any) {
	if err := json.Unmarshal(must(json.Marshal(of)), &made); err != nil {
		panic(err)
	}
	return made
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// encoded returns an input as JSON.
func encoded(t *testing.T, input any) object {
	t.Helper()
	sent := object{}
	if err := json.Unmarshal(must(json.Marshal(input)), &sent); err != nil {
		t.Fatal(err)
	}
	return sent
}

// fieldNamed returns the field of a struct with this JSON name.
func fieldNamed(of reflect.Type, name string) (reflect.StructField, bool) {
	for i := range of.NumField() {
		if tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); tag == name {
			return of.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

func schemaOf(t *testing.T) *ast.Schema {
	t.Helper()
	text, err := os.ReadFile("../schema/merged/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
