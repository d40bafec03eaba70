package metadef

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/cadastre-dev/cadastre/text"
)

// accepts is as much of JSON Schema as the document schema uses; any other
// keyword fails the test.
func accepts(t testing.TB, root, schema, value jsonValue) bool {
	t.Helper()
	if schema.kind == jsonBoolean {
		return schema.isTrue()
	}
	number := func(v jsonValue) text.Decimal {
		d, ok := text.ParseDecimal(string(v.raw))
		if !ok {
			t.Fatalf("%s is no number", v.raw)
		}
		return d
	}
	count := func(v jsonValue) int { return *v.asCount() }
	under := func(inner, v jsonValue) bool { return accepts(t, root, inner, v) }
	property, _ := schema.member("properties")
	for _, m := range schema.members {
		k, ok := m.value, true
		switch m.key {
		case "$schema", "$defs", "title", "description", "deprecated":
		case "$ref":
			definitions, _ := root.member("$defs")
			target, known := definitions.member(strings.TrimPrefix(k.text, "#/$defs/"))
			if !known {
				t.Fatalf("no definition %s", k.text)
			}
			ok = under(target, value)
		case "type":
			types := k.list
			if k.kind == jsonText {
				types = []jsonValue{k}
			}
			ok = slices.ContainsFunc(types, func(of jsonValue) bool { return isOfSchemaType(t, value, of.text) })
		case "enum":
			ok = slices.ContainsFunc(k.list, func(member jsonValue) bool { return member.same() == value.same() })
		case "anyOf":
			ok = slices.ContainsFunc(k.list, func(inner jsonValue) bool { return under(inner, value) })
		case "allOf":
			ok = !slices.ContainsFunc(k.list, func(inner jsonValue) bool { return !under(inner, value) })
		case "not":
			ok = !under(k, value)
		case "if":
			if then, _ := schema.member("then"); under(k, value) {
				ok = under(then, value)
			}
		case "then":
		case "required":
			for _, name := range k.list {
				_, has := value.member(name.text)
				ok = ok && (has || value.kind != jsonMap)
			}
		case "properties":
			for _, p := range k.members {
				if v, has := value.member(p.key); has {
					ok = ok && under(p.value, v)
				}
			}
		case "additionalProperties":
			for _, v := range value.members {
				if _, named := property.member(v.key); !named {
					ok = ok && under(k, v.value)
				}
			}
		case "propertyNames":
			for _, v := range value.members {
				ok = ok && under(k, jsonValue{kind: jsonText, text: v.key})
			}
		case "items":
			for _, v := range value.list {
				ok = ok && under(k, v)
			}
		case "maxItems":
			ok = len(value.list) <= count(k)
		case "maxProperties":
			ok = len(value.members) <= count(k)
		case "minLength":
			ok = value.kind != jsonText || text.Length(value.text) >= count(k)
		case "maxLength":
			ok = value.kind != jsonText || text.Length(value.text) <= count(k)
		case "pattern":
			pattern := regexp.MustCompile(`\\u([0-9a-f]{4})`).ReplaceAllString(k.text, `\x{$1}`)
			ok = value.kind != jsonText || regexp.MustCompile(pattern).MatchString(value.text)
		case "minimum":
			ok = value.kind != jsonNumber || number(value).Compare(number(k)) >= 0
		case "maximum":
			ok = value.kind != jsonNumber || number(value).Compare(number(k)) <= 0
		default:
			t.Fatalf("the test does not know %s", m.key)
		}
		if !ok {
			return false
		}
	}
	return true
}

func isOfSchemaType(t testing.TB, value jsonValue, name string) bool {
	switch name {
	case "null":
		return value.kind == jsonNull
	case "object":
		return value.kind == jsonMap
	}
	of, ok := propertyTypeNamed(name)
	if !ok {
		t.Fatalf("no type %s", name)
	}
	return value.is(of)
}

