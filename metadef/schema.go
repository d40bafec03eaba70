package metadef

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// ParsePropertySchema reads the definition of the property called name: one
// JSON object of keywords. Everything wrong with it is in problems, each with
// its path below path; only without problems is the schema of use. What was
// accepted although it is odd, or repaired, is in warnings, with the same
// paths; Strict has none. The schema's Keywords are the text, verbatim and in
// its order but for repairs.
//
// A pattern is a regular expression of Go (RE2 syntax), searched for anywhere
// in the value: it is what JSON Schema's patterns have in common with an engine
// that takes time linear in the value. Look-around and back references are
// problems; from files they are kept with a warning and not checked.
func ParsePropertySchema(text text.JSON, name, path string, mode Strictness) (schema PropertySchema, warnings, problems problem.Problems) {
	found := findings{mode: mode}
	if value, ok := readJSON(string(text), path, &found); ok {
		schema = parseProperty(value, name, path, &found)
	}
	return schema, found.warnings, found.problems
}

// ReadPropertySchema gives the schema that stored Keywords say, without judging
// them again.
func ReadPropertySchema(keywords text.JSON) PropertySchema {
	var found findings
	value, ok := readJSON(string(keywords), "", &found)
	if !ok {
		return PropertySchema{Keywords: keywords}
	}
	return readKeywords(value)
}

func parseProperty(value jsonValue, name, path string, found *findings) PropertySchema {
	if value.kind != jsonMap {
		found.problem(path, "must be a map of keywords, is %s", value.kind)
		return PropertySchema{}
	}
	if found.mode == Lenient {
		value = repairProperty(value, name, path, found)
	}
	// Through the API the size is for the quota to refuse, which has its own code.
	if len(value.raw) > MaxDefinition && found.mode == Lenient {
		found.problem(path, "QUOTA_EXCEEDED: must have at most %d bytes, has %d", MaxDefinition, len(value.raw))
		return PropertySchema{}
	}
	for _, m := range value.members {
		checkMember(m, path, found)
	}
	for _, required := range []string{"title", "type"} {
		if _, ok := value.member(required); !ok {
			found.problem(found.keywordPath(path, required), "is required%s", expectedOf(required))
		}
	}
	schema := readKeywords(value)
	if schema.Type != "" {
		checkAgainstType(value, schema, path, found)
		checkTogether(schema, path, found)
	}
	return schema
}

func expectedOf(name string) string {
	if name == "type" {
		return ": one of " + strings.Join(typeNames(), ", ")
	}
	return ""
}

// checkMember checks one keyword by itself.
func checkMember(m jsonMember, path string, found *findings) {
	k, known := keywordNamed(m.key)
	at := found.keywordPath(path, m.key)
	if m.fault != "" || m.repeated || !m.value.sound() {
		if m.key != "items" || m.fault != "" || m.repeated || m.value.kind != jsonMap {
			m.report(at, found)
			return
		}
		for _, inner := range m.value.members {
			inner.report(found.itemsPath(path, inner.key), found)
		}
		return
	}
	if !known {
		found.problem(at, "is not a keyword of property definitions%s", keywordHint(m.key))
		return
	}
	if k.file {
		found.odd(at, "accepted", "has no effect on a property")
	}
	value := m.value
	switch k.shape {
	case shapeText:
		if expect(value, jsonText, at, found) && k.name == "title" && value.text == "" {
			found.odd(at, "accepted", "must not be empty")
		}
	case shapePattern:
		if expect(value, jsonText, at, found) {
			checkPattern(value.text, at, found)
		}
	case shapeType:
		checkTypeName(value, at, found)
	case shapeItems:
		checkItems(value, path, at, found)
	case shapeAnythings:
		checkMembers(value, at, found)
	case shapeTexts, shapeUniqueText:
		checkTexts(k, value, at, found)
	case shapeNumber:
		if expect(value, jsonNumber, at, found) {
			if _, err := strconv.ParseFloat(string(value.raw), 64); err != nil {
				found.problem(at, "is beyond what a double-precision number can hold")
			}
		}
	case shapeCount:
		checkCount(value, at, found)
	case shapeBoolean:
		expect(value, jsonBoolean, at, found)
	}
}

func expect(value jsonValue, kind jsonKind, path string, found *findings) bool {
	if value.kind != kind {
		found.problem(path, "must be %s, is %s", kind, value.kind)
		return false
	}
	return true
}

func keywordHint(name string) string {
	for _, k := range propertyKeywords {
		if strings.EqualFold(k.name, name) {
			return "; meant is perhaps " + k.name
		}
	}
	return ""
}

func checkTypeName(value jsonValue, path string, found *findings) {
	types := strings.Join(typeNames(), ", ")
	if value.kind != jsonText {
		found.problem(path, "must be one of %s, is %s", types, value.kind)
	} else if value.text == "object" {
		found.problem(path, "must be one of %s: objects cannot be nested in a property", types)
	} else if _, ok := propertyTypeNamed(value.text); !ok {
		found.problem(path, "must be one of %s, is %s", types, Shorten(value.text))
	}
}

