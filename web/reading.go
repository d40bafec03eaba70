package web

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
)

// The costs of reading.
const (
	smallBody    = 16 << 10 // a body of up to this many bytes needs no room
	memoryOfBody = 8        // memory in bytes that each byte of a body takes
	unknownBody  = 1 << 20  // the room in bytes for a body without a length if there is no limit
	// longRequest is the size in bytes above which a request takes long to
	// read. Shorter requests take a few milliseconds at most.
	longRequest = 2 << 10
	// bytesOfCost is the number of JSON bytes of a request that cost as much as
	// one field of an answer.
	bytesOfCost = 50
)

// admit waits for a place, for room for a long body and for a turn to read it,
// and receives the body. The caller must call h.end.
func (t *transport) admit(r *http.Request, of caller) (h *held, text []byte, refused *refusal) {
	if h, refused = t.gates.enter(r.Context(), of); refused != nil {
		return h, nil, refused
	}
	if r.Method == http.MethodPost {
		if refused = t.makeRoom(r, h); refused == nil {
			text, refused = receiveBody(r, t.bodyLimit(r))
		}
		if refused != nil {
			return h, nil, refused
		}
		h.bytes.Change(bodyBytes, memoryOf(r)*int64(len(text))) // the request may have had no length
	}
	if isExport(r) {
		if refused = refusedAtGate(h.bytes.Take(r.Context(), bodyBytes, memoryOfFile*graph.FileBytes)); refused != nil {
			return h, nil, refused
		}
	}
	return h, text, h.turn(r.Context(), lengthOf(r, text))
}

// makeRoom waits for room for a long body.
func (t *transport) makeRoom(r *http.Request, h *held) *refusal {
	limit, size := t.bodyLimit(r), r.ContentLength
	if size < 0 || limit > 0 && size > limit {
		size = cmp.Or(limit, unknownBody)
	}
	if size <= smallBody {
		return nil
	}
	return refusedAtGate(h.bytes.Take(r.Context(), bodyBytes, memoryOf(r)*size))
}

// turn waits until the request may be read, if it is long or its viewer has
// spent much. At most half of the cores read such requests.
func (h *held) turn(ctx context.Context, length int) *refusal {
	if h.turns = length > longRequest || h.payer.isGreedy(time.Now()); !h.turns {
		return nil
	}
	return refusedAtGate(h.work.Take(ctx, readings, 1))
}

// lengthOf returns the number of bytes of a request that the server parses.
func lengthOf(r *http.Request, text []byte) int { return len(text) + len(r.URL.RawQuery) }

// read returns the operation of a request and takes its price. The viewer pays
// for parsing and validating a document even if the operation is refused.
func (t *transport) read(ctx context.Context, w http.ResponseWriter, r *http.Request, text []byte,
	h *held) (*document.Operation, *refusal) {
	defer h.work.Give(readings)
	request, refused := readRequest(r, text)
	if refused != nil {
		return nil, refused
	}
	from, refused := t.resolve(request)
	if refused != nil {
		return nil, refused
	}
	if r.Method == http.MethodGet && t.Profile != Open && !from.persisted {
		return nil, onlyByPost(w, "GET requires a persisted query: send this query by POST")
	}
	prepared := t.preparerOf(r).Prepare(ctx, document.Request{
		Text: from.text, OperationName: request.operationName, Variables: request.variables,
		Trusted: from.trusted, Hints: t.Profile == Open,
	})
	h.payer.charge(int((prepared.Effort+int64(lengthOf(r, text)/bytesOfCost))/pointCost), time.Now())
	if refused := t.check(ctx, w, r, from, prepared); refused != nil {
		return nil, refused
	}
	points := pointsOf(access.ViewerFrom(ctx), prepared.Operation)
	if isImport(r) {
		points = min(points, t.maxPoints())
	}
	if points > 0 {
		return prepared.Operation, h.payer.take(points, time.Now())
	}
	return prepared.Operation, nil
}

// pointsOf returns the points that an operation costs in addition to the one
// that every request costs.
func pointsOf(viewer access.Viewer, operation *document.Operation) int {
	points := operation.Price.Cost / pointCost
	if !viewer.IsAdmin() && !viewer.IsService() {
		points += writePoints * operation.Price.Mutations
	}
	return int(points)
}

// check returns the refusal of a prepared operation that must not run. It keeps
// the text of a valid document that arrived with its hash.
func (t *transport) check(ctx context.Context, w http.ResponseWriter, r *http.Request, from source,
	prepared document.Prepared) *refusal {
	if prepared.Valid && from.register != "" {
		t.persisted.Add(from.register, from.text, int64(len(from.text)+len(from.register)))
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
	if isImport(r) {
		return checkImport(prepared.Operation)
	}
	if prepared.Operation.Introspects {
		return t.mayReadSchema(access.ViewerFrom(ctx))
	}
	return nil
}

// onlyByPost returns the refusal of a GET that must be a POST.
func onlyByPost(w http.ResponseWriter, message string) *refusal {
	w.Header().Set("Allow", "POST")
	return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest, message: message}
}
