package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// The kinds of arguments.
const (
	kindString  = "string"  // of at most max characters
	kindInteger = "integer" // from min to max
	kindEnum    = "enum"    // one of values
	kindStrings = "strings" // at most max strings
	kindAmounts = "amounts" // of resource classes: {"VCPU": 4}, at most max
	kindPairs   = "pairs"   // of keys and values: {"os_distro": "debian"}, at most max
	kindNeeds   = "needs"   // of capabilities and requirements: {"arch": "x86_64"}, at most max
	kindTags    = "tags"    // at most max tags
	kindClaims  = "claims"  // of amounts by the uuids of providers, at most max
)

// maxString is the maximum number of characters of a member of a list or a map.
const maxString = 1024

// Argument is an argument of a tool. It sets the variable of its name, except for
// claims with also; see setClaims.
type Argument struct {
	Name, Help string
	Required   bool

	kind     string
	min, max int
	values   []string
	fallback any    // nil for none
	also     string // a second variable, which gets a list with the value, or the uuids of claims
	inside   string // the field of the variable that gets the value; empty for the variable itself
}

// parseArgument parses the line of an argument: `name kind option... | help`.
// The options, at least one, are `required`, bounds such as `5` or `1..5`,
// `default=`, `one=`, `also=` and `inside=`.
func parseArgument(line string) (a Argument, err error) {
	head, help, _ := strings.Cut(line, " | ")
	words := strings.Fields(head)
	if len(words) < 3 {
		return a, fmt.Errorf("the argument %q has no bounds", line)
	}
	a = Argument{Name: words[0], kind: words[1], Help: help}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case word == "required":
			a.Required = true
		case key == "also":
			a.also = value
		case key == "inside":
			a.inside = value
		case key == "default" && a.kind == kindInteger:
			a.fallback = json.Number(value)
		case key == "default":
			a.fallback = value
		case key == "one":
			a.values = strings.Split(value, ",")
		default:
			if _, err = fmt.Sscanf(word, "%d..%d", &a.min, &a.max); err != nil {
				a.min = 0
				a.max, err = strconv.Atoi(word)
			}
			if err != nil {
				return a, fmt.Errorf("the argument %s has the invalid bound %q", a.Name, word)
			}
		}
	}
	return a, nil
}

// schemaOf returns the JSON Schema of the arguments.
func (t *Tool) schemaOf() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, a := range t.Arguments {
		properties[a.Name] = a.schema()
		if a.Required {
			required = append(required, a.Name)
		}
	}
	return map[string]any{"type": "object", "properties": properties,
		"required": required, "additionalProperties": false}
}

// schema returns the JSON Schema of the argument.
func (a Argument) schema() map[string]any {
	text := map[string]any{"type": "string", "maxLength": maxString}
	amount := map[string]any{"type": "integer", "minimum": 1, "maximum": maxAmount}
	object := func(of map[string]any) map[string]any {
		return map[string]any{"type": "object", "maxProperties": a.max, "additionalProperties": of}
	}
	var schema map[string]any
	switch a.kind {
	case kindInteger:
		schema = map[string]any{"type": "integer", "minimum": a.min, "maximum": a.max}
	case kindEnum:
		schema = map[string]any{"type": "string", "enum": a.values}
	case kindStrings, kindTags:
		schema = map[string]any{"type": "array", "maxItems": a.max, "items": text}
	case kindAmounts:
		schema = object(amount)
	case kindPairs, kindNeeds:
		schema = object(text)
	case kindClaims:
		schema = object(map[string]any{"type": "object", "maxProperties": maxClasses, "additionalProperties": amount})
	default:
		schema = map[string]any{"type": "string", "maxLength": a.max}
	}
	schema["description"] = a.Help
	if a.fallback != nil {
		schema["default"] = a.fallback
	}
	return schema
}

// membersOf returns the members of a JSON object, none for an absent one or
// null. ok is false for other JSON, and for an object with duplicate members.
func membersOf(text json.RawMessage) (members map[string]any, ok bool) {
	if text = bytes.TrimSpace(text); len(text) == 0 || string(text) == "null" {
		return map[string]any{}, true
	}
	members = decoded(text)
	return members, members != nil && jsontext.Value(text).IsValid()
}

// read returns the arguments of a call with their defaults, and the variables of
// the document, or the problems of the arguments.
func (t *Tool) read(arguments json.RawMessage) (given, variables map[string]any, problems []Problem) {
	given, ok := membersOf(arguments)
	if !ok {
		return nil, nil, []Problem{{Message: "the arguments are not a JSON object in UTF-8 with distinct members"}}
	}
	variables = map[string]any{}
	wrong := func(name, message string) { problems = append(problems, Problem{Field: name, Message: message}) }
	names := lists.Map(t.Arguments, func(a Argument) string { return a.Name })
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			wrong(clip(name, 100), "unknown argument; the arguments are "+strings.Join(names, ", "))
		}
	}
	for _, a := range t.Arguments {
		value, ok := given[a.Name]
		if !ok || value == nil {
			delete(given, a.Name)
			if value = a.fallback; value == nil {
				if a.Required {
					wrong(a.Name, "is required: "+a.Help)
				}
				continue
			}
			given[a.Name] = value
		}
		if why := a.set(variables, value); why != "" {
			wrong(a.Name, why)
		}
	}
	isGiven := func(name string) bool { return given[name] != nil }
	if len(t.needs) > 0 && !slices.ContainsFunc(t.needs, isGiven) {
		wrong(t.needs[0], "give at least one of "+strings.Join(t.needs, ", "))
	}
	for name := range t.declared {
		if of, ok := strings.CutPrefix(name, "has_"); ok {
			variables[name] = isGiven(of)
		}
	}
	return given, variables, problems
}

