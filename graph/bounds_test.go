package graph_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// everyType reads a large part of the schema.
const everyType = `{ __schema { types { name description fields { name description args { name description type { name kind ofType { name } } } type { name kind ofType { name } } } inputFields { name description } enumValues { name } } } }`

// TestAnAnswerIsBoundedInBytes checks that a root field that exceeds the limit
// is null with an error, and so are the root fields after it. A mutation starts
// none of these. The type of __schema is not nullable.
func TestAnAnswerIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	executor := executorOf(t, openFixture(t, storetest.SQLite(t)))
	ctx := access.WithViewer(t.Context(), viewers["admin"])
	for _, of := range []struct {
		query  string
		bytes  int
		data   string
		errors string
	}{
		{`{ viewer { userId } }`, 30, `{"viewer":{"userId":"ada"}}`, ""},
		{`{ viewer { userId } }`, 20, `{"viewer":null}`, "viewer QUERY_TOO_COMPLEX"},
		{`{ viewer { userId } ` + everyType[1:], 100_000, `null`, "__schema QUERY_TOO_COMPLEX"},
		{`{ __schema { types { name fields { name } } } viewer { userId } }`, 1000, `null`,
			"__schema QUERY_TOO_COMPLEX, viewer QUERY_TOO_COMPLEX"},
		{`{ traits { nodes { name } } }`, 1000, `{"traits":null}`, "traits QUERY_TOO_COMPLEX"},
		{`mutation { a: createTrait(input: {name: "CUSTOM_A"}) { trait { name } } b: createTrait(input: {name: "CUSTOM_B"}) { trait { name } } }`, 40,
			`{"a":{"trait":{"name":"CUSTOM_A"}},"b":null}`, "b QUERY_TOO_COMPLEX"},
		{`mutation { c: createTrait(input: {name: "CUSTOM_C"}) { trait { name } } d: createTrait(input: {name: "CUSTOM_D"}) { trait { name } } }`, 10,
			`{"c":null,"d":null}`, "c QUERY_TOO_COMPLEX, d QUERY_TOO_COMPLEX"},
		{`{ traits(filter: {startsWith: "CUSTOM_"}) { nodes { name } } }`, 0,
			`{"traits":{"nodes":[{"name":"CUSTOM_A"},{"name":"CUSTOM_B"},{"name":"CUSTOM_C"}]}}`, ""},
	} {
		response := executor.ExecuteWithin(ctx, of.query, of.bytes)
		if data, errs := string(response.Data), strings.Join(errorsOf(response), ", "); data != of.data ||
			errs != of.errors {
			t.Errorf("%s within %d bytes: got %.200s with the errors %q, want %s with %q", of.query,
				of.bytes, data, errs, of.data, of.errors)
		}
		for _, err := range response.Errors {
			if want := fmt.Sprintf("the answer has more than %d bytes",
				of.bytes); !strings.Contains(err.Message, want) {
				t.Errorf("the message is %q and does not say %q", err.Message, want)
			}
		}
	}
}

// TestAnAnswerEndsWithItsContext checks that an answer from memory alone ends
// with its context, too.
func TestAnAnswerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	executor := executorOf(t, storetest.Open(t, storetest.SQLite(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	response := executor.Execute(ctx, &graphql.RawParams{Query: everyType})
	if errs := strings.Join(errorsOf(response), ", "); string(response.Data) != `null` || errs != "__schema TIMEOUT" {
		t.Errorf("got %.200s with the errors %q", response.Data, errs)
	}
}

// TestAnswersHoldWhatTheyAnswer checks that unread answers take little more
// memory than their bytes, and none after their release.
func TestAnswersHoldWhatTheyAnswer(t *testing.T) { // not parallel: it measures the heap
	const count, most = 400, 64 << 10
	executor := executorOf(t, storetest.Open(t, storetest.SQLite(t)))
	var unread []*graph.Answer
	operations := []*document.Operation{executor.Operation(everyType, nil), executor.Operation(`{ __typename }`, nil)}
	bytes, before := 0, heap()
	for i := range count {
		answer := executor.Run(t.Context(), operations[i%2], 0)
		for _, piece := range answer.Data {
			bytes += len(piece)
		}
		unread = append(unread, answer)
	}
	if held, may := heap()-before, bytes+bytes/20+count*most; held > may {
		t.Errorf("%d answers of %d bytes in total hold %d, more than %d", count, bytes, held, may)
	}
	for _, answer := range unread {
		executor.Release(answer.Data...)
	}
	clear(unread)
	if held := heap() - before; held > 1<<20 {
		t.Errorf("released answers hold %d bytes", held)
	}
}

// heap returns the bytes in use after collections that empty all pools.
func heap() int {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
