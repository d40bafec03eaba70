package document

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Work is what a field does besides writing its answer, at its place in an
// operation. The directive @work of the schema's sources says it: at a field, and
// at arguments, members of input objects and values of enums for what they add.
type Work struct {
	// Statements is how many SQL statements the field runs at most, however many
	// objects have it.
	Statements int
	// Fallback is how many of them run only where memory lacks the answer, before
	// anything else of the operation is read.
	Fallback int
	// World is whether the field reads the resident world.
	World bool
	// Hands is whether the rows of the field bring along what belongs to them.
	Hands bool
	// Held is whether the field reads nothing where its row brought the value along.
	Held bool
	// Joins is whether the field, of Mutation, joins a transaction with others like
	// it, of which one has a connection for all.
	Joins bool
	// Heavy is whether the field may take so long that few of its kind run at once.
	Heavy bool
	// Tests is what the field takes for each object besides its statements and rows,
	// in fields of an answer. For conditions it is a guess on the safe side.
	Tests int64
	// Written is about how many rows the field writes.
	Written int64
	// Bytes is about how long a value is, where its type says too little.
	Bytes int64
	// Length is how many members a list usually has; 0 leaves it to the arguments.
	Length int64
	// Again is how many levels above there is a list that the field reads once more:
	// 1 is the field's parent. 0 is none.
	Again int
}

// reads reports whether a field has rows of its own.
func (w Work) reads() bool { return w.Statements > 0 || w.World }

// plus returns a work with what an argument adds to it.
func (w Work) plus(more Work) Work {
	w.Statements, w.World, w.Heavy = w.Statements+more.Statements, w.World || more.World, w.Heavy || more.Heavy
	w.Tests, w.Written = add(w.Tests, more.Tests), add(w.Written, more.Written)
	return w
}

// works are the works of a schema: by the definition of a field, an argument or
// a value of an enum.
type works struct {
	schema *ast.Schema
	of     map[any]Work
	looks  map[any]string // the kinds of names that are looked up for an argument
	nodes  func(ids []any) (statements int, world bool)
}

func newWorks(schema *ast.Schema, nodes func(ids []any) (statements int, world bool)) *works {
	w := &works{schema, map[any]Work{}, map[any]string{}, nodes}
	for _, definition := range schema.Types {
		for _, field := range definition.Fields {
			w.note(field, field.Directives)
			for _, argument := range field.Arguments {
				w.note(argument, argument.Directives)
			}
		}
		for _, value := range definition.EnumValues {
			w.note(value, value.Directives)
		}
	}
	return w
}

// note keeps what the directives of a definition say.
func (w *works) note(definition any, directives ast.DirectiveList) {
	if named := directives.ForName("nameOf"); named != nil {
		switch kind := named.Arguments.ForName("type").Value.Raw; kind {
		case "ResourceType", "Namespace":
			w.looks[definition] = "types and namespaces" // in one statement
		case "Capability":
			w.looks[definition] = kind
		}
	}
	said := directives.ForName("work")
	if said == nil {
		return
	}
	number := func(name string) int64 {
		argument := said.Arguments.ForName(name)
		if argument == nil {
			return 0
		}
		number, err := strconv.ParseInt(argument.Value.Raw, 10, 64)
		if err != nil || number < 0 {
			panic("document: @work(" + name + ": " + argument.Value.Raw + ")")
		}
		return number
	}
	is := func(name string) bool {
		argument := said.Arguments.ForName(name)
		return argument != nil && argument.Value.Raw == "true"
	}
	work := Work{
		Statements: int(number("statements")), World: is("world"), Hands: is("hands"), Held: is("held"), Joins: is("joins"), Heavy: is("heavy"),
		Tests: number("tests"), Bytes: number("bytes"), Length: number("length"), Again: int(number("again")),
	}
	if is("fallback") {
		work.Fallback = work.Statements
	}
	w.of[definition] = work
}

// workOf returns what a field does with its arguments, and notes what they say of
// the fields below it.
func (p *pricer) workOf(field *Field) Work {
	definition := field.AST.Definition
	work, looks := p.works.of[definition], map[string]bool{}
	for _, argument := range definition.Arguments {
		value := p.argument(field, argument)
		switch {
		case value == nil:
			continue
		case field.Of == "Mutation":
			p.listed = max(p.listed, longestIn(value))
			work.Written = add(work.Written, add(objectsIn(value), textIn(value)/textOfWritten))
		case definition.Type.Name() == "Node":
			ids, _ := value.([]any)
			if ids == nil {
				ids = []any{value}
			}
			statements, world := p.works.nodes(ids)
			work.Statements, work.World = work.Statements+statements, work.World || world
		case strings.HasPrefix(definition.Name, "allocationCandidates"):
			p.parts = max(p.parts, min(longestIn(value), maxPageSize))
		}
		work = p.given(work, argument, argument.Type, value, looks)
	}
	work.Statements += len(looks)
	if work.Fallback > 0 {
		work.Fallback += len(looks)
	}
	return p.again(work, field)
}

