package metadef

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Limits of metadata, in code points unless noted otherwise.
const (
	MaxMetadataKey   = 255
	MaxMetadataValue = 1023
	MaxMetadataItems = 128 // items of a resource, unless configured otherwise
	// MaxSyncedValue is the maximum length of a value that a sync writes, as in
	// Glance. The value may be empty.
	MaxSyncedValue = 65535
)

// KeyValue is a key and its value, in input and in filters.
type KeyValue struct {
	Key   string
	Value string
}

// Check adds the problems of a metadata item.
func (item KeyValue) Check(problems *problem.Problems, path string) {
	text.Check(problems, problem.Join(path, "key"), item.Key, 1, MaxMetadataKey)
	text.Check(problems, problem.Join(path, "value"), item.Value, 1, MaxMetadataValue)
}

// maxReportValues is the maximum number of values in one metadata report.
const maxReportValues = 1000

// CheckReportValues adds the problems of values to report on. There must be at
// most maxReportValues, with different keys.
func CheckReportValues(problems *problem.Problems, path string, values []KeyValue) {
	if !text.CheckCount(problems, path, len(values), maxReportValues) {
		return
	}
	seen := map[string]bool{}
	for i, value := range values {
		text.CheckUnique(problems, problem.Join(problem.Index(path, i), "key"), value.Key, seen)
	}
}

// CapabilitiesScope is an optional prefix of a capability's name in a
// requirement.
const CapabilitiesScope = "capabilities:"

// MetadataReport is the verdict of definitions on keys and values.
type MetadataReport struct {
	Valid    bool // no item has a violation
	Accepted bool // a write of all items would succeed
	Strict   bool // the type is strict
	Items    []MetadataReportItem
}

// MetadataReportItem is the report on one key and its value.
type MetadataReportItem struct {
	Key  string
	Path *string // of the argument with the item; nil without one
	// Definitions are the visible definitions of the key, several if it is in
	// conflict. If the key differs from theirs in case or in the capabilities
	// scope, they are candidates, and Suggestion is the spelling of the first.
	Definitions []*PropertyDefinition
	IsCustom    bool
	// Suggestion is the nearest known key. It is nil if the key is known, if no
	// known key is similar, and beyond the limit of suggestions of Judge.
	Suggestion *string
	// Operator is the operator in the value or, without one, the default of the
	// definition. It is nil if there is neither.
	Operator   *string
	Values     []string
	Violations []Violation
	Accepted   bool // a write of the item would succeed
}

// keyIndex finds definitions by key.
type keyIndex struct {
	every    map[string][]*PropertyDefinition
	exact    map[string][]*PropertyDefinition // each once, even if several associations give it that name
	alike    map[string][]*PropertyDefinition // by alikeKey
	spelling text.Speller
}

func indexKeys(definitions []*PropertyDefinition) keyIndex {
	index := keyIndex{every: map[string][]*PropertyDefinition{}, exact: map[string][]*PropertyDefinition{},
		alike: map[string][]*PropertyDefinition{}}
	var names []string // each effective name once
	for _, d := range definitions {
		index.every[d.Name] = append(index.every[d.Name], d)
		same := index.exact[d.Name]
		if slices.ContainsFunc(same, func(other *PropertyDefinition) bool { return other.ID == d.ID && d.ID != 0 }) {
			continue
		}
		if len(same) == 0 {
			names = append(names, d.Name)
		}
		index.exact[d.Name] = append(same, d)
		index.alike[alikeKey(d.Name)] = append(index.alike[alikeKey(d.Name)], d)
	}
	index.spelling = text.NewSpeller(names)
	return index
}

// alikeKey returns a key folded and without the capabilities scope, to find
// keys that differ only in these.
func alikeKey(key string) string { return strings.TrimPrefix(text.Fold(key), CapabilitiesScope) }

// checkText checks a value in metadata, where all values are strings. operator
// is the operator in the value or, without one, the default of the definition,
// and values are the operands.
func (s PropertySchema) checkText(value string) (operator string, values []string, violations []Violation) {
	add := func(rule, message string) { violations = append(violations, Violation{Rule: rule, Message: message}) }
	expression, own := ownOperator(value, s.Operators)
	if !own {
		var problem string
		if expression, problem = ParseExpression(value); problem != "" {
			add("operators", problem)
			return "", expression.Operands, violations
		}
	}
	operator, values = expression.Operator, expression.Operands
	offered := s.OfferedOperators()
	switch {
	case operator != "" && !slices.Contains(offered, operator):
		add("operators", "operator "+Shorten(operator)+" is not allowed; "+offer(offered))
	case operator != "" && len(values) == 0:
		add("operators", "operator "+Shorten(operator)+" has no value")
	case operator == "":
		if values = []string{value}; s.Type == Array {
			values = splitList(value)
		}
	}
	switch {
	case s.Type == Array:
		s.checkItems(values, add)
	case ordersOrSearches(operator):
		s.checkTypes(values, add)
	default:
		for _, one := range values {
			s.checkOne(one, add)
		}
	}
	if operator == "" {
		operator = s.plainOperator()
	}
	return operator, values, violations
}

