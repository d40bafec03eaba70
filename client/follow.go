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
	// maxPause bounds the wait before a stream that was cut is asked for again.
	maxPause = 5 * time.Second
)

// Follow sends a subscription and returns the data of its events, over an event
// stream, until the context ends. A stream that was cut, by the network or by a
// server that stops, is asked for again behind the last event, so that none is
// missed and none comes twice: the operation declares the variable $after, gives it
// to its field, and selects the cursor of that.
//
//	subscription ($after: String) { resourceChanged(after: $after) { cursor change { what key } } }
//
// The iteration ends with the error of an answer that will not be another one when
// it is asked for again, such as FORBIDDEN or an invalid document, or of a server
// that was not reached at first. An event of which a part failed has its data and
// its error.
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

// errEnough says that nobody wants further events.
var errEnough = errors.New("enough")

// pauseAfter returns how long to wait before a stream that ended with an error is
// asked for again. It reports false for one that would end so again.
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
	return max(wait, shortest), again || begun && refused.Status >= http.StatusInternalServerError || Code(err) == Timeout
}

// cursorOf returns the cursor in the data of an event, which has one field; empty
// for one without.
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

// isEmpty reports whether the data of an answer shows nothing of its field.
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

// stream asks for a stream once and hands over its events until it ends: with nil
// where it was cut or the server ended it, else with the error of the last answer.
// It reports whether the server opened one.
func (c *Client) stream(ctx context.Context, document string, variables map[string]any, each func(data json.RawMessage, refused error) bool) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silence, func() { cancel(errors.New("the server sends nothing")) })
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
	if response.StatusCode != http.StatusOK {
		return false, errorsOf(refusedStream(response), response.Header.Get("Retry-After"))
	}
	return true, readEvents(bufio.NewReader(response.Body), func() { silent.Reset(silence) }, each)
}

// refusedStream returns the error of a response without a stream.
func refusedStream(response *http.Response) error {
	refused := &graphql.HTTPError{StatusCode: response.StatusCode}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil {
		_ = json.Unmarshal(text, &refused.Response) // of others than our servers it can be anything
	}
	return refused
}

// readEvents reads the events of a stream. Alive is called for each line.
func readEvents(from *bufio.Reader, alive func(), each func(data json.RawMessage, refused error) bool) error {
	var name string
	var data []string
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return nil // it was cut
		}
		alive()
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			name = value
		case field == "data" && line != "data:":
			data = append(data, value)
		case line == "" && name == "complete":
			return nil
		case line == "" && name == "next":
			if err := readEvent(strings.Join(data, "\n"), each); err != nil {
				return err
			}
			name, data = "", nil
		}
	}
}

// readEvent hands over an answer, or returns its error where it has no data.
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
