package metadef

import (
	"iter"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// documentReader reads the maps of a definition file.
type documentReader struct {
	*checker
	into *Document // the content read so far
}

// fileKey is a possible key of a map in a file.
type fileKey struct {
	word string
	read func(value jsonvalue.Value, path string)
}

// fields reads the fields of a map. The first field is required; named reports
// whether it is a string. Null counts as absent, except in the first. Unknown
// keys are dropped; see leftOut.
func (r documentReader) fields(value jsonvalue.Value, path string, fields ...fileKey) (named bool) {
	known := make([]string, len(fields))
	readers := map[string]func(jsonvalue.Value, string){}
	for i, f := range fields {
		known[i], readers[f.word] = f.word, f.read
	}
	for _, m := range value.Members {
		at := problem.Join(path, m.Key)
		switch read := readers[m.Key]; {
		case read == nil:
			r.leftOut(m.Key, at, known)
		case m.Value.Kind == jsonvalue.KindNull && m.Key != known[0]:
			r.warn(at, "is null; read as absent")
		default:
			read(m.Value, at)
		}
	}
	name, ok := value.Member(known[0])
	if !ok {
		r.problem(problem.Join(path, known[0]), "is required")
	}
	return ok && name.Kind == jsonvalue.KindText
}

// leftOut reports a dropped key: from a program as a problem, in a file as a
// warning. A read-only key is one that the reference system's API adds to its
// answers.
func (r documentReader) leftOut(key, path string, known []string) {
	if r.isFromProgram {
		r.problem(path, "is unknown; known are %s", strings.Join(known, ", "))
		return
	}
	switch key {
	case "created_at", "updated_at", "self", "schema", "first", "next":
		r.warn(path, "is read-only; left out")
		return
	}
	if near := text.Nearest(key, known); near != "" {
		r.warn(path, "is unknown, left out; did you mean %s?", near)
		return
	}
	r.warn(path, "is unknown; left out")
}

func (r documentReader) readNamespace(value jsonvalue.Value) {
	d := r.into
	fields := []fileKey{
		{"namespace", r.readText(&d.Name)},
		{"display_name", r.readNonEmpty(&d.DisplayName)},
		{"description", r.readOptional(&d.Description)},
		{"visibility", func(value jsonvalue.Value, path string) { d.Visibility = r.readVisibility(value, path) }},
		{"protected", func(value jsonvalue.Value, path string) {
			if r.expect(value, jsonvalue.KindBoolean, path) {
				d.Protected = new(value.Raw == "true")
			}
		}},
		{"owner", r.readNonEmpty(&d.Owner)},
		{"resource_type_associations", func(value jsonvalue.Value, path string) {
			d.Associations = r.readAssociations(value, path)
		}},
		{"properties", func(value jsonvalue.Value, path string) { d.Properties = r.readProperties(value, path) }},
		{"objects", func(value jsonvalue.Value, path string) { d.Objects = r.readObjects(value, path) }},
		{"tags", func(value jsonvalue.Value, path string) { d.Tags = r.readTags(value, path) }},
		{"namespaces", func(_ jsonvalue.Value, path string) {
			r.strictly(path, fateLeftOut, "is a list, but a document defines one namespace")
		}},
	}
	if _, ok := value.Member("display_name"); !ok {
		fields = append(fields, fileKey{"title", func(value jsonvalue.Value, path string) {
			r.warn(path, "is unknown; read as display_name")
			r.readNonEmpty(&d.DisplayName)(value, path)
		}})
	}
	if r.fields(value, "$", fields...) {
		r.validateName(d.Name, "$.namespace")
	}
	r.validateFields(d, "$")
}

func (r documentReader) readText(to *string) func(jsonvalue.Value, string) {
	return func(value jsonvalue.Value, path string) {
		r.expect(value, jsonvalue.KindText, path)
		*to = value.Text
	}
}

// readOptional reads a string that may be empty.
func (r documentReader) readOptional(to **string) func(jsonvalue.Value, string) {
	return func(value jsonvalue.Value, path string) {
		if r.expect(value, jsonvalue.KindText, path) {
			*to = &value.Text
		}
	}
}

// readNonEmpty reads a string. An empty one counts as absent.
func (r documentReader) readNonEmpty(to **string) func(jsonvalue.Value, string) {
	return func(value jsonvalue.Value, path string) {
		if r.expect(value, jsonvalue.KindText, path) && value.Text != "" {
			*to = &value.Text
		} else if value.Kind == jsonvalue.KindText {
			r.warn(path, "is empty; read as absent")
		}
	}
}

func (r documentReader) readVisibility(value jsonvalue.Value, path string) *access.Visibility {
	switch {
	case value.Kind == jsonvalue.KindText && value.Text == "public":
		return new(access.Public)
	case value.Kind == jsonvalue.KindText && value.Text == "private":
		return new(access.Private)
	}
	r.problem(path, "must be public or private, is %s", Shorten(string(value.Raw)))
	return nil
}

func (r documentReader) readProperties(value jsonvalue.Value, path string) []DocumentProperty {
	if !r.expect(value, jsonvalue.KindMap, path) || !r.few(len(value.Members), path) {
		return nil
	}
	var properties []DocumentProperty
	for _, m := range value.Members {
		at := problem.Join(path, m.Key)
		r.validateName(m.Key, at)
		properties = append(properties, DocumentProperty{m.Key, r.readProperty(m.Value, m.Key, at)})
	}
	return properties
}

// maps returns the maps in a list with their paths, and adds a problem for
// every other member.
func (r documentReader) maps(value jsonvalue.Value, path string) iter.Seq2[string, jsonvalue.Value] {
	return func(yield func(string, jsonvalue.Value) bool) {
		if !r.expect(value, jsonvalue.KindList, path) || !r.few(len(value.List), path) {
			return
		}
		for i, item := range value.List {
			if at := problem.Index(path, i); r.expect(item, jsonvalue.KindMap, at) && !yield(at, item) {
				return
			}
		}
	}
}

// readObjects reads the list of objects. It also accepts a single map instead of
// a list of one, because the specification's own examples have it.
func (r documentReader) readObjects(value jsonvalue.Value, path string) []DocumentObject {
	if value.Kind == jsonvalue.KindMap {
		r.warn(path, "is a single map; read as a list with one object")
		if object, ok := r.readObject(value, path); ok {
			return []DocumentObject{object}
		}
		return nil
	}
	var objects []DocumentObject
	var names, paths []string
	for at, item := range r.maps(value, path) {
		if object, ok := r.readObject(item, at); ok {
			objects = append(objects, object)
			names, paths = append(names, object.Name), append(paths, problem.Join(at, "name"))
		}
	}
	r.validateOnce(names, paths, "object")
	return objects
}

func (r documentReader) readObject(value jsonvalue.Value, path string) (DocumentObject, bool) {
	var object DocumentObject
	var required, paths []string
	named := r.fields(value, path,
		fileKey{"name", r.readText(&object.Name)},
		fileKey{"description", r.readOptional(&object.Description)},
		fileKey{"required", func(list jsonvalue.Value, path string) {
			r.expect(list, jsonvalue.KindList, path)
			for i, item := range list.List {
				if at := problem.Index(path, i); r.expect(item, jsonvalue.KindText, at) {
					required, paths = append(required, item.Text), append(paths, at)
				}
			}
		}},
		fileKey{"properties", func(value jsonvalue.Value, path string) {
			object.Properties = r.readProperties(value, path)
		}},
		fileKey{"namespace", func(value jsonvalue.Value, path string) {
			if value.Text == r.into.Name {
				r.warn(path, "repeats the namespace; left out")
			} else {
				r.warn(path, "differs from the namespace of the document; left out")
			}
		}})
	object.Required = r.requiredNames(required, func(i int) string { return paths[i] }, object.Properties)
	if named {
		r.validateName(object.Name, problem.Join(path, "name"))
		r.validateText(object.Description, problem.Join(path, "description"), 0, MaxDefinition)
	}
	return object, named
}

func (r documentReader) readTags(value jsonvalue.Value, path string) []DocumentTag {
	var tags []DocumentTag
	var paths []string
	for at, item := range r.maps(value, path) {
		var tag DocumentTag
		if r.fields(item, at, fileKey{"name", r.readText(&tag.Name)}, fileKey{"parent", r.readText(&tag.Parent)}) {
			tags, paths = append(tags, tag), append(paths, at)
		}
	}
	return r.validateTags(tags, paths, nil)
}

func (r documentReader) readAssociations(value jsonvalue.Value, path string) []DocumentAssociation {
	var associations []DocumentAssociation
	var paths []string
	for at, item := range r.maps(value, path) {
		var association DocumentAssociation
		if r.fields(item, at, fileKey{"name", r.readText(&association.ResourceType)},
			fileKey{"prefix", r.readNonEmpty(&association.Prefix)},
			fileKey{"properties_target", r.readNonEmpty(&association.PropertiesTarget)}) {
			associations, paths = append(associations, association), append(paths, at)
		}
	}
	r.validateAssociations(associations, paths)
	return associations
}
