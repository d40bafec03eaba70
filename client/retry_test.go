package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
