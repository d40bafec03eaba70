package metadef

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// shape is the form of a keyword's value.
type shape struct {
	// is is the JSON Schema type of the value, or "" if pairs say everything.
	is       string
	pairs    []text.JSON // further pairs of the JSON Schema
	validate func(c *checker, value jsonvalue.Value, path string)
	write    func(text.JSON) text.JSON // converts the API's form to that of files; nil for none
	keyed    bool                      // whether files have a map instead of the API's list
}

var (
	aText    = shape{is: "string", validate: expecting(jsonvalue.KindText)}
	aBoolean = shape{is: "boolean", validate: expecting(jsonvalue.KindBoolean)}
	aMap     = shape{is: "object", validate: expecting(jsonvalue.KindMap)}
	aValue   = shape{validate: func(*checker, jsonvalue.Value, string) {}}
	aTitle   = shape{is: "string", validate: func(c *checker, value jsonvalue.Value, path string) {
		if c.expect(value, jsonvalue.KindText, path) && value.Text == "" {
			c.strictly(path, "accepted", "must not be empty")
		}
	}}
	aPattern = shape{is: "string", validate: func(c *checker, value jsonvalue.Value, path string) {
		if c.expect(value, jsonvalue.KindText, path) {
			c.validatePattern(value.Text, path)
		}
	}}
	aNumber = shape{is: "number",
		pairs: []text.JSON{"minimum", "-1.7976931348623157e308", "maximum", "1.7976931348623157e308"},
		validate: func(c *checker, value jsonvalue.Value, path string) {
			if c.expect(value, jsonvalue.KindNumber, path) && numberOf(value) == nil {
				c.problem(path, "is out of range for a double-precision number")
			}
		}}
	aCount = shape{is: "integer", pairs: []text.JSON{"minimum", "0"}, validate: (*checker).validateCount}
	aType  = shape{pairs: []text.JSON{"enum", listOfTexts(typeNames())},
		validate: (*checker).validateType, write: inLowerCase}
	anItemType = shape{pairs: aType.pairs, write: inLowerCase,
		validate: func(c *checker, value jsonvalue.Value, path string) {
			if c.validateType(value, path); value.Text == Array.typeName() {
				c.strictly(path, "accepted", "must be one of string, integer, number, boolean: arrays cannot be nested")
			}
		}}
	someValues = shape{is: "array", pairs: []text.JSON{"maxItems", jsonvalue.Number(maxEnumMembers)},
		validate: (*checker).validateDistinctValues}
	someOperators = shape{is: "array", pairs: pairsOfTexts, validate: (*checker).validateOperators}
	labels        = shape{is: "object", pairs: []text.JSON{"maxProperties", jsonvalue.Number(maxEnumMembers),
		"additionalProperties", `{"type":"string"}`},
		validate: (*checker).validateLabels, write: mapOfLabels, keyed: true}
	distinctTexts = shape{is: "array", pairs: pairsOfTexts, validate: (*checker).validateDistinctTexts}
)

var pairsOfTexts = []text.JSON{"maxItems", jsonvalue.Number(maxEnumMembers), "items", `{"type":"string"}`}

// jsonSchema returns the pairs of the shape's JSON Schema. If nullable is set,
// a shape with a JSON type also allows null.
func (s shape) jsonSchema(nullable bool) []text.JSON {
	switch {
	case s.is == "":
		return s.pairs
	case nullable:
		return append([]text.JSON{"type", listOfTexts([]string{s.is, "null"})}, s.pairs...)
	}
	return append([]text.JSON{"type", jsonvalue.Quote(s.is)}, s.pairs...)
}

func listOfTexts(texts []string) text.JSON { return jsonvalue.ListOf(texts, jsonvalue.Quote) }

func inLowerCase(value text.JSON) text.JSON { return text.JSON(strings.ToLower(string(value))) }

func expecting(kind jsonvalue.Kind) func(*checker, jsonvalue.Value, string) {
	return func(c *checker, value jsonvalue.Value, path string) { c.expect(value, kind, path) }
}

func (c *checker) validateType(value jsonvalue.Value, path string) {
	types := strings.Join(typeNames(), ", ")
	if value.Kind != jsonvalue.KindText {
		c.problem(path, "must be one of %s, is %s", types, value.Kind)
	} else if value.Text == "object" {
		c.problem(path, "must be one of %s: objects cannot be nested in a property", types)
	} else if _, ok := propertyTypeNamed(value.Text); !ok {
		c.problem(path, "must be one of %s, is %s", types, Shorten(value.Text))
	}
}

func (c *checker) validateCount(value jsonvalue.Value, path string) {
	if !c.expect(value, jsonvalue.KindNumber, path) {
		return
	}
	number, _ := text.ParseDecimal(string(value.Raw))
	most, _ := text.ParseDecimal(strconv.Itoa(maxCount))
	switch {
	case !number.IsInteger():
		c.problem(path, "must be an integer, is %s", Shorten(string(value.Raw)))
	case number.Compare(text.Decimal{}) < 0:
		c.problem(path, "must not be negative")
	case number.Compare(most) > 0:
		c.strictly(path, "read as that", "must be at most %d", maxCount)
	}
}

