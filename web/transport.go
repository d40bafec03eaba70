package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/lru"
	"github.com/cadastre-dev/cadastre/problem"
)

// transport answers /graphql: GraphQL over HTTP by POST and, for queries, GET.
type transport struct {
	Options
	measured   *measurements
	reader     *document.Reader
	persisted  *lru.Cache[string] // texts of valid documents, by their hash
	principals *buckets
	projects   *buckets
	addresses  *buckets
	slots      slots
}

func newTransport(options Options, measured *measurements) *transport {
	return &transport{
		Options:    options,
		measured:   measured,
		reader:     document.NewReader(options.Executor.Schema(), options.Limits.ofDocuments()),
		persisted:  lru.New[string](options.Limits.PersistedBytes),
		principals: newBuckets(options.Limits.PrincipalPoints),
		projects:   newBuckets(options.Limits.ProjectWrites),
		addresses:  newBuckets(options.Limits.AddressPoints),
		slots:      newSlots(options.Limits.Concurrent),
	}
}

func (t *transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	media := negotiate(r.Header)
	if problem := t.serve(w, r, media); problem != nil {
		if media == "" {
			media = mediaJSON
		}
		t.refuse(w, r, media, *problem)
	}
}

// serve answers a request, or says why not.
func (t *transport) serve(w http.ResponseWriter, r *http.Request, media string) *refusal {
	if r.Method != http.MethodPost && r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET, POST")
		return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest, message: "send requests by POST, or queries by GET"}
	}
	if media == "" {
		return &refusal{status: http.StatusNotAcceptable, code: graph.CodeBadRequest,
			message: "answers are " + mediaResponse + " or " + mediaJSON + ", in UTF-8"}
	}
	viewer, problem := t.viewer(w, r)
	if problem != nil {
		return problem
	}
	request, problem := t.read(r)
	if problem != nil {
		return problem
	}
	source, problem := t.resolve(request)
	if problem != nil {
		return problem
	}
	if r.Method == http.MethodGet && t.Profile != Open && !source.persisted {
		w.Header().Set("Allow", "POST")
		return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest, message: "send queries by POST; by GET only persisted ones are taken"}
	}
	giveBack, problem := t.slots.take(r.Context())
	if problem != nil {
		return problem
	}
	defer giveBack()
	ctx := access.WithViewer(r.Context(), viewer)
	if limit := t.Limits.OperationTime; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	operation, problem := t.prepare(ctx, request, source)
	if problem != nil {
		return problem
	}
	sightOf(ctx).operation = clip(operation.Definition.Name, 100)
	if r.Method == http.MethodGet && operation.Definition.Operation != ast.Query {
		w.Header().Set("Allow", "POST")
		return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest, message: "only queries are taken by GET"}
	}
	if errs := t.reader.CheckCost(operation); errs != nil {
		return t.refused(ctx, errs)
	}
	if problem := t.spend(viewer, operation); problem != nil {
		return problem
	}
	t.run(ctx, w, media, operation)
	return nil
}

// spend takes what an operation costs beyond the first point from its viewer's
// bucket, and what it writes from that of the project.
func (t *transport) spend(viewer access.Viewer, operation *document.Operation) *refusal {
	if points := int(operation.Cost / pointCost); points > 0 {
		if problem := t.principals.take(principal(viewer), points, time.Now()); problem != nil {
			return problem
		}
	}
	if operation.Writes > 0 {
		return t.projects.take(viewer.ProjectID, operation.Writes, time.Now())
	}
	return nil
}

// viewer is who sent the request, when neither their address nor they themselves
// have sent too many.
func (t *transport) viewer(w http.ResponseWriter, r *http.Request) (access.Viewer, *refusal) {
	from := neighbourhood(sightOf(r.Context()).address)
	if problem := t.addresses.take(from, 1, time.Now()); problem != nil {
		return access.Viewer{}, problem
	}
	viewer, err := t.Authenticate(r.Context(), r.Header)
	if err == nil {
		sightOf(r.Context()).viewer = viewer
		return viewer, t.principals.take(principal(viewer), 1, time.Now())
	}
	if known := new(problem.Refusal); errors.As(err, &known) && errors.Is(err, problem.ErrUnauthenticated) {
		t.addresses.charge(from, refusedPoints, time.Now())
		w.Header().Set("WWW-Authenticate", "Bearer")
		return viewer, t.refuseStranger(r, known.Message)
	}
	t.Log.ErrorContext(r.Context(), "a token could not be checked", "requestId", graph.RequestID(r.Context()), "error", innermost(err))
	return viewer, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 5,
		message: "the token cannot be checked at the moment"}
}

