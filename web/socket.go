package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/problem"
)

// subprotocol is the only WebSocket subprotocol that the server supports.
const subprotocol = "graphql-transport-ws"

// How long a WebSocket waits.
const (
	waitForInit = 3 * time.Second // at least, for connection_init; up to a third more
	waitForPong = 15 * time.Second
	// waitForClose is for the client's answer to the close message.
	waitForClose = 2 * time.Second
)

// messageBytes bounds the request in a message. Sockets are for many short
// requests, and each socket may hold a request that waits.
const messageBytes = 128 << 10

// envelopeBytes is how much longer a message may be than its request.
const envelopeBytes = 1 << 10

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && hasToken(r.Header, "Connection", "upgrade") &&
		hasToken(r.Header, "Upgrade", "websocket")
}

func hasToken(header http.Header, name, token string) bool {
	for value := range strings.SplitSeq(strings.Join(header.Values(name), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(value), token) {
			return true
		}
	}
	return false
}

// isOwnOrigin reports whether a handshake has no Origin, an Origin with the
// host of the request, or an allowed one.
func (t *transport) isOwnOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	if from, err := url.Parse(origin); err == nil && strings.EqualFold(from.Host, r.Host) {
		return true
	}
	return t.isAllowed(origin)
}

// serveSocket serves a WebSocket, from its handshake to its end.
func (t *transport) serveSocket(w http.ResponseWriter, r *http.Request) {
	refuse := func(why refusal) { t.refuse(w, r, mediaJSON, why) }
	switch {
	case !t.isOwnOrigin(r):
		refuse(refusal{status: http.StatusForbidden, code: graph.CodeForbidden,
			message: refusalOf(r.Header.Get("Origin"))})
		return
	case !hasToken(r.Header, "Sec-Websocket-Protocol", subprotocol):
		refuse(*bad("the WebSocket does not offer the subprotocol " + subprotocol))
		return
	}
	address := rateLimitKey(requestLogOf(r.Context()).address)
	arrived := t.buckets.arrive(address, r.Header)
	if refused := arrived.take(); refused != nil {
		refuse(*refused)
		return
	}
	crowded, end := context.WithCancelCause(r.Context())
	defer end(nil)
	as := t.viewerOf(r, arrived)
	leave, refused := t.enter(as, address, end)
	if refused != nil {
		refuse(*refused)
		return
	}
	defer func() { leave() }()
	ctx, s, done := t.stream(r.WithContext(crowded))
	defer done()
	connection, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, InsecureSkipVerify: true, // the origin was checked
	})
	if err != nil {
		return // Accept has answered the request
	}
	limit := int64(messageBytes)
	if t.Limits.BodyBytes > 0 {
		limit = min(limit, t.Limits.BodyBytes)
	}
	connection.SetReadLimit(limit + envelopeBytes)
	socket := &socket{session: s, request: r, connection: connection, enter: func() *refusal {
		of := principal(s.viewer)
		if of == as {
			return nil
		}
		leaveAs, refused := t.enter(of, address, end)
		if refused == nil {
			leave()
			leave, as = leaveAs, of
		}
		return refused
	}, operations: map[string]*socketReceiver{}}
	socket.serve(ctx)
}

// viewerOf returns the key of the viewer whose token is in a handshake. It
// returns "" if there is no token, because connection_init may have one, if the
// token cannot be checked, or if it is invalid, which costs points.
func (t *transport) viewerOf(r *http.Request, arrived arrival) string {
	if !slices.ContainsFunc(credentials, func(name string) bool { return r.Header.Get(name) != "" }) {
		return ""
	}
	viewer, err := t.Authenticate(r.Context(), r.Header)
	if err != nil {
		if isUnauthenticated(err) {
			arrived.disprove()
		}
		return ""
	}
	arrived.prove(viewer)
	return principal(viewer)
}

