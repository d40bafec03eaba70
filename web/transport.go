package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/lru"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/schema"
	"github.com/cadastre-dev/cadastre/web/admission"
)

// transport serves /graphql: GraphQL over HTTP by POST and, for queries, GET.
type transport struct {
	Options
	measured   *measurements
	preparer   *graph.Preparer
	persisted  *lru.Cache[string] // texts of valid documents, by their hash
	principals budgets
	addresses  addresses
	gates      gates
	work       work
	streams    streams
	costIs     string // the beginning of the extensions of an answer
}

func newTransport(options Options, measured *measurements) *transport {
	t := &transport{
		Options:    options,
		measured:   measured,
		preparer:   options.Executor.Preparer(options.Limits.ofDocuments()),
		persisted:  lru.New[string](options.Limits.PersistedBytes),
		principals: newBudgets(options.Limits),
		addresses:  newAddresses(options.Limits.AddressPoints),
		gates:      newGates(options),
		streams:    newStreams(options.Limits),
		costIs:     fmt.Sprintf(`{"cost":{"maximum":%d,"requested":`, options.Limits.Cost),
	}
	options.Metrics.MustRegister(&t.gates, &t.streams)
	return t
}

func (t *transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	if isUpgrade(r) {
		t.serveSocket(w, r)
		return
	}
	media := negotiate(r.Header)
	if refused := t.serve(w, r, media); refused != nil {
		if media == "" || media == mediaEvents {
			media = mediaJSON
		}
		t.refuse(w, r, media, *refused)
	}
}

// serve answers a request, or returns why it is refused.
func (t *transport) serve(w http.ResponseWriter, r *http.Request, media string) *refusal {
	if refused := checkMethod(w, r, media); refused != nil {
		return refused
	}
	viewer, refused := t.viewer(w, r)
	if refused != nil {
		return refused
	}
	party := partyOf(viewer, r)
	place, refused := t.gates.enter(r.Context(), party)
	if refused != nil {
		return refused
	}
	defer place.Leave()
	body, refused := t.gates.receive(r.Context(), party, t.bodyBytes(r))
	if refused != nil {
		return refused
	}
	defer body.Leave()
	text, refused := t.receive(r)
	if refused != nil {
		return refused
	}
	stream := media == mediaEvents
	ctx := access.WithViewer(r.Context(), viewer)
	ctx, cancel := t.within(ctx)
	defer cancel()
	reading, refused := t.turn(ctx, r, text, viewer, party)
	if refused != nil {
		return refused
	}
	operation, refused := t.read(ctx, w, r, text, viewer)
	reading.Leave()
	follows := operation != nil && operation.Definition.Operation == ast.Subscription
	if follows {
		body.Leave() // for it lasts long
	}
	if stream || follows {
		place.Leave()
		return t.serveEvents(w, r, viewer, operation, refused)
	}
	if refused != nil {
		return refused
	}
	if ctx, refused = once(ctx, r.Header, operation); refused != nil {
		return refused
	}
	held, refused := t.gates.run(ctx, party, operation, place, t.room(operation), reading != nil)
	if refused != nil {
		return refused
	}
	defer held.end()
	return t.run(ctx, w, media, operation, held)
}

// turn waits for a place among the requests that are read, where a request is
// long or its viewer greedy: those have half of the cores at most.
func (t *transport) turn(ctx context.Context, r *http.Request, text []byte, viewer access.Viewer, party admission.Party) (*admission.Pass, *refusal) {
	if lengthOf(r, text) <= longRequest && !t.principals.isGreedy(viewer, time.Now()) {
		return nil, nil
	}
	return t.gates.read(ctx, party)
}

// lengthOf returns how many bytes of a request are read.
func lengthOf(r *http.Request, text []byte) int { return len(text) + len(r.URL.RawQuery) }

