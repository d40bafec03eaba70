package metadef

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// MaxReportValues is how many values one metadata report covers.
const MaxReportValues = 1000

// CheckReportValues notes what is wrong with values that are to be judged: there
// are at most MaxReportValues, each of another key.
func CheckReportValues(problems *problem.Problems, path string, values []KeyValue) {
	if !text.CheckFew(problems, path, len(values), MaxReportValues) {
		return
	}
	seen := map[string]bool{}
	for i, value := range values {
		text.CheckNew(problems, problem.Join(problem.Index(path, i), "key"), value.Key, seen)
	}
}

// CapabilitiesScope may stand before the name of a capability in a requirement.
const CapabilitiesScope = "capabilities:"

// MetadataReport says what definitions have to say about keys and values.
type MetadataReport struct {
	Valid bool // no item has a violation; custom keys are no violation
	Items []MetadataReportItem
}

// MetadataReportItem is the report on one key and its value.
type MetadataReportItem struct {
	Key string
	// Definitions of the key, several where it is in conflict. Where only case
	// or the scope of capabilities differ they are candidates, and Suggestion
	// is their spelling.
	Definitions []*PropertyDefinition
	IsCustom    bool
	// Suggestion is the known key that may be meant, nil where the key is known
	// or nothing is like it.
	Suggestion *string
	// Operator is the one in the value or, without one, the definition's first;
	// nil where the value is plain.
	Operator   *string
	Values     []string
	Violations []Violation
}

// ValidateMetadata judges values by the definitions that apply to a resource
// type, which have their effective names. There is one item for each value, in
// their order. A key in conflict is judged by the definition that has the least
// against its value. Hints are given for as many custom keys as a resource can
// have; callers take at most MaxReportValues values.
func ValidateMetadata(definitions []*PropertyDefinition, values []KeyValue) MetadataReport {
	known := knownKeys(definitions)
	report := MetadataReport{Valid: true, Items: make([]MetadataReportItem, len(values))}
	hints := 0
	for i, value := range values {
		item := known.match(value.Key, hints < MaxMetadataItems)
		if item.IsCustom {
			hints++
		}
		item.judge(value.Value)
		report.Valid = report.Valid && len(item.Violations) == 0
		report.Items[i] = item
	}
	return report
}

// keyBook finds definitions by key.
type keyBook struct {
	exact    map[string][]*PropertyDefinition
	alike    map[string][]*PropertyDefinition // by alikeKey
	names    []string                         // each effective name once
	spelling text.Speller
}

func knownKeys(definitions []*PropertyDefinition) keyBook {
	book := keyBook{exact: map[string][]*PropertyDefinition{}, alike: map[string][]*PropertyDefinition{}}
	for _, d := range definitions {
		if len(book.exact[d.Name]) == 0 {
			book.names = append(book.names, d.Name)
		}
		if slices.ContainsFunc(book.exact[d.Name], func(other *PropertyDefinition) bool { return other.ID == d.ID && d.ID != 0 }) {
			continue
		}
		book.exact[d.Name] = append(book.exact[d.Name], d)
		book.alike[alikeKey(d.Name)] = append(book.alike[alikeKey(d.Name)], d)
	}
	book.spelling = text.NewSpeller(book.names)
	return book
}

// alikeKey is what keys share that differ in case or in the scope of
// capabilities only.
func alikeKey(key string) string { return strings.TrimPrefix(text.Fold(key), CapabilitiesScope) }

func (b keyBook) match(key string, suggest bool) MetadataReportItem {
	item := MetadataReportItem{Key: key}
	if item.Definitions = b.exact[key]; len(item.Definitions) > 0 {
		return item
	}
	if unscoped, scoped := strings.CutPrefix(key, CapabilitiesScope); scoped {
		if item.Definitions = b.exact[unscoped]; len(item.Definitions) > 0 {
			return item
		}
	}
	if item.Definitions = b.alike[alikeKey(key)]; len(item.Definitions) > 0 {
		item.Suggestion = &item.Definitions[0].Name
		return item
	}
	item.IsCustom = true
	if suggest && text.Length(key) <= MaxMetadataKey {
		if near := b.spelling.Nearest(key); near != "" {
			item.Suggestion = &near
		}
	}
	return item
}

