package catalog

import (
	"bytes"
	"encoding/json"
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
func (d *Document) compact() JSON {
	members := []jsonMember{memberOf("namespace", quote(d.Name))}
	add := func(key string, value JSON) {
		if value != "" {
			members = append(members, memberOf(key, value))
		}
	}
	add("display_name", textValue(d.DisplayName))
	add("description", textValue(d.Description))
	if d.Visibility != nil && *d.Visibility == Public {
		add("visibility", `"public"`)
	} else if d.Visibility != nil {
		add("visibility", `"private"`)
	}
	add("protected", booleanValue(d.Protected))
	add("owner", textValue(d.Owner))
	add("resource_type_associations", textsOf(d.Associations, DocumentAssociation.compact))
	add("properties", compactProperties(d.Properties))
	add("objects", textsOf(d.Objects, DocumentObject.compact))
	add("tags", textsOf(d.Tags, DocumentTag.compact))
	return writeMembers(members)
}

func memberOf(key string, value JSON) jsonMember {
	return jsonMember{key: key, value: jsonValue{raw: value}}
}

// textsOf is the list of what each item is written as; empty without items.
func textsOf[T any](items []T, write func(T) JSON) JSON {
	if len(items) == 0 {
		return ""
	}
	texts := make([]JSON, len(items))
	for i, item := range items {
		texts[i] = write(item)
	}
	return listValue(texts)
}

func compactProperties(properties []DocumentProperty) JSON {
	if len(properties) == 0 {
		return ""
	}
	members := make([]jsonMember, len(properties))
	for i, p := range properties {
		members[i] = memberOf(p.Name, p.Keywords)
	}
	return writeMembers(members)
}

func (a DocumentAssociation) compact() JSON {
	members := []jsonMember{memberOf("name", quote(a.ResourceType))}
	if a.Prefix != nil {
		members = append(members, memberOf("prefix", textValue(a.Prefix)))
	}
	if a.PropertiesTarget != nil {
		members = append(members, memberOf("properties_target", textValue(a.PropertiesTarget)))
	}
	return writeMembers(members)
}

func (o DocumentObject) compact() JSON {
	members := []jsonMember{memberOf("name", quote(o.Name))}
	if o.Description != nil {
		members = append(members, memberOf("description", textValue(o.Description)))
	}
	if len(o.Required) > 0 {
		members = append(members, memberOf("required", textsValue(o.Required)))
	}
	if len(o.Properties) > 0 {
		members = append(members, memberOf("properties", compactProperties(o.Properties)))
	}
	return writeMembers(members)
}

func (t DocumentTag) compact() JSON {
	members := []jsonMember{memberOf("name", quote(t.Name))}
	if t.Parent != "" {
		members = append(members, memberOf("parent", quote(t.Parent)))
	}
	return writeMembers(members)
}
