package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

// The flags and arguments of a command say in their tag `at` which field of the
// operation they are: `at:"input.description"`. That is how they get there, and how
// an error that names the field is told by the flag. The tag `ref` names what a
// value refers to, so that a name or the beginning of a uuid can stand for the
// uuid.

// change sends an operation with the input that the flags of a command say.
func change[I, A any](run *session, command any, send func(context.Context, graphql.Client, *I) (A, error)) (answer A, err error) {
	input, err := argument[I](run, command, "input")
	if err != nil {
		return answer, err
	}
	return send(run.ctx, run.api, input)
}

// argument returns an argument of an operation as the flags of a command say; nil
// where none says anything.
func argument[I any](run *session, command any, at string) (*I, error) {
	argument := new(I)
	filled, err := argumentInto(run, command, at, argument)
	if err != nil || !filled {
		return nil, err
	}
	return argument, nil
}

// argumentInto changes an argument of an operation as the flags of a command say,
// and reports whether any does.
func argumentInto[I any](run *session, command any, at string, argument *I) (bool, error) {
	if err := run.resolve(command); err != nil {
		return false, err
	}
	return fill(reflect.ValueOf(argument).Elem(), command, at+".")
}

// fill sets the fields of an argument whose paths begin with a text, and reports
// whether any was set.
func fill(into reflect.Value, command any, prefix string) (filled bool, err error) {
	err = eachField(reflect.ValueOf(command).Elem(), func(field reflect.StructField, value reflect.Value) error {
		name, ok := strings.CutPrefix(field.Tag.Get("at"), prefix)
		if !ok || strings.Contains(name, ".") || isAbsent(value) {
			return nil
		}
		filled = true
		target := member(into, name)
		if !target.IsValid() {
			return fmt.Errorf("cli: %s has no field %s", into.Type(), name)
		}
		var err error
		if isOptional(target.Type()) {
			err = setOptional(target, value, isCleared(into.Type(), value))
		} else {
			err = set(target, value)
		}
		if err != nil {
			return usagef("--%s: %w", flagName(field), err)
		}
		return nil
	})
	return filled, err
}

// eachField visits the fields of a command, those of embedded structs included.
func eachField(command reflect.Value, visit func(reflect.StructField, reflect.Value) error) error {
	for i := range command.NumField() {
		field := command.Type().Field(i)
		if field.Anonymous {
			if err := eachField(command.Field(i), visit); err != nil {
				return err
			}
			continue
		}
		if err := visit(field, command.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// flagName returns the name of a flag, as kong makes it.
func flagName(field reflect.StructField) string {
	if name, ok := field.Tag.Lookup("name"); ok {
		return name
	}
	var name strings.Builder
	for i, r := range field.Name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			name.WriteByte('-')
		}
		name.WriteRune(r)
	}
	return strings.ToLower(name.String())
}

// isAbsent reports whether a flag was not given: false is not, either.
func isAbsent(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Slice:
		return value.IsNil()
	case reflect.Bool:
		return !value.Bool()
	}
	return false
}

// member returns the field of a struct that has a name in JSON.
func member(of reflect.Value, name string) reflect.Value {
	for i := range of.NumField() {
		tag, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return of.Field(i)
		}
	}
	return reflect.Value{}
}

// set sets a field of an input to the value of a flag.
func set(target, value reflect.Value) error {
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if isOptional(target.Type()) {
		return setOptional(target, value, false)
	}
	if texts, ok := value.Interface().([]string); ok {
		return setList(target, texts)
	}
	if target.Kind() == reflect.Pointer {
		pointed := reflect.New(target.Type().Elem())
		if err := set(pointed.Elem(), value); err != nil {
			return err
		}
		target.Set(pointed)
		return nil
	}
	if value.Kind() == reflect.String {
		return setText(target, value.String())
	}
	if !value.CanConvert(target.Type()) {
		return fmt.Errorf("cli: %s is no %s", value.Type(), target.Type())
	}
	target.Set(value.Convert(target.Type()))
	return nil
}

// isOptional reports whether a field can be absent, null or a value.
func isOptional(field reflect.Type) bool {
	return field.PkgPath() == reflect.TypeFor[optional.Of[string]]().PkgPath()
}

// isCleared reports whether a flag clears a field of an update: the empty string,
// or a list of it.
func isCleared(into reflect.Type, value reflect.Value) bool {
	value = reflect.Indirect(value)
	if texts, ok := value.Interface().([]string); ok {
		return strings.HasPrefix(into.Name(), "Update") && slices.Equal(texts, []string{""})
	}
	return strings.HasPrefix(into.Name(), "Update") && value.Kind() == reflect.String && value.Len() == 0
}

// setOptional sets an optional field to a value, or to null.
func setOptional(target, value reflect.Value, isNull bool) error {
	of := reflect.New(target.Type().Elem()).Elem()
	if !isNull {
		if err := set(of, value); err != nil {
			return err
		}
	}
	made := reflect.MakeMap(target.Type())
	made.SetMapIndex(reflect.ValueOf(!isNull), of)
	target.Set(made)
	return nil
}

