package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"sync"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/client"
	cloudsync "github.com/cadastre-dev/cadastre/sync"
	"github.com/cadastre-dev/cadastre/web"
)

// cloudFollower follows the cloud of --sync, like `cadastre sync openstack
// --follow`: it is a client of the server's own API.
type cloudFollower struct {
	plan        cloudsync.Plan
	credentials cloudsync.Credentials
	token       string // only the process has it
}

// newFollower returns the follower of --sync, nil without the flag.
func newFollower(options cli.ServeOptions) (*cloudFollower, error) {
	if options.Sync == "" {
		return nil, nil
	}
	credentials, err := cloudsync.CredentialsOf(options.Sync)
	plan := cloudsync.Plan{Origin: cloudsync.OriginOf(options.Sync), Project: options.SyncProject,
		Regions: options.SyncRegions, Progress: func(*cloudsync.Pass, int) {}}
	return &cloudFollower{plan, credentials, rand.Text()}, err
}

// source returns the source of the follower's token.
func (f *cloudFollower) source() auth.Source {
	// admin, because the follower also writes definitions
	viewer := access.Viewer{UserID: "sync", ProjectID: "sync", Roles: []string{access.RoleService, access.RoleAdmin}}
	return auth.Tokens([]auth.Token{auth.NewToken(f.token, viewer)})
}

// start follows the cloud in the background until the context ends or the
// caller calls stop, by connections within the process. The caller must call
// stop before it closes the store. Without a follower start does nothing.
func (f *cloudFollower) start(ctx context.Context, api http.Handler, options web.Options) (stop func() error) {
	if f == nil {
		return func() error { return nil }
	}
	log := options.Log
	if options.TrustedOnly { // the documents of the follower are not among the trusted ones
		options.TrustedOnly, options.Metrics, options.Doors, options.Tools = false, nil, nil, web.NoTools
		api = web.New(options)
	}
	ctx, cancel := context.WithCancel(ctx)
	within := &pipe{connections: make(chan net.Conn), closed: make(chan struct{})}
	stopServing := serveAside(ctx, within, "following "+f.plan.Origin, api, log)
	server := client.New("http://localhost", client.WithToken(f.token),
		client.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: within.dial}}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		logged := func(pass *cloudsync.Pass, result cloudsync.Result, err error) { logPass(log, pass, result, err) }
		f.plan.Follow(ctx, f.credentials, server, mathrand.Float64, logged)
	}()
	return func() error {
		cancel()
		<-ended // Follow still writes the end of the current pass
		return stopServing()
	}
}

// logPass logs a pass that failed or changed something. A nil pass means that
// the cloud cannot be reached.
func logPass(log *slog.Logger, pass *cloudsync.Pass, result cloudsync.Result, err error) {
	if pass == nil {
		log.Error("cannot follow the cloud", "error", err)
		return
	}
	log = log.With("origin", pass.Origin, "region", pass.Cloud.At.Region, "kind", pass.Kind.Name)
	switch {
	case err != nil:
		log.Error("a pass failed", "error", err)
	case result.Changed():
		log.Info("a pass changed things", "created", result.Created, "updated", result.Updated,
			"absent", result.SyncCounts.Absent, "gone", result.Gone, "refused",
			result.Refused, "deleted", result.Deleted)
	}
}

// pipe is a listener for connections of the process to itself.
type pipe struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

// Accept returns the next connection.
func (p *pipe) Accept() (net.Conn, error) {
	select {
	case connection := <-p.connections:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener, but no connection.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns the address of all connections.
func (p *pipe) Addr() net.Addr {
	end, _ := net.Pipe()
	return end.LocalAddr()
}

// dial connects to the listener.
func (p *pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.connections <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), ours.Close())
	}
}
