package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// explained returns an error of the client with what people need to know: the
// server, and what it refused, with the code.
func (r remote) explained(err error) error {
	if err == nil {
		return nil
	}
	if status := new(graphql.HTTPError); errors.As(err, &status) && status.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%s: unknown token; set --token or CADASTRE_TOKEN", r.Server)
	}
	if refused := refusals(err); len(refused) > 0 {
		return fmt.Errorf("%s: %s", r.Server, strings.Join(refused, "\n"))
	}
	if network := net.Error(nil); errors.As(err, &network) && network.Timeout() {
		return fmt.Errorf("%s: no answer in time, --timeout is %v: %w", r.Server, r.Timeout, err)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%s: the server speaks HTTP without TLS: write http:// before its address: %w", r.Server, err)
	}
	return fmt.Errorf("%s: %w", r.Server, err)
}

// refusals returns what a server refused, line by line: `CODE: why (where)`, or
// the status of an answer that did not come from a GraphQL server. There is no
// line when nothing answered.
func refusals(err error) []string {
	refused := refusedBy(err)
	if status := new(graphql.HTTPError); errors.As(err, &status) && (len(refused) == 0 || refused[0].Extensions == nil) {
		return []string{fmt.Sprintf("the server answered %d %s", status.StatusCode, http.StatusText(status.StatusCode))}
	}
	var lines []string
	for _, one := range refused {
		line := one.Message
		if field, ok := one.Extensions["field"].(string); ok && !strings.HasPrefix(line, field) {
			line += " (" + field + ")"
		}
		if code, ok := one.Extensions["code"].(string); ok {
			line = code + ": " + line
		}
		lines = append(lines, printable(line))
	}
	return lines
}

func refusedBy(err error) gqlerror.List {
	if status := new(graphql.HTTPError); errors.As(err, &status) {
		return status.Response.Errors
	}
	var refused gqlerror.List
	errors.As(err, &refused)
	return refused
}

// isAboutInput reports whether a server refused what it was sent.
func isAboutInput(err error) bool {
	if status := new(graphql.HTTPError); errors.As(err, &status) {
		return status.StatusCode == http.StatusRequestEntityTooLarge || status.StatusCode == http.StatusBadRequest
	}
	return hasCode(err, "BAD_USER_INPUT")
}

// isTooComplex reports whether an answer would be too large, or take too much
// work.
func isTooComplex(err error) bool { return hasCode(err, "QUERY_TOO_COMPLEX") }

// isConcurrentUpdate reports whether something was changed since it was read.
func isConcurrentUpdate(err error) bool { return hasCode(err, "CONCURRENT_UPDATE") }

// hasCode reports whether a server refused something with a code.
func hasCode(err error, code string) bool {
	refused := refusedBy(err)
	return len(refused) > 0 && refused[0].Extensions["code"] == code
}
