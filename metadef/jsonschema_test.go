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

// accepts is as much of JSON Schema as the document schema uses; any other
// keyword fails the test.
//
//gocyclo:ignore
func accepts(t testing.TB, root, schema, value jsonvalue.Value) bool {
	t.Helper()
	if schema.Kind == jsonvalue.KindBoolean {
		return schema.Raw == "true"
	}
	number := func(v jsonvalue.Value) text.Decimal {
		d, ok := text.ParseDecimal(string(v.Raw))
		if !ok {
			t.Fatalf("%s is no number", v.Raw)
		}
		return d
	}
	count := func(v jsonvalue.Value) int { return *countOf(v) }
	under := func(inner, v jsonvalue.Value) bool { return accepts(t, root, inner, v) }
	property, _ := schema.Member("properties")
	for _, m := range schema.Members {
		k, ok := m.Value, true
		switch m.Key {
		case "$schema", "$defs", "title", "description", "deprecated":
		case "$ref":
			definitions, _ := root.Member("$defs")
			target, known := definitions.Member(strings.TrimPrefix(k.Text, "#/$defs/"))
			if !known {
				t.Fatalf("no definition %s", k.Text)
			}
			ok = under(target, value)
		case "type":
			types := k.List
			if k.Kind == jsonvalue.KindText {
				types = []jsonvalue.Value{k}
			}
			ok = slices.ContainsFunc(types, func(of jsonvalue.Value) bool { return isOfSchemaType(t, value, of.Text) })
		case "enum":
			ok = slices.ContainsFunc(k.List, func(member jsonvalue.Value) bool { return member.Same() == value.Same() })
		case "anyOf":
			ok = slices.ContainsFunc(k.List, func(inner jsonvalue.Value) bool { return under(inner, value) })
		case "allOf":
			ok = !slices.ContainsFunc(k.List, func(inner jsonvalue.Value) bool { return !under(inner, value) })
		case "not":
			ok = !under(k, value)
		case "if":
			if then, _ := schema.Member("then"); under(k, value) {
				ok = under(then, value)
			}
		case "then":
		case "required":
			for _, name := range k.List {
				_, has := value.Member(name.Text)
				ok = ok && (has || value.Kind != jsonvalue.KindMap)
			}
		case "properties":
			for _, p := range k.Members {
				if v, has := value.Member(p.Key); has {
					ok = ok && under(p.Value, v)
				}
			}
		case "additionalProperties":
			for _, v := range value.Members {
				if _, named := property.Member(v.Key); !named {
					ok = ok && under(k, v.Value)
				}
			}
		case "propertyNames":
			for _, v := range value.Members {
				ok = ok && under(k, jsonvalue.OfText(v.Key))
			}
		case "items":
			for _, v := range value.List {
				ok = ok && under(k, v)
			}
		case "maxItems":
			ok = len(value.List) <= count(k)
		case "maxProperties":
			ok = len(value.Members) <= count(k)
		case "minLength":
			ok = value.Kind != jsonvalue.KindText || text.Length(value.Text) >= count(k)
		case "maxLength":
			ok = value.Kind != jsonvalue.KindText || text.Length(value.Text) <= count(k)
		case "pattern":
			pattern := regexp.MustCompile(`\\u([0-9a-f]{4})`).ReplaceAllString(k.Text, `\x{$1}`)
			ok = value.Kind != jsonvalue.KindText || regexp.MustCompile(pattern).MatchString(value.Text)
		case "minimum":
			ok = value.Kind != jsonvalue.KindNumber || number(value).Compare(number(k)) >= 0
		case "maximum":
			ok = value.Kind != jsonvalue.KindNumber || number(value).Compare(number(k)) <= 0
		default:
			t.Fatalf("the test does not know %s", m.Key)
		}
		if !ok {
			return false
		}
	}
	return true
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
		keywords = append(keywords, k.word)
	}
	documentKeys := []string{"namespace", "display_name", "description", "visibility", "protected", "owner",
		"resource_type_associations", "properties", "objects", "tags"}
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

// sound reports whether no map in the text has a name twice.
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
