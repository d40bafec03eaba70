package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// requestTime bounds one request, the answer included.
const requestTime = 2 * time.Minute

// request is an operation with its variables.
type request struct {
	Query     string `json:"query"`
	Variables object `json:"variables,omitempty"`
}

// body returns the request as it is sent.
func (r request) body() ([]byte, error) { return json.Marshal(r) }

// client sends operations to one server.
type client struct {
	address string
	token   string
	http    *http.Client
}

// newClient returns a client that keeps its connections and asks for answers as
// they are, without compression.
func newClient(address, token string) *client {
	return &client{address: address, token: token, http: &http.Client{
		Timeout:   requestTime,
		Transport: &http.Transport{MaxIdleConnsPerHost: loadersAtOnce, DisableCompression: true},
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// post sends a request's body and returns the whole answer.
func (c *client) post(ctx context.Context, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := bytes.NewBuffer(make([]byte, 0, max(response.ContentLength, bytes.MinRead)))
	if _, err := io.Copy(answer, response.Body); err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return answer.Bytes(), nil
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return nil, fmt.Errorf("%w: %s: %s", errBusy, response.Status, beginning(answer.Bytes()))
	}
	return nil, fmt.Errorf("%s: %s", response.Status, beginning(answer.Bytes()))
}

// errBusy means that a server did nothing for a request and is to be asked again.
var errBusy = errors.New("the server is busy")

// askPatiently is ask of a server that may be busy with the other requests.
func (c *client) askPatiently(ctx context.Context, r request) error {
	for deadline := time.Now().Add(requestTime); ; time.Sleep(time.Second) {
		err := c.ask(ctx, r, nil)
		if !errors.Is(err, errBusy) || time.Now().After(deadline) {
			return err
		}
	}
}

// ask sends a request and reads the data of its answer into a value, unless that
// is nil. An answer with any error is an error.
func (c *client) ask(ctx context.Context, r request, into any) error {
	body, err := r.body()
	if err != nil {
		return err
	}
	answer, err := c.post(ctx, body)
	if err != nil {
		return err
	}
	data, err := dataOf(answer)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// dataOf returns the data of an answer without errors.
func dataOf(answer []byte) (json.RawMessage, error) {
	var parts struct {
		Data   json.RawMessage
		Errors json.RawMessage
	}
	if err := json.Unmarshal(answer, &parts); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if parts.Errors != nil {
		return nil, fmt.Errorf("the answer has errors: %s", beginning(parts.Errors))
	}
	return parts.Data, nil
}

// beginning returns a text, or what a message can hold of it.
func beginning(text []byte) []byte {
	const enough = 500
	return text[:min(len(text), enough)]
}
