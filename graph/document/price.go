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

// Price is an estimate of the work that an operation takes.
type Price struct {
	// Cost is about how many fields the answer has.
	Cost int64
	// Statements is how many SQL statements the fields of a query run at most, or
	// those below the fields of a mutation, which run transactions of their own.
	Statements int
	// World is whether any field reads the resident world.
	World bool
}

// priceOf estimates the price of an operation in one visit of each place of its
// plan, and stops as soon as it is beyond the maximum; 0 is no maximum.
func priceOf(o *Operation, maximum int64) (Price, error) {
	p := &pricer{variables: o.Variables, maximum: maximum}
	for _, value := range o.Variables {
		p.add(elements(value))
	}
	if o.Definition.Operation == ast.Mutation {
		p.add(multiply(mutationCost, int64(len(o.planned.Root.Fields))))
	}
	p.selection(o.planned.Root, 1, 0)
	if p.exceeded() {
		return p.price, tooComplex("the operation is too expensive: it costs more than the maximum of %d; select less, or ask for smaller pages", maximum)
	}
	return p.price, nil
}

// pricer adds up a price. Sums and products stop at a maximum instead of
// overflowing.
type pricer struct {
	variables map[string]any
	maximum   int64
	price     Price
	visits    int // places visited, which tests hold to those of the plan
}

func (p *pricer) add(cost int64) { p.price.Cost = add(p.price.Cost, cost) }

func (p *pricer) exceeded() bool { return p.maximum > 0 && p.price.Cost > p.maximum }

// selection adds the price of what is selected of so many objects. Rows is how
// many rows each has where it is a page of a list.
func (p *pricer) selection(selected *Selection, objects, rows int64) {
	for _, field := range selected.Fields {
		if p.exceeded() {
			return
		}
		p.field(field, objects, rows)
	}
}

func (p *pricer) field(field *Field, objects, rows int64) {
	p.visits++
	p.work(field)
	isList := field.Levels > 0
	if isList && strings.HasSuffix(field.Of, "Connection") { // the rows of a page
		objects = multiply(objects, rows)
	}
	p.add(multiply(objects, field.count.own))
	if field.Below == nil && field.Types == nil {
		return
	}
	rows = 0
	switch {
	case !isList:
		rows = field.count.rows(p.variables, pageSize)
	case !strings.HasSuffix(field.Of, "Connection"):
		objects = multiply(objects, field.count.rows(p.variables, listSize))
	}
	if field.Below != nil {
		p.selection(field.Below, objects, rows)
		return
	}
	before, most := p.price.Cost, p.price.Cost
	for _, selected := range field.Types { // an object is of one type: the most expensive one counts
		p.price.Cost = before
		p.selection(selected, objects, rows)
		most = max(most, p.price.Cost)
	}
	p.price.Cost = most
}

// work adds what a field does besides writing its answer.
func (p *pricer) work(field *Field) {
	if field.work == nil {
		return
	}
	work := *field.work
	if work.Given != nil {
		work = work.Given(Call{field, p.variables})
	}
	p.price.Statements += work.Statements
	p.price.World = p.price.World || work.World
}

// count is what the arguments of a field say about how many values there are.
type count struct {
	own int64 // the field itself and the members of the lists among its arguments
	// paged is whether the field has pages, whose size is given as a number or by
	// variables; -1 is none.
	paged  bool
	page   int64
	pageBy []string
	// named is how many members the longest list among the arguments has, or which
	// variables may be one.
	named   int64
	namedBy []string
}

// countOf returns what the arguments of a field say.
func (p *planner) countOf(field *ast.Field) *count {
	if len(field.Definition.Arguments) == 0 {
		return &p.single
	}
	if known := p.counts[field]; known != nil {
		return known
	}
	c := &count{own: add(1, p.document.members[field]), page: -1}
	p.counts[field] = c
	for _, definition := range field.Definition.Arguments {
		isPage := definition.Name == "first" || definition.Name == "last"
		c.paged = c.paged || isPage
		switch value := argumentOf(field, definition); {
		case value == nil:
		case isPage && value.Kind == ast.Variable:
			c.pageBy = append(c.pageBy, value.Raw)
		case isPage && value.Kind == ast.IntValue:
			if number, err := strconv.ParseInt(value.Raw, 10, 64); err == nil {
				c.page = max(c.page, number, 0)
			}
		case isPage:
		case value.Kind == ast.Variable:
			c.namedBy = append(c.namedBy, value.Raw)
		case value.Kind == ast.ListValue:
			c.named = max(c.named, int64(len(value.Children)))
		}
	}
	return c
}

// rows returns how many rows a list has at most: the value of `first` or `last`,
// the length of the longest list among the arguments, or what is usual.
func (c *count) rows(variables map[string]any, usual int64) int64 {
	page, named := c.page, c.named
	for _, name := range c.pageBy {
		if number, ok := integerOf(variables[name]); ok {
			page = max(page, number, 0)
		}
	}
	for _, name := range c.namedBy {
		if list, ok := variables[name].([]any); ok {
			named = max(named, int64(len(list)))
		}
	}
	switch {
	case page >= 0:
		return min(page, maxPageSize)
	case c.paged:
		return pageSize
	case named > 0:
		return min(named, maxPageSize)
	}
	return usual
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

func add(a, b int64) int64 { return min(a+b, maxCost) }

func multiply(a, b int64) int64 {
	if a > 0 && b > maxCost/a {
		return maxCost
	}
	return a * b
}
