package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// send sends a request and returns the data of the answer, with its numbers as
// they are written.
func (s *session) send(request *graphql.Request) (data any, err error) {
	var text json.RawMessage
	err = s.api.MakeRequest(s.ctx, request, &graphql.Response{Data: &text})
	if len(text) == 0 || string(text) == "null" {
		return nil, err
	}
	data, wrong := decoded(text)
	if wrong != nil {
		return nil, wrong
	}
	return data, err
}

// pages is how a list of a document goes on.
type pages struct {
	variable string   // that of the cursor
	path     []string // of the list in the answer
}

// pagesOf returns the list of an operation whose argument `after` is a variable.
func pagesOf(document *ast.QueryDocument, operation *ast.OperationDefinition) (found pages, err error) {
	seen := map[string]bool{} // fragments, which can be in circles before the server checks them
	var walk func(set ast.SelectionSet, path []string)
	walk = func(set ast.SelectionSet, path []string) {
		for _, selected := range set {
			switch of := selected.(type) {
			case *ast.Field:
				here := append(slices.Clone(path), of.Alias)
				after := of.Arguments.ForName("after")
				if after != nil && after.Value.Kind == ast.Variable && found.variable == "" {
					found = pages{after.Value.Raw, here}
				}
				walk(of.SelectionSet, here)
			case *ast.InlineFragment:
				walk(of.SelectionSet, path)
			case *ast.FragmentSpread:
				if fragment := document.Fragments.ForName(of.Name); fragment != nil && !seen[of.Name] {
					seen[of.Name] = true
					walk(fragment.SelectionSet, path)
				}
			}
		}
	}
	walk(operation.SelectionSet, nil)
	if found.variable == "" || operation.Operation != ast.Query {
		return found, usagef("--paginate: the operation is no query with a list whose argument 'after' is a variable, " +
			"such as traits(first: 100, after: $after)")
	}
	return found, nil
}

// rest returns an answer, whose list has its first page, with the pages after that:
// all of them, or until it has as many rows as are asked for.
func (p pages) rest(whole any, variables map[string]any, send func() (any, error), most int) (any, error) {
	to, ok := at(whole, p.path)
	if !ok {
		return whole, nil // the list is of something that does not exist
	}
	for page := to; ; {
		next, more, err := nextOf(page, strings.Join(p.path, "."))
		rows, _ := to["nodes"].([]any)
		if err != nil || !more || most > 0 && len(rows) >= most {
			return whole, err
		}
		variables[p.variable] = next
		answer, err := send()
		if err != nil {
			return nil, err
		}
		if page, ok = at(answer, p.path); !ok {
			return nil, fmt.Errorf("the list %s is gone", strings.Join(p.path, "."))
		}
		for _, key := range []string{"nodes", "edges"} {
			if rows, ok := page[key].([]any); ok {
				before, _ := to[key].([]any)
				to[key] = append(before, rows...)
			}
		}
		to["pageInfo"] = page["pageInfo"]
	}
}

// nextOf returns the cursor of the page after one, and whether there is one.
func nextOf(page map[string]any, path string) (next any, more bool, err error) {
	info, _ := page["pageInfo"].(map[string]any)
	more, hasNext := info["hasNextPage"].(bool)
	next, hasCursor := info["endCursor"]
	if !hasNext || !hasCursor {
		return nil, false, usagef("--paginate: select pageInfo { hasNextPage endCursor } of %s", path)
	}
	return next, more, nil
}

// at returns the object at a path of an answer.
func at(data any, path []string) (map[string]any, bool) {
	object, ok := data.(map[string]any)
	for _, name := range path {
		if !ok {
			return nil, false
		}
		object, ok = object[name].(map[string]any)
	}
	return object, ok
}

// maxPage is how many rows a request asks for, and maxScan how many it looks through.
const (
	maxPage = 200
	maxScan = 1000
)

// firstOf returns how many rows a request for a limited number asks for.
func firstOf(most int) int {
	if most > 0 {
		return min(maxPage, most)
	}
	return maxPage
}

// answer sends an operation of the client and returns the data of the answer,
// with all pages of its list until that has most rows; 0 is all.
func (s *session) answer(of operation, variables map[string]any, most int) (any, error) {
	send := func() (any, error) { return s.send(of.request(variables)) }
	data, err := send()
	list, none := pagesOf(allOperations(), of.OperationDefinition)
	if err != nil || none != nil {
		return data, err
	}
	if page, ok := at(data, list.path); ok && page["pageInfo"] != nil {
		return list.rest(data, variables, send, most)
	}
	return data, nil
}
