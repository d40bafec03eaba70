// Package document is one operation's text before it runs: it parses and
// validates documents, and makes operations of them with variables of the right
// types. Its errors are kinds of refusal or carry the codes of the parser and the
// validator; how they look in an answer is decided by package graph.
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
)

// MaxErrors bounds the errors of one answer.
const MaxErrors = 20

// Reader reads documents in steps, so that a transport can judge an operation
// between them: Parse, Validate, Prepare.
type Reader struct {
	schema    *ast.Schema
	hinting   *rules.Rules // validation that says what a wrong name may have meant
	unhinting *rules.Rules // validation that tells nothing of the schema
}

// Operation is an operation ready to run: one of a valid document, with its
// variables coerced to their types.
type Operation struct {
	Document   *ast.QueryDocument
	Definition *ast.OperationDefinition
	Variables  map[string]any
}

// NewReader returns a reader of documents of the schema.
func NewReader(schema *ast.Schema) *Reader {
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
	return &Reader{schema: schema, hinting: rules.NewDefaultRules(), unhinting: unhinting}
}

// Parse reads a document of at most so many tokens.
func (r *Reader) Parse(text string, maxTokens int) (*ast.QueryDocument, gqlerror.List) {
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, maxTokens)
	if err != nil {
		refused := gqlerror.WrapIfUnwrapped(err)
		errcode.Set(refused, errcode.ParseFailed)
		return nil, gqlerror.List{refused}
	}
	if len(document.Operations) == 0 {
		return nil, invalid("the document holds no operation")
	}
	return document, nil
}

// Validate holds a document against the schema, and makes a valid one ready for
// Prepare, which only reads it. With hints the errors say what a
// wrong name may have meant, which tells names of the schema.
func (r *Reader) Validate(document *ast.QueryDocument, hints bool) gqlerror.List {
	chosen := r.unhinting
	if hints {
		chosen = r.hinting
	}
	longIntegers(document)
	refused := validator.ValidateWithRules(r.schema, document, chosen)
	if len(refused) == 0 {
		refused = checkLiterals(document)
	}
	for _, err := range refused {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if len(refused) == 0 {
		keepLiterals(document)
	}
	return refused
}

// Prepare picks the operation of a valid document by its name, which may be
// empty where there is one only, and coerces its variables.
func (r *Reader) Prepare(document *ast.QueryDocument, name string, variables map[string]any) (*Operation, gqlerror.List) {
	definition := document.Operations.ForName(name)
	if definition == nil {
		if name != "" {
			return nil, invalid("the document holds no operation of the name in operationName")
		}
		return nil, invalid("the document holds several operations: say which by operationName")
	}
	literals := literalsOf(document)
	coerced, refused := coerceVariables(r.schema, document, definition, variables, literals)
	if len(refused) > 0 {
		return nil, refused
	}
	for name, value := range literals {
		coerced[name] = value
	}
	return &Operation{Document: document, Definition: definition, Variables: coerced}, nil
}

// invalid refuses a document in words of its own.
func invalid(message string) gqlerror.List {
	err := gqlerror.Wrap(errors.New(message))
	errcode.Set(err, errcode.ValidationFailed)
	return gqlerror.List{err}
}
