package document

import (
	"encoding/json"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Sizes that a price assumes, in rows or members; see docs/limits.md.
const (
	pageSize    = 50   // rows of a page without a requested size
	maxPageSize = 1000 // larger pages are refused by their field
	listSize    = 10   // members of a list without pages

	maxCost = int64(1) << 50 // the limit of sums and products
)

// The costs of work. A field of the answer costs 1, which is 0.1 us of a core
// for the server and the database together. BenchmarkWeights measures the other
// costs. The comments give the times on SQLite and PostgreSQL, on busy cores.
const (
	costOfStatement = 500                 // 60 and 94 us, with the round trip
	costOfRow       = 20                  // 2.7 and 2.9 us with one field, 3.5 and 3.4 us with many columns
	bytesOfCost     = 100                 // bytes that cost 1: 0.02 and 0.01 us, ten times as long if compressed
	costOfMutation  = 8 * costOfStatement // a field of Mutation: about eight statements, one with a wait for the disk
	costOfWritten   = 200                 // of a row: 20 to 60 us to read, check and write it
	textOfWritten   = 300                 // bytes of strings in the input of a mutation that count as a row
)

// Price is an estimate of the work of an operation. It depends on the operation
// alone, so it does not reveal the number of hidden rows. The rows that the
// database returns are measured in the run, and charged after it.
type Price struct {
	// Cost is the weighted sum of the counts below, in fields of an answer.
	Cost int64
	// Fields is the number of fields of the answer and of members of lists in
	// the request, and Bytes the length of the answer.
	Fields, Bytes int64
	// Statements is the maximum number of SQL statements of a query or of the
	// payloads of a mutation. The transactions of a mutation are not included.
	// Fallback is the number of these statements that run only if memory lacks
	// the answer.
	Statements, Fallback int
	// Read is the number of rows that the statements return, Written the number
	// that a mutation writes, and Tests the cost of conditions, facets and
	// searches.
	Read, Written, Tests int64
	// World reports whether a field reads the resident world, and Heavy whether
	// a field or a condition may take long.
	World, Heavy bool
	// Mutations is the number of fields of Mutation; joined is the number of
	// them that join a shared transaction.
	Mutations, joined int64
}

// CostOf returns the cost of measured work.
func CostOf(statements, read, bytes int64) int64 {
	return Price{Statements: int(statements), Read: read, Bytes: bytes}.total()
}

func (p Price) total() int64 {
	total := add(p.Fields, p.Bytes/bytesOfCost)
	total = add(total, multiply(int64(p.Statements), costOfStatement))
	total = add(total, multiply(p.Mutations, costOfMutation))
	total = add(total, multiply(p.Written, costOfWritten))
	total = add(total, multiply(p.Read, costOfRow))
	return add(total, p.Tests)
}

// priceOf returns the price of an operation, and refuses a price above the
// maximum; 0 is no maximum. It visits each place of the plan once.
func (r *Reader) priceOf(o *Operation, maximum int64) (Price, error) {
	p := &pricer{works: r.works, variables: o.Variables, given: map[[2]any]*given{}}
	p.price.Fields = sizeOf(o.Variables).members
	if o.Definition.Operation == ast.Mutation {
		p.price.Mutations = int64(len(o.planned.Root.Fields))
	}
	p.selection(o.planned.Root, 1, 0)
	if p.price.Cost = p.price.total(); maximum > 0 && p.price.Cost > maximum {
		return p.price,
			tooComplex("the operation is too expensive: it costs more than the maximum of %d; select fewer fields or request smaller pages", maximum)
	}
	return p.price, nil
}

// pricer adds up a price. Sums and products stop at maxCost.
type pricer struct {
	works     *works
	variables map[string]any
	price     Price
	given     map[[2]any]*given // by an argument and its value or variable
	visits    int               // visits of places, which tests compare with the plan

	// For the fields below the current one:
	handed bool  // the rows came with their parents
	parts  int64 // length of the longest list in a request for candidates
	listed int64 // length of the longest list in the input of a mutation
	first  int64 // the largest page that an input object asks for
}

// selection adds the price of a selection of objects. Rows is the number of
// rows of each object if it is a page.
func (p *pricer) selection(selected *Selection, objects, rows int64) {
	p.price.Bytes = add(p.price.Bytes, objects) // the brace at the end
	for _, field := range selected.Fields {
		p.field(field, objects, rows)
	}
}

func (p *pricer) field(field *Field, objects, rows int64) {
	p.visits++
	above := *p
	defer func() { p.handed, p.parts, p.listed, p.first = above.handed, above.parts, above.listed, above.first }()
	work := p.workOf(field)
	found := p.found(field, work, objects, rows)
	p.add(field, work, objects, found)
	rows = 0
	if field.Levels == 0 {
		rows = max(p.first, p.rows(field, pageSize))
	}
	before, most := p.price, p.price
	switch {
	case field.Below != nil:
		p.selection(field.Below, found, rows)
		return
	case field.Types == nil:
		most.Bytes = add(most.Bytes, multiply(found, max(field.bytes, work.Bytes)))
	}
	for _, selected := range field.Types { // an object has one type, so the most expensive one counts
		p.price.Fields, p.price.Bytes = before.Fields, before.Bytes
		p.selection(selected, found, rows)
		most.Fields, most.Bytes = max(most.Fields, p.price.Fields), max(most.Bytes, p.price.Bytes)
	}
	p.price.Fields, p.price.Bytes = most.Fields, most.Bytes
}

// found returns the number of values of a field on some objects. Rows is the
// number of rows of each object if it is a page. An empty list is priced as a
// list of one.
func (p *pricer) found(field *Field, work work, objects, rows int64) int64 {
	switch {
	case field.Levels == 0:
		rows = 1
	case work.Length > 0:
		rows = max(work.Length, p.parts, p.first)
	case field.isRows():
	case strings.HasSuffix(field.Of, "Payload"): // a result for each member of the input
		rows = max(p.rows(field, listSize), p.listed)
	default:
		rows = p.rows(field, listSize)
	}
	return max(1, multiply(objects, rows))
}

// isRows reports whether the field lists the rows of the page above it.
func (f *Field) isRows() bool {
	return f.Levels > 0 && strings.HasSuffix(f.Of, "Connection") && len(f.AST.Definition.Arguments) == 0
}

// add adds the work of a field to the price. Objects is the number of objects
// with the field, found the number of its values on all of them.
func (p *pricer) add(field *Field, work work, objects, found int64) {
	written := objects
	if field.isRows() {
		written = found
	}
	p.price.Fields = add(p.price.Fields, multiply(written, field.own))
	p.price.Bytes = add(p.price.Bytes, multiply(objects, int64(len(field.Key))))
	given := p.handed && work.Held
	p.handed = work.Hands || p.handed && (work.Held || work.Statements == 0 && !work.World)
	if field.Repeats {
		return // the earlier field is resolved for both
	}
	p.price.World = p.price.World || work.World
	if given {
		return
	}
	if work.Joins {
		p.price.joined++
	}
	if field.Of != "Mutation" {
		p.price.Statements, p.price.Fallback = p.price.Statements+work.Statements, p.price.Fallback+work.Fallback
	}
	if work.Statements > 0 {
		if field.Levels == 0 {
			found = multiply(found, max(1, p.rows(field, 1)))
		}
		p.price.Read = add(p.price.Read, found)
	}
	p.price.Heavy = p.price.Heavy || work.Heavy
	p.price.Tests, p.price.Written = add(p.price.Tests, multiply(objects, work.Tests)),
		add(p.price.Written, work.Written)
}

// rows returns the length of a list for its price: the value of `first` or
// `last`, or pageSize if a page has neither. A list without pages has the length
// of the longest list among its arguments, or usual. The maximum is maxPageSize.
func (p *pricer) rows(field *Field, usual int64) int64 {
	page, named, paged := int64(-1), int64(0), false
	for _, definition := range field.AST.Definition.Arguments {
		value := p.argument(field, definition).value
		if list, ok := value.([]any); ok {
			named = max(named, int64(len(list)))
		}
		if definition.Name == "first" || definition.Name == "last" {
			paged = true
			if number, ok := integerOf(value); ok {
				page = max(page, number, 0)
			}
		}
	}
	switch {
	case page >= 0:
		return min(page, maxPageSize)
	case paged:
		return pageSize
	case named > 0:
		return min(named, maxPageSize)
	}
	return usual
}

// bytesOf returns the usual length of the values of a leaf type.
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
	return 15 // an enum
}