func offer(offered []string) string {
	if len(offered) == 0 {
		return "the property takes one plain value"
	}
	return "expected one of " + Shorten(strings.Join(offered, ", "))
}

// OfferedOperators returns the operators that a value of the property may have.
// The definition names them; if it does not, they are the operators that
// compare values of its type.
func (s PropertySchema) OfferedOperators() []string {
	if len(s.Operators) > 0 {
		return s.Operators
	}
	switch s.Type {
	case Integer, Number:
		return numberOperators()
	case String:
		return textOperators()
	case Boolean:
		return []string{"s==", "s!="}
	case Array:
		return []string{OperatorIn, OperatorOr, OperatorAllIn}
	}
	return nil
}

// plainOperator returns the default operator of a value without one: the
// definition's first or, for an array, <in>. It returns "" if there is neither.
func (s PropertySchema) plainOperator() string {
	switch {
	case len(s.Operators) > 0:
		return s.Operators[0]
	case s.Type == Array:
		return OperatorIn
	}
	return ""
}

// ordersOrSearches reports whether the operand of an operator needs only the
// type of the property, and need not meet the other keywords.
func ordersOrSearches(operator string) bool {
	return slices.Contains([]string{"=", ">=", "<=", ">", "<", "s<", "s<=", "s>", "s>=", OperatorIn, OperatorAllIn},
		operator)
}

func (s PropertySchema) checkTypes(operands []string, add func(rule, message string)) {
	for _, one := range operands {
		if _, ok := s.Type.read(one); !ok {
			add("type", s.Type.misread(one))
		}
	}
}

func (s PropertySchema) checkOne(one string, add func(rule, message string)) {
	value, ok := s.Type.read(one)
	if !ok {
		add("type", s.Type.misread(one))
		return
	}
	for _, violation := range s.brokenBy(value) {
		if violation.Rule != "enum" || !listsText(s.Enum, one) {
			add(violation.Rule, violation.Message)
		}
	}
}

func (s PropertySchema) checkItems(items []string, add func(rule, message string)) {
	list := jsonvalue.Value{Kind: jsonvalue.KindList}
	misread := map[string]bool{} // by path in the value
	of := String
	if s.ItemType != nil {
		of = *s.ItemType
	}
	for _, one := range items {
		item, ok := of.read(one)
		switch {
		case !ok:
			add("itemType", of.misread(one))
			misread[problem.Index("", len(list.List))] = true
			item = jsonvalue.OfText(one)
		case of != String && listsText(s.ItemEnum, one):
			item = jsonvalue.OfText(one)
		}
		list.List = append(list.List, item)
	}
	for _, violation := range s.brokenBy(list) {
		if violation.Rule == "itemType" || violation.Rule == "itemEnum" && misread[violation.at] {
			continue // checked above
		}
		add(violation.Rule, violation.Message)
	}
}

// EnumTexts returns the members of the enum as strings, in the form of
// metadata.
func (s PropertySchema) EnumTexts() []string {
	texts := make([]string, len(s.Enum))
	for i, value := range s.Enum {
		texts[i] = string(value)
		if of := jsonvalue.Of(value); of.Kind == jsonvalue.KindText {
			texts[i] = of.Text
		}
	}
	return texts
}

// listsText reports whether an enum has a string as a member. Some files list
// the values of an integer as strings.
func listsText(enum []text.JSON, one string) bool {
	return slices.Contains(enum, jsonvalue.Quote(one))
}

// read parses a string in metadata as a value of the type. Numbers are in
// JSON's notation, booleans are true and false. Neither may have white space
// around it, or another case, such as TRUE.
func (t PropertyType) read(input string) (jsonvalue.Value, bool) {
	switch t {
	case Integer, Number:
		value := jsonvalue.Value{Kind: jsonvalue.KindNumber, Raw: text.JSON(input)}
		_, ok := text.ParseDecimal(input)
		return value, ok && t.matches(value)
	case Boolean:
		value := jsonvalue.Value{Kind: jsonvalue.KindBoolean, Raw: text.JSON(input)}
		return value, input == "true" || input == "false"
	}
	return jsonvalue.OfText(input), true
}

// misread returns the message for a string that is not of the type, with a
// correction if it is clear.
func (t PropertyType) misread(input string) string {
	message := Shorten(input) + " is not of type " + t.typeName()
	meant := strings.ToLower(strings.TrimSpace(input))
	if _, ok := t.read(meant); ok {
		return message + "; write " + Shorten(meant)
	}
	return message
}
