package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Object is a value of an input type.
type Object = map[string]any

// Request is an operation with its variables.
type Request struct {
	Query     string `json:"query"`
	Variables Object `json:"variables,omitempty"`
}

// Body returns the request as it is sent.
func (r Request) Body() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and lists
	}
	return text
}

// Client is a viewer with connections to one server.
type Client struct {
	Address string // host and port
	Token   string
	HTTP    *http.Client
}

// NewClient returns a client that connects from a loopback address, by which
// servers tell clients apart. An empty address leaves the choice to the system.
func NewClient(address, token, from string, connections int, timeout time.Duration) *Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, LocalAddr: LocalAddress(from)}
	return &Client{Address: address, Token: token, HTTP: &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DisableCompression: true,
		},
	}}
}

// LocalAddress returns the address to dial from, nil for an empty one.
func LocalAddress(from string) net.Addr {
	if from == "" {
		return nil
	}
	return &net.TCPAddr{IP: net.ParseIP(from)}
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Codes of answers in addition to the codes of the API.
const (
	Answered     = "answered"      // without an error
	Disconnected = "no connection" // before the request was sent
	Unanswered   = "no answer"     // after it was sent, or while it was
)

// Answer is the response to an operation.
type Answer struct {
	Status int
	Code   string // of the first error, or one of the codes above
	Body   []byte
}

// Send sends a body and reads the answer to its end.
func (c *Client) Send(ctx context.Context, body []byte) Answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Address+"/graphql", bytes.NewReader(body))
	if err != nil {
		return Answer{Code: err.Error()}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Auth-Token", c.Token)
	response, err := c.HTTP.Do(r)
	if err != nil {
		var dialing *net.OpError
		if errors.As(err, &dialing) && dialing.Op == "dial" {
			return Answer{Code: Disconnected}
		}
		return Answer{Code: Unanswered}
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{Status: response.StatusCode, Code: Unanswered}
	}
	return Answer{Status: response.StatusCode, Code: CodeOf(got), Body: got}
}

// CodeOf returns the code of an answer. Only answers with errors begin with them.
func CodeOf(body []byte) string {
	if !bytes.HasPrefix(body, []byte(`{"errors":`)) {
		return Answered
	}
	var read struct {
		Errors []struct{ Extensions struct{ Code string } }
	}
	if err := json.Unmarshal(body, &read); err != nil || len(read.Errors) == 0 {
		return "not JSON"
	}
	return read.Errors[0].Extensions.Code
}

// patience bounds how long Ask asks a server again that is busy.
const patience = 5 * time.Minute

// Ask sends a request and decodes the data of its answer into a value, unless
// that is nil. It asks again while the server limits the client's rate or has no
// room. An answer with any other error is an error.
func (c *Client) Ask(ctx context.Context, r Request, into any) error {
	body := r.Body()
	for began := time.Now(); ; {
		got := c.Send(ctx, body)
		switch {
		case got.Code == Answered && got.Status == http.StatusOK && into == nil:
			return nil
		case got.Code == Answered && got.Status == http.StatusOK:
			return json.Unmarshal(got.Body, &struct{ Data any }{into})
		case got.Code != "RATE_LIMITED" && got.Code != "UNAVAILABLE" || time.Since(began) > patience:
			return fmt.Errorf("%d %s: %s", got.Status, got.Code, Beginning(got.Body))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Beginning returns the first 500 bytes, for error messages.
func Beginning(text []byte) []byte { return text[:min(len(text), 500)] }

// Get returns the text at a path of the server.
func (c *Client) Get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := c.HTTP.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(text), err
}

// Metrics returns the server's metrics by name, labels included.
func (c *Client) Metrics(ctx context.Context) (map[string]float64, error) {
	text, err := c.Get(ctx, "/metrics")
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = number
		}
	}
	return all, err
}