// again adds the work of a list above that a field reads once more. The far end of
// a page is looked for only from a cursor on.
func (p *pricer) again(work Work, field *Field) Work {
	if work.Again == 0 {
		return work
	}
	list := field
	for range work.Again {
		if list = list.Parent; list == nil {
			return work
		}
	}
	cursor := map[string]string{"hasPreviousPage": "after", "hasNextPage": "before"}[field.AST.Name]
	if cursor != "" && (p.argumentNamed(list, cursor) == nil || (p.argumentNamed(list, "last") != nil) != (cursor == "before")) {
		return work
	}
	first, parts, listed := p.first, p.parts, p.listed
	work = work.plus(p.workOf(list))
	p.first, p.parts, p.listed = first, parts, listed
	return work
}

// given adds to a work what a value of an argument, or what is in it, adds.
func (p *pricer) given(work Work, definition any, typ *ast.Type, value any, looks map[string]bool) Work {
	if list, ok := value.([]any); ok {
		for _, member := range list {
			work = p.given(work, definition, typ, member, looks)
		}
		return work
	}
	if value == nil || value == false {
		return work
	}
	work = work.plus(p.works.of[definition])
	if kind := p.works.looks[definition]; kind != "" {
		looks[kind] = true
	}
	of := p.works.schema.Types[typ.Name()]
	switch value := value.(type) {
	case string:
		if enum := of.EnumValues.ForName(value); enum != nil {
			work = work.plus(p.works.of[enum])
		}
	case map[string]any:
		for _, member := range of.Fields {
			if member.Name == "first" {
				p.first = max(p.first, pageIn(value["first"]))
			}
			work = p.given(work, member, member.Type, value[member.Name], looks)
		}
	}
	return work
}

// pageIn returns the size of a page that an input object asks for.
func pageIn(value any) int64 {
	size, _ := integerOf(value)
	return min(max(size, 0), maxPageSize)
}

// argumentNamed returns the value of an argument by its name.
func (p *pricer) argumentNamed(field *Field, name string) any {
	definition := field.AST.Definition.Arguments.ForName(name)
	if definition == nil {
		return nil
	}
	return p.argument(field, definition)
}

// argument returns the value of an argument or its default; nil for neither and
// for a value that cannot be read, which the field refuses.
func (p *pricer) argument(field *Field, definition *ast.ArgumentDefinition) any {
	literal := argumentOf(field.AST, definition)
	if literal == nil {
		return nil
	}
	value, ok := p.values[literal]
	if !ok {
		value, _ = literal.Value(p.variables)
		p.values[literal] = value
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

// textOfWritten is about how many bytes of a text that is imported become a row.
const textOfWritten = 300

// textIn returns the bytes of the strings in a value.
func textIn(value any) (bytes int64) {
	eachIn(value, func(value any) {
		if text, ok := value.(string); ok {
			bytes = add(bytes, int64(len(text)))
		}
	})
	return bytes
}

// longestIn returns the number of members of the longest list in a value.
func longestIn(value any) (longest int64) {
	eachIn(value, func(value any) {
		if list, ok := value.([]any); ok {
			longest = max(longest, int64(len(list)))
		}
	})
	return longest
}

// objectsIn returns the number of objects in the lists of a value.
func objectsIn(value any) (objects int64) {
	eachIn(value, func(value any) {
		list, _ := value.([]any)
		for _, member := range list {
			if _, ok := member.(map[string]any); ok {
				objects++
			}
		}
	})
	return objects
}

// elements returns the number of members of the lists in a value.
func elements(value any) (members int64) {
	eachIn(value, func(value any) {
		list, _ := value.([]any)
		members += int64(len(list))
	})
	return members
}

// valuesIn returns how many values a value of a variable is, objects and lists
// among them.
func valuesIn(value any) (values int64) {
	eachIn(value, func(any) { values++ })
	return values
}

// eachIn calls a function with a value and with all values in it.
func eachIn(value any, do func(any)) {
	do(value)
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			eachIn(member, do)
		}
	case map[string]any:
		for _, member := range value {
			eachIn(member, do)
		}
	}
}

// integerOf returns an integer of the request, and false for any other value.
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
