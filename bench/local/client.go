package local

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

// Object is a value of an input type.
type Object = map[string]any

// Call is an HTTP request. Without a method it is a POST with a body, or a GET
// without one. An empty path is the path of the GraphQL endpoint.
type Call struct {
	Method, Path string
	Body         []byte
}

// Operation returns the call of an operation of the GraphQL API. Its variables are
// strings, numbers, lists and objects.
func Operation(document string, variables Object) Call {
	text, err := json.Marshal(struct {
		Query     string `json:"query"`
		Variables Object `json:"variables,omitempty"`
	}{document, variables})
	if err != nil {
		panic(err)
	}
	return Call{Body: text}
}

// Client is a viewer with connections to one server. Clients share the processors
// with the servers that they time, so a client does little: each connection writes
// from one buffer, and reads into the caller's.
type Client struct {
	Address string       // host and port
	Headers string       // lines in each request
	Once    bool         // whether a connection serves only one request
	Delayed atomic.Int64 // answers after which Insist sent the request again
	dialer  *net.Dialer
	timeout time.Duration
	idle    chan *connection // unused connections, open or not
}

// connection has one request at a time.
type connection struct {
	socket  net.Conn // nil while it is not open
	reader  *bufio.Reader
	message []byte
}

// NewClient returns a client that connects from a loopback address, by which
// servers tell clients apart. An empty address leaves the choice to the system.
func NewClient(address, headers, from string, connections int, timeout time.Duration) *Client {
	c := &Client{Address: address, Headers: headers, dialer: Dialer(from), timeout: timeout,
		idle: make(chan *connection, connections)}
	for range connections {
		c.idle <- &connection{}
	}
	return c
}

// Bearing returns the headers of operations with a bearer token.
func Bearing(token string) string {
	return "Content-Type: application/json\r\nAuthorization: Bearer " + token + "\r\n"
}

// Dial opens a WebSocket from a loopback address.
func Dial(ctx context.Context, host, from string, header http.Header) (*websocket.Conn, *http.Response, error) {
	transport := &http.Transport{DialContext: Dialer(from).DialContext, DisableKeepAlives: true}
	return websocket.Dial(ctx, "ws://"+host+"/graphql", &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: header,
		HTTPClient: &http.Client{Transport: transport},
	})
}

// Dialer returns a dialer that connects from a loopback address, or from any
// address for an empty one.
func Dialer(from string) *net.Dialer {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return dialer
}

// Close closes the connections, after it has waited for requests in progress.
func (c *Client) Close() {
	for range cap(c.idle) {
		one := <-c.idle
		one.close()
		c.idle <- one
	}
}

func (c *connection) close() {
	if c.socket != nil {
		_ = c.socket.Close()
		c.socket = nil
	}
}

// Codes of answers in addition to the codes of the API.
const (
	Answered     = "answered"      // without a GraphQL error, with any status
	Disconnected = "no connection" // before the request was sent
	Unanswered   = "no answer"     // after it was sent, or while it was
)

// Answer is the response to a request. If it has no usable data, it is returned
// as an error.
type Answer struct {
	Status int
	Code   string // of the first error, or one of the codes above
	Body   []byte
	wait   time.Duration // after which to send again
}

func (a Answer) Error() string { return fmt.Sprintf("%d %s: %.500s", a.Status, a.Code, a.Body) }

