package image

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
)

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
