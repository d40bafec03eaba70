package metadef

import (
	"bytes"
	"encoding/json"

	"github.com/cadastre-dev/cadastre/text"
)

// Text is the definition file of the document: the keys of each map in a fixed
// order, lists and properties in the document's own, the keywords of each
// property verbatim, indented by four spaces, with a newline at the end. Equal
// documents have equal texts, and reading the text gives the document again.
func (d *Document) Text() string {
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(d.compact()), "", "    "); err != nil {
		return ""
	}
	text.WriteByte('\n')
	return text.String()
}

// MarshalJSON gives the document as one line of JSON.
func (d *Document) MarshalJSON() ([]byte, error) { return []byte(d.compact()), nil }

// MarshalJSON gives the object as one line of JSON.
func (o DocumentObject) MarshalJSON() ([]byte, error) { return []byte(o.compact()), nil }

// compact is the file's text without white space.
func (d *Document) compact() text.JSON {
	return mapOf(
		"namespace", quote(d.Name),
		"display_name", textValue(d.DisplayName),
		"description", textValue(d.Description),
		"visibility", visibilityValue(d.Visibility),
		"protected", booleanValue(d.Protected),
		"owner", textValue(d.Owner),
		"resource_type_associations", textsOf(d.Associations, DocumentAssociation.compact),
		"properties", compactProperties(d.Properties),
		"objects", textsOf(d.Objects, DocumentObject.compact),
		"tags", textsOf(d.Tags, DocumentTag.compact))
}

// mapOf is a map of keys, each followed by its value; a key without a value is
// left out.
func mapOf(pairs ...text.JSON) text.JSON {
	members := make([]jsonMember, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			members = append(members, memberOf(string(pairs[i]), pairs[i+1]))
		}
	}
	return writeMembers(members)
}

func memberOf(key string, value text.JSON) jsonMember {
	return jsonMember{key: key, value: jsonValue{raw: value}}
}

// textsOf is the list of what each item is written as; empty without items.
func textsOf[T any](items []T, write func(T) text.JSON) text.JSON {
	if len(items) == 0 {
		return ""
	}
	texts := make([]text.JSON, len(items))
	for i, item := range items {
		texts[i] = write(item)
	}
	return listValue(texts)
}

func compactProperties(properties []DocumentProperty) text.JSON {
	if len(properties) == 0 {
		return ""
	}
	members := make([]jsonMember, len(properties))
	for i, p := range properties {
		members[i] = memberOf(p.Name, p.Keywords)
	}
	return writeMembers(members)
}

func (a DocumentAssociation) compact() text.JSON {
	return mapOf("name", quote(a.ResourceType), "prefix", textValue(a.Prefix), "properties_target", textValue(a.PropertiesTarget))
}

func (o DocumentObject) compact() text.JSON {
	return mapOf("name", quote(o.Name), "description", textValue(o.Description),
		"required", textsOf(o.Required, quote), "properties", compactProperties(o.Properties))
}

func (t DocumentTag) compact() text.JSON {
	if t.Parent == "" {
		return mapOf("name", quote(t.Name))
	}
	return mapOf("name", quote(t.Name), "parent", quote(t.Parent))
}
