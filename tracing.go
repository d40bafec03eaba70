package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// startTracing exports spans by OTLP over HTTP, as OpenTelemetry's environment
// variables say. It does nothing unless they name an endpoint. stop sends the
// last spans within 5 s. Spans are lost if the collector does not answer.
func startTracing(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	if _, endpoint := exportVariable("ENDPOINT"); endpoint == "" {
		return func() {}, nil
	}
	sender, err := newSpanSender()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, sender)
	if err != nil {
		return nil, err
	}
	of, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "cadastre"),
		attribute.String("service.version", version())), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(of))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("cannot export spans", "error", err) }))
	otel.SetTracerProvider(provider)
	return func() {
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			log.Warn("cannot export spans", "error", err)
		}
	}, nil
}
