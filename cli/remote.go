package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/alecthomas/kong"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/cadastre-dev/cadastre/client"
)

// defaultServer is the server without a flag, variable or context.
const defaultServer = "http://127.0.0.1:8080"

// remote is the server from the flags of a command and the environment.
type remote struct {
	server
	context, cloud string
	isNamed        bool // even by an empty address
}

// remoteOf returns the server from the flags of a command.
func remoteOf(c *call) remote {
	of := remote{context: c.text("context"), cloud: c.text("os-cloud")}
	of.address, of.token, of.caCert = c.text("server"), c.text("token"), c.text("ca-cert")
	of.timeout, _ = time.ParseDuration(c.text("timeout")) // the parser has read it
	of.retries = c.number("retries")
	if c.parsed != nil {
		of.isNamed = slices.ContainsFunc(c.parsed.Path, func(part *kong.Path) bool {
			return part.Flag != nil && part.Flag.Name == "server"
		})
	}
	return of
}

// choose prepares the session for a server.
func (s *session) choose(of remote) error {
	where, err := of.where()
	if err != nil {
		return err
	}
	if of.isNamed {
		where.address = of.address
	}
	if _, err := client.Endpoint(where.address); err != nil {
		return usagef("--server: %w", err)
	}
	s.server, s.api = where, &asking{run: s}
	return nil
}

// server is a server and the settings of requests to it.
type server struct {
	address, token, caCert string
	timeout                time.Duration
	retries                int
	credentials            func(ctx context.Context) (string, error) // returns a token; nil if token is set
}

// where returns the server from the flags, the environment and the contexts, in
// this order. The token comes from the context of --context, the cloud of
// --os-cloud, the current context, or the environment. A token of a context is
// only for its server.
func (r remote) where() (server, error) {
	where := r.server
	saved, err := loadContexts()
	if err != nil {
		return where, err
	}
	of, err := saved.named(r.context)
	if err != nil {
		return where, err
	}
	forServer := r.address == "" || r.address == of.Server
	where.address = cmp.Or(where.address, of.Server, defaultServer)
	if forServer {
		where.caCert = cmp.Or(where.caCert, of.CACert)
	}
	switch {
	case where.token != "":
	case r.context == "" && r.cloud != "":
		where.credentials = cloudToken(r.cloud)
	case forServer && of.Token != "":
		where.token = of.Token
	case forServer && of.Cloud != "":
		where.credentials = cloudToken(of.Cloud)
	case os.Getenv("OS_TOKEN") != "":
		where.token = os.Getenv("OS_TOKEN")
	case os.Getenv("OS_AUTH_URL") != "":
		where.credentials = cloudToken("")
	}
	return where, nil
}

// connect returns a client of a server.
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

// trusting returns a client that accepts certificates of the authorities in a
// file.
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

// asking sends operations to the server of a session and explains errors. It
// gets a token before the first operation.
type asking struct {
	run    *session
	mu     sync.Mutex // guards client
	client *client.Client
}

// MakeRequest sends an operation.
func (a *asking) MakeRequest(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	server, err := a.connected(ctx)
	if err != nil {
		return err
	}
	return a.explained(server.MakeRequest(ctx, req, resp))
}

// connected returns the client of the server.
func (a *asking) connected(ctx context.Context) (_ *client.Client, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == nil {
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

// cloud is an OpenStack, with the credentials of a user of it.
type cloud struct {
	credentials gophercloud.AuthOptions
	at          gophercloud.EndpointOpts // its region is "" for none
	settings    *tls.Config
}

// cloudNamed returns a cloud of clouds.yaml, or with an empty name the cloud that
// the OS_* variables name.
func cloudNamed(name string) (of cloud, err error) {
	options, called := []clouds.ParseOption{clouds.WithCloudName(name)}, fmt.Sprintf("the cloud %q", name)
	if name == "" {
		if os.Getenv("OS_AUTH_URL") == "" {
			return of, usagef("the OS_* variables: OS_AUTH_URL is missing")
		}
		options, called = []clouds.ParseOption{clouds.WithCloudName("variables"), clouds.WithCloudsYAML(cloudOfVariables())}, "the OS_* variables"
	}
	if of.credentials, of.at, of.settings, err = clouds.Parse(options...); err != nil {
		return of, usagef("%s: %w", called, err)
	}
	return of, nil
}

// cloudOfVariables returns a clouds.yaml with the OS_* variables. Each is the
// setting of its name, as OpenStack's clients read it, or of a newer name.
func cloudOfVariables() io.Reader {
	newer := strings.NewReplacer("tenant_", "project_", "userid", "user_id")
	auth := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if name, ok := strings.CutPrefix(name, "OS_"); ok {
			name = strings.ToLower(name)
			if newer.Replace(name) == name || auth[newer.Replace(name)] == "" {
				auth[newer.Replace(name)] = value
			}
		}
	}
	text, _ := json.Marshal(map[string]any{"clouds": map[string]any{"variables": map[string]any{"auth": auth}}}) // strings can be JSON, and JSON is YAML
	return bytes.NewReader(text)
}

// cloudToken returns a function that gets a token of a cloud that cloudNamed
// finds.
func cloudToken(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		of, err := cloudNamed(name)
		if err != nil {
			return "", err
		}
		provider, err := of.signIn(ctx)
		if err != nil {
			return "", err
		}
		return provider.TokenID, nil
	}
}

// signIn gets a token for the credentials from Keystone.
func (of cloud) signIn(ctx context.Context) (*gophercloud.ProviderClient, error) {
	credentials := of.credentials
	provider, err := config.NewProviderClient(ctx, credentials, config.WithTLSConfig(of.settings))
	if refused := (gophercloud.ErrUnexpectedResponseCode{}); errors.As(err, &refused) && refused.Actual == 401 {
		return nil, statusError{
			fmt.Errorf("the Keystone at %s does not accept the credentials", credentials.IdentityEndpoint),
			exitForbidden}
	}
	if err != nil {
		return nil, fmt.Errorf("request a token from the Keystone at %s: %w", credentials.IdentityEndpoint, err)
	}
	return provider, nil
}
