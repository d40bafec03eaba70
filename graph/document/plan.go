package document

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/text"
)

// Plan is an operation as it runs: the selection of each type, after merging
// fields of one response name and applying @skip and @include. Every field has
// its own place, a number, unless it repeats another field. A plan is
// immutable.
type Plan struct {
	Root   *Selection
	Places int
	// Times reports whether the operation may need the times of rows: because
	// it selects one, or orders a list.
	Times bool
}

// Selection is the selection of fields on objects of one type.
type Selection struct{ Fields []*Field }

// Field is a field of a selection.
type Field struct {
	Place  int
	Parent *Field // the field above, nil at the root
	// Number is the index of the field among the fields of its type in the
	// schema, or TypeName, Schema or Type.
	Number int
	// Key is the JSON key of the field in the answer, with the comma or brace
	// before it and the colon after it.
	Key []byte
	// Lists is the number of lists in the answer from the root to the object
	// that has the field. Levels is the number of nested lists in the field's
	// type.
	Lists, Levels int
	NonNull       bool
	// NullFails reports whether the field is null only together with an error.
	NullFails bool
	Of        string     // the type that has the field
	AST       *ast.Field // the first of the merged fields
	// Below is the selection if the field's type is an object type. Types has
	// the selections by object type if it is an interface or a union.
	Below *Selection
	Types map[string]*Selection
	// Repeats reports whether an earlier field has the same place and result.
	// Repeated reports whether a later field repeats this one.
	Repeats, Repeated bool

	own   int64 // 1, and the number of list members in the literal arguments
	bytes int64 // the usual length of a value; 0 unless the field is a leaf
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

// plans caches the plans of a document, one for each operation and each choice
// of @skip and @include. The number of places in the cache is limited by the
// length of the document.
type plans struct {
	mu     sync.Mutex
	kept   map[string]planned
	places int // of all plans in the cache
}

// planned is a plan, or why there is none.
type planned struct {
	plan    *Plan
	refused error
}

// plan returns the plan of an operation of the document. It refuses a plan with
// more than maxPlaces places or maxVisits*maxPlaces visits; 0 is no limit.
func (d *document) plan(o *Operation, maxPlaces int) (*Plan, error) {
	key := d.choice(o)
	kept := &d.plans
	kept.mu.Lock()
	known, ok := kept.kept[key]
	kept.mu.Unlock()
	if ok {
		return known.plan, known.refused
	}
	made := d.newPlan(o, maxPlaces)
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if known, ok := kept.kept[key]; ok {
		return known.plan, known.refused
	}
	places := 1
	if made.plan != nil {
		places = made.plan.Places
	}
	if kept.places+places <= 64+d.bytes/3 {
		if kept.kept == nil {
			kept.kept = map[string]planned{}
		}
		kept.kept[key] = made
		kept.places += places
	}
	return made.plan, made.refused
}

// choice returns the cache key of a plan: the name of the operation and the
// values of the variables of @skip and @include.
func (d *document) choice(o *Operation) string {
	if len(d.conditions) == 0 {
		return o.Definition.Name
	}
	var key strings.Builder
	key.WriteString(o.Definition.Name)
	for _, name := range d.conditions {
		if value, _ := o.Variables[name].(bool); value {
			key.WriteString(" 1")
		} else {
			key.WriteString(" 0")
		}
	}
	return key.String()
}

type planner struct {
	document  *document
	variables map[string]any
	maxPlaces int
	visits    int // visited selections, counting repetitions
	plan      *Plan
	place     int // place of the next field
}

func (d *document) planner(variables map[string]any, maxPlaces int) *planner {
	return &planner{
		document: d, variables: variables, maxPlaces: maxPlaces, plan: &Plan{},
	}
}

// maxVisits bounds the selections that are visited for a plan, as a multiple of
// the maximum number of places. Repeated selections count, because merging
// takes time too.
const maxVisits = 20

// errPlaces means that a plan needs too many places or visits.
var errPlaces = errors.New("too many places")

func (d *document) newPlan(o *Operation, maxPlaces int) planned {
	p := d.planner(o.Variables, maxPlaces)
	if err := p.root(o); err != nil {
		return planned{refused: tooComplex("the operation has more than %d fields after expanding fragments; select fewer", maxPlaces)}
	}
	return planned{plan: p.plan}
}

// root plans the selection of Query, Mutation or Subscription.
func (p *planner) root(o *Operation) (err error) {
	root := p.document.schema.Query
	switch o.Definition.Operation {
	case ast.Mutation:
		root = p.document.schema.Mutation
	case ast.Subscription:
		root = p.document.schema.Subscription
	}
	p.plan.Root, err = p.selection(root, []ast.SelectionSet{o.Definition.SelectionSet}, nil)
	if err == nil && o.Definition.Operation == ast.Query {
		p.plan.Root.markRepeats()
	}
	return err
}

// collected are the fields of one response name in a selection: the first
// field, and the selection sets of all of them.
type collected struct {
	*ast.Field
	sets []ast.SelectionSet
}

// collector merges the selected fields of a type, in the order of the
// specification.
type collector struct {
	*planner
	names  []string // the type, its interfaces and its unions
	fields []collected
	byName map[string]int // index of a field by response name, if there are many
	spread []string       // the visited fragments
}

// collect adds the fields of a selection set.
func (c *collector) collect(set ast.SelectionSet) error {
	for _, selection := range set {
		c.visits++
		if c.maxPlaces > 0 && c.visits > maxVisits*c.maxPlaces {
			return errPlaces
		}
		var err error
		switch selection := selection.(type) {
		case *ast.Field:
			if c.includes(selection.Directives) {
				c.add(selection)
			}
		case *ast.InlineFragment:
			if c.includes(selection.Directives) && c.matches(selection.TypeCondition) {
				err = c.collect(selection.SelectionSet)
			}
		case *ast.FragmentSpread:
			if slices.Contains(c.spread, selection.Name) || !c.includes(selection.Directives) {
				continue
			}
			c.spread = append(c.spread, selection.Name)
			if fragment := c.document.ast.Fragments.ForName(selection.Name); c.matches(fragment.TypeCondition) {
				err = c.collect(fragment.SelectionSet)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fewFields is the number of fields up to which a linear search is fast enough.
const fewFields = 16

func (c *collector) add(field *ast.Field) {
	at := -1
	if len(c.fields) <= fewFields {
		at = slices.IndexFunc(c.fields, func(other collected) bool { return other.Alias == field.Alias })
	} else if index, ok := c.byName[field.Alias]; ok {
		at = index
	}
	if at < 0 {
		at = len(c.fields)
		c.fields = append(c.fields, collected{Field: field})
		if len(c.fields) == fewFields+1 {
			c.byName = map[string]int{}
			for i, known := range c.fields {
				c.byName[known.Alias] = i
			}
		} else if c.byName != nil {
			c.byName[field.Alias] = at
		}
	}
	if len(field.SelectionSet) > 0 {
		c.fields[at].sets = append(c.fields[at].sets, field.SelectionSet)
	}
}

// matches reports whether a fragment with a type condition applies to the type.
func (c *collector) matches(condition string) bool {
	return condition == "" || slices.Contains(c.names, condition)
}

// includes reports whether @skip and @include keep a selection.
func (p *planner) includes(directives ast.DirectiveList) bool {
	for _, directive := range directives {
		if directive.Name != "skip" && directive.Name != "include" {
			continue
		}
		// validation has checked that the value is a Boolean
		value, _ := directive.Arguments.ForName("if").Value.Value(p.variables)
		if yes, _ := value.(bool); yes == (directive.Name == "skip") {
			return false
		}
	}
	return true
}

// selection returns the merged selection of a type from the selection sets of
// merged fields.
func (p *planner) selection(of *ast.Definition, sets []ast.SelectionSet, parent *Field) (*Selection, error) {
	c := collector{planner: p, names: []string{of.Name}}
	for _, abstract := range p.document.schema.GetImplements(of) {
		c.names = append(c.names, abstract.Name)
	}
	for _, set := range sets {
		if err := c.collect(set); err != nil {
			return nil, err
		}
	}
	if p.plan.Places += len(c.fields); p.maxPlaces > 0 && p.plan.Places > p.maxPlaces {
		return nil, errPlaces
	}
	selection := &Selection{Fields: make([]*Field, len(c.fields))}
	fields := make([]Field, len(c.fields))
	for i, one := range c.fields {
		selection.Fields[i] = &fields[i]
		fields[i] = p.field(of, one, parent, i == 0)
	}
	for i, one := range c.fields {
		fields[i].Place = p.place
		p.place++
		if err := p.below(&fields[i], one.sets); err != nil {
			return nil, err
		}
	}
	return selection, nil
}

// field returns a field of a type, without its place and selection. It sets
// Plan.Times if the field needs the times of rows.
func (p *planner) field(of *ast.Definition, one collected, parent *Field, first bool) Field {
	field := Field{
		Parent: parent, Number: numberOf(of, one.Name), NonNull: one.Definition.Type.NonNull,
		NullFails: one.Definition.Directives.ForName(SemanticNonNull) != nil, Of: of.Name, AST: one.Field,
	}
	if parent != nil {
		field.Lists = parent.Lists + parent.Levels
	}
	before := byte(',')
	if first {
		before = '{'
	}
	field.Key = append(text.AppendQuoted([]byte{before}, one.Alias), ':')
	for typ := one.Definition.Type; typ.Elem != nil; typ = typ.Elem {
		field.Levels++
	}
	field.own = add(1, p.document.members[one.Field])
	if of := p.document.schema.Types[one.Definition.Type.Name()]; of.IsLeafType() {
		field.bytes = bytesOf(of)
	}
	if one.Name == "createdAt" || one.Name == "updatedAt" || one.Arguments.ForName("orderBy") != nil {
		p.plan.Times = true
	}
	return field
}

// below plans the selection on the objects of a field.
func (p *planner) below(field *Field, sets []ast.SelectionSet) (err error) {
	if field.Number == TypeName {
		return nil
	}
	switch below := p.document.schema.Types[field.AST.Definition.Type.Name()]; {
	case below.IsAbstractType():
		field.Types = map[string]*Selection{}
		for _, concrete := range p.document.schema.GetPossibleTypes(below) {
			if field.Types[concrete.Name], err = p.selection(concrete, sets, field); err != nil {
				return err
			}
		}
	case below.Kind == ast.Object:
		field.Below, err = p.selection(below, sets, field)
	}
	return err
}

// numberOf returns the value of Field.Number for the named field of a type.
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

// markRepeats finds fields of a query that select the same field of the same
// objects with the same arguments, under different names. It gives them the
// place of the first one, so that the field is resolved once.
func (s *Selection) markRepeats() {
	aliased := slices.ContainsFunc(s.Fields, func(f *Field) bool { return f.AST.Alias != f.AST.Name })
	var firsts map[string]*Field
	if aliased {
		firsts = make(map[string]*Field, len(s.Fields))
	}
	for _, field := range s.Fields {
		if aliased && field.Number != TypeName {
			call := callOf(field.AST)
			if first := firsts[call]; first != nil {
				field.Repeats, first.Repeated, field.Place = true, true, first.Place
			} else {
				firsts[call] = field
			}
		}
		if field.Below != nil {
			field.Below.markRepeats()
		}
		for _, selection := range field.Types {
			selection.markRepeats()
		}
	}
}

// callOf returns the name of a field with its arguments, sorted by name.
// Literals and variables appear as they are written.
func callOf(field *ast.Field) string {
	if len(field.Arguments) == 0 {
		return field.Name
	}
	arguments := slices.SortedFunc(slices.Values(field.Arguments), func(a, b *ast.Argument) int {
		return cmp.Compare(a.Name, b.Name)
	})
	var call strings.Builder
	call.WriteString(field.Name)
	for _, argument := range arguments {
		call.WriteByte(' ')
		call.WriteString(argument.Name)
		call.WriteByte(':')
		call.WriteString(argument.Value.String())
	}
	return call.String()
}
