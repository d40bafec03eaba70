package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// readKeywords gives what the keywords say as far as their values have the
// right type; others are left out.
func readKeywords(value jsonValue) PropertySchema {
	schema := PropertySchema{Keywords: value.raw}
	for _, m := range value.members {
		if m.repeated {
			continue
		}
		v := m.value
		switch m.key {
		case "title":
			schema.Title = v.text
		case "description":
			schema.Description = v.asText()
		case "type":
			schema.Type, _ = propertyTypeNamed(v.text)
		case "items":
			if item, ok := v.member("type"); ok {
				if of, known := propertyTypeNamed(item.text); known {
					schema.ItemType = &of
				}
			}
			if members, ok := v.member("enum"); ok {
				schema.ItemEnum = members.asValues()
			}
		case "enum":
			schema.Enum = v.asValues()
		case "default":
			schema.Default = &v.raw
		case "minimum":
			schema.Minimum = v.asNumber()
		case "maximum":
			schema.Maximum = v.asNumber()
		case "minLength":
			schema.MinLength = v.asCount()
		case "maxLength":
			schema.MaxLength = v.asCount()
		case "pattern":
			schema.Pattern = v.asText()
		case "minItems":
			schema.MinItems = v.asCount()
		case "maxItems":
			schema.MaxItems = v.asCount()
		case "uniqueItems":
			schema.UniqueItems = v.asBoolean()
		case "additionalItems":
			schema.AdditionalItems = v.asBoolean()
		case "readonly":
			schema.ReadOnly = v.asBoolean()
		case "operators":
			schema.Operators = v.asTexts()
		}
	}
	if schema.Type == Array {
		schema.Enum = nil
	} else {
		schema.ItemType, schema.ItemEnum = nil, nil
	}
	return schema
}

func (v jsonValue) asText() *string {
	if v.kind != jsonText {
		return nil
	}
	return &v.text
}

func (v jsonValue) asBoolean() *bool {
	if v.kind != jsonBoolean {
		return nil
	}
	yes := v.isTrue()
	return &yes
}

func (v jsonValue) asNumber() *float64 {
	number, err := strconv.ParseFloat(string(v.raw), 64)
	if v.kind != jsonNumber || err != nil {
		return nil
	}
	return &number
}

func (v jsonValue) asCount() *int {
	number, ok := parseDecimal(string(v.raw))
	if v.kind != jsonNumber || !ok || !number.isInteger() || number.negative {
		return nil
	}
	count := MaxCount
	if most, _ := parseDecimal(strconv.Itoa(MaxCount)); number.compare(most) < 0 {
		count, _ = strconv.Atoi(number.digits + strings.Repeat("0", number.exponent-len(number.digits)))
	}
	return &count
}

func (v jsonValue) asValues() []JSON {
	if v.kind != jsonList {
		return nil
	}
	values := make([]JSON, len(v.list))
	for i, item := range v.list {
		values[i] = item.raw
	}
	return values
}

func (v jsonValue) asTexts() []string {
	if v.kind != jsonList {
		return nil
	}
	texts := make([]string, 0, len(v.list))
	for _, item := range v.list {
		if item.kind == jsonText {
			texts = append(texts, item.text)
		}
	}
	return texts
}

// repairProperty gives a definition from a file the form that the product
// keeps, with a warning for each repair: the key for a missing title, default
// for defaultValue, and no null or repeated name.
func repairProperty(value jsonValue, name, path string, found *findings) jsonValue {
	repaired := slices.Clone(value.members)
	_, hasDefault := value.member("default")
	changed := false
	repaired = slices.DeleteFunc(repaired, func(m jsonMember) bool {
		at := found.keywordPath(path, m.key)
		switch {
		case m.fault != "" || m.repeated || !m.value.sound():
			return false
		case m.key == "name" && m.value.text == name:
			found.warn(at, "repeats the property's key; left out")
		case m.key == "name":
			found.warn(at, "contradicts the property's key %s, which holds; left out", shorten(name))
		case m.key == "defaultValue" && hasDefault:
			found.warn(at, "is not a keyword and default is there; left out")
		case m.key == "title" && (m.value.kind == jsonNull || m.value.kind == jsonText && m.value.text == ""):
			// The title that is added below brings the warning.
		case m.value.kind == jsonNull && m.key != "type" && keywordRank(m.key) < len(propertyKeywords):
			found.warn(at, "is null, which counts as absent; left out")
		default:
			return false
		}
		changed = true
		return true
	})
	for i, m := range repaired {
		if m.key == "defaultValue" && !m.repeated {
			found.warn(joined(path, m.key), "is not a keyword; read as default")
			repaired[i].key, changed = "default", true
		}
	}
	if !slices.ContainsFunc(repaired, func(m jsonMember) bool { return m.key == "title" }) {
		found.warn(found.keywordPath(path, "title"), "is missing; the key becomes the title")
		title := jsonMember{key: "title", value: jsonValue{kind: jsonText, raw: quote(name), text: name}}
		repaired, changed = append([]jsonMember{title}, repaired...), true
	}
	if changed {
		value.members, value.raw = repaired, writeMembers(repaired)
	}
	return value
}

// writeMembers is the text of a map.
func writeMembers(members []jsonMember) JSON {
	var text strings.Builder
	text.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(string(quote(m.key)))
		text.WriteByte(':')
		text.WriteString(string(m.value.raw))
	}
	text.WriteByte('}')
	return JSON(text.String())
}