// integerOf returns an integer of the request. It returns false for any other
// value.
func integerOf(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case json.Number:
		number, err := value.Int64()
		return number, err == nil
	}
	return 0, false
}

func add(a, b int64) int64 { return min(a+b, maxCost) }

func multiply(a, b int64) int64 {
	if a > 0 && b > maxCost/a {
		return maxCost
	}
	return a * b
}

// Needs is the resource besides memory that an operation needs while it runs.
type Needs int

const (
	// NeedsNothing is for operations that memory answers.
	NeedsNothing Needs = iota
	// NeedsTransaction is for mutations that join a shared transaction, and
	// whose payloads memory answers.
	NeedsTransaction
	// NeedsDatabase is for operations that may run statements.
	NeedsDatabase
	// NeedsLong is for operations that may take long, in memory or in the
	// database. Few of them run at the same time.
	NeedsLong
)

// heavyCost is the cost above which an operation has NeedsLong: about 30 ms of
// a core.
const heavyCost = 300_000

func needsOf(o *Operation) Needs {
	switch {
	case o.Price.Heavy || o.Price.Cost > heavyCost:
		return NeedsLong
	case o.Price.Statements > 0 || o.Price.joined < o.Price.Mutations:
		return NeedsDatabase
	case o.Price.joined > 0:
		return NeedsTransaction
	}
	return NeedsNothing
}
