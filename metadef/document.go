package metadef

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
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

// Text returns the definition file of the document, indented by four spaces,
// with a newline at the end. The keys of each map are in a fixed order. Lists
// and properties keep the document's order. The keywords of properties are
// verbatim. Equal documents have equal files, and parsing the file returns the
// document again.
func (d *Document) Text() string {
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(d.compact()), "", "    "); err != nil {
		return ""
	}
	text.WriteByte('\n')
	return text.String()
}

// MaxExport is the maximum number of bytes of definitions that exportNamespaces
// returns. Definitions of that size fit into an answer even if every byte is
// escaped.
const MaxExport = 8 << 20

// Portable returns the document without its owner, whom other clouds do not
// know. An import makes the importer's project the owner of a new namespace,
// and keeps the owner of an existing one.
func (d *Document) Portable() *Document {
	portable := *d
	portable.Owner = nil
	return &portable
}

// compact returns the file without white space.
func (d *Document) compact() text.JSON {
	return jsonvalue.MapOf(
		"namespace", jsonvalue.Quote(d.Name),
		"display_name", jsonvalue.Text(d.DisplayName),
		"description", jsonvalue.Text(d.Description),
		"visibility", visibilityText(d.Visibility),
		"protected", jsonvalue.Boolean(d.Protected),
		"owner", jsonvalue.Text(d.Owner),
		"resource_type_associations", jsonvalue.ListOf(d.Associations, DocumentAssociation.compact),
		"properties", compactProperties(d.Properties),
		"objects", jsonvalue.ListOf(d.Objects, DocumentObject.compact),
		"tags", jsonvalue.ListOf(d.Tags, DocumentTag.compact))
}

func compactProperties(properties []DocumentProperty) text.JSON {
	if len(properties) == 0 {
		return ""
	}
	members := lists.Map(properties, func(p DocumentProperty) jsonvalue.Member {
		return jsonvalue.MemberOf(p.Name, p.Keywords)
	})
	return jsonvalue.Map(members)
}

func (a DocumentAssociation) compact() text.JSON {
	return jsonvalue.MapOf("name", jsonvalue.Quote(a.ResourceType), "prefix", jsonvalue.Text(a.Prefix),
		"properties_target", jsonvalue.Text(a.PropertiesTarget))
}

func (o DocumentObject) compact() text.JSON {
	return jsonvalue.MapOf("name", jsonvalue.Quote(o.Name), "description", jsonvalue.Text(o.Description),
		"required", jsonvalue.ListOf(o.Required, jsonvalue.Quote), "properties", compactProperties(o.Properties))
}

func (t DocumentTag) compact() text.JSON {
	if t.Parent == "" {
		return jsonvalue.MapOf("name", jsonvalue.Quote(t.Name))
	}
	return jsonvalue.MapOf("name", jsonvalue.Quote(t.Name), "parent", jsonvalue.Quote(t.Parent))
}
