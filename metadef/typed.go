package metadef

import (
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/text"
)

// PropertyValue is a value in a definition, such as its default, for programs
// that do not parse JSON.
type PropertyValue struct{ value jsonvalue.Value }

// Text returns the value in the form of metadata: a string unquoted, any other
// value as JSON.
func (v *PropertyValue) Text() string {
	if v.value.Kind == jsonvalue.KindText {
		return v.value.Text
	}
	return string(v.value.Raw)
}

// StringValue returns the value of a string, or nil for any other value.
func (v *PropertyValue) StringValue() *string {
	if v.value.Kind != jsonvalue.KindText {
		return nil
	}
	return &v.value.Text
}

// IntegerValue returns the value of an integer in the range of int64, or nil
// for any other value.
func (v *PropertyValue) IntegerValue() *int64 {
	if v.value.Kind != jsonvalue.KindNumber {
		return nil
	}
	number := v.value.Decimal()
	if !number.IsInteger() || number.Exponent > maxDigits {
		return nil
	}
	digits := "0" + number.Digits + strings.Repeat("0", max(0, number.Exponent-len(number.Digits)))
	if number.Negative {
		digits = "-" + digits
	}
	integer, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return nil
	}
	return &integer
}

// maxDigits is the maximum number of digits of an int64.
const maxDigits = 19

// FloatValue returns a number rounded to a double. It returns nil for any other
// value and for numbers beyond the range of doubles.
func (v *PropertyValue) FloatValue() *float64 { return numberOf(v.value) }

// BooleanValue returns the value of a boolean, or nil for any other value.
func (v *PropertyValue) BooleanValue() *bool {
	if v.value.Kind != jsonvalue.KindBoolean {
		return nil
	}
	return new(v.value.Raw == "true")
}

// ListValue returns the items of a list, or nil for any other value.
func (v *PropertyValue) ListValue() []*PropertyValue {
	return listOf(v.value, func(item jsonvalue.Value) *PropertyValue { return &PropertyValue{item} })
}

// DefaultValue returns the default, or nil if there is none.
func (s PropertySchema) DefaultValue() *PropertyValue {
	if s.Default == nil {
		return nil
	}
	return &PropertyValue{jsonvalue.Of(*s.Default)}
}

// EnumMember is an allowed value of a property, with an optional label for
// display.
type EnumMember struct {
	Value *PropertyValue
	Label *string
}

// EnumMembers returns the members of the enum with their labels, or nil without
// an enum.
func (s PropertySchema) EnumMembers() []*EnumMember { return s.labelled(s.Enum) }

// ItemEnumMembers is EnumMembers for the items of an array.
func (s PropertySchema) ItemEnumMembers() []*EnumMember { return s.labelled(s.ItemEnum) }

func (s PropertySchema) labelled(enum []text.JSON) []*EnumMember {
	if enum == nil {
		return nil
	}
	labels := lists.Index(s.EnumLabels, func(of EnumLabel) (string, *string) { return of.Value, &of.Label })
	return lists.Map(enum, func(member text.JSON) *EnumMember {
		value := &PropertyValue{jsonvalue.Of(member)}
		return &EnumMember{Value: value, Label: labels[value.Text()]}
	})
}

// EnumLabel is the label of an enum member for display. Value is the member in
// the form of metadata.
type EnumLabel struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// labelsOf returns the labels in a map of a file, or nil for any other value.
func labelsOf(v jsonvalue.Value) []EnumLabel {
	if v.Kind != jsonvalue.KindMap {
		return nil
	}
	return lists.Map(v.Members, func(m jsonvalue.Member) EnumLabel { return EnumLabel{m.Key, m.Value.Text} })
}

// mapOfLabels converts the API's list of labels to the map in files.
func mapOfLabels(list text.JSON) text.JSON {
	if list == "" {
		return ""
	}
	return jsonvalue.Map(lists.Map(jsonvalue.Of(list).List, func(item jsonvalue.Value) jsonvalue.Member {
		value, _ := item.Member("value")
		label, _ := item.Member("label")
		return jsonvalue.MemberOf(value.Text, label.Raw)
	}))
}

// validateLabels checks each label on its own.
func (c *checker) validateLabels(value jsonvalue.Value, path string) {
	if !c.expect(value, jsonvalue.KindMap, path) || !c.atMost(len(value.Members), maxEnumMembers, path) {
		return
	}
	for _, m := range value.Members {
		if c.expect(m.Value, jsonvalue.KindText, path) &&
			(m.Value.Text == "" || text.Length(m.Value.Text) > text.MaxName) {
			c.strictly(path, "accepted", "the label of %s must have 1 to %d characters", Shorten(m.Key), text.MaxName)
		}
	}
}

// validateLabelled checks that every label belongs to a member of an enum.
func (c *checker) validateLabelled(schema PropertySchema, path string) {
	members := map[string]bool{}
	for _, member := range append(schema.EnumMembers(), schema.ItemEnumMembers()...) {
		members[member.Value.Text()] = true
	}
	for _, of := range schema.EnumLabels {
		if !members[of.Value] {
			c.strictly(path, "accepted", "%s is not a member of the enum", Shorten(of.Value))
		}
	}
}
