// Package client is the typed Go client of Cadastre: one function for each
// operation in operations/, generated from the schema. The command line is its
// first user.
package client

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"
)

//go:generate go run github.com/Khan/genqlient genqlient.yaml

// DefaultTimeout is how long a request of a client may take by default.
const DefaultTimeout = 60 * time.Second

// Option changes a client that New returns.
type Option func(*http.Client)

// WithTimeout sets how long a request may take, from the connection to the end
// of the answer; 0 is no limit.
func WithTimeout(timeout time.Duration) Option {
	return func(c *http.Client) { c.Timeout = timeout }
}

// New returns a client of a server, whose address is as Endpoint takes it, which
// sends the token with every request. A request that takes longer than
// DefaultTimeout fails. With an address that Endpoint refuses, every request
// fails with its error.
func New(server, token string, options ...Option) graphql.Client {
	endpoint, err := Endpoint(server)
	c := &http.Client{Transport: bearer{token, err}, Timeout: DefaultTimeout}
	for _, option := range options {
		option(c)
	}
	return graphql.NewClient(endpoint, c)
}

// Endpoint returns the URL of a server's API. The address of the server may lack
// the scheme, which is then http for this machine (localhost and loopback
// addresses) and https for others, and it may end in /graphql or not:
// 127.0.0.1:8080, cadastre.example.org and https://example.org/cadastre/graphql
// are addresses.
func Endpoint(server string) (string, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "https://" + text
		if parsed, err := url.Parse(text); err == nil && isThisMachine(parsed.Hostname()) {
			text = "http" + strings.TrimPrefix(text, "https")
		}
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return "", fmt.Errorf("%q is not the address of a server: write it as https://cadastre.example.org or 127.0.0.1:8080", server)
	}
	parsed.Path = strings.TrimSuffix(strings.TrimRight(parsed.Path, "/"), "/graphql") + "/graphql"
	return parsed.String(), nil
}

// isThisMachine reports whether a host is a name or an address of the machine
// that asks.
func isThisMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// bearer sends a token with every request, unless the address is wrong.
type bearer struct {
	token string
	wrong error
}

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.wrong != nil {
		return nil, b.wrong
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(request)
}
