package web

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/tracing"
)

// observe returns a handler that logs and measures requests to next, each with
// an id: the client's if it is valid, otherwise a new one. A panic becomes an
// internal error, or closes the connection if the answer has begun.
func observe(next http.Handler, options Options, measured *measurements) http.Handler {
	log := options.Log
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get("X-Request-Id")
		if !isRequestID(id) {
			id = newRequestID(r, rand.Text)
		}
		entry := &requestLog{address: clientAddress(r, options.TrustedProxies)}
		ctx, endSpan := tracing.Request(r)
		r = r.WithContext(context.WithValue(graph.WithRequestID(ctx, id), requestLogKey{}, entry))
		recorder := &recorder{ResponseWriter: w}
		header := w.Header()
		header.Set("X-Request-Id", id)
		header.Set("X-Content-Type-Options", "nosniff")
		measured.inFlight.Inc()
		defer func() {
			measured.inFlight.Dec()
			if panicked := recover(); panicked != nil {
				measured.panics.Inc()
				log.ErrorContext(r.Context(), "panic", "requestId", id, "panic",
					panicked, "stack", string(debug.Stack()))
				if recorder.status != 0 {
					panic(http.ErrAbortHandler) // the answer has begun: only closing the connection reveals the failure
				}
				refuse(recorder, r, mediaJSON, refusal{status: http.StatusInternalServerError,
					code: graph.CodeInternal, message: "internal error"})
			}
			took := time.Since(began)
			measured.answered(route(r), r, recorder.status, took, entry.streams)
			attributes := []slog.Attr{slog.String("requestId", id),
				slog.String("method", r.Method), slog.String("path", clip(r.URL.Path, 100)),
				slog.Int("status", recorder.status),
				slog.Int64("bytes", recorder.bytes), slog.String("took", took.String()),
				slog.String("address", entry.address),
				slog.String("user", entry.viewer.UserID), slog.String("operation", entry.operation),
				slog.String("code", entry.code)}
			log.LogAttrs(r.Context(), level(r, recorder.status), "request", traced(r.Context(), attributes)...)
			endSpan(route(r), recorder.status)
		}()
		next.ServeHTTP(recorder, r)
		if recorder.status == 0 {
			recorder.status = http.StatusOK
		}
	})
}

// traced returns attributes of a log line, with the id of the trace if there is one.
func traced(ctx context.Context, attributes []slog.Attr) []slog.Attr {
	if id := tracing.ID(ctx); id != "" {
		return append(attributes, slog.String("trace", id))
	}
	return attributes
}

// level returns the level of a log line. Successful health checks and scrapes of
// metrics are at the debug level, so that they do not fill the log.
func level(r *http.Request, status int) slog.Level {
	switch r.URL.Path {
	case "/livez", "/readyz", "/metrics", "/metrics/cloud":
		if status == http.StatusOK {
			return slog.LevelDebug
		}
	}
	return slog.LevelInfo
}

// route returns the pattern that matched a request: one of few, for labels.
func route(r *http.Request) string {
	if r.Pattern == "" {
		return "none"
	}
	return r.Pattern
}

// isRequestID reports whether an id from a client can be used in logs and
// answers.
func isRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

func clip(text string, maxBytes int) string {
	if len(text) > maxBytes {
		return strings.ToValidUTF8(text[:maxBytes], "") + "..."
	}
	return text
}

// requestLog collects the values for the log line of a request.
type requestLog struct {
	address   string // of the client
	viewer    access.Viewer
	operation string
	code      string
	streams   bool // whether the answer is a stream, which lasts as long as a client listens
}

type requestLogKey struct{}

// requestLogOf returns the log entry of a request, for handlers to fill.
func requestLogOf(ctx context.Context) *requestLog { return ctx.Value(requestLogKey{}).(*requestLog) }

// recorder notes the status and size of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap returns the writer, for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
