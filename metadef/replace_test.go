package metadef

import (
	"testing"

	"github.com/cadastre-dev/cadastre/text"
)

// TestAPatchOfASchemaReplacesAnother checks that the patch of a schema turns
// any other schema into it, with its keywords verbatim.
func TestAPatchOfASchemaReplacesAnother(t *testing.T) {
	t.Parallel()
	schemas := map[string]text.JSON{
		"a string":  `{"title":"S","description":"d","type":"string","enum":["a","b"],"enumLabels":{"a":"A"},"default":"a","minLength":1,"maxLength":3,"pattern":"a","readonly":true,"operators":["<or>"]}`,
		"a number":  `{"title":"N","type":"number","default":1.5,"minimum":0.5,"maximum":9.9}`,
		"an array":  `{"title":"A","type":"array","items":{"type":"string","enum":["a"]},"minItems":1,"maxItems":2,"uniqueItems":true,"additionalItems":false}`,
		"the least": `{"title":"L","type":"boolean"}`,
		"verbatim": `{"type":"integer","title":"V","maximum":9007199254740993,"minimum":1.0,"enum":["<"],` +
			`"confidential":true,"required":["V"],"items":{"type":"string"},"minLength":9000000000}`,
	}
	parsed := func(name string) PropertySchema {
		schema, _, problems := ParsePropertySchema(schemas[name], "p", "", Lenient)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		return schema
	}
	for from := range schemas {
		for to := range schemas {
			wanted := parsed(to)
			got, problems := wanted.Patch().Apply(parsed(from), "input")
			if len(problems) > 0 || got.Keywords != wanted.Keywords {
				t.Errorf("%s into %s: %s, want %s %v", from, to, got.Keywords, wanted.Keywords, problems)
			}
		}
	}
}
