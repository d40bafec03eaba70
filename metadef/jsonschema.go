package metadef

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/text"
)

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
