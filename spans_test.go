package main

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// TestSpansAreSentAsTheVariablesSay sends spans to a collector with TLS that has
// no capacity at first.
func TestSpansAreSentAsTheVariablesSay(t *testing.T) {
	collected, refused := &spans{}, atomic.Int64{}
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Api-Key") != "a, b" || r.Header.Get("Tenant") != "c" ||
			r.Header.Get("Content-Encoding") != "gzip":
			w.WriteHeader(http.StatusUnauthorized)
		case refused.Add(1) == 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			collected.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(receiver.Close)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: receiver.Certificate().Raw})
	if err := os.WriteFile(trusted, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL+"/")
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", trusted)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "other=x")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "api-key = a%2C%20b,tenant=c")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	sender, err := newSpanSender()
	if err != nil {
		t.Fatal(err)
	}
	sent := []*otlp.ResourceSpans{{ScopeSpans: []*otlp.ScopeSpans{{Spans: []*otlp.Span{{Name: "one"}, {Name: "two"}}}}}}
	if err := sender.UploadTraces(t.Context(), sent); err != nil || len(collected.all) != 2 ||
		collected.all[1].Name != "two" || refused.Load() != 2 {
		t.Errorf("the collector got %v in %d requests: %v", collected.all, refused.Load(), err)
	}
	sender.header.Del("Tenant")
	if err := sender.UploadTraces(t.Context(), sent); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a refused request: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := sender.UploadTraces(ended, sent); err == nil {
		t.Error("spans are sent after the end of the context")
	}
	if err := sender.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWrongVariablesOfTheExporter checks that the error names every one.
func TestWrongVariablesOfTheExporter(t *testing.T) {
	for variable, value := range map[string]string{"TRACES_ENDPOINT": "collector:4318", "HEADERS": "key",
		"COMPRESSION": "zip", "TRACES_TIMEOUT": "10s",
		"CERTIFICATE": "/none", "CLIENT_CERTIFICATE": "/none"} {
		t.Setenv("OTEL_EXPORTER_OTLP_"+variable, value)
	}
	_, err := newSpanSender()
	for _, want := range []string{`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be a URL such as http://127.0.0.1:4318, is "collector:4318"`,
		"OTEL_EXPORTER_OTLP_HEADERS: must be pairs", `OTEL_EXPORTER_OTLP_COMPRESSION: must be gzip or none, is "zip"`,
		`OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: must be a number of milliseconds, is "10s"`,
		"OTEL_EXPORTER_OTLP_CERTIFICATE: open /none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "")
	if _, err := newSpanSender(); err == nil ||
		!strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: open /none") {
		t.Errorf("the error is %v", err)
	}
}
