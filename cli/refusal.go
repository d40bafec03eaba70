package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
)

// explained returns an error of the client with what people need to know: the
// server, and what it refused, with the code.
func (r remote) explained(err error) error {
	if err == nil {
		return nil
	}
	if refused := new(client.Errors); errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
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
func refusals(err error) (lines []string) {
	refused := new(client.Errors)
	if errors.As(err, &refused) {
		for _, one := range refused.List {
			lines = append(lines, printable(one.Error()))
		}
	}
	return lines
}

// isAboutInput reports whether a server refused what it was sent.
func isAboutInput(err error) bool {
	if refused := new(client.Errors); errors.As(err, &refused) && refused.Status != 0 {
		return refused.Status == http.StatusRequestEntityTooLarge || refused.Status == http.StatusBadRequest
	}
	return client.Code(err) == client.BadUserInput
}

// isTooComplex reports whether an answer would be too large, or take too much
// work.
func isTooComplex(err error) bool { return client.Code(err) == client.QueryTooComplex }

// isConcurrentUpdate reports whether something was changed since it was read.
func isConcurrentUpdate(err error) bool { return client.Code(err) == client.ConcurrentUpdate }