// read returns the operation of a request, which it takes its price for. Reading
// is paid for whether or not the request is refused.
func (t *transport) read(ctx context.Context, w http.ResponseWriter, r *http.Request, text []byte, viewer access.Viewer) (*document.Operation, *refusal) {
	request, refused := t.request(r, text)
	if refused != nil {
		return nil, refused
	}
	requested, refused := t.resolve(request)
	if refused != nil {
		return nil, refused
	}
	if r.Method == http.MethodGet && t.Profile != Open && !requested.persisted {
		return nil, onlyByPost(w, "the query is not a persisted one, which GET requires: send it by POST")
	}
	prepared := t.preparer.Prepare(ctx, document.Request{
		Text: requested.text, OperationName: request.operationName, Variables: request.variables,
		Trusted: requested.trusted, Hints: t.Profile == Open,
	})
	t.principals.charge(viewer, int((prepared.Effort+int64(lengthOf(r, text)/bytesOfCost))/pointCost), time.Now())
	if refused := t.check(ctx, w, r, viewer, requested, prepared); refused != nil {
		return nil, refused
	}
	return prepared.Operation, t.spend(viewer, prepared.Operation)
}

// longRequest is how many bytes of a request are long to read: shorter ones take
// a few milliseconds at most.
const longRequest = 2 << 10

// bytesOfCost is how many bytes of a request's JSON cost as much as a field of an
// answer.
const bytesOfCost = 50

// room returns how many bytes the answer to an operation may have, as far as its
// price says: prices are right within a factor of three.
func (t *transport) room(operation *document.Operation) int64 {
	bytes := 3 * operation.Price.Bytes
	if limit := int64(t.Limits.AnswerBytes); limit > 0 {
		return min(bytes, limit)
	}
	return bytes
}

// serveSchema answers with the schema's SDL.
func (t *transport) serveSchema(w http.ResponseWriter, r *http.Request) {
	if t.SchemaAccess != SchemaForAnyone {
		viewer, refused := t.viewer(w, r)
		if refused == nil {
			refused = t.mayReadSchema(viewer)
		}
		if refused != nil {
			t.refuse(w, r, mediaJSON, *refused)
			return
		}
	}
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", schemaTag())
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(schema.SDL()))
}

// schemaTag returns the entity tag of the schema.
var schemaTag = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(schema.SDL()))
	return `"` + hex.EncodeToString(sum[:8]) + `"`
})

// mayReadSchema refuses the schema to viewers who may not read it.
func (t *transport) mayReadSchema(viewer access.Viewer) *refusal {
	if t.SchemaAccess == SchemaForAdmins && !viewer.IsAdmin() {
		return &refusal{status: http.StatusForbidden, code: graph.CodeIntrospectionDisabled, message: "only administrators may read the schema"}
	}
	return nil
}

// check returns why an operation that was prepared may not run. It keeps the text
// of a valid document that was sent with its hash.
func (t *transport) check(ctx context.Context, w http.ResponseWriter, r *http.Request, viewer access.Viewer, from source, prepared document.Prepared) *refusal {
	if prepared.Valid {
		t.register(from)
	}
	if operation := prepared.Operation; operation != nil {
		requestLogOf(ctx).operation = clip(operation.Definition.Name, 100)
		if r.Method == http.MethodGet && operation.Definition.Operation == ast.Mutation {
			return onlyByPost(w, "the operation is a mutation: send it by POST")
		}
	}
	if prepared.Refused != nil {
		why := &refusal{errors: prepared.Refused}
		if prepared.NotUnicode {
			why.status = http.StatusBadRequest
		}
		return why
	}
	if prepared.Operation.Introspects {
		return t.mayReadSchema(viewer)
	}
	return nil
}

// checkMethod refuses methods and media types that no answer has.
func checkMethod(w http.ResponseWriter, r *http.Request, media string) *refusal {
	if r.Method != http.MethodPost && r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET, POST")
		return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest,
			message: "the method is not supported: send requests by POST, or queries by GET"}
	}
	if media == "" {
		return &refusal{status: http.StatusNotAcceptable, code: graph.CodeBadRequest,
			message: "no acceptable media type: answers are " + mediaResponse + " or " + mediaJSON + ", in UTF-8, or " + mediaEvents}
	}
	return nil
}

// onlyByPost returns the refusal of a GET.
func onlyByPost(w http.ResponseWriter, message string) *refusal {
	w.Header().Set("Allow", "POST")
	return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest, message: message}
}

