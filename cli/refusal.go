package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// explained makes an answer of a server fit for people: what it refused, with
// the code, and what to do about it.
func (r remote) explained(err error) error {
	if err == nil {
		return nil
	}
	if status := new(graphql.HTTPError); errors.As(err, &status) && status.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%s does not know the token: give one with --token or CADASTRE_TOKEN", r.Server)
	}
	if refused := refusals(err); len(refused) > 0 {
		return fmt.Errorf("%s: %s", r.Server, strings.Join(refused, "\n"))
	}
	return fmt.Errorf("%s: %w", r.Server, err)
}

// refusals are the lines that say what a server refused: `CODE: why (where)`.
// There is none where no server answered in GraphQL.
func refusals(err error) []string {
	var lines []string
	for _, refused := range refusedBy(err) {
		line := refused.Message
		if field, ok := refused.Extensions["field"].(string); ok && !strings.HasPrefix(line, field) {
			line += " (" + field + ")"
		}
		if code, ok := refused.Extensions["code"].(string); ok {
			line = code + ": " + line
		}
		lines = append(lines, line)
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

// isAboutInput tells whether a server refused what it was sent.
func isAboutInput(err error) bool {
	if status := new(graphql.HTTPError); errors.As(err, &status) {
		return status.StatusCode == http.StatusRequestEntityTooLarge || status.StatusCode == http.StatusBadRequest
	}
	refused := refusedBy(err)
	return len(refused) > 0 && refused[0].Extensions["code"] == "BAD_USER_INPUT"
}
