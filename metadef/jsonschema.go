package metadef

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/cadastre-dev/cadastre/text"
)

// DocumentSchema is the JSON Schema (draft 2020-12) of a definition document,
// for editors, made from the keyword table by which ParseDocument judges. It
// accepts what ParseDocument reads without a problem, and refuses the rest as
// far as a JSON Schema can: it knows nothing of names that are there twice, tag
// parents, sizes in bytes and texts that no database can hold.
func DocumentSchema() string {
	root := mapOf(
		"$schema", quote("https://json-schema.org/draft/2020-12/schema"),
		"title", quote("Metadata definitions of one namespace"),
		"type", `"object"`,
		"required", `["namespace"]`,
		"properties", documentProperties(),
		"if", `{"not":{"required":["display_name"]}}`,
		"then", mapOf("properties", mapOf("title", nullable(textSchema(0, text.MaxName, "")))),
		"$defs", mapOf(
			"name", nameSchema(),
			"properties", mapOf("type", `["object","null"]`, "maxProperties", text.JSON(strconv.Itoa(MaxDefinitions)),
				"propertyNames", reference("name"), "additionalProperties", reference("property")),
			"property", propertySchema(),
			"object", objectSchema(),
			"tag", mapOf("type", `"object"`, "required", `["name"]`, "properties", mapOf(
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
	return mapOf(append([]text.JSON{"description", quote(description)}, pairs...)...)
}

func reference(name string) text.JSON { return mapOf("$ref", quote("#/$defs/"+name)) }

// nullable takes null too, which counts as absent.
func nullable(schema text.JSON) text.JSON {
	return mapOf("anyOf", listValue([]text.JSON{schema, `{"type":"null"}`}))
}

func textSchema(least, most int, pattern string) text.JSON {
	pairs := []text.JSON{"type", `"string"`, "minLength", text.JSON(strconv.Itoa(least)), "maxLength", text.JSON(strconv.Itoa(most))}
	if pattern != "" {
		pairs = append(pairs, "pattern", quote(pattern))
	}
	return mapOf(pairs...)
}

// nameSchema is CheckName.
func nameSchema() text.JSON { return textSchema(1, text.MaxName, `^[^/\u0000-\u001f\u007f-\u009f]*$`) }

// listSchema is a list of as many members as a namespace may have.
func listSchema(item text.JSON) text.JSON {
	return mapOf("type", `"array"`, "maxItems", text.JSON(strconv.Itoa(MaxDefinitions)), "items", item)
}

func documentProperties() text.JSON {
	return mapOf(
		"namespace", reference("name"),
		"display_name", nullable(textSchema(0, text.MaxName, "")),
		"description", nullable(textSchema(0, MaxDescription, "")),
		"visibility", about("Who sees the namespace. A new namespace is public where the file does not say.", "enum", `["public","private",null]`),
		"protected", about("Whether nothing in the namespace can be deleted.", "type", `["boolean","null"]`),
		"owner", nullable(textSchema(0, MaxOwner, "")),
		"resource_type_associations", nullable(listSchema(reference("association"))),
		"properties", reference("properties"),
		"objects", mapOf("anyOf", listValue([]text.JSON{listSchema(reference("object")), reference("object"), `{"type":"null"}`})),
		"tags", nullable(listSchema(reference("tag"))),
	)
}

func associationSchema() text.JSON {
	free := nullable(textSchema(0, text.MaxName, `^[^\u0000-\u001f\u007f-\u009f]*$`))
	return mapOf("type", `"object"`, "required", `["name"]`, "properties", mapOf(
		"name", reference("name"),
		"prefix", about("What precedes the names of properties; it brings its separator, one of : _ . - /", "allOf", listValue([]text.JSON{free})),
		"properties_target", about("Which of a resource's property sets is meant.", "allOf", listValue([]text.JSON{free}))))
}

func objectSchema() text.JSON {
	return mapOf("type", `"object"`, "required", `["name"]`, "properties", mapOf(
		"name", reference("name"),
		"description", nullable(textSchema(0, MaxDefinition, "")),
		"required", about("Names of the properties that go with the object.", "type", `["array","null"]`, "items", `{"type":"string"}`),
		"properties", reference("properties")))
}

// propertySchema is the keyword table.
func propertySchema() text.JSON {
	var keywords []jsonMember
	for _, k := range propertyKeywords {
		description := []text.JSON{"description", quote(k.about)}
		if k.file {
			description = append(description, "deprecated", "true")
		}
		keywords = append(keywords, memberOf(k.name, mapOf(append(description, k.shape.schema()...)...)))
	}
	keywords = append(keywords,
		memberOf("name", about("The key of the property, which it repeats.", "deprecated", "true")),
		memberOf("defaultValue", about("Another word for default.", "deprecated", "true")))
	return mapOf("type", `"object"`, "required", `["type"]`, "properties", writeMembers(keywords), "additionalProperties", "false")
}

// schema says what a keyword's value must be; null counts as absent.
func (s shape) schema() []text.JSON {
	members := text.JSON(strconv.Itoa(MaxEnumMembers))
	switch s {
	case shapeText, shapePattern:
		return []text.JSON{"type", `["string","null"]`}
	case shapeType:
		return []text.JSON{"enum", textsValue(typeNames())}
	case shapeItems:
		return []text.JSON{"type", `["object","null"]`, "required", `["type"]`, "properties", mapOf(
			"type", mapOf("enum", textsValue(typeNames())),
			"enum", mapOf("type", `"array"`, "maxItems", members)), "additionalProperties", "false"}
	case shapeAnythings:
		return []text.JSON{"type", `["array","null"]`, "maxItems", members}
	case shapeTexts, shapeUniqueText:
		return []text.JSON{"type", `["array","null"]`, "maxItems", members, "items", `{"type":"string"}`}
	case shapeNumber:
		return []text.JSON{"type", `["number","null"]`, "minimum", "-1.7976931348623157e308", "maximum", "1.7976931348623157e308"}
	case shapeCount:
		return []text.JSON{"type", `["integer","null"]`, "minimum", "0"}
	case shapeBoolean:
		return []text.JSON{"type", `["boolean","null"]`}
	}
	return nil
}
