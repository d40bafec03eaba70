package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Schema is a JSON schema with the keywords that the services use. Its messages
// have the form of OpenStack's validator, which clients show and tests match.
// Apart from Null and Open, an empty field is no constraint.
type Schema struct {
	Type       string // object, array, string, integer, number
	Null       bool   // whether null is permitted, too
	Properties map[string]*Schema
	Required   []string
	// Patterns are the schemas of members by a regular expression of the name.
	Patterns map[string]*Schema
	Open     bool // whether an object may have other members
	Items    *Schema
	Unique   bool
	// MinSize is the minimum number of members or items, or the minimum length
	// of a string; MaxSize bounds the length of a string.
	MinSize, MaxSize int
	Pattern          string
	UUID             bool
	Enum             []string
	Bounded          bool // whether Minimum and Maximum hold
	Minimum, Maximum float64
}

// Member is a member of an object, or a parameter of a query.
type Member struct {
	name     string
	since    int
	required bool
	of       *Schema
}

// May returns an optional member that a minor version added.
func May(since int, name string, of *Schema) Member { return Member{name, since, false, of} }

// Must returns a required member that a minor version added.
func Must(since int, name string, of *Schema) Member { return Member{name, since, true, of} }

// Members returns the schema of an object in a minor version. The object may
// have no other members.
func Members(version int, list ...Member) *Schema {
	schema := &Schema{Type: "object", Properties: map[string]*Schema{}}
	for _, one := range list {
		if version < one.since {
			continue
		}
		schema.Properties[one.name] = one.of
		if one.required {
			schema.Required = append(schema.Required, one.name)
		}
	}
	return schema
}

// Each returns the schema of an object with at least minSize members, whose names
// all match a pattern.
func Each(pattern string, of *Schema, minSize int) *Schema {
	return &Schema{Type: "object", Patterns: map[string]*Schema{pattern: of}, MinSize: minSize}
}

// CheckJSON refuses a body that is not one JSON value in UTF-8, or that has an
// object with duplicate members.
func (r *Request) CheckJSON() error {
	if value := jsontext.Value(r.Body); !value.IsValid() {
		return Bad("Malformed JSON: the body is not one JSON value in UTF-8 with distinct members")
	}
	return nil
}

// ReadJSON checks the body of a request against a schema and decodes it.
func (r *Request) ReadJSON(schema *Schema, into any) error {
	if err := r.CheckJSON(); err != nil {
		return err
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(r.Body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return Bad("Malformed JSON: %v", err)
	}
	if wrong := schema.Check(value); wrong != "" {
		return Bad("JSON does not validate: %s", wrong)
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		return Bad("JSON does not validate: a number is not a whole number of at most 63 bits")
	}
	return nil
}

// violation is a value that a schema does not permit.
type violation struct {
	message, keyword   string
	inSchema, instance string
	depth              int
}

// checking collects the violations of one value.
type checking struct {
	found     []violation
	in, value string // the paths in the schema and in the value
	depth     int
}

// Check returns, in words, the violation that is nearest to the root of the
// value, or the empty string.
func (s *Schema) Check(value any) string {
	c := &checking{}
	c.check(s, value)
	if len(c.found) == 0 {
		return ""
	}
	first := slices.MinFunc(c.found, func(a, b violation) int { return a.depth - b.depth })
	return fmt.Sprintf("%s\n\nFailed validating '%s' in schema%s:\n\nOn instance%s", first.message,
		first.keyword, first.inSchema, first.instance)
}

func (c *checking) add(keyword, format string, args ...any) {
	c.found = append(c.found, violation{fmt.Sprintf(format, args...), keyword, c.in, c.value, c.depth})
}

func (c *checking) below(schema *Schema, value any, in, at string) {
	below := &checking{in: c.in + in, value: c.value + at, depth: c.depth + 1}
	below.check(schema, value)
	c.found = append(c.found, below.found...)
}

func (c *checking) check(s *Schema, value any) {
	if value == nil && s.Null {
		return
	}
	if s.Type != "" && !isOf(s.Type, value) {
		wanted := "'" + s.Type + "'"
		if s.Null {
			wanted += ", 'null'"
		}
		c.add("type", "%s is not of type %s", literal(value), wanted)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		c.checkObject(s, value)
	case []any:
		c.checkList(s, value)
	case string:
		c.checkString(s, value)
	case json.Number:
		c.checkNumber(s, value)
	}
}

func isOf(kind string, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return kind == "object"
	case []any:
		return kind == "array"
	case string:
		return kind == "string"
	case json.Number:
		number, err := value.Float64()
		return kind == "number" || kind == "integer" && err == nil && number == math.Trunc(number)
	}
	return false
}