// set sets the variables of the argument. why is empty if the value is correct.
func (a Argument) set(variables map[string]any, value any) (why string) {
	switch a.kind {
	case kindInteger:
		why = checkInteger(value, a.min, a.max)
	case kindEnum:
		if text, _ := value.(string); !slices.Contains(a.values, text) {
			why = "must be one of " + strings.Join(a.values, ", ")
		}
	case kindStrings:
		why = a.checkStrings(value)
	case kindTags:
		if why = a.checkStrings(value); why == "" {
			value = lists.Map(value.([]any), func(name any) any { return map[string]any{"name": name} })
		}
	case kindAmounts:
		value, why = amountsOf(value, a.max)
	case kindPairs:
		value, why = listOf(value, a.max, "keys to strings", "key", "value", checkText)
	case kindNeeds:
		value, why = listOf(value, a.max, "keys to strings", "key", "requirement", checkText)
	case kindClaims:
		return a.setClaims(variables, value)
	default:
		why = checkString(value, a.max)
	}
	if a.inside != "" {
		value = map[string]any{a.inside: value}
	}
	variables[a.Name] = value
	if a.also != "" {
		variables[a.also] = []any{value}
	}
	return why
}

func checkString(value any, most int) string {
	if text, ok := value.(string); !ok || utf8.RuneCountInString(text) > most {
		return fmt.Sprintf("must be a string of at most %d characters", most)
	}
	return ""
}

func checkInteger(value any, least, most int) string {
	number, _ := value.(json.Number)
	if n, err := strconv.Atoi(number.String()); err != nil || n < least || n > most {
		return fmt.Sprintf("must be an integer, %d to %d", least, most)
	}
	return ""
}

func (a Argument) checkStrings(value any) string {
	list, ok := value.([]any)
	isWrong := func(one any) bool { return checkText(one) != "" }
	if !ok || len(list) > a.max || slices.ContainsFunc(list, isWrong) {
		return fmt.Sprintf("must be a list of at most %d strings of at most %d characters", a.max, maxString)
	}
	return ""
}

func checkText(value any) string { return checkString(value, maxString) }

// The bounds of amounts.
const maxAmount, maxClasses = 1<<31 - 1, 64

func checkAmount(value any) string { return checkInteger(value, 1, maxAmount) }

// amountsOf returns {"VCPU": 4} as a list of ResourceAmountInput.
func amountsOf(value any, most int) (list []any, why string) {
	const form = `resource classes to amounts, such as {"VCPU": 4}`
	return listOf(value, most, form, "resourceClass", "amount", checkAmount)
}

// listOf returns an object such as {"os_distro": "debian"} as a list of objects:
// each has a key and its value in the given members.
func listOf(value any, most int, form, key, member string, check func(any) string) (list []any, why string) {
	object, ok := value.(map[string]any)
	if !ok || len(object) > most {
		return nil, fmt.Sprintf("must be an object from at most %d %s", most, form)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if why := check(object[name]); why != "" {
			return nil, clip(name, 100) + " " + why
		}
		list = append(list, map[string]any{key: name, member: object[name]})
	}
	return list, ""
}

// setClaims sets the variable of the argument to a list of
// ProviderAllocationInput. With also, it instead sets the variable that also
// names to the uuids of the providers, and for each provider one of the
// variables a, b, c and so on: a filter that selects the provider if it could
// serve the claimed amounts now.
func (a Argument) setClaims(variables map[string]any, value any) string {
	claims, ok := value.(map[string]any)
	if !ok || len(claims) == 0 || len(claims) > a.max {
		return fmt.Sprintf("must be an object from 1 to %d uuids of providers to amounts, such as {\"UUID\": {\"VCPU\": 4}}", a.max)
	}
	folded := map[string]any{} // answers have uuids in lower case
	for provider, amounts := range claims {
		folded[strings.ToLower(provider)] = amounts
	}
	if len(folded) < len(claims) {
		return "must have each provider once"
	}
	clear(claims)
	maps.Copy(claims, folded)
	var allocations, providers []any
	for i, provider := range slices.Sorted(maps.Keys(claims)) {
		amounts, why := amountsOf(claims[provider], maxClasses)
		if why != "" {
			return clip(provider, 100) + ": " + why
		}
		providers = append(providers, provider)
		allocations = append(allocations, map[string]any{"provider": provider, "resources": amounts})
		if a.also != "" {
			variables[string(rune('a'+i))] = map[string]any{"uuids": []any{provider}, "resources": amounts}
		}
	}
	if a.also != "" {
		variables[a.also] = providers
	} else {
		variables[a.Name] = allocations
	}
	return ""
}
