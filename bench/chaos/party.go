package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// requestTime bounds one request of a party, the answer included.
const requestTime = 20 * time.Second

// party is a viewer with the connections of their client to one server.
type party struct {
	address string // host and port
	token   string
	http    *http.Client
}

// newParty returns a party that connects from an address of this machine: servers
// tell clients apart by it.
func newParty(address, token, from string, connections int) *party {
	dialer := &net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &party{address: address, token: token, http: &http.Client{
		Timeout: requestTime,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DisableCompression: true,
		},
	}}
}

func (p *party) close() { p.http.CloseIdleConnections() }

// Codes of answers besides those of the API.
const (
	answered     = "answered"      // without an error
	disconnected = "no connection" // before the request was sent
	unanswered   = "no answer"     // after it was sent, or while it was
)

// answer is what came back.
type answer struct {
	status int
	code   string // of the first error
	body   []byte
}

// send sends a body and reads the answer to its end.
func (p *party) send(ctx context.Context, body []byte) answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		return answer{code: err.Error()}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Auth-Token", p.token)
	response, err := p.http.Do(r)
	if err != nil {
		var dialing *net.OpError
		if errors.As(err, &dialing) && dialing.Op == "dial" {
			return answer{code: disconnected}
		}
		return answer{code: unanswered}
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{status: response.StatusCode, code: unanswered}
	}
	return answer{status: response.StatusCode, code: codeOf(got), body: got}
}

// codeOf returns the code of an answer. Only answers with errors begin with them.
func codeOf(body []byte) string {
	if !bytes.HasPrefix(body, []byte(`{"errors":`)) {
		return answered
	}
	var read struct {
		Errors []struct{ Extensions struct{ Code string } }
	}
	if err := json.Unmarshal(body, &read); err != nil || len(read.Errors) == 0 {
		return "not JSON"
	}
	return read.Errors[0].Extensions.Code
}

// ask sends a request and reads the data of its answer into a value, unless that
// is nil. An answer with any error is an error.
func (p *party) ask(ctx context.Context, of request, into any) error {
	got := p.send(ctx, of.body())
	if got.code != answered {
		return fmt.Errorf("%d %s: %s", got.status, got.code, got.body[:min(len(got.body), 500)])
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(got.body, &struct{ Data any }{into})
}

// get returns the text at a path of a server.
func (p *party) get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := p.http.Do(r)
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
