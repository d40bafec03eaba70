package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/mcp"
)

// serveTools serves the tools for agents until the standard input ends. The
// server of the command runs their documents.
func serveTools(c *call) error {
	options := mcp.Options{Version: c.program.Version, Write: c.is("mcp-write")}
	return mcp.Serve(c.ctx, options, c.runTool, c.program.Stdin, c.stdout)
}

// runTool sends the document of a tool and returns the data and the errors.
func (c *call) runTool(ctx context.Context, document string, variables map[string]any) ([]byte, []mcp.Problem) {
	var text json.RawMessage
	request := &graphql.Request{Query: document, Variables: variables}
	err := c.api.MakeRequest(ctx, request, &graphql.Response{Data: &text})
	refused := new(client.Errors)
	switch {
	case errors.As(err, &refused):
		return text, lists.Map(refused.List, func(one *client.Error) mcp.Problem {
			return mcp.Problem{Code: string(one.Code), Field: one.Field, Message: one.Message}
		})
	case err != nil:
		return nil, []mcp.Problem{{Message: err.Error()}}
	}
	return text, nil
}
