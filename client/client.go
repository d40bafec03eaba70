// Package client is the typed Go client of Cadastre. It has one function for
// each operation in operations/, generated from the schema, and an iterator
// over the members of each list, such as Namespaces and Resources. The command
// line sends all its requests with this package.
//
//	server := client.New("https://cadastre.example.org", client.WithToken(token))
//	answer, err := client.ReadNamespace(ctx, server, "Cadastre::VirtualCPUTopology")
//
// Code returns the code of a server's error.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"
)

// DefaultTimeout is the default time limit of a request.
const DefaultTimeout = 60 * time.Second

// Client sends operations to a server. It is safe for concurrent use.
type Client struct {
	via      graphql.Client
	endpoint string
	streams  *http.Client // without a timeout
	retries  int
}

// options are the settings of New.
type options struct {
	token   string
	timeout *time.Duration
	http    *http.Client
	retries int
}

// Option changes a client that New returns.
type Option func(*options)

// WithToken sets the token that is sent with every request; empty is none.
func WithToken(token string) Option { return func(o *options) { o.token = token } }

// WithTimeout sets the time limit of a request, from the connection to the end
// of the answer; 0 is no limit. A stream has none.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) { o.timeout = &timeout }
}

// WithHTTPClient sets the client that sends requests, for example through a
// proxy or with custom certificates. New copies it. Its timeout applies unless
// WithTimeout sets another.
func WithHTTPClient(sender *http.Client) Option { return func(o *options) { o.http = sender } }

// New returns a client of a server with an address for Endpoint. By default, a
// request that takes longer than DefaultTimeout fails, and a request for which
// the server has no capacity is sent again, as WithRetries describes. If
// Endpoint refuses the address, every request fails with the error of Endpoint.
func New(server string, opts ...Option) *Client {
	o := &options{http: &http.Client{Timeout: DefaultTimeout}, retries: DefaultRetries}
	for _, option := range opts {
		option(o)
	}
	sender := *o.http
	if o.timeout != nil {
		sender.Timeout = *o.timeout
	}
	endpoint, err := Endpoint(server)
	sender.Transport = authorized{o.token, endpoint, err, sender.Transport, new(position)}
	streams := sender
	streams.Timeout = 0
	return &Client{via: graphql.NewClient(endpoint, &sender), endpoint: endpoint, streams: &streams, retries: o.retries}
}

// MakeRequest sends an operation and decodes the answer into resp; generated
// functions call it. If the server refuses the operation or a part of it, the
// error is an *Errors. An answer with neither data nor errors is an error, too:
// it can come from a proxy.
func (c *Client) MakeRequest(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	return c.repeated(ctx, req, func(ctx context.Context) error {
		wait, data := &retryAfter{}, json.RawMessage(nil)
		answer := graphql.Response{Data: &data}
		err := errorsOf(c.via.MakeRequest(context.WithValue(ctx, retryAfterKey{}, wait), req, &answer), wait.wait)
		resp.Errors, resp.Extensions = answer.Errors, answer.Extensions
		if len(data) == 0 || answer.Data == nil { // the member is absent or null
			if err == nil {
				err = errors.New("the answer is not from a Cadastre server: it has no data")
			}
			return err
		}
		return cmp.Or(err, json.Unmarshal(data, &resp.Data))
	})
}

// Endpoint returns the URL of a server's API. The address may omit the scheme:
// it defaults to http for localhost and loopback addresses and to https for
// others. A final /graphql is optional. Valid addresses are 127.0.0.1:8080,
// cadastre.example.org and https://example.org/cadastre/graphql.
func Endpoint(server string) (string, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "https://" + text
		if parsed, err := url.Parse(text); err == nil && isThisMachine(parsed.Hostname()) {
			text = "http" + strings.TrimPrefix(text, "https")
		}
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" ||
		parsed.RawQuery != "" || parsed.Fragment != "" {
		return "",
			fmt.Errorf("%q is not the address of a server: write it as https://cadastre.example.org or 127.0.0.1:8080",
				server)
	}
	parsed.Path = strings.TrimSuffix(strings.TrimRight(parsed.Path, "/"), "/graphql") + "/graphql"
	return parsed.String(), nil
}

// isThisMachine reports whether a host is localhost or a loopback address.
func isThisMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// positionHeader is the header with the position of the database after a
// mutation. Queries that send it see the mutation on every server.
const positionHeader = "Cadastre-Position"

// position is the highest position that a client has seen.
type position struct {
	mu   sync.Mutex
	text string
}

// at records the position of an answer, "" for none, and returns the latest
// one. A later position is longer, or as long and greater as a string.
func (p *position) at(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(text) > len(p.text) || len(text) == len(p.text) && text > p.text {
		p.text = text
	}
	return p.text
}

// authorized adds a token and the highest position to every request, and an
// idempotency key to mutations. It records the Retry-After of responses. A
// redirect to another host, or from https to http, does not get the token. With
// an invalid address, every request fails.
type authorized struct {
	token    string
	endpoint string
	wrong    error
	next     http.RoundTripper // nil is http.DefaultTransport
	last     *position
}

// RoundTrip sends a copy of a request.
func (a authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	if a.wrong != nil {
		return nil, a.wrong
	}
	request = request.Clone(request.Context())
	if err := redirect(request); err != nil {
		return nil, err
	}
	at, err := url.Parse(a.endpoint)
	isSafe := err == nil && request.URL.Hostname() == at.Hostname() &&
		(request.URL.Scheme == at.Scheme || request.URL.Scheme == "https")
	if isSafe && a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	if key, ok := request.Context().Value(idempotencyKey{}).(string); ok {
		request.Header.Set(idempotencyHeader, key)
	}
	if last := a.last.at(""); last != "" {
		request.Header.Set(positionHeader, last)
	}
	response, err := cmp.Or(a.next, http.DefaultTransport).RoundTrip(request)
	if err == nil {
		a.last.at(response.Header.Get(positionHeader))
	}
	if wait, ok := request.Context().Value(retryAfterKey{}).(*retryAfter); ok && err == nil {
		wait.wait = response.Header.Get("Retry-After")
	}
	return response, err
}
