package document

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// What the cost of an operation is made of; docs/limits.md says it in words.
const (
	pageSize     = 50   // of a list whose page is not said
	maxPageSize  = 1000 // larger pages are refused by their field
	listSize     = 10   // of a list without pages
	mutationCost = 10   // of a field that writes, besides what it answers

	tooMuch = int64(1) << 50 // where sums and products stop
)

// cost estimates how many fields the answer of an operation will have, in one
// visit of each node of the document: a fragment is estimated once. Sums and
// products stop at a bound instead of going round.
type cost struct {
	document  *ast.QueryDocument
	variables map[string]any
	fragments map[string]estimate
	visits    int
}

// estimate is the cost of a selection set on one object: fixed, and as much again
// for every row where the object is a page of a list. The two are kept apart so
// that a fragment on a page can be estimated before the size of the page is
// known.
type estimate struct{ fixed, row int64 }

func (e estimate) plus(f estimate) estimate {
	return estimate{add(e.fixed, f.fixed), add(e.row, f.row)}
}

// writes counts what an operation writes: each root field of a mutation.
func (c *cost) writes(definition *ast.OperationDefinition) int {
	if definition.Operation != ast.Mutation {
		return 0
	}
	return int(c.roots(definition.SelectionSet, map[string]int64{}))
}

func (c *cost) operation(definition *ast.OperationDefinition) int64 {
	c.fragments = map[string]estimate{}
	total := c.selections(definition.SelectionSet).fixed
	for _, value := range c.variables {
		total = add(total, c.elements(value))
	}
	if definition.Operation == ast.Mutation {
		total = add(total, multiply(mutationCost, c.roots(definition.SelectionSet, map[string]int64{})))
	}
	return total
}

// roots counts the fields of the first level, those in fragments included.
func (c *cost) roots(set ast.SelectionSet, fragments map[string]int64) int64 {
	var total int64
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			total = add(total, 1)
		case *ast.InlineFragment:
			total = add(total, c.roots(selection.SelectionSet, fragments))
		case *ast.FragmentSpread:
			count, known := fragments[selection.Name]
			if definition := c.document.Fragments.ForName(selection.Name); !known && definition != nil {
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
	if known, there := c.fragments[name]; there {
		return known
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
		own = add(own, c.elementsOf(argument.Value))
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

// isPage tells whether an object is a page of a list.
func isPage(definition *ast.Definition) bool {
	return definition != nil && strings.HasSuffix(definition.Name, "Connection")
}

// size is how many rows a list has at most: as many as `first` or `last` say, as
// many as were named in an argument, or what is usual.
func (c *cost) size(field *ast.Field, usual int64) int64 {
	said, named, paged := int64(-1), int64(0), false
	for _, definition := range field.Definition.Arguments {
		value := c.argument(field, definition)
		switch definition.Name {
		case "first", "last":
			paged = true
			if number, isNumber := whole(value); isNumber {
				said = max(said, number, 0)
			}
		default:
			if list, isList := value.([]any); isList {
				named = max(named, int64(len(list)))
			}
		}
	}
	switch {
	case said >= 0:
		return min(said, maxPageSize)
	case paged:
		return pageSize
	case named > 0:
		return min(named, maxPageSize)
	}
	return usual
}

// argument is the value of an argument: given, or its default.
func (c *cost) argument(field *ast.Field, definition *ast.ArgumentDefinition) any {
	given := definition.DefaultValue
	if argument := field.Arguments.ForName(definition.Name); argument != nil {
		given = argument.Value
	}
	if given == nil {
		return nil
	}
	value, err := given.Value(c.variables)
	if err != nil {
		return nil
	}
	return value
}

func whole(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case json.Number:
		number, err := strconv.ParseInt(value.String(), 10, 64)
		return number, err == nil
	}
	return 0, false
}

// elements counts the members of the lists in a value.
func (c *cost) elements(value any) int64 {
	var total int64
	switch value := value.(type) {
	case []any:
		total = int64(len(value))
		for _, member := range value {
			total = add(total, c.elements(member))
		}
	case map[string]any:
		for _, member := range value {
			total = add(total, c.elements(member))
		}
	}
	return total
}

// elementsOf counts the members of the lists in a literal; variables were counted
// once for the operation.
func (c *cost) elementsOf(value *ast.Value) int64 {
	var total int64
	if value.Kind == ast.ListValue {
		total = int64(len(value.Children))
	}
	for _, child := range value.Children {
		c.visits++
		total = add(total, c.elementsOf(child.Value))
	}
	return total
}

func add(a, b int64) int64 { return min(a+b, tooMuch) }

func multiply(a, b int64) int64 {
	if a > 0 && b > tooMuch/a {
		return tooMuch
	}
	return a * b
}

// refuseCost refuses an operation that costs too much.
func refuseCost(cost, most int64) error {
	if most == 0 || cost <= most {
		return nil
	}
	return tooComplex("the operation would cost %s, the most is %d: select less, or ask for smaller pages", upTo(cost), most)
}

func upTo(cost int64) string {
	if cost == tooMuch {
		return "far too much"
	}
	return strconv.FormatInt(cost, 10)
}
