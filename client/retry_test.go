package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
)

// TestRequestsAreSentAgain checks that the client repeats a request only if
// that can help, uses one key for all attempts of a mutation, and otherwise
// returns the error.
func TestRequestsAreSentAgain(t *testing.T) {
	t.Parallel()
	const (
		cut      = "cut"     // no answer
		gateway  = "gateway" // the 502 of a proxy
		done     = `{"data": {}}`
		unknown  = `{"errors": [{"message": "m", "extensions": {"code": "OUTCOME_UNKNOWN"}}]}`
		refused  = `{"errors": [{"message": "m", "extensions": {"code": "NOT_FOUND"}}]}`
		partly   = `{"errors": [{"message": "m", "extensions": {"code": "NOT_FOUND"}}, {"message": "m", "extensions": {"code": "OUTCOME_UNKNOWN"}}], "data": {}}`
		busy     = `{"errors": [{"message": "m", "extensions": {"code": "UNAVAILABLE", "retryAfter": 0.01}}]}`
		underWay = `{"errors": [{"message": "m", "extensions": {"code": "CONCURRENT_UPDATE", "field": "Idempotency-Key"}}]}`
		changed  = `{"errors": [{"message": "m", "extensions": {"code": "CONCURRENT_UPDATE", "field": "input.revision"}}]}`
	)
	for _, of := range []struct {
		query   string
		answers []string
		sent    int
		fails   bool
	}{
		{"mutation M { m }", []string{unknown, cut, partly, underWay, done}, 5, false},
		{"mutation M { m }", []string{gateway, done}, 2, false},
		{"query Q { q }", []string{gateway, done}, 1, true},
		{"mutation M { m }", []string{busy, done}, 2, false},
		{"query Q { q }", []string{unknown, done}, 1, true},
		{"mutation M { m }", []string{refused, done}, 1, true},
		{"mutation M { m }", []string{changed, done}, 1, true},
		{"mutation M { m }", []string{cut, cut, cut, cut, cut, done}, 5, true},
	} {
		var keys []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			var asked graphql.Request
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Query != of.query {
				t.Errorf("%v: sent %q", err, asked.Query)
			}
			answer := of.answers[len(keys)-1]
			if answer == cut {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
				}
				_ = conn.Close()
				return
			}
			if answer == gateway {
				w.WriteHeader(http.StatusBadGateway)
			}
			_, _ = io.WriteString(w, answer)
		}))
		err := client.New(server.URL, client.WithRetries(4)).
			MakeRequest(context.Background(), &graphql.Request{Query: of.query}, &graphql.Response{})
		server.Close()
		if len(keys) != of.sent || (err != nil) != of.fails {
			t.Errorf("%s with %v: sent %d times, %v", of.query, of.answers, len(keys), err)
		}
		isMutation := of.query[0] == 'm'
		if distinct := slices.Compact(keys); len(distinct) != 1 || (distinct[0] != "") != isMutation {
			t.Errorf("%s was sent with the keys %q", of.query, keys)
		}
	}
}

// TestOpenOutcomesAreTold checks that an error does not deny a change that an
// earlier attempt can have made.
func TestOpenOutcomesAreTold(t *testing.T) {
	t.Parallel()
	const (
		eof, header, down = "eof", "header", "down"
		busy              = `{"errors": [{"message": "m", "path": ["m"], "extensions": {"code": "UNAVAILABLE", "retryAfter": 0.01}}]}`
		unknown           = `{"errors": [{"message": "m", "path": ["m"], "extensions": {"code": "OUTCOME_UNKNOWN"}}]}`
		refused           = `{"errors": [{"message": "m", "path": ["m"], "extensions": {"code": "NOT_FOUND"}}]}`
		nobody            = `{"errors": [{"message": "m", "extensions": {"code": "UNAUTHENTICATED"}}]}`
		done              = `{"data": {}}`
	)
	for _, of := range []struct {
		answers []string
		want    string
	}{
		{[]string{eof, busy, busy}, `Post "http://x/graphql": EOF; sent again: UNAVAILABLE: m`},
		{[]string{header, down, done}, ""},
		{[]string{eof, down, down}, `Post "http://x/graphql": EOF; sent again: Post "http://x/graphql": dial: down`},
		{[]string{unknown, busy, busy}, "OUTCOME_UNKNOWN: m; sent again: UNAVAILABLE: m"},
		{[]string{busy, busy, busy}, "UNAVAILABLE: m"},
		{[]string{eof, refused}, "NOT_FOUND: m"},
		{[]string{eof, nobody}, `Post "http://x/graphql": EOF; sent again: UNAUTHENTICATED: m`},
		{[]string{down}, `Post "http://x/graphql": dial: down`},
	} {
		sent := 0
		sender := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			sent++
			switch answer := of.answers[sent-1]; answer {
			case eof:
				return nil, io.EOF
			case header:
				return nil, textproto.ProtocolError("malformed MIME header")
			case down:
				return nil, &net.OpError{Op: "dial", Err: errors.New(down)}
			default:
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
			}
		})}
		err := client.New("http://x", client.WithHTTPClient(sender), client.WithRetries(2)).
			MakeRequest(context.Background(), &graphql.Request{Query: "mutation M { m }"}, &graphql.Response{})
		if err == nil && of.want != "" || err != nil && err.Error() != of.want || sent != len(of.answers) {
			t.Errorf("%q: sent %d times, %v", of.answers, sent, err)
		}
	}
}

// TestResendingIsTold cuts the second request on a connection, and then
// refuses connections: net/http sends the request again, so the refused
// connection does not say that nothing was changed.
func TestResendingIsTold(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1) == 2 {
			_ = server.Listener.Close()
			_, _ = io.ReadAll(r.Body)
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"data": {}}`)
	}))
	t.Cleanup(server.Close)
	c := client.New(server.URL, client.WithRetries(1))
	var err error
	for range 2 {
		err = c.MakeRequest(t.Context(), &graphql.Request{Query: "mutation M { m }"}, &graphql.Response{})
	}
	if sent := sent.Load(); !errors.Is(err, io.ErrUnexpectedEOF) || sent != 2 {
		t.Errorf("sent %d times, %v", sent, err)
	}
}

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
