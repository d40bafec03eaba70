package metadef

import (
	"strings"
	"unicode"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// NamespaceInput is a new namespace with everything in it, as the API takes it.
// A nil pointer is an absent field.
type NamespaceInput struct {
	Name                     string
	DisplayName              *string
	Description              *string
	Visibility               *access.Visibility
	Protected                *bool
	Owner                    *string
	Properties               []PropertyInput
	Objects                  []ObjectInput
	Tags                     []TagInput
	ResourceTypeAssociations []ResourceTypeAssociationInput
}

// ObjectInput is a new object.
type ObjectInput struct {
	Name        string
	Description *string
	Required    []string
	Properties  []PropertyInput
}

// TagInput is a tag to be; Parent names another tag of the namespace.
type TagInput struct {
	Name   string
	Parent *string
}

// ResourceTypeAssociationInput is a new association of a namespace.
type ResourceTypeAssociationInput struct {
	ResourceType     string
	Prefix           *string
	PropertiesTarget *string
}

// Document judges the input strictly and gives what it defines. Every problem
// has its path below path (`input.properties[2].enum[1]`).
func (n NamespaceInput) Document(path string) (*Document, problem.Problems) {
	found := findings{mode: Strict}
	document := &Document{Name: n.Name, DisplayName: n.DisplayName, Description: n.Description,
		Visibility: n.Visibility, Protected: n.Protected, Owner: n.Owner}
	if n.DisplayName != nil && *n.DisplayName == "" {
		document.DisplayName = nil
	}
	checkNamespaceFields(document, path, &found)
	document.Properties = propertiesOf(n.Properties, problem.Join(path, "properties"), &found)
	at := problem.Join(path, "objects")
	var names, paths []string
	if checkFew(len(n.Objects), at, &found) {
		for i, input := range n.Objects {
			document.Objects = append(document.Objects, input.object(problem.Index(at, i), &found))
			names, paths = append(names, input.Name), append(paths, problem.Join(problem.Index(at, i), "name"))
		}
	}
	checkOnce(names, paths, "object", &found)
	tags, problems := CheckTags(n.Tags, nil, problem.Join(path, "tags"))
	document.Tags, found.problems = tags, append(found.problems, problems...)
	document.Associations = associationsOf(n.ResourceTypeAssociations, problem.Join(path, "resourceTypeAssociations"), &found)
	return document, found.problems
}

// Object judges the input strictly and gives the object it defines.
func (o ObjectInput) Object(path string) (DocumentObject, problem.Problems) {
	found := findings{mode: Strict}
	object := o.object(path, &found)
	return object, found.problems
}

func (o ObjectInput) object(path string, found *findings) DocumentObject {
	object := DocumentObject{Name: o.Name, Description: o.Description}
	checkObjectFields(object, path, found)
	object.Properties = propertiesOf(o.Properties, problem.Join(path, "properties"), found)
	var paths []string
	for i := range o.Required {
		paths = append(paths, problem.Index(problem.Join(path, "required"), i))
	}
	object.Required = checkRequired(o.Required, paths, object.Properties, found)
	return object
}

// Association judges the input strictly: names of 1 to 80 characters and a
// prefix that ends in a separator.
func (a ResourceTypeAssociationInput) Association(path string) (DocumentAssociation, problem.Problems) {
	found := findings{mode: Strict}
	association := DocumentAssociation(a)
	checkAssociation(association, path, &found)
	return association, found.problems
}

// CheckPrefix notes what is wrong with an association's prefix: 1 to 80
// characters, no control characters, a separator at its end.
func CheckPrefix(problems *problem.Problems, path, prefix string) {
	found := findings{mode: Strict}
	checkPrefix(prefix, path, &found)
	*problems = append(*problems, found.problems...)
}

// checkFew tells whether a list or map has no more members than a namespace may.
func checkFew(count int, path string, found *findings) bool {
	if count > MaxDefinitions {
		found.problem(path, "must have at most %d members, has %d", MaxDefinitions, count)
	}
	return count <= MaxDefinitions
}

func propertiesOf(inputs []PropertyInput, path string, found *findings) []DocumentProperty {
	if !checkFew(len(inputs), path, found) {
		return nil
	}
	var properties []DocumentProperty
	var names, paths []string
	for i, input := range inputs {
		schema, problems := input.Schema(problem.Index(path, i))
		found.problems = append(found.problems, problems...)
		properties = append(properties, DocumentProperty{input.Name, schema})
		names, paths = append(names, input.Name), append(paths, problem.Join(problem.Index(path, i), "name"))
	}
	checkOnce(names, paths, "property", found)
	return properties
}

func associationsOf(inputs []ResourceTypeAssociationInput, path string, found *findings) []DocumentAssociation {
	if !checkFew(len(inputs), path, found) {
		return nil
	}
	var associations []DocumentAssociation
	var paths []string
	for i, input := range inputs {
		associations, paths = append(associations, DocumentAssociation(input)), append(paths, problem.Index(path, i))
		checkAssociation(associations[i], paths[i], found)
	}
	checkAssociationsOnce(associations, paths, found)
	return associations
}

// field is a path in the words of the API or of the file.
func (f *findings) field(path, api, file string) string {
	if f.mode == Lenient {
		return problem.Join(path, file)
	}
	return problem.Join(path, api)
}

func checkNamespaceFields(d *Document, path string, found *findings) {
	text.CheckName(&found.problems, found.field(path, "name", "namespace"), d.Name)
	if d.DisplayName != nil {
		text.Check(&found.problems, found.field(path, "displayName", "display_name"), *d.DisplayName, 0, text.MaxName)
	}
	if d.Description != nil {
		text.Check(&found.problems, problem.Join(path, "description"), *d.Description, 0, MaxDescription)
	}
	if d.Visibility != nil {
		access.CheckVisibility(*d.Visibility, problem.Join(path, "visibility"), &found.problems)
	}
	if d.Owner != nil {
		text.Check(&found.problems, problem.Join(path, "owner"), *d.Owner, 1, MaxOwner)
	}
}

func checkObjectFields(object DocumentObject, path string, found *findings) {
	text.CheckName(&found.problems, problem.Join(path, "name"), object.Name)
	if object.Description != nil {
		text.Check(&found.problems, problem.Join(path, "description"), *object.Description, 0, MaxDefinition)
	}
}

// checkRequired gives the required names that are properties, each once. Others
// are problems through the API and left out of files.
func checkRequired(required, paths []string, properties []DocumentProperty, found *findings) []string {
	var names []string
	defined, seen := map[string]bool{}, map[string]bool{}
	for _, p := range properties {
		defined[p.Name] = true
	}
	for i, name := range required {
		switch {
		case !defined[name]:
			found.odd(paths[i], "left out", "%s is not a property of the object", Shorten(name))
		case seen[name]:
			found.odd(paths[i], "left out", "%s is repeated", Shorten(name))
		default:
			names = append(names, name)
		}
		seen[name] = true
	}
	return names
}

// checkOnce notes names that were there before.
func checkOnce(names, paths []string, what string, found *findings) {
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			found.problem(paths[i], "there is another %s named %s", what, Shorten(name))
		}
		seen[name] = true
	}
}

