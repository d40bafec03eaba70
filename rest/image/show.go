package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/text"
)

// The forms of definitions in answers. Absent attributes are left out, as in
// the reference.

type namespaceForm struct {
	Namespace    string            `json:"namespace"`
	DisplayName  string            `json:"display_name,omitempty"`
	Description  *string           `json:"description,omitempty"`
	Visibility   string            `json:"visibility"`
	Protected    bool              `json:"protected"`
	Owner        string            `json:"owner"`
	CreatedAt    string            `json:"created_at"`
	UpdatedAt    string            `json:"updated_at"`
	Associations []associationForm `json:"resource_type_associations,omitzero"`
	Properties   propertyForms     `json:"properties,omitzero"`
	Objects      []objectForm      `json:"objects,omitzero"`
	Tags         []tagName         `json:"tags,omitzero"`
	Self         string            `json:"self"`
	Schema       string            `json:"schema"`
}

type associationForm struct {
	Name             string  `json:"name"`
	Prefix           *string `json:"prefix,omitempty"`
	PropertiesTarget *string `json:"properties_target,omitempty"`
	CreatedAt        string  `json:"created_at"`
	UpdatedAt        string  `json:"updated_at"`
}

type objectForm struct {
	Name        string        `json:"name"`
	Description *string       `json:"description,omitempty"`
	Required    []string      `json:"required"`
	Properties  propertyForms `json:"properties"`
	CreatedAt   string        `json:"created_at"`
	UpdatedAt   string        `json:"updated_at"`
	Self        string        `json:"self"`
	Schema      string        `json:"schema"`
}

type tagName struct {
	Name string `json:"name"`
}

