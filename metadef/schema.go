package metadef

import (
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// ParsePropertySchema parses the definition of the property called name, a JSON
// object of keywords. problems and warnings are at paths below path. If there
// are problems, schema must not be used. warnings are questionable input that
// was accepted or repaired; Strict has none. The schema's Keywords are the
// input without white space, otherwise verbatim and in its order, except for
// repairs.
//
// A pattern is a regular expression of Go (RE2 syntax). It may match anywhere
// in the value. RE2 can match in linear time, but has no look-around and no
// back references. A pattern with these is a problem in the API. A file keeps
// it with a warning, and no value is checked by it.
func ParsePropertySchema(text text.JSON, name, path string,
	mode Strictness) (schema PropertySchema, warnings, problems problem.Problems) {
	c := checker{level: mode}
	if value, ok := jsonvalue.Read(string(text), path, &c.found); ok {
		schema = c.readProperty(value, name, path)
	}
	if mode == Strict {
		nameAsInAPI(c.found, path)
	}
	return schema, c.warned, c.found
}

// ReadPropertySchema returns the schema of stored Keywords, without checking
// them again.
func ReadPropertySchema(keywords text.JSON) PropertySchema {
	schema := schemaOf(jsonvalue.Of(keywords))
	schema.Keywords = keywords
	return schema
}

// schemaOf returns the schema of keywords. It leaves out values of the wrong
// type.
func schemaOf(value jsonvalue.Value) PropertySchema {
	schema := PropertySchema{Keywords: value.Raw}
	propertyKeywords.read(value, &schema)
	if schema.Type == Array {
		schema.Enum = nil
	} else {
		schema.ItemType, schema.ItemEnum = nil, nil
	}
	return schema
}

func (t keywordTable) read(value jsonvalue.Value, schema *PropertySchema) {
	for _, m := range value.Members {
		k, _ := t.named(m.Key)
		if k.fills != nil {
			setField(k.fills(schema), m.Value)
		}
		k.members.read(m.Value, schema)
	}
}

// nameAsInAPI rewrites the paths of problems below a property from the names in
// files to the API's names.
func nameAsInAPI(problems problem.Problems, path string) {
	for i, one := range problems {
		for at, k := range propertyKeywords.walk(path) {
			if isBelow(one.Field, at) {
				problems[i].Field = problem.Join(path, k.inAPI())
				if !k.shape.keyed {
					problems[i].Field += one.Field[len(at):]
				}
				break
			}
		}
	}
}

// isBelow reports whether path is at or inside the path outer.
func isBelow(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// readProperty reads and checks a definition.
func (c *checker) readProperty(value jsonvalue.Value, name, path string) PropertySchema {
	if value.Kind != jsonvalue.KindMap {
		c.problem(path, "must be a map of keywords, is %s", value.Kind)
		return PropertySchema{}
	}
	if c.level == Lenient {
		value = c.repaired(value, name, path)
	}
	// For the API, the quota refuses the size, with its own code.
	if len(value.Raw) > MaxDefinition && c.level == Lenient {
		c.found.AddKind(problem.ErrQuotaExceeded, path,
			"must have at most %d bytes, has %d", MaxDefinition, len(value.Raw))
		return PropertySchema{}
	}
	c.validateKeywords(propertyKeywords, value, path, func(key string) string {
		return "is not a keyword of property definitions" + hintOf(key)
	})
	schema := schemaOf(value)
	if schema.Type != "" {
		c.validateAgainstType(value, schema.Type, path)
		c.validateTogether(value, schema, path)
	}
	return schema
}

// validateKeywords checks each keyword of a map on its own, and adds a problem
// for each required keyword that is missing.
func (c *checker) validateKeywords(table keywordTable, value jsonvalue.Value,
	path string, unknown func(key string) string) {
	for _, m := range value.Members {
		at := problem.Join(path, m.Key)
		k, ok := table.named(m.Key)
		if !ok {
			c.problem(at, "%s", unknown(m.Key))
			continue
		}
		if !k.hasEffect() {
			c.strictly(at, "accepted", "has no effect on a property")
		}
		k.shape.validate(c, m.Value, at)
		if k.members != nil && m.Value.Kind == jsonvalue.KindMap {
			c.validateKeywords(k.members, m.Value, at, func(string) string {
				return "is not a keyword of items; the keywords are type and enum"
			})
		}
	}
	for _, k := range table {
		if _, ok := value.Member(k.word); !ok && k.needed != "" {
			c.problem(problem.Join(path, k.word), "%s", k.needed)
		}
	}
}

func hintOf(name string) string {
	for _, k := range propertyKeywords {
		if strings.EqualFold(k.word, name) {
			return "; did you mean " + k.word + "?"
		}
	}
	return ""
}

// validateAgainstType checks that each keyword applies to the type, and that
// the definition of an array has the keyword items.
func (c *checker) validateAgainstType(value jsonvalue.Value, of PropertyType, path string) {
	for _, m := range value.Members {
		k, ok := propertyKeywords.named(m.Key)
		if !ok || k.appliesTo(of) {
			continue
		}
		paths := []string{problem.Join(path, k.word)}
		if k.members != nil && c.level == Strict { // the API has a field for each
			paths = nil
			for _, inner := range m.Value.Members {
				paths = append(paths, problem.Join(problem.Join(path, k.word), inner.Key))
			}
		}
		for _, at := range paths {
			c.strictly(at, "accepted", "does not apply to type %s", of.typeName())
		}
	}
	if _, ok := value.Member("items"); !ok && of == Array {
		c.strictly(problem.Join(path, "items"), "accepted", "is required for type array")
	}
}

// validateTogether checks keywords against each other.
func (c *checker) validateTogether(value jsonvalue.Value, schema PropertySchema, path string) {
	for _, pair := range [][2]string{{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}} {
		least, _ := value.Member(pair[0])
		most, _ := value.Member(pair[1])
		if least.Kind == jsonvalue.KindNumber && most.Kind == jsonvalue.KindNumber &&
			least.Decimal().Compare(most.Decimal()) > 0 {
			c.strictly(problem.Join(path, pair[0]), "accepted", "must not exceed %s", pair[1])
		}
	}
	if schema.Type != Array {
		c.validateTypes(schema.Enum, schema.Type, problem.Join(path, "enum"))
	} else if schema.ItemType != nil {
		c.validateTypes(schema.ItemEnum, *schema.ItemType, problem.Join(problem.Join(path, "items"), "enum"))
	}
	c.validateLabelled(schema, problem.Join(path, "enumLabels"))
	if schema.Default != nil {
		for _, violation := range schema.brokenBy(jsonvalue.Of(*schema.Default)) {
			c.strictly(problem.Join(path, "default")+violation.at, "accepted", "%s", violation.Message)
		}
	}
}

// validateTypes checks the types of an enum's members.
func (c *checker) validateTypes(members []text.JSON, of PropertyType, path string) {
	for i, member := range members {
		if value := jsonvalue.Of(member); !of.matches(value) {
			c.strictly(problem.Index(path, i), "accepted", "%s", of.mismatch(value))
		}
	}
}

// repaired returns a definition from a file in the stored form, with a warning
// for each repair. It uses the key for a missing title, renames defaultValue to
// default, and drops name and nulls. From a program, a missing title is also a
// problem.
func (c *checker) repaired(value jsonvalue.Value, name, path string) jsonvalue.Value {
	var members []jsonvalue.Member
	_, hasDefault := value.Member("default")
	changed, titled := false, false
	for _, m := range value.Members {
		at := problem.Join(path, m.Key)
		if m.Key == "title" && (m.Value.Kind == jsonvalue.KindNull || m.Value.Raw == `""`) {
			continue // the added title has the warning
		}
		if reason := superfluous(m, name, hasDefault); reason != "" {
			c.warn(at, "%s; left out", reason)
			changed = true
			continue
		}
		if m.Key == "defaultValue" {
			c.warn(at, "is not a keyword; read as default")
			m.Key, changed = "default", true
		}
		titled = titled || m.Key == "title"
		members = append(members, m)
	}
	if _, given := value.Member("title"); !given && c.isFromProgram {
		c.problem(problem.Join(path, "title"), "is required")
	}
	if !titled {
		c.warn(problem.Join(path, "title"), "is missing; the key becomes the title")
		members, changed = append([]jsonvalue.Member{{Key: "title", Value: jsonvalue.OfText(name)}}, members...), true
	}
	if changed {
		value.Members, value.Raw = members, jsonvalue.Map(members)
	}
	return value
}

// superfluous returns why a member of a definition from a file is left out, or
// "" if it is kept.
func superfluous(m jsonvalue.Member, name string, hasDefault bool) string {
	_, known := propertyKeywords.named(m.Key)
	switch {
	case m.Key == "name" && m.Value.Text == name:
		return "repeats the property's key"
	case m.Key == "name":
		return "differs from the property's key " + Shorten(name)
	case m.Key == "defaultValue" && hasDefault:
		return "is not a keyword and duplicates default"
	case m.Value.Kind == jsonvalue.KindNull && known && m.Key != "type":
		return "is null; read as absent"
	}
	return ""
}

// setField sets an empty field of a schema to a value. The field stays empty if
// the value has another type.
func setField(field any, v jsonvalue.Value) {
	switch field := field.(type) {
	case *string:
		*field = v.Text
	case **string:
		if v.Kind == jsonvalue.KindText {
			*field = &v.Text
		}
	case *PropertyType:
		*field, _ = propertyTypeNamed(v.Text)
	case **PropertyType:
		if of, ok := propertyTypeNamed(v.Text); ok {
			*field = &of
		}
	case **text.JSON:
		*field = &v.Raw
	case **float64:
		*field = numberOf(v)
	case **int:
		*field = countOf(v)
	case **bool:
		if v.Kind == jsonvalue.KindBoolean {
			*field = new(v.Raw == "true")
		}
	case *[]text.JSON:
		*field = listOf(v, func(item jsonvalue.Value) text.JSON { return item.Raw })
	case *[]EnumLabel:
		*field = labelsOf(v)
	case *[]string:
		*field = listOf(v, func(item jsonvalue.Value) string { return item.Text })
	}
}

// listOf maps each item of a list. It returns nil for any other value.
func listOf[T any](v jsonvalue.Value, of func(jsonvalue.Value) T) []T {
	if v.Kind != jsonvalue.KindList {
		return nil
	}
	return lists.Map(v.List, of)
}

// numberOf returns a number rounded to a double. It returns nil for any other
// value and for numbers beyond the range of doubles.
func numberOf(v jsonvalue.Value) *float64 {
	number, err := strconv.ParseFloat(string(v.Raw), 64)
	if v.Kind != jsonvalue.KindNumber || err != nil {
		return nil
	}
	return &number
}

// countOf returns a non-negative integer, or maxCount for a larger one. It
// returns nil for any other value.
func countOf(v jsonvalue.Value) *int {
	number := v.Decimal()
	if v.Kind != jsonvalue.KindNumber || !number.IsInteger() || number.Negative {
		return nil
	}
	if len(number.Digits) > 0 && number.Exponent > len(strconv.Itoa(maxCount)) {
		return new(maxCount)
	}
	count, _ := strconv.Atoi(number.Digits + strings.Repeat("0", number.Exponent-len(number.Digits)))
	return new(min(count, maxCount))
}

// matches reports whether a value is of the type. As in JSON Schema, 1.0 is an
// integer.
func (t PropertyType) matches(v jsonvalue.Value) bool {
	kinds := map[PropertyType]jsonvalue.Kind{String: jsonvalue.KindText, Boolean: jsonvalue.KindBoolean,
		Number: jsonvalue.KindNumber, Integer: jsonvalue.KindNumber, Array: jsonvalue.KindList}
	return v.Kind == kinds[t] && (t != Integer || v.Decimal().IsInteger())
}

// mismatch returns the message for a value that is not of the type.
func (t PropertyType) mismatch(v jsonvalue.Value) string {
	return "must be of type " + t.typeName() + ", is " + Shorten(string(v.Raw))
}

// Shorten returns a string for a message: the first 60 characters, and an
// ellipsis if there are more.
func Shorten(input string) string {
	const most = 60
	if text.Length(input) <= most {
		return input
	}
	return string([]rune(input)[:most]) + "…"
}
