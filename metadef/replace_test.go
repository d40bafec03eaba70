package metadef

import (
	"testing"

	"github.com/cadastre-dev/cadastre/text"
)

// TestAPatchOfASchemaReplacesAnother checks that the patch of a schema turns
// any other schema into it: every keyword is set or cleared.
func TestAPatchOfASchemaReplacesAnother(t *testing.T) {
	t.Parallel()
	schemas := map[string]text.JSON{
		"a string":  `{"title":"S","description":"d","type":"string","enum":["a","b"],"enumLabels":{"a":"A"},"default":"a","minLength":1,"maxLength":3,"pattern":"a","readonly":true,"operators":["<or>"]}`,
		"a number":  `{"title":"N","type":"number","default":1.5,"minimum":0.5,"maximum":9.9}`,
		"an array":  `{"title":"A","type":"array","items":{"type":"string","enum":["a"]},"minItems":1,"maxItems":2,"uniqueItems":true,"additionalItems":false}`,
		"the least": `{"title":"L","type":"boolean"}`,
	}
	parsed := func(name string) PropertySchema {
		schema, _, problems := ParsePropertySchema(schemas[name], "p", "", Strict)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		return schema
	}
	for from := range schemas {
		for to := range schemas {
			wanted := parsed(to)
			got, problems := wanted.Patch().Apply(parsed(from), "input")
			again, _ := wanted.Patch().Apply(PropertySchema{Keywords: "{}"}, "input")
			if len(problems) > 0 || got.Keywords != again.Keywords && len(got.Keywords) != len(again.Keywords) {
				t.Errorf("%s into %s: %s, want %s %v", from, to, got.Keywords, again.Keywords, problems)
			}
			if again.Keywords != wanted.Keywords {
				t.Errorf("a new %s: %s, want %s", to, again.Keywords, wanted.Keywords)
			}
		}
	}
}