// datedName is a tag or a resource type.
type datedName struct {
	Name      string `json:"name"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

// timeForm returns a time as the Image service writes it.
func timeForm(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func formOfNamespace(n *metadef.Namespace) namespaceForm {
	return namespaceForm{
		Namespace: n.Name, DisplayName: n.Title, Description: n.Description,
		Visibility: strings.ToLower(string(n.Visibility)), Protected: n.Protected, Owner: n.Owner,
		CreatedAt: timeForm(n.CreatedAt), UpdatedAt: timeForm(n.UpdatedAt),
		Self: namespacePath(n.Name), Schema: "/v2/schemas/metadefs/namespace",
	}
}

func namespacePath(name string) string { return "/v2/metadefs/namespaces/" + url.PathEscape(name) }

func formOfAssociation(a *metadef.ResourceTypeAssociation) associationForm {
	return associationForm{a.ResourceTypeName, a.Prefix, a.PropertiesTarget,
		timeForm(a.CreatedAt), timeForm(a.UpdatedAt)}
}

func (d *door) formOfObject(namespace string, o *metadef.ObjectDefinition,
	properties []*metadef.PropertyDefinition) objectForm {
	return objectForm{
		Name: o.Name, Description: o.Description, Required: append([]string{}, o.Required...),
		Properties: d.formsOf(properties), CreatedAt: timeForm(o.CreatedAt), UpdatedAt: timeForm(o.UpdatedAt),
		Self: namespacePath(namespace) + "/objects/" + url.PathEscape(o.Name), Schema: "/v2/schemas/metadefs/object",
	}
}

func formOfTag(t *metadef.Tag) datedName {
	return datedName{t.Name, timeForm(t.CreatedAt), timeForm(t.UpdatedAt)}
}

func namesOfTags(tags []*metadef.Tag) []tagName {
	return lists.Map(tags, func(t *metadef.Tag) tagName { return tagName{t.Name} })
}

// propertyForms are definitions by name, in their order.
type propertyForms []namedForm

type namedForm struct {
	name     string
	keywords json.RawMessage
}

// MarshalJSON writes the definitions as one object.
func (f propertyForms) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, form := range f {
		if i > 0 {
			out.WriteByte(',')
		}
		name, _ := json.Marshal(form.name) // a string always has JSON
		out.Write(name)
		out.WriteByte(':')
		out.Write(form.keywords)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// namedForms returns the definitions by name. Each also has its name as a member.
func (d *door) namedForms(properties []*metadef.PropertyDefinition) propertyForms {
	return lists.Map(properties, func(p *metadef.PropertyDefinition) namedForm {
		return namedForm{p.Name, d.formOfProperty(p.Name, p.Keywords)}
	})
}

func (d *door) formsOf(properties []*metadef.PropertyDefinition) propertyForms {
	return lists.Map(properties, func(p *metadef.PropertyDefinition) namedForm {
		return namedForm{p.Name, d.keywordsOf(p.Keywords)}
	})
}

// keywordsOf returns the keywords of a definition. With asReference, a default
// that is a boolean or a number becomes a string.
func (d *door) keywordsOf(keywords text.JSON) json.RawMessage {
	if !d.asReference {
		return json.RawMessage(keywords)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(keywords), &members); err != nil || members["default"] == nil {
		return json.RawMessage(keywords)
	}
	switch value := string(members["default"]); {
	case value == "true":
		members["default"] = json.RawMessage(`"True"`)
	case value == "false":
		members["default"] = json.RawMessage(`"False"`)
	case value[0] == '-' || '0' <= value[0] && value[0] <= '9':
		members["default"] = json.RawMessage(`"` + value + `"`)
	}
	written, _ := json.Marshal(members) // each is JSON
	return written
}

// formOfProperty returns a property with its name among the keywords.
func (d *door) formOfProperty(name string, keywords text.JSON) json.RawMessage {
	quoted, _ := json.Marshal(name) // a string always has JSON
	rest := bytes.TrimPrefix(bytes.TrimSpace(d.keywordsOf(keywords)), []byte("{"))
	out := append([]byte(`{"name":`), quoted...)
	if rest := bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// object is a JSON object of a schema.
type object = map[string]any

// schemas returns the JSON Schemas of the door by name. They are made from the
// schema of definition files: clients check answers with them.
func schemas() map[string]object {
	var document struct {
		Properties object
		Defs       map[string]object `json:"$defs"`
	}
	text := strings.ReplaceAll(metadef.DocumentSchema(), "#/$defs/", "#/definitions/")
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		panic(fmt.Sprintf("the schema of documents: %v", err)) // the schema is a constant
	}
	document.Defs["property"]["required"] = []string{"title", "type"} // files may lack a title
	definitions := object{}
	for name, schema := range document.Defs {
		definitions[name] = schema
	}
	made := map[string]object{}
	add := func(k kind, plural string, properties object, required []string, links bool) {
		single := object{"name": k.singular(), "properties": withReadOnly(properties, k.readOnly), "required": required,
			"additionalProperties": false, "definitions": definitions}
		made[k.singular()], made[plural] = single, collection(plural, single, links)
	}
	of := func(name string) object { return document.Defs[name]["properties"].(object) }
	property := maps.Clone(of("property"))
	property["name"] = object{"type": "string", "maxLength": 80}
	add(aNamespace, "namespaces", document.Properties, []string{"namespace"}, true)
	add(anObject, "objects", of("object"), []string{"name"}, true)
	add(aProperty, "properties", property, []string{"type", "title"}, false)
	add(aTag, "tags", of("tag"), []string{"name"}, false)
	add(anAssociation, "resource_types", of("association"), []string{"name"}, false)
	made["properties"]["properties"] = object{"properties": object{"type": "object",
		"additionalProperties": made["property"]}}
	return made
}

// singular returns the name of the schema of one thing.
func (k kind) singular() string {
	if k.name == anAssociation.name {
		return "resource_type"
	}
	return k.name
}

// withReadOnly returns a copy of properties with read-only ones of these names.
func withReadOnly(properties object, names []string) object {
	all := maps.Clone(properties)
	for _, name := range names {
		attribute := object{"type": "string", "readOnly": true}
		if strings.HasSuffix(name, "_at") {
			attribute["format"] = "date-time"
		}
		all[name] = attribute
	}
	return all
}

// collection returns the schema of a list.
func collection(name string, of object, links bool) object {
	inner := maps.Clone(of)
	delete(inner, "definitions")
	list := object{"name": name, "properties": object{name: object{"type": "array", "items": inner}},
		"definitions": of["definitions"]}
	if links {
		properties := list["properties"].(object)
		for _, rel := range []string{"first", "next", "schema"} {
			properties[rel] = object{"type": "string"}
		}
		list["links"] = []object{{"rel": "first", "href": "{first}"}, {"rel": "next", "href": "{next}"},
			{"rel": "describedby", "href": "{schema}"}}
	}
	return list
}

// showSchema answers a JSON Schema.
func (d *door) showSchema(_ context.Context, r *rest.Request) (rest.Answer, error) {
	schema, ok := d.schemas[r.Path["schema"]]
	if !ok {
		return rest.Answer{}, problem.Refuse(problem.ErrNotFound, "schema %q does not exist", r.Path["schema"])
	}
	return rest.Answer{Status: http.StatusOK, Body: schema}, nil
}
