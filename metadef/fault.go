package metadef

import (
	"strconv"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Violation is one rule of a definition that a value breaks. Rule is the API's
// name of the keyword concerned: type, enum, itemType, itemEnum, minimum,
// maximum, minLength, maxLength, pattern, minItems, maxItems, uniqueItems,
// operators.
type Violation struct {
	Rule    string
	Message string
}

// fault is a violation and where in the value it is: nothing for the value
// itself, `[2]` for an item.
type fault struct {
	Violation
	at string
}

// is tells whether the value is of a type. 1.0 is an integer, as in JSON
// Schema.
func (v jsonValue) is(of PropertyType) bool {
	switch of {
	case String:
		return v.kind == jsonText
	case Boolean:
		return v.kind == jsonBoolean
	case Number:
		return v.kind == jsonNumber
	case Integer:
		number, ok := text.ParseDecimal(string(v.raw))
		return v.kind == jsonNumber && ok && number.IsInteger()
	case Array:
		return v.kind == jsonList
	}
	return false
}

// faults is everything that the definition says against a value.
func (s PropertySchema) faults(value jsonValue) []fault {
	if !value.is(s.Type) {
		return []fault{{Violation: Violation{"type",
			"must be of type " + s.Type.typeName() + ", is " + Shorten(string(value.raw))}}}
	}
	var faults []fault
	add := func(rule, message string) {
		faults = append(faults, fault{Violation: Violation{rule, message}})
	}
	if s.Type == Array {
		return s.listFaults(value)
	}
	if len(s.Enum) > 0 && !sameSet(s.Enum)[value.same()] {
		add("enum", Shorten(string(value.raw))+" is not one of the values of the enum")
	}
	switch s.Type {
	case Integer, Number:
		number, _ := text.ParseDecimal(string(value.raw))
		if least := s.bound("minimum"); least != nil && number.Compare(*least) < 0 {
			add("minimum", Shorten(string(value.raw))+" is under the minimum "+formatNumber(s.Minimum))
		}
		if most := s.bound("maximum"); most != nil && number.Compare(*most) > 0 {
			add("maximum", Shorten(string(value.raw))+" is over the maximum "+formatNumber(s.Maximum))
		}
	case String:
		length := text.Length(value.text)
		if s.MinLength != nil && length < *s.MinLength {
			add("minLength", "must have at least "+strconv.Itoa(*s.MinLength)+" characters, has "+strconv.Itoa(length))
		}
		if s.MaxLength != nil && length > *s.MaxLength {
			add("maxLength", "must have at most "+strconv.Itoa(*s.MaxLength)+" characters, has "+strconv.Itoa(length))
		}
		if s.Pattern != nil && !matches(*s.Pattern, value.text) {
			add("pattern", Shorten(value.text)+" does not match the pattern "+Shorten(*s.Pattern))
		}
	}
	return faults
}

func (s PropertySchema) listFaults(value jsonValue) []fault {
	var faults []fault
	count := len(value.list)
	if s.MinItems != nil && count < *s.MinItems {
		faults = append(faults, fault{Violation: Violation{"minItems",
			"must have at least " + strconv.Itoa(*s.MinItems) + " items, has " + strconv.Itoa(count)}})
	}
	if s.MaxItems != nil && count > *s.MaxItems {
		faults = append(faults, fault{Violation: Violation{"maxItems",
			"must have at most " + strconv.Itoa(*s.MaxItems) + " items, has " + strconv.Itoa(count)}})
	}
	seen, listed := map[string]bool{}, sameSet(s.ItemEnum)
	for i, item := range value.list {
		at := problem.Index("", i)
		if s.ItemType != nil && !item.is(*s.ItemType) {
			faults = append(faults, fault{Violation{"itemType",
				"must be of type " + s.ItemType.typeName() + ", is " + Shorten(string(item.raw))}, at})
		} else if len(s.ItemEnum) > 0 && !listed[item.same()] {
			faults = append(faults, fault{Violation{"itemEnum",
				Shorten(string(item.raw)) + " is not one of the values of the items' enum"}, at})
		}
		if s.UniqueItems != nil && *s.UniqueItems && seen[item.same()] {
			faults = append(faults, fault{Violation{"uniqueItems", Shorten(string(item.raw)) + " is repeated"}, at})
		}
		seen[item.same()] = true
	}
	return faults
}

// sameSet is the members of an enum as same writes them. An enum without
// members allows everything.
func sameSet(members []text.JSON) map[string]bool {
	set := make(map[string]bool, len(members))
	for _, member := range members {
		if value, ok := readJSON(string(member), "", &findings{}); ok {
			set[value.same()] = true
		}
	}
	return set
}

// bound is a minimum or maximum to the last digit. A double holds 15 digits of
// any number; what has more is read from the keywords again.
func (s PropertySchema) bound(name string) *text.Decimal {
	rounded := s.Minimum
	if name == "maximum" {
		rounded = s.Maximum
	}
	if rounded == nil {
		return nil
	}
	number, ok := text.ParseDecimal(strconv.FormatFloat(*rounded, 'e', -1, 64))
	if !ok {
		return nil
	}
	if len(number.Digits) > 15 {
		if value, ok := readJSON(string(s.Keywords), "", &findings{}); ok {
			if exact, ok := value.member(name); ok && exact.kind == jsonNumber {
				number, _ = text.ParseDecimal(string(exact.raw))
			}
		}
	}
	return &number
}

func formatNumber(number *float64) string {
	return Shorten(strconv.FormatFloat(*number, 'f', -1, 64))
}
