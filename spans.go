package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

// spanSender sends spans by OTLP over HTTP, as OpenTelemetry's variables say. The
// module otlptracehttp does the same, but links gRPC, which makes the program 6 MB
// larger.
type spanSender struct {
	endpoint string
	header   http.Header
	client   *http.Client
}

// exportVariable returns a variable of the exporter with its value: the
// variable for traces if it is set, otherwise the variable for all signals.
func exportVariable(name string) (variable, value string) {
	for _, variable = range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		if value = os.Getenv(variable); value != "" {
			break
		}
	}
	return variable, value
}

// newSpanSender returns a sender, or the errors of all wrong variables.
func newSpanSender() (*spanSender, error) {
	s := &spanSender{header: http.Header{"Content-Type": {"application/x-protobuf"},
		"User-Agent": {"cadastre/" + version()}}}
	var errs []error
	wrong := func(variable, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{variable}, args...)...))
	}
	variable, value := exportVariable("ENDPOINT")
	if of, err := url.Parse(value); err != nil || of.Host == "" || of.Scheme != "http" && of.Scheme != "https" {
		wrong(variable, "must be a URL such as http://127.0.0.1:4318, is %q", value)
	}
	if s.endpoint = value; variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		s.endpoint = strings.TrimSuffix(value, "/") + "/v1/traces"
	}
	if variable, value = exportVariable("HEADERS"); !s.addHeaders(value) {
		wrong(variable, "must be pairs such as key=value with commas")
	}
	variable, value = exportVariable("COMPRESSION")
	switch value {
	case "", "none":
	case "gzip":
		s.header.Set("Content-Encoding", value)
	default:
		wrong(variable, "must be gzip or none, is %q", value)
	}
	variable, value = exportVariable("TIMEOUT")
	milliseconds, err := strconv.Atoi(cmp.Or(value, "10000"))
	if err != nil || milliseconds <= 0 {
		wrong(variable, "must be a number of milliseconds, is %q", value)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if transport.TLSClientConfig, err = exportTLS(); err != nil {
		errs = append(errs, err)
	}
	s.client = &http.Client{Transport: transport, Timeout: time.Duration(milliseconds) * time.Millisecond}
	return s, errors.Join(errs...)
}

// addHeaders adds headers from comma-separated pairs. It reports whether all
// are correct.
func (s *spanSender) addHeaders(pairs string) bool {
	for pair := range strings.SplitSeq(pairs, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, escaped, found := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(escaped))
		if key = strings.TrimSpace(key); !found || key == "" || err != nil {
			return false
		}
		s.header.Set(key, text)
	}
	return true
}

// exportTLS returns the TLS settings: trusted authorities and the client's
// certificate.
func exportTLS() (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if variable, file := exportVariable("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if settings.RootCAs = x509.NewCertPool(); err == nil && !settings.RootCAs.AppendCertsFromPEM(text) {
			err = errors.New("has no certificate in PEM")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
	}
	if variable, file := exportVariable("CLIENT_CERTIFICATE"); file != "" {
		_, key := exportVariable("CLIENT_KEY")
		own, err := tls.LoadX509KeyPair(file, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		settings.Certificates = []tls.Certificate{own}
	}
	return settings, nil
}

// Start does nothing.
func (s *spanSender) Start(context.Context) error { return nil }

// Stop closes the connections.
func (s *spanSender) Stop(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans. While the collector answers 429, 502, 503 or 504,
// UploadTraces tries again until the context ends. Any other error is final.
func (s *spanSender) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans}) // the bytes of an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	if s.header.Get("Content-Encoding") == "gzip" {
		var zipped bytes.Buffer
		to := gzip.NewWriter(&zipped)
		_, _ = to.Write(body) // a buffer takes everything
		_ = to.Close()
		body = zipped.Bytes()
	}
	for wait := time.Second; ; wait *= 2 {
		after, err := s.send(ctx, body)
		if err == nil || after < 0 || !pause.For(ctx, max(after, wait/2+rand.N(wait/2))) {
			return err
		}
	}
}

// send sends a body once. after is the minimum time before a retry; a negative
// time means no retry.
func (s *spanSender) send(ctx context.Context, body []byte) (after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	request.Header = s.header
	response, err := s.client.Do(request)
	if err != nil {
		return -1, err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<20) // so that the connection can be used again
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 if there is none
		return time.Duration(max(seconds, 0)) * time.Second, fmt.Errorf("the collector answered %s", response.Status)
	}
	if response.StatusCode/100 != 2 {
		return -1, fmt.Errorf("the collector answered %s", response.Status)
	}
	return -1, nil
}