// enter counts a WebSocket of a viewer, or of a stranger if viewer is empty,
// until the caller calls leave. It returns a refusal if a limit is reached. end
// ends the WebSocket of a stranger in favour of another address.
func (t *transport) enter(viewer, address string, end context.CancelCauseFunc) (leave func(), refused *refusal) {
	if viewer == "" {
		return t.streams.strangers.enter(address, end)
	}
	return t.streams.sockets.enter(viewer)
}

// socket is a WebSocket that is open.
type socket struct {
	*session
	request    *http.Request // the handshake
	connection *websocket.Conn
	enter      func() *refusal // counts the socket as the viewer's, or refuses it
	payer      bucket          // the viewer's
	introduced atomic.Bool     // whether connection_init has come
	inited     atomic.Bool     // whether connection_init was accepted
	began      atomic.Int64    // operations begun, for their request ids

	mu         sync.Mutex
	operations map[string]*socketReceiver // in progress, by the client's ids
	under      sync.WaitGroup
	closing    bool // whether no operation may begin any more
}

// message is a message of the protocol graphql-transport-ws.
type message struct {
	ID      *string         `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// serve reads messages until the context ends, and closes the connection once
// its operations have ended.
func (s *socket) serve(ctx context.Context) {
	patience := time.AfterFunc(waitForInit+rand.N(waitForInit/3), func() { // spreads the ends of an attacker's sockets
		if !s.introduced.Load() {
			s.end(&ending{closedInitTimeout, "connection_init was not received in time", "init"})
		}
	})
	defer patience.Stop()
	var reader sync.WaitGroup
	reader.Go(func() { s.read(ctx) })
	reader.Go(func() { s.ping(ctx) })
	<-ctx.Done()
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.under.Wait()
	why := endingOf(ctx)
	impatience := time.AfterFunc(waitForClose, func() { _ = s.connection.CloseNow() })
	_ = s.connection.Close(websocket.StatusCode(why.code), why.reason) // the client may have gone
	impatience.Stop()
	_ = s.connection.CloseNow()
	reader.Wait()
}

// begin runs do in a goroutine, unless the session is ending.
func (s *socket) begin(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.under.Go(do)
	}
}

// read reads messages until the connection ends or a message is malformed.
func (s *socket) read(ctx context.Context) {
	for {
		// Read ignores the end of ctx, because the server must still close the
		// connection with a reason.
		kind, text, err := s.connection.Read(context.WithoutCancel(ctx))
		if err != nil {
			s.end(errClientGone)
			return
		}
		var received message
		if kind != websocket.MessageText || json.Unmarshal(text, &received) != nil {
			s.end(&ending{closedBadRequest, "a message is not a JSON object of the protocol", "protocol"})
			return
		}
		if ctx.Err() != nil {
			continue // discards messages while the session ends
		}
		if why := s.receive(ctx, &received); why != nil {
			s.end(why)
		}
	}
}

// receive handles a message. It returns the reason if the session must end.
func (s *socket) receive(ctx context.Context, received *message) *ending {
	switch received.Type {
	case "connection_init":
		return s.init(ctx, received.Payload)
	case "ping":
		return s.send(ctx, []byte(`{"type":"pong"}`))
	case "pong":
		return nil
	case "subscribe", "complete":
		switch {
		case !s.inited.Load():
			return &ending{closedUnauthorized, "Unauthorized", "protocol"}
		case received.ID == nil || *received.ID == "" && received.Type == "subscribe":
			return &ending{closedBadRequest, "the message " + received.Type + " has no id", "protocol"}
		case received.Type == "complete":
			s.cancel(*received.ID)
			return nil
		}
		return s.subscribed(ctx, *received.ID, received.Payload)
	}
	return &ending{closedBadRequest, clip("unknown message type "+strconv.Quote(received.Type), 100), "protocol"}
}

// errCompleted ends an operation that the client completed.
var errCompleted = errors.New("completed by the client")

// cancel ends an operation. The client may then use its id again.
func (s *socket) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.operations[id]; of != nil {
		of.cancel(errCompleted)
		delete(s.operations, id)
	}
}

// forget lets the client use the id of an operation again.
func (s *socket) forget(of *socketReceiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operations[of.id] == of {
		delete(s.operations, of.id)
	}
}

// credentials are the names in the payload of connection_init that may carry
// the token, as the headers do.
var credentials = []string{"Authorization", "X-Auth-Token"}

// init handles connection_init. The token is in its payload, otherwise in the
// headers of the handshake. init returns the reason if the session must end.
func (s *socket) init(ctx context.Context, payload json.RawMessage) *ending {
	if s.introduced.Swap(true) {
		return &ending{closedTooManyInits, "Too many initialisation requests", "protocol"}
	}
	var members map[string]any
	if len(payload) > 0 && json.Unmarshal(payload, &members) != nil {
		return &ending{closedBadRequest, "the payload of connection_init is not an object", "protocol"}
	}
	header, given := s.request.Header.Clone(), http.Header{}
	for name, value := range members {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if text, ok := value.(string); ok && slices.Contains(credentials, canonical) {
			given.Add(canonical, text)
		}
	}
	if len(given) > 0 {
		for _, name := range credentials {
			header[name] = given[name]
		}
	}
	s.header = header
	arrived := s.buckets.arrive(rateLimitKey(requestLogOf(ctx).address), header)
	viewer, err := s.Authenticate(ctx, header)
	switch {
	case err == nil:
	case isUnauthenticated(err):
		arrived.disprove()
		return &ending{closedForbidden, clip(messageOf(err), 120), "token"}
	default:
		s.Log.ErrorContext(ctx, "a token could not be checked", "requestId",
			graph.RequestID(ctx), "error", innermost(err))
		return &ending{closedTryAgain, "the token cannot be checked at the moment", "token"}
	}
	requestLogOf(ctx).viewer = viewer
	s.viewer, s.payer = viewer, arrived.prove(viewer)
	if refused := s.enter(); refused != nil {
		return &ending{closedTryAgain, clip(refused.message, 120), "limit"}
	}
	s.inited.Store(true)
	s.begin(func() { s.watch(ctx) })
	return s.send(ctx, []byte(`{"type":"connection_ack"}`))
}

// subscribed begins an operation, or refuses it if too many are open. It
// returns the reason if the session must end: another operation has the id.
func (s *socket) subscribed(ctx context.Context, id string, payload json.RawMessage) *ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil
	}
	if s.operations[id] != nil {
		return &ending{closedSubscriberKnown, clip("Subscriber for "+id+" already exists", 120), "protocol"}
	}
	own, end := context.WithCancelCause(ctx)
	own = graph.WithRequestID(own, graph.RequestID(ctx)+"."+strconv.FormatInt(s.began.Add(1), 10))
	own = context.WithValue(own, requestLogKey{}, &requestLog{address: requestLogOf(ctx).address, viewer: s.viewer})
	to := &socketReceiver{socket: s, ctx: own, id: id, cancel: end}
	if s.streams.perSocket > 0 && len(s.operations) >= s.streams.perSocket {
		refused := &refusal{code: graph.CodeRateLimited,
			message: "the WebSocket has too many open operations; their maximum is " +
				strconv.Itoa(s.streams.perSocket)}
		s.under.Go(func() {
			defer end(nil)
			_ = s.refuseOn(own, to, refused) // fails only if the session has ended
		})
		return nil
	}
	s.operations[id] = to
	s.under.Go(func() {
		defer end(nil)
		defer s.forget(to)
		s.operate(own, payload, to)
	})
	return nil
}

// operate runs an operation to its end and logs it, if the token is still valid.
func (s *socket) operate(ctx context.Context, payload json.RawMessage, to *socketReceiver) {
	if !s.judge(ctx) {
		return
	}
	began := time.Now()
	request := s.request.Clone(ctx)
	request.Method, request.URL.RawQuery = http.MethodPost, "" // the message is read like a body
	request.Header.Del(graph.IdempotencyKeyHeader)             // the key of the handshake is for no operation
	of := callerOf(s.viewer, s.payer, request)
	refused := of.payer.take(1, time.Now())
	if refused == nil {
		refused = s.prepared(ctx, request, payload, of, to)
	}
	if refused != nil {
		_ = s.refuseOn(ctx, to, refused) // fails only if the session or the operation has ended
	}
	s.logOperation(ctx, time.Since(began))
}

// prepared reads and runs an operation, or returns its refusal.
func (s *socket) prepared(ctx context.Context, request *http.Request, payload []byte,
	of caller, to *socketReceiver) *refusal {
	h, refused := s.gates.enter(ctx, of)
	defer h.end()
	if refused == nil {
		refused = h.turn(ctx, len(payload))
	}
	if refused != nil {
		return refused
	}
	operation, refused := s.transport.read(access.WithViewer(ctx, s.viewer), nil, request, payload, h)
	switch {
	case refused != nil:
		return refused
	case operation.Definition.Operation == ast.Subscription:
		h.work.Give(operations)
		_ = s.follow(ctx, of, operation, to) // fails only if the session or the operation has ended
	default:
		_ = s.runOne(ctx, operation, request.Header, h, to)
	}
	return nil
}

// logOperation writes the log line of a finished operation.
func (s *socket) logOperation(ctx context.Context, took time.Duration) {
	entry := requestLogOf(ctx)
	s.Log.LogAttrs(ctx, slog.LevelInfo, "operation",
		traced(ctx, []slog.Attr{slog.String("requestId", graph.RequestID(ctx)),
			slog.String("took", took.String()), slog.String("address", entry.address),
			slog.String("user", entry.viewer.UserID),
			slog.String("operation", entry.operation), slog.String("code", entry.code)})...)
}

// messageOf returns the message of a refusal. For any other error it returns
// that the token is not accepted.
func messageOf(err error) string {
	if refusal, ok := errors.AsType[*problem.Refusal](err); ok {
		return refusal.Message
	}
	return "the token is not accepted"
}

// send sends a message. It returns the reason if the session must end.
func (s *socket) send(ctx context.Context, text []byte) *ending {
	// The context of the operation does not apply: a message is always sent
	// whole.
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	patience := time.AfterFunc(time.Until(s.latest(len(text))), func() {
		s.end(errSlow) // before cancel closes the connection, which ends read with errClientGone
		cancel()
	})
	defer patience.Stop()
	if err := s.connection.Write(within, websocket.MessageText, text); err != nil {
		return errClientGone // a reason that was set before stays
	}
	return nil
}

// ping pings the client every heartbeat. It ends the session if an answer takes
// longer than waitForPong.
func (s *socket) ping(ctx context.Context) {
	for pause.For(ctx, heartbeat) {
		within, cancel := context.WithTimeout(ctx, waitForPong)
		err := s.connection.Ping(within)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.end(errSlow)
		}
	}
}

// socketReceiver is a receiver of the answers to one operation of a WebSocket.
type socketReceiver struct {
	*socket
	ctx    context.Context
	id     string
	cancel context.CancelCauseFunc
}

// send sends a message of the operation. It returns an error if the operation
// has ended, and ends the session if the message cannot be sent.
func (r *socketReceiver) send(text []byte) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if why := r.socket.send(r.ctx, text); why != nil {
		r.end(why)
		return why
	}
	return nil
}

// before returns the beginning of a message about the operation.
func (r *socketReceiver) before(kind string) string {
	var out bytes.Buffer
	out.WriteString(`{"id":`)
	encode(&out, r.id)
	out.WriteString(`,"type":"` + kind + `"`)
	return out.String()
}

func (r *socketReceiver) next(answer *graph.Answer, extensions string, sent func([]byte, int)) error {
	return r.send(whole(r.before("next")+`,"payload":`, answer, extensions, "}", sent))
}

func (r *socketReceiver) refused(errs gqlerror.List) error {
	var out bytes.Buffer
	out.WriteString(r.before("error") + `,"payload":`)
	encode(&out, errs)
	out.WriteByte('}')
	r.forget(r)
	return r.send(out.Bytes())
}

func (r *socketReceiver) complete() error {
	r.forget(r)
	return r.send([]byte(r.before("complete") + "}"))
}
