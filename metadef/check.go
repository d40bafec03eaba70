package metadef

import (
	"strings"
	"unicode"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Check returns everything that is wrong with a new association: names have 1
// to 80 characters, and a prefix ends in a separator.
func (a DocumentAssociation) Check(path string) problem.Problems {
	c := checker{level: Strict}
	c.validateAssociation(a, path)
	return c.found
}

// CheckPrefix adds what is wrong with an association's prefix: 1 to 80
// characters, no control characters, a separator at its end.
func CheckPrefix(problems *problem.Problems, path, prefix string) {
	c := checker{level: Strict}
	c.validatePrefix(prefix, path)
	*problems = append(*problems, c.found...)
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

// validateText checks a text that is there.
func (c *checker) validateText(input *string, path string, least, most int) {
	text.CheckOptional(&c.found, path, input, least, most)
}

func (c *checker) validateName(name, path string) { text.CheckName(&c.found, path, name) }

// validateFields checks the fields of a namespace itself but for its name.
func (c *checker) validateFields(d *Document, path string) {
	c.validateText(d.DisplayName, c.field(path, "displayName", "display_name"), 0, text.MaxName)
	c.validateText(d.Description, problem.Join(path, "description"), 0, MaxDescription)
	c.validateText(d.Owner, problem.Join(path, "owner"), 1, MaxOwner)
	access.CheckVisibility(&c.found, problem.Join(path, "visibility"), d.Visibility)
}

// few reports whether a list or map has no more members than a namespace may,
// and adds a problem where it has more.
func (c *checker) few(count int, path string) bool { return c.atMost(count, MaxDefinitions, path) }

// propertiesOf checks new properties and returns them.
func (c *checker) propertiesOf(inputs []PropertyInput, path string) []DocumentProperty {
	if !c.few(len(inputs), path) {
		return nil
	}
	var properties []DocumentProperty
	var names, paths []string
	for i, input := range inputs {
		schema, problems := input.Schema(problem.Index(path, i))
		c.found = append(c.found, problems...)
		properties = append(properties, DocumentProperty{input.Name, schema})
		names, paths = append(names, input.Name), append(paths, problem.Join(problem.Index(path, i), "name"))
	}
	c.validateOnce(names, paths, "property")
	return properties
}

// objectsOf checks new objects and returns them.
func (c *checker) objectsOf(inputs []ObjectInput, path string) []DocumentObject {
	if !c.few(len(inputs), path) {
		return nil
	}
	var objects []DocumentObject
	var names, paths []string
	for i, input := range inputs {
		objects = append(objects, c.objectOf(input, problem.Index(path, i)))
		names, paths = append(names, input.Name), append(paths, problem.Join(problem.Index(path, i), "name"))
	}
	c.validateOnce(names, paths, "object")
	return objects
}

func (c *checker) objectOf(input ObjectInput, path string) DocumentObject {
	c.validateName(input.Name, problem.Join(path, "name"))
	return input.applyTo(DocumentObject{Name: input.Name}, path, c)
}

// requiredNames returns the required names that are properties, each once.
// Others are problems through the API and left out of files.
func (c *checker) requiredNames(required []string, path func(i int) string, properties []DocumentProperty) []string {
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

// validateOnce checks that no name was there before.
func (c *checker) validateOnce(names, paths []string, what string) {
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			c.problem(paths[i], "there is another %s named %s", what, Shorten(name))
		}
		seen[name] = true
	}
}

func (c *checker) validatePrefix(prefix, path string) {
	before := len(c.found)
	if text.Check(&c.found, path, prefix, 1, text.MaxName); len(c.found) > before {
		return
	}
	if strings.ContainsFunc(prefix, unicode.IsControl) {
		c.problem(path, "must not contain control characters")
	} else if !strings.ContainsAny(prefix[len(prefix)-1:], ":_.-/") {
		c.strictly(path, "accepted", "must end in a separator, one of : _ . - /")
	}
}

func (c *checker) validateAssociation(a DocumentAssociation, path string) {
	c.validateName(a.ResourceType, c.field(path, "resourceType", "name"))
	if a.Prefix != nil {
		c.validatePrefix(*a.Prefix, problem.Join(path, "prefix"))
	}
	if a.PropertiesTarget != nil {
		CheckTarget(&c.found, c.field(path, "propertiesTarget", "properties_target"), *a.PropertiesTarget)
	}
}

// validateAssociations checks a list of associations: no two of one type that
// differ in neither prefix nor target.
func (c *checker) validateAssociations(associations []DocumentAssociation, paths []string) {
	seen := map[[3]string]bool{}
	for i, a := range associations {
		c.validateAssociation(a, paths[i])
		if seen[a.identity()] {
			c.problem(c.field(paths[i], "resourceType", "name"),
				"%s is associated twice with the same prefix and target", Shorten(a.ResourceType))
		}
		seen[a.identity()] = true
	}
}

// identity returns what an association of a namespace is known by: type, target
// and prefix.
func (a DocumentAssociation) identity() [3]string {
	return [3]string{a.ResourceType, text.OrEmpty(a.PropertiesTarget), text.OrEmpty(a.Prefix)}
}
