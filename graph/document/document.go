// Package document prepares operations before they run. It parses and validates
// documents, checks them against limits, coerces variables to their types and
// estimates the cost of an operation. Its errors wrap a problem.Refusal or a
// problem.InvalidInput, or have gqlgen's code for parsing or validation.
// Package graph turns them into the errors of an answer.
package document

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/cadastre-dev/cadastre/internal/lru"
	"github.com/cadastre-dev/cadastre/problem"
)

// MaxErrors bounds the errors of one answer. Beyond it each failed field still
// has one error.
const MaxErrors = 20

// hintBytes is the maximum length of a document whose errors suggest names in
// place of wrong ones. The search for suggestions is slow in long documents.
const hintBytes = 16 << 10

// keptWeight is the approximate memory of a kept document and its plans, in
// bytes per byte of its source.
const keptWeight = 80

// Reader reads documents of a schema within limits, and caches the valid ones.
type Reader struct {
	schema    *ast.Schema
	limits    Limits
	works     *works
	hinting   *rules.Rules // errors suggest names in place of wrong ones
	unhinting *rules.Rules // errors suggest no names of the schema
	kept      *lru.Cache[*document]
}

// document is a valid document. It is safe for concurrent use.
type document struct {
	schema     *ast.Schema
	ast        *ast.QueryDocument
	bytes      int                  // length of the source
	conditions []string             // the variables of @skip and @include
	literals   map[string]any       // values of the variables that replace literals
	members    map[*ast.Field]int64 // the number of list members in the literal arguments of a field
	plans      plans
}

// Request is a request of a client.
type Request struct {
	// Text is the document.
	Text string
	// OperationName may be empty if the document has only one operation.
	OperationName string
	// Variables are decoded JSON, with numbers as json.Number.
	Variables map[string]any
	// Trusted allows ten times as many tokens.
	Trusted bool
	// Hints makes the errors of short documents suggest names in place of wrong
	// ones. This reveals names of the schema.
	Hints bool
}

// Prepared is the result of preparing a request: an operation that may run, or
// why it is refused.
type Prepared struct {
	// Valid reports whether the document is valid. It is false if the variables
	// are refused before the document is read. The rest of the request may be
	// invalid even if Valid is true.
	Valid bool
	// Operation is nil if the request is refused before the operation is
	// planned. An operation that is too large or costs too much is not nil.
	Operation *Operation
	// Refused is why the operation may not run, or empty if it may run.
	Refused gqlerror.List
	// NotUnicode reports whether the document is refused for a literal with
	// half of a surrogate pair.
	NotUnicode bool
	// Effort is the cost of preparing the request, in fields of an answer: of
	// reading the variables, of reading a document that was not cached, valid
	// or not, and of refusing a request that is too complex.
	Effort int64
}

// Operation is one operation of a valid document, with its variables coerced to
// their types.
type Operation struct {
	// Asked is the client's request.
	Asked      Request
	Document   *ast.QueryDocument
	Definition *ast.OperationDefinition
	Variables  map[string]any
	// Price is the estimated work of the operation.
	Price Price
	// Needs is the resource that the operation needs while it runs.
	Needs Needs
	// Introspects reports whether the operation selects __schema or __type.
	Introspects bool

	planned *Plan
}

// Plan returns the plan of the operation, or nil if it has too many fields.
func (o *Operation) Plan() *Plan { return o.planned }

