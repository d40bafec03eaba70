package metadef

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// To add a keyword, add a row in propertyKeywords, and a field of the same name
// in PropertySchema and in PropertyPatch.

// PropertySchema is the definition of a property's values: the keywords of the
// catalog's property schema. A nil pointer or nil slice means that the keyword
// is absent; an empty slice means that it is present and empty.
type PropertySchema struct {
	Title           string
	Description     *string
	Type            PropertyType
	ItemType        *PropertyType // items.type; only for ARRAY
	ItemEnum        []text.JSON   // items.enum
	Enum            []text.JSON   // enum of the value itself; nil for ARRAY
	EnumLabels      []EnumLabel   // of members of either enum
	Default         *text.JSON
	Minimum         *float64
	Maximum         *float64
	MinLength       *int
	MaxLength       *int
	Pattern         *string
	MinItems        *int
	MaxItems        *int
	UniqueItems     *bool
	AdditionalItems *bool
	ReadOnly        *bool
	Operators       []string
	// Keywords is the definition as a JSON object with every keyword verbatim,
	// in the order of the input. The fields above are parsed from it.
	Keywords text.JSON
}

// PropertyPatch is a change of the keywords of a property. A new property is a
// patch of a definition without keywords.
type PropertyPatch struct {
	Title           Change[*string]
	Description     Change[*string]
	Type            Change[*PropertyType]
	ItemType        Change[*PropertyType]
	ItemEnum        Change[[]text.JSON]
	Enum            Change[[]text.JSON]
	EnumLabels      Change[[]EnumLabel]
	Default         Change[*text.JSON]
	Minimum         Change[*float64]
	Maximum         Change[*float64]
	MinLength       Change[*int]
	MaxLength       Change[*int]
	Pattern         Change[*string]
	MinItems        Change[*int]
	MaxItems        Change[*int]
	UniqueItems     Change[*bool]
	AdditionalItems Change[*bool]
	ReadOnly        Change[*bool]
	Operators       Change[[]string]
	// All replaces every keyword, and the fields above do not count; "" for none.
	All text.JSON
	// Level says how the definition is checked.
	Level Strictness
}

// keyword is a row of the keyword table: a keyword of the property schema
// (metadata definitions catalog specification, "JSON Schema common
// definitions", and the multivalue operators specification).
type keyword struct {
	word  string         // in definition files and in Keywords
	field string         // in the API, if its name differs
	about string         // description for editors
	shape shape          // form of its value
	types []PropertyType // types of properties that it applies to; nil for all

	needed  string       // problem if the keyword is missing; "" if it is optional
	members keywordTable // keywords in it, if its value is a map

	// fills returns the schema field that the keyword fills. setBy returns the
	// patch field that sets it. A keyword without these and without members has
	// no effect, and is only in files.
	fills func(*PropertySchema) any
	setBy func(*PropertyPatch) jsonChange

	// breaks returns the message for a value that breaks the keyword, "" for
	// others. itemBreaks returns a function that does so for the items of a list.
	breaks     func(PropertySchema, jsonvalue.Value) string
	itemBreaks func(PropertySchema) itemRule
}

type keywordTable []keyword

var (
	typesOfScalars = []PropertyType{String, Integer, Number, Boolean}
	typesOfNumbers = []PropertyType{Integer, Number}
	typesOfText    = []PropertyType{String}
	typesOfLists   = []PropertyType{Array}
)

