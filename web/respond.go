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

// refusal is why a request is not run.
type refusal struct {
	// status is the status whatever the media type; 0 means 200 or 400 by the
	// media type, for what was understood as HTTP but refused as GraphQL.
	status  int
	code    graph.Code
	message string
	field   string
	// retryAfter is in how many seconds to try again; 0 says nothing.
	retryAfter int
	// errors are given instead of code and message where there are several.
	errors gqlerror.List
}

// list are the errors of a refusal.
func (why refusal) list(ctx context.Context) gqlerror.List {
	if why.errors != nil {
		return why.errors
	}
	problem := graph.Problem(ctx, why.code, why.message)
	if why.field != "" {
		problem.Extensions["field"] = why.field
	}
	if why.retryAfter > 0 {
		problem.Extensions["retryAfter"] = why.retryAfter
	}
	return gqlerror.List{problem}
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

// write writes an answer. The data is written as it is: reading it again to copy
// it took a hundred times as long.
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
		panic(err) // errors and extensions hold texts and numbers only
	}
	out.Truncate(out.Len() - 1) // the line's end
}
