package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"time"
)

// call is an HTTP request.
type call struct {
	method, path string
	body         []byte
	member       bool // whether it is a member of a project who asks
}

// message returns a call as it is sent to a target.
func (t *target) message(c call) []byte {
	headers := t.headers
	if c.member {
		headers = t.member
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s", c.method, c.path, t.address, headers)
	if c.body != nil {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(c.body))
	}
	return append([]byte(head+"\r\n"), c.body...)
}

// connection sends requests to a target, one after the other. The clients share
// the processors with the servers that they time, so they do little: messages
// are made beforehand, and answers are read into one buffer.
type connection struct {
	to     *target
	socket net.Conn // nil before the first request, and after the server closed it
	reader *bufio.Reader
	answer bytes.Buffer
}

// exchange sends a message and returns the body of its answer, which is valid
// until the next call. An answer of another status than 200 is an error.
func (c *connection) exchange(message []byte) ([]byte, error) {
	if c.socket == nil {
		socket, err := net.Dial("tcp", c.to.address)
		if err != nil {
			return nil, err
		}
		c.socket, c.reader = socket, bufio.NewReader(socket)
	}
	if err := c.socket.SetDeadline(time.Now().Add(requestTime)); err != nil {
		return nil, err
	}
	if _, err := c.socket.Write(message); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	c.answer.Reset()
	if _, err := c.answer.ReadFrom(response.Body); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.Close || c.to.once {
		c.close()
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, beginning(c.answer.Bytes()))
	}
	return c.answer.Bytes(), nil
}

func (c *connection) close() {
	if c.socket != nil {
		_ = c.socket.Close()
		c.socket = nil
	}
}
