package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

const (
	// silence is how long a stream may send nothing. A server sends a heartbeat
	// every 15 seconds.
	silence = 45 * time.Second
	// maxPause is half of the longest wait after a cut stream. The rest is random.
	maxPause = 5 * time.Second
)

// Follow sends a subscription and returns the data of its events, over an event
// stream, until the context ends. If the network or a stopping server cuts the
// stream, Follow continues after the last event, so that no event is missed or
// comes twice. For that, the operation must declare the variable $after, pass
// it to its field, and select the field's cursor. Without a value of $after, a
// stream of changes that is cut before its first event can miss some changes.
//
//	subscription ($after: String) { resourceChanged(after: $after) { cursor change { what key } } }
//
// The iteration ends with an error that another attempt would not change, such
// as FORBIDDEN or an invalid document, or if the first attempt does not reach
// the server. An event that failed in part has its data and its error.
func Follow[T any](ctx context.Context, c *Client, document string, variables map[string]any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		variables = maps.Clone(variables)
		if variables == nil {
			variables = map[string]any{}
		}
		var none T
		for begun, failed := false, 0; ; failed++ {
			opened, err := c.stream(ctx, document, variables, func(data json.RawMessage, refused error) bool {
				failed = 0
				var event T
				if err := json.Unmarshal(data, &event); err != nil {
					refused = errors.Join(refused, fmt.Errorf("read an event: %w", err))
				}
				if cursor := cursorOf(data); cursor != "" {
					variables["after"] = cursor
				}
				return yield(event, refused)
			})
			if errors.Is(err, errEnough) {
				return
			}
			begun = begun || opened
			wait, again := pauseAfter(err, failed, begun)
			if ctx.Err() != nil {
				return
			}
			if !again {
				yield(none, err)
				return
			}
			if !pause.For(ctx, wait) {
				return
			}
		}
	}
}

// errEnough means that the caller wants no further events.
var errEnough = errors.New("enough")

// pauseAfter returns the wait before the next attempt after a stream ended with
// an error, or nil if it was cut or complete. It returns false if another
// attempt would fail, too. begun is whether any attempt has opened a stream.
func pauseAfter(err error, failed int, begun bool) (time.Duration, bool) {
	shortest := min(maxPause, 50*time.Millisecond<<min(failed, 10))
	shortest += rand.N(shortest)
	if err == nil {
		return shortest, true
	}
	refused := new(Errors)
	if !errors.As(err, &refused) {
		return shortest, begun
	}
	wait, again := waitOf(err, shortest, false)
	return max(wait, shortest), again || begun && refused.Status >= http.StatusInternalServerError ||
		Code(err) == Timeout
}

// cursorOf returns the cursor in the data of an event, which has one field;
// empty if there is none.
func cursorOf(data json.RawMessage) string {
	var fields map[string]struct{ Cursor string }
	if json.Unmarshal(data, &fields) != nil || len(fields) != 1 {
		return ""
	}
	for _, field := range fields {
		return field.Cursor
	}
	return ""
}

// isEmpty reports whether an answer has no data, or only fields that are null.
func isEmpty(data json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return true
	}
	for _, field := range fields {
		if string(field) != "null" {
			return false
		}
	}
	return true
}

// stream opens a stream once and passes its events to each until it ends. The
// error is nil if the stream was cut or the server completed it, and errEnough
// if each returned false. stream reports whether the server opened a stream.
func (c *Client) stream(ctx context.Context, document string, variables map[string]any,
	each func(data json.RawMessage, refused error) bool) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silence, func() { cancel(errors.New("the server sent nothing for too long")) })
	defer silent.Stop()
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	response, err := c.streams.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK ||
		!strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return false, errorsOf(refusedStream(response), response.Header.Get("Retry-After"))
	}
	return true, readEvents(bufio.NewReader(response.Body), func() { silent.Reset(silence) }, each)
}

// refusedStream returns the error of a response that is not a stream.
func refusedStream(response *http.Response) error {
	refused := &graphql.HTTPError{StatusCode: response.StatusCode}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil {
		_ = json.Unmarshal(text, &refused.Response) // other servers can send anything
	}
	return refused
}

// readEvents passes the events of a stream to each, and calls alive for each
// line. It returns nil if the stream was cut or is complete.
func readEvents(from *bufio.Reader, alive func(), each func(data json.RawMessage, refused error) bool) error {
	var name string
	var data []string
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return nil // the stream was cut
		}
		alive()
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		case line != "": // a comment or another field
		case name == "complete":
			return nil
		default:
			if name == "next" && len(data) > 0 {
				if err := readEvent(strings.Join(data, "\n"), each); err != nil {
					return err
				}
			}
			name, data = "", nil
		}
	}
}

// readEvent passes an answer to each, or returns the error of an answer without
// data. It returns errEnough if each returns false.
func readEvent(text string, each func(data json.RawMessage, refused error) bool) error {
	var answer struct {
		Data   json.RawMessage
		Errors gqlerror.List
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	var refused error
	if len(answer.Errors) > 0 {
		refused = errorsOf(answer.Errors, "")
	}
	switch {
	case refused != nil && isEmpty(answer.Data):
		return refused
	case !each(answer.Data, refused):
		return errEnough
	}
	return nil
}
