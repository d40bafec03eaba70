package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/text"
)

// Code is the value of `extensions.code` of an error. The set is closed.
type Code string

// The codes of errors.
const (
	CodeBadUserInput             Code = "BAD_USER_INPUT"
	CodeUnauthenticated          Code = "UNAUTHENTICATED"
	CodeForbidden                Code = "FORBIDDEN"
	CodeNotFound                 Code = "NOT_FOUND"
	CodeAlreadyExists            Code = "ALREADY_EXISTS"
	CodeConcurrentUpdate         Code = "CONCURRENT_UPDATE"
	CodeInUse                    Code = "IN_USE"
	CodeProtected                Code = "PROTECTED"
	CodeCapacityExceeded         Code = "CAPACITY_EXCEEDED"
	CodeQuotaExceeded            Code = "QUOTA_EXCEEDED"
	CodeRateLimited              Code = "RATE_LIMITED"
	CodeQueryTooComplex          Code = "QUERY_TOO_COMPLEX"
	CodeTimeout                  Code = "TIMEOUT"
	CodeUnavailable              Code = "UNAVAILABLE"
	CodeOutcomeUnknown           Code = "OUTCOME_UNKNOWN"
	CodeInternal                 Code = "INTERNAL"
	CodeBadRequest               Code = "BAD_REQUEST"
	CodeParseFailed              Code = "GRAPHQL_PARSE_FAILED"
	CodeValidationFailed         Code = "GRAPHQL_VALIDATION_FAILED"
	CodeIntrospectionDisabled    Code = "INTROSPECTION_DISABLED"
	CodePersistedQueryNotFound   Code = "PERSISTED_QUERY_NOT_FOUND"
	CodePersistedQueryIsRequired Code = "PERSISTED_QUERY_REQUIRED"
)

// codes maps the kinds of refusal to codes.
var codes = []struct {
	kind error
	code Code
}{
	{problem.ErrInvalidInput, CodeBadUserInput},
	{problem.ErrUnauthenticated, CodeUnauthenticated},
	{problem.ErrForbidden, CodeForbidden},
	{problem.ErrNotFound, CodeNotFound},
	{problem.ErrAlreadyExists, CodeAlreadyExists},
	{problem.ErrConcurrentUpdate, CodeConcurrentUpdate},
	{problem.ErrInUse, CodeInUse},
	{problem.ErrProtected, CodeProtected},
	{problem.ErrCapacityExceeded, CodeCapacityExceeded},
	{problem.ErrQuotaExceeded, CodeQuotaExceeded},
	{problem.ErrRateLimited, CodeRateLimited},
	{problem.ErrTooComplex, CodeQueryTooComplex},
	{problem.ErrTimeout, CodeTimeout},
	{problem.ErrUnavailable, CodeUnavailable},
	{problem.ErrOutcomeUnknown, CodeOutcomeUnknown},
}

// maxMessageBytes bounds a message that repeats parts of the request.
const maxMessageBytes = 500

type requestIDKey struct{}

// WithRequestID returns a context with the id of the request. Errors and logs
// show the id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id of the request, or the empty string if it has none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// ProtocolError returns an error with a code for a failure outside of any
// resolver.
func ProtocolError(ctx context.Context, code Code, message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Extensions: extensions(ctx, code, "")}
}

func extensions(ctx context.Context, code Code, field string) map[string]any {
	out := map[string]any{"code": string(code), "requestId": RequestID(ctx)}
	if field != "" {
		out["field"] = field
	}
	return out
}

// PresentErrors returns errors as clients get them. A refusal keeps its message
// and code. Each problem of an input becomes one error. If an input has more
// than document.MaxErrors problems, one further error has their number instead
// of the rest. A protocol error keeps its code. Any other error becomes
// an internal error, and its cause is logged under the request's id. An error
// that concerns all objects appears once for each place in the document, with
// the path of the first object there.
func PresentErrors(ctx context.Context, log *slog.Logger, list gqlerror.List) gqlerror.List {
	if len(list) == 0 {
		return nil
	}
	// gqlgen's executor runs resolvers concurrently, so the order in which they
	// failed means nothing.
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *gqlerror.Error) int { return comparePaths(a.Path, b.Path) })
	var out gqlerror.List
	told := map[string]bool{}
	for _, err := range list {
		if problem.IsForAll(err) {
			place := placeOf(err.Path)
			if told[place] {
				continue
			}
			told[place] = true
		}
		out = append(out, present(ctx, log, err)...)
	}
	return bounded(out)
}

