package metadef

import (
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
)

// MaxDocument is the maximum size of a definition document in bytes. A
// namespace with MaxDefinitions properties of MaxDefinition has about that size.
const MaxDocument = 64 << 20

// Document is the content of a definition file: a namespace with its contents,
// in the order of the file. A nil pointer means that the file does not have the
// field. Empty lists are nil.
type Document struct {
	Name         string
	DisplayName  *string
	Description  *string
	Visibility   *access.Visibility
	Protected    *bool
	Owner        *string
	Associations []DocumentAssociation
	Properties   []DocumentProperty
	Objects      []DocumentObject
	Tags         []DocumentTag
}

// DocumentProperty is a property and its name.
type DocumentProperty struct {
	Name string
	PropertySchema
}

// DocumentObject is an object with its properties. Required has the names of
// the required properties.
type DocumentObject struct {
	Name        string
	Description *string
	Required    []string
	Properties  []DocumentProperty
}

// LosesProperties reports whether after lacks a property of the object.
func (o DocumentObject) LosesProperties(after DocumentObject) bool {
	return len(lists.Without(lists.Map(o.Properties, propertyName), lists.Map(after.Properties, propertyName))) > 0
}

// DocumentTag is a tag. Parent is the name of another tag of the namespace in
// that tag's spelling, or empty.
type DocumentTag struct {
	Name   string
	Parent string
}

// DocumentAssociation applies the definitions to a resource type.
type DocumentAssociation struct {
	ResourceType     string
	Prefix           *string
	PropertiesTarget *string
}

// ParseDocument parses a definition file. problems are at their paths
// (`$.properties.hw_cpu.enum`); a syntax error has line and column. warnings
// are questionable input that was accepted or repaired. If there are problems,
// document has only what could be read. It then serves only to name the
// namespace in a report, and is nil if nothing could be read.
func ParseDocument(input string) (document *Document, warnings, problems problem.Problems) {
	c := checker{level: Lenient}
	document = c.readDocument(input)
	return document, c.warned, withoutRepeats(c.found)
}

// ParseNewDocument is ParseDocument for a document that a program sends, not a
// file that people keep: unknown keys and missing titles are problems.
func ParseNewDocument(input string) (*Document, problem.Problems) {
	c := checker{level: Lenient, isFromProgram: true}
	document := c.readDocument(input)
	return document, withoutRepeats(c.found)
}

func (c *checker) readDocument(input string) *Document {
	input, marked := strings.CutPrefix(input, "\uFEFF")
	if marked {
		c.warn("$", "starts with a byte order mark; left out")
	}
	if len(input) > MaxDocument {
		c.problem("$", "must have at most %d bytes, has %d", MaxDocument, len(input))
		return nil
	}
	value, ok := jsonvalue.Read(input, "$", &c.found)
	switch {
	case !ok:
		return nil
	case value.Kind != jsonvalue.KindMap:
		c.problem("$", "must be a map that defines one namespace, is %s", value.Kind)
		return nil
	}
	document := &Document{}
	documentReader{c, document}.readNamespace(value)
	if size := len(document.compact()); size > MaxDocument && len(c.found) == 0 {
		c.problem("$", "must have at most %d bytes without white space, has %d after repairs", MaxDocument, size)
	}
	return document
}

func withoutRepeats(problems problem.Problems) problem.Problems {
	var once problem.Problems
	seen := map[problem.Problem]bool{}
	for _, p := range problems {
		if !seen[p] {
			once = append(once, p)
		}
		seen[p] = true
	}
	return once
}
