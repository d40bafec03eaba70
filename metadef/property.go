package metadef

import (
	"math"
	"slices"
	"strconv"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// PropertyInput is a new property in the API's typed fields. A nil pointer or
// slice is an absent field, an empty slice a present one.
type PropertyInput struct {
	Name            string
	Title           *string
	Description     *string
	Type            PropertyType
	ItemType        *PropertyType
	Enum            []text.JSON
	ItemEnum        []text.JSON
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
}

// Change is what a patch says about one field: the zero Change keeps it, a set
// one replaces it, and a set one whose value is nil clears it.
type Change[T any] struct {
	Set   bool
	Value T
}

// PropertyPatch is a change of a property's definition, field by field. It
// does not rename.
type PropertyPatch struct {
	Title           Change[*string]
	Description     Change[*string]
	Type            Change[*PropertyType]
	ItemType        Change[*PropertyType]
	Enum            Change[[]text.JSON]
	ItemEnum        Change[[]text.JSON]
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
}

// Schema builds the schema of a new property, its keywords in the fixed order
// of the keyword table, and judges it strictly. Problems are below path and
// include those of the name (`input.properties[2].name`).
func (p PropertyInput) Schema(path string) (PropertySchema, problem.Problems) {
	var problems problem.Problems
	text.CheckName(&problems, problem.Join(path, "name"), p.Name)
	patch := PropertyPatch{
		Title:           given(p.Title, p.Title != nil),
		Description:     given(p.Description, p.Description != nil),
		Type:            given(&p.Type, p.Type != ""),
		ItemType:        given(p.ItemType, p.ItemType != nil),
		Enum:            given(p.Enum, p.Enum != nil),
		ItemEnum:        given(p.ItemEnum, p.ItemEnum != nil),
		Default:         given(p.Default, p.Default != nil),
		Minimum:         given(p.Minimum, p.Minimum != nil),
		Maximum:         given(p.Maximum, p.Maximum != nil),
		MinLength:       given(p.MinLength, p.MinLength != nil),
		MaxLength:       given(p.MaxLength, p.MaxLength != nil),
		Pattern:         given(p.Pattern, p.Pattern != nil),
		MinItems:        given(p.MinItems, p.MinItems != nil),
		MaxItems:        given(p.MaxItems, p.MaxItems != nil),
		UniqueItems:     given(p.UniqueItems, p.UniqueItems != nil),
		AdditionalItems: given(p.AdditionalItems, p.AdditionalItems != nil),
		ReadOnly:        given(p.ReadOnly, p.ReadOnly != nil),
		Operators:       given(p.Operators, p.Operators != nil),
	}
	keywords, wrong := patch.apply(`{}`, path)
	schema, _, more := ParsePropertySchema(keywords, p.Name, path, Strict)
	return schema, slices.Concat(problems, wrong, more)
}

// Apply changes a stored definition: what the patch does not name stays as it
// is, keywords that have no field included, and a new keyword goes where the
// keyword table has it. The result is judged strictly, but what was already
// wrong before, as definition files may bring it, is held against the patch
// only where the patch sets that very field again.
func (p PropertyPatch) Apply(current PropertySchema, path string) (PropertySchema, problem.Problems) {
	keywords, wrong := p.apply(current.Keywords, path)
	schema, _, problems := ParsePropertySchema(keywords, "", path, Strict)
	_, _, before := ParsePropertySchema(current.Keywords, "", path, Strict)
	set := p.fields()
	problems = slices.DeleteFunc(problems, func(one problem.Problem) bool {
		if !slices.Contains(before, one) {
			return false
		}
		return !slices.ContainsFunc(set, func(field string) bool { return isBelow(one.Field, problem.Join(path, field)) })
	})
	return schema, slices.Concat(wrong, problems)
}

func given[T any](value T, set bool) Change[T] { return Change[T]{Set: set, Value: value} }

// isBelow tells whether path is at or inside the path outer.
func isBelow(path, outer string) bool {
	if len(path) < len(outer) || path[:len(outer)] != outer {
		return false
	}
	return len(path) == len(outer) || path[len(outer)] == '.' || path[len(outer)] == '['
}

// keywordChange is a change of one keyword; without value it is removed.
type keywordChange struct {
	field string
	name  string
	inner string // the keyword inside items
	value text.JSON
}

func (p PropertyPatch) fields() []string {
	changes := p.changes()
	fields := make([]string, len(changes))
	for i, change := range changes {
		fields[i] = change.field
	}
	return fields
}

func (p PropertyPatch) changes() []keywordChange {
	var changes []keywordChange
	add := func(set bool, field, name, inner string, value text.JSON) {
		if set {
			changes = append(changes, keywordChange{field, name, inner, value})
		}
	}
	add(p.Title.Set, "title", "title", "", textValue(p.Title.Value))
	add(p.Description.Set, "description", "description", "", textValue(p.Description.Value))
	add(p.Type.Set, "type", "type", "", typeValue(p.Type.Value))
	add(p.ItemType.Set, "itemType", "items", "type", typeValue(p.ItemType.Value))
	add(p.ItemEnum.Set, "itemEnum", "items", "enum", listValue(p.ItemEnum.Value))
	add(p.Enum.Set, "enum", "enum", "", listValue(p.Enum.Value))
	if p.Default.Value != nil {
		add(p.Default.Set, "default", "default", "", *p.Default.Value)
	} else {
		add(p.Default.Set, "default", "default", "", "")
	}
	add(p.Minimum.Set, "minimum", "minimum", "", numberValue(p.Minimum.Value))
	add(p.Maximum.Set, "maximum", "maximum", "", numberValue(p.Maximum.Value))
	add(p.MinLength.Set, "minLength", "minLength", "", countValue(p.MinLength.Value))
	add(p.MaxLength.Set, "maxLength", "maxLength", "", countValue(p.MaxLength.Value))
	add(p.Pattern.Set, "pattern", "pattern", "", textValue(p.Pattern.Value))
	add(p.MinItems.Set, "minItems", "minItems", "", countValue(p.MinItems.Value))
	add(p.MaxItems.Set, "maxItems", "maxItems", "", countValue(p.MaxItems.Value))
	add(p.UniqueItems.Set, "uniqueItems", "uniqueItems", "", booleanValue(p.UniqueItems.Value))
	add(p.AdditionalItems.Set, "additionalItems", "additionalItems", "", booleanValue(p.AdditionalItems.Value))
	add(p.ReadOnly.Set, "readOnly", "readonly", "", booleanValue(p.ReadOnly.Value))
	add(p.Operators.Set, "operators", "operators", "", textsValue(p.Operators.Value))
	return changes
}

// apply writes the changes into the text of a definition. A value that is not
// JSON is a problem and left out, so that the rest can be judged with it.
func (p PropertyPatch) apply(keywords text.JSON, path string) (text.JSON, problem.Problems) {
	var found findings
	current, _ := readJSON(string(keywords), path, &found)
	members := current.members
	for _, change := range p.changes() {
		var value jsonValue
		if change.value != "" {
			var ok bool
			if value, ok = readJSON(string(change.value), problem.Join(path, change.field), &found); !ok {
				continue
			}
		}
		if change.inner == "" {
			members = withMember(members, change.name, value, keywordRank)
			continue
		}
		var items jsonValue
		if i := slices.IndexFunc(members, func(m jsonMember) bool { return m.key == change.name }); i >= 0 {
			items = members[i].value
		}
		items.members = withMember(items.members, change.inner, value, itemsRank)
		items.raw = ""
		if len(items.members) > 0 {
			items.kind, items.raw = jsonMap, writeMembers(items.members)
		}
		members = withMember(members, change.name, items, keywordRank)
	}
	return writeMembers(members), found.problems
}

// withMember sets a member, in its place where it exists and otherwise before
// the first that ranks after it; a value without text removes it.
func withMember(members []jsonMember, key string, value jsonValue, rank func(string) int) []jsonMember {
	i := slices.IndexFunc(members, func(m jsonMember) bool { return m.key == key })
	switch {
	case value.raw == "" && i >= 0:
		return slices.Delete(slices.Clone(members), i, i+1)
	case value.raw == "":
		return members
	case i >= 0:
		members = slices.Clone(members)
		members[i].value = value
		return members
	}
	at := slices.IndexFunc(members, func(m jsonMember) bool { return rank(m.key) > rank(key) })
	if at < 0 {
		at = len(members)
	}
	return slices.Insert(slices.Clone(members), at, jsonMember{key: key, value: value})
}

func itemsRank(name string) int {
	if name == "type" {
		return 0
	}
	return 1
}

func textValue(text *string) text.JSON {
	if text == nil {
		return ""
	}
	return quote(*text)
}

func typeValue(of *PropertyType) text.JSON {
	if of == nil {
		return ""
	}
	return quote(of.typeName())
}

func numberValue(number *float64) text.JSON {
	switch {
	case number == nil:
		return ""
	case math.IsNaN(*number) || math.IsInf(*number, 0):
		return "null"
	}
	format := byte('f')
	if size := math.Abs(*number); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return text.JSON(strconv.FormatFloat(*number, format, -1, 64))
}

func countValue(count *int) text.JSON {
	if count == nil {
		return ""
	}
	return text.JSON(strconv.Itoa(*count))
}

func booleanValue(yes *bool) text.JSON {
	if yes == nil {
		return ""
	}
	return text.JSON(strconv.FormatBool(*yes))
}

func listValue(values []text.JSON) text.JSON {
	if values == nil {
		return ""
	}
	input := []byte{'['}
	for i, value := range values {
		if i > 0 {
			input = append(input, ',')
		}
		input = append(input, value...)
	}
	return text.JSON(append(input, ']'))
}

func textsValue(texts []string) text.JSON {
	if texts == nil {
		return ""
	}
	values := make([]text.JSON, len(texts))
	for i, text := range texts {
		values[i] = quote(text)
	}
	return listValue(values)
}