// placeOf returns a path without its list indexes: a place in the document.
func placeOf(path ast.Path) string {
	return slices.DeleteFunc(slices.Clone(path), func(element ast.PathElement) bool {
		_, isIndex := element.(ast.PathIndex)
		return isIndex
	}).String()
}

// problemsExtension has the number of problems of an input with more than
// document.MaxErrors.
const problemsExtension = "problems"

// bounded returns the first document.MaxErrors errors. After these it keeps the
// counts of problems, and one error for each field that has none yet, so that
// no failed field is without an error. Package writer limits the number of
// fields.
func bounded(list gqlerror.List) gqlerror.List {
	var out gqlerror.List
	told := map[string]bool{}
	for _, err := range list {
		field := err.Path.String()
		if len(out) < document.MaxErrors || field != "" && !told[field] || err.Extensions[problemsExtension] != nil {
			out = append(out, err)
		}
		told[field] = true
	}
	return out
}

// comparePaths orders list indexes by number and everything else by name.
func comparePaths(a, b ast.Path) int {
	return slices.CompareFunc(a, b, func(x, y ast.PathElement) int {
		xIndex, xIsIndex := x.(ast.PathIndex)
		yIndex, yIsIndex := y.(ast.PathIndex)
		if xIsIndex && yIsIndex {
			return cmp.Compare(xIndex, yIndex)
		}
		return strings.Compare(fmt.Sprint(x), fmt.Sprint(y))
	})
}

func present(ctx context.Context, log *slog.Logger, err *gqlerror.Error) gqlerror.List {
	if code, ok := protocolCode(err); ok {
		field, _ := err.Extensions["field"].(string)
		shown := *err
		shown.Message = text.Clip(err.Message, maxMessageBytes)
		shown.Extensions = extensions(ctx, code, text.Clip(field, maxMessageBytes))
		if coordinate, ok := err.Extensions[coordinateExtension]; ok {
			shown.Extensions[coordinateExtension] = coordinate
		}
		return gqlerror.List{&shown}
	}
	shown := func(code Code, message, field string) *gqlerror.Error {
		return &gqlerror.Error{Message: message, Path: err.Path, Locations: err.Locations,
			Extensions: extensions(ctx, code, field)}
	}
	if invalid := new(problem.InvalidInput); errors.As(err, &invalid) {
		var out gqlerror.List
		for _, one := range invalid.Problems[:min(document.MaxErrors, len(invalid.Problems))] {
			if one.Kind != nil {
				out = append(out, shown(codeOf(one.Kind), one.Message, one.Field))
				continue
			}
			out = append(out, shown(CodeBadUserInput, one.Field+": "+one.Message, one.Field))
		}
		if len(invalid.Problems) > len(out) {
			more := shown(CodeBadUserInput,
				fmt.Sprintf("the input has %s; the first %d are listed", invalid.Problems.Total(), len(out)), "")
			more.Extensions[problemsExtension] = len(invalid.Problems)
			out = append(out, more)
		}
		return out
	}
	if refusal := new(problem.Refusal); errors.As(store.Refused(err.Err), &refusal) {
		err := shown(codeOf(refusal.Kind), refusal.Message, refusal.Field)
		if refusal.RetryAfter > 0 {
			err.Extensions["retryAfter"] = int(math.Ceil(refusal.RetryAfter.Seconds()))
		}
		return gqlerror.List{err}
	}
	log.ErrorContext(ctx, "internal error", "requestId", RequestID(ctx), "path",
		err.Path.String(), "error", errors.Unwrap(err))
	return gqlerror.List{shown(CodeInternal, "internal error", "")}
}

func codeOf(err error) Code {
	for _, entry := range codes {
		if errors.Is(err, entry.kind) {
			return entry.code
		}
	}
	return CodeInternal
}

