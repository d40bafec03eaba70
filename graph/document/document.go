// Package document handles the text of an operation before it runs: it parses
// and validates documents, checks them against limits, and prepares operations
// with variables of the right types and an estimate of their cost. Its errors
// are kinds of refusal or have the codes of the parser and the validator;
// package graph decides how they look in an answer.
package document

import (
	"errors"

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

// MaxErrors bounds the errors of one answer. Beyond it each root field that
// failed still has one.
const MaxErrors = 20

// hintBytes bounds the documents whose errors say what a wrong name may have
// meant: looking for that takes long in long documents.
const hintBytes = 16 << 10

// keptWeight is about how many bytes a parsed document and its plans take for
// each byte of its text.
const keptWeight = 80

// Reader reads documents of a schema within limits, and keeps the valid ones.
type Reader struct {
	schema    *ast.Schema
	limits    Limits
	hinting   *rules.Rules // whose errors say what a wrong name may have meant
	unhinting *rules.Rules // whose errors reveal no name of the schema
	kept      *lru.Cache[*Document]
}

// Document is a valid document. It is safe for concurrent use.
type Document struct {
	schema     *ast.Schema
	ast        *ast.QueryDocument
	bytes      int      // of the text
	conditions []string // the variables that @skip and @include look at
	plans      plans
}

// Operation is one operation of a valid document that is ready to run, with its
// variables coerced to their types.
type Operation struct {
	of *Document

	Document   *ast.QueryDocument
	Definition *ast.OperationDefinition
	Variables  map[string]any
	// Cost is an estimate of how many fields the answer will have.
	Cost int64
}

// NewReader returns a reader of documents of the schema.
func NewReader(schema *ast.Schema, limits Limits) *Reader {
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
	return &Reader{
		schema: schema, limits: limits, hinting: rules.NewDefaultRules(), unhinting: unhinting,
		kept: lru.New[*Document](limits.KeptBytes),
	}
}

// ReadOptions say how a document is read.
type ReadOptions struct {
	// Trusted allows ten times as many tokens.
	Trusted bool
	// Hints makes the errors of short documents say what a wrong name may have
	// meant, which reveals names of the schema.
	Hints bool
}

// Read returns the valid document of a text: one that was kept, or one that is
// parsed, checked against the limits and validated now.
func (r *Reader) Read(text string, options ReadOptions) (*Document, gqlerror.List) {
	if kept, ok := r.kept.Get(text); ok {
		return kept, nil
	}
	valid, refused := r.readNew(text, options)
	if refused == nil {
		r.kept.Add(text, valid, int64(len(text))*keptWeight)
	}
	return valid, refused
}

// readNew returns the valid document of a text that was not kept.
func (r *Reader) readNew(text string, options ReadOptions) (*Document, gqlerror.List) {
	if err := checkNames(text); err != nil {
		return nil, refuse(err)
	}
	tokens := r.limits.Tokens
	if options.Trusted {
		tokens *= 10
	}
	parsed, refused := Parse(text, tokens)
	if refused != nil {
		return nil, refused
	}
	if err := checkStrings(text, parsed); err != nil {
		return nil, refuse(err)
	}
	if err := checkShape(parsed, r.limits); err != nil {
		return nil, refuse(err)
	}
	return r.Validate(parsed, options.Hints && len(text) <= hintBytes)
}

// CheckVariables refuses what no variable may hold: U+0000, which no database
// keeps, a list that is too long, and values nested too deeply.
func (r *Reader) CheckVariables(variables map[string]any) gqlerror.List {
	if err := checkVariables(variables, r.limits.ListMembers); err != nil {
		return refuse(err)
	}
	return nil
}

// CheckCost refuses an operation that costs too much.
func (r *Reader) CheckCost(operation *Operation) gqlerror.List {
	if err := checkCost(operation.Cost, r.limits.Cost); err != nil {
		return refuse(err)
	}
	return nil
}

// Parse parses a document of at most so many tokens; 0 means any number.
func Parse(text string, maxTokens int) (*ast.QueryDocument, gqlerror.List) {
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, maxTokens)
	if err != nil {
		refused := gqlerror.WrapIfUnwrapped(err)
		errcode.Set(refused, errcode.ParseFailed)
		return nil, gqlerror.List{refused}
	}
	if len(parsed.Operations) == 0 {
		return nil, invalidDocument("the document has no operation")
	}
	return parsed, nil
}

// Validate checks a parsed document against the schema, whatever the limits.
// With hints the errors say what a wrong name may have meant.
func (r *Reader) Validate(parsed *ast.QueryDocument, hints bool) (*Document, gqlerror.List) {
	set := r.unhinting
	if hints {
		set = r.hinting
	}
	longIntegers(parsed)
	refused := validator.ValidateWithRules(r.schema, parsed, set)
	if len(refused) == 0 {
		refused = checkScalars(parsed)
	}
	if len(refused) > 0 {
		for _, err := range refused {
			errcode.Set(err, errcode.ValidationFailed)
		}
		return nil, refused
	}
	keepLiterals(parsed)
	bytes := 0
	if position := parsed.Operations[0].Position; position != nil && position.Src != nil {
		bytes = len(position.Src.Input)
	}
	return &Document{schema: r.schema, ast: parsed, bytes: bytes, conditions: conditionsOf(parsed)}, nil
}

// Operation returns the operation of a name, which may be empty where the
// document holds only one, with its variables coerced and its cost estimated.
func (d *Document) Operation(name string, variables map[string]any) (*Operation, gqlerror.List) {
	definition := d.ast.Operations.ForName(name)
	if definition == nil {
		if name != "" {
			return nil, invalidDocument("the document has no operation of the name in operationName")
		}
		return nil, invalidDocument("the document has several operations and the request no operationName: give the name of one")
	}
	literals := literalsOf(d.ast)
	coerced, refused := coerceVariables(d.schema, d.ast, definition, variables, literals)
	if len(refused) > 0 {
		return nil, refused
	}
	for name, value := range literals {
		coerced[name] = value
	}
	c := &cost{document: d.ast, variables: coerced}
	return &Operation{
		of: d, Document: d.ast, Definition: definition, Variables: coerced,
		Cost: c.operation(definition),
	}, nil
}

// invalidDocument returns an error of validation.
func invalidDocument(message string) gqlerror.List {
	err := gqlerror.Wrap(errors.New(message))
	errcode.Set(err, errcode.ValidationFailed)
	return gqlerror.List{err}
}

func refuse(err error) gqlerror.List { return gqlerror.List{gqlerror.Wrap(err)} }

func tooComplex(format string, args ...any) error {
	return problem.Refuse(problem.ErrTooComplex, format, args...)
}
