package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph"
)

// refusal is the answer to a request that is not executed.
type refusal struct {
	// status is the HTTP status. 0 means 200 or 400, depending on the media type:
	// the request is correct HTTP but refused as GraphQL.
	status  int
	code    graph.Code
	message string
	field   string
	// retryAfter is in how many seconds to try again; 0 is unknown.
	retryAfter int
	// errors are used instead of code and message where they are several.
	errors gqlerror.List
}

// list returns the errors of a refusal.
func (why refusal) list(ctx context.Context) gqlerror.List {
	if why.errors != nil {
		return why.errors
	}
	err := graph.ProtocolError(ctx, why.code, why.message)
	if why.field != "" {
		err.Extensions["field"] = why.field
	}
	if why.retryAfter > 0 {
		err.Extensions["retryAfter"] = why.retryAfter
	}
	return gqlerror.List{err}
}

// refuse answers with errors and without data.
func refuse(w http.ResponseWriter, r *http.Request, media string, why refusal) {
	if why.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(why.retryAfter))
	}
	status := why.status
	if status == 0 {
		status = http.StatusOK
		if media == mediaResponse {
			status = http.StatusBadRequest
		}
	}
	write(w, media, status, &graph.Answer{Errors: why.list(r.Context())}, nil)
}

// write writes an answer and its extensions, nil for none. The data is written
// as it is: encoding the answer as a whole would parse the data again, which
// takes a hundred times as long.
func write(w http.ResponseWriter, media string, status int, answer *graph.Answer, extensions map[string]any) {
	var before, after bytes.Buffer
	before.WriteByte('{')
	if len(answer.Errors) > 0 {
		before.WriteString(`"errors":`)
		encode(&before, answer.Errors)
	}
	if answer.Data != nil {
		if len(answer.Errors) > 0 {
			before.WriteByte(',')
		}
		before.WriteString(`"data":`)
	}
	if len(extensions) > 0 {
		after.WriteString(`,"extensions":`)
		encode(&after, extensions)
	}
	after.WriteString("}\n")
	parts := slices.Concat([][]byte{before.Bytes()}, answer.Data, [][]byte{after.Bytes()})
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", media+"; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return // the client has gone
		}
	}
}

func encode(out *bytes.Buffer, value any) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // errors and extensions hold strings and numbers only
	}
	out.Truncate(out.Len() - 1) // the line's end
}
