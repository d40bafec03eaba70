package web

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph"
)

// refusal is the answer to a request that does not run.
type refusal struct {
	// status is the HTTP status. 0 means 200 or 400, depending on the media
	// type: the request is correct HTTP but refused as GraphQL.
	status  int
	code    graph.Code
	message string
	field   string
	// retryAfter is how many seconds the client should wait; 0 sends no hint.
	retryAfter int
	// errors replace code and message if they are set.
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
	write(w, media, status, &graph.Answer{Errors: why.list(r.Context())}, "", sending{})
}

// smallAnswer is the maximum size in bytes of an answer sent as one piece.
const smallAnswer = 4 << 10

// slowClientFor is how long a client may read nothing of a long answer.
const slowClientFor = 5 * time.Second

// sending says how to send a long answer. A client must read at least
// bytesPerSecond or the write fails; 0 means any rate. The method write calls
// sent with each written piece and the number of bytes left.
type sending struct {
	bytesPerSecond int
	sent           func(piece []byte, left int)
}

// write writes an answer and its extensions (JSON, or "" for none). It copies
// the data as encoded bytes: encoding the whole answer would parse the data
// again, which takes a hundred times as long.
func write(w http.ResponseWriter, media string, status int, answer *graph.Answer, extensions string, how sending) {
	size := 0
	for _, piece := range answer.Data {
		size += len(piece)
	}
	out := bytes.NewBuffer(make([]byte, 0, min(size, smallAnswer)+256))
	end := around(out, answer, extensions) + "\n"
	values := [...]string{"no-store", media + "; charset=utf-8", strconv.Itoa(out.Len() + size + len(end))}
	header := w.Header()
	header["Cache-Control"], header["Content-Type"], header["Content-Length"] = values[0:1:1], values[1:2:2],
		values[2:3:3]
	w.WriteHeader(status)
	if size > smallAnswer {
		if _, err := out.WriteTo(w); err != nil || !how.write(w, answer.Data, size) {
			return // the client has gone or is too slow
		}
	} else {
		for _, piece := range answer.Data {
			out.Write(piece)
			how.sent(piece, 0)
		}
	}
	out.WriteString(end)
	_, _ = out.WriteTo(w)
}

// around writes the part of an answer before its data, and returns the part
// after it.
func around(out *bytes.Buffer, answer *graph.Answer, extensions string) (after string) {
	out.WriteByte('{')
	if len(answer.Errors) > 0 {
		out.WriteString(`"errors":`)
		encode(out, answer.Errors)
	}
	if answer.Data != nil {
		if len(answer.Errors) > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`"data":`)
	}
	if extensions != "" {
		return `,"extensions":` + extensions + "}"
	}
	return "}"
}

// write writes pieces, left bytes in total, and reports whether the client took
// them.
func (how sending) write(w http.ResponseWriter, pieces [][]byte, left int) bool {
	client, latest := http.NewResponseController(w), time.Now().Add(slowClientFor)
	for _, piece := range pieces {
		if how.bytesPerSecond > 0 {
			latest = latest.Add(time.Duration(len(piece)) * time.Second / time.Duration(how.bytesPerSecond))
			_ = client.SetWriteDeadline(latest) // the recorders of tests have none
		}
		if _, err := w.Write(piece); err != nil {
			return false
		}
		left -= len(piece)
		how.sent(piece, left)
	}
	return true
}

func encode(out *bytes.Buffer, value any) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // errors and extensions hold strings and numbers only
	}
	out.Truncate(out.Len() - 1) // without the newline
}

// The media types of answers. The first two differ in the status of a correct
// HTTP request that is refused as GraphQL: 200 and 400.
const (
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
	// mediaEvents is the media type of a stream of answers.
	mediaEvents = "text/event-stream"
)

// negotiate returns the media type of the answer. This is application/json,
// unless the Accept headers do not admit it, or name another type and give it a
// higher quality. Of equal qualities, a named type precedes one that a wildcard
// matches, then the first in the header wins. The media type of streams must be
// named. The result is empty if the headers admit no type of the three.
func negotiate(header http.Header) string {
	accept := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return mediaJSON
	}
	json, response, events := quality(accept, mediaJSON), quality(accept, mediaResponse), quality(accept, mediaEvents)
	switch {
	case events.isBefore(json) && events.isBefore(response):
		return mediaEvents
	case response.isBefore(json):
		return mediaResponse
	case json.q > 0:
		return mediaJSON
	case response.q > 0:
		return mediaResponse
	}
	return ""
}

// acceptsEvents reports whether the Accept headers name the media type of streams.
func acceptsEvents(header http.Header) bool {
	events := quality(strings.Join(header.Values("Accept"), ","), mediaEvents)
	return events.named && events.q > 0
}

// isBefore reports whether the client names a media type and prefers it to
// another.
func (p preference) isBefore(other preference) bool {
	return p.named && p.q > 0 && (p.q > other.q || p.q == other.q && (!other.named || p.index < other.index))
}

// preference is how much a client wants a media type.
type preference struct {
	q     float64
	named bool // explicitly, not by a wildcard
	index int  // position in the list
}

// quality returns the preference for a media type by the most specific range.
func quality(accept, media string) preference {
	best, specificity := preference{}, 0
	for index, text := range strings.Split(accept, ",") {
		name, parameters, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
			continue
		}
		rank := 0
		switch name {
		case media:
			rank = 3
		case "application/*":
			rank = 2
		case "*/*":
			rank = 1
		}
		if rank <= specificity {
			continue
		}
		q := 1.0
		if weight, ok := parameters["q"]; ok {
			if q, err = strconv.ParseFloat(weight, 64); err != nil || q < 0 || q > 1 {
				continue
			}
		}
		best, specificity = preference{q: q, named: rank == 3, index: index}, rank
	}
	return best
}

// isJSON reports whether a body is JSON in UTF-8 according to its Content-Type.
func isJSON(header http.Header) bool {
	values := header.Values("Content-Type")
	if len(values) != 1 {
		return false
	}
	name, parameters, err := mime.ParseMediaType(values[0])
	charset := parameters["charset"]
	return err == nil && name == mediaJSON && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