// spend takes the cost of an operation beyond the first point from its viewer's
// bucket.
func (t *transport) spend(viewer access.Viewer, operation *document.Operation) *refusal {
	if points := int(operation.Price.Cost / pointCost); points > 0 {
		return t.take(viewer, points)
	}
	return nil
}

// take takes points from a viewer's bucket, and counts whom it refuses.
func (t *transport) take(viewer access.Viewer, points int) *refusal {
	refused := t.principals.take(viewer, points, time.Now())
	if refused != nil {
		t.gates.points.Add(viewer.ProjectID, admission.Count{OverShare: 1})
	}
	return refused
}

// viewer returns who sent the request, unless their address or they themselves
// have sent too many.
func (t *transport) viewer(w http.ResponseWriter, r *http.Request) (access.Viewer, *refusal) {
	from := rateLimitKey(requestLogOf(r.Context()).address)
	sent := t.addresses.sent(from, r.Header)
	if refused := t.addresses.of(sent).take(from, 1, time.Now()); refused != nil {
		return access.Viewer{}, refused
	}
	viewer, err := t.Authenticate(r.Context(), r.Header)
	if err == nil {
		t.addresses.prove(sent)
		requestLogOf(r.Context()).viewer = viewer
		return viewer, t.take(viewer, 1)
	}
	if refusal := new(problem.Refusal); errors.As(err, &refusal) && errors.Is(err, problem.ErrUnauthenticated) {
		t.addresses.disprove(from, sent)
		w.Header().Set("WWW-Authenticate", "Bearer")
		return viewer, t.refuseUnauthenticated(r, refusal.Message)
	}
	t.Log.ErrorContext(r.Context(), "a token could not be checked", "requestId", graph.RequestID(r.Context()), "error", innermost(err))
	return viewer, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 5,
		message: "the token cannot be checked at the moment"}
}

// isUnauthenticated reports whether a token is unknown or has expired.
func isUnauthenticated(err error) bool { return errors.Is(err, problem.ErrUnauthenticated) }

// unauthenticatedBytes bounds the body that is read without a valid token.
const unauthenticatedBytes = 16 << 10

var introspects = regexp.MustCompile(`\b__(schema|type)\b`)

// refuseUnauthenticated refuses a request without a valid token. In the locked
// profile the answer to introspection also says that the schema needs a token:
// for that the text is searched, but neither parsed nor kept.
func (t *transport) refuseUnauthenticated(r *http.Request, message string) *refusal {
	unauthenticated := graph.ProtocolError(r.Context(), graph.CodeUnauthenticated, message)
	why := &refusal{status: http.StatusUnauthorized, errors: gqlerror.List{unauthenticated}}
	if t.Profile == Open || r.ContentLength < 0 || r.ContentLength > unauthenticatedBytes {
		return why
	}
	text, refused := t.receive(r)
	if refused != nil {
		return why
	}
	if asked, refused := t.request(r, text); refused == nil && introspects.MatchString(asked.query) {
		disabled := graph.ProtocolError(r.Context(), graph.CodeIntrospectionDisabled, "introspection needs a valid token")
		why.errors = gqlerror.List{disabled, unauthenticated}
	}
	return why
}

// innermost returns the cause of a refusal at the end of the chain.
func innermost(err error) error {
	known := new(problem.Refusal)
	for errors.As(err, &known) && known.Cause() != nil {
		err = known.Cause()
	}
	return err
}

// bodyBytes returns how many bytes the body of a request has, or may have where
// it does not say so.
func (t *transport) bodyBytes(r *http.Request) int64 {
	switch limit := t.Limits.BodyBytes; {
	case r.Method != http.MethodPost:
		return 0
	case r.ContentLength < 0:
		return limit
	case limit > 0:
		return min(r.ContentLength, limit)
	}
	return r.ContentLength
}

// receive returns what a request is read from: its body, or nothing for a GET.
func (t *transport) receive(r *http.Request) ([]byte, *refusal) {
	if r.Method == http.MethodPost {
		return receiveBody(r, t.Limits.BodyBytes)
	}
	return nil, nil
}

// request returns the request, of either method, for what receive returned.
func (t *transport) request(r *http.Request, text []byte) (*request, *refusal) {
	if r.Method == http.MethodPost {
		return readBody(text)
	}
	return readURL(r.URL.RawQuery)
}

