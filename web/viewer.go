package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/schema"
)

// checkMethod refuses unsupported methods, and requests that accept no media
// type of answers.
func checkMethod(w http.ResponseWriter, r *http.Request, media string) *refusal {
	if r.Method != http.MethodPost && r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET, POST")
		return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest,
			message: "the method is not supported: send requests by POST, or queries by GET"}
	}
	if media == "" {
		return &refusal{status: http.StatusNotAcceptable, code: graph.CodeBadRequest,
			message: "no acceptable media type: answers are " + mediaResponse + " or " +
				mediaJSON + ", in UTF-8, or " + mediaEvents}
	}
	return nil
}

// caller authenticates a request and takes its point. It refuses a token that
// is invalid or cannot be checked, and an address or a viewer over its rate.
func (t *transport) caller(w http.ResponseWriter, r *http.Request) (caller, *refusal) {
	arrived := t.buckets.arrive(rateLimitKey(requestLogOf(r.Context()).address), r.Header)
	if refused := arrived.take(); refused != nil {
		return caller{}, refused
	}
	viewer, err := t.Authenticate(r.Context(), r.Header)
	switch {
	case err == nil:
		requestLogOf(r.Context()).viewer = viewer
		of := callerOf(viewer, arrived.prove(viewer), r)
		if arrived.isProven() {
			return of, nil
		}
		return of, of.payer.take(1, time.Now())
	case isUnauthenticated(err):
		arrived.disprove()
		w.Header().Set("WWW-Authenticate", "Bearer")
		return caller{}, t.refuseUnauthenticated(r, messageOf(err))
	}
	t.Log.ErrorContext(r.Context(), "a token could not be checked", "requestId",
		graph.RequestID(r.Context()), "error", innermost(err))
	return caller{}, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 5,
		message: "the token cannot be checked at the moment"}
}

// isUnauthenticated reports whether err means that a token is missing or invalid.
func isUnauthenticated(err error) bool { return errors.Is(err, problem.ErrUnauthenticated) }

// unauthenticatedBytes bounds the body that the server reads without a valid
// token.
const unauthenticatedBytes = 16 << 10

var introspects = regexp.MustCompile(`\b__(schema|type)\b`)

// refuseUnauthenticated refuses a request without a valid token. In the locked
// profile the answer to introspection also says that the schema needs a token.
// It detects introspection by a search in the document, without parsing the
// document as GraphQL.
func (t *transport) refuseUnauthenticated(r *http.Request, message string) *refusal {
	unauthenticated := graph.ProtocolError(r.Context(), graph.CodeUnauthenticated, message)
	why := &refusal{status: http.StatusUnauthorized, errors: gqlerror.List{unauthenticated}}
	if t.Profile == Open || r.ContentLength < 0 || r.ContentLength > unauthenticatedBytes {
		return why
	}
	var text []byte
	if r.Method == http.MethodPost {
		var refused *refusal
		if text, refused = receiveBody(r, t.Limits.BodyBytes); refused != nil {
			return why
		}
	}
	if asked, refused := readRequest(r, text); refused == nil && introspects.MatchString(asked.query) {
		disabled := graph.ProtocolError(r.Context(), graph.CodeIntrospectionDisabled,
			"introspection needs a valid token")
		why.errors = gqlerror.List{disabled, unauthenticated}
	}
	return why
}

// innermost returns the last cause in a chain of refusals, otherwise err.
func innermost(err error) error {
	known := new(problem.Refusal)
	for errors.As(err, &known) && known.Cause() != nil {
		err = known.Cause()
	}
	return err
}

// serveSchema answers with the schema's SDL, if the viewer may read it.
func (t *transport) serveSchema(w http.ResponseWriter, r *http.Request) {
	if t.SchemaAccess != SchemaForAnyone {
		of, refused := t.caller(w, r)
		if refused == nil {
			refused = t.mayReadSchema(of.viewer)
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

// guarded returns a handler of metrics that serves only administrators and
// services in the locked profile, because metrics name projects. Requests to next
// then carry the viewer.
func (t *transport) guarded(next http.Handler) http.Handler {
	if t.Profile == Open {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of, refused := t.caller(w, r)
		if refused == nil && !of.viewer.IsAdmin() && !of.viewer.IsService() {
			refused = &refusal{status: http.StatusForbidden, code: graph.CodeForbidden,
				message: "metrics are for administrators and services; --metrics-listen serves them separately"}
		}
		if refused != nil {
			t.refuse(w, r, mediaJSON, *refused)
			return
		}
		next.ServeHTTP(w, r.WithContext(access.WithViewer(r.Context(), of.viewer)))
	})
}

// mayReadSchema refuses viewers who may not read the schema.
func (t *transport) mayReadSchema(viewer access.Viewer) *refusal {
	if t.SchemaAccess == SchemaForNobody {
		return &refusal{status: http.StatusForbidden, code: graph.CodeIntrospectionDisabled,
			message: "this server does not disclose the schema"}
	}
	if t.SchemaAccess == SchemaForAdmins && !viewer.IsAdmin() {
		return &refusal{status: http.StatusForbidden, code: graph.CodeIntrospectionDisabled,
			message: "only administrators may read the schema"}
	}
	return nil
}
