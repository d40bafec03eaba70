package document

import (
	"maps"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/text"
)

// work is the work of a field, not including writing its answer. The members
// follow the arguments of the directive @work; see schema/work.graphql.
// Fallback counts statements, and Written the rows that a mutation writes.
type work struct {
	Statements, Fallback             int
	World, Hands, Held, Joins, Heavy bool
	Tests, Written, Bytes, Length    int64
	Again                            int
}

// plus returns w with the statements, tests and written rows of more added: the
// work of an argument, or of a list that is read again.
func (w work) plus(more work) work {
	w.Statements, w.World, w.Heavy = w.Statements+more.Statements, w.World || more.World, w.Heavy || more.Heavy
	w.Tests, w.Written = add(w.Tests, more.Tests), add(w.Written, more.Written)
	return w
}

// works holds the work of a schema, by the definition of a field, an input
// field, an argument or a value of an enum.
type works struct {
	schema *ast.Schema
	of     map[any]work
	looks  map[any]string // the kind of names that an argument looks up
	nodes  func(ids []any) (statements int, world bool)
}

func newWorks(schema *ast.Schema, nodes func(ids []any) (statements int, world bool)) *works {
	w := &works{schema, map[any]work{}, map[any]string{}, nodes}
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

// note stores the work of a definition and the kind of names that it looks up.
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
	raw := func(name string) string {
		if argument := said.Arguments.ForName(name); argument != nil {
			return argument.Value.Raw
		}
		return ""
	}
	is := func(name string) bool { return raw(name) == "true" }
	number := func(name string) int64 {
		number, _ := strconv.ParseInt(raw(name), 10, 32) // an absent number is 0
		return number
	}
	of := work{
		Statements: int(number("statements")), World: is("world"), Hands: is("hands"), Held: is("held"),
		Joins: is("joins"), Heavy: is("heavy"),
		Tests: number("tests"), Bytes: number("bytes"), Length: number("length"), Again: int(number("again")),
	}
	if is("fallback") {
		of.Fallback = of.Statements
	}
	w.of[definition] = of
}

// workOf returns the work of a field with its arguments. It sets the members of
// the pricer that arguments pass to the fields below.
func (p *pricer) workOf(field *Field) work {
	definition := field.AST.Definition
	work, looks := p.works.of[definition], map[string]bool{}
	for _, argument := range definition.Arguments {
		given := p.argument(field, argument)
		switch {
		case given.value == nil:
		case field.Of == "Mutation":
			p.listed = max(p.listed, given.size.longest)
			work.Written = add(work.Written, given.size.objects+given.size.text/textOfWritten)
		case definition.Type.Name() == "Node":
			ids, ok := given.value.([]any)
			if !ok {
				ids = []any{given.value}
			}
			statements, world := p.works.nodes(ids)
			work.Statements, work.World = work.Statements+statements, work.World || world
		case strings.HasPrefix(definition.Name, "allocationCandidates"):
			p.parts = max(p.parts, min(given.size.longest, maxPageSize))
		}
		work, p.first = work.plus(given.work), max(p.first, given.first)
		maps.Copy(looks, given.looks)
	}
	work.Statements += len(looks)
	if work.Fallback > 0 {
		work.Fallback += len(looks)
	}
	return p.again(work, field)
}

// again adds the work of a list above that the field reads a second time.
// hasPreviousPage does so only for the first rows after a cursor, hasNextPage
// only for the last rows before a cursor.
func (p *pricer) again(work work, field *Field) work {
	list := field
	for range work.Again {
		if list = list.Parent; list == nil {
			return work
		}
	}
	has := func(name string) bool {
		return p.argument(list, list.AST.Definition.Arguments.ForName(name)).value != nil
	}
	cursor := map[string]string{"hasPreviousPage": "after", "hasNextPage": "before"}[field.AST.Name]
	if work.Again == 0 || cursor != "" && (!has(cursor) || has("last") != (cursor == "before")) {
		return work
	}
	first, parts, listed := p.first, p.parts, p.listed
	work = work.plus(p.workOf(list))
	p.first, p.parts, p.listed = first, parts, listed
	return work
}

// given is the value of an argument and its effect on the work of its field.
type given struct {
	value any // nil for no value, and for an invalid one, which the field refuses
	size  valueSize
	work  work
	looks map[string]bool
	first int64 // the largest page that an input object asks for
}

// argument returns the value and effect of an argument or its default. It reads
// each value once, even if many fields use it.
func (p *pricer) argument(field *Field, definition *ast.ArgumentDefinition) *given {
	if definition == nil {
		return &given{}
	}
	literal := definition.DefaultValue
	if argument := field.AST.Arguments.ForName(definition.Name); argument != nil {
		literal = argument.Value
	}
	if literal == nil {
		return &given{}
	}
	key := [2]any{definition, literal}
	if literal.Kind == ast.Variable {
		key[1] = literal.Raw
	}
	known := p.given[key]
	if known == nil {
		value, _ := literal.Value(p.variables)
		known = &given{value: value, size: sizeOf(value), looks: map[string]bool{}}
		known.add(p.works, definition, definition.Type, value)
		p.given[key] = known
	}
	return known
}

// scanTimes is the factor on the cost of a search that no trigram index serves,
// so that it reads all rows. 48 such searches in one operation made other
// operations seven times slower.
const scanTimes = 10

// add adds the effect of a value and of the values inside it.
func (g *given) add(works *works, definition any, typ *ast.Type, value any) {
	if list, ok := value.([]any); ok {
		for _, member := range list {
			g.add(works, definition, typ, member)
		}
		return
	}
	if value == nil || value == false {
		return
	}
	g.work = g.work.plus(works.of[definition])
	if kind := works.looks[definition]; kind != "" {
		g.looks[kind] = true
	}
	of := works.schema.Types[typ.Name()]
	switch value := value.(type) {
	case string:
		if member, ok := definition.(*ast.FieldDefinition); ok && member.Name == "search" && !text.HasTrigram(value) {
			g.work.Tests = add(g.work.Tests, (scanTimes-1)*works.of[definition].Tests)
		}
		if enum := of.EnumValues.ForName(value); enum != nil {
			g.work = g.work.plus(works.of[enum])
		}
	case map[string]any:
		for _, member := range of.Fields {
			if size, ok := integerOf(value[member.Name]); ok && member.Name == "first" {
				g.first = max(g.first, min(size, maxPageSize))
			}
			g.add(works, member, member.Type, value[member.Name])
		}
	}
}

// valueSize counts the contents of a value of the request.
type valueSize struct {
	values  int64 // all values, including the value itself
	members int64 // of all lists
	longest int64 // the length of the longest list
	objects int64 // objects that are members of lists
	text    int64 // bytes of strings
}

func sizeOf(value any) (size valueSize) {
	size.add(value)
	return size
}

func (s *valueSize) add(value any) {
	s.values++
	switch value := value.(type) {
	case string:
		s.text += int64(len(value))
	case []any:
		s.members, s.longest = s.members+int64(len(value)), max(s.longest, int64(len(value)))
		for _, member := range value {
			if _, ok := member.(map[string]any); ok {
				s.objects++
			}
			s.add(member)
		}
	case map[string]any:
		for _, member := range value {
			s.add(member)
		}
	}
}
