// Package tracing records the spans of requests, with the names of
// OpenTelemetry's semantic conventions. A request has a span if an exporter is
// set and its sampler takes the request. The parts of a request have spans only
// if the request has one. Background work has none.
package tracing

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var (
	tracer  = otel.Tracer("github.com/cadastre-dev/cadastre")
	headers = propagation.TraceContext{}
)

func isRecorded(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// ID returns the id of the trace of a context; empty if the trace is not recorded.
func ID(ctx context.Context) string {
	if !isRecorded(ctx) {
		return ""
	}
	return trace.SpanContextFromContext(ctx).TraceID().String()
}

// Parent returns the value of the header traceparent for work of another
// process; empty if the trace is not recorded.
func Parent(ctx context.Context) string {
	if !isRecorded(ctx) {
		return ""
	}
	carrier := propagation.MapCarrier{}
	headers.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// Request begins the span of a request, below the span of the client that its
// headers name. The caller must call end with the route and the status.
func Request(r *http.Request) (ctx context.Context, end func(route string, status int)) {
	ctx = headers.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return r.Context(), func(string, int) {}
	}
	return ctx, func(route string, status int) {
		span.SetName(r.Method + " " + strings.TrimPrefix(route, r.Method+" "))
		span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", route),
			attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Operation begins the span of an operation of GraphQL.
func Operation(ctx context.Context, kind, name string) (context.Context, func(error)) {
	if !isRecorded(ctx) {
		return ctx, none
	}
	return begin(ctx, strings.TrimSuffix(kind+" "+name, " "), trace.SpanKindInternal,
		attribute.String("graphql.operation.type", kind), attribute.String("graphql.operation.name", name))
}

// Field begins the span of a field of Query, Mutation or Subscription.
func Field(ctx context.Context, name string) (context.Context, func(error)) {
	if !isRecorded(ctx) {
		return ctx, none
	}
	return begin(ctx, "field "+name, trace.SpanKindInternal, attribute.String("graphql.field.name", name))
}

// Load begins the span of a batch of a loader.
func Load(ctx context.Context, name string, keys int) (context.Context, func(error)) {
	if !isRecorded(ctx) {
		return ctx, none
	}
	return begin(ctx, "load "+name, trace.SpanKindInternal, attribute.Int("cadastre.loader.keys", keys))
}

// Statement begins the span of a statement, without its values.
func Statement(ctx context.Context, system, text string) (context.Context, func(error)) {
	if !isRecorded(ctx) {
		return ctx, none
	}
	verb, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return begin(ctx, strings.ToUpper(verb), trace.SpanKindClient, attribute.String("db.system.name", system),
		attribute.String("db.operation.name", strings.ToUpper(verb)), attribute.String("db.query.text", text))
}

// Waited records the span of a wait that has just ended.
func Waited(ctx context.Context, name string, began time.Time, err error) {
	if isRecorded(ctx) {
		_, span := tracer.Start(ctx, "wait "+name, trace.WithTimestamp(began))
		finish(span, err)
	}
}

func none(error) {}

func begin(
	ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue,
) (context.Context, func(error)) {
	ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return ctx, func(err error) { finish(span, err) }
}

// finish ends a span. The status names no error: its text may hold values.
func finish(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
