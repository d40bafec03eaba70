package graph

import (
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/generated"
)

// Executor runs operations against the schema, in steps, so that a transport can
// judge an operation between them: Parse, Validate, Prepare, Run. Every error
// that a step gives is fit to be seen.
type Executor struct {
	schema    graphql.ExecutableSchema
	hinting   *rules.Rules // validation that says what a wrong name may have meant
	unhinting *rules.Rules // validation that tells nothing of the schema
	log       *slog.Logger
}

// Operation is an operation ready to run: one of a valid document, with its
// variables coerced to their types.
type Operation struct {
	Document   *ast.QueryDocument
	Definition *ast.OperationDefinition
	Variables  map[string]any
}

// NewExecutor makes an executor over the resolvers. Internal errors go to log.
func NewExecutor(resolver *Resolver, log *slog.Logger) *Executor {
	language := *generated.NewExecutableSchema(generated.Config{}).Schema()
	language.Directives = maps.Clone(language.Directives)
	delete(language.Directives, "defer") // no transport here sends parts later
	schema := generated.NewExecutableSchema(generated.Config{Schema: &language, Resolvers: resolver})
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
	return &Executor{schema: schema, hinting: rules.NewDefaultRules(), unhinting: unhinting, log: log}
}

// Schema is the schema that operations run against.
func (e *Executor) Schema() *ast.Schema { return e.schema.Schema() }

// Parse reads a document of at most so many tokens.
func (e *Executor) Parse(ctx context.Context, text string, maxTokens int) (*ast.QueryDocument, gqlerror.List) {
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, maxTokens)
	if err != nil {
		refused := gqlerror.WrapIfUnwrapped(err)
		errcode.Set(refused, errcode.ParseFailed)
		return nil, PresentErrors(ctx, e.log, gqlerror.List{refused})
	}
	if len(document.Operations) == 0 {
		return nil, gqlerror.List{Problem(ctx, CodeValidationFailed, "the document holds no operation")}
	}
	return document, nil
}

// Validate holds a document against the schema, and makes a valid one ready for
// Prepare, which only reads it. With hints the errors say what a
// wrong name may have meant, which tells names of the schema.
func (e *Executor) Validate(ctx context.Context, document *ast.QueryDocument, hints bool) gqlerror.List {
	chosen := e.unhinting
	if hints {
		chosen = e.hinting
	}
	longIntegers(document)
	refused := validator.ValidateWithRules(e.Schema(), document, chosen)
	if len(refused) == 0 {
		refused = checkLiterals(document)
	}
	for _, err := range refused {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if len(refused) == 0 {
		keepLiterals(document)
	}
	return PresentErrors(ctx, e.log, refused)
}

// Prepare picks the operation of a valid document by its name, which may be
// empty where there is one only, and coerces its variables.
func (e *Executor) Prepare(ctx context.Context, document *ast.QueryDocument, name string, variables map[string]any) (*Operation, gqlerror.List) {
	definition := document.Operations.ForName(name)
	if definition == nil {
		message := "the document holds several operations: say which by operationName"
		if name != "" {
			message = "the document holds no operation of the name in operationName"
		}
		return nil, gqlerror.List{Problem(ctx, CodeValidationFailed, message)}
	}
	literals := literalsOf(document)
	coerced, refused := coerceVariables(e.Schema(), document, definition, variables, literals)
	if len(refused) > 0 {
		return nil, PresentErrors(ctx, e.log, refused)
	}
	for name, value := range literals {
		coerced[name] = value
	}
	return &Operation{Document: document, Definition: definition, Variables: coerced}, nil
}

// Run runs an operation to its end. Where the context ends meanwhile the fields
// not yet resolved are errors of the code TIMEOUT.
func (e *Executor) Run(ctx context.Context, operation *Operation) *graphql.Response {
	ctx = graphql.WithOperationContext(WithLoaders(ctx), &graphql.OperationContext{
		Doc:                    operation.Document,
		Operation:              operation.Definition,
		OperationName:          operation.Definition.Name,
		Variables:              operation.Variables,
		RecoverFunc:            recovered,
		ResolverMiddleware:     aroundField,
		RootResolverMiddleware: aroundRootField,
	})
	ctx = graphql.WithResponseContext(ctx, graphql.DefaultErrorPresenter, recovered)
	response := e.schema.Exec(ctx)(ctx)
	response.Errors = PresentErrors(ctx, e.log, append(response.Errors, graphql.GetErrors(ctx)...))
	return response
}

// aroundField asks the table of permissions at the fields of Query and Mutation;
// it has nothing to do with any other.
func aroundField(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	if field.Object != "Query" && field.Object != "Mutation" || strings.HasPrefix(field.Field.Name, "__") {
		return next(ctx)
	}
	viewer, err := access.ViewerFrom(ctx).Asking(field.Field.Name)
	if err != nil {
		return nil, err
	}
	return next(access.WithViewer(ctx, viewer))
}

// aroundRootField gives each field of a mutation its own loaders.
func aroundRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
		ctx = WithLoaders(ctx)
	}
	return next(ctx)
}

// recovered turns a panic into an error that PresentErrors masks.
func recovered(ctx context.Context, panicked any) error {
	return &panicError{value: panicked, stack: debug.Stack()}
}