// judge parses the value by each definition and keeps the mildest judgement.
func (item *MetadataReportItem) judge(text string) {
	if item.IsCustom {
		operator, values := SplitOperator(text, nil)
		if item.Values = []string{text}; operator != "" {
			item.Operator, item.Values = &operator, values
		}
		return
	}
	for i, definition := range item.Definitions {
		operator, values, violations := definition.judge(text)
		if i > 0 && len(violations) >= len(item.Violations) {
			continue
		}
		item.Operator, item.Values, item.Violations = nil, values, violations
		if operator != "" {
			item.Operator = &operator
		}
	}
}

// judge parses a value as it stands in metadata, where everything is text.
func (s PropertySchema) judge(text string) (operator string, values []string, violations []Violation) {
	operator, values = SplitOperator(text, s.Operators)
	switch {
	case operator != "" && !slices.Contains(s.offeredOperators(), operator):
		violations = append(violations, Violation{"operators", "operator " + Shorten(operator) + " is not offered; " + s.offer()})
	case operator != "" && len(values) == 0:
		violations = append(violations, Violation{"operators", "operator " + Shorten(operator) + " has no value"})
	case operator == "":
		if offered := s.offeredOperators(); len(offered) > 0 {
			operator = offered[0]
		}
		values = []string{text}
		if s.Type == Array {
			values = splitList(text)
		}
	}
	if s.Type == Array {
		return operator, values, append(violations, s.judgeList(values)...)
	}
	for _, value := range values {
		violations = append(violations, s.judgeOne(value)...)
	}
	return operator, values, violations
}

// offeredOperators is what the definition offers. An array that names none can
// be asked for with <in>, which is what readers of the catalog assume.
func (s PropertySchema) offeredOperators() []string {
	if len(s.Operators) == 0 && s.Type == Array {
		return []string{OperatorIn}
	}
	return s.Operators
}

func (s PropertySchema) offer() string {
	if offered := s.offeredOperators(); len(offered) > 0 {
		return "there is " + Shorten(strings.Join(offered, ", "))
	}
	return "the property takes one plain value"
}

func (s PropertySchema) judgeOne(text string) []Violation {
	value, ok := valueOfText(text, s.Type)
	if !ok {
		return []Violation{{"type", Shorten(text) + " is not of type " + s.Type.typeName()}}
	}
	var violations []Violation
	for _, f := range s.faults(value) {
		// Files may list the values of an integer as texts.
		if f.Rule == "enum" && slices.Contains(s.Enum, quote(text)) {
			continue
		}
		violations = append(violations, f.Violation)
	}
	return violations
}

func (s PropertySchema) judgeList(texts []string) []Violation {
	list := jsonValue{kind: jsonList}
	var violations []Violation
	for _, text := range texts {
		of := String
		if s.ItemType != nil {
			of = *s.ItemType
		}
		item, ok := valueOfText(text, of)
		if !ok {
			violations = append(violations, Violation{"itemType", Shorten(text) + " is not of type " + of.typeName()})
			continue
		}
		if of != String && slices.Contains(s.ItemEnum, quote(text)) {
			item = jsonValue{kind: jsonText, raw: quote(text), text: text}
		}
		list.list = append(list.list, item)
	}
	for _, f := range s.listFaults(list) {
		if f.Rule == "itemType" && f.at != "" {
			continue // judged above, as text
		}
		violations = append(violations, f.Violation)
	}
	return violations
}

// valueOfText reads a value of a type from its text in metadata: numbers in
// JSON's notation, true and false in any case.
func valueOfText(input string, of PropertyType) (jsonValue, bool) {
	value := jsonValue{kind: jsonText, raw: quote(input), text: input}
	switch of {
	case Integer, Number:
		value = jsonValue{kind: jsonNumber, raw: text.JSON(strings.TrimSpace(input))}
		_, ok := text.ParseDecimal(string(value.raw))
		return value, ok && value.is(of)
	case Boolean:
		value = jsonValue{kind: jsonBoolean, raw: text.JSON(strings.ToLower(strings.TrimSpace(input)))}
		return value, value.raw == "true" || value.raw == "false"
	}
	return value, true
}
