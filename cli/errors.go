package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
)

// The exit statuses of the program. docs/cli.md explains them.
const (
	exitFailed    = 1 // anything else
	exitUsage     = 2 // the command line is wrong: nothing was sent
	exitInput     = 3 // the server refused the input
	exitNotFound  = 4
	exitForbidden = 5  // or there is no valid token
	exitConflict  = 6  // a conflict with existing data
	exitBusy      = 7  // the server cannot be reached or has no capacity: try again
	exitFound     = 10 // plus the severity of doctor's worst finding, 1 to 4
)

// statusError is an error with the exit status of the program.
type statusError struct {
	error
	status int
}

// Unwrap returns the error.
func (e statusError) Unwrap() error { return e.error }

// UsageError returns an error with the exit status for a wrong command line.
func UsageError(err error) error { return statusError{err, exitUsage} }

// usagef returns an error in the command line.
func usagef(format string, args ...any) error { return UsageError(fmt.Errorf(format, args...)) }

// missing returns the error for an object that does not exist, or that the
// viewer may not see.
func missing(kind, name string) error {
	return statusError{fmt.Errorf("%s %q does not exist", kind, name), exitNotFound}
}

// missing returns the error for an object that an answer lacks, with the
// nearest name that the server knows, if any.
func (c *call) missing(of *missingAt) error {
	kind, near := strings.ReplaceAll(of.kind, "-", " "), ""
	if of.parent != "" {
		kind += " of " + of.parent
	} else if nameLists[of.kind].selects != "" {
		near = c.didYouMean(of.kind, of.name)
	}
	return statusError{fmt.Errorf("%w%s", missing(kind, of.name), near), exitNotFound}
}

// ExitStatus returns the status to exit with after an error of Run; 0 for nil.
func ExitStatus(err error) int {
	if err == nil {
		return 0
	}
	found, asked := statusError{}, new(askError)
	if errors.As(err, &found) {
		return found.status
	}
	switch client.Code(err) {
	case client.BadUserInput, client.BadRequest, client.ParseFailed, client.ValidationFailed, client.QueryTooComplex:
		return exitInput
	case client.NotFound:
		return exitNotFound
	case client.Forbidden, client.Unauthenticated:
		return exitForbidden
	case client.AlreadyExists, client.ConcurrentUpdate, client.InUse, client.Protected, client.CapacityExceeded,
		client.QuotaExceeded:
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

// askError is an error of a request, in terms of the command line.
type askError struct {
	run *call
	err error
}

// Unwrap returns the error of the client.
func (e *askError) Unwrap() error { return e.err }

// Error returns the address of the server, and the code and message of each of
// its errors, or the reason why it did not answer.
func (e *askError) Error() string {
	server := e.run.server.address
	if refused := new(client.Errors); errors.As(e.err, &refused) {
		if refused.Status == http.StatusUnauthorized {
			return server + ": missing, expired or unknown token; set --token or CADASTRE_TOKEN, or use `cadastre login`"
		}
		return server + ": " + strings.Join(e.run.refusals(refused), "\n")
	}
	if network := net.Error(nil); errors.As(e.err, &network) && network.Timeout() {
		return fmt.Sprintf("%s: no answer in time, --timeout is %v: %v", server, e.run.server.timeout, e.err)
	}
	if errors.Is(e.err, http.ErrSchemeMismatch) {
		return fmt.Sprintf("%s: the server speaks HTTP without TLS: write http:// before its address: %v",
			server, e.err)
	}
	return server + ": " + e.err.Error()
}

// refusals returns a line for each error of a server: `CODE: why`, or the HTTP
// status if the answer is not from a GraphQL server. It replaces the field of
// an input with the flag.
func (c *call) refusals(refused *client.Errors) (lines []string) {
	for _, of := range refused.List {
		told := *of
		if flag := c.flagOf(of.Field); flag != "" {
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

// flagOf returns the flag or argument for a field of an input, with the value
// if the flag has several. It returns "" for other fields.
func (c *call) flagOf(field string) string {
	if flag := c.toldFlag(field); flag != "" {
		return flag
	}
	best, rest := (*param)(nil), ""
	for _, p := range c.params {
		after, ok := strings.CutPrefix(field, p.at)
		isPart := after == "" || after[0] == '.' || after[0] == '['
		if ok && isPart && p.at != "" && (best == nil || len(p.at) > len(best.at)) {
			best, rest = p, after
		}
	}
	if best == nil {
		return ""
	}
	return best.label() + best.part(rest, c.given[best.key])
}

// toldFlag returns the flag that set a field, or a field around it, empty for
// none.
func (c *call) toldFlag(field string) string {
	for _, place := range []string{"", "request.", "input.request.", "input."} {
		path, isThere := strings.CutPrefix(field, place)
		for ; isThere && path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
			if flag, ok := c.told[path]; ok {
				return flag
			}
		}
	}
	return ""
}

// part returns a path below a parameter in words: the value that an index
// selects, and the field of the value. rest is the path.
func (p *param) part(rest string, values []string) (text string) {
	if index, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok && strings.HasPrefix(rest, "[") {
		i, err := strconv.Atoi(index)
		if p.isList() && err == nil && i < len(values) {
			text, rest = " "+strconv.Quote(values[i]), after
		} else if !p.isList() { // a single value that became a list
			rest = after
		}
	}
	if part := strings.TrimPrefix(rest, "."); part != "" {
		text += " " + part
	}
	return text
}

// isAboutInput reports whether a server refused the input.
func isAboutInput(err error) bool {
	if refused := new(client.Errors); errors.As(err, &refused) && refused.Status != 0 {
		return refused.Status == http.StatusRequestEntityTooLarge || refused.Status == http.StatusBadRequest
	}
	return client.Code(err) == client.BadUserInput
}

// refusalsOf returns the refusals for errors of a server, nil for other errors.
func (c *call) refusalsOf(err error) []string {
	if refused := new(client.Errors); errors.As(err, &refused) {
		return c.refusals(refused)
	}
	return nil
}
