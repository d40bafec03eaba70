package document

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// What the cost of an operation is made of; docs/limits.md says it in words.
const (
	pageSize     = 50   // rows of a page whose size is not given
	maxPageSize  = 1000 // larger pages are refused by their field
	listSize     = 10   // rows of a list without pages
	mutationCost = 10   // of a field that writes, besides its answer

	maxCost = int64(1) << 50 // where sums and products stop
)

// cost estimates how many fields the answer of an operation will have, in one
// visit of each node of the document: a fragment is estimated once. Sums and
// products stop at a maximum instead of overflowing.
type cost struct {
	document  *ast.QueryDocument
	variables map[string]any
	fragments map[string]estimate
	visits    int
}

// estimate is the cost of a selection set on one object: fixed, and as much
// again for every row where the object is a page of a list. The two are kept
// apart so that a fragment on a page can be estimated before the size of the
// page is known.
type estimate struct{ fixed, row int64 }

func (e estimate) plus(f estimate) estimate {
	return estimate{add(e.fixed, f.fixed), add(e.row, f.row)}
}

func (c *cost) operation(definition *ast.OperationDefinition) int64 {
	c.fragments = map[string]estimate{}
	total := c.selections(definition.SelectionSet).fixed
	for _, value := range c.variables {
		total = add(total, elements(value))
	}
	if definition.Operation == ast.Mutation {
		total = add(total, multiply(mutationCost, c.roots(definition.SelectionSet, map[string]int64{})))
	}
	return total
}

// roots returns the number of fields of the first level, fragments included.
func (c *cost) roots(set ast.SelectionSet, fragments map[string]int64) int64 {
	var total int64
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			total = add(total, 1)
		case *ast.InlineFragment:
			total = add(total, c.roots(selection.SelectionSet, fragments))
		case *ast.FragmentSpread:
			count, ok := fragments[selection.Name]
			if definition := c.document.Fragments.ForName(selection.Name); !ok && definition != nil {
				count = c.roots(definition.SelectionSet, fragments)
				fragments[selection.Name] = count
			}
			total = add(total, count)
		}
	}
	return total
}

func (c *cost) selections(set ast.SelectionSet) estimate {
	var total estimate
	for _, selection := range set {
		c.visits++
		switch selection := selection.(type) {
		case *ast.Field:
			total = total.plus(c.field(selection))
		case *ast.InlineFragment:
			total = total.plus(c.selections(selection.SelectionSet))
		case *ast.FragmentSpread:
			total = total.plus(c.fragment(selection.Name))
		}
	}
	return total
}

func (c *cost) fragment(name string) estimate {
	if total, ok := c.fragments[name]; ok {
		return total
	}
	definition := c.document.Fragments.ForName(name)
	if definition == nil {
		return estimate{}
	}
	c.fragments[name] = estimate{} // valid documents have no cycles
	total := c.selections(definition.SelectionSet)
	c.fragments[name] = total
	return total
}

func (c *cost) field(field *ast.Field) estimate {
	below := c.selections(field.SelectionSet)
	own := int64(1)
	for _, argument := range field.Arguments {
		own = add(own, c.literalElements(argument.Value))
	}
	definition := field.Definition
	if definition == nil { // __typename
		return estimate{fixed: own}
	}
	isList := definition.Type.Elem != nil
	if isPage(field.ObjectDefinition) && isList {
		return estimate{row: add(own, below.fixed)}
	}
	if isList {
		return estimate{fixed: add(own, multiply(c.size(field, listSize), below.fixed))}
	}
	return estimate{fixed: add(own, add(below.fixed, multiply(c.size(field, pageSize), below.row)))}
}

// isPage reports whether an object is a page of a list.
func isPage(definition *ast.Definition) bool {
	return definition != nil && strings.HasSuffix(definition.Name, "Connection")
}

// size returns the number of rows that a list has at most: the value of `first`
// or `last`, the length of the longest list among the arguments, or what is
// usual.
func (c *cost) size(field *ast.Field, usual int64) int64 {
	asked, named, paged := int64(-1), int64(0), false
	for _, definition := range field.Definition.Arguments {
		value := c.argument(field, definition)
		switch definition.Name {
		case "first", "last":
			paged = true
			if number, ok := integerOf(value); ok {
				asked = max(asked, number, 0)
			}
		default:
			if list, ok := value.([]any); ok {
				named = max(named, int64(len(list)))
			}
		}
	}
	switch {
	case asked >= 0:
		return min(asked, maxPageSize)
	case paged:
		return pageSize
	case named > 0:
		return min(named, maxPageSize)
	}
	return usual
}

// argument returns the value of an argument or, where it is absent, its
// default.
func (c *cost) argument(field *ast.Field, definition *ast.ArgumentDefinition) any {
	literal := definition.DefaultValue
	if argument := field.Arguments.ForName(definition.Name); argument != nil {
		literal = argument.Value
	}
	if literal == nil {
		return nil
	}
	value, err := literal.Value(c.variables)
	if err != nil {
		return nil
	}
	return value
}

func integerOf(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case json.Number:
		number, err := strconv.ParseInt(value.String(), 10, 64)
		return number, err == nil
	}
	return 0, false
}

// elements returns the number of members of the lists in a value.
func elements(value any) int64 {
	var total int64
	switch value := value.(type) {
	case []any:
		total = int64(len(value))
		for _, member := range value {
			total = add(total, elements(member))
		}
	case map[string]any:
		for _, member := range value {
			total = add(total, elements(member))
		}
	}
	return total
}

// literalElements returns the number of members of the lists in a literal.
// Variables are counted once for the operation.
func (c *cost) literalElements(value *ast.Value) int64 {
	var total int64
	if value.Kind == ast.ListValue {
		total = int64(len(value.Children))
	}
	for _, child := range value.Children {
		c.visits++
		total = add(total, c.literalElements(child.Value))
	}
	return total
}

func add(a, b int64) int64 { return min(a+b, maxCost) }

func multiply(a, b int64) int64 {
	if a > 0 && b > maxCost/a {
		return maxCost
	}
	return a * b
}

// checkCost refuses an operation that costs too much.
func checkCost(cost, maximum int64) error {
	if maximum == 0 || cost <= maximum {
		return nil
	}
	return tooComplex("the operation is too expensive: it costs %s, the maximum is %d; select less, or ask for smaller pages", costText(cost), maximum)
}

func costText(cost int64) string {
	if cost == maxCost {
		return "more than can be counted"
	}
	return strconv.FormatInt(cost, 10)
}