// strangerBytes bounds the body that is read of a stranger.
const strangerBytes = 16 << 10

var introspects = regexp.MustCompile(`\b__(schema|type)\b`)

// refuseStranger refuses a request without a known token. In the locked profile
// one that asks for the schema is told that this, too, takes a token; for that
// its text is looked at, but neither parsed nor kept.
func (t *transport) refuseStranger(r *http.Request, message string) *refusal {
	unauthenticated := graph.Problem(r.Context(), graph.CodeUnauthenticated, message)
	why := &refusal{status: http.StatusUnauthorized, errors: gqlerror.List{unauthenticated}}
	if t.Profile == Open || r.ContentLength < 0 || r.ContentLength > strangerBytes {
		return why
	}
	if asked, problem := t.read(r); problem == nil && introspects.MatchString(asked.query) {
		disabled := graph.Problem(r.Context(), graph.CodeIntrospectionDisabled, "the schema is told to known users only")
		why.errors = gqlerror.List{disabled, unauthenticated}
	}
	return why
}

// innermost is what led to a refusal, at the end of the chain.
func innermost(err error) error {
	known := new(problem.Refusal)
	for errors.As(err, &known) && known.Cause() != nil {
		err = known.Cause()
	}
	return err
}

// read reads the request, by either method.
func (t *transport) read(r *http.Request) (*request, *refusal) {
	if r.Method == http.MethodPost {
		return readBody(r, t.Limits.BodyBytes)
	}
	return readURL(r.URL.RawQuery)
}

// prepare makes an operation of a request, judged by every limit that can be
// held before it is estimated.
func (t *transport) prepare(ctx context.Context, request *request, source source) (*document.Operation, *refusal) {
	if errs := t.reader.CheckVariables(request.variables); errs != nil {
		return nil, t.refused(ctx, errs)
	}
	valid, errs := t.reader.Read(source.text, document.ReadOptions{Trusted: source.trusted, Hints: t.Profile == Open})
	if errs != nil {
		return nil, t.refused(ctx, errs)
	}
	t.register(source)
	operation, errs := valid.Operation(request.operationName, request.variables)
	if errs != nil {
		return nil, t.refused(ctx, errs)
	}
	return operation, nil
}

// refused is the refusal of a document or of its variables. What is not Unicode
// is no request at all.
func (t *transport) refused(ctx context.Context, errs gqlerror.List) *refusal {
	why := &refusal{errors: graph.PresentErrors(ctx, t.Log, errs)}
	if errors.Is(errs, document.ErrNotUnicode) {
		why.status = http.StatusBadRequest
	}
	return why
}

// register keeps the text of a document that came with its hash.
func (t *transport) register(source source) {
	if source.register != "" {
		t.persisted.Add(source.register, source.text, int64(len(source.text))+sha256.Size*2)
	}
}

// run runs an operation and answers with what came of it, and what it cost.
func (t *transport) run(ctx context.Context, w http.ResponseWriter, media string, operation *document.Operation) {
	t.measured.operations.WithLabelValues(string(operation.Definition.Operation)).Inc()
	t.measured.cost.Add(float64(operation.Cost))
	response := t.Executor.Run(ctx, operation)
	t.count(ctx, response.Errors)
	response.Extensions = map[string]any{"cost": map[string]int64{"requested": operation.Cost, "maximum": t.Limits.Cost}}
	write(w, media, http.StatusOK, response)
}

// refuse answers with a refusal, and counts it.
func (t *transport) refuse(w http.ResponseWriter, r *http.Request, media string, why refusal) {
	why.errors = why.list(r.Context())
	t.count(r.Context(), why.errors)
	refuse(w, r, media, why)
}

// count counts the errors of an answer; the log line names the first.
func (t *transport) count(ctx context.Context, errors gqlerror.List) {
	for i, err := range errors {
		code, _ := err.Extensions["code"].(string)
		if i == 0 {
			sightOf(ctx).code = code
		}
		t.measured.errors.WithLabelValues(code).Inc()
	}
}
