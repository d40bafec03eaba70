package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
)

// maxKeyBytes bounds an idempotency key.
const maxKeyBytes = 255

// once returns the context for an operation. For a mutation with an idempotency
// key, the context has the key. Queries need no key, so once ignores even an
// invalid key of a query. A query sees all changes before the position in its
// headers. once refuses an invalid position, and an invalid key of a mutation.
func once(ctx context.Context, header http.Header, operation *document.Operation) (context.Context, *refusal) {
	if operation.Definition.Operation != ast.Mutation {
		ctx, err := graph.ReadAfter(ctx, header.Get(graph.PositionHeader))
		if err != nil {
			return nil, &refusal{code: graph.CodeBadUserInput, field: graph.PositionHeader, message: err.Error()}
		}
		return ctx, nil
	}
	key, refused := idempotencyKey(header)
	if refused != nil || key == "" {
		return ctx, refused
	}
	return graph.WithIdempotencyKey(ctx, key), nil
}

// refusedToRun returns the refusal of an operation that did not begin to run.
func refusedToRun(errs gqlerror.List) *refusal {
	why := &refusal{errors: errs}
	why.retryAfter, _ = errs[0].Extensions["retryAfter"].(int)
	switch code, _ := errs[0].Extensions["code"].(string); graph.Code(code) {
	case graph.CodeConcurrentUpdate:
		why.status = http.StatusConflict
	case graph.CodeUnavailable:
		why.status = http.StatusServiceUnavailable
	}
	return why
}

// idempotencyKey returns the idempotency key of the headers, or empty without
// one. A key has visible ASCII characters, either bare or as a structured field
// string (RFC 9651) in quotation marks.
func idempotencyKey(header http.Header) (string, *refusal) {
	sent := header.Values(graph.IdempotencyKeyHeader)
	if len(sent) == 0 {
		return "", nil
	}
	refused := func(why string) (string, *refusal) {
		return "", &refusal{code: graph.CodeBadUserInput, field: graph.IdempotencyKeyHeader,
			message: graph.IdempotencyKeyHeader + ": " + why}
	}
	if len(sent) > 1 {
		return refused("was sent twice; send one key for the whole document")
	}
	key := strings.Trim(sent[0], " \t")
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		if key, ok = unquoted(quoted); !ok {
			return refused("is a malformed string in quotation marks")
		}
	}
	isVisible := func(r rune) bool { return r > ' ' && r <= '~' }
	if key == "" || len(key) > maxKeyBytes || strings.ContainsFunc(key, func(r rune) bool { return !isVisible(r) }) {
		return refused("must have 1 to " + strconv.Itoa(maxKeyBytes) + " visible ASCII characters, such as a UUID")
	}
	return key, nil
}

// unquoted returns a structured field string. The text begins after the opening
// quotation mark and must end with the closing one.
func unquoted(text string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return out.String(), i == len(text)-1
		case text[i] == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
		}
		out.WriteByte(text[i])
	}
	return "", false
}