// protocolCode returns the code of an error from the parser, the validator, the
// coercion of arguments or the transport. It returns false for an error from a
// resolver.
func protocolCode(err *gqlerror.Error) (Code, bool) {
	switch code, _ := err.Extensions["code"].(string); code {
	case "":
	case errcode.ParseFailed:
		return CodeParseFailed, true
	case errcode.ValidationFailed:
		return CodeValidationFailed, true
	default:
		return Code(code), true
	}
	if err.Err == nil && err.Rule != "" {
		return CodeValidationFailed, true
	}
	return "", false
}

// panicError is the error of a panic in a resolver.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// FailsForNow reports whether an answer has a temporary error: UNAVAILABLE or
// TIMEOUT.
func (a *Answer) FailsForNow() bool {
	for _, err := range a.Errors {
		switch code, _ := err.Extensions["code"].(string); Code(code) {
		case CodeUnavailable, CodeTimeout:
			return true
		}
	}
	return false
}

// rowErrors returns the problems of one item of a bulk mutation, with the codes
// that errors have.
func rowErrors(problems problem.Problems) []*model.RowError {
	errors := make([]*model.RowError, len(problems))
	for i, one := range problems {
		errors[i] = &model.RowError{Code: model.RowErrorCode(codeOf(cmp.Or(one.Kind, problem.ErrInvalidInput))),
			Message: text.Clip(one.Message, maxMessageBytes)}
		if one.Field != "" {
			errors[i].Field = &problems[i].Field
		}
	}
	return errors
}

// coordinateExtension has the schema coordinate of the input that an error
// names: `Type.field(argument:)` or `Input.field`, the forms of the GraphQL
// specification of September 2025.
const coordinateExtension = "coordinate"

// inputSegment is one name of a path in an input, with the indexes after it.
var inputSegment = regexp.MustCompile(`^\.?([_A-Za-z][_0-9A-Za-z]*)(?:\[(?:[0-9]+|'[^']*')\])*`)

// errorsOf returns the errors of an operation as clients get them: the errors
// of PresentErrors with the coordinates of inputs.
func (e *Executor) errorsOf(ctx context.Context, plan *document.Plan, list gqlerror.List) gqlerror.List {
	list = PresentErrors(ctx, e.log, list)
	for _, err := range list {
		input, _ := err.Extensions["field"].(string)
		if coordinate := coordinateOf(e.Schema(), fieldAt(plan, err.Path), input); coordinate != "" {
			err.Extensions[coordinateExtension] = coordinate
		}
	}
	return list
}

// fieldAt returns the field of a plan at the path of an error, or nil.
func fieldAt(plan *document.Plan, path ast.Path) (found *document.Field) {
	within := []*document.Selection{plan.Root}
	for _, element := range path {
		name, ok := element.(ast.PathName)
		if !ok {
			continue
		}
		found = nil
		for _, selection := range within {
			for _, field := range selection.Fields {
				if found == nil && field.AST.Alias == string(name) {
					found = field
				}
			}
		}
		if found == nil {
			return nil
		}
		within = nil
		for _, name := range slices.Sorted(maps.Keys(found.Types)) {
			within = append(within, found.Types[name])
		}
		if found.Below != nil {
			within = append(within, found.Below)
		}
	}
	return found
}

// coordinateOf returns the coordinate of the input at a path in the arguments
// of a field. For a path into a scalar it is the coordinate of the scalar, and
// for a path that does not begin with an argument it is empty.
func coordinateOf(schema *ast.Schema, field *document.Field, path string) string {
	match := inputSegment.FindStringSubmatch(path)
	if field == nil || match == nil || field.AST.Definition == nil {
		return ""
	}
	argument := field.AST.Definition.Arguments.ForName(match[1])
	if argument == nil {
		return ""
	}
	coordinate, typ := field.Of+"."+field.AST.Name+"("+argument.Name+":)", argument.Type
	for {
		path = path[len(match[0]):]
		of := schema.Types[typ.Name()]
		if match = inputSegment.FindStringSubmatch(path); match == nil || of.Kind != ast.InputObject {
			return coordinate
		}
		member := of.Fields.ForName(match[1])
		if member == nil {
			return coordinate
		}
		coordinate, typ = of.Name+"."+member.Name, member.Type
	}
}
