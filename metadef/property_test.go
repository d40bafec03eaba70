package metadef

import (
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/text"
)

// to returns a change to a value.
func to[T any](value T) Change[*T] { return Change[*T]{true, &value} }

// list returns a change to a list, which may be empty.
func list[T any](values ...T) Change[[]T] { return Change[[]T]{true, append([]T{}, values...)} }

func TestPropertyInputWritesKeywordsInTheirFixedOrder(t *testing.T) {
	t.Parallel()
	title := to("Cores")
	for _, c := range []struct {
		name  string
		input PropertyInput
		want  text.JSON
		wrong []string
	}{
		{"number",
			PropertyInput{"p", PropertyPatch{ReadOnly: to(true), Maximum: to(9.9), Minimum: to(0.5), Type: to(Number),
				Title: title, Operators: list("<or>", "<all-in>")}},
			`{"title":"Cores","type":"number","minimum":0.5,"maximum":9.9,"readonly":true,"operators":["<or>","<all-in>"]}`, nil},
		{"array",
			PropertyInput{"p", PropertyPatch{Title: title, Type: to(Array),
				ItemEnum: list[text.JSON](`"a"`, `"b"`), ItemType: to(String)}},
			`{"title":"Cores","type":"array","items":{"type":"string","enum":["a","b"]}}`, nil},
		{"empty lists", PropertyInput{"p",
			PropertyPatch{Title: title, Type: to(String), Enum: list[text.JSON](), Operators: list[string]()}},
			`{"title":"Cores","type":"string","enum":[],"operators":[]}`, nil},
		{"all wrong",
			PropertyInput{"", PropertyPatch{Type: to(PropertyType("TEXT")), Default: to(text.JSON("5")),
				ItemEnum: list[text.JSON]("1", "1")}},
			"", []string{"input.itemEnum[1]", "input.itemType", "input.name", "input.title", "input.type"}},
		{"value that is no JSON",
			PropertyInput{"p", PropertyPatch{Title: title, Type: to(Integer), Enum: list[text.JSON]("1", "}")}},
			"", []string{"input.enum"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema, problems := c.input.Schema("input")
			wantPaths(t, "problems", problems, c.wrong...)
			if len(c.wrong) == 0 && schema.Keywords != c.want {
				t.Errorf("Keywords = %s, want %s", schema.Keywords, c.want)
			}
		})
	}
}

func TestPropertyPatchKeepsWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	current := ReadPropertySchema(`{"description":"d","title":"T","type":"string","confidential":true,"enum":["a"],"default":"b","operators":["<or>"]}`)
	title, kind := to("New"), to(Integer)
	for _, c := range []struct {
		name  string
		patch PropertyPatch
		want  text.JSON
		wrong []string
	}{
		{"nothing", PropertyPatch{}, current.Keywords, nil},
		{"title and description", PropertyPatch{Title: title, Description: Change[*string]{Set: true}},
			`{"title":"New","type":"string","confidential":true,"enum":["a"],"default":"b","operators":["<or>"]}`, nil},
		{"pattern goes before what follows it in the table",
			PropertyPatch{Pattern: title, Default: Change[*text.JSON]{Set: true}},
			`{"description":"d","title":"T","type":"string","pattern":"New","confidential":true,"enum":["a"],"operators":["<or>"]}`, nil},
		{"default set to what it was", PropertyPatch{Default: Change[*text.JSON]{true, current.Default}}, "",
			[]string{"input.default"}},
		{"title cleared", PropertyPatch{Title: Change[*string]{Set: true}}, "", []string{"input.title"}},
		{"another type", PropertyPatch{Type: kind}, "", []string{"input.default", "input.enum[0]"}},
		{"items on a string", PropertyPatch{ItemType: kind}, "", []string{"input.itemType"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema, problems := c.patch.Apply(current, "input")
			wantPaths(t, "problems", problems, c.wrong...)
			if len(c.wrong) == 0 && schema.Keywords != c.want {
				t.Errorf("Keywords = %s, want %s", schema.Keywords, c.want)
			}
		})
	}
}

func TestPropertyPatchChangesItems(t *testing.T) {
	t.Parallel()
	current := ReadPropertySchema(`{"title":"T","items":{"enum":["a"],"type":"string"},"type":"array"}`)
	schema, problems := PropertyPatch{ItemEnum: list[text.JSON](`"a"`, `"b"`)}.Apply(current, "input")
	wantPaths(t, "problems", problems)
	if !slices.Equal(schema.ItemEnum, []text.JSON{`"a"`, `"b"`}) ||
		schema.Keywords != `{"title":"T","items":{"enum":["a","b"],"type":"string"},"type":"array"}` {
		t.Errorf("schema %+v", schema)
	}
	schema, problems = PropertyPatch{ItemEnum: Change[[]text.JSON]{Set: true}}.Apply(current, "input")
	wantPaths(t, "problems", problems)
	if schema.ItemEnum != nil {
		t.Errorf("items' enum was not cleared: %s", schema.Keywords)
	}
}