// propertyKeywords is the table of all keywords. The code to read, write,
// change and check definitions uses it, and the published JSON Schema is
// generated from it.
var propertyKeywords = keywordTable{
	{word: "title", shape: aTitle, needed: "is required", about: "Display name of the property."},
	{word: "description", shape: aText, about: "Description of the property."},
	{word: "type", shape: aType, needed: "is required: one of " + strings.Join(typeNames(), ", "),
		about: "Type of the values. Objects cannot be nested."},
	{word: "items", field: "itemType", shape: aMap, types: typesOfLists,
		about: "Type and allowed values of the items of an array.",
		members: keywordTable{
			{word: "type", field: "itemType", shape: anItemType,
				needed:     "is required: one of string, integer, number, boolean",
				itemBreaks: PropertySchema.ofItemType},
			{word: "enum", field: "itemEnum", shape: someValues,
				itemBreaks: PropertySchema.inItemEnum},
		}},
	{word: "enum", shape: someValues, types: typesOfScalars, about: "Allowed values, each of the property's type.",
		breaks: PropertySchema.inEnum},
	{word: "enumLabels", shape: labels,
		about: "Labels of enum members: a map from each member, as written in metadata, to the text to show."},
	{word: "default", shape: aValue, about: "Default value."},
	{word: "minimum", shape: aNumber, types: typesOfNumbers, about: "Minimum of a number.",
		breaks: PropertySchema.notUnder},
	{word: "maximum", shape: aNumber, types: typesOfNumbers, about: "Maximum of a number.",
		breaks: PropertySchema.notOver},
	{word: "minLength", shape: aCount, types: typesOfText, about: "Minimum number of characters.",
		breaks: func(s PropertySchema, v jsonvalue.Value) string {
			return notFewer(s.MinLength, text.Length(v.Text), "characters")
		}},
	{word: "maxLength", shape: aCount, types: typesOfText, about: "Maximum number of characters.",
		breaks: func(s PropertySchema, v jsonvalue.Value) string {
			return notMore(s.MaxLength, text.Length(v.Text), "characters")
		}},
	{word: "pattern", shape: aPattern, types: typesOfText,
		about:  "Regular expression in RE2 syntax that must match a part of the value.",
		breaks: PropertySchema.likePattern},
	{word: "minItems", shape: aCount, types: typesOfLists, about: "Minimum number of items.",
		breaks: func(s PropertySchema, v jsonvalue.Value) string { return notFewer(s.MinItems, len(v.List), "items") }},
	{word: "maxItems", shape: aCount, types: typesOfLists, about: "Maximum number of items.",
		breaks: func(s PropertySchema, v jsonvalue.Value) string { return notMore(s.MaxItems, len(v.List), "items") }},
	{word: "uniqueItems", shape: aBoolean, types: typesOfLists, about: "Whether items must be unique.",
		itemBreaks: PropertySchema.notRepeated},
	{word: "additionalItems", shape: aBoolean, types: typesOfLists, about: "Whether further items are allowed."},
	{word: "readonly", field: "readOnly", shape: aBoolean, about: "Whether forms show the value read-only."},
	{word: "operators", shape: someOperators,
		about: "Operators that a value or requirement may use; the first is the default."},
	{word: "confidential", shape: aBoolean, about: "Stored without effect."},
	{word: "required", shape: distinctTexts, about: "Stored without effect: the object requires its properties."},
}.withFields()

// withFields sets fills and setBy of each keyword to the fields of PropertySchema
// and PropertyPatch with its name in the API, if there are some.
func (t keywordTable) withFields() keywordTable {
	for i := range t {
		k := &t[i]
		k.members.withFields()
		name := strings.ToUpper(k.inAPI()[:1]) + k.inAPI()[1:]
		field, found := reflect.TypeFor[PropertySchema]().FieldByName(name)
		if k.members != nil || !found {
			continue
		}
		change, _ := reflect.TypeFor[PropertyPatch]().FieldByName(name)
		k.fills = func(s *PropertySchema) any {
			return reflect.ValueOf(s).Elem().FieldByIndex(field.Index).Addr().Interface()
		}
		k.setBy = func(p *PropertyPatch) jsonChange {
			return reflect.ValueOf(p).Elem().FieldByIndex(change.Index).Interface().(jsonChange)
		}
	}
	return t
}

// hasEffect reports whether the keyword has any effect on a property.
func (k keyword) hasEffect() bool { return k.fills != nil || k.members != nil }

// inAPI returns the API's name of the keyword.
func (k keyword) inAPI() string { return cmp.Or(k.field, k.word) }

// appliesTo reports whether the keyword applies to values of a type.
func (k keyword) appliesTo(of PropertyType) bool {
	return k.types == nil || slices.Contains(k.types, of)
}

// index returns the index of a keyword in the table. Unknown keywords come
// last.
func (t keywordTable) index(name string) int {
	if i := slices.IndexFunc(t, func(k keyword) bool { return k.word == name }); i >= 0 {
		return i
	}
	return len(t)
}

func (t keywordTable) named(name string) (keyword, bool) {
	if i := t.index(name); i < len(t) {
		return t[i], true
	}
	return keyword{}, false
}

// walk returns all keywords with their paths below path. Keywords within a map
// precede the map's own.
func (t keywordTable) walk(path string) iter.Seq2[string, keyword] {
	return func(yield func(string, keyword) bool) {
		for _, k := range t {
			at := problem.Join(path, k.word)
			for inner, member := range k.members.walk(at) {
				if !yield(inner, member) {
					return
				}
			}
			if !yield(at, k) {
				return
			}
		}
	}
}

// propertyTypes are all types, in the order in which messages list them.
var propertyTypes = []PropertyType{String, Integer, Number, Boolean, Array}

func typeNames() []string { return lists.Map(propertyTypes, PropertyType.typeName) }

// typeName returns the name of the type in files.
func (t PropertyType) typeName() string { return strings.ToLower(string(t)) }

// propertyTypeNamed returns the type with a name in files.
func propertyTypeNamed(name string) (PropertyType, bool) {
	i := slices.Index(typeNames(), name)
	if i < 0 {
		return "", false
	}
	return propertyTypes[i], true
}
