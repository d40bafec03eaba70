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

// once returns the context of an operation that is made once where its request has
// an idempotency key. Queries need none: whatever their header holds is ignored.
func once(ctx context.Context, header http.Header, operation *document.Operation) (context.Context, *refusal) {
	if operation.Definition.Operation != ast.Mutation {
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

// idempotencyKey returns the idempotency key among headers, empty for none: of
// visible ASCII characters, as they are or as a string of structured fields (RFC
// 9651), which is in quotation marks.
func idempotencyKey(header http.Header) (string, *refusal) {
	sent := header.Values(graph.IdempotencyKeyHeader)
	if len(sent) == 0 {
		return "", nil
	}
	refused := func(why string) (string, *refusal) {
		return "", &refusal{code: graph.CodeBadUserInput, field: graph.IdempotencyKeyHeader, message: graph.IdempotencyKeyHeader + ": " + why}
	}
	if len(sent) > 1 {
		return refused("is there twice; send one for the whole document")
	}
	key := strings.Trim(sent[0], " \t")
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		if key, ok = unquoted(quoted); !ok {
			return refused("is not a string in quotation marks")
		}
	}
	isVisible := func(r rune) bool { return r > ' ' && r <= '~' }
	if key == "" || len(key) > maxKeyBytes || strings.ContainsFunc(key, func(r rune) bool { return !isVisible(r) }) {
		return refused("must have 1 to " + strconv.Itoa(maxKeyBytes) + " visible ASCII characters, such as a UUID")
	}
	return key, nil
}

// unquoted returns the string of structured fields that follows its first
// quotation mark, where nothing follows the last one.
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