// checkItems checks what an array's members are to be.
func checkItems(items jsonValue, path, at string, found *findings) {
	if !expect(items, jsonMap, at, found) {
		return
	}
	for _, m := range items.members {
		inner := found.itemsPath(path, m.key)
		switch m.key {
		case "type":
			if checkTypeName(m.value, inner, found); m.value.text == Array.typeName() {
				found.odd(inner, "accepted", "must be one of string, integer, number, boolean: arrays cannot be nested")
			}
		case "enum":
			checkMembers(m.value, inner, found)
		default:
			found.problem(inner, "is not a keyword of items; they have type and enum")
		}
	}
	if _, ok := items.member("type"); !ok {
		found.problem(found.itemsPath(path, "type"), "is required: one of string, integer, number, boolean")
	}
}

// checkMembers checks the list of an enum.
func checkMembers(list jsonValue, path string, found *findings) {
	if !expect(list, jsonList, path, found) {
		return
	}
	if len(list.list) > MaxEnumMembers {
		found.problem(path, "must have at most %d members, has %d", MaxEnumMembers, len(list.list))
		return
	}
	first := map[string]int{}
	for i, item := range list.list {
		if j, repeated := first[item.same()]; repeated {
			found.odd(problem.Index(path, i), "accepted", "repeats member %d, %s", j, Shorten(string(item.raw)))
		} else {
			first[item.same()] = i
		}
	}
}

func checkTexts(k keyword, list jsonValue, path string, found *findings) {
	if !expect(list, jsonList, path, found) {
		return
	}
	if len(list.list) > MaxEnumMembers {
		found.problem(path, "must have at most %d members, has %d", MaxEnumMembers, len(list.list))
		return
	}
	seen := map[string]bool{}
	for i, item := range list.list {
		at := problem.Index(path, i)
		if !expect(item, jsonText, at, found) {
			continue
		}
		if k.shape == shapeUniqueText && seen[item.text] {
			found.odd(at, "accepted", "is repeated")
		}
		seen[item.text] = true
		if k.name == "operators" && found.mode == Lenient && !isOperator(item.text) {
			found.warn(at, "%s is none of the known operators <in>, <or>, <all-in>; kept", Shorten(item.text))
		}
	}
}

func checkCount(value jsonValue, path string, found *findings) {
	if !expect(value, jsonNumber, path, found) {
		return
	}
	number, _ := text.ParseDecimal(string(value.raw))
	most, _ := text.ParseDecimal(strconv.Itoa(MaxCount))
	switch {
	case !number.IsInteger():
		found.problem(path, "must be an integer, is %s", Shorten(string(value.raw)))
	case number.Compare(text.Decimal{}) < 0:
		found.problem(path, "must not be negative")
	case number.Compare(most) > 0:
		found.odd(path, "counts as that", "must be at most %d", MaxCount)
	}
}

// checkAgainstType checks keywords that say nothing about the type, and lists
// that do not say what is in them.
func checkAgainstType(value jsonValue, schema PropertySchema, path string, found *findings) {
	for _, m := range value.members {
		k, known := keywordNamed(m.key)
		if !known || k.types == nil || slices.Contains(k.types, schema.Type) {
			continue
		}
		at := found.keywordPath(path, m.key)
		if k.shape == shapeItems && found.mode == Strict {
			for _, inner := range m.value.members {
				found.problem(found.itemsPath(path, inner.key), "does not apply to type %s", schema.Type.typeName())
			}
			continue
		}
		found.odd(at, "accepted", "does not apply to type %s", schema.Type.typeName())
	}
	if _, ok := value.member("items"); !ok && schema.Type == Array {
		found.odd(found.keywordPath(path, "items"), "accepted", "is required for type array")
	}
}

// checkTogether checks keywords against each other.
func checkTogether(schema PropertySchema, path string, found *findings) {
	if least, most := schema.bound("minimum"), schema.bound("maximum"); least != nil && most != nil && least.Compare(*most) > 0 {
		found.odd(found.keywordPath(path, "minimum"), "accepted", "must not be over the maximum")
	}
	if schema.MinLength != nil && schema.MaxLength != nil && *schema.MinLength > *schema.MaxLength {
		found.odd(found.keywordPath(path, "minLength"), "accepted", "must not be over maxLength")
	}
	if schema.MinItems != nil && schema.MaxItems != nil && *schema.MinItems > *schema.MaxItems {
		found.odd(found.keywordPath(path, "minItems"), "accepted", "must not be over maxItems")
	}
	if schema.Type != Array {
		checkEnumTypes(schema.Enum, schema.Type, found.keywordPath(path, "enum"), found)
	} else if schema.ItemType != nil {
		checkEnumTypes(schema.ItemEnum, *schema.ItemType, found.itemsPath(path, "enum"), found)
	}
	if schema.Default != nil {
		value, _ := readJSON(string(*schema.Default), "", &findings{})
		for _, fault := range schema.faults(value) {
			found.odd(found.keywordPath(path, "default")+fault.at, "accepted", "%s", fault.Message)
		}
	}
}

func checkEnumTypes(members []text.JSON, of PropertyType, path string, found *findings) {
	for i, member := range members {
		value, _ := readJSON(string(member), "", &findings{})
		if !value.is(of) {
			found.odd(problem.Index(path, i), "accepted", "must be of type %s, is %s", of.typeName(), Shorten(string(member)))
		}
	}
}

// Shorten keeps a message readable whatever it quotes.
func Shorten(input string) string {
	const most = 60
	if text.Length(input) <= most {
		return input
	}
	return string([]rune(input)[:most]) + "…"
}
