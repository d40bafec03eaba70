package document

import "github.com/vektah/gqlparser/v2/ast"

// Work is what a field does besides writing its answer: once at its place in an
// operation, however many objects have the field there.
type Work struct {
	// Statements is how many SQL statements the field runs at most.
	Statements int
	// Fallback is how many of the statements run only where memory does not tell
	// what the field asks of it: before anything else of the operation is read,
	// where the field is at its root.
	Fallback int
	// Hands is whether the rows of the field come from what a mutation wrote, with
	// what belongs to them.
	Hands bool
	// Held is whether the field runs no statements and reads no rows where the row
	// that it is of was handed: its value came with the row, and hands it on.
	Held bool
	// Joins is whether the field, of Mutation, waits to join a transaction with
	// others like it, of which one has a connection for all.
	Joins bool
	// World is whether the field reads the resident world.
	World bool
	// Scanned is about how many rows its statements look at besides those they
	// read.
	Scanned int64
	// Read is about how many rows its statements return or group.
	Read int64
	// Tests is about how many values are compared one by one, in the database or in
	// memory.
	Tests int64
	// Written is about how many rows the field writes besides one for each object in
	// the variables.
	Written int64
	// AtMost is how many rows and tests there are besides where what is searched
	// for is frequent. It costs nothing, and decides whether an operation is heavy.
	AtMost int64
	// Bytes is about how many bytes of text the field has for each object, where
	// that is more than the values of its type usually have.
	Bytes int64
	// Length is about how many members a list has for each object; 0 leaves it to
	// the arguments, or to what lists usually have.
	Length int64
	// Given returns what is to be added for the arguments that the field and those
	// above it have; nil where they make no difference.
	Given func(Call) Work
}

// Plus returns the sum of two works.
func (w Work) Plus(more Work) Work {
	return Work{
		Hands: w.Hands, Held: w.Held, Joins: w.Joins,
		Statements: w.Statements + more.Statements, Fallback: w.Fallback + more.Fallback, World: w.World || more.World,
		Scanned: add(w.Scanned, more.Scanned), Read: add(w.Read, more.Read), Tests: add(w.Tests, more.Tests),
		Written: add(w.Written, more.Written), AtMost: add(w.AtMost, more.AtMost), Bytes: add(w.Bytes, more.Bytes), Length: add(w.Length, more.Length),
	}
}

// Works are what fields do, by their type and name, such as "Query.namespaces".
// A field that is not there does nothing besides writing its answer.
type Works map[string]Work

// Sizes are about how many rows tables have, by their names, and indexes that
// the database may lack.
type Sizes map[string]int64

// A table counts as at least so many rows and at most as so many, and between
// them as a power of two or half as many more: what an operation costs says no
// more than that about rows which its viewer may not see. One look through the
// largest table stays within the default budget.
const (
	minSize = 64
	maxSize = 1 << 20
)

// of returns about how many rows a table has.
func (s Sizes) of(table string) int64 {
	size := s[table]
	for step := int64(minSize); step < maxSize; step *= 2 {
		if size <= step {
			return step
		}
		if size <= step+step/2 {
			return step + step/2
		}
	}
	return maxSize
}

// Call is a field of an operation with its arguments, at the objects that have
// it.
type Call struct {
	field  *Field
	pricer *pricer
	times  int64
}

// Of returns the type that has the field.
func (c Call) Of() string { return c.field.Of }

// Name returns the name of the field.
func (c Call) Name() string { return c.field.AST.Name }

// Objects returns about how many objects have the field at its place.
func (c Call) Objects() int64 { return c.times }

// Page returns how many rows a page of the field has at most.
func (c Call) Page() int64 { return c.field.count.rows(c.pricer.variables, pageSize) }

// Parent returns the field above, and false for a root field.
func (c Call) Parent() (Call, bool) {
	return Call{c.field.Parent, c.pricer, c.times}, c.field.Parent != nil
}

// Size returns about how many rows a table has.
func (c Call) Size(table string) int64 { return c.pricer.sizes.of(table) }

// Indexed reports whether the database has an index, by its name.
func (c Call) Indexed(name string) bool {
	_, ok := c.pricer.sizes[name]
	return ok
}

// Argument returns the value of an argument or, where it is absent, its default;
// nil for null, for one that cannot be read, and for neither. What the subscription
// of an event was asked with is argument of the event's own fields, too.
func (c Call) Argument(name string) any {
	if above := c.field.Parent; above != nil && above.Of == "Subscription" && c.field.AST.Definition.Arguments.ForName(name) == nil {
		return Call{above, c.pricer, c.times}.Argument(name)
	}
	literal := argumentOf(c.field.AST, c.field.AST.Definition.Arguments.ForName(name))
	if literal == nil {
		return nil
	}
	value, ok := c.pricer.values[literal]
	if !ok {
		value, _ = literal.Value(c.pricer.variables) // what cannot be read is refused by its field
		if c.pricer.values == nil {
			c.pricer.values = map[*ast.Value]any{}
		}
		c.pricer.values[literal] = value
	}
	return value
}

// argumentOf returns the literal of an argument or of its default, and nil for
// neither.
func argumentOf(field *ast.Field, definition *ast.ArgumentDefinition) *ast.Value {
	if definition == nil {
		return nil
	}
	if argument := field.Arguments.ForName(definition.Name); argument != nil {
		return argument.Value
	}
	return definition.DefaultValue
}
