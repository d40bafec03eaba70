package client_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// attempt sets one field with one mutation.
type attempt struct {
	*writer
	mutation *ast.FieldDefinition
	input    *ast.Definition
	fields   []*ast.FieldDefinition
	path     []string // to the noun in the payload
	shown    string
	noun     *ast.Definition
}

// checkField tries one value after the other for a field until the server
// accepts one.
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
	w.t.Errorf("%s: no value for input.%s is accepted: %s", a.mutation.Name, dotted(a.fields),
		strings.Join(slices.Compact(refused), "\n"))
}

// seen returns the query that reads the noun again. It returns false for an
// object without an id, and for a list.
func (a attempt) seen(payload, sent any) (seen, bool) {
	id, _ := idOf(payload)
	query := fmt.Sprintf(`query { node(id: %q) { ... on %s { id %s } } }`, id, a.noun.Name, a.shown)
	return seen{a.mutation.Name, dotted(a.fields), query, sent}, slices.Contains(a.noun.Interfaces, "Node") && id != ""
}

// checkCleared omits the field of an update, and then sets it to null.
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
		a.t.Errorf("%s with null for input.%s: %v, want an error: %v; the payload has %v",
			a.mutation.Name, last.Name, err, stays, got)
	}
}

// send sends an input with its type of the client, and returns the noun of the
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
		selection = "{ " + name + " " + selection + " " +
			map[bool]string{true: "errors { field message }"}[len(a.path) == 2 && name == a.path[1]] + " }"
	}
	answer, err := a.ask(fmt.Sprintf("mutation M($input: %s!) { m: %s(input: $input) %s }", a.input.Name,
		a.mutation.Name, selection), object{"input": made})
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
	err := w.to.MakeRequest(w.t.Context(), &graphql.Request{Query: document, Variables: variables},
		&graphql.Response{Data: &data})
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

// basesOf returns inputs to which the test can add a field: the alternatives
// for the input and for its lists.
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

// setUp replaces # in a base by a new number, and creates the object to change
// if the base has a mutation for it.
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

// numbered returns JSON with each # replaced by the number of the latest
// object.
func (w *writer) numbered(of any) (made any) {
	text := strings.ReplaceAll(string(must(json.Marshal(of))), "#", fmt.Sprintf("%04d", w.made))
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		w.t.Fatal(err)
	}
	return made
}

// valuesFor returns possible values of a field.
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

// with returns an input with a value at the end of a path of fields. A required
// field that the input has keeps its value.
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

// valueAt returns the value at the end of a path.
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

// shows reports whether an answer contains a value anywhere, or all members of
// a list.
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
