package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/rest"
)

// doorPrefix begins the paths of all doors, the OpenStack-compatible APIs.
const doorPrefix = "/openstack/"

// newRequestID returns an id for a request: in OpenStack's form if the request is
// to a door, otherwise from other.
func newRequestID(r *http.Request, other func() string) string {
	if strings.HasPrefix(r.URL.Path, doorPrefix) {
		return rest.NewRequestID()
	}
	return other()
}

// addDoors serves doors under their paths. Requests pass the same gates as
// GraphQL.
func addDoors(mux *http.ServeMux, t *transport, doors []*rest.Door) {
	for _, door := range doors {
		handler := t.doorOrigins(door,
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.serveDoor(w, r, door) }))
		mux.Handle(door.Mount, handler)
		mux.Handle(door.Mount+"/", handler)
	}
}

// doorOrigins returns a handler that refuses requests from pages of other
// origins if they could change something. If any origin is allowed, all
// preflights get 200, as from OpenStack's services, but only allowed origins
// get permission.
func (t *transport) doorOrigins(door *rest.Door, next http.Handler) http.Handler {
	refuse := func(w http.ResponseWriter, r *http.Request) {
		why := &rest.Fault{Status: http.StatusForbidden, Detail: refusalOf(r.Header.Get("Origin"))}
		t.send(w, r, door.Call(r, graph.RequestID(r.Context())).Respond(r.Context(), why), &held{})
	}
	preflight := func(w http.ResponseWriter, r *http.Request, isAllowed bool) (answered bool) {
		if len(t.AllowedOrigins) == 0 {
			return false
		}
		if isAllowed {
			allowRequests(w.Header(), "GET, POST, PUT, DELETE",
				doorHeaders(r.Header.Get("Access-Control-Request-Headers")))
		}
		w.WriteHeader(http.StatusOK)
		return true
	}
	return t.byOrigin(next, refuse, "Location, Retry-After, OpenStack-API-Version, X-OpenStack-Request-Id", preflight)
}

// doorHeaders returns a comma-separated list of the requested headers that
// pages may send to a door.
func doorHeaders(requested string) string {
	var permitted []string
	for name := range strings.SplitSeq(requested, ",") {
		name = strings.TrimSpace(name)
		isHeader := func(known string) bool { return strings.EqualFold(strings.TrimSpace(known), name) }
		if isHeader("OpenStack-API-Version") || slices.ContainsFunc(strings.Split(allowedHeaders, ","), isHeader) {
			permitted = append(permitted, name)
		}
	}
	return strings.Join(permitted, ", ")
}

// serveDoor answers a request to a door.
func (t *transport) serveDoor(w http.ResponseWriter, r *http.Request, door *rest.Door) {
	call := door.Call(r, graph.RequestID(r.Context()))
	requestLogOf(r.Context()).operation = call.Name()
	h := &held{}
	defer h.end()
	response, refused := t.answerCall(w, r, call, h)
	if refused != nil {
		h.end()
		refused.delay(r.Context())
		response = call.Respond(r.Context(), faultOf(refused))
	}
	t.send(w, r, response, h)
}

// send writes a response of a door, and releases its bytes as they are sent.
func (t *transport) send(w http.ResponseWriter, r *http.Request, response *rest.Response, h *held) {
	for name, values := range response.Header {
		w.Header()[name] = append(w.Header()[name], values...)
	}
	w.WriteHeader(response.Status)
	switch size := len(response.Body); {
	case r.Method == http.MethodHead:
	case size > smallAnswer:
		sending{t.Limits.ClientBytes, func(_ []byte, left int) { h.bytes.Change(answerBytes, int64(left)) }}.
			write(w, slices.Collect(slices.Chunk(response.Body, pieceOfAnswer)), size)
	default:
		_, _ = w.Write(response.Body) // fails if the client has gone
	}
}

// pieceOfAnswer is the size of the parts in which a response of a door is sent.
const pieceOfAnswer = 64 << 10

// faultOf returns the fault of a refusal of this package.
func faultOf(why *refusal) *rest.Fault {
	detail := why.message
	if len(why.errors) > 0 {
		detail = why.errors[0].Message
	}
	return &rest.Fault{Status: why.status, Detail: detail, RetryAfter: why.retryAfter}
}

