package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// ErrorCode is the kind of a server's error: `extensions.code`.
type ErrorCode string

// The codes of a server. There are no others.
const (
	BadUserInput           ErrorCode = "BAD_USER_INPUT"
	Unauthenticated        ErrorCode = "UNAUTHENTICATED"
	Forbidden              ErrorCode = "FORBIDDEN"
	NotFound               ErrorCode = "NOT_FOUND"
	AlreadyExists          ErrorCode = "ALREADY_EXISTS"
	ConcurrentUpdate       ErrorCode = "CONCURRENT_UPDATE"
	InUse                  ErrorCode = "IN_USE"
	Protected              ErrorCode = "PROTECTED"
	CapacityExceeded       ErrorCode = "CAPACITY_EXCEEDED"
	QuotaExceeded          ErrorCode = "QUOTA_EXCEEDED"
	RateLimited            ErrorCode = "RATE_LIMITED"
	QueryTooComplex        ErrorCode = "QUERY_TOO_COMPLEX"
	Timeout                ErrorCode = "TIMEOUT"
	Unavailable            ErrorCode = "UNAVAILABLE"
	OutcomeUnknown         ErrorCode = "OUTCOME_UNKNOWN"
	Internal               ErrorCode = "INTERNAL"
	BadRequest             ErrorCode = "BAD_REQUEST"
	ParseFailed            ErrorCode = "GRAPHQL_PARSE_FAILED"
	ValidationFailed       ErrorCode = "GRAPHQL_VALIDATION_FAILED"
	IntrospectionDisabled  ErrorCode = "INTROSPECTION_DISABLED"
	PersistedQueryNotFound ErrorCode = "PERSISTED_QUERY_NOT_FOUND"
	PersistedQueryRequired ErrorCode = "PERSISTED_QUERY_REQUIRED"
)

// Error is one error of a server's answer.
type Error struct {
	Code    ErrorCode // empty if the answer is not from a Cadastre server
	Message string
	// Field is the path of the wrong value in the arguments, such as
	// input.items[0].key; empty if the error is not about a value.
	Field string
	// Coordinate is the schema coordinate of that value, such as
	// KeyValueInput.key; empty if the server names none.
	Coordinate string
	// Path is the path of the field in the answer.
	Path string
	// RetryAfter is the time until the next try; 0 is unknown.
	RetryAfter time.Duration
}

// Error returns the code, the message and the field.
func (e *Error) Error() string {
	text := e.Message
	if e.Field != "" && !strings.HasPrefix(text, e.Field) {
		text += " (" + e.Field + ")"
	}
	if e.Code != "" {
		text = string(e.Code) + ": " + text
	}
	return text
}

// Errors has all errors of an answer, at least one.
type Errors struct {
	// Status is the status of the HTTP response, 0 for 200.
	Status int
	List   []*Error
}

// Error returns all errors, one a line.
func (e *Errors) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap returns the errors of the list.
func (e *Errors) Unwrap() []error {
	list := make([]error, len(e.List))
	for i, one := range e.List {
		list[i] = one
	}
	return list
}

// Code returns the code of a server's error, or of the first one if there are
// several. It is empty for other errors, such as a refused connection.
func Code(err error) ErrorCode {
	if refused := new(Errors); errors.As(err, &refused) {
		return refused.List[0].Code
	}
	if one := new(Error); errors.As(err, &one) {
		return one.Code
	}
	return ""
}

// errorsOf turns the errors of a server into Errors, wraps errors of decoding,
// and returns others unchanged. wait is the value of the header Retry-After.
func errorsOf(err error, wait string) error {
	refused, list := &Errors{}, gqlerror.List(nil)
	if status := new(graphql.HTTPError); errors.As(err, &status) {
		refused.Status, list = status.StatusCode, status.Response.Errors
		if len(list) == 0 || list[0].Extensions == nil {
			text := strings.TrimSpace(strconv.Itoa(status.StatusCode) + " " + http.StatusText(status.StatusCode))
			list = gqlerror.List{{Message: "the server answered " + text}}
		}
	} else if page := new(json.SyntaxError); errors.As(err, &page) {
		return fmt.Errorf("the answer is not from a Cadastre server: %w", err)
	} else if !errors.As(err, &list) || len(list) == 0 {
		return err
	}
	seconds, _ := strconv.Atoi(wait) // our servers do not send a date
	for _, one := range list {
		refused.List = append(refused.List, errorOf(one, time.Duration(max(0, seconds))*time.Second))
	}
	return refused
}

func errorOf(one *gqlerror.Error, wait time.Duration) *Error {
	text := func(key string) string {
		value, _ := one.Extensions[key].(string)
		return value
	}
	out := &Error{Code: ErrorCode(text("code")), Message: one.Message, Field: text("field"),
		Coordinate: text("coordinate"), Path: one.Path.String(), RetryAfter: wait}
	if seconds, ok := one.Extensions["retryAfter"].(float64); ok {
		out.RetryAfter = time.Duration(seconds * float64(time.Second))
	}
	return out
}
