package metadef

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
)

// Limits of a definition, so that nothing a caller sends is unbounded.
const (
	MaxDefinition  = 64 << 10  // bytes of one property's definition
	MaxEnumMembers = 1000      // members of an enum, operators of a property
	MaxPattern     = 1000      // characters of a regular expression
	MaxDefinitions = 1000      // properties, objects, tags, associations of a namespace; properties of an object
	MaxCount       = 1<<31 - 1 // of lengths and numbers of items, as GraphQL's Int
)

// Strictness says how a definition is read.
type Strictness int

const (
	// Strict is for what comes in through the API: whatever is odd is a
	// problem, and paths use the API's names (`input.itemEnum[1]`).
	Strict Strictness = iota
	// Lenient is for definition files: what is odd but legal in the reference
	// system is accepted with a warning, and paths use the file's names
	// (`$.properties.hw_cpu.items.enum[1]`).
	Lenient
)

// maxFindings bounds how many problems, and how many warnings, are reported of
// one input.
const maxFindings = 200

// findings collects what is wrong (problems) and what was accepted or repaired
// (warnings) while a definition is read.
type findings struct {
	mode               Strictness
	warnings, problems problem.Problems
}

func (f *findings) problem(path, format string, args ...any) {
	addBounded(&f.problems, path, format, args)
}

func (f *findings) warn(path, format string, args ...any) {
	addBounded(&f.warnings, path, format, args)
}

// odd notes what the reference system takes and the product does not stand
// for: a problem through the API; on import a warning that says what becomes of
// it.
func (f *findings) odd(path, fate, format string, args ...any) {
	if f.mode == Strict {
		f.problem(path, format, args...)
	} else {
		f.warn(path, format+"; "+fate, args...)
	}
}

func addBounded(list *problem.Problems, path, format string, args []any) {
	switch {
	case len(*list) < maxFindings:
		list.Add(path, format, args...)
	case len(*list) == maxFindings:
		list.Add(path, "and there is more; only the first %d are listed", maxFindings)
	}
}

// keyword is one word of the property schema (metadata definitions catalog
// specification, "JSON Schema common definitions", and the multivalue
// operators specification).
type keyword struct {
	name  string         // in files and in Keywords
	field string         // the API's name where it has another
	shape shape          // what its value must be
	types []PropertyType // the types it says something about; nil for all
	file  bool           // only files have it, and it has no effect
	about string         // what it says, for editors
}

// shape is what the value of a keyword must be.
type shape int

const (
	shapeText       shape = iota
	shapePattern          // text that is a regular expression
	shapeType             // the name of a primitive type
	shapeItems            // { type, enum }
	shapeAnything         // any JSON value
	shapeAnythings        // a list of JSON values
	shapeTexts            // a list of texts
	shapeUniqueText       // a list of texts, each once
	shapeNumber           // any number that a double can hold
	shapeCount            // an integer of at least 0
	shapeBoolean
)

var (
	typesOfScalars = []PropertyType{String, Integer, Number, Boolean}
	typesOfNumbers = []PropertyType{Integer, Number}
	typesOfText    = []PropertyType{String}
	typesOfLists   = []PropertyType{Array}
)

// propertyKeywords is the one table of keywords: definitions are validated by
// it, built in its order, and the published JSON Schema is generated from it.
var propertyKeywords = []keyword{
	{name: "title", shape: shapeText,
		about: "What people call the property."},
	{name: "description", shape: shapeText,
		about: "What the property is for."},
	{name: "type", shape: shapeType,
		about: "The type of its values. Objects cannot be nested."},
	{name: "items", field: "itemType", shape: shapeItems, types: typesOfLists,
		about: "What the members of an array are."},
	{name: "enum", shape: shapeAnythings, types: typesOfScalars,
		about: "The values it may have, of its type."},
	{name: "default", shape: shapeAnything,
		about: "The value that is assumed where none is given."},
	{name: "minimum", shape: shapeNumber, types: typesOfNumbers,
		about: "The least number allowed."},
	{name: "maximum", shape: shapeNumber, types: typesOfNumbers,
		about: "The greatest number allowed."},
	{name: "minLength", shape: shapeCount, types: typesOfText,
		about: "The least number of characters."},
	{name: "maxLength", shape: shapeCount, types: typesOfText,
		about: "The greatest number of characters."},
	{name: "pattern", shape: shapePattern, types: typesOfText,
		about: "A regular expression in RE2 syntax that is to be found in the value."},
	{name: "minItems", shape: shapeCount, types: typesOfLists,
		about: "The least number of members."},
	{name: "maxItems", shape: shapeCount, types: typesOfLists,
		about: "The greatest number of members."},
	{name: "uniqueItems", shape: shapeBoolean, types: typesOfLists,
		about: "Whether no member may be repeated."},
	{name: "additionalItems", shape: shapeBoolean, types: typesOfLists,
		about: "Whether members beyond the listed ones are allowed."},
	{name: "readonly", field: "readOnly", shape: shapeBoolean,
		about: "Whether users may only read the value."},
	{name: "operators", shape: shapeTexts,
		about: "The operators that a requirement on it may use; the first one is the default."},
	{name: "confidential", shape: shapeBoolean, file: true,
		about: "Kept, without effect."},
	{name: "required", shape: shapeUniqueText, file: true,
		about: "Kept, without effect: properties are required by their object."},
}

// keywordNamed finds a keyword by its name in files.
func keywordNamed(name string) (keyword, bool) {
	if rank := keywordRank(name); rank < len(propertyKeywords) {
		return propertyKeywords[rank], true
	}
	return keyword{}, false
}

// keywordRank is a keyword's place in the table; unknown ones come last.
func keywordRank(name string) int {
	if i := slices.IndexFunc(propertyKeywords, func(k keyword) bool { return k.name == name }); i >= 0 {
		return i
	}
	return len(propertyKeywords)
}

// keywordPath is the path of a keyword below a property's path, in the words
// of whoever sent it.
func (f *findings) keywordPath(path, name string) string {
	if k, known := keywordNamed(name); known && f.mode == Strict && k.field != "" {
		name = k.field
	}
	return problem.Join(path, name)
}

// itemsPath is the path of `items.type` or `items.enum`.
func (f *findings) itemsPath(path, name string) string {
	if f.mode == Strict {
		switch name {
		case "type":
			return problem.Join(path, "itemType")
		case "enum":
			return problem.Join(path, "itemEnum")
		}
	}
	return problem.Join(problem.Join(path, "items"), name)
}

// propertyTypes are all types, in the order in which they are listed.
var propertyTypes = []PropertyType{String, Integer, Number, Boolean, Array}

func typeNames() []string { return namesOf(propertyTypes, PropertyType.typeName) }

// typeName is how files write a type.
func (t PropertyType) typeName() string { return strings.ToLower(string(t)) }

// propertyTypeNamed reads a type as files write it.
func propertyTypeNamed(name string) (PropertyType, bool) {
	i := slices.Index(typeNames(), name)
	if i < 0 {
		return "", false
	}
	return propertyTypes[i], true
}
