package document

import (
	"slices"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/text"
)

// Plan is an operation as it runs: what is selected of the objects of each
// type, fields of one response name merged, and what @skip and @include leave
// out left out. Every field has a place of its own, a number, unless it repeats
// another. A plan is not changed once it is made.
type Plan struct {
	Root   *Selection
	Places int
}

// Selection is what is selected of the objects of one type.
type Selection struct{ Fields []*Field }

// Field is a field of a selection.
type Field struct {
	Place  int
	Parent *Field // the field above, nil at the root
	// Number is the field's number among the fields of its type in the schema, or
	// one of the numbers of the fields that every schema has.
	Number int
	// Key is the response name as the answer has it, from the comma or the brace
	// before it to the colon after it.
	Key []byte
	// Lists is how many lists the answer has from the root to the field's object,
	// and Levels how many it has from there to the objects of the field.
	Lists, Levels int
	NonNull       bool
	// NullFails is whether the field is null only together with an error.
	NullFails bool
	Of        string     // the type that has the field
	AST       *ast.Field // the first of the fields that were merged
	// Below is what is selected of the field's objects where they are of one type,
	// and Types where they are of several, by their names.
	Below *Selection
	Types map[string]*Selection
	// Repeats is whether a field before it, whose place it has, resolves the same,
	// and Repeated whether it is such a one.
	Repeats, Repeated bool
}

// SemanticNonNull is the directive of fields that are null only together with
// an error.
const SemanticNonNull = "semanticNonNull"

// The numbers of __typename, __schema and __type.
const (
	TypeName = -1 - iota
	Schema
	Type
)

// plans are the plans that are kept for a document, one for each operation and
// each choice of @skip and @include, as long as they have not many more places
// than the text has fields.
type plans struct {
	mu     sync.Mutex
	kept   map[string]*Plan
	places int // of all that are kept
}

// Plan returns the plan of the operation.
func (o *Operation) Plan() *Plan {
	key := o.choice()
	kept := &o.of.plans
	kept.mu.Lock()
	plan := kept.kept[key]
	kept.mu.Unlock()
	if plan != nil {
		return plan
	}
	plan = o.newPlan()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if made := kept.kept[key]; made != nil {
		return made
	}
	if kept.places+plan.Places <= 64+o.of.bytes/3 {
		if kept.kept == nil {
			kept.kept = map[string]*Plan{}
		}
		kept.kept[key] = plan
		kept.places += plan.Places
	}
	return plan
}

// choice returns the name of the operation with the values of the variables
// that @skip and @include look at.
func (o *Operation) choice() string {
	if len(o.of.conditions) == 0 {
		return o.Definition.Name
	}
	var key strings.Builder
	key.WriteString(o.Definition.Name)
	for _, name := range o.of.conditions {
		if value, _ := o.Variables[name].(bool); value {
			key.WriteString(" 1")
		} else {
			key.WriteString(" 0")
		}
	}
	return key.String()
}

// planner makes a plan.
type planner struct {
	schema  *ast.Schema
	collect *graphql.OperationContext
	plan    *Plan
}

func (o *Operation) newPlan() *Plan {
	p := &planner{
		schema:  o.of.schema,
		collect: &graphql.OperationContext{Doc: o.Document, Variables: o.Variables},
		plan:    &Plan{},
	}
	root := p.schema.Query
	if o.Definition.Operation == ast.Mutation {
		root = p.schema.Mutation
	}
	p.plan.Root = p.selection(root, o.Definition.SelectionSet, nil)
	if o.Definition.Operation == ast.Query {
		p.plan.Root.markRepeats()
	}
	return p.plan
}

// selection returns what a selection set, the ones of fields merged in order,
// selects of objects of a type.
func (p *planner) selection(of *ast.Definition, set ast.SelectionSet, parent *Field) *Selection {
	names := []string{of.Name}
	for _, abstract := range p.schema.GetImplements(of) {
		names = append(names, abstract.Name)
	}
	selection := &Selection{}
	lists := 0
	if parent != nil {
		lists = parent.Lists + parent.Levels
	}
	for _, collected := range graphql.CollectFields(p.collect, set, names) {
		alias := collected.Alias
		if slices.ContainsFunc(selection.Fields, func(f *Field) bool { return f.AST.Alias == alias }) {
			continue
		}
		field := &Field{
			Place: p.plan.Places, Parent: parent, Number: numberOf(of, collected.Name), Lists: lists,
			NonNull: collected.Definition.Type.NonNull, NullFails: collected.Definition.Directives.ForName(SemanticNonNull) != nil, Of: of.Name, AST: collected.Field,
		}
		before := byte(',')
		if len(selection.Fields) == 0 {
			before = '{'
		}
		field.Key = append(text.AppendQuoted([]byte{before}, alias), ':')
		p.plan.Places++
		selection.Fields = append(selection.Fields, field)
		if field.Number == TypeName {
			continue
		}
		typ := collected.Definition.Type
		for ; typ.Elem != nil; typ = typ.Elem {
			field.Levels++
		}
		switch below := p.schema.Types[typ.NamedType]; {
		case below.IsAbstractType():
			field.Types = map[string]*Selection{}
			for _, concrete := range p.schema.GetPossibleTypes(below) {
				field.Types[concrete.Name] = p.selection(concrete, collected.Selections, field)
			}
		case below.Kind == ast.Object:
			field.Below = p.selection(below, collected.Selections, field)
		}
	}
	return selection
}

// numberOf returns the number of a field among those of its type.
func numberOf(of *ast.Definition, name string) int {
	switch name {
	case "__typename":
		return TypeName
	case "__schema":
		return Schema
	case "__type":
		return Type
	}
	number := 0
	for _, field := range of.Fields {
		if field.Name == name {
			return number
		}
		if !strings.HasPrefix(field.Name, "__") {
			number++
		}
	}
	return number
}

// conditionsOf returns the names of the variables that @skip and @include look
// at.
func conditionsOf(document *ast.QueryDocument) []string {
	var names []string
	note := func(list ast.DirectiveList) {
		for _, directive := range list {
			argument := directive.Arguments.ForName("if")
			if argument != nil && argument.Value.Kind == ast.Variable && !slices.Contains(names, argument.Value.Raw) {
				names = append(names, argument.Value.Raw)
			}
		}
	}
	var within func(set ast.SelectionSet)
	within = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch selection := selection.(type) {
			case *ast.Field:
				note(selection.Directives)
				within(selection.SelectionSet)
			case *ast.InlineFragment:
				note(selection.Directives)
				within(selection.SelectionSet)
			case *ast.FragmentSpread:
				note(selection.Directives)
			}
		}
	}
	for _, operation := range document.Operations {
		within(operation.SelectionSet)
	}
	for _, fragment := range document.Fragments {
		within(fragment.SelectionSet)
	}
	return names
}
