package image

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
)

// kind is a kind of definitions. A request that sends one of the attributes that
// only the server sets is refused with 403, as the reference does.
type kind struct {
	name     string
	list     string // the list of a document that has definitions of the kind
	readOnly []string
}

var (
	aNamespace    = kind{"namespace", "", []string{"created_at", "updated_at", "self", "schema"}}
	anObject      = kind{"object", "objects", []string{"created_at", "updated_at", "self", "schema"}}
	aProperty     = kind{"property", "properties", []string{"created_at", "updated_at"}}
	aTag          = kind{"tag", "tags", []string{"created_at", "updated_at"}}
	anAssociation = kind{"resource type association", "resource_type_associations",
		[]string{"created_at", "updated_at"}}
)

// members returns the members of a body, which must be a JSON object without
// read-only attributes.
func (k kind) members(body []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, problem.Invalid("", "the body must be a JSON object that describes one %s", k.name)
	}
	for _, name := range k.readOnly {
		if _, ok := members[name]; ok {
			return nil, problem.Refuse(problem.ErrForbidden, "attribute %q of a %s is read-only", name, k.name)
		}
	}
	return members, nil
}

// within returns a document with content, a JSON value, as its only list. Paths
// of problems lose the prefix.
func (k kind) within(content []byte, prefix string) (*metadef.Document, error) {
	document, problems := metadef.ParseNewDocument(`{"namespace":"n","` + k.list + `":` + string(content) + `}`)
	for i, p := range problems {
		problems[i].Field = strings.TrimPrefix(strings.TrimPrefix(p.Field, prefix), ".")
	}
	return document, problems.Err()
}

// read returns a document with the definition in a body as its only one, an
// object, an association or a tag.
func (k kind) read(body []byte) (*metadef.Document, error) {
	if _, err := k.members(body); err != nil {
		return nil, err
	}
	return k.within(slices.Concat([]byte("["), body, []byte("]")), "$."+k.list+"[0]")
}

// readNamespace returns the namespace that a body describes, with its contents,
// and the members of the body.
func readNamespace(body []byte) (*metadef.Document, map[string]json.RawMessage, error) {
	members, err := aNamespace.members(body)
	if err != nil {
		return nil, nil, err
	}
	document, problems := metadef.ParseNewDocument(string(body))
	return document, members, problems.Err()
}

// readProperty returns the property that a body describes.
func readProperty(body []byte) (metadef.DocumentProperty, error) {
	members, err := aProperty.members(body)
	if err != nil {
		return metadef.DocumentProperty{}, err
	}
	var name string
	if err := json.Unmarshal(members["name"], &name); err != nil {
		return metadef.DocumentProperty{}, problem.Invalid("name", "must be a string")
	}
	key, err := json.Marshal(name)
	if err != nil {
		return metadef.DocumentProperty{}, err
	}
	content := slices.Concat([]byte("{"), key, []byte(":"), body, []byte("}"))
	document, err := aProperty.within(content, problem.Join("$.properties", name))
	if err != nil {
		return metadef.DocumentProperty{}, err
	}
	return document.Properties[0], nil
}

// readTags returns the tags of a list. A repeated name is a conflict, as in the
// reference.
func readTags(body []byte) ([]metadef.TagInput, error) {
	members, err := aTag.members(body)
	if err != nil {
		return nil, err
	}
	if _, ok := members["tags"]; !ok {
		return nil, problem.Invalid("tags", "is required")
	}
	var sent struct {
		Tags []struct{ Name string }
	}
	if err := json.Unmarshal(body, &sent); err == nil {
		seen := map[string]bool{}
		for _, tag := range sent.Tags {
			if seen[tag.Name] {
				return nil, problem.Refuse(problem.ErrAlreadyExists, "tag %q is repeated", tag.Name)
			}
			seen[tag.Name] = true
		}
	}
	document, err := aTag.within(members["tags"], "$")
	if err != nil {
		return nil, err
	}
	return lists.Map(document.Tags, func(tag metadef.DocumentTag) metadef.TagInput {
		return metadef.TagInput{Name: tag.Name}
	}), nil
}
