package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/web"
)

// manyPoints is a limit that no client reaches.
const manyPoints = 1_000_000_000

// floorCommand makes this program the floor, which measures the minimum cost of
// a request.
const floorCommand = "floor"

// runFloor serves the same answer to every request until the context ends. A
// request passes the same steps as in Cadastre: web.Serve, the tokens of auth, a
// request id, a log line, limits for addresses and viewers, slots and a time limit.
// Package web does not export the last five, so the floor builds them from the same
// parts: slog, golang.org/x/time/rate, http.CrossOriginProtection and
// http.MaxBytesReader. It lacks metrics, gzip and the reading of JSON.
func runFloor(ctx context.Context, args []string) error {
	debug.SetGCPercent(400) // as in the server
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	address := flags.String("listen", "", "`address` to listen on")
	tokens := flags.String("tokens", "", "`file` of tokens")
	file := flags.String("answer", "", "`file` with the answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	known, err := auth.ReadTokens(*tokens)
	if err != nil {
		return err
	}
	answer, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	f := &floor{
		authenticator: auth.New(auth.Tokens(known)), answer: answer, slots: make(chan struct{}, 256),
		log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	mux := http.NewServeMux()
	mux.Handle("POST /graphql", http.NewCrossOriginProtection().Handler(f))
	return web.Serve(ctx, listener, mux, web.ServeOptions{Log: f.log})
}

// floor writes one answer.
type floor struct {
	authenticator *auth.Authenticator
	answer        []byte
	slots         chan struct{}
	log           *slog.Logger
	buckets       sync.Map // of *rate.Limiter, by address and by viewer
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	id := cmp.Or(r.Header.Get("X-Request-Id"), rand.Text())
	header := w.Header()
	header.Set("X-Request-Id", id)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Add("Vary", "Accept")
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	status, viewer := f.admit(r, address)
	if status == http.StatusOK {
		f.slots <- struct{}{}
		defer func() { <-f.slots }()
		ctx, cancel := context.WithTimeout(access.WithViewer(r.Context(), viewer), requestTime)
		defer cancel()
		f.write(w, r.WithContext(ctx))
	} else {
		w.WriteHeader(status)
	}
	f.log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("requestId", id),
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status),
		slog.Int("bytes", len(f.answer)), slog.Duration("took", time.Since(began)), slog.String("address", address),
		slog.String("user", viewer.UserID), slog.String("operation", ""), slog.String("code", ""))
}

// admit returns the viewer of a request and status 200, or the status of a
// refusal.
func (f *floor) admit(r *http.Request, address string) (int, access.Viewer) {
	if !f.take(address) {
		return http.StatusTooManyRequests, access.Viewer{}
	}
	viewer, err := f.authenticator.Authenticate(r.Context(), r.Header)
	switch {
	case err != nil:
		return http.StatusUnauthorized, viewer
	case !f.take(viewer.UserID + "\x00" + viewer.ProjectID):
		return http.StatusTooManyRequests, viewer
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return http.StatusUnsupportedMediaType, viewer
	}
	return http.StatusOK, viewer
}

// take takes a point from a bucket. It returns false if the bucket is empty.
func (f *floor) take(key string) bool {
	bucket, ok := f.buckets.Load(key)
	if !ok {
		bucket, _ = f.buckets.LoadOrStore(key, rate.NewLimiter(manyPoints, 4*manyPoints))
	}
	return bucket.(*rate.Limiter).AllowN(time.Now(), 1)
}

// write reads the request to its end and writes the answer.
func (f *floor) write(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, manyPoints))
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/graphql-response+json; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(f.answer)))
	_, _ = w.Write(f.answer) // the client may have gone
}