func (c *checking) checkObject(s *Schema, members map[string]any) {
	var extra []string
	patterns := slices.Sorted(maps.Keys(s.Patterns))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := "['" + name + "']"
		if of, ok := s.Properties[name]; ok {
			c.below(of, members[name], "['properties']"+at, at)
			continue
		}
		i := slices.IndexFunc(patterns, func(pattern string) bool {
			return Compiled(pattern).MatchString(name)
		})
		if i >= 0 {
			c.below(s.Patterns[patterns[i]], members[name], "['patternProperties']['"+patterns[i]+"']", at)
		} else {
			extra = append(extra, literal(name))
		}
	}
	for _, name := range s.Required {
		if _, ok := members[name]; !ok {
			c.add("required", "'%s' is a required property", name)
		}
	}
	if len(members) < s.MinSize {
		c.add("minProperties", "%s does not have enough properties", literal(members))
	}
	verb := "was"
	if len(extra) > 1 {
		verb = "were"
	}
	switch {
	case len(extra) == 0 || s.Open:
	case patterns == nil:
		c.add("additionalProperties", "Additional properties are not allowed (%s %s unexpected)",
			strings.Join(extra, ", "), verb)
	default:
		does := map[bool]string{true: "does", false: "do"}[len(extra) == 1]
		c.add("additionalProperties", "%s %s not match any of the regexes: '%s'", strings.Join(extra, ", "),
			does, strings.Join(patterns, "', '"))
	}
}

func (c *checking) checkList(s *Schema, items []any) {
	if len(items) < s.MinSize {
		c.add("minItems", "%s is too short", literal(items))
	}
	seen := map[string]bool{}
	for i, item := range items {
		if s.Items != nil {
			c.below(s.Items, item, "['items']", "["+strconv.Itoa(i)+"]")
		}
		seen[string(Encode(item))] = true
	}
	if s.Unique && len(seen) < len(items) {
		c.add("uniqueItems", "%s has non-unique elements", literal(items))
	}
}

func (c *checking) checkString(s *Schema, text string) {
	length := utf8.RuneCountInString(text)
	switch {
	case s.Pattern != "" && !Compiled(s.Pattern).MatchString(text):
		c.add("pattern", "%s does not match '%s'", literal(text), s.Pattern)
	case length < s.MinSize:
		c.add("minLength", "%s is too short", literal(text))
	case s.MaxSize > 0 && length > s.MaxSize:
		c.add("maxLength", "%s is too long", literal(text))
	case s.UUID && !isUUID(text):
		c.add("format", "%s is not a 'uuid'", literal(text))
	case s.Enum != nil && !slices.Contains(s.Enum, text):
		c.add("enum", "%s is not one of ['%s']", literal(text), strings.Join(s.Enum, "', '"))
	}
}

func (c *checking) checkNumber(s *Schema, number json.Number) {
	value, err := number.Float64()
	switch {
	case !s.Bounded:
	case err != nil || value > s.Maximum:
		c.add("maximum", "%s is greater than the maximum of %v", number, strconv.FormatFloat(s.Maximum, 'g', -1, 64))
	case value < s.Minimum:
		c.add("minimum", "%s is less than the minimum of %v", number, strconv.FormatFloat(s.Minimum, 'g', -1, 64))
	}
}

// expressions has the compiled regular expressions of the schemas by source.
var expressions sync.Map

// Compiled returns a regular expression of a schema. It caches all of them: the
// schemas have a few, and compiling one takes longer than answering a request.
func Compiled(pattern string) *regexp.Regexp {
	kept, ok := expressions.Load(pattern)
	if !ok {
		kept, _ = expressions.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return kept.(*regexp.Regexp)
}

var uuids = regexp.MustCompile(`^[0-9a-f]{32}$`)

// isUUID reports whether OpenStack takes a string as a UUID: 32 hexadecimal
// digits with any hyphens, also in braces or after urn:uuid:.
func isUUID(text string) bool {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(text), "{"), "}")
	return uuids.MatchString(strings.ReplaceAll(strings.TrimPrefix(text, "urn:uuid:"), "-", ""))
}

// literal returns a JSON value as OpenStack's messages show it.
func literal(value any) string {
	switch value := value.(type) {
	case nil:
		return "None"
	case string:
		return "'" + value + "'"
	case []any:
		parts := make([]string, len(value))
		for i := range value {
			parts[i] = literal(value[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(value))
		for _, name := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, literal(name)+": "+literal(value[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(value)
}
