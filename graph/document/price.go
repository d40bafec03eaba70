package document

import (
	"cmp"
	"encoding/json"
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
	costOfStatement  = 500 // 60 and 94 us, the round trip included
	costOfRow        = 20  // that is read: 2.7 and 2.9 us with a field of its own, 3.5 and 3.4 us for a row with many columns
	costOfScannedRow = 1   // 0.07 and 0.07 us
	costOfTest       = 1   // 0.12 and 0.02 us
	bytesOfCost      = 100 // 0.02 and 0.01 us, and compressed ten times as long

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

// Price is an estimate of the work that an operation takes.
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
	// Fallback is how many of the statements run only where memory does not tell.
	Fallback int
	// Scanned, Read and Tests are the rows that statements look at and read, and the
	// values that are compared one by one.
	Scanned, Read, Tests int64
	// Written is about how many rows the fields of a mutation write: the objects in
	// its variables, and what is in texts.
	Written int64
	// AtMost is how many more rows and tests there are where all that is searched
	// for is frequent.
	AtMost int64
	// World is whether any field reads the resident world.
	World bool
	// mutations is how many fields of Mutation there are, and joined how many of
	// them join a transaction with others.
	mutations, joined int64
}

// heavyCost is the cost beyond which an operation is heavy: about 30 ms of a core.
// What it takes at most counts: a text that is searched for can be frequent.
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
	case add(o.Price.Cost, o.Price.AtMost) > heavyCost:
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
	total = add(total, multiply(p.Scanned, costOfScannedRow))
	return add(total, multiply(p.Tests, costOfTest))
}

// priceOf estimates the price of an operation in one visit of each place of its
// plan, and stops as soon as it is beyond the maximum; 0 is no maximum.
func priceOf(o *Operation, sizes Sizes, maximum int64) (Price, error) {
	p := &pricer{variables: o.Variables, sizes: sizes, maximum: maximum}
	for _, value := range o.Variables {
		p.price.Fields = add(p.price.Fields, elements(value))
	}
	if o.Definition.Operation == ast.Mutation {
		p.price.mutations = int64(len(o.planned.Root.Fields))
		for _, value := range o.Variables {
			p.price.Written = add(p.price.Written, objectsIn(value))
		}
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
	variables map[string]any
	sizes     Sizes
	maximum   int64
	price     Price
	values    map[*ast.Value]any // of the arguments that were asked for
	visits    int                // places visited, which tests hold to those of the plan
	handed    bool               // whether the rows of the selection came with what a mutation wrote
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
	work := p.work(field, objects)
	defer func(handed bool) { p.handed = handed }(p.handed)
	p.handed = work.Hands || p.handed && work.Held
	isRows := field.Levels > 0 && strings.HasSuffix(field.Of, "Connection") && work.Length == 0 // the rows of a page
	keys := objects
	if isRows {
		objects = max(1, multiply(objects, rows))
	}
	p.price.Fields = add(p.price.Fields, multiply(objects, field.count.own))
	p.price.Bytes = add(p.price.Bytes, multiply(keys, int64(len(field.Key))))
	rows = 0
	switch {
	case field.Levels == 0:
		rows = field.count.rows(p.variables, pageSize)
	case work.Length > 0:
		objects = multiply(objects, work.Length)
	case !isRows:
		objects = multiply(objects, field.count.rows(p.variables, listSize))
	}
	objects = max(objects, 1) // an empty page costs what one row does
	if field.Below == nil && field.Types == nil {
		p.price.Bytes = add(p.price.Bytes, multiply(objects, max(field.count.bytes, work.Bytes)))
		return
	}
	if field.Below != nil {
		p.selection(field.Below, objects, rows)
		return
	}
	before, most := p.price, p.price
	for _, selected := range field.Types { // an object is of one type: the most expensive one counts
		p.price.Fields, p.price.Bytes = before.Fields, before.Bytes
		p.selection(selected, objects, rows)
		most.Fields, most.Bytes = max(most.Fields, p.price.Fields), max(most.Bytes, p.price.Bytes)
	}
	p.price.Fields, p.price.Bytes = most.Fields, most.Bytes
}

// work adds what a field does besides writing its answer, and returns it.
func (p *pricer) work(field *Field, objects int64) Work {
	if field.work == nil {
		return Work{}
	}
	work := *field.work
	if work.Given != nil {
		work = work.Plus(work.Given(Call{field, p, objects}))
	}
	if field.Repeats {
		return work // of the field before it
	}
	if p.handed && work.Held {
		p.price.World = p.price.World || work.World
		return work
	}
	if work.Joins {
		p.price.joined++
	}
	p.price.Statements += work.Statements
	p.price.Fallback += work.Fallback
	p.price.World = p.price.World || work.World
	p.price.Scanned, p.price.Read, p.price.Tests = add(p.price.Scanned, work.Scanned), add(p.price.Read, work.Read), add(p.price.Tests, work.Tests)
	p.price.AtMost, p.price.Written = add(p.price.AtMost, work.AtMost), add(p.price.Written, work.Written)
	return work
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

// valuesIn returns how many values a value of a variable is, objects and lists
// among them.
func valuesIn(value any) int64 {
	total := int64(1)
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			total += valuesIn(member)
		}
	case map[string]any:
		for _, member := range value {
			total += valuesIn(member)
		}
	}
	return total
}

// objectsIn returns the number of objects in the lists of a value.
func objectsIn(value any) int64 {
	var total int64
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			if _, ok := member.(map[string]any); ok {
				total++
			}
			total = add(total, objectsIn(member))
		}
	case map[string]any:
		for _, member := range value {
			total = add(total, objectsIn(member))
		}
	}
	return total
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