// setText sets a field to what a text says.
func setText(target reflect.Value, text string) (err error) {
	switch of := target.Addr().Interface().(type) {
	case *string:
		*of = text
	case *int:
		*of, err = strconv.Atoi(text)
	case *float64:
		*of, err = strconv.ParseFloat(text, 64)
	case *bool:
		*of, err = strconv.ParseBool(text)
	case *time.Time:
		*of, err = moment(text, time.Now())
	case *json.RawMessage:
		*of = jsonOf(text)
	default:
		if target.Kind() == reflect.String { // an enum
			target.SetString(constant(text))
			return nil
		}
		return decode(target.Addr().Interface(), text)
	}
	if err != nil {
		return fmt.Errorf("%q is not a valid value: %w", text, err)
	}
	return nil
}

// constant returns the member of an enum that a text says: prefer-new is
// PREFER_NEW.
func constant(text string) string {
	return strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
}

// jsonOf returns a text as JSON: as it is where it is JSON, else as a text.
func jsonOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil { // no text fails
		return nil
	}
	return quoted
}

// moment returns a time that is written as in RFC 3339, as a date, or as how long
// ago it was.
func moment(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("write a time as 2026-01-31T12:00:00Z, 2026-01-31, or 2h for two hours ago")
	}
	return at, nil
}

// decode reads an input that is written as JSON or YAML.
func decode(into any, text string) error {
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return fmt.Errorf("%q is neither JSON nor YAML", text)
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%q: %s", text, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// setList sets a list to what texts say, one for each member.
func setList(target reflect.Value, texts []string) error {
	if target.Type() == reflect.TypeFor[[]*client.KeyValueInput]() {
		items, err := keyValues(texts)
		if err != nil {
			return err
		}
		target.Set(reflect.ValueOf(items))
		return nil
	}
	members := reflect.MakeSlice(target.Type(), len(texts), len(texts))
	for i, text := range texts {
		if err := setMember(members.Index(i), text); err != nil {
			return err
		}
	}
	target.Set(members)
	return nil
}

// setMember sets a member of a list to what a text says: of inputs that have a
// name and little else, the name is enough.
func setMember(target reflect.Value, text string) error {
	switch target.Interface().(type) {
	case *client.TagFilter:
		name, below := strings.CutSuffix(text, "/")
		target.Set(reflect.ValueOf(&client.TagFilter{Name: name, IncludeDescendants: optional.Value(below)}))
		return nil
	case *client.RequirementInput:
		key, requirement, err := pairOf(text, "KEY=REQUIREMENT")
		target.Set(reflect.ValueOf(&client.RequirementInput{Key: key, Requirement: requirement}))
		return err
	case *client.EnumLabelInput:
		value, label, err := pairOf(text, "VALUE=LABEL")
		target.Set(reflect.ValueOf(&client.EnumLabelInput{Value: value, Label: label}))
		return err
	case *client.ResourceAmountInput:
		amount, err := amountOf(text)
		if err != nil {
			return err
		}
		target.Set(reflect.ValueOf(amount))
		return nil
	}
	return set(target, reflect.ValueOf(text))
}

// pairOf returns the two sides of a text with a =, which is of a form.
func pairOf(text, form string) (left, right string, err error) {
	left, right, ok := strings.Cut(text, "=")
	if !ok {
		return "", "", fmt.Errorf("%q is not of the form %s", text, form)
	}
	return left, right, nil
}

// amountOf returns an amount that is written as CLASS=AMOUNT, or CLASS:AMOUNT.
func amountOf(text string) (*client.ResourceAmountInput, error) {
	class, written, ok := strings.Cut(text, "=")
	if !ok {
		class, written, ok = strings.Cut(text, ":")
	}
	amount, err := strconv.Atoi(written)
	if !ok || err != nil {
		return nil, fmt.Errorf("%q is not of the form CLASS=AMOUNT, such as VCPU=2", text)
	}
	return &client.ResourceAmountInput{ResourceClass: class, Amount: amount}, nil
}

// keyValues returns the items that are written as KEY=VALUE.
func keyValues(arguments []string) ([]*client.KeyValueInput, error) {
	items := []*client.KeyValueInput{}
	for _, argument := range arguments {
		key, value, ok := strings.Cut(argument, "=")
		if !ok {
			return nil, usagef("%q is not of the form KEY=VALUE", argument)
		}
		if key == "" {
			return nil, usagef("%q has no key: write it as KEY=VALUE", argument)
		}
		items = append(items, &client.KeyValueInput{Key: key, Value: value})
	}
	return items, nil
}

// sorting is the flag of lists that have several orders.
type sorting struct {
	Sort string `placeholder:"FIELD[:desc]" help:"Order of the rows, such as name or created-at:desc."`
}

// orderOf returns the order that --sort says; nil for that of the server.
func orderOf[O any](s sorting) (*O, error) {
	if s.Sort == "" {
		return nil, nil
	}
	field, direction, _ := strings.Cut(s.Sort, ":")
	if direction != "" && direction != "asc" && direction != "desc" {
		return nil, usagef("--sort: the order %q is unknown; write FIELD:asc or FIELD:desc", direction)
	}
	order := new(O)
	of := reflect.ValueOf(order).Elem()
	member(of, "field").SetString(constant(field))
	if direction == "" {
		direction = "asc"
	}
	return order, set(member(of, "direction"), reflect.ValueOf(direction))
}

// paging is the flag of every list.
type paging struct {
	Limit int `placeholder:"N" help:"At most so many rows; 0, the default, is all."`
}

// maxPage is how many rows a request asks for.
const maxPage = 200

// first returns how many rows a request asks for.
func (p paging) first() *int {
	first := maxPage
	if p.Limit > 0 {
		first = min(first, p.Limit)
	}
	return &first
}
