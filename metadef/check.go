package metadef

import (
	"strings"
	"unicode"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Check returns the problems of a new association: names must have 1 to 80
// characters, and a prefix must end in a separator, unless AnyPrefix is set.
func (a NewAssociation) Check(path string) problem.Problems {
	c := checker{level: Strict}
	if a.AnyPrefix {
		c.level = Lenient
	}
	c.validateAssociation(a.DocumentAssociation, path)
	return c.found
}

// CheckPrefix adds the problems of an association's prefix. It must have 1 to
// 80 characters, no control characters, and a separator at its end.
func CheckPrefix(problems *problem.Problems, path, prefix string) {
	c := checker{level: Strict}
	c.validatePrefix(prefix, path)
	*problems = append(*problems, c.found...)
}

// CheckTarget adds the problems of an association's properties target. It must
// have 1 to 80 characters and no control characters.
func CheckTarget(problems *problem.Problems, path, target string) {
	before := len(*problems)
	text.Check(problems, path, target, 1, text.MaxName)
	if len(*problems) == before && strings.ContainsFunc(target, unicode.IsControl) {
		problems.Add(path, "must not contain control characters")
	}
}

// validateText checks a string, unless it is nil.
func (c *checker) validateText(input *string, path string, least, most int) {
	text.CheckOptional(&c.found, path, input, least, most)
}

func (c *checker) validateName(name, path string) { text.CheckName(&c.found, path, name) }

// validateFields checks the fields of a namespace itself, except for its name.
func (c *checker) validateFields(d *Document, path string) {
	c.validateText(d.DisplayName, c.field(path, "displayName", "display_name"), 0, text.MaxName)
	c.validateText(d.Description, problem.Join(path, "description"), 0, maxDescription)
	c.validateText(d.Owner, problem.Join(path, "owner"), 1, MaxOwner)
	access.CheckVisibility(&c.found, problem.Join(path, "visibility"), d.Visibility)
}

// few reports whether a number of members is at most MaxDefinitions, and adds a
// problem if it is not.
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

// requiredNames returns the required names that are properties, without
// duplicates. In the API, other names are problems. In a file, they are left
// out with a warning.
func (c *checker) requiredNames(required []string, path func(i int) string, properties []DocumentProperty) []string {
	var names []string
	defined, seen := lists.ByKey(properties, propertyName), map[string]bool{}
	for i, name := range required {
		if _, ok := defined[name]; !ok {
			c.strictly(path(i), fateLeftOut, "%s is not a property of the object", Shorten(name))
		} else if seen[name] {
			c.strictly(path(i), fateLeftOut, "%s is repeated", Shorten(name))
		} else {
			names = append(names, name)
		}
		seen[name] = true
	}
	return names
}

// validateOnce adds a problem for each repeated name.
func (c *checker) validateOnce(names, paths []string, what string) {
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			c.problem(paths[i], "another %s is named %s", what, Shorten(name))
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

// validateAssociations checks a list of associations. Two associations with the
// same type, prefix and target are a problem.
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

// identity returns the key of an association in a namespace: type, target and
// prefix.
func (a DocumentAssociation) identity() [3]string {
	return [3]string{a.ResourceType, text.OrEmpty(a.PropertiesTarget), text.OrEmpty(a.Prefix)}
}

// Limits of a definition, so that all input is bounded.
const (
	MaxDefinition  = 64 << 10  // bytes of one property's definition
	maxEnumMembers = 1000      // members of an enum, operators of a property
	maxPattern     = 1000      // characters of a regular expression
	MaxDefinitions = 1000      // properties, objects, tags, associations of a namespace, each; properties of an object
	maxCount       = 1<<31 - 1 // lengths and numbers of items, as GraphQL's Int
)

// Strictness says how a definition is read.
type Strictness int

const (
	// Strict is for input of the API. Everything questionable is a problem, and
	// paths use the API's names (`input.itemEnum[1]`).
	Strict Strictness = iota
	// Lenient is for definition files. Input that is questionable but legal in
	// the reference system is accepted with a warning. Paths use the file's
	// names (`$.properties.hw_cpu.items.enum[1]`).
	Lenient
)

// checker collects the problems of a definition, and warnings of accepted or
// repaired input.
type checker struct {
	level         Strictness
	warned, found problem.Problems
	edited        []ImportEdit // local edits that an upgrade keeps
	// isFromProgram is whether a program sent the document. A program sees no
	// warnings, so missing titles and input that would be left out, such as
	// unknown keys, are problems.
	isFromProgram bool
	// prefersShipped makes the values of a bundle replace local edits.
	prefersShipped bool
}

func (c *checker) problem(path, format string, args ...any) {
	c.found.AddBounded(path, format, args...)
}

func (c *checker) warn(path, format string, args ...any) {
	c.warned.AddBounded(path, format, args...)
}

// fateLeftOut is the fate of input that is not stored.
const fateLeftOut = "left out"

// strictly reports input that only the reference system accepts: in the API as a
// problem, in a file as a warning that says how the input is handled. From a
// program, input that would be left out is a problem, too.
func (c *checker) strictly(path, fate, format string, args ...any) {
	if c.level == Strict || c.isFromProgram && fate == fateLeftOut {
		c.problem(path, format, args...)
	} else {
		c.warn(path, format+"; "+fate, args...)
	}
}

// field returns the path of a field by its name in the API or in files,
// whichever is read.
func (c *checker) field(path, api, file string) string {
	if c.level == Lenient {
		return problem.Join(path, file)
	}
	return problem.Join(path, api)
}

// expect reports whether a value is of a kind, and adds a problem if it is not.
func (c *checker) expect(value jsonvalue.Value, kind jsonvalue.Kind, path string) bool {
	if value.Kind != kind {
		c.problem(path, "must be %s, is %s", kind, value.Kind)
	}
	return value.Kind == kind
}

// atMost reports whether count is at most the given maximum, and adds a problem
// if it is not.
func (c *checker) atMost(count, most int, path string) bool {
	if count > most {
		c.problem(path, "must have at most %d members, has %d", most, count)
	}
	return count <= most
}
