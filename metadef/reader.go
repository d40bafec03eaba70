package metadef

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// documentReader reads the maps of a definition file.
type documentReader struct{ *findings }

func (r documentReader) namespace(value jsonValue) *Document {
	document := &Document{}
	_, named := value.member("namespace")
	for _, m := range value.members {
		at := problem.Join("$", m.key)
		if m.repeated || m.value.kind == jsonNull && m.key != "namespace" {
			if !m.repeated {
				r.warn(at, "is null, which counts as absent")
			}
			continue
		}
		switch m.key {
		case "namespace":
			document.Name = r.text(m.value, at)
		case "display_name":
			document.DisplayName = r.displayName(m.value, at)
		case "title":
			r.titleOfNamespace(document, value, m.value, at)
		case "description":
			document.Description = r.optionalText(m.value, at)
		case "visibility":
			document.Visibility = r.visibility(m.value, at)
		case "protected":
			if expect(m.value, jsonBoolean, at, r.findings) {
				document.Protected = m.value.asBoolean()
			}
		case "owner":
			if owner := r.text(m.value, at); owner != "" {
				document.Owner = &owner
			} else if m.value.kind == jsonText {
				r.warn(at, "is empty, which counts as absent")
			}
		case "resource_type_associations":
			document.Associations = r.associations(m.value, at)
		case "properties":
			document.Properties = r.properties(m.value, at)
		case "objects":
			document.Objects = r.objects(m.value, at, document.Name)
		case "tags":
			document.Tags = r.tags(m.value, at)
		default:
			r.leftOut(m.key, at, documentKeys)
		}
	}
	if !named {
		if _, several := value.member("namespaces"); several {
			r.problem("$.namespace", "is required: a document defines one namespace, and this one lists several")
		} else {
			r.problem("$.namespace", "is required")
		}
	} else {
		checkNamespaceFields(document, "$", r.findings)
	}
	return document
}

// documentKeys, objectKeys, tagKeys and associationKeys are what the maps of a
// file have.
var (
	documentKeys = []string{"namespace", "display_name", "description", "visibility", "protected", "owner",
		"resource_type_associations", "properties", "objects", "tags"}
	objectKeys      = []string{"name", "description", "required", "properties"}
	tagKeys         = []string{"name", "parent"}
	associationKeys = []string{"name", "prefix", "properties_target"}
)

// leftOut warns of a key that means nothing: what the reference system's API
// adds to its answers, or an unknown one.
func (r documentReader) leftOut(key, at string, known []string) {
	switch key {
	case "created_at", "updated_at", "self", "schema", "first", "next":
		r.warn(at, "is read-only; left out")
		return
	}
	if near := text.Nearest(key, known); near != "" {
		r.warn(at, "is unknown, left out; meant is perhaps %s", near)
		return
	}
	r.warn(at, "is unknown; left out")
}

func (r documentReader) text(value jsonValue, at string) string {
	if !expect(value, jsonText, at, r.findings) {
		return ""
	}
	return value.text
}

func (r documentReader) optionalText(value jsonValue, at string) *string {
	if !expect(value, jsonText, at, r.findings) {
		return nil
	}
	return &value.text
}

func (r documentReader) displayName(value jsonValue, at string) *string {
	if text := r.text(value, at); text != "" {
		return &text
	}
	return nil
}

// titleOfNamespace reads a namespace's title as its display name, where it has
// none.
func (r documentReader) titleOfNamespace(document *Document, namespace, title jsonValue, at string) {
	if _, both := namespace.member("display_name"); both {
		r.warn(at, "is unknown and display_name is there; left out")
		return
	}
	r.warn(at, "is unknown; read as display_name")
	document.DisplayName = r.displayName(title, at)
}

func (r documentReader) visibility(value jsonValue, at string) *access.Visibility {
	visibility := access.Private
	switch {
	case value.kind == jsonText && value.text == "public":
		visibility = access.Public
	case value.kind == jsonText && value.text == "private":
	default:
		r.problem(at, "must be public or private, is %s", Shorten(string(value.raw)))
		return nil
	}
	return &visibility
}

func (r documentReader) properties(value jsonValue, at string) []DocumentProperty {
	if !expect(value, jsonMap, at, r.findings) || !checkFew(len(value.members), at, r.findings) {
		return nil
	}
	var properties []DocumentProperty
	for _, m := range value.members {
		if m.repeated {
			continue
		}
		path := problem.Join(at, m.key)
		text.CheckName(&r.problems, path, m.key)
		properties = append(properties, DocumentProperty{m.key, parseProperty(m.value, m.key, path, r.findings)})
	}
	return properties
}

// objects reads the list of objects, or the one map that stands for a list of
// one in the specification's own examples.
func (r documentReader) objects(value jsonValue, at, namespace string) []DocumentObject {
	if value.kind == jsonMap {
		r.warn(at, "is one map; read as a list of one object")
		object, ok := r.object(value, at, namespace)
		if !ok {
			return nil
		}
		return []DocumentObject{object}
	}
	var objects []DocumentObject
	var names, paths []string
	for path, item := range r.maps(value, at) {
		if object, ok := r.object(item, path, namespace); ok {
			objects = append(objects, object)
			names, paths = append(names, object.Name), append(paths, problem.Join(path, "name"))
		}
	}
	checkOnce(names, paths, "object", r.findings)
	return objects
}

func (r documentReader) object(value jsonValue, at, namespace string) (DocumentObject, bool) {
	var object DocumentObject
	var required jsonValue
	for _, m := range value.members {
		inner := problem.Join(at, m.key)
		if m.repeated || m.value.kind == jsonNull && m.key != "name" {
			if !m.repeated {
				r.warn(inner, "is null, which counts as absent")
			}
			continue
		}
		switch m.key {
		case "name":
			object.Name = r.text(m.value, inner)
		case "description":
			object.Description = r.optionalText(m.value, inner)
		case "required":
			required = m.value
		case "properties":
			object.Properties = r.properties(m.value, inner)
		case "namespace":
			if m.value.text == namespace {
				r.warn(inner, "repeats the namespace; left out")
			} else {
				r.warn(inner, "is not the namespace of the document, which holds; left out")
			}
		default:
			r.leftOut(m.key, inner, objectKeys)
		}
	}
	if required.kind != 0 {
		object.Required = r.required(required, problem.Join(at, "required"), object.Properties)
	}
	if !r.named(value, at) {
		return object, false
	}
	checkObjectFields(object, at, r.findings)
	return object, true
}

// named notes a missing name.
func (r documentReader) named(value jsonValue, at string) bool {
	name, ok := value.member("name")
	if !ok {
		r.problem(problem.Join(at, "name"), "is required")
	}
	return ok && name.kind == jsonText
}

func (r documentReader) required(value jsonValue, at string, properties []DocumentProperty) []string {
	if !expect(value, jsonList, at, r.findings) {
		return nil
	}
	var names, paths []string
	for i, item := range value.list {
		if expect(item, jsonText, problem.Index(at, i), r.findings) {
			names, paths = append(names, item.text), append(paths, problem.Index(at, i))
		}
	}
	return checkRequired(names, paths, properties, r.findings)
}
