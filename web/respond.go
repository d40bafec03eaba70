package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
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
	write(w, media, status, &graphql.Response{Errors: why.list(r.Context())})
}

// write writes an answer. The data is written as it is: encoding the response
// as a whole would parse the data again, which takes a hundred times as long.
func write(w http.ResponseWriter, media string, status int, response *graphql.Response) {
	var before, after bytes.Buffer
	before.WriteByte('{')
	if len(response.Errors) > 0 {
		before.WriteString(`"errors":`)
		encode(&before, response.Errors)
	}
	if response.Data != nil {
		if len(response.Errors) > 0 {
			before.WriteByte(',')
		}
		before.WriteString(`"data":`)
	}
	if len(response.Extensions) > 0 {
		after.WriteString(`,"extensions":`)
		encode(&after, response.Extensions)
	}
	after.WriteString("}\n")
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", media+"; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(before.Len()+len(response.Data)+after.Len()))
	w.WriteHeader(status)
	for _, part := range [][]byte{before.Bytes(), response.Data, after.Bytes()} {
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
