package metadef

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// MaxDocument is how many bytes a definition document may have without the
// white space between its tokens.
const MaxDocument = 1 << 20

// maxDocumentText bounds the text of a document with all its white space.
const maxDocumentText = 16 << 20

// Document is the content of one definition file: a namespace with everything
// in it, in the order of the file. A nil pointer is what the file is silent
// about; the lists are nil where they are empty.
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

// DocumentObject is an object with its properties. Required names some of them.
type DocumentObject struct {
	Name        string
	Description *string
	Required    []string
	Properties  []DocumentProperty
}

// LosesProperties tells whether an object that takes its place lacks a property.
func (o DocumentObject) LosesProperties(after DocumentObject) bool {
	now := byKey(after.Properties, propertyName)
	return slices.ContainsFunc(o.Properties, func(old DocumentProperty) bool {
		_, there := now[old.Name]
		return !there
	})
}

// DocumentTag is a tag; Parent is the name of another tag of the namespace, as
// that tag spells it, or empty.
type DocumentTag struct {
	Name   string
	Parent string
}

// DocumentAssociation makes the definitions applicable to a resource type.
type DocumentAssociation struct {
	ResourceType     string
	Prefix           *string
	PropertiesTarget *string
}

// ParseDocument reads the text of one definition file. Everything wrong with it
// is in problems, each with its path (`$.properties.hw_cpu.enum`) and a syntax
// error with line and column; what was accepted although it is odd, or
// repaired, is in warnings. With problems the document is what could be read,
// fit for naming the namespace in a report only, and nil where nothing could.
func ParseDocument(text string) (document *Document, warnings, problems problem.Problems) {
	found := findings{mode: Lenient}
	document = parseDocument(text, &found)
	return document, found.warnings, withoutRepeats(found.problems)
}

func parseDocument(text string, found *findings) *Document {
	if rest, marked := strings.CutPrefix(text, "\uFEFF"); marked {
		found.warn("$", "starts with a byte order mark; left out")
		text = rest
	}
	if len(text) > maxDocumentText {
		found.problem("$", "must have at most %d bytes, has %d", maxDocumentText, len(text))
		return nil
	}
	value, ok := readJSON(text, "$", found)
	if !ok {
		return nil
	}
	if value.kind != jsonMap {
		found.problem("$", "must be a map that defines one namespace, is %s", value.kind)
		return nil
	}
	if len(value.raw) > MaxDocument {
		found.problem("$", "must have at most %d bytes without white space, has %d", MaxDocument, len(value.raw))
		return nil
	}
	reportFaults(value, "$", found)
	reader := documentReader{findings: found}
	document := reader.namespace(value)
	if size := len(document.compact()); size > MaxDocument && len(found.problems) == 0 {
		found.problem("$", "must have at most %d bytes without white space, has %d after repairs", MaxDocument, size)
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
