package client_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestOptionalFieldsOfInputs sends every optional field of every input absent, as
// null and with a value, and reads what encoding/json makes of it.
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

// checkStates sends a field of an input absent, null and with a value.
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

// TestEveryFieldArrives sets each field of each input that writes through the
// client, on both databases, and looks for the value in the payload and in what is
// read afterwards. A field of an update stays where it is absent. Null clears it or
// is refused, where its description says so. Fields come from the schema: a field
// that a create, a bulk create, an update or a read loses fails here.
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
	made      int // of things that were set up
	shownLast []seen
}

// newWriter serves a database, which has the demo cloud if it was empty.
func newWriter(t *testing.T, schema *ast.Schema, url string) *writer {
	t.Helper()
	s := demotest.Open(t, url)
	return &writer{t: t, schema: schema, to: client.New(demotest.ServeStore(t, s), client.WithToken(demo.AdminToken))}
}

// seen is a thing as a mutation left it.
type seen struct {
	mutation, field, query string
	sent                   any
}

// check reads the thing again.
func (s seen) check(w *writer) {
	if answer := w.must(s.query, nil); !shows(answer["node"], s.sent) {
		w.t.Errorf("%s: input.%s is %v, a query has %v", s.mutation, s.field, s.sent, answer["node"])
	}
}

// object is JSON.
type object = map[string]any

