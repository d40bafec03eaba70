package document

import "github.com/vektah/gqlparser/v2/ast"

// Work is what a field does besides writing its answer: once at its place in an
// operation, however many objects have the field there.
type Work struct {
	// Statements is how many SQL statements the field runs at most.
	Statements int
	// World is whether the field reads the resident world.
	World bool
	// Given returns the work with the arguments that the field and those above it
	// have, in place of the work above; nil where they make no difference.
	Given func(Call) Work
}

// Works are what fields do, by their type and name, such as "Query.namespaces".
// A field that is not there does nothing besides writing its answer.
type Works map[string]Work

// Call is a field of an operation with its arguments.
type Call struct {
	field     *Field
	variables map[string]any
}

// Of returns the type that has the field.
func (c Call) Of() string { return c.field.Of }

// Name returns the name of the field.
func (c Call) Name() string { return c.field.AST.Name }

// Parent returns the field above, and false for a root field.
func (c Call) Parent() (Call, bool) {
	return Call{c.field.Parent, c.variables}, c.field.Parent != nil
}

// Argument returns the value of an argument or, where it is absent, its default;
// nil for null, for one that cannot be read, and for neither.
func (c Call) Argument(name string) any {
	literal := argumentOf(c.field.AST, c.field.AST.Definition.Arguments.ForName(name))
	if literal == nil {
		return nil
	}
	value, err := literal.Value(c.variables)
	if err != nil {
		return nil
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
