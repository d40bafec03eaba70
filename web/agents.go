package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/mcp"
)

// agentsPath is the path of the tools for agents; see package mcp.
const agentsPath = "/mcp"

// Tools says which tools for agents /mcp serves.
type Tools string

const (
	NoTools        Tools = ""     // and no /mcp
	ReadingTools   Tools = "read" // tools that only read
	ReadWriteTools Tools = "write"
)

// agents serves the tools for agents. Each request carries one message of the
// Model Context Protocol.
type agents struct {
	*transport
	tools http.Handler
}

func newAgents(t *transport) *agents {
	options := mcp.Options{Version: t.Version, Write: t.Tools == ReadWriteTools}
	return &agents{t, mcp.Handler(options, func(r *http.Request) mcp.Run {
		of, _ := r.Context().Value(callerKey{}).(caller)
		return t.runnerOf(r.Context(), of)
	})}
}

type callerKey struct{}

// toolAnswerBytes bounds the answer to the document of a tool: the tool decodes
// it, and shows a few kilobytes.
const toolAnswerBytes = 1 << 20

type toolKey struct{}

// isTool reports whether ctx is the context of a tool's document.
func isTool(ctx context.Context) bool { return ctx.Value(toolKey{}) != nil }

// ServeHTTP authenticates a request, receives its message within the limits and
// the gates of every request, and passes it to the tools.
func (a *agents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refused := a.serve(w, r); refused != nil {
		a.refuse(w, r, mediaJSON, *refused)
	}
}

func (a *agents) serve(w http.ResponseWriter, r *http.Request) *refusal {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		return &refusal{status: http.StatusMethodNotAllowed, code: graph.CodeBadRequest,
			message: "the method is not supported: send each message by POST"}
	}
	of, refused := a.caller(w, r)
	if refused != nil {
		return refused
	}
	h, text, refused := a.admit(r, of)
	defer h.end()
	if refused != nil {
		return refused
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return bad("the body is a list: send each message in a separate request")
	}
	if !mcp.IsMessage(text) {
		return bad("the body is not a message of JSON-RPC 2.0")
	}
	h.work.Give(operations, readings) // a call takes its own places
	ctx, cancel := a.within(context.WithValue(r.Context(), callerKey{}, of))
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(text))
	requestLogOf(ctx).operation = toolOf(text)
	a.tools.ServeHTTP(w, r)
	return nil
}

// toolOf returns the name of the tool that a message calls, or the message's
// method.
func toolOf(text []byte) string {
	var message struct {
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal(text, &message) // the tools refuse a malformed message
	if message.Params.Name != "" {
		return clip(message.Params.Name, 100)
	}
	return clip(message.Method, 100)
}

// runnerOf returns the function that runs the documents of tools for a caller,
// with the price, the gates and the limits of every operation. The function may
// outlive the request, so it has its own requestLog.
func (t *transport) runnerOf(of context.Context, by caller) mcp.Run {
	values := access.WithViewer(context.WithoutCancel(of), by.viewer)
	values = context.WithValue(values, requestLogKey{}, &requestLog{})
	values = context.WithValue(values, toolKey{}, true)
	return func(ctx context.Context, text string, variables map[string]any) ([]byte, []mcp.Problem) {
		within, cancel := t.within(values)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		defer context.AfterFunc(of, cancel)()
		h, refused := t.gates.enter(within, by)
		defer h.end()
		var answer *graph.Answer
		if refused == nil {
			answer, refused = t.runTool(within, text, variables, h)
		}
		if refused != nil {
			list := refused.list(within)
			t.count(within, list)
			return nil, toolProblems(list)
		}
		defer t.Executor.Release(answer.Data...)
		return bytes.Join(answer.Data, nil), toolProblems(answer.Errors)
	}
}

// runTool prepares and runs the document of a tool.
func (t *transport) runTool(ctx context.Context, text string, variables map[string]any,
	h *held) (*graph.Answer, *refusal) {
	request := document.Request{Text: text, Variables: variables, Trusted: true}
	prepared := t.preparer.Prepare(ctx, request)
	h.payer.charge(int(prepared.Effort/pointCost), time.Now())
	if prepared.Refused != nil {
		return nil, &refusal{errors: prepared.Refused}
	}
	if points := pointsOf(access.ViewerFrom(ctx), prepared.Operation); points > 0 {
		if refused := h.payer.take(points, time.Now()); refused != nil {
			return nil, refused
		}
	}
	if prepared.Operation.Definition.Operation == ast.Query { // agents send no position
		ctx = graph.ReadLatest(ctx)
	}
	return t.answer(ctx, prepared.Operation, h)
}

// toolProblems returns the errors of an answer for a tool.
func toolProblems(errs gqlerror.List) []mcp.Problem {
	problems := make([]mcp.Problem, len(errs))
	for i, err := range errs {
		problems[i].Message = err.Message
		problems[i].Code, _ = err.Extensions["code"].(string)
		problems[i].Field, _ = err.Extensions["field"].(string)
	}
	return problems
}
