package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	cloudsync "github.com/cadastre-dev/cadastre/sync"
)

// defaultServer is the server without a flag, variable or context.
const defaultServer = "http://127.0.0.1:8080"

// server is a server and the settings of requests to it.
type server struct {
	address, token, caCert string
	timeout                time.Duration
	retries                int
	credentials            func(ctx context.Context) (string, error) // returns a token of a cloud; nil without a cloud
}

// choose prepares requests to the server from the flags, the environment and
// the contexts, in this order. The token comes from --token, the context of
// --context, the cloud of --os-cloud, the current context, or the OS_*
// variables. A token and authorities of a context are only for its server.
func (c *call) choose() error {
	saved, err := loadContexts()
	if err != nil {
		return err
	}
	of, err := saved.named(c.text("context"))
	if err != nil {
		return err
	}
	address := c.text("server")
	where := server{address: cmp.Or(address, of.Server, defaultServer), token: c.text("token"),
		retries: c.number("retries")}
	where.timeout, _ = time.ParseDuration(c.text("timeout")) // the parser has read it
	if slices.ContainsFunc(c.line.given, func(one given) bool { return one.flag == "server" }) {
		where.address = address // even an empty one
	}
	if address != "" && address != of.Server {
		of = savedContext{}
	}
	where.caCert = cmp.Or(c.text("ca-cert"), of.CACert)
	switch cloud := c.text("os-cloud"); {
	case where.token != "":
	case c.text("context") == "" && cloud != "":
		where.credentials = cloudToken(cloud)
	case of.Token != "":
		where.token = of.Token
	case of.Cloud != "":
		where.credentials = cloudToken(of.Cloud)
	case os.Getenv("OS_TOKEN") != "":
		where.token = os.Getenv("OS_TOKEN")
	case os.Getenv("OS_AUTH_URL") != "":
		where.credentials = cloudToken("")
	}
	if _, err := client.Endpoint(where.address); err != nil {
		return usagef("--server: %w", err)
	}
	c.server, c.api = where, &asking{run: c}
	return nil
}

func connect(ctx context.Context, where server) (*client.Client, error) {
	if where.credentials != nil {
		ctx, cancel := context.WithTimeout(ctx, where.timeout)
		defer cancel()
		token, err := where.credentials(ctx)
		if err != nil {
			return nil, err
		}
		where.token = token
	}
	options := []client.Option{client.WithToken(where.token), client.WithTimeout(where.timeout),
		client.WithRetries(where.retries)}
	if where.caCert != "" {
		sender, err := trusting(where.caCert)
		if err != nil {
			return nil, usagef("--ca-cert: %w", err)
		}
		options = append([]client.Option{client.WithHTTPClient(sender)}, options...)
	}
	return client.New(where.address, options...), nil
}

// trusting returns an HTTP client that accepts only certificates of the
// authorities in a file.
func trusting(file string) (*http.Client, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}

// asking sends operations to the server of a call and explains errors. It
// gets a token before the first operation.
type asking struct {
	run    *call
	mu     sync.Mutex // guards client
	client *client.Client
}

// MakeRequest sends an operation. If the server no longer accepts the token of
// a cloud, it gets a new token and sends the operation once more.
func (a *asking) MakeRequest(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	server, err := a.connected(ctx, nil)
	if err != nil {
		return err
	}
	err = server.MakeRequest(ctx, req, resp)
	if client.Code(err) == client.Unauthenticated && a.run.server.credentials != nil {
		if server, err = a.connected(ctx, server); err != nil {
			return err
		}
		err = server.MakeRequest(ctx, req, resp)
	}
	return a.explained(err)
}

// connected returns the client of the server. It makes a new client if there is
// none yet, or if the parameter old is the current one.
func (a *asking) connected(ctx context.Context, old *client.Client) (_ *client.Client, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == nil || a.client == old {
		a.client, err = connect(ctx, a.run.server)
	}
	return a.client, err
}

// explained adds the server's address and the flags to an error of the client.
func (a *asking) explained(err error) error {
	if err == nil {
		return nil
	}
	return &askError{a.run, err}
}

// cloudToken returns a function that gets a token of a cloud of clouds.yaml. An
// empty name means the cloud of the OS_* variables.
func cloudToken(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		of, err := signIn(ctx, name, client.DefaultTimeout)
		if err != nil {
			return "", err
		}
		return of.Provider.TokenID, nil
	}
}

// signIn signs in at a cloud. Its requests have a time limit.
func signIn(ctx context.Context, name string, timeout time.Duration) (*cloudsync.Cloud, error) {
	credentials, err := cloudsync.CredentialsOf(name)
	if err != nil {
		return nil, UsageError(err)
	}
	of, err := credentials.SignIn(ctx, timeout)
	if errors.Is(err, cloudsync.ErrRefused) {
		return nil, statusError{err, exitForbidden}
	}
	return of, err
}
