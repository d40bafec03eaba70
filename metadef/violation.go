package metadef

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Violation is a rule of a definition that a value breaks. Rule is the API's
// name of the keyword: type, enum, itemType, itemEnum, minimum, maximum,
// minLength, maxLength, pattern, minItems, maxItems, uniqueItems, operators. It
// can also be a rule that is not a keyword, such as RuleKey.
type Violation struct {
	Rule    string
	Message string
	// Definition is the broken definition, and Namespace the name of its
	// namespace. They are nil if the rule is not part of a definition or the
	// viewer may not see it.
	Definition *PropertyDefinition
	Namespace  *string
	at         string // path in the value: "" for the value itself, `[2]` for an item
	// isFormal means that the item is refused regardless of its type and
	// definitions.
	isFormal bool
}

// brokenBy returns a violation for each rule of the definition that a value
// breaks. A value of the wrong type has only the violation of type.
func (s PropertySchema) brokenBy(value jsonvalue.Value) []Violation {
	if !s.Type.matches(value) {
		return []Violation{{Rule: "type", Message: s.Type.mismatch(value)}}
	}
	var broken []Violation
	add := func(k keyword, message, at string) {
		if message != "" {
			broken = append(broken, Violation{Rule: k.inAPI(), Message: message, at: at})
		}
	}
	itemRules := map[string]itemRule{}
	for path, k := range propertyKeywords.walk("") {
		if k.breaks != nil && k.appliesTo(s.Type) {
			add(k, k.breaks(s, value), "")
		}
		if k.itemBreaks != nil && s.Type == Array {
			itemRules[path] = k.itemBreaks(s)
		}
	}
	for i, item := range value.List {
		for path, k := range propertyKeywords.walk("") {
			if rule := itemRules[path]; rule != nil {
				add(k, rule(item), problem.Index("", i))
			}
		}
	}
	return broken
}

// itemRule returns how an item of a list breaks a keyword, or "" if it does
// not. The caller passes each item in turn.
type itemRule func(item jsonvalue.Value) string

func (s PropertySchema) inEnum(value jsonvalue.Value) string {
	if slices.Contains(s.Enum, value.Raw) { // often, and needs no set of a large enum
		return ""
	}
	return oneOf(s.Enum, "the enum")(value)
}

// oneOf returns the rule that a value must be a member of an enum. An empty
// enum allows everything.
func oneOf(members []text.JSON, enum string) itemRule {
	set := lists.Set(members, func(member text.JSON) string { return jsonvalue.Of(member).Same() })
	return func(value jsonvalue.Value) string {
		if len(set) == 0 || set[value.Same()] {
			return ""
		}
		return Shorten(string(value.Raw)) + " is not one of the values of " + enum
	}
}

func (s PropertySchema) notUnder(value jsonvalue.Value) string {
	if s.Minimum == nil || value.Decimal().Compare(s.bound("minimum", *s.Minimum)) >= 0 {
		return ""
	}
	return Shorten(string(value.Raw)) + " is less than the minimum " + bounded(*s.Minimum)
}

func (s PropertySchema) notOver(value jsonvalue.Value) string {
	if s.Maximum == nil || value.Decimal().Compare(s.bound("maximum", *s.Maximum)) <= 0 {
		return ""
	}
	return Shorten(string(value.Raw)) + " is greater than the maximum " + bounded(*s.Maximum)
}

// bound returns a minimum or maximum without rounding. A double is exact to 15
// digits; for more, bound parses the keywords again.
func (s PropertySchema) bound(name string, rounded float64) text.Decimal {
	number, _ := text.ParseDecimal(strconv.FormatFloat(rounded, 'e', -1, 64))
	if len(number.Digits) > 15 {
		keyword, _ := jsonvalue.Of(s.Keywords).Member(name)
		return keyword.Decimal()
	}
	return number
}

func bounded(number float64) string { return Shorten(strconv.FormatFloat(number, 'f', -1, 64)) }

// notFewer and notMore require at least, or at most, a number of characters or
// items.

func notFewer(least *int, count int, what string) string {
	if least == nil || count >= *least {
		return ""
	}
	return fmt.Sprintf("must have at least %d %s, has %d", *least, what, count)
}

func notMore(most *int, count int, what string) string {
	if most == nil || count <= *most {
		return ""
	}
	return fmt.Sprintf("must have at most %d %s, has %d", *most, what, count)
}

func (s PropertySchema) likePattern(value jsonvalue.Value) string {
	if s.Pattern == nil || matches(*s.Pattern, value.Text) {
		return ""
	}
	return Shorten(value.Text) + " does not match the pattern " + Shorten(*s.Pattern)
}

func (s PropertySchema) ofItemType() itemRule {
	return func(item jsonvalue.Value) string {
		if s.ItemType == nil || s.ItemType.matches(item) {
			return ""
		}
		return s.ItemType.mismatch(item)
	}
}

func (s PropertySchema) inItemEnum() itemRule {
	listed, wellTyped := oneOf(s.ItemEnum, "the items' enum"), s.ofItemType()
	return func(item jsonvalue.Value) string {
		if wellTyped(item) != "" {
			return "" // the type rule reports it
		}
		return listed(item)
	}
}

func (s PropertySchema) notRepeated() itemRule {
	seen := map[string]bool{}
	return func(item jsonvalue.Value) string {
		same := item.Same()
		if s.UniqueItems == nil || !*s.UniqueItems || !seen[same] {
			seen[same] = true
			return ""
		}
		return Shorten(string(item.Raw)) + " is repeated"
	}
}

// RuleNames returns the names of all rules that a value can break, sorted.
func RuleNames() []string {
	rules := []string{"operators", "type", RuleKey, RuleValue, RuleRequired, RuleHidden, RuleUserModifiable}
	for _, k := range propertyKeywords.walk("") {
		if k.breaks != nil || k.itemBreaks != nil {
			rules = append(rules, k.inAPI())
		}
	}
	return lists.Distinct(rules)
}