// Send sends a request and reads the answer into a buffer. A nil buffer means a
// new one.
func (c *Client) Send(ctx context.Context, of Call, into *bytes.Buffer) Answer {
	if into == nil {
		into = &bytes.Buffer{}
	}
	var one *connection
	select {
	case one = <-c.idle:
	case <-ctx.Done():
		return Answer{Code: Disconnected}
	}
	defer func() { c.idle <- one }()
	if one.socket != nil && one.isClosed() {
		one.close()
	}
	if one.socket == nil {
		socket, err := c.dialer.DialContext(ctx, "tcp", c.Address)
		if err != nil {
			return Answer{Code: Disconnected}
		}
		one.socket, one.reader = socket, bufio.NewReader(socket)
	}
	response, err := one.exchange(ctx, c, of, into)
	if err != nil || response.Close || c.Once {
		one.close()
	}
	if err != nil {
		return Answer{Code: Unanswered}
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return Answer{response.StatusCode, cmp.Or(codeOf(into.Bytes()), response.Status), into.Bytes(),
		time.Duration(seconds) * time.Second}
}

// isClosed reports whether the server has closed the connection.
func (c *connection) isClosed() bool {
	raw, err := c.socket.(syscall.Conn).SyscallConn()
	if err != nil {
		return true
	}
	var peeked error
	err = raw.Read(func(socket uintptr) bool {
		_, _, peeked = syscall.Recvfrom(int(socket), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return err != nil || !errors.Is(peeked, syscall.EAGAIN)
}

// exchange sends a request and reads its answer.
func (c *connection) exchange(ctx context.Context, by *Client, of Call, into *bytes.Buffer) (*http.Response, error) {
	socket := c.socket
	if err := socket.SetDeadline(time.Now().Add(by.timeout)); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Now()) })()
	method, length := http.MethodGet, ""
	if of.Body != nil {
		method, length = http.MethodPost, fmt.Sprintf("Content-Length: %d\r\n", len(of.Body))
	}
	method = cmp.Or(of.Method, method)
	c.message = fmt.Appendf(c.message[:0], "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s", method,
		cmp.Or(of.Path, "/graphql"), by.Address, by.Headers, length)
	c.message = append(append(c.message, "\r\n"...), of.Body...)
	if _, err := socket.Write(c.message); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	into.Reset()
	_, err = into.ReadFrom(response.Body)
	return response, err
}

// codeOf returns the code of an answer. An answer begins with its errors, if
// any.
func codeOf(body []byte) string {
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

// patience is the maximum time that a client keeps retrying.
const patience = 5 * time.Minute

// Insist sends a request and reads the answer into a buffer. Like a good
// client, it waits and retries while the server limits the rate or is full. An
// answer with errors, or without a status 2xx, is an error of type Answer.
func (c *Client) Insist(ctx context.Context, of Call, into *bytes.Buffer) ([]byte, error) {
	for began := time.Now(); ; c.Delayed.Add(1) {
		got := c.Send(ctx, of, into)
		if got.Code == Answered && got.Status/100 == 2 {
			return got.Body, nil
		}
		if got.wait == 0 && slices.Contains([]string{"RATE_LIMITED", "UNAVAILABLE"}, got.Code) {
			got.wait = 500 * time.Millisecond
		}
		if got.wait == 0 || time.Since(began) > patience || !pause.For(ctx, got.wait) {
			return nil, got
		}
	}
}

// Ask sends an operation with Insist and decodes the data into a value, unless
// the value is nil.
func (c *Client) Ask(ctx context.Context, of Call, into any) error {
	body, err := c.Insist(ctx, of, nil)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(body, &struct{ Data any }{into})
}

// get returns the body at a path of the server. A status other than 200 is an
// error.
func (c *Client) get(ctx context.Context, path string) (string, error) {
	got := c.Send(ctx, Call{Path: path}, nil)
	if got.Status != http.StatusOK {
		return "", got
	}
	return string(got.Body), nil
}

// Metrics returns the server's metrics by name, labels included.
func (c *Client) Metrics(ctx context.Context) (map[string]float64, error) {
	text, err := c.get(ctx, "/metrics")
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = number
		}
	}
	return all, err
}

// Mutation returns a mutation with one field. The name of its input type
// follows from the name of the field.
func Mutation(field string, input Object) Call {
	inputType := strings.ToUpper(field[:1]) + field[1:] + "Input"
	document := "mutation($input: " + inputType + "!) { " + field + "(input: $input) { __typename } }"
	return Operation(document, Object{"input": input})
}

// InChunks sends inputs in mutations of up to size inputs. Each connection
// sends one mutation at a time.
func (c *Client) InChunks(ctx context.Context, field, list string, all []Object, size int) error {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(cap(c.idle))
	for some := range slices.Chunk(all, size) {
		group.Go(func() error { return c.Ask(sending, Mutation(field, Object{list: some}), nil) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
