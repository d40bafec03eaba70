package sqldb

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"
)

// dialTime bounds how long a connection is begun.
const dialTime = 5 * time.Second

// Dialer makes connections that wait for no single read or write longer than a
// limit, 0 for none. The driver of PostgreSQL waits for an answer until it comes:
// where the server hangs, or nothing arrives any more, neither the end of a
// request's context nor the keep-alives of TCP end that.
type Dialer struct{ Limit time.Duration }

var (
	_ pq.Dialer        = Dialer{}
	_ pq.DialerContext = Dialer{}
)

// Dial makes a connection.
func (d Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout makes a connection within a time.
func (d Dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext makes a connection before the context ends.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil || d.Limit == 0 {
		return conn, err
	}
	return &boundedConn{conn, d.Limit}, nil
}

// boundedConn is a connection whose reads and writes end within a limit.
type boundedConn struct {
	net.Conn
	limit time.Duration
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *boundedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// answerLimit returns how long a statement and its answer may take at most where
// the statement may take a time as PostgreSQL writes it, 0 for any: a second more.
func answerLimit(statement string) time.Duration {
	if milliseconds, err := strconv.Atoi(statement); err == nil {
		statement = fmt.Sprint(milliseconds, "ms")
	}
	limit, err := time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(statement, "min", "m"), " ", ""))
	if err != nil || limit == 0 {
		return 0
	}
	return limit + time.Second
}
