package metadef

import (
	"strconv"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
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
	at      string // where in the value: "" for the value itself, `[2]` for an item
}

// rule returns how a value breaks a keyword of a definition, or nothing.
type rule func(value jsonvalue.Value) string

// violations returns every rule of the definition that a value breaks.
func (s PropertySchema) violations(value jsonvalue.Value) []Violation {
	if !s.Type.matches(value) {
		return []Violation{{Rule: "type", Message: s.Type.mismatch(value)}}
	}
	type namedRule struct {
		name  string
		check rule
	}
	var broken []Violation
	var itemRules []namedRule
	for _, k := range propertyKeywords.all("") {
		switch {
		case !k.appliesTo(s.Type):
		case k.itemRule != nil:
			if check := k.itemRule(s); check != nil {
				itemRules = append(itemRules, namedRule{k.inAPI(), check})
			}
		case k.rule != nil:
			if check := k.rule(s); check != nil {
				if message := check(value); message != "" {
					broken = append(broken, Violation{Rule: k.inAPI(), Message: message})
				}
			}
		}
	}
	for i, item := range value.List {
		for _, of := range itemRules {
			if message := of.check(item); message != "" {
				broken = append(broken, Violation{of.name, message, problem.Index("", i)})
			}
		}
	}
	return broken
}

// oneOf demands a member of an enum. An enum without members allows everything.
func oneOf(members []text.JSON, enum string) rule {
	if len(members) == 0 {
		return nil
	}
	set := map[string]bool{}
	for _, member := range members {
		set[jsonvalue.Of(member).Same()] = true
	}
	return func(value jsonvalue.Value) string {
		if set[value.Same()] {
			return ""
		}
		return Shorten(string(value.Raw)) + " is not one of the values of " + enum
	}
}

// notBeyond demands a number that does not compare with a bound as beyond does.
func (s PropertySchema) notBeyond(name string, bound *float64, word string, beyond int) rule {
	if bound == nil {
		return nil
	}
	limit, _ := text.ParseDecimal(strconv.FormatFloat(*bound, 'e', -1, 64))
	if len(limit.Digits) > 15 { // which a double may have rounded
		keyword, _ := jsonvalue.Of(s.Keywords).Member(name)
		limit = keyword.Decimal()
	}
	return func(value jsonvalue.Value) string {
		if value.Decimal().Compare(limit) != beyond {
			return ""
		}
		return Shorten(string(value.Raw)) + " is " + word + " the " + name + " " + Shorten(strconv.FormatFloat(*bound, 'f', -1, 64))
	}
}

// measure is what a bound counts of a value.
type measure struct {
	unit string
	of   func(jsonvalue.Value) int
}

var (
	characterCount = measure{"characters", func(value jsonvalue.Value) int { return text.Length(value.Text) }}
	itemCount      = measure{"items", func(value jsonvalue.Value) int { return len(value.List) }}
)

func atLeast(bound *int, m measure) rule {
	return m.bounded(bound, "least", func(count int) bool { return count >= *bound })
}

func atMost(bound *int, m measure) rule {
	return m.bounded(bound, "most", func(count int) bool { return count <= *bound })
}

func (m measure) bounded(bound *int, word string, holds func(count int) bool) rule {
	if bound == nil {
		return nil
	}
	return func(value jsonvalue.Value) string {
		count := m.of(value)
		if holds(count) {
			return ""
		}
		return "must have at " + word + " " + strconv.Itoa(*bound) + " " + m.unit + ", has " + strconv.Itoa(count)
	}
}

func (s PropertySchema) likePattern() rule {
	if s.Pattern == nil {
		return nil
	}
	return func(value jsonvalue.Value) string {
		if matches(*s.Pattern, value.Text) {
			return ""
		}
		return Shorten(value.Text) + " does not match the pattern " + Shorten(*s.Pattern)
	}
}

func (s PropertySchema) ofItemType() rule {
	return func(item jsonvalue.Value) string {
		if s.ItemType == nil || s.ItemType.matches(item) {
			return ""
		}
		return s.ItemType.mismatch(item)
	}
}

func (s PropertySchema) inItemEnum() rule {
	listed, wellTyped := oneOf(s.ItemEnum, "the items' enum"), s.ofItemType()
	if listed == nil {
		return nil
	}
	return func(item jsonvalue.Value) string {
		if wellTyped(item) != "" {
			return "" // which is what is wrong with it
		}
		return listed(item)
	}
}

func (s PropertySchema) notRepeated() rule {
	if s.UniqueItems == nil || !*s.UniqueItems {
		return nil
	}
	seen := map[string]bool{}
	return func(item jsonvalue.Value) string {
		same := item.Same()
		if !seen[same] {
			seen[same] = true
			return ""
		}
		return Shorten(string(item.Raw)) + " is repeated"
	}
}
