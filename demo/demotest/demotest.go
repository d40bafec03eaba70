// Package demotest serves the demo cloud to tests of clients.
package demotest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// Serve serves the demo cloud on SQLite until the test ends, and returns its
// address.
func Serve(t testing.TB) string {
	t.Helper()
	s := Open(t, storetest.SQLite(t))
	if err := demo.Fill(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return ServeStore(t, s)
}

// Open opens the database at a URL. Everyone may discover public capabilities.
func Open(t testing.TB, url string) *store.Store {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(t.Context(), store.Options{URL: url, Log: log,
		Resources: store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ServeStore serves a store until the test ends, and then closes it. It returns
// the address of the server.
func ServeStore(t testing.TB, s *store.Store) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	authenticator := auth.New(auth.Tokens(auth.TokensOf(demo.Viewers())))
	limits := web.DefaultLimits()
	limits.OperationTime = patience.Of(t, limits.OperationTime)
	handler := web.New(web.Options{Limits: limits, Executor: graph.NewExecutor(&graph.Resolver{Store: s}, log),
		Log: log, Authenticate: authenticator.Authenticate})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, listener, handler, web.ServeOptions{Log: log}) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}