// NewReader returns a reader of documents of the schema. Nodes returns how many
// statements look up nodes by their ids, and whether any node is in the
// placement world.
func NewReader(schema *ast.Schema, nodes func(ids []any) (statements int, world bool), limits Limits) *Reader {
	unhinting := rules.NewDefaultRules()
	for _, rule := range []struct{ with, without core.Rule }{
		{rules.FieldsOnCorrectTypeRule, rules.FieldsOnCorrectTypeRuleWithoutSuggestions},
		{rules.KnownArgumentNamesRule, rules.KnownArgumentNamesRuleWithoutSuggestions},
		{rules.KnownTypeNamesRule, rules.KnownTypeNamesRuleWithoutSuggestions},
		{rules.ScalarLeafsRule, rules.ScalarLeafsRuleWithoutSuggestions},
		{rules.ValuesOfCorrectTypeRule, rules.ValuesOfCorrectTypeRuleWithoutSuggestions},
	} {
		unhinting.RemoveRule(rule.with.Name)
		unhinting.AddRule(rule.without.Name, rule.without.RuleFunc)
	}
	hinting := rules.NewDefaultRules()
	nameArguments(hinting)
	nameArguments(unhinting)
	return &Reader{
		schema: schema, works: newWorks(schema, nodes), limits: limits, hinting: hinting, unhinting: unhinting,
		kept: lru.New[*document](limits.DocumentBytes),
	}
}

// Prepare parses, validates, plans and prices a request: it checks the
// variables, reads the document, coerces the variables to their types, plans
// the operation and estimates its price. It refuses a request beyond a limit.
func (r *Reader) Prepare(request Request) Prepared {
	prepared := r.readAndPlan(request)
	if len(request.Variables) > 0 {
		prepared.Effort = add(prepared.Effort, multiply(sizeOf(request.Variables).values, costOfValue))
	}
	if errors.Is(prepared.Refused, problem.ErrTooComplex) {
		prepared.Effort = add(prepared.Effort, costOfTooComplex)
	}
	return prepared
}

// readAndPlan is Prepare without the cost of variables and refusals.
func (r *Reader) readAndPlan(request Request) Prepared {
	if err := checkVariables(request.Variables, r.limits.ListMembers); err != nil {
		return Prepared{Refused: refuse(err)}
	}
	valid, effort, refused := r.read(request)
	if refused != nil {
		return Prepared{Refused: refused, NotUnicode: errors.Is(refused, errNotUnicode), Effort: effort}
	}
	operation, refused := valid.operation(request.OperationName, request.Variables)
	if refused != nil {
		return Prepared{Valid: true, Refused: refused, Effort: effort}
	}
	operation.Asked = request
	if refused := valid.checkSubscription(operation); refused != nil {
		return Prepared{Valid: true, Refused: refused, Effort: effort}
	}
	prepared := Prepared{Valid: true, Operation: operation, Effort: effort}
	var err error
	if operation.planned, err = valid.plan(operation, r.limits.Places); err == nil {
		operation.Introspects = slices.ContainsFunc(operation.planned.Root.Fields, func(f *Field) bool {
			return f.Number == Schema || f.Number == Type
		})
		operation.Price, err = r.priceOf(operation, r.limits.Cost)
		operation.Needs = needsOf(operation)
	}
	if err != nil {
		prepared.Refused = refuse(err)
	}
	return prepared
}

// read returns the valid document of a request, from the cache or newly parsed,
// checked against the limits and validated. Effort is the cost of a new
// document, and 0 for a cached one.
func (r *Reader) read(request Request) (valid *document, effort int64, refused gqlerror.List) {
	if kept, ok := r.kept.Get(request.Text); ok {
		return kept, 0, nil
	}
	w := &walker{limits: r.limits}
	valid, refused = r.readNew(request, w)
	if refused == nil {
		r.kept.Add(request.Text, valid, int64(len(request.Text))*keptWeight)
	}
	return valid, w.effort(len(request.Text)), refused
}

// readNew returns the valid document of a request that is not cached.
func (r *Reader) readNew(request Request, w *walker) (*document, gqlerror.List) {
	if err := checkNames(request.Text); err != nil {
		return nil, refuse(err)
	}
	tokens := r.limits.Tokens
	if request.Trusted {
		tokens *= 10
	}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: request.Text}, tokens)
	if err != nil {
		refused := gqlerror.WrapIfUnwrapped(err)
		errcode.Set(refused, errcode.ParseFailed)
		return nil, gqlerror.List{refused}
	}
	if len(parsed.Operations) == 0 {
		return nil, invalidDocument("the document has no operation")
	}
	w.document = parsed
	if err := w.walk(request.Text); err != nil {
		return nil, refuse(err)
	}
	rules := r.unhinting
	if request.Hints && len(request.Text) <= hintBytes {
		rules = r.hinting
	}
	refused := validator.ValidateWithRules(r.schema, parsed, rules)
	literals, wrong := checkValues(w.noted.values)
	if refused = append(refused, wrong...); len(refused) > 0 {
		refused = withFields(r.schema, parsed, refused)
		for _, err := range refused {
			errcode.Set(err, errcode.ValidationFailed)
		}
		return nil, refused
	}
	return &document{
		schema: r.schema, ast: parsed, bytes: len(request.Text),
		conditions: w.noted.conditions, literals: literals, members: w.noted.members,
	}, nil
}

