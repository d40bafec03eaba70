package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

// valueOf returns the value of a type of the schema that a text says.
func valueOf(name, text string) (value any, err error) {
	switch name {
	case "String", "ID", "UUID":
		return text, nil
	case "Int", "Int64":
		value, err = strconv.ParseInt(text, 10, 64)
	case "Float":
		value, err = strconv.ParseFloat(text, 64)
	case "Boolean":
		value, err = strconv.ParseBool(text)
	case "DateTime":
		return moment(text, time.Now())
	case "JSON":
		return jsonOf(text), nil
	default:
		if of, ok := shortForms[name]; ok {
			return of(text)
		}
		definition := definitionOf(name)
		if definition.Kind == ast.Enum {
			return constant(text), nil
		}
		return inputOf(definition, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not a valid value: %w", text, err)
	}
	return value, nil
}

// shortForms read inputs that have a form of their own on the command line.
var shortForms = map[string]func(text string) (any, error){
	"KeyValueInput":       func(text string) (any, error) { return keyValue(text) },
	"ResourceAmountInput": func(text string) (any, error) { return amountOf(text) },
	"AggregateFilter":     func(text string) (any, error) { return aggregatesOf([]string{text})[0], nil },
	"TagInput":            func(text string) (any, error) { return map[string]any{"name": text}, nil },
	"RequirementInput":    func(text string) (any, error) { return pairOf(text, "key", "requirement") },
	"EnumLabelInput":      func(text string) (any, error) { return pairOf(text, "value", "label") },
	"TagFilter": func(text string) (any, error) {
		tag, below := strings.CutSuffix(text, "/")
		return map[string]any{"name": tag, "includeDescendants": below}, nil
	},
	"InventoryInput": func(text string) (any, error) {
		of, err := amountOf(text)
		if err != nil {
			return nil, err
		}
		return map[string]any{"resourceClass": of.ResourceClass, "total": of.Amount}, nil
	},
}

// inputOf returns an input that is written as JSON or YAML, whose fields the
// schema has.
func inputOf(definition *ast.Definition, text string) (any, error) {
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%q is neither JSON nor YAML", text)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("%q is neither JSON nor YAML", text)
	}
	if err := knownFields(definition, value); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return value, nil
}

// knownFields returns an error for a field of a value that an input does not have.
func knownFields(definition *ast.Definition, value any) error {
	if definition == nil || definition.Kind != ast.InputObject {
		return nil
	}
	switch of := value.(type) {
	case map[string]any:
		for name, member := range of {
			field := definition.Fields.ForName(name)
			if field == nil {
				known := make([]string, len(definition.Fields))
				for i, field := range definition.Fields {
					known[i] = field.Name
				}
				return fmt.Errorf("unknown field %q; there are %s", name, strings.Join(known, ", "))
			}
			if err := knownFields(definitionOf(field.Type.Name()), member); err != nil {
				return err
			}
		}
	case []any:
		for _, member := range of {
			if err := knownFields(definition, member); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("write an object: {%s: ...}", definition.Fields[0].Name)
	}
	return nil
}

// eachField visits the fields of a command, those of embedded structs included.
func eachField(command reflect.Value, visit func(reflect.StructField, reflect.Value) error) error {
	for i := range command.NumField() {
		field := command.Type().Field(i)
		_, isEmbedded := field.Tag.Lookup("embed")
		if field.Anonymous || isEmbedded {
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

// labelOf returns a flag or an argument as it is written on a command line.
func labelOf(field reflect.StructField) string {
	name := field.Tag.Get("name")
	if name == "" {
		name = kebab(field.Name)
	}
	if _, ok := field.Tag.Lookup("arg"); ok {
		return "<" + name + ">"
	}
	return "--" + name
}

// isAbsent reports whether a flag was not given.
func isAbsent(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Slice:
		return value.IsNil()
	}
	return false
}

// into reads a value of an answer as a type of the client.
func into(target, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, target)
}

// constant returns the member of an enum that a text says: prefer-new is
// PREFER_NEW.
func constant(text string) string {
	return strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
}

// jsonOf returns a text as JSON: as it is where it is JSON, else as a string.
func jsonOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil { // no string fails
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
		return at, fmt.Errorf("%q: write a time as 2026-01-31T12:00:00Z, 2026-01-31, or 2h for two hours ago", text)
	}
	return at, nil
}

// pairOf returns an input with the two sides of a text with a =.
func pairOf(text, left, right string) (any, error) {
	before, after, ok := strings.Cut(text, "=")
	if !ok {
		return nil, fmt.Errorf("%q is not of the form %s=%s", text, strings.ToUpper(left), strings.ToUpper(right))
	}
	return map[string]any{left: before, right: after}, nil
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

// keyValue returns the item that is written as KEY=VALUE.
func keyValue(text string) (*client.KeyValueInput, error) {
	key, value, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is not of the form KEY=VALUE", text)
	case key == "":
		return nil, fmt.Errorf("%q has no key: write it as KEY=VALUE", text)
	}
	return &client.KeyValueInput{Key: key, Value: value}, nil
}

// traits are required and forbidden traits.
type traits struct {
	all, forbidden []string
	anySets        []*client.TraitSetInput
}

// traitsOf returns the traits that are written as A,B for all, in:A,B for any, and
// !A for none.
func traitsOf(written []string) (of traits) {
	for _, text := range written {
		if names, ok := strings.CutPrefix(text, "in:"); ok {
			of.anySets = append(of.anySets, &client.TraitSetInput{AnyOf: strings.Split(names, ",")})
			continue
		}
		for _, name := range strings.Split(text, ",") {
			if forbidden, ok := strings.CutPrefix(name, "!"); ok {
				of.forbidden = append(of.forbidden, forbidden)
			} else {
				of.all = append(of.all, name)
			}
		}
	}
	return of
}

// aggregatesOf returns filters that are written as A,B or in:A,B for any of them,
// and !A or !in:A,B for none of them.
func aggregatesOf(written []string) (of []*client.AggregateFilter) {
	for _, text := range written {
		names, none := strings.CutPrefix(text, "!")
		names = strings.TrimPrefix(names, "in:")
		if filter := (&client.AggregateFilter{}); none {
			filter.NoneOf = optional.List(strings.Split(names, ","))
			of = append(of, filter)
		} else {
			filter.AnyOf = optional.List(strings.Split(names, ","))
			of = append(of, filter)
		}
	}
	return of
}

// sorting is the flag of lists that have several orders.
type sorting struct {
	Sort string `placeholder:"FIELD[:desc]" help:"Order of the rows, such as name or created-at:desc."`
}

// into sets the order that --sort says.
func (s sorting) into(variables map[string]any) error {
	field, direction, _ := strings.Cut(s.Sort, ":")
	if !slices.Contains([]string{"", "asc", "desc"}, direction) {
		return usagef("--sort: the order %q is unknown; write FIELD:asc or FIELD:desc", direction)
	}
	assign(variables, "orderBy.field", constant(field))
	assign(variables, "orderBy.direction", "ASC")
	if direction == "desc" {
		assign(variables, "orderBy.direction", "DESC")
	}
	return nil
}

// paging is the flag of every list.
type paging struct {
	Limit int `placeholder:"N" help:"Maximum number of rows (default 0, no limit)."`
}

// maxPage is how many rows a request asks for.
const maxPage = 200

// firstOf returns how many rows a request for a limited number asks for.
func firstOf(most int) int {
	if most > 0 {
		return min(maxPage, most)
	}
	return maxPage
}