// checkMutations checks every mutation that writes fields.
func (w *writer) checkMutations() {
	for _, mutation := range w.schema.Mutation.Fields {
		input := mutation.Arguments.ForName("input")
		if input == nil || slices.ContainsFunc(notWriters, func(prefix string) bool { return strings.HasPrefix(mutation.Name, prefix) }) {
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

// isIdentity reports whether a field says which thing is changed or under which
// condition, so that nothing shows it.
func isIdentity(mutation string, fields []*ast.FieldDefinition, base object) bool {
	name := fields[len(fields)-1].Name
	if slices.Contains(conditions, name) {
		return true
	}
	_, names := base[name]
	if len(fields) == 1 && strings.HasPrefix(mutation, "update") && slices.Contains(identities, name) {
		return true
	}
	return len(fields) == 1 && names && !strings.HasPrefix(mutation, "create")
}

// pathsOf returns the paths to the fields of an input that hold values.
func (w *writer) pathsOf(input *ast.Definition, below []*ast.FieldDefinition) [][]*ast.FieldDefinition {
	var paths [][]*ast.FieldDefinition
	for _, field := range input.Fields {
		path := append(slices.Clone(below), field)
		if of := w.schema.Types[field.Type.Name()]; of.Kind == ast.InputObject {
			paths = append(paths, w.pathsOf(of, path)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// nounOf returns the type of what a payload shows of a field of the input, and the
// fields that lead there.
func (w *writer) nounOf(payload *ast.Definition, field string) (*ast.Definition, []string) {
	results := payload.Fields.ForName("results")
	if results != nil {
		noun, path := w.nounOf(w.schema.Types[results.Type.Name()], field)
		return noun, append([]string{"results"}, path...)
	}
	first := payload.Fields[0]
	if of := payload.Fields.ForName(field); of != nil && of.Type.Elem != nil {
		first = of
	}
	return w.schema.Types[first.Type.Name()], []string{first.Name}
}

// shown returns the selection below a noun that shows a field of an input.
func (w *writer) shown(noun *ast.Definition, fields []*ast.FieldDefinition, isBulk bool) (string, bool) {
	if isBulk && fields[0].Name == "items" || noun.Name == fields[0].Type.Name() || shownByItself[fields[0].Type.Name()] == noun.Name {
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return w.leaves(noun), true
	}
	if slices.Contains(flat, fields[0].Name) && len(fields) > 1 {
		return w.shown(noun, fields[1:], false)
	}
	if below, ok := shownBelow[fields[0].Name]; ok && len(fields) == 1 {
		return below, true
	}
	for _, name := range namesOf(fields[0].Name) {
		of := noun.Fields.ForName(name)
		if of == nil || slices.ContainsFunc(of.Arguments, func(a *ast.ArgumentDefinition) bool { return a.Type.NonNull }) {
			continue
		}
		typ := w.schema.Types[of.Type.Name()]
		if typ.Kind != ast.Object {
			if len(fields) == 1 {
				return name, true
			}
			continue
		}
		below, found := w.leaves(typ), true
		if len(fields) > 1 {
			below, found = w.shown(typ, fields[1:], false)
		}
		if found {
			return name + " { " + below + " }", true
		}
	}
	return "", false
}

// leaves returns the fields of a type that hold a value.
func (w *writer) leaves(of *ast.Definition) string {
	var names []string
	for _, field := range of.Fields {
		if kind := w.schema.Types[field.Type.Name()].Kind; (kind == ast.Scalar || kind == ast.Enum) && len(field.Arguments) == 0 && !strings.HasPrefix(field.Name, "__") {
			names = append(names, field.Name)
		}
	}
	return strings.Join(names, " ")
}

// namesOf returns what a field of an input may be called where it is shown.
func namesOf(field string) []string {
	names := []string{field}
	if rest, ok := strings.CutPrefix(field, "new"); ok {
		names = append(names, strings.ToLower(rest[:1])+rest[1:])
	}
	return append(names, renames[field]...)
}

func dotted(fields []*ast.FieldDefinition) string {
	var names []string
	for _, field := range fields {
		names = append(names, field.Name)
	}
	return strings.Join(names, ".")
}

// attempt sets one field by one mutation.
type attempt struct {
	*writer
	mutation *ast.FieldDefinition
	input    *ast.Definition
	fields   []*ast.FieldDefinition
	path     []string // to the noun in the payload
	shown    string
	noun     *ast.Definition
}

// checkField sets a field to one value after the other until the server takes one.
func (w *writer) checkField(a attempt) {
	var refused []string
	for _, base := range w.basesOf(a.input, a.fields) {
		for _, value := range w.valuesFor(a.fields[len(a.fields)-1]) {
			base := w.setUp(base)
			input := with(base, a.fields, w.numbered(value))
			got, err := a.send(input)
			if err != nil {
				refused = append(refused, err.Error())
				continue
			}
			sent := valueAt(input, a.fields)
			if !shows(got, sent) {
				w.t.Errorf("%s: input.%s is %v, the payload has %v", a.mutation.Name, dotted(a.fields), sent, got)
			}
			if one, ok := a.seen(got, sent); ok {
				one.check(w)
			}
			a.checkCleared(base, copied(input).(object), sent)
			if strings.HasPrefix(a.mutation.Name, "update") {
				if last := a.fields[len(a.fields)-1]; last.Name == "newName" {
					input["name"] = sent
				}
				if got, err = a.send(input); err != nil {
					w.t.Errorf("%s: input.%s once more: %v", a.mutation.Name, dotted(a.fields), err)
				}
			}
			if one, ok := a.seen(got, sent); ok {
				w.shownLast = append(w.shownLast, one)
			}
			return
		}
	}
	w.t.Errorf("%s: no value for input.%s is accepted: %s", a.mutation.Name, dotted(a.fields), strings.Join(slices.Compact(refused), "\n"))
}

// seen returns how to read what a payload shows. It reports false for a thing without
// an id, and for a list.
func (a attempt) seen(payload, sent any) (seen, bool) {
	id, _ := idOf(payload)
	query := fmt.Sprintf(`query { node(id: %q) { ... on %s { id %s } } }`, id, a.noun.Name, a.shown)
	return seen{a.mutation.Name, dotted(a.fields), query, sent}, slices.Contains(a.noun.Interfaces, "Node") && id != ""
}

// checkCleared leaves the field of an update away and sets it to null.
func (a attempt) checkCleared(base, input object, sent any) {
	last := a.fields[len(a.fields)-1]
	if len(a.fields) > 1 || last.Type.NonNull {
		return
	}
	if !strings.HasPrefix(a.mutation.Name, "update") {
		if _, err := a.send(with(a.setUp(bases[a.input.Name][0]), a.fields, nil)); err != nil {
			a.t.Errorf("%s: null for input.%s: %v", a.mutation.Name, last.Name, err)
		}
		return
	}
	if last.Name == "newName" {
		base["name"] = sent
	}
	delete(input, last.Name)
	for key := range base {
		input[key] = base[key]
	}
	got, err := a.send(input)
	if err != nil || !shows(got, sent) {
		a.t.Errorf("%s without input.%s: %v; the payload has %v, want %v", a.mutation.Name, last.Name, err, got, sent)
	}
	stays := strings.Contains(last.Description, "cannot be")
	got, err = a.send(with(base, a.fields, nil))
	isNeeded := err != nil && strings.Contains(err.Error(), "is required")
	if !isNeeded && stays != (err != nil) || err == nil && shows(got, sent) {
		a.t.Errorf("%s with null for input.%s: %v, want an error: %v; the payload has %v", a.mutation.Name, last.Name, err, stays, got)
	}
}

// send sends an input by its type in the client, and returns the noun of the
// payload.
func (a attempt) send(input object) (any, error) {
	at := slices.IndexFunc(inputs, func(of reflect.Type) bool { return of.Name() == a.input.Name })
	if at < 0 {
		return nil, fmt.Errorf("no operation of the client sends a %s", a.input.Name)
	}
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	made := reflect.New(inputs[at]).Interface()
	if err := json.Unmarshal(text, made); err != nil {
		return nil, err
	}
	id := ""
	if a.noun.Fields.ForName("id") != nil {
		id = "id"
	}
	selection := fmt.Sprintf("{ %s %s }", id, a.shown)
	for _, name := range slices.Backward(a.path) {
		selection = "{ " + name + " " + selection + " " + map[bool]string{true: "errors { field message }"}[len(a.path) == 2 && name == a.path[1]] + " }"
	}
	answer, err := a.ask(fmt.Sprintf("mutation M($input: %s!) { m: %s(input: $input) %s }", a.input.Name, a.mutation.Name, selection), object{"input": made})
	if err != nil {
		return nil, err
	}
	found := answer["m"]
	for _, name := range a.path {
		found = found.(object)[name]
		if list, ok := found.([]any); ok && len(list) == 1 {
			found = list[0]
		}
	}
	return found, nil
}

func (w *writer) ask(document string, variables any) (object, error) {
	data := object{}
	err := w.to.MakeRequest(w.t.Context(), &graphql.Request{Query: document, Variables: variables}, &graphql.Response{Data: &data})
	return data, err
}

func (w *writer) must(document string, variables any) object {
	w.t.Helper()
	answer, err := w.ask(document, variables)
	if err != nil {
		w.t.Fatalf("%s: %v", document, err)
	}
	return answer
}

// basesOf returns inputs to which a field is added: the alternatives for the input
// and for the lists in it.
func (w *writer) basesOf(input *ast.Definition, fields []*ast.FieldDefinition) []object {
	if len(fields) == 1 {
		return bases[input.Name]
	}
	var all []object
	for i, base := range bases[input.Name] {
		for _, member := range w.basesOf(w.schema.Types[fields[0].Type.Name()], fields[1:]) {
			member := copied(member).(object)
			delete(member, "before")
			made := copied(base).(object)
			made[fields[0].Name] = member
			if fields[0].Type.Elem != nil {
				made[fields[0].Name] = []any{member}
				if others, ok := base[fields[0].Name].([]any); ok && i > 0 {
					made[fields[0].Name] = append([]any{member}, others...)
				}
			}
			all = append(all, made)
		}
	}
	return all
}

// setUp returns an input for a thing of its own, which it creates first where the
// base says how.
func (w *writer) setUp(base object) object {
	w.made++
	made := w.numbered(base).(object)
	if before, ok := made["before"].(string); ok {
		delete(made, "before")
		id, _ := idOf(w.must("mutation { "+before+" }", nil))
		if _, ok := made["id"]; ok {
			made["id"] = id
		}
	}
	return made
}

// numbered returns JSON with the number of the last thing in place of each #.
func (w *writer) numbered(of any) (made any) {
	text := strings.ReplaceAll(string(must(json.Marshal(of))), "#", fmt.Sprintf("%04d", w.made))
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		w.t.Fatal(err)
	}
	return made
}

// valuesFor returns values that a field may take.
func (w *writer) valuesFor(field *ast.FieldDefinition) []any {
	var values []any
	switch of := w.schema.Types[field.Type.Name()]; {
	case of.Kind == ast.Enum:
		for _, one := range of.EnumValues {
			values = append(values, one.Name)
		}
	default:
		values = candidates[of.Name]
	}
	if field.Type.Elem == nil {
		return values
	}
	var lists []any
	for _, one := range values {
		lists = append(lists, []any{one})
	}
	return lists
}

// with returns an input with a value at the end of some fields. A value that the
// base has there is tried first, as it is.
func with(input object, fields []*ast.FieldDefinition, value any) object {
	made := copied(input).(object)
	at := made
	for _, field := range fields[:len(fields)-1] {
		switch below := at[field.Name].(type) {
		case []any:
			at = below[0].(object)
		case object:
			at = below
		}
	}
	last := fields[len(fields)-1]
	if _, has := at[last.Name]; !has || !last.Type.NonNull {
		at[last.Name] = value
	}
	return made
}

// valueAt returns what an input has at the end of some fields.
func valueAt(input object, fields []*ast.FieldDefinition) any {
	var at any = input
	for _, field := range fields {
		if list, ok := at.([]any); ok {
			at = list[0]
		}
		at = at.(object)[field.Name]
	}
	return at
}

// shows reports whether an answer has a value somewhere, all of it if it is a list.
func shows(answer, value any) bool {
	if list, ok := value.([]any); ok {
		return !slices.ContainsFunc(list, func(one any) bool { return !shows(answer, one) })
	}
	switch of := answer.(type) {
	case object:
		for key, below := range of {
			if key != "id" && shows(below, value) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(of, func(below any) bool { return shows(below, value) })
	}
	return answer != nil && fmt.Sprint(answer) == fmt.Sprint(value)
}

// idOf returns the first id of an answer.
func idOf(answer any) (string, bool) {
	of, _ := answer.(object)
	if id, ok := of["id"].(string); ok {
		return id, true
	}
	for _, below := range of {
		if id, ok := idOf(below); ok {
			return id, true
		}
	}
	return "", false
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

// encoded returns what an input is sent as.
func encoded(t *testing.T, input any) object {
	t.Helper()
	sent := object{}
	if err := json.Unmarshal(must(json.Marshal(input)), &sent); err != nil {
		t.Fatal(err)
	}
	return sent
}

// fieldNamed returns the field of a struct with a name in JSON.
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
