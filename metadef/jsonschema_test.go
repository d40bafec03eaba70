package metadef

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// accepts implements the part of JSON Schema that the document schema uses. Any
// other keyword fails the test.
func accepts(t testing.TB, root, schema, value jsonvalue.Value) bool {
	t.Helper()
	if schema.Kind == jsonvalue.KindBoolean {
		return schema.Raw == "true"
	}
	c := schemaCheck{t, root, schema, value}
	return !slices.ContainsFunc(schema.Members, func(m jsonvalue.Member) bool { return !c.holds(m.Key, m.Value) })
}

// schemaCheck checks whether a value satisfies the keywords of a schema.
type schemaCheck struct {
	t                   testing.TB
	root, schema, value jsonvalue.Value
}

func (c schemaCheck) under(schema, value jsonvalue.Value) bool {
	return accepts(c.t, c.root, schema, value)
}

func (c schemaCheck) holds(word string, k jsonvalue.Value) bool {
	switch word {
	case "$schema", "$defs", "title", "description", "deprecated", "then":
		return true
	case "$ref":
		definitions, _ := c.root.Member("$defs")
		target, known := definitions.Member(strings.TrimPrefix(k.Text, "#/$defs/"))
		if !known {
			c.t.Fatalf("no definition %s", k.Text)
		}
		return c.under(target, c.value)
	case "type":
		types := k.List
		if k.Kind == jsonvalue.KindText {
			types = []jsonvalue.Value{k}
		}
		return slices.ContainsFunc(types, func(of jsonvalue.Value) bool {
			return isOfSchemaType(c.t, c.value, of.Text)
		})
	case "enum":
		return slices.ContainsFunc(k.List, func(member jsonvalue.Value) bool { return member.Same() == c.value.Same() })
	case "anyOf":
		return slices.ContainsFunc(k.List, func(inner jsonvalue.Value) bool { return c.under(inner, c.value) })
	case "allOf":
		return !slices.ContainsFunc(k.List, func(inner jsonvalue.Value) bool { return !c.under(inner, c.value) })
	case "not":
		return !c.under(k, c.value)
	case "if":
		then, _ := c.schema.Member("then")
		return !c.under(k, c.value) || c.under(then, c.value)
	case "required", "properties", "additionalProperties", "propertyNames", "items":
		return c.holdsWithin(word, k)
	}
	return c.holdsOfSize(word, k)
}

// holdsWithin is holds for keywords about the members of a list or map.
func (c schemaCheck) holdsWithin(word string, k jsonvalue.Value) bool {
	switch word {
	case "required":
		return !slices.ContainsFunc(k.List, func(name jsonvalue.Value) bool {
			_, has := c.value.Member(name.Text)
			return !has && c.value.Kind == jsonvalue.KindMap
		})
	case "properties":
		return !slices.ContainsFunc(k.Members, func(p jsonvalue.Member) bool {
			v, has := c.value.Member(p.Key)
			return has && !c.under(p.Value, v)
		})
	case "additionalProperties":
		properties, _ := c.schema.Member("properties")
		return !slices.ContainsFunc(c.value.Members, func(v jsonvalue.Member) bool {
			_, named := properties.Member(v.Key)
			return !named && !c.under(k, v.Value)
		})
	case "propertyNames":
		return !slices.ContainsFunc(c.value.Members, func(v jsonvalue.Member) bool {
			return !c.under(k, jsonvalue.OfText(v.Key))
		})
	}
	return !slices.ContainsFunc(c.value.List, func(v jsonvalue.Value) bool { return !c.under(k, v) })
}

// holdsOfSize is holds for keywords about a length, a number or a string.
func (c schemaCheck) holdsOfSize(word string, k jsonvalue.Value) bool {
	value := c.value
	switch word {
	case "maxItems":
		return len(value.List) <= *countOf(k)
	case "maxProperties":
		return len(value.Members) <= *countOf(k)
	case "minLength":
		return value.Kind != jsonvalue.KindText || text.Length(value.Text) >= *countOf(k)
	case "maxLength":
		return value.Kind != jsonvalue.KindText || text.Length(value.Text) <= *countOf(k)
	case "pattern":
		pattern := regexp.MustCompile(`\\u([0-9a-f]{4})`).ReplaceAllString(k.Text, `\x{$1}`)
		return value.Kind != jsonvalue.KindText || regexp.MustCompile(pattern).MatchString(value.Text)
	case "minimum":
		return value.Kind != jsonvalue.KindNumber || value.Decimal().Compare(k.Decimal()) >= 0
	case "maximum":
		return value.Kind != jsonvalue.KindNumber || value.Decimal().Compare(k.Decimal()) <= 0
	}
	c.t.Fatalf("the test does not know %s", word)
	return false
}

func isOfSchemaType(t testing.TB, value jsonvalue.Value, name string) bool {
	switch name {
	case "null":
		return value.Kind == jsonvalue.KindNull
	case "object":
		return value.Kind == jsonvalue.KindMap
	}
	of, ok := propertyTypeNamed(name)
	if !ok {
		t.Fatalf("no type %s", name)
	}
	return of.matches(value)
}

