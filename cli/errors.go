package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/client"
)

// The statuses that the program exits with. docs/cli.md explains them.
const (
	exitFailed    = 1 // anything else
	exitUsage     = 2 // the command line is wrong: nothing was sent
	exitInput     = 3 // the server refused the input
	exitNotFound  = 4
	exitForbidden = 5 // or nobody is logged in
	exitConflict  = 6 // what is there stands against it
	exitBusy      = 7 // the server cannot be reached or has no capacity: try again
)

// usageError is an error in the command line itself.
type usageError struct{ error }

// Unwrap returns the error.
func (e usageError) Unwrap() error { return e.error }

// usagef returns an error in the command line.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// missingError is the error of a thing that does not exist.
type missingError struct{ error }

// inputError is the error of an input that would be refused.
type inputError struct{ error }

// loginError is the error of credentials that are not accepted.
type loginError struct{ error }

// missing returns the error of a thing that does not exist, or that the viewer may
// not see.
func missing(kind, name string) error {
	return missingError{fmt.Errorf("%s %q does not exist", kind, name)}
}

// ExitStatus returns the status to exit with after an error of Run; 0 for nil.
func ExitStatus(err error) int {
	if err == nil {
		return 0
	}
	usage, none, of, login, input, asked := usageError{}, missingError{}, new(client.MissingError), loginError{}, inputError{}, new(askError)
	switch {
	case errors.As(err, &input):
		return exitInput
	case errors.As(err, &login):
		return exitForbidden
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &none), errors.As(err, &of):
		return exitNotFound
	}
	switch client.Code(err) {
	case client.BadUserInput, client.BadRequest, client.ParseFailed, client.ValidationFailed, client.QueryTooComplex:
		return exitInput
	case client.NotFound:
		return exitNotFound
	case client.Forbidden, client.Unauthenticated:
		return exitForbidden
	case client.AlreadyExists, client.ConcurrentUpdate, client.InUse, client.Protected, client.CapacityExceeded, client.QuotaExceeded:
		return exitConflict
	case client.RateLimited, client.Unavailable, client.Timeout:
		return exitBusy
	case "":
		if errors.As(err, &asked) {
			return exitBusy
		}
	}
	return exitFailed
}

// askError is an error of a request, in the words of the command line.
type askError struct {
	run *session
	err error
}

// Unwrap returns the error of the client.
func (e *askError) Unwrap() error { return e.err }

// Error returns what people need to know: the server, and what it refused, with
// the code.
func (e *askError) Error() string {
	server := e.run.server.address
	if refused := new(client.Errors); errors.As(e.err, &refused) {
		if refused.Status == http.StatusUnauthorized {
			return server + ": unknown token; set --token or CADASTRE_TOKEN, or use `cadastre login`"
		}
		return server + ": " + strings.Join(e.run.refusals(refused), "\n")
	}
	if network := net.Error(nil); errors.As(e.err, &network) && network.Timeout() {
		return fmt.Sprintf("%s: no answer in time, --timeout is %v: %v", server, e.run.server.timeout, e.err)
	}
	if errors.Is(e.err, http.ErrSchemeMismatch) {
		return fmt.Sprintf("%s: the server speaks HTTP without TLS: write http:// before its address: %v", server, e.err)
	}
	return server + ": " + e.err.Error()
}

// refusals returns what a server refused, line by line: `CODE: why`, or the status
// of an answer that did not come from a GraphQL server. What is about a field of
// an input is told by the flag that it was given with.
func (s *session) refusals(refused *client.Errors) (lines []string) {
	for _, of := range refused.List {
		told := *of
		if flag := s.flagOf(of.Field); flag != "" {
			told.Field = ""
			if rest, ok := strings.CutPrefix(told.Message, of.Field); ok {
				told.Message = flag + rest
			} else {
				told.Message += " (" + flag + ")"
			}
		}
		lines = append(lines, printable(told.Error()))
	}
	return lines
}

// flagOf returns the flag or the argument that a field of an input was given with,
// and the value where it was one of several; empty for none.
func (s *session) flagOf(field string) string {
	if s.parsed == nil || s.parsed.Selected() == nil || field == "" {
		return ""
	}
	for path := field; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if flag, ok := s.told[path]; ok {
			return flag
		}
	}
	best, label, value := "", "", (*kong.Value)(nil)
	look := func(of *kong.Value, name string) {
		for _, at := range of.Tag.GetAll("at") {
			if rest, ok := strings.CutPrefix(field, at); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && len(at) > len(best) {
				best, label, value = at, name, of
			}
		}
	}
	for _, flag := range s.parsed.Selected().Flags {
		look(flag.Value, "--"+flag.Name)
	}
	for _, argument := range s.parsed.Selected().Positional {
		look(argument, "<"+argument.Name+">")
	}
	if value == nil {
		return ""
	}
	return label + given(value, strings.TrimPrefix(field, best))
}

// tell notes the flag that a field, and what is in it, was given with.
func (s *session) tell(path, flag string) {
	if s.told == nil {
		s.told = map[string]string{}
	}
	s.told[path] = flag
}

// given returns what is said of a value after its flag: which of several, and
// which part of it.
func given(value *kong.Value, rest string) string {
	text := ""
	if index, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok && strings.HasPrefix(rest, "[") {
		i, err := strconv.Atoi(index)
		if texts, list := value.Target.Interface().([]string); list && err == nil && i < len(texts) {
			text, rest = " "+strconv.Quote(texts[i]), after
		} else if value.Target.Kind() != reflect.Slice { // a list that a single value became
			rest = after
		}
	}
	if part := strings.TrimPrefix(rest, "."); part != "" {
		text += " " + part
	}
	return text
}

// isAboutInput reports whether a server refused what it was sent.
func isAboutInput(err error) bool {
	if refused := new(client.Errors); errors.As(err, &refused) && refused.Status != 0 {
		return refused.Status == http.StatusRequestEntityTooLarge || refused.Status == http.StatusBadRequest
	}
	return client.Code(err) == client.BadUserInput
}

// refusalsOf returns what a server refused, line by line.
func (s *session) refusalsOf(err error) []string {
	if refused := new(client.Errors); errors.As(err, &refused) {
		return s.refusals(refused)
	}
	return nil
}

// isTooComplex reports whether an answer would be too large, or take too much
// work.
func isTooComplex(err error) bool { return client.Code(err) == client.QueryTooComplex }

// isConcurrentUpdate reports whether something was changed since it was read.
func isConcurrentUpdate(err error) bool { return client.Code(err) == client.ConcurrentUpdate }
