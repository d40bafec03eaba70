package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// valueOf parses a value of a type of the schema.
func valueOf(name, text string) (value any, err error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%q is not valid UTF-8", text)
	}
	switch name {
	case "String", "ID", "UUID":
		return text, nil
	case "Int", "Int64":
		if value, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("must be an integer, is %q", text)
		}
		return value, nil
	case "Float":
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, fmt.Errorf("must be a number, is %q", text)
		}
		return number, nil
	case "Boolean":
		return strconv.ParseBool(text) // the grammar has checked it
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
}

// shortForms parse inputs that have a short form on the command line.
var shortForms = map[string]func(text string) (any, error){
	"KeyValueInput":       keyValue,
	"ResourceAmountInput": func(text string) (any, error) { return amountOf(text, "amount") },
	"InventoryInput":      func(text string) (any, error) { return amountOf(text, "total") },
	"AggregateFilter":     func(text string) (any, error) { return aggregatesOf(text), nil },
	"TagInput":            func(text string) (any, error) { return map[string]any{"name": text}, nil },
	"RequirementInput":    func(text string) (any, error) { return pairOf(text, "key", "requirement") },
	"EnumLabelInput":      func(text string) (any, error) { return pairOf(text, "value", "label") },
	"SubtreeInput": func(text string) (any, error) {
		return map[string]any{"suffixes": strings.Split(text, ",")}, nil
	},
	"TagFilter": func(text string) (any, error) {
		tag, below := strings.CutSuffix(text, "/")
		return map[string]any{"name": tag, "includeDescendants": below}, nil
	},
}

// inputOf parses an input from JSON or YAML. Fields that the schema lacks are
// an error.
func inputOf(definition *ast.Definition, text string) (any, error) {
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	value, wrong := decoded(asJSON)
	if err != nil || wrong != nil {
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
				known := lists.Map(definition.Fields, func(field *ast.FieldDefinition) string { return field.Name })
				return fmt.Errorf("unknown field %q; the fields are %s", name, strings.Join(known, ", "))
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

// constant returns the member of an enum: prefer-new is PREFER_NEW.
func constant(text string) string {
	return strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
}

// jsonOf returns valid JSON unchanged, and anything else as a JSON string.
func jsonOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string never fails
	return quoted
}

// moment parses a time: as in RFC 3339, a date, or a duration before now.
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

// pairOf parses LEFT=RIGHT into an input with these two fields.
func pairOf(text, left, right string) (any, error) {
	before, after, ok := strings.Cut(text, "=")
	if !ok {
		return nil, fmt.Errorf("%q is not of the form %s=%s", text, strings.ToUpper(left), strings.ToUpper(right))
	}
	return map[string]any{left: before, right: after}, nil
}

// amountOf parses CLASS=AMOUNT or CLASS:AMOUNT into an input with the amount in
// this member.
func amountOf(text, member string) (map[string]any, error) {
	i := strings.IndexAny(text, "=:")
	amount, err := strconv.Atoi(text[i+1:])
	if i < 0 || err != nil {
		return nil, fmt.Errorf("%q is not of the form CLASS=AMOUNT, such as VCPU=2", text)
	}
	return map[string]any{"resourceClass": text[:i], member: amount}, nil
}

// keyValue parses KEY=VALUE into an item.
func keyValue(text string) (any, error) {
	if strings.HasPrefix(text, "=") {
		return nil, fmt.Errorf("%q has no key: write it as KEY=VALUE", text)
	}
	return pairOf(text, "key", "value")
}

// setTraits parses A,B for all, in:A,B for any and !A for none into the lists
// of traits at a path.
func setTraits(variables map[string]any, prefix string, written []string) {
	sets := map[string][]any{}
	for _, text := range written {
		if names, ok := strings.CutPrefix(text, "in:"); ok {
			set := map[string]any{"anyOf": strings.Split(names, ",")}
			sets["requiredAnySets"] = append(sets["requiredAnySets"], set)
			continue
		}
		for _, name := range strings.Split(text, ",") {
			if forbidden, ok := strings.CutPrefix(name, "!"); ok {
				sets["forbidden"] = append(sets["forbidden"], forbidden)
			} else {
				sets["requiredAll"] = append(sets["requiredAll"], name)
			}
		}
	}
	for field, list := range sets {
		assign(variables, prefix+field, list)
	}
}

// tellTraits notes that --required set the lists of traits at a path.
func (c *call) tellTraits(prefix string, written []string) {
	for _, field := range []string{"requiredAll", "requiredAnySets", "forbidden"} {
		c.told[prefix+field] = "--required " + strings.Join(written, " --required ")
	}
}

// aggregatesOf parses A,B or in:A,B for any of the aggregates, and !A or
// !in:A,B for none.
func aggregatesOf(text string) any {
	names, isNone := strings.CutPrefix(text, "!")
	list := strings.Split(strings.TrimPrefix(names, "in:"), ",")
	if isNone {
		return map[string]any{"noneOf": list}
	}
	return map[string]any{"anyOf": list}
}
