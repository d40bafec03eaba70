package metadef

import (
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// at returns the paths of problems, sorted and without duplicates.
func at(problems problem.Problems) []string {
	paths := []string{}
	for _, p := range problems {
		paths = append(paths, p.Field)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func wantPaths(t *testing.T, what string, got problem.Problems, want ...string) {
	t.Helper()
	slices.Sort(want)
	if paths := at(got); !slices.Equal(paths, want) {
		t.Errorf("%s at %v, want %v: %v", what, paths, want, got)
	}
}

// propertyCase is a definition with the paths of its problems and warnings
// below the property.
type propertyCase struct {
	name, text string
	strict     []string // problems through the API
	lenient    []string // problems of a file
	warned     []string // warnings of a file
}

func propertyCases() []propertyCase {
	return []propertyCase{
		{name: "all in order", text: `{"title":"T","type":"integer","minimum":1,"maximum":9,"default":5,"enum":[1,5]}`},
		{name: "integer enum", text: `{"title":"T","type":"integer","enum":[1,2]}`},
		{name: "decimals", text: `{"title":"T","type":"number","minimum":0.5,"maximum":9.9,"default":0.7}`},
		{name: "array with default",
			text: `{"title":"T","type":"array","items":{"type":"string","enum":["a","b"]},"default":["a"]}`},
		{name: "bogus operator", text: `{"title":"T","type":"string","operators":["<bogus>","<or>"]}`,
			warned: []string{".operators[0]"}},
		{name: "an operator alone", text: `{"title":"T","type":"string","operators":"<or>"}`,
			strict: []string{".operators"}, lenient: []string{".operators"}},
		{name: "operator not text", text: `{"title":"T","type":"string","operators":["<or>",1]}`,
			strict: []string{".operators[1]"}, lenient: []string{".operators[1]"}},
		{name: "no operators at all", text: `{"title":"T","type":"string","operators":[]}`},
		{name: "no type", text: `{"title":"T"}`, strict: []string{".type"}, lenient: []string{".type"}},
		{name: "type text", text: `{"title":"T","type":"text"}`, strict: []string{".type"}, lenient: []string{".type"}},
		{name: "type null", text: `{"title":"T","type":null}`, strict: []string{".type"}, lenient: []string{".type"}},
		{name: "type in capitals", text: `{"title":"T","type":"STRING"}`,
			strict: []string{".type"}, lenient: []string{".type"}},
		{name: "nested object", text: `{"title":"T","type":"object"}`,
			strict: []string{".type"}, lenient: []string{".type"}},
		{name: "no title", text: `{"type":"string"}`, strict: []string{".title"}, warned: []string{".title"}},
		{name: "empty title", text: `{"title":"","type":"string"}`,
			strict: []string{".title"}, warned: []string{".title"}},
		{name: "title not text", text: `{"title":5,"type":"string"}`,
			strict: []string{".title"}, lenient: []string{".title"}},
		{name: "unknown keyword", text: `{"title":"T","type":"string","readOnly":true}`,
			strict: []string{".readOnly"}, lenient: []string{".readOnly"}},
		{name: "wrong type of a keyword",
			text:    `{"title":"T","type":"integer","minimum":"1","readonly":"no","description":3}`,
			strict:  []string{".description", ".minimum", ".readOnly"},
			lenient: []string{".description", ".minimum", ".readonly"}},
		{name: "look-ahead", text: `{"title":"T","type":"string","pattern":"^(?!a)"}`,
			strict: []string{".pattern"}, warned: []string{".pattern"}},
		{name: "invalid pattern", text: `{"title":"T","type":"string","pattern":"["}`,
			strict: []string{".pattern"}, warned: []string{".pattern"}},
		{name: "pattern that repeats too much",
			text:   `{"title":"T","type":"string","pattern":"a{1000}b{1000}","default":"c"}`,
			strict: []string{".pattern"}, warned: []string{".pattern"}},
		{name: "pattern of letters",
			text: `{"title":"T","type":"string","pattern":"^\\p{L}[\\w.-]{0,254}$","default":"ä"}`},
		{name: "default outside enum", text: `{"title":"T","type":"string","enum":["a"],"default":"b"}`,
			strict: []string{".default"}, warned: []string{".default"}},
		{name: "default outside range",
			text:   `{"title":"T","type":"integer","minimum":9007199254740993,"default":9007199254740992}`,
			strict: []string{".default"}, warned: []string{".default"}},
		{name: "default of another type", text: `{"title":"T","type":"integer","default":"5"}`,
			strict: []string{".default"}, warned: []string{".default"}},
		{name: "default too long and without match",
			text:   `{"title":"T","type":"string","maxLength":1,"pattern":"^b$","default":"aa"}`,
			strict: []string{".default"}, warned: []string{".default"}},
		{name: "default's items",
			text:   `{"title":"T","type":"array","items":{"type":"integer","enum":[1,2]},"uniqueItems":true,"default":[1,3,"x",1]}`,
			strict: []string{".default[1]", ".default[2]", ".default[3]"},
			warned: []string{".default[1]", ".default[2]", ".default[3]"}},
		{name: "default null", text: `{"title":"T","type":"string","default":null}`,
			strict: []string{".default"}, warned: []string{".default"}},
		{name: "minimum over maximum", text: `{"title":"T","type":"number","minimum":2,"maximum":1}`,
			strict: []string{".minimum"}, warned: []string{".minimum"}},
		{name: "lengths crossed", text: `{"title":"T","type":"string","minLength":2,"maxLength":1}`,
			strict: []string{".minLength"}, warned: []string{".minLength"}},
		{name: "items crossed",
			text:   `{"title":"T","type":"array","items":{"type":"string"},"minItems":2,"maxItems":1}`,
			strict: []string{".minItems"}, warned: []string{".minItems"}},
		{name: "negative length", text: `{"title":"T","type":"string","minLength":-1}`,
			strict: []string{".minLength"}, lenient: []string{".minLength"}},
		{name: "half a length", text: `{"title":"T","type":"string","minLength":1.5}`,
			strict: []string{".minLength"}, lenient: []string{".minLength"}},
		{name: "array without items", text: `{"title":"T","type":"array"}`,
			strict: []string{".itemType"}, warned: []string{".items"}},
		{name: "items without type", text: `{"title":"T","type":"array","items":{"enum":["a"]}}`,
			strict: []string{".itemType"}, lenient: []string{".items.type"}},
		{name: "items of objects", text: `{"title":"T","type":"array","items":{"type":"object"}}`,
			strict: []string{".itemType"}, lenient: []string{".items.type"}},
		{name: "items of arrays", text: `{"title":"T","type":"array","items":{"type":"array"}}`,
			strict: []string{".itemType"}, warned: []string{".items.type"}},
		{name: "items on a string", text: `{"title":"T","type":"string","items":{"type":"string","enum":[]}}`,
			strict: []string{".itemType", ".itemEnum"}, warned: []string{".items"}},
		{name: "member of another type", text: `{"title":"T","type":"integer","enum":[1,"2"]}`,
			strict: []string{".enum[1]"}, warned: []string{".enum[1]"}},
		{name: "item member of another type",
			text:   `{"title":"T","type":"array","items":{"type":"string","enum":["a",2]}}`,
			strict: []string{".itemEnum[1]"}, warned: []string{".items.enum[1]"}},
		{name: "repeated members", text: `{"title":"T","type":"number","enum":[1,1.0,10e-1]}`,
			strict: []string{".enum[1]", ".enum[2]"}, warned: []string{".enum[1]", ".enum[2]"}},
		{name: "enum not a list", text: `{"title":"T","type":"string","enum":"a"}`,
			strict: []string{".enum"}, lenient: []string{".enum"}},
		{name: "keyword of another type", text: `{"title":"T","type":"string","minimum":1,"uniqueItems":true}`,
			strict: []string{".minimum", ".uniqueItems"}, warned: []string{".minimum", ".uniqueItems"}},
		{name: "confidential", text: `{"title":"T","type":"string","confidential":true}`,
			strict: []string{".confidential"}, warned: []string{".confidential"}},
		{name: "required on a property", text: `{"title":"T","type":"string","required":["a"]}`,
			strict: []string{".required"}, warned: []string{".required"}},
		{name: "defaultValue", text: `{"title":"T","type":"string","defaultValue":"a"}`,
			strict: []string{".defaultValue"}, warned: []string{".defaultValue"}},
		{name: "another name", text: `{"title":"T","type":"string","name":"q"}`,
			strict: []string{".name"}, warned: []string{".name"}},
		{name: "keyword twice", text: `{"title":"T","type":"string","type":"integer"}`,
			strict: []string{".type"}, lenient: []string{".type"}},
		{name: "unusable text", text: `{"title":"a\u0000b","type":"array","items":{"type":"string","enum":["\ud800"]}}`,
			strict: []string{".title", ".itemEnum[0]"}, lenient: []string{".title", ".items.enum[0]"}},
		{name: "number without bounds", text: `{"title":"T","type":"number","minimum":1e400}`,
			strict: []string{".minimum"}, lenient: []string{".minimum"}},
		{name: "everything at once",
			text:    `{"type":"integer","bogus":1,"minimum":3,"maximum":1,"default":"x","enum":[1,1]}`,
			strict:  []string{".bogus", ".default", ".enum[1]", ".minimum", ".title"},
			lenient: []string{".bogus"}, warned: []string{".title", ".default", ".enum[1]", ".minimum"}},
		{name: "not a map", text: `[1]`, strict: []string{""}, lenient: []string{""}},
		{name: "not JSON", text: `{"title":`, strict: []string{""}, lenient: []string{""}},
		{name: "empty", text: ``, strict: []string{""}, lenient: []string{""}},
		{name: "null", text: `null`, strict: []string{""}, lenient: []string{""}},
		{name: "too deep", text: strings.Repeat("[", 40) + strings.Repeat("]", 40),
			strict: []string{""}, lenient: []string{""}},
	}
}

func TestPropertySchemaReportsEveryProblemWithItsPath(t *testing.T) {
	t.Parallel()
	for _, c := range propertyCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			below := func(path string, tails []string) []string {
				paths := []string{}
				for _, tail := range tails {
					paths = append(paths, path+tail)
				}
				return paths
			}
			_, warnings, problems := ParsePropertySchema(text.JSON(c.text), "p", "input.properties[2]", Strict)
			wantPaths(t, "strict problems", problems, below("input.properties[2]", c.strict)...)
			wantPaths(t, "strict warnings", warnings)
			_, warnings, problems = ParsePropertySchema(text.JSON(c.text), "p", "$.properties.p", Lenient)
			wantPaths(t, "problems", problems, below("$.properties.p", c.lenient)...)
			wantPaths(t, "warnings", warnings, below("$.properties.p", c.warned)...)
		})
	}
}

func TestPropertySchemaKeepsValuesAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	text := text.JSON(`{"type":"integer","title":"Größe","default":12345678901234567890,"enum":[12345678901234567890,1.0,2],"operators":[]}`)
	schema, _, problems := ParsePropertySchema(text, "p", "$", Strict)
	wantPaths(t, "problems", problems)
	if schema.Keywords != text {
		t.Errorf("Keywords = %s", schema.Keywords)
	}
	if *schema.Default != "12345678901234567890" || schema.Enum[1] != "1.0" {
		t.Errorf("default %s, enum %v", *schema.Default, schema.Enum)
	}
	if schema.Operators == nil || len(schema.Operators) != 0 {
		t.Errorf("an empty list of operators is present, got %#v", schema.Operators)
	}
	if again := ReadPropertySchema(schema.Keywords); again.Title != "Größe" || again.Keywords != text {
		t.Errorf("read again: %+v", again)
	}
}

func TestPropertySchemaRepairsWhatFilesBring(t *testing.T) {
	t.Parallel()
	schema, _, problems := ParsePropertySchema(`{ "type": "string", "name": "x", "description": null, "defaultValue": "virtio" }`, "hw_rng_model", "$", Lenient)
	wantPaths(t, "problems", problems)
	if want := text.JSON(`{"title":"hw_rng_model","type":"string","default":"virtio"}`); schema.Keywords != want {
		t.Errorf("Keywords = %s, want %s", schema.Keywords, want)
	}
	if schema.Title != "hw_rng_model" || *schema.Default != `"virtio"` {
		t.Errorf("schema %+v", schema)
	}
}

