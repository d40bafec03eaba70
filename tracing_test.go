package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// spans collects the spans that servers export by OTLP.
type spans struct {
	mu  sync.Mutex
	all []*otlp.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var of collector.ExportTraceServiceRequest
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	text, _ := io.ReadAll(body)
	if err := proto.Unmarshal(text, &of); err != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range of.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			s.all = append(s.all, scope.Spans...)
		}
	}
}

// of returns the spans of a trace as paths of names from the client's span, in the
// order of their begin.
func (s *spans) of(trace string) (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.all, func(a, b *otlp.Span) int {
		return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano)
	})
	known := map[string]string{clientsSpan: ""}
	for _, span := range s.all {
		if above, ok := known[hex.EncodeToString(span.ParentSpanId)]; ok && hex.EncodeToString(span.TraceId) == trace {
			path := strings.TrimPrefix(above+"/"+span.Name, "/")
			known[hex.EncodeToString(span.SpanId)], paths = path, append(paths, path)
		}
	}
	return paths
}

const clientsSpan = "b7ad6b7169203331"

// TestSpansOfARequest sends queries and a place with the trace of a client.
func TestSpansOfARequest(t *testing.T) {
	collected := &spans{}
	receiver := httptest.NewServer(collected)
	t.Cleanup(receiver.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	program := built(t)
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		server, _ := spawn(t, program, "--demo", "--database", url)
		for i, c := range []struct{ document, first, last string }{
			{`query hosts { resources(first: 3, filter: {types: ["physical:host"]}) { nodes { name metadata { key } } } }`,
				"query hosts/field resources/SELECT", "query hosts/field resources/load Resource.metadata/SELECT"},
			{`mutation { place(input: {request: {resources: [{resourceClass: "VCPU", amount: 1}]}, consumers: [
				{uuid: "6f1c6f3e-2f0e-4a5e-9d5a-3c1b1f1d2a10", projectId: "p", userId: "u"}]}) { results { consumer { uuid } } } }`,
				"mutation/field place/WITH", "mutation/field place/COMMIT"},
			{`{ auditEvents(first: 1) { nodes { id } } }`,
				"query/field auditEvents/SELECT", "query/field auditEvents/SELECT"},
		} {
			trace := hex.EncodeToString(fmt.Appendf(nil, "%-16.16s", fmt.Sprint(i, url[:6], "trace of a test")))
			askTraced(t, server.address, c.document, trace)
			var got []string
			patience.Until(t, 10*time.Second, func() bool {
				got = collected.of(trace)
				return len(got) > 0
			})
			first, last := "POST /graphql/"+c.first, "POST /graphql/"+c.last
			if !slices.Contains(got, first) || !strings.HasSuffix(got[len(got)-1], last) {
				t.Errorf("the spans of %q are %q", c.document, got)
			}
			if strings.HasPrefix(url, "postgres") && i == 2 {
				checkStatement(t, url, "%/*traceparent='00-"+trace+"-%", func() {
					askTraced(t, server.address, c.document, trace)
				})
			}
			if !strings.Contains(server.stderr.String(), "trace="+trace) {
				t.Errorf("the log does not name the trace %s", trace)
			}
			if !strings.Contains(exemplars(t, server.address), `# {trace_id="`+trace+`"}`) {
				t.Errorf("no exemplar of the trace %s", trace)
			}
		}
	})
}

// checkStatement asks until PostgreSQL shows a statement that is like a pattern. A
// connection shows its last statement, which others of the server replace.
func checkStatement(t *testing.T, url, like string, ask func()) {
	t.Helper()
	var count int
	var err error
	database := storetest.Database(t, url)
	if !patience.Until(t, 10*time.Second, func() bool {
		ask()
		err = database.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1", like).Scan(&count)
		return count > 0 || err != nil
	}) || err != nil {
		t.Errorf("%d statements with the trace, %v", count, err)
	}
}

// askTraced sends a document with the trace of a client.
func askTraced(t *testing.T, address, document, trace string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": document})
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequest(http.MethodPost, address+"/graphql", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer demo-admin")
	request.Header.Set("traceparent", "00-"+trace+"-"+clientsSpan+"-01")
	if status, answer := fetch(t, request); status != http.StatusOK || strings.Contains(answer, `"errors"`) {
		t.Fatalf("%d %s", status, answer)
	}
}

// exemplars returns the metrics in the format that has exemplars.
func exemplars(t *testing.T, address string) string {
	t.Helper()
	request, _ := http.NewRequest(http.MethodGet, address+"/metrics", nil)
	request.Header.Set("Authorization", "Bearer demo-admin")
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	_, text := fetch(t, request)
	return text
}