func TestDocumentSchemaAgreesWithParseDocument(t *testing.T) {
	t.Parallel()
	root, ok := jsonvalue.Read(DocumentSchema(), "$", new(problem.Problems))
	if !ok {
		t.Fatal("the schema is no JSON")
	}
	agree := func(what, text string) {
		value, ok := jsonvalue.Read(text, "$", new(problem.Problems))
		if !ok {
			return // editors report this themselves
		}
		_, _, problems := ParseDocument(text)
		if got := accepts(t, root, root, value); got != (len(problems) == 0) {
			t.Errorf("%s: the schema says %v, problems %v in %.300s", what, got, problems, text)
		}
	}
	// Cases that a JSON Schema cannot express.
	beyond := []string{"everything twice", "tags in a circle", "unusable text", "too large", "keyword twice"}
	for _, c := range documentCases() {
		if !slices.Contains(beyond, c.name) {
			agree(c.name, c.text)
		}
	}
	for name, text := range examples(t) {
		agree(name, text)
	}
	for _, c := range propertyCases() {
		if !slices.Contains(beyond, c.name) {
			agree(c.name, `{"namespace": "N", "properties": {"p": `+c.text+`}}`)
		}
	}
	// Values of every kind at every path.
	values := []string{`null`, `true`, `0`, `-1`, `1.0`, `1.5`, `1e400`, `"x"`, `""`, `"a/b"`, `"a\n"`, `"public"`,
		`"string"`, `[]`, `["a"]`, `[1]`, `[null]`, `[{}]`,
		`[{"name":"x"}]`, `[{"name":""}]`, `{}`, `{"type":"string"}`, `{"type":"x"}`,
		`{"type":"integer","enum":[1],"x":1}`, `{"enum":{}}`, `{"name":"x"}`, `{"name":"x","properties":{"a":1}}`,
		`"` + strings.Repeat("ä", 80) + `"`, `"` + strings.Repeat("ä", 81) + `"`, `"` + strings.Repeat("ä", 256) + `"`,
		`"` + strings.Repeat("ä", 501) + `"`,
		`[` + strings.Repeat(`"a",`, maxEnumMembers) + `"a"]`}
	keywords := []string{"name", "defaultValue", "bogus", "readOnly"}
	for _, k := range propertyKeywords {
		keywords = append(keywords, k.word)
	}
	documentKeys := []string{"namespace", "display_name", "description", "visibility", "protected", "owner",
		"resource_type_associations", "properties", "objects", "tags"}
	places := map[string][]string{
		`{"namespace":"N","properties":{"p":{"type":"array",%}}}`:              keywords,
		`{"namespace":"N","properties":{"p":{"type":"string","title":"T",%}}}`: keywords,
		`{"namespace":"N","objects":[{"name":"o","properties":{"p":{%}}}]}`:    keywords,
		`{"namespace":"N","properties":{"p":{"type":"array","items":{%}}}}`:    {"type", "enum", "bogus"},
		`{"namespace":"N","objects":[{"name":"o",%}]}`: {"description", "required",
			"properties", "namespace", "bogus"},
		`{"namespace":"N","objects":[{%}]}`:                      {"name", "description"},
		`{"namespace":"N","objects":{%}}`:                        {"name", "description"},
		`{"namespace":"N","tags":[{"name":"x"},{"name":"t",%}]}`: {"bogus"},
		`{"namespace":"N","tags":[{%}]}`:                         {"name"},
		`{"namespace":"N","resource_type_associations":[{"name":"T",%}]}`: {"prefix", "properties_target",
			"created_at"},
		`{"namespace":"N","resource_type_associations":[{%}]}`: {"name", "prefix"},
		`{"namespace":"N",%}`: append([]string{"title",
			"self", "bogus"}, documentKeys[1:]...),
		`{%}`:                                    documentKeys,
		`{"namespace":"N","display_name":"D",%}`: {"title"},
		`{"namespace":"N","display_name":null,%}`:                      {"title"},
		`{"namespace":"N","properties":{%}}`:                           {"p", "a/b", "", "a\\n"},
		`{"namespace":"N","properties":{"p":{"type":"string"},"q":%}}`: nil,
		`%`: nil,
	}
	for place, keys := range places {
		for _, value := range values {
			if keys == nil {
				agree(place, strings.Replace(place, "%", value, 1))
			}
			for _, key := range keys {
				if text := strings.Replace(place, "%", `"`+key+`":`+value, 1); sound(text) {
					agree(key, text)
				}
			}
		}
	}
}

// examples returns the documents of the specifications' examples.
func examples(t testing.TB) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/examples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range archive.Files {
		if name, ok := strings.CutSuffix(file.Name, ".json"); ok {
			texts[name] = string(file.Data)
		}
	}
	return texts
}

func TestDocumentSchemaAcceptsEveryRealFile(t *testing.T) {
	t.Parallel()
	root, _ := jsonvalue.Read(DocumentSchema(), "$", new(problem.Problems))
	for name, text := range realDocuments(t) {
		if value, _ := jsonvalue.Read(text, "$", new(problem.Problems)); !accepts(t, root, root, value) {
			t.Errorf("%s is refused", name)
		}
	}
}

// sound reports whether no map in the input repeats a name.
func sound(text string) bool {
	var problems problem.Problems
	_, ok := jsonvalue.Read(text, "", &problems)
	return ok && len(problems) == 0
}

func TestDocumentSchemaNamesEveryKeyword(t *testing.T) {
	t.Parallel()
	root, _ := jsonvalue.Read(DocumentSchema(), "$", new(problem.Problems))
	definitions, _ := root.Member("$defs")
	property, _ := definitions.Member("property")
	keywords, _ := property.Member("properties")
	for _, k := range propertyKeywords {
		if got, ok := keywords.Member(k.word); !ok {
			t.Errorf("%s is missing", k.word)
		} else if description, _ := got.Member("description"); description.Text == "" {
			t.Errorf("%s is not described", k.word)
		}
	}
}
