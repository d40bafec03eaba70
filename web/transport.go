package web

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/lru"
)

// transport serves GraphQL at /graphql: by POST, by GET except for mutations, and
// over WebSockets. It also serves /import and /export.
type transport struct {
	Options
	measured  *measurements
	preparer  *graph.Preparer
	files     *graph.Preparer    // for imports and exports
	persisted *lru.Cache[string] // valid documents, by their hash
	buckets   *buckets
	gates     gates
	work      work
	streams   streams
	costIs    string // the beginning of the extensions of an answer
}

func newTransport(options Options, measured *measurements) *transport {
	t := &transport{
		Options:   options,
		measured:  measured,
		preparer:  options.Executor.Preparer(options.Limits.Limits),
		files:     options.Executor.Preparer(options.Limits.ofFiles()),
		persisted: lru.New[string](options.Limits.PersistedBytes),
		buckets:   newBuckets(options.Limits),
		gates:     newGates(options),
		streams:   newStreams(options.Limits),
		costIs:    fmt.Sprintf(`{"cost":{"maximum":%d,"requested":`, options.Limits.Cost),
	}
	options.Metrics.MustRegister(t)
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
	of, refused := t.caller(w, r)
	if refused != nil {
		return refused
	}
	allowTime(w, r)
	h, text, refused := t.admit(r, of)
	defer h.end()
	if refused != nil {
		return refused
	}
	ctx, cancel := t.within(access.WithViewer(r.Context(), of.viewer))
	defer cancel()
	if isExport(r) {
		ctx = graph.WithFileExport(ctx)
	}
	operation, refused := t.read(ctx, w, r, text, h)
	follows := operation != nil && operation.Definition.Operation == ast.Subscription
	if follows {
		h.bytes.Give(bodyBytes) // because a stream lasts long
	}
	if follows || media == mediaEvents {
		h.work.Give(operations)
		return t.serveEvents(w, r, of, operation, refused)
	}
	if refused != nil {
		return refused
	}
	if ctx, refused = once(ctx, r.Header, operation); refused != nil {
		return refused
	}
	return t.run(ctx, w, media, operation, h)
}

// within returns a context with the time limit of an operation.
func (t *transport) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if limit := t.Limits.OperationTime; limit > 0 {
		return context.WithTimeout(ctx, limit)
	}
	return context.WithCancel(ctx)
}

// maxRefusal bounds the retryAfter that delays a refusal: the delay is a sixth to
// a half of it.
const maxRefusal = 3 * time.Second

// delay waits before a refusal that tells the client to wait. Clients that try
// again immediately would otherwise take the processor from others, most of all
// by new connections.
func (why refusal) delay(ctx context.Context) {
	if wait := min(time.Duration(why.retryAfter)*time.Second, maxRefusal); wait > 0 {
		select {
		case <-time.After(wait/6 + rand.N(wait/3)):
		case <-ctx.Done():
		case <-openStreamsOf(ctx).stopping:
		}
	}
}

// refuse delays a refusal, writes it and counts it.
func (t *transport) refuse(w http.ResponseWriter, r *http.Request, media string, why refusal) {
	why.delay(r.Context())
	why.errors = why.list(r.Context())
	t.count(r.Context(), why.errors)
	refuse(w, r, media, why)
}

// count counts the errors of an answer. The log line has the code of the first
// error.
func (t *transport) count(ctx context.Context, errs gqlerror.List) {
	for i, err := range errs {
		code, _ := err.Extensions["code"].(string)
		if i == 0 {
			requestLogOf(ctx).code = code
		}
		t.measured.errors.WithLabelValues(code).Inc()
	}
}