// answerCall admits a call, runs it and charges its viewer, or returns why it
// does not run. The root of a service needs no token. The response uses the gates
// until the caller ends h.
func (t *transport) answerCall(w http.ResponseWriter, r *http.Request, call *rest.Call,
	h *held) (*rest.Response, *refusal) {
	if call.IsOpen() || call.Refused() != nil && isRoot(r, call) {
		arrived := t.buckets.arrive(rateLimitKey(requestLogOf(r.Context()).address), r.Header)
		if refused := arrived.address.take(1, time.Now()); refused != nil {
			return nil, refused
		}
		return t.runOpen(r, call), nil
	}
	of, refused := t.caller(w, r)
	if refused != nil {
		w.Header().Del("WWW-Authenticate") // the door writes it
		return nil, refused
	}
	if fault := call.Refused(); fault != nil {
		return call.Respond(r.Context(), fault), nil
	}
	entered, refused := t.gates.enter(r.Context(), of)
	if *h = *entered; refused != nil {
		return nil, refused
	}
	return t.runCall(r, call, of, h)
}

// runCall receives the body of a call, waits for the lane that the call needs,
// runs it and charges its viewer: a read for the time that it took.
func (t *transport) runCall(r *http.Request, call *rest.Call, of caller, h *held) (*rest.Response, *refusal) {
	body, refused := t.receiveCall(r, h)
	if refused != nil {
		return nil, refused
	}
	if refused := h.turn(r.Context(), lengthOf(r, body)); refused != nil {
		return nil, refused
	}
	if call.Writes() && !of.viewer.IsAdmin() && !of.viewer.IsService() {
		if refused := h.payer.take(writePoints, time.Now()); refused != nil {
			return nil, refused
		}
	}
	lane, isClaim := lanes[call.Work()], call.Work() == rest.InMemory && call.Writes() // claims wait in a queue
	if !isClaim && !h.work.Uses(lane) {
		if refused := refusedAtGate(h.work.Take(r.Context(), lane, 1)); refused != nil {
			return nil, refused
		}
	}
	ctx, cancel := t.within(access.WithViewer(r.Context(), of.viewer))
	defer cancel()
	run := t.work.begin()
	response, outside := call.Run(ctx, body, t.Limits.AnswerBytes)
	if took := run.end(); !call.Writes() { // a write waits for locks and for the disk
		h.payer.charge(int(took.cost(outside, call.Work() == rest.Searches)/pointCost), time.Now())
	}
	h.work.Give(readings, searches, statements)
	if call.Writes() {
		return response, nil
	}
	return response, h.unread(r.Context(), int64(len(response.Body)))
}

// unread counts the bytes of a finished answer as unread, and then releases the
// place of its operation. A small answer keeps the place until it is sent.
// unread returns a refusal if too many bytes stay unread.
func (h *held) unread(ctx context.Context, size int64) *refusal {
	if size <= smallAnswer {
		return nil
	}
	err := h.bytes.Take(ctx, answerBytes, size)
	if h.bytes.Uses(answerBytes) {
		h.work.Give(operations)
	}
	return refusedAtGate(err)
}

// lanes are the lanes of the gate, by the work of a call. An answer from memory
// takes a turn: it can be a list of all providers, which needs much memory.
var lanes = map[rest.Work]int{rest.InMemory: readings, rest.Statements: statements, rest.Searches: searches}

// isRoot reports whether a call is to the root of its service.
func isRoot(r *http.Request, call *rest.Call) bool {
	return strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, call.Mount()), "/") == ""
}

// runOpen answers a call that needs no token.
func (t *transport) runOpen(r *http.Request, call *rest.Call) *rest.Response {
	if fault := call.Refused(); fault != nil {
		return call.Respond(r.Context(), fault)
	}
	response, _ := call.Run(r.Context(), nil, 0)
	return response
}

// receiveCall waits for room for a long body, and receives it.
func (t *transport) receiveCall(r *http.Request, h *held) ([]byte, *refusal) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	if refused := t.makeRoom(r, h); refused != nil {
		return nil, refused
	}
	return readAll(r, t.bodyLimit(r))
}
