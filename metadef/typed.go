package metadef

import (
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/text"
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
			schema.ItemType, schema.ItemEnum = readItems(v)
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

// readItems is what `items` says of the members of an array.
func readItems(value jsonValue) (of *PropertyType, enum []text.JSON) {
	if item, ok := value.member("type"); ok {
		if named, known := propertyTypeNamed(item.text); known {
			of = &named
		}
	}
	members, _ := value.member("enum")
	return of, members.asValues()
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
	number, ok := text.ParseDecimal(string(v.raw))
	if v.kind != jsonNumber || !ok || !number.IsInteger() || number.Negative {
		return nil
	}
	count := MaxCount
	if most, _ := text.ParseDecimal(strconv.Itoa(MaxCount)); number.Compare(most) < 0 {
		count, _ = strconv.Atoi(number.Digits + strings.Repeat("0", number.Exponent-len(number.Digits)))
	}
	return &count
}

func (v jsonValue) asValues() []text.JSON {
	if v.kind != jsonList {
		return nil
	}
	values := make([]text.JSON, len(v.list))
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
