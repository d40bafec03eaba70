package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// call is an HTTP request.
type call struct {
	method, path string
	body         []byte
}

// asking returns the call of a GraphQL request.
func asking(r local.Request) call { return call{method: "POST", path: "/graphql", body: r.Body()} }

// connection sends requests to a target, one after the other, as one viewer from
// one address. Clients share the processors with the servers that they time, so a
// connection does little: it writes from one buffer and reads into another.
type connection struct {
	to      *target
	from    string // address; empty is any
	headers string // lines in each request
	socket  net.Conn
	reader  *bufio.Reader
	message []byte
	answer  bytes.Buffer
	refused int // requests that were sent again after 429 or 503
}

// connect returns the connection of a client with a role, by its number.
func (t *target) connect(role string, client int) *connection {
	if t.server == nil {
		return &connection{to: t, headers: t.headers}
	}
	return &connection{to: t, from: addressOf(client), headers: "Content-Type: application/json\r\nAuthorization: Bearer " + t.tokens[role][client] + "\r\n"}
}

// refusal is an answer that is not the data.
type refusal struct {
	status int
	code   string // of the API
	text   []byte
}

func (r refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.status, r.code, r.text) }

// exchange sends a request and returns the body of its answer, which is valid
// until the next call. It waits and sends again while the server limits the rate
// or has no room, as a client should. Another answer than data is a refusal.
func (c *connection) exchange(of call) ([]byte, error) {
	for began := time.Now(); ; {
		answer, response, err := c.once(of)
		if err != nil {
			return nil, err
		}
		wait, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		if wait > 0 && time.Since(began) < requestTime {
			c.refused++
			time.Sleep(time.Duration(wait) * time.Second)
			continue
		}
		if code := local.CodeOf(answer); response.StatusCode != http.StatusOK || code != local.Answered {
			return nil, refusal{response.StatusCode, code, bytes.Clone(local.Beginning(answer))}
		}
		return answer, nil
	}
}

// once sends a request once.
func (c *connection) once(of call) ([]byte, *http.Response, error) {
	if c.socket == nil {
		socket, err := (&net.Dialer{LocalAddr: local.LocalAddress(c.from)}).Dial("tcp", c.to.address)
		if err != nil {
			return nil, nil, err
		}
		c.socket, c.reader = socket, bufio.NewReader(socket)
	}
	if err := c.socket.SetDeadline(time.Now().Add(requestTime)); err != nil {
		return nil, nil, err
	}
	c.message = fmt.Appendf(c.message[:0], "%s %s HTTP/1.1\r\nHost: %s\r\n%s", of.method, of.path, c.to.address, c.headers)
	if of.body != nil {
		c.message = fmt.Appendf(c.message, "Content-Length: %d\r\n", len(of.body))
	}
	c.message = append(append(c.message, "\r\n"...), of.body...)
	if _, err := c.socket.Write(c.message); err != nil {
		return nil, nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer: %w", err)
	}
	c.answer.Reset()
	if _, err := c.answer.ReadFrom(response.Body); err != nil {
		return nil, nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.Close || c.to.once {
		c.close()
	}
	return c.answer.Bytes(), response, nil
}

// timed sends a request and returns how long the answer took.
func (c *connection) timed(of call) (time.Duration, []byte, error) {
	began := time.Now()
	answer, err := c.exchange(of)
	return time.Since(began), answer, err
}

func (c *connection) close() {
	if c.socket != nil {
		_ = c.socket.Close()
		c.socket = nil
	}
}

// dataOf returns the data of an answer.
func dataOf(answer []byte) (json.RawMessage, error) {
	var parts struct{ Data json.RawMessage }
	if err := json.Unmarshal(answer, &parts); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return parts.Data, nil
}

// unpriced returns an answer without its price, which grows with the tables.
func unpriced(answer []byte) []byte {
	if end := bytes.LastIndex(answer, []byte(`,"extensions":`)); end >= 0 {
		return answer[:end]
	}
	return answer
}
