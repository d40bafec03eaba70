package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/graph"
)

// transport answers /graphql: GraphQL over HTTP by POST and, for queries, GET.
type transport struct {
	Options
	measured *measurements
}

func newTransport(options Options, measured *measurements) *transport {
	return &transport{Options: options, measured: measured}
}

func (t *transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
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
	request, problem := t.read(w, r)
	if problem != nil {
		return problem
	}
	ctx := catalog.WithViewer(r.Context(), viewer)
	operation, problem := t.prepare(ctx, request)
	if problem != nil {
		return problem
	}
	sightOf(ctx).operation = clip(operation.Definition.Name, 100)
	if r.Method == http.MethodGet && operation.Definition.Operation != ast.Query {
		w.Header().Set("Allow", "POST")
		return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest, message: "only queries are taken by GET"}
	}
	t.run(ctx, w, media, operation)
	return nil
}

// viewer is who sent the request.
func (t *transport) viewer(w http.ResponseWriter, r *http.Request) (catalog.Viewer, *refusal) {
	viewer, err := t.Authenticate(r.Context(), r.Header)
	if err == nil {
		sightOf(r.Context()).viewer = viewer
		return viewer, nil
	}
	if known := new(catalog.Refusal); errors.As(err, &known) && errors.Is(err, catalog.ErrUnauthenticated) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return viewer, &refusal{status: http.StatusUnauthorized, code: graph.CodeUnauthenticated, message: known.Message}
	}
	t.Log.ErrorContext(r.Context(), "a token could not be checked", "requestId", graph.RequestID(r.Context()), "error", err)
	return viewer, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 5,
		message: "the token cannot be checked at the moment"}
}

// read reads the request, by either method.
func (t *transport) read(w http.ResponseWriter, r *http.Request) (*request, *refusal) {
	if r.Method == http.MethodPost {
		return readBody(r, t.Limits.BodyBytes)
	}
	request, problem := readURL(r.URL.RawQuery)
	if problem != nil {
		return nil, problem
	}
	if t.Profile != Open {
		w.Header().Set("Allow", "POST")
		return nil, &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest, message: "send queries by POST"}
	}
	return request, nil
}

// prepare makes an operation of a request, judged by every limit that can be
// held before it runs.
func (t *transport) prepare(ctx context.Context, request *request) (*graph.Operation, *refusal) {
	if request.query == "" {
		return nil, bad("the request has no query")
	}
	document, refused := t.Executor.Parse(ctx, request.query, t.Limits.Tokens)
	if refused != nil {
		return nil, &refusal{errors: refused}
	}
	if problem := refuseTexts(request, document); problem != nil {
		return nil, problem
	}
	if refused := t.Executor.Validate(ctx, document, t.Profile == Open); refused != nil {
		return nil, &refusal{errors: refused}
	}
	operation, refused := t.Executor.Prepare(ctx, document, request.operationName, request.variables)
	if refused != nil {
		return nil, &refusal{errors: refused}
	}
	return operation, nil
}

// run runs an operation and answers with what came of it.
func (t *transport) run(ctx context.Context, w http.ResponseWriter, media string, operation *graph.Operation) {
	if limit := t.Limits.OperationTime; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	t.measured.operations.WithLabelValues(string(operation.Definition.Operation)).Inc()
	response := t.Executor.Run(ctx, operation)
	t.count(ctx, response.Errors)
	write(w, media, http.StatusOK, response)
}

// refuse answers with a refusal, and counts it.
func (t *transport) refuse(w http.ResponseWriter, r *http.Request, media string, why refusal) {
	if why.errors == nil {
		problem := graph.Problem(r.Context(), why.code, why.message)
		t.count(r.Context(), gqlerror.List{problem})
	} else {
		t.count(r.Context(), why.errors)
	}
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
