package metadef

import (
	"strings"
	"unicode"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Check returns everything that is wrong with a new association: names have 1 to
// 80 characters, and a prefix ends in a separator.
func (a DocumentAssociation) Check(path string) problem.Problems {
	c := checker{mode: Strict}
	c.association(a, path)
	return c.problems
}

// CheckPrefix adds what is wrong with an association's prefix: 1 to 80
// characters, no control characters, a separator at its end.
func CheckPrefix(problems *problem.Problems, path, prefix string) {
	c := checker{mode: Strict}
	c.prefix(prefix, path)
	*problems = append(*problems, c.problems...)
}

// CheckTarget adds what is wrong with an association's properties target: 1 to
// 80 characters, no control characters.
func CheckTarget(problems *problem.Problems, path, target string) {
	before := len(*problems)
	text.Check(problems, path, target, 1, text.MaxName)
	if len(*problems) == before && strings.ContainsFunc(target, unicode.IsControl) {
		problems.Add(path, "must not contain control characters")
	}
}

// text checks a text that is there.
func (c *checker) text(input *string, path string, least, most int) {
	text.CheckOptional(&c.problems, path, input, least, most)
}

func (c *checker) name(name, path string) { text.CheckName(&c.problems, path, name) }

// namespaceFields checks the fields of a namespace itself but for its name.
func (c *checker) namespaceFields(d *Document, path string) {
	c.text(d.DisplayName, c.field(path, "displayName", "display_name"), 0, text.MaxName)
	c.text(d.Description, problem.Join(path, "description"), 0, MaxDescription)
	c.text(d.Owner, problem.Join(path, "owner"), 1, MaxOwner)
	access.CheckVisibility(&c.problems, problem.Join(path, "visibility"), d.Visibility)
}

// few reports whether a list or map has no more members than a namespace may,
// and adds a problem where it has more.
func (c *checker) few(count int, path string) bool { return c.atMost(count, MaxDefinitions, path) }

// newProperties checks new properties and returns them.
func (c *checker) newProperties(inputs []PropertyInput, path string) []DocumentProperty {
	if !c.few(len(inputs), path) {
		return nil
	}
	var properties []DocumentProperty
	var names, paths []string
	for i, input := range inputs {
		schema, problems := input.Schema(problem.Index(path, i))
		c.problems = append(c.problems, problems...)
		properties = append(properties, DocumentProperty{input.Name, schema})
		names, paths = append(names, input.Name), append(paths, problem.Join(problem.Index(path, i), "name"))
	}
	c.once(names, paths, "property")
	return properties
}

// newObjects checks new objects and returns them.
func (c *checker) newObjects(inputs []ObjectInput, path string) []DocumentObject {
	if !c.few(len(inputs), path) {
		return nil
	}
	var objects []DocumentObject
	var names, paths []string
	for i, input := range inputs {
		objects = append(objects, c.newObject(input, problem.Index(path, i)))
		names, paths = append(names, input.Name), append(paths, problem.Join(problem.Index(path, i), "name"))
	}
	c.once(names, paths, "object")
	return objects
}

func (c *checker) newObject(input ObjectInput, path string) DocumentObject {
	c.name(input.Name, problem.Join(path, "name"))
	return input.apply(DocumentObject{Name: input.Name}, path, c)
}

// required returns the required names that are properties, each once. Others
// are problems through the API and left out of files.
func (c *checker) required(required []string, path func(i int) string, properties []DocumentProperty) []string {
	var names []string
	defined, seen := byKey(properties, propertyName), map[string]bool{}
	for i, name := range required {
		if _, ok := defined[name]; !ok {
			c.strictly(path(i), "left out", "%s is not a property of the object", Shorten(name))
		} else if seen[name] {
			c.strictly(path(i), "left out", "%s is repeated", Shorten(name))
		} else {
			names = append(names, name)
		}
		seen[name] = true
	}
	return names
}

// once checks that no name was there before.
func (c *checker) once(names, paths []string, what string) {
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			c.problem(paths[i], "there is another %s named %s", what, Shorten(name))
		}
		seen[name] = true
	}
}

func (c *checker) prefix(prefix, path string) {
	before := len(c.problems)
	if text.Check(&c.problems, path, prefix, 1, text.MaxName); len(c.problems) > before {
		return
	}
	if strings.ContainsFunc(prefix, unicode.IsControl) {
		c.problem(path, "must not contain control characters")
	} else if !strings.ContainsAny(prefix[len(prefix)-1:], ":_.-/") {
		c.strictly(path, "accepted", "must end in a separator, one of : _ . - /")
	}
}

func (c *checker) association(a DocumentAssociation, path string) {
	c.name(a.ResourceType, c.field(path, "resourceType", "name"))
	if a.Prefix != nil {
		c.prefix(*a.Prefix, problem.Join(path, "prefix"))
	}
	if a.PropertiesTarget != nil {
		CheckTarget(&c.problems, c.field(path, "propertiesTarget", "properties_target"), *a.PropertiesTarget)
	}
}

// associations checks a list of associations: no two of one type that differ in
// neither prefix nor target.
func (c *checker) associations(associations []DocumentAssociation, paths []string) {
	seen := map[associationKey]bool{}
	for i, a := range associations {
		c.association(a, paths[i])
		if seen[a.key()] {
			c.problem(c.field(paths[i], "resourceType", "name"),
				"%s is associated twice with the same prefix and target", Shorten(a.ResourceType))
		}
		seen[a.key()] = true
	}
}

// associationKey is what an association of a namespace is known by.
type associationKey struct{ resourceType, prefix, target string }

func (a DocumentAssociation) key() associationKey {
	return associationKey{a.ResourceType, text.OrEmpty(a.Prefix), text.OrEmpty(a.PropertiesTarget)}
}