// operation returns the operation with a name, with its variables coerced. The
// name may be empty if the document has only one operation.
func (d *document) operation(name string, variables map[string]any) (*Operation, gqlerror.List) {
	definition := d.ast.Operations.ForName(name)
	if definition == nil {
		if name != "" {
			return nil, invalidDocument("the document has no operation with the name in operationName")
		}
		return nil, invalidDocument("the document has several operations: operationName must name one")
	}
	coerced, refused := d.coerce(definition, variables)
	if len(refused) > 0 {
		return nil, refused
	}
	maps.Copy(coerced, d.literals)
	return &Operation{Document: d.ast, Definition: definition, Variables: coerced}, nil
}

// checkSubscription refuses a subscription unless exactly one root field
// remains after @skip and @include, and its name does not begin with two
// underscores.
func (d *document) checkSubscription(o *Operation) gqlerror.List {
	if o.Definition.Operation != ast.Subscription {
		return nil
	}
	c := collector{planner: d.planner(o.Variables, 0), names: []string{d.schema.Subscription.Name}}
	if err := c.collect(o.Definition.SelectionSet); err != nil || len(c.fields) != 1 ||
		strings.HasPrefix(c.fields[0].Name, "__") {
		return invalidDocument("a subscription must have exactly one root field, other than __typename, __schema and __type")
	}
	return nil
}

// invalidDocument returns a validation error.
func invalidDocument(message string) gqlerror.List {
	err := gqlerror.Wrap(errors.New(message))
	errcode.Set(err, errcode.ValidationFailed)
	return gqlerror.List{err}
}

func refuse(err error) gqlerror.List { return gqlerror.List{gqlerror.Wrap(err)} }

func tooComplex(format string, args ...any) error {
	return problem.Refuse(problem.ErrTooComplex, format, args...)
}

// Limits bound the cost of documents and variables. Zero means no limit, except
// in DocumentBytes. The comments state the defaults, which DefaultLimits
// returns.
type Limits struct {
	// Tokens bounds the tokens of a document: 3,000. A trusted document may
	// have ten times as many.
	Tokens int
	// Depth bounds the levels of fields: 15.
	Depth int
	// Aliases bounds the aliases in a document: 500.
	Aliases int
	// RootFields bounds the root fields of an operation, aliased or not: 60.
	RootFields int
	// Repeats bounds the fields with the same response name in a document: 600.
	// Validation compares these fields pair by pair.
	Repeats int
	// Directives bounds the directives at one location of a document: 5.
	Directives int
	// ListMembers bounds each list in the variables: 5,000.
	ListMembers int
	// Strings makes the reader refuse a document with a string that no database
	// stores: true. Otherwise the field that stores the string refuses it.
	Strings bool
	// Places bounds the fields of an operation after its fragments are
	// expanded: 10,000.
	Places int
	// Cost bounds the estimated work of an operation, in fields of an answer:
	// 2,000,000.
	Cost int64
	// DocumentBytes bounds the approximate memory of cached documents: 64 MiB. Zero
	// disables the cache.
	DocumentBytes int64
}

// DefaultLimits returns the limits of a server without options.
func DefaultLimits() Limits {
	return Limits{
		Tokens: 3000, Depth: 15, Aliases: 500, RootFields: 60, Repeats: 600, Directives: 5, ListMembers: 5000,
		Strings: true, Places: 10_000, Cost: 2_000_000, DocumentBytes: 64 << 20,
	}
}
