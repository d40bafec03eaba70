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

// dialTime limits how long dialing takes.
const dialTime = 5 * time.Second

// Dialer dials connections with a limit for each single read or write, 0 for
// none. The PostgreSQL driver waits for an answer without a limit. If the
// server hangs or the network drops packets, neither a canceled context nor TCP
// keep-alive ends that wait.
type Dialer struct{ Limit time.Duration }

var (
	_ pq.Dialer        = Dialer{}
	_ pq.DialerContext = Dialer{}
)

// Dial dials a connection.
func (d Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout dials a connection with a timeout.
func (d Dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext dials a connection with a context.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil || d.Limit == 0 {
		return conn, err
	}
	return &boundedConn{Conn: conn, limit: d.Limit}, nil
}

// boundedConn is a connection with a time limit for each read and write, and the
// deadline that the driver sets while it connects.
type boundedConn struct {
	net.Conn
	limit    time.Duration
	deadline time.Time
}

func (c *boundedConn) SetDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

func (c *boundedConn) next() time.Time {
	next := time.Now().Add(c.limit)
	if !c.deadline.IsZero() && c.deadline.Before(next) {
		return c.deadline
	}
	return next
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(c.next()); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *boundedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.next()); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// answerLimit returns the limit for a statement and its answer: the statement
// timeout, as PostgreSQL prints it, plus a second. 0 is no limit.
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
