package web

import (
	"time"

	"github.com/cadastre-dev/cadastre/graph/document"
)

// Limits bound the work of requests. In each field but DocumentBytes and
// PersistedBytes zero means no limit. The comments state the defaults, which
// DefaultLimits returns. docs/limits.md explains the limits to operators.
type Limits struct {
	// BodyBytes bounds the body of a request: 1 MiB. A longer body gets 413.
	BodyBytes int64
	document.Limits
	// AnswerBytes bounds the data of an answer: 16 MiB. The root field that
	// exceeds it is null, and so are the root fields after it.
	AnswerBytes int
	// ClientBytes is the minimum rate, in bytes a second, at which a client
	// must read a long answer after the first five seconds: 64 KiB. The server
	// closes the connection of a slower client.
	ClientBytes int
	// OperationTime bounds the time that an operation runs, statements
	// included: 10 s. Fields that are not resolved by then get errors with the
	// code TIMEOUT.
	OperationTime time.Duration
	// Concurrent bounds the operations in progress: 256. One connection may have
	// an eighth of them, one viewer a quarter, one project half. Further
	// operations wait for a second. If they still have no place, the answer is
	// 429 if a connection, viewer or project is at its share, otherwise 503.
	Concurrent int
	// PrincipalPoints is the rate of points that a viewer (a user in a project)
	// may spend: 1,000 a second, with a burst of four seconds' worth. An
	// operation costs one point, one more for each 1,000 of its cost and 20 more
	// for each root field of a mutation. Beyond the rate the answer is 429.
	PrincipalPoints float64
	// ServicePoints and AdminPoints are the rates for viewers with the service
	// role, 10,000, and for administrators, 5,000.
	ServicePoints float64
	AdminPoints   float64
	// AddressPoints is the rate of points that requests from one address may
	// spend before their tokens are checked: 5,000 a second, with a burst of
	// four seconds' worth. A request costs one point, and 50 more if its token
	// is refused.
	AddressPoints float64
	// Sockets bounds the open WebSockets and event streams of all viewers:
	// 2,000. ViewerSockets bounds the sockets of one viewer: 200. WebSockets without
	// a valid token are counted apart: a quarter of Sockets, and ViewerSockets
	// of one address.
	Sockets, ViewerSockets int
	// SocketOperations bounds the operations in progress on one WebSocket: 100.
	SocketOperations int
	// Subscriptions bounds all open subscriptions: 10,000. ViewerSubscriptions
	// bounds the subscriptions of one viewer: 1,000. The server refuses more.
	Subscriptions, ViewerSubscriptions int
	// PersistedBytes bounds the memory for automatically persisted documents:
	// 16 MiB. Zero keeps none.
	PersistedBytes int64
}

// DefaultLimits returns the limits of a server without options.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes:       1 << 20,
		Limits:          document.DefaultLimits(),
		AnswerBytes:     16 << 20,
		ClientBytes:     64 << 10,
		OperationTime:   10 * time.Second,
		Concurrent:      256,
		PrincipalPoints: 1000,
		ServicePoints:   10_000,
		AdminPoints:     5000,
		AddressPoints:   5000,
		Sockets:         2000, ViewerSockets: 200, SocketOperations: 100,
		Subscriptions: 10_000, ViewerSubscriptions: 1000,
		PersistedBytes: 16 << 20,
	}
}

// ofFiles returns the limits for imports and exports. A document may have 1
// MiB, and any cost, because the price grows with the bytes of the files.
func (l Limits) ofFiles() document.Limits {
	limits := l.Limits
	limits.Cost, limits.DocumentBytes = 0, 1<<20
	return limits
}