func TestPropertySchemaBoundsWhatItReports(t *testing.T) {
	t.Parallel()
	_, _, problems := ParsePropertySchema(text.JSON(`{"title":"T","type":"string","enum":[`+
		strings.Repeat("1,", 900)+`1]}`), "p", "$", Strict)
	if len(problems) > 201 {
		t.Errorf("%d problems", len(problems))
	}
	for _, input := range []string{
		`{"title":"` + strings.Repeat("x", MaxDefinition) + `","type":"string"}`,
		`{"title":"T","type":"string","enum":[` + strings.Repeat(`"a",`, maxEnumMembers) + `"a"]}`,
	} {
		if _, _, problems := ParsePropertySchema(text.JSON(input), "p", "$", Lenient); len(problems) != 1 {
			t.Errorf("%d problems, want the one limit", len(problems))
		}
	}
}

func FuzzParsePropertySchema(f *testing.F) {
	f.Add(`{"title":"T","type":"array","items":{"type":"string","enum":["a\ud800"]},"default":[1e5,{}]}`)
	f.Add(`{"type":"number","minimum":-0.5e-3,"maximum":1E+400,"enum":[{"a":[1,1.0]}]}`)
	f.Fuzz(func(t *testing.T, input string) {
		for _, mode := range []Strictness{Strict, Lenient} {
			schema, _, problems := ParsePropertySchema(text.JSON(input), "p", "$", mode)
			if len(problems) > 0 {
				continue
			}
			again, _, problems := ParsePropertySchema(schema.Keywords, "p", "$", mode)
			if len(problems) > 0 || again.Keywords != schema.Keywords {
				t.Fatalf("%q became %q and then %q: %v", input, schema.Keywords, again.Keywords, problems)
			}
		}
	})
}