// validateDistinctValues checks that a list of an enum has no member twice.
func (c *checker) validateDistinctValues(list jsonvalue.Value, path string) {
	first := map[string]int{}
	for i, item := range c.listItems(list, path) {
		if j, ok := first[item.Same()]; ok {
			c.strictly(problem.Index(path, i), "accepted", "duplicates member %d, %s", j, Shorten(string(item.Raw)))
		} else {
			first[item.Same()] = i
		}
	}
}

func (c *checker) validateOperators(list jsonvalue.Value, path string) {
	for i, item := range c.listItems(list, path) {
		at := problem.Index(path, i)
		if c.expect(item, jsonvalue.KindText, at) && c.level == Lenient && !slices.Contains(Operators(), item.Text) {
			c.warn(at, "unknown operator %s, kept; the operators are %s", Shorten(item.Text), strings.Join(Operators(),
				" "))
		}
	}
}

func (c *checker) validateDistinctTexts(list jsonvalue.Value, path string) {
	seen := map[string]bool{}
	for i, item := range c.listItems(list, path) {
		at := problem.Index(path, i)
		if c.expect(item, jsonvalue.KindText, at) && seen[item.Text] {
			c.strictly(at, "accepted", "is repeated")
		}
		seen[item.Text] = true
	}
}

// listItems returns the members of a list, or none if it is too long.
func (c *checker) listItems(list jsonvalue.Value, path string) []jsonvalue.Value {
	if !c.expect(list, jsonvalue.KindList, path) || !c.atMost(len(list.List), maxEnumMembers, path) {
		return nil
	}
	return list.List
}

// maxPatternSize is the maximum size of a regular expression with its
// repetitions expanded. The time to search a value is proportional to it.
const maxPatternSize = 2000

// validatePattern checks that a regular expression can check values.
func (c *checker) validatePattern(pattern, path string) {
	if length := text.Length(pattern); length > maxPattern {
		c.strictly(path, "not checked", "must have at most %d characters, has %d", maxPattern, length)
		return
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		c.strictly(path, "not checked", "is not a regular expression in RE2 syntax: %s", reason)
	} else if size := patternSize(parsed); size > maxPatternSize {
		c.strictly(path, "not checked", "is too complex: it compiles to %d steps, at most %d are allowed", size,
			maxPatternSize)
	}
}

// matches reports whether the pattern is found in the string. It is true for a
// pattern that cannot check values.
func matches(pattern, text string) bool {
	var c checker
	if c.validatePattern(pattern, ""); len(c.found) > 0 {
		return true
	}
	expression, err := regexp.Compile(pattern)
	return err != nil || expression.MatchString(text)
}

// patternSize returns the size of an expression with its repetitions expanded.
func patternSize(expression *syntax.Regexp) int {
	size := 1
	if expression.Op == syntax.OpLiteral {
		size = len(expression.Rune)
	}
	for _, inner := range expression.Sub {
		size += patternSize(inner)
	}
	if expression.Op == syntax.OpRepeat {
		size *= max(1, expression.Min, expression.Max)
	}
	return min(size, 1<<30) // prevents overflow at any depth
}

// schemaTemplate is the schema of a document without the schema of a property.
//
//go:embed document.schema.json
var schemaTemplate string

// DocumentSchema returns the JSON Schema (draft 2020-12) of a definition
// document, for editors. The schema of a property is generated from the keyword
// table. The schema accepts every document that ParseDocument reads without a
// problem. It refuses others as far as a JSON Schema can: it cannot check
// repeated names, tag parents, sizes in bytes and strings that no database can
// store.
func DocumentSchema() string {
	schema := strings.Replace(schemaTemplate, `"property": {}`, `"property": `+string(schemaOfProperty()), 1)
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(schema), "", "    "); err != nil {
		return schemaTemplate
	}
	return indented.String()
}

func schemaOfProperty() text.JSON {
	deprecated := func(name, about string) jsonvalue.Member {
		return jsonvalue.MemberOf(name, jsonvalue.MapOf("description", jsonvalue.Quote(about), "deprecated", "true"))
	}
	keywords := append(propertyKeywords.jsonSchema(true),
		deprecated("name", "Repeats the key of the property."),
		deprecated("defaultValue", "Alias of default."))
	return jsonvalue.MapOf("type", `"object"`, "required", `["type"]`, "properties",
		jsonvalue.Map(keywords), "additionalProperties", "false")
}

// jsonSchema returns the JSON Schema of each keyword. If nullable is set, every
// keyword but type may be null.
func (t keywordTable) jsonSchema(nullable bool) []jsonvalue.Member {
	members := make([]jsonvalue.Member, len(t))
	for i, k := range t {
		var pairs []text.JSON
		if k.about != "" {
			pairs = append(pairs, "description", jsonvalue.Quote(k.about))
		}
		if !k.hasEffect() {
			pairs = append(pairs, "deprecated", "true")
		}
		pairs = append(pairs, k.shape.jsonSchema(nullable)...)
		if k.members != nil {
			pairs = append(pairs, "required", `["type"]`, "properties",
				jsonvalue.Map(k.members.jsonSchema(false)), "additionalProperties", "false")
		}
		members[i] = jsonvalue.MemberOf(k.word, jsonvalue.MapOf(pairs...))
	}
	return members
}
