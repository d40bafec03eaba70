package metadef

import (
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/text"
)

func TestPropertyInputWritesKeywordsInTheirFixedOrder(t *testing.T) {
	t.Parallel()
	title, least, most, yes, item := "Cores", 0.5, 9.9, true, String
	five := text.JSON("5")
	for _, c := range []struct {
		name  string
		input PropertyInput
		want  text.JSON
		wrong []string
	}{
		{"number", PropertyInput{Name: "p", ReadOnly: &yes, Maximum: &most, Minimum: &least, Type: Number, Title: &title, Operators: []string{"<or>", "<all-in>"}},
			`{"title":"Cores","type":"number","minimum":0.5,"maximum":9.9,"readonly":true,"operators":["<or>","<all-in>"]}`, nil},
		{"array", PropertyInput{Name: "p", Title: &title, Type: Array, ItemEnum: []text.JSON{`"a"`, `"b"`}, ItemType: &item},
			`{"title":"Cores","type":"array","items":{"type":"string","enum":["a","b"]}}`, nil},
		{"empty lists", PropertyInput{Name: "p", Title: &title, Type: String, Enum: []text.JSON{}, Operators: []string{}},
			`{"title":"Cores","type":"string","enum":[],"operators":[]}`, nil},
		{"all wrong", PropertyInput{Name: "", Type: "TEXT", Default: &five, ItemEnum: []text.JSON{"1", "1"}},
			"", []string{"input.itemEnum[1]", "input.itemType", "input.name", "input.title", "input.type"}},
		{"value that is no JSON", PropertyInput{Name: "p", Title: &title, Type: Integer, Enum: []text.JSON{"1", "}"}},
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
	title, kind := "New", Integer
	for _, c := range []struct {
		name  string
		patch PropertyPatch
		want  text.JSON
		wrong []string
	}{
		{"nothing", PropertyPatch{}, current.Keywords, nil},
		{"title and description", PropertyPatch{Title: given(&title, true), Description: given[*string](nil, true)},
			`{"title":"New","type":"string","confidential":true,"enum":["a"],"default":"b","operators":["<or>"]}`, nil},
		{"pattern goes before what follows it in the table", PropertyPatch{Pattern: given(&title, true), Default: given[*text.JSON](nil, true)},
			`{"description":"d","title":"T","type":"string","pattern":"New","confidential":true,"enum":["a"],"operators":["<or>"]}`, nil},
		{"default set to what it was", PropertyPatch{Default: given(current.Default, true)}, "", []string{"input.default"}},
		{"title cleared", PropertyPatch{Title: given[*string](nil, true)}, "", []string{"input.title"}},
		{"another type", PropertyPatch{Type: given(&kind, true)}, "", []string{"input.default", "input.enum[0]"}},
		{"items on a string", PropertyPatch{ItemType: given(&kind, true)}, "", []string{"input.itemType"}},
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
	schema, problems := PropertyPatch{ItemEnum: given([]text.JSON{`"a"`, `"b"`}, true)}.Apply(current, "input")
	wantPaths(t, "problems", problems)
	if !slices.Equal(schema.ItemEnum, []text.JSON{`"a"`, `"b"`}) || schema.Keywords != `{"title":"T","items":{"enum":["a","b"],"type":"string"},"type":"array"}` {
		t.Errorf("schema %+v", schema)
	}
	schema, problems = PropertyPatch{ItemEnum: given[[]text.JSON](nil, true)}.Apply(current, "input")
	wantPaths(t, "problems", problems)
	if schema.ItemEnum != nil {
		t.Errorf("items' enum was not cleared: %s", schema.Keywords)
	}
}