// register keeps the text of a document that was sent with its hash.
func (t *transport) register(source source) {
	if source.register != "" {
		t.persisted.Add(source.register, source.text, int64(len(source.text))+sha256.Size*2)
	}
}

// run runs an operation and writes its response, with its cost, or returns why it
// did not begin.
func (t *transport) run(ctx context.Context, w http.ResponseWriter, media string, operation *document.Operation, held *running) *refusal {
	answer, refused := t.answer(ctx, operation, held)
	if refused != nil {
		return refused
	}
	write(w, media, http.StatusOK, answer, t.costOf(operation), sending{t.Limits.ClientBytes, t.sent(held)})
	return nil
}

// within returns a context for the time that an operation may take.
func (t *transport) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if limit := t.Limits.OperationTime; limit > 0 {
		return context.WithTimeout(ctx, limit)
	}
	return context.WithCancel(ctx)
}

// sent returns what takes back the pieces of an answer as they are sent.
func (t *transport) sent(held *running) func(piece []byte, left int) {
	return func(piece []byte, left int) {
		t.Executor.Release(piece)
		held.sent(left)
	}
}

// costOf returns the extensions of an answer: what its operation costs.
func (t *transport) costOf(operation *document.Operation) string {
	return t.costIs + strconv.FormatInt(operation.Price.Cost, 10) + "}}"
}

// answer runs an operation, or returns why it did not begin.
func (t *transport) answer(ctx context.Context, operation *document.Operation, held *running) (*graph.Answer, *refusal) {
	t.measured.operations[operation.Definition.Operation].Inc()
	t.measured.priced(operation.Price.Cost)
	run := t.work.begin()
	answer := t.Executor.Run(ctx, operation, t.Limits.AnswerBytes)
	took := run.end()
	if answer.Data == nil {
		return nil, refusedToRun(answer.Errors)
	}
	t.answered(ctx, operation, answer, held, took)
	return answer, nil
}

// answered notes an answer that is there, and charges its viewer for the work
// that its price did not say. Their next operation waits for it.
func (t *transport) answered(ctx context.Context, operation *document.Operation, answer *graph.Answer, held *running, took ran) {
	if t.SlowOperation > 0 && took.elapsed >= t.SlowOperation {
		t.logSlow(ctx, operation, answer.Taken, took.elapsed)
	}
	cost := answer.Taken.Cost
	if operation.Definition.Operation != ast.Mutation { // which waits for locks and for the disk
		cost = max(cost, took.cost())
	}
	t.principals.charge(access.ViewerFrom(ctx), int((cost-operation.Price.Cost)/pointCost), time.Now())
	held.answered(answer.Taken.Bytes)
	t.count(ctx, answer.Errors)
}

// logSlow logs an operation that took long: what it was priced and what it took,
// without its text and its variables.
func (t *transport) logSlow(ctx context.Context, operation *document.Operation, taken graph.Taken, took time.Duration) {
	t.Log.LogAttrs(ctx, slog.LevelWarn, "slow operation", slog.String("requestId", graph.RequestID(ctx)),
		slog.String("kind", string(operation.Definition.Operation)), slog.String("operation", clip(operation.Definition.Name, 100)),
		slog.Int64("milliseconds", took.Milliseconds()), slog.Int64("costPriced", operation.Price.Cost), slog.Int64("costFound", taken.Cost),
		slog.Int64("statements", taken.Statements), slog.Int64("rows", taken.Rows), slog.Int64("bytes", taken.Bytes),
		slog.Any("decisions", taken.Decisions))
}

// refuse writes a refusal and counts it.
func (t *transport) refuse(w http.ResponseWriter, r *http.Request, media string, why refusal) {
	why.errors = why.list(r.Context())
	t.count(r.Context(), why.errors)
	refuse(w, r, media, why)
}

// count counts the errors of an answer; the log line has the code of the first.
func (t *transport) count(ctx context.Context, errs gqlerror.List) {
	for i, err := range errs {
		code, _ := err.Extensions["code"].(string)
		if i == 0 {
			requestLogOf(ctx).code = code
		}
		t.measured.errors.WithLabelValues(code).Inc()
	}
}
