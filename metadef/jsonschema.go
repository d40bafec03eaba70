package metadef

import (
	"bytes"
	"encoding/json"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/text"
)

// DocumentSchema is the JSON Schema (draft 2020-12) of a definition document,
// for editors, made from the keyword table by which ParseDocument judges. It
// accepts what ParseDocument reads without a problem, and refuses the rest as
// far as a JSON Schema can: it knows nothing of names that are there twice, tag
// parents, sizes in bytes and texts that no database can hold.
func DocumentSchema() string {
	root := jsonvalue.MapOf(
		"$schema", jsonvalue.Quote("https://json-schema.org/draft/2020-12/schema"),
		"title", jsonvalue.Quote("Metadata definitions of one namespace"),
		"type", `"object"`,
		"required", `["namespace"]`,
		"properties", documentProperties(),
		"if", `{"not":{"required":["display_name"]}}`,
		"then", jsonvalue.MapOf("properties", jsonvalue.MapOf("title", nullable(textSchema(0, text.MaxName, "")))),
		"$defs", jsonvalue.MapOf(
			"name", nameSchema(),
			"properties", jsonvalue.MapOf("type", `["object","null"]`, "maxProperties", jsonvalue.Number(MaxDefinitions),
				"propertyNames", reference("name"), "additionalProperties", reference("property")),
			"property", propertySchema(),
			"object", objectSchema(),
			"tag", jsonvalue.MapOf("type", `"object"`, "required", `["name"]`, "properties", jsonvalue.MapOf(
				"name", reference("name"),
				"parent", about("Another tag of the namespace.", "type", `["string","null"]`))),
			"association", associationSchema(),
		),
	)
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(root), "", "    "); err != nil {
		return ""
	}
	text.WriteByte('\n')
	return text.String()
}

// about is a schema with a description in front.
func about(description string, pairs ...text.JSON) text.JSON {
	return jsonvalue.MapOf(append([]text.JSON{"description", jsonvalue.Quote(description)}, pairs...)...)
}

func reference(name string) text.JSON {
	return jsonvalue.MapOf("$ref", jsonvalue.Quote("#/$defs/"+name))
}

// nullable takes null too, which counts as absent.
func nullable(schema text.JSON) text.JSON {
	return jsonvalue.MapOf("anyOf", jsonvalue.List([]text.JSON{schema, `{"type":"null"}`}))
}

func textSchema(least, most int, pattern string) text.JSON {
	pairs := []text.JSON{"type", `"string"`, "minLength", jsonvalue.Number(least), "maxLength", jsonvalue.Number(most)}
	if pattern != "" {
		pairs = append(pairs, "pattern", jsonvalue.Quote(pattern))
	}
	return jsonvalue.MapOf(pairs...)
}

// nameSchema is CheckName.
func nameSchema() text.JSON { return textSchema(1, text.MaxName, `^[^/\u0000-\u001f\u007f-\u009f]*$`) }

// listSchema is a list of as many members as a namespace may have.
func listSchema(item text.JSON) text.JSON {
	return jsonvalue.MapOf("type", `"array"`, "maxItems", jsonvalue.Number(MaxDefinitions), "items", item)
}

func documentProperties() text.JSON {
	return jsonvalue.MapOf(
		"namespace", reference("name"),
		"display_name", nullable(textSchema(0, text.MaxName, "")),
		"description", nullable(textSchema(0, MaxDescription, "")),
		"visibility", about("Who sees the namespace. A new namespace is public where the file does not say.", "enum", `["public","private",null]`),
		"protected", about("Whether nothing in the namespace can be deleted.", "type", `["boolean","null"]`),
		"owner", nullable(textSchema(0, MaxOwner, "")),
		"resource_type_associations", nullable(listSchema(reference("association"))),
		"properties", reference("properties"),
		"objects", jsonvalue.MapOf("anyOf", jsonvalue.List([]text.JSON{listSchema(reference("object")), reference("object"), `{"type":"null"}`})),
		"tags", nullable(listSchema(reference("tag"))),
	)
}

func associationSchema() text.JSON {
	free := nullable(textSchema(0, text.MaxName, `^[^\u0000-\u001f\u007f-\u009f]*$`))
	return jsonvalue.MapOf("type", `"object"`, "required", `["name"]`, "properties", jsonvalue.MapOf(
		"name", reference("name"),
		"prefix", about("What precedes the names of properties; it brings its separator, one of : _ . - /", "allOf", jsonvalue.List([]text.JSON{free})),
		"properties_target", about("Which of a resource's property sets is meant.", "allOf", jsonvalue.List([]text.JSON{free}))))
}

func objectSchema() text.JSON {
	return jsonvalue.MapOf("type", `"object"`, "required", `["name"]`, "properties", jsonvalue.MapOf(
		"name", reference("name"),
		"description", nullable(textSchema(0, MaxDefinition, "")),
		"required", about("Names of the properties that go with the object.", "type", `["array","null"]`, "items", `{"type":"string"}`),
		"properties", reference("properties")))
}

// propertySchema is the keyword table.
func propertySchema() text.JSON {
	deprecated := func(name, description string) jsonvalue.Member {
		return jsonvalue.Member{Key: name, Value: jsonvalue.Value{Raw: about(description, "deprecated", "true")}}
	}
	keywords := append(propertyKeywords.jsonSchema(true),
		deprecated("name", "The key of the property, which it repeats."),
		deprecated("defaultValue", "Another word for default."))
	return jsonvalue.MapOf("type", `"object"`, "required", `["type"]`, "properties", jsonvalue.Map(keywords), "additionalProperties", "false")
}

// jsonSchema returns the JSON Schema of each keyword. Null counts as absent
// where the keywords are nullable.
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
			pairs = append(pairs, "required", `["type"]`, "properties", jsonvalue.Map(k.members.jsonSchema(false)), "additionalProperties", "false")
		}
		members[i] = jsonvalue.Member{Key: k.name, Value: jsonvalue.Value{Raw: jsonvalue.MapOf(pairs...)}}
	}
	return members
}
