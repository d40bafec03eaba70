package document

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// What a field that neither names nor bounds its rows has; docs/limits.md says
// it in words.
const (
	pageSize    = 50   // rows of a page whose size is not given
	maxPageSize = 1000 // larger pages are refused by their field
	listSize    = 10   // members of a list without pages

	maxCost = int64(1) << 50 // where sums and products stop
)

// What work costs. A field of the answer costs 1, which stands for 0.1 us of a
// core, of the server's and of the database's together. BenchmarkWeights measures
// the others; the figures are of SQLite and of PostgreSQL, on busy cores.
const (
	costOfStatement = 500 // 60 and 94 us, the round trip included
	costOfRow       = 20  // that is read: 2.7 and 2.9 us with a field of its own, 3.5 and 3.4 us for a row with many columns
	bytesOfCost     = 100 // 0.02 and 0.01 us, and compressed ten times as long

	// Of a document that is read and was not kept.
	costOfNode  = 20 // a field, an argument, a value: 2 us
	costOfPair  = 1  // of fields of one response name, which validation compares: 0.1 us
	bytesOfText = 5  // of which no more is read than what they are: 0.02 us each
	// Of the variables.
	costOfValue = 10 // an object, a list, a number, ...: 1 us, parsing its JSON included

	// costOfTooComplex is that of a request whose price is beyond the limit: its
	// variables were read and what it asks for was added up, in about 0.4 ms.
	costOfTooComplex = 4 * 1000

	// costOfMutation is that of a field of Mutation besides its answer: about eight
	// statements, one of which waits for the disk.
	costOfMutation = 8 * costOfStatement
	// costOfWritten is that of a row or two that an object of the input becomes: a
	// property, an item or an allocation is read, judged and written in 20 to 60 us.
	costOfWritten = 200
)

// Price is an estimate of the work that an operation takes. It follows from the
// operation alone: how many rows the database holds is measured after the run and
// charged then, so that a price does not reveal the number of hidden rows.
type Price struct {
	// Cost is all of the below, as so many fields of the answer.
	Cost int64
	// Fields is about how many fields the answer has, and members of the lists in
	// the request.
	Fields int64
	// Bytes is about how long the answer is.
	Bytes int64
	// Statements is how many SQL statements the fields of a query run at most, or
	// those below the fields of a mutation, which run transactions of their own.
	Statements int
	// Fallback is how many of the statements run only where memory lacks the answer.
	Fallback int
	// Read is about how many rows the statements return, and Tests what conditions
	// and counts are likely to take besides, in fields of an answer.
	Read, Tests int64
	// Written is about how many rows the fields of a mutation write.
	Written int64
	// World is whether any field reads the resident world.
	World bool
	// Heavy is whether any field or condition may take long.
	Heavy bool
	// mutations is how many fields of Mutation there are, and joined how many of
	// them join a transaction with others.
	mutations, joined int64
}

// heavyCost is the cost beyond which an operation is heavy: about 30 ms of a core.
const heavyCost = 300_000

// Needs is what an operation needs while it runs, besides memory.
type Needs int

const (
	// NeedsNothing is for what is answered from memory.
	NeedsNothing Needs = iota
	// NeedsTransaction is for what joins transactions and is answered from memory.
	NeedsTransaction
	// NeedsDatabase is for what may run statements.
	NeedsDatabase
	// NeedsLong is for what takes so long that others would notice it if many ran
	// at once, in memory or in the database.
	NeedsLong
)

func needsOf(o *Operation) Needs {
	switch {
	case o.Price.Heavy || o.Price.Cost > heavyCost:
		return NeedsLong
	case o.Price.Statements > 0 || o.Price.joined < o.Price.mutations:
		return NeedsDatabase
	case o.Price.joined > 0:
		return NeedsTransaction
	}
	return NeedsNothing
}

// effort returns the cost of reading the document of so many bytes, as far as it
// was read.
func (w *walker) effort(bytes int) int64 {
	nodes := int64(w.visits)
	if w.document == nil { // parsing ended, no later than at the limit of tokens
		nodes = int64(min(bytes/2, cmp.Or(w.limits.Tokens, bytes)))
	}
	cost := int64(bytes)/bytesOfText + nodes*costOfNode
	for _, count := range w.names {
		cost = add(cost, int64(count)*int64(count-1)/2*costOfPair)
	}
	return cost
}

// CostOf returns the cost of what was counted while an operation ran.
func CostOf(statements, read, bytes int64) int64 {
	return Price{Statements: int(statements), Read: read, Bytes: bytes}.total()
}

func (p Price) total() int64 {
	total := add(p.Fields, p.Bytes/bytesOfCost)
	total = add(total, multiply(int64(p.Statements), costOfStatement))
	total = add(total, multiply(p.mutations, costOfMutation))
	total = add(total, multiply(p.Written, costOfWritten))
	total = add(total, multiply(p.Read, costOfRow))
	return add(total, p.Tests)
}

// priceOf estimates the price of an operation in one visit of each place of its
// plan, and stops as soon as it is beyond the maximum; 0 is no maximum.
func (r *Reader) priceOf(o *Operation, maximum int64) (Price, error) {
	p := &pricer{works: r.works, variables: o.Variables, maximum: maximum, values: map[*ast.Value]any{}}
	for _, value := range o.Variables {
		p.price.Fields = add(p.price.Fields, elements(value))
	}
	if o.Definition.Operation == ast.Mutation {
		p.price.mutations = int64(len(o.planned.Root.Fields))
	}
	p.selection(o.planned.Root, 1, 0)
	p.price.Cost = p.price.total()
	if p.exceeded() {
		return p.price, tooComplex("the operation is too expensive: it costs more than the maximum of %d; select less, or ask for smaller pages", maximum)
	}
	return p.price, nil
}