func TestDocumentSchemaAgreesWithParseDocument(t *testing.T) {
	t.Parallel()
	root, ok := readJSON(DocumentSchema(), "$", &findings{})
	if !ok || !root.sound() {
		t.Fatal("the schema is no JSON")
	}
	agree := func(what, text string) {
		value, ok := readJSON(text, "$", &findings{})
		if !ok {
			return // an editor says so by itself
		}
		_, _, problems := ParseDocument(text)
		if got := accepts(t, root, root, value); got != (len(problems) == 0) {
			t.Errorf("%s: the schema says %v, problems %v in %.300s", what, got, problems, text)
		}
	}
	// What a JSON Schema cannot express.
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
	// Every place with a value of every kind.
	values := []string{`null`, `true`, `0`, `-1`, `1.0`, `1.5`, `1e400`, `"x"`, `""`, `"a/b"`, `"a\n"`, `"public"`, `"string"`, `[]`, `["a"]`, `[1]`, `[null]`, `[{}]`,
		`[{"name":"x"}]`, `[{"name":""}]`, `{}`, `{"type":"string"}`, `{"type":"x"}`, `{"type":"integer","enum":[1],"x":1}`, `{"enum":{}}`, `{"name":"x"}`, `{"name":"x","properties":{"a":1}}`,
		`"` + strings.Repeat("ä", 80) + `"`, `"` + strings.Repeat("ä", 81) + `"`, `"` + strings.Repeat("ä", 256) + `"`, `"` + strings.Repeat("ä", 501) + `"`,
		`[` + strings.Repeat(`"a",`, MaxEnumMembers) + `"a"]`}
	keywords := []string{"name", "defaultValue", "bogus", "readOnly"}
	for _, k := range propertyKeywords {
		keywords = append(keywords, k.name)
	}
	places := map[string][]string{
		`{"namespace":"N","properties":{"p":{"type":"array",%}}}`:              keywords,
		`{"namespace":"N","properties":{"p":{"type":"string","title":"T",%}}}`: keywords,
		`{"namespace":"N","objects":[{"name":"o","properties":{"p":{%}}}]}`:    keywords,
		`{"namespace":"N","properties":{"p":{"type":"array","items":{%}}}}`:    {"type", "enum", "bogus"},
		`{"namespace":"N","objects":[{"name":"o",%}]}`:                         {"description", "required", "properties", "namespace", "bogus"},
		`{"namespace":"N","objects":[{%}]}`:                                    {"name", "description"},
		`{"namespace":"N","objects":{%}}`:                                      {"name", "description"},
		`{"namespace":"N","tags":[{"name":"x"},{"name":"t",%}]}`:               {"bogus"},
		`{"namespace":"N","tags":[{%}]}`:                                       {"name"},
		`{"namespace":"N","resource_type_associations":[{"name":"T",%}]}`:      {"prefix", "properties_target", "created_at"},
		`{"namespace":"N","resource_type_associations":[{%}]}`:                 {"name", "prefix"},
		`{"namespace":"N",%}`:                                                  append([]string{"title", "self", "bogus"}, documentKeys[1:]...),
		`{%}`:                                                                  documentKeys,
		`{"namespace":"N","display_name":"D",%}`:                               {"title"},
		`{"namespace":"N","display_name":null,%}`:                              {"title"},
		`{"namespace":"N","properties":{%}}`:                                   {"p", "a/b", "", "a\\n"},
		`{"namespace":"N","properties":{"p":{"type":"string"},"q":%}}`:         nil,
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

// examples are the documents of the specifications' examples.
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
	root, _ := readJSON(DocumentSchema(), "$", &findings{})
	for name, text := range realDocuments(t) {
		if value, _ := readJSON(text, "$", &findings{}); !accepts(t, root, root, value) {
			t.Errorf("%s is refused", name)
		}
	}
}

// sound tells whether no map in the text has a name twice.
func sound(text string) bool {
	value, ok := readJSON(text, "", &findings{})
	return ok && value.sound()
}

func TestDocumentSchemaNamesEveryKeyword(t *testing.T) {
	t.Parallel()
	root, _ := readJSON(DocumentSchema(), "$", &findings{})
	definitions, _ := root.member("$defs")
	property, _ := definitions.member("property")
	keywords, _ := property.member("properties")
	for _, k := range propertyKeywords {
		if got, ok := keywords.member(k.name); !ok {
			t.Errorf("%s is missing", k.name)
		} else if description, _ := got.member("description"); description.text == "" {
			t.Errorf("%s is not described", k.name)
		}
	}
}
