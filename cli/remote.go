package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/client"
)

// defaultServer is asked where no flag, variable or context names another.
const defaultServer = "http://127.0.0.1:8080"

// remote are the flags of every command that is a client of a server.
type remote struct {
	Server  string        `placeholder:"ADDRESS" group:"Server" help:"Address of the server, with or without the scheme and /graphql; without a scheme it is http for this machine and https for others. That of the context when absent, or \"http://127.0.0.1:8080\"."`
	Token   string        `placeholder:"TOKEN" group:"Server" help:"Token to send to the server; that of the context when absent."`
	Context string        `placeholder:"NAME" group:"Server" help:"Context of cadastre login to take the server and the token from."`
	OSCloud string        `name:"os-cloud" env:"OS_CLOUD" placeholder:"NAME" group:"Server" help:"Cloud of clouds.yaml whose Keystone gives the token."`
	CACert  string        `name:"ca-cert" type:"path" placeholder:"FILE" group:"Server" help:"Certificates of authorities that the server's is checked with, PEM; those of this machine when absent."`
	Timeout time.Duration `default:"60s" min:"1ms" group:"Server" help:"How long a request may take."`
	Retries int           `default:"3" min:"0" max:"10" group:"Server" help:"How often a request is sent again that the server had no capacity for, or that no answer came to; a change is made once, however often it is sent."`
}

// common are the flags of every command that asks a server.
type common struct {
	remote
	output
}

// AfterApply prepares the session for the server that the flags name. The command
// line calls it.
func (c *common) AfterApply(run *session, parsed *kong.Context) error {
	if err := checkNumbers(parsed); err != nil {
		return err
	}
	run.setForm(c.output)
	where, err := c.remote.where()
	if err != nil {
		return err
	}
	for _, part := range parsed.Path {
		if part.Flag != nil && part.Flag.Name == "server" {
			where.address = c.Server // an empty one, too
		}
	}
	if _, err := client.Endpoint(where.address); err != nil {
		return usagef("--server: %w", err)
	}
	run.server, run.api = where, &asking{run: run}
	return nil
}

// server is a server and how it is asked.
type server struct {
	address, token, caCert string
	timeout                time.Duration
	retries                int
	credentials            func(ctx context.Context) (string, error) // of a token; nil where there is one
}

// where returns the server that the flags, the environment and the contexts name,
// in this order.
func (r remote) where() (server, error) {
	where := server{address: r.Server, token: r.Token, caCert: r.CACert, timeout: r.Timeout, retries: r.Retries}
	saved, err := loadContexts()
	if err != nil {
		return where, err
	}
	of, err := saved.named(r.Context)
	if err != nil {
		return where, err
	}
	if where.address == "" {
		where.address = of.Server
	}
	if where.caCert == "" && (r.Server == "" || r.Server == of.Server) {
		where.caCert = of.CACert
	}
	if where.address == "" {
		where.address = defaultServer
	}
	if where.token == "" {
		r.authenticate(&where, of)
	}
	return where, nil
}

// authenticate says where the token comes from: the context that --context names,
// the cloud of --os-cloud, the current context, or the environment. A token of a
// context is only for its server.
func (r remote) authenticate(where *server, of savedContext) {
	forServer := r.Server == "" || r.Server == of.Server
	switch {
	case r.Context == "" && r.OSCloud != "":
		where.credentials = cloudToken(r.OSCloud)
	case forServer && of.Token != "":
		where.token = of.Token
	case forServer && of.Cloud != "":
		where.credentials = cloudToken(of.Cloud)
	case os.Getenv("OS_TOKEN") != "":
		where.token = os.Getenv("OS_TOKEN")
	case os.Getenv("OS_AUTH_URL") != "":
		where.credentials = environmentToken
	}
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
	options := []client.Option{client.WithToken(where.token), client.WithTimeout(where.timeout), client.WithRetries(where.retries)}
	if where.caCert != "" {
		sender, err := trusting(where.caCert)
		if err != nil {
			return nil, usagef("--ca-cert: %w", err)
		}
		options = append([]client.Option{client.WithHTTPClient(sender)}, options...)
	}
	return client.New(where.address, options...), nil
}

// trusting returns what sends requests to servers whose certificates are of the
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

// asking sends operations to the server of a session, and says of what fails what
// people need to know. It gets a token when the first is sent.
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

// explained returns an error of the client as people need to know it.
func (a *asking) explained(err error) error {
	if err == nil {
		return nil
	}
	return &askError{a.run, err}
}

// environment returns the value that the environment has for a flag.
func environment(flag *kong.Flag) string {
	for _, name := range flag.Envs {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// onlyTheServer takes the environment variables of all flags of clients, except
// those that say which server is asked, by whom, and in which form the answer is
// shown: none decides what a command does.
func onlyTheServer(parser *kong.Kong) error {
	var walk func(node *kong.Node)
	walk = func(node *kong.Node) {
		for _, flag := range node.Flags {
			if !slices.Contains([]string{"server", "token", "context", "os-cloud", "ca-cert", "timeout", "output"}, flag.Name) {
				flag.Envs, flag.Tag.Envs = nil, nil
			}
		}
		for _, child := range node.Children {
			if child.Name != "serve" {
				walk(child)
			}
		}
	}
	walk(parser.Model.Node)
	return nil
}