func checkPrefix(prefix, path string, found *findings) {
	before := len(found.problems)
	if text.Check(&found.problems, path, prefix, 1, text.MaxName); len(found.problems) > before {
		return
	}
	if strings.ContainsFunc(prefix, unicode.IsControl) {
		found.problem(path, "must not contain control characters")
	} else if !strings.ContainsAny(prefix[len(prefix)-1:], ":_.-/") {
		found.odd(path, "accepted", "must end in a separator, one of : _ . - /")
	}
}

func checkAssociation(a DocumentAssociation, path string, found *findings) {
	text.CheckName(&found.problems, found.field(path, "resourceType", "name"), a.ResourceType)
	if a.Prefix != nil {
		checkPrefix(*a.Prefix, problem.Join(path, "prefix"), found)
	}
	if a.PropertiesTarget != nil {
		CheckTarget(&found.problems, found.field(path, "propertiesTarget", "properties_target"), *a.PropertiesTarget)
	}
}

// CheckTarget notes what is wrong with an association's properties target: 1 to
// 80 characters, no control characters.
func CheckTarget(problems *problem.Problems, path, target string) {
	before := len(*problems)
	text.Check(problems, path, target, 1, text.MaxName)
	if len(*problems) == before && strings.ContainsFunc(target, unicode.IsControl) {
		problems.Add(path, "must not contain control characters")
	}
}

// checkAssociationsOnce notes associations of one type that differ in neither
// prefix nor target.
func checkAssociationsOnce(associations []DocumentAssociation, paths []string, found *findings) {
	seen := map[associationKey]bool{}
	for i, a := range associations {
		if seen[a.key()] {
			found.problem(found.field(paths[i], "resourceType", "name"),
				"%s is associated twice with the same prefix and target", Shorten(a.ResourceType))
		}
		seen[a.key()] = true
	}
}

// associationKey is what an association of a namespace is known by.
type associationKey struct{ resourceType, prefix, target string }

func (a DocumentAssociation) key() associationKey {
	return associationKey{a.ResourceType, textOf(a.Prefix), textOf(a.PropertiesTarget)}
}