// pricer adds up a price. Sums and products stop at a maximum instead of
// overflowing.
type pricer struct {
	works     *works
	variables map[string]any
	maximum   int64
	price     Price
	values    map[*ast.Value]any // of the arguments that were asked for
	visits    int                // places visited, which tests hold to those of the plan
	handed    bool               // whether the rows of the selection came with their parents
	parts     int64              // members of the longest list that the request for candidates above has
	listed    int64              // members of the longest list that the mutation above has
	first     int64              // the largest page that an input object above asks for
}

func (p *pricer) exceeded() bool { return p.maximum > 0 && p.price.total() > p.maximum }

// selection adds the price of what is selected of so many objects. Rows is how
// many rows each has where it is a page of a list.
func (p *pricer) selection(selected *Selection, objects, rows int64) {
	p.price.Bytes = add(p.price.Bytes, objects) // the brace at the end
	for _, field := range selected.Fields {
		if p.exceeded() {
			return
		}
		p.field(field, objects, rows)
	}
}

func (p *pricer) field(field *Field, objects, rows int64) {
	p.visits++
	above := *p // what holds for this field and those below it
	defer func() { p.handed, p.parts, p.listed, p.first = above.handed, above.parts, above.listed, above.first }()
	work := p.workOf(field)
	found := p.found(field, work, objects, rows)
	p.add(field, work, objects, found)
	if field.Below == nil && field.Types == nil {
		p.price.Bytes = add(p.price.Bytes, multiply(found, max(field.count.bytes, work.Bytes)))
		return
	}
	rows = 0
	if field.Levels == 0 {
		rows = max(p.first, field.count.rows(p.variables, pageSize))
	}
	if field.Below != nil {
		p.selection(field.Below, found, rows)
		return
	}
	before, most := p.price, p.price
	for _, selected := range field.Types { // an object is of one type: the most expensive one counts
		p.price.Fields, p.price.Bytes = before.Fields, before.Bytes
		p.selection(selected, found, rows)
		most.Fields, most.Bytes = max(most.Fields, p.price.Fields), max(most.Bytes, p.price.Bytes)
	}
	p.price.Fields, p.price.Bytes = most.Fields, most.Bytes
}

// found returns how many values a field has on so many objects, each a page of so
// many rows. An empty list is priced as a list of one.
func (p *pricer) found(field *Field, work Work, objects, rows int64) int64 {
	length := int64(1)
	switch {
	case field.Levels == 0:
	case work.Length > 0:
		length = max(work.Length, p.parts, p.first)
	case field.isRows():
		length = rows
	case strings.HasSuffix(field.Of, "Payload"): // a result for each member of the input
		length = max(field.count.rows(p.variables, listSize), p.listed)
	default:
		length = field.count.rows(p.variables, listSize)
	}
	return max(1, multiply(objects, length))
}

// isRows reports whether a field has the rows of the page above it.
func (f *Field) isRows() bool {
	return f.Levels > 0 && strings.HasSuffix(f.Of, "Connection") && len(f.AST.Definition.Arguments) == 0
}

// add adds what a field does on so many objects, where it finds so many values.
func (p *pricer) add(field *Field, work Work, objects, found int64) {
	written := objects
	if field.isRows() {
		written = found
	}
	p.price.Fields = add(p.price.Fields, multiply(written, field.count.own))
	p.price.Bytes = add(p.price.Bytes, multiply(objects, int64(len(field.Key))))
	given := p.handed && work.Held
	p.handed = work.Hands || p.handed && (work.Held || !work.reads())
	if field.Repeats {
		return // it is resolved once, by the field before it
	}
	p.price.World = p.price.World || work.World
	if given {
		return
	}
	if work.Joins {
		p.price.joined++
	}
	if field.Of != "Mutation" {
		p.price.Statements += work.Statements
		p.price.Fallback += work.Fallback
	}
	if work.Statements > 0 && field.Levels == 0 {
		found = multiply(found, max(1, field.count.rows(p.variables, 1)))
	}
	if work.Statements > 0 {
		p.price.Read = add(p.price.Read, found)
	}
	p.price.Heavy = p.price.Heavy || work.Heavy
	p.price.Tests, p.price.Written = add(p.price.Tests, multiply(objects, work.Tests)), add(p.price.Written, work.Written)
}

// bytesOf returns about how long the values of a leaf type are in an answer.
func bytesOf(of *ast.Definition) int64 {
	switch of.Name {
	case "Boolean", "Int":
		return 5
	case "Float", "Int64":
		return 10
	case "DateTime", "UUID", "ID":
		return 40
	case "JSON":
		return 100
	case "String":
		return 30
	}
	return 15 // of an enum
}

// count is what the arguments of a field say about how many values there are.
type count struct {
	own   int64 // the field itself and the members of the lists among its arguments
	bytes int64 // of a value, where it is a leaf
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
	if known := p.counts[field]; known != nil {
		return known
	}
	c := &count{own: add(1, p.document.members[field]), page: -1}
	if of := p.document.schema.Types[field.Definition.Type.Name()]; of.IsLeafType() {
		c.bytes = bytesOf(of)
	}
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

func add(a, b int64) int64 { return min(a+b, maxCost) }

func multiply(a, b int64) int64 {
	if a > 0 && b > maxCost/a {
		return maxCost
	}
	return a * b
}
