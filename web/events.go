package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// heartbeat is the interval of comments in event streams and of WebSocket pings.
const heartbeat = 15 * time.Second

// serveEvents answers a request with a stream of events, in the distinct
// connections mode of graphql-sse: `next` for each answer and `complete` at the
// end. If refused is not nil, the operation does not run: serveEvents returns a
// refusal that has an HTTP status, and sends any other on the stream.
func (t *transport) serveEvents(w http.ResponseWriter, r *http.Request, of caller,
	operation *document.Operation, refused *refusal) *refusal {
	if refused != nil && refused.status != 0 {
		return refused
	}
	if !acceptsEvents(r.Header) {
		return &refusal{status: http.StatusNotAcceptable, code: graph.CodeBadRequest,
			message: "a subscription requires a stream: send Accept: " + mediaEvents +
				", or use a WebSocket with the subprotocol " + subprotocol}
	}
	leave, full := t.streams.sockets.enter(of.party.Viewer)
	if full != nil {
		return full
	}
	defer leave()
	ctx, s, done := t.stream(r)
	defer done()
	s.viewer = of.viewer
	w = uncompressed(w) // sends small events, each immediately
	client := http.NewResponseController(w)
	_ = client.SetReadDeadline(time.Time{}) // the recorders of tests have none
	header := w.Header()
	header.Set("Content-Type", mediaEvents+"; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies pass on each event immediately
	to := &eventStream{session: s, to: w, client: client}
	if to.comment() != nil {
		return nil
	}
	if refused != nil {
		_ = s.refuseOn(ctx, to, refused) // fails only if the stream has ended
		return nil
	}
	var aside sync.WaitGroup
	defer aside.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop()
	aside.Go(func() { s.watch(running) })
	aside.Go(func() { to.beat(running) })
	if operation.Definition.Operation == ast.Subscription {
		_ = s.follow(ctx, of, operation, to) // fails only if the stream has ended; sayWhy follows
	} else {
		h, refused := t.gates.enter(ctx, of)
		if refused == nil {
			_ = s.runOne(ctx, operation, r.Header, h, to)
		} else {
			_ = s.refuseOn(ctx, to, refused)
		}
		h.end()
	}
	to.sayWhy(ctx)
	return nil
}

// eventStream is a receiver of the events of one request.
type eventStream struct {
	*session
	mu     sync.Mutex
	to     io.Writer
	client *http.ResponseController
	ended  bool
}

// write writes text. If the client does not take it, write ends the session.
func (e *eventStream) write(text []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return errClientGone
	}
	latest := e.latest(len(text))
	_ = e.client.SetWriteDeadline(latest) // the recorders of tests have none
	_, err := e.to.Write(text)
	if err == nil {
		err = e.client.Flush()
	}
	if err != nil {
		e.ended = true
		why := errClientGone
		if !time.Now().Before(latest) {
			why = errSlow
		}
		e.end(why)
		return why
	}
	return nil
}

// comment sends a comment, which clients ignore.
func (e *eventStream) comment() error { return e.write([]byte(":\n\n")) }

// beat sends a comment every heartbeat until the context ends.
func (e *eventStream) beat(ctx context.Context) {
	for pause.For(ctx, heartbeat) && e.comment() == nil {
	}
}

func (e *eventStream) next(answer *graph.Answer, extensions string, sent func([]byte, int)) error {
	text := whole("event: next\ndata: ", answer, extensions, "\n\n", sent)
	// stored JSON may have line breaks
	if body := text[len("event: next\n") : len(text)-2]; bytes.ContainsAny(body, "\r\n") {
		lines := bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r"), []byte("\n")), []byte("\n"), []byte("\ndata: "))
		text = append(append([]byte("event: next\n"), lines...), "\n\n"...)
	}
	return e.write(text)
}

func (e *eventStream) refused(errs gqlerror.List) error {
	if err := e.next(&graph.Answer{Errors: errs}, "", func([]byte, int) {}); err != nil {
		return err
	}
	return e.complete()
}

func (e *eventStream) complete() error { return e.write([]byte("event: complete\ndata: \n\n")) }

// sayWhy tells the client if the stream ended because its token is no longer
// valid or has other permissions. A stream that ends for another reason ends
// without a message, which makes clients connect again.
func (e *eventStream) sayWhy(ctx context.Context) {
	if ctx.Err() == nil {
		return
	}
	if why := endingOf(ctx); why.code == closedForbidden {
		err := graph.ProtocolError(ctx, graph.CodeUnauthenticated, why.reason)
		_ = e.refused(gqlerror.List{err}) // the client may have gone
	}
}
