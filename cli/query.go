package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/mcp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// sendDocument sends the document of `query`. By default it shows the data of
// the answer as JSON. Other forms show the first list in it.
func sendDocument(c *call) error {
	text, err := c.document()
	if err != nil {
		return err
	}
	document, err := parser.ParseQuery(&ast.Source{Name: "document", Input: text})
	if err != nil {
		return usagef("the document: %w", err)
	}
	operation, err := chosenOf(document, c.text("operation"))
	if err != nil {
		return err
	}
	if operation.Operation == ast.Subscription {
		return usagef("the document is a subscription: `cadastre watch` follows changes")
	}
	variables, err := variablesOf(operation, c.given["variable"])
	if err != nil {
		return err
	}
	pages, err := pagesOf(document, operation)
	if c.is("paginate") && err != nil {
		return err
	}
	send := func() (any, error) {
		return c.send(&graphql.Request{Query: text, OpName: operation.Name, Variables: variables})
	}
	data, err := send()
	if c.is("paginate") && err == nil {
		data, err = pages.rest(data, variables, send, 0)
	}
	if data == nil {
		return err
	}
	return cmp.Or(c.showAnswer(data), err) // an answer can have data and an error
}

func (c *call) showAnswer(data any) error {
	form := c.out
	if form.form == "" && len(form.columns) == 0 && !form.quiet {
		form.form = "json"
	}
	if form.isData() && len(form.columns) == 0 {
		return form.showData(c.stdout, data)
	}
	rows, columns := rowsOf(data)
	return form.show(c.stdout, columns, rows, false)
}

// document returns the document from the argument, --file or the standard
// input.
func (c *call) document() (string, error) {
	document, file := c.text("document"), c.text("file")
	switch {
	case document != "" && file != "":
		return "", usagef("--file cannot be combined with a document")
	case document != "":
		return document, nil
	case file != "" && file != "-":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", usagef("--file: %w", err)
		}
		return string(text), nil
	}
	text, err := io.ReadAll(c.input())
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		return string(text), nil
	}
	return "", usagef("nothing to send: write a document, --file, or the standard input")
}

// chosenOf returns the operation with a name. An empty name means the only
// operation of the document.
func chosenOf(document *ast.QueryDocument, name string) (*ast.OperationDefinition, error) {
	operation := document.Operations.ForName(name)
	switch {
	case operation != nil:
		return operation, nil
	case name == "":
		return nil, usagef("the document has %d operations: name one with --operation", len(document.Operations))
	}
	return nil, usagef("--operation: the document has no operation %q", name)
}

// variablesOf parses KEY=VALUE. A value is a string if the operation declares a
// String, ID, UUID or DateTime, otherwise JSON.
func variablesOf(operation *ast.OperationDefinition, written []string) (map[string]any, error) {
	variables := map[string]any{}
	for _, one := range written {
		key, value, ok := strings.Cut(one, "=")
		declared := operation.VariableDefinitions.ForName(key)
		switch {
		case !ok:
			return nil, usagef("--variable: %q is not of the form KEY=VALUE", one)
		case declared == nil:
			return nil, usagef("--variable: the operation declares no variable $%s", key)
		case slices.Contains([]string{"String", "ID", "UUID", "DateTime"}, declared.Type.NamedType):
			variables[key] = value
		default:
			variables[key] = jsonOf(value)
		}
	}
	return variables, nil
}

// rowsOf returns the first list in an answer as rows, and the members of its
// objects as columns in alphabetical order. Without a list, the only row is the
// answer, or the innermost object in it that is an only member.
func rowsOf(data any) (rows []any, columns []column) {
	rows = firstList(data)
	if rows == nil {
		object := data
		for only := onlyMember(data); only != nil; only = onlyMember(only) {
			object = only
		}
		rows = []any{object}
	}
	names := map[string]bool{}
	for _, row := range rows {
		members, _ := row.(map[string]any)
		for name := range members {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		columns = append(columns, column{name: name, path: name})
	}
	if columns == nil { // a list of strings, or one value
		columns = []column{{name: "value"}}
	}
	return rows, columns
}

// onlyMember returns the object that is the only member of an object; nil for
// anything else.
func onlyMember(value any) any {
	members, _ := value.(map[string]any)
	for _, member := range members {
		if of, ok := member.(map[string]any); ok && len(members) == 1 {
			return of
		}
	}
	return nil
}

// firstList returns the first list in a value. It searches the members of an
// object in the order of their names.
func firstList(value any) (list []any) {
	list, _ = value.([]any)
	members, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if list == nil {
			list = firstList(members[name])
		}
	}
	return list
}

// send sends a request and returns the data of the answer. Numbers keep their
// digits.
func (c *call) send(request *graphql.Request) (data any, err error) {
	var text json.RawMessage
	err = c.api.MakeRequest(c.ctx, request, &graphql.Response{Data: &text})
	if len(text) == 0 || string(text) == "null" {
		return nil, err
	}
	data, wrong := decoded(text)
	if wrong != nil {
		return nil, wrong
	}
	return data, err
}

// pages is a list with pages in a document.
type pages struct{ variable, path string } // of the cursor, and of the list in the answer

// pagesOf returns the first list of a query with a variable as argument
// `after`, or an error if there is none.
func pagesOf(document *ast.QueryDocument, operation *ast.OperationDefinition) (found pages, err error) {
	seen := map[string]bool{} // fragments; the server has not checked for cycles yet
	var walk func(set ast.SelectionSet, path []string)
	walk = func(set ast.SelectionSet, path []string) {
		for _, selected := range set {
			switch of := selected.(type) {
			case *ast.Field:
				here := append(slices.Clone(path), of.Alias)
				after := of.Arguments.ForName("after")
				if after != nil && after.Value.Kind == ast.Variable && found.variable == "" {
					found = pages{after.Value.Raw, strings.Join(here, ".")}
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
		return found, usagef("--paginate requires a query with a list whose argument 'after' is a " +
			"variable, such as traits(first: 100, after: $after)")
	}
	return found, nil
}

// rest appends the further pages of a list to its first page in an answer,
// until the list has `most` rows or more; 0 means all pages.
func (p pages) rest(whole any, variables map[string]any, send func() (any, error), most int) (any, error) {
	to, ok := valueAt(whole, p.path).(map[string]any)
	if !ok {
		return whole, nil // the parent of the list does not exist
	}
	for page := to; ; {
		info, _ := page["pageInfo"].(map[string]any)
		more, hasNext := info["hasNextPage"].(bool)
		next, hasCursor := info["endCursor"]
		switch {
		case !hasNext || !hasCursor:
			return whole, usagef("--paginate: select pageInfo { hasNextPage endCursor } of %s", p.path)
		case !more || most > 0 && len(listOf(to, "nodes")) >= most:
			return whole, nil
		}
		variables[p.variable] = next
		answer, err := send()
		if err != nil {
			return nil, err
		}
		if page, ok = valueAt(answer, p.path).(map[string]any); !ok {
			return nil, fmt.Errorf("--paginate: a later page has no list %s", p.path)
		}
		for _, key := range []string{"nodes", "edges"} {
			if rows, ok := page[key].([]any); ok {
				to[key] = append(listOf(to, key), rows...)
			}
		}
		to["pageInfo"] = page["pageInfo"]
	}
}

// maxPage is the number of rows in a page, and maxScan of rows in a scan.
const (
	maxPage = 200
	maxScan = 1000
)

// answer sends an operation of the client and returns the data of the answer.
// It reads further pages of the list until there are `most` rows or more; 0
// means all pages.
func (c *call) answer(of operation, variables map[string]any, most int) (any, error) {
	send := func() (any, error) {
		document, declared := of.document(variables)
		return c.send(&graphql.Request{Query: document, OpName: of.Name, Variables: declared})
	}
	data, err := send()
	list, none := pagesOf(allOperations(), of.OperationDefinition)
	if err != nil || none != nil || valueAt(data, list.path+".pageInfo") == nil {
		return data, err
	}
	return list.rest(data, variables, send, most)
}

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

// watch follows the subscription of a command and shows its events as they
// come, until the context ends or --limit is reached.
func watch(c *call) error {
	server, err := c.api.connected(c.ctx, nil)
	if err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	if names := c.given[c.verb.name]; names != nil {
		c.variables["uuids"], c.variables["names"] = names, names // each subscription declares one of them
	}
	document, variables := c.operation.document(c.variables)
	shown := 0
	for data, err := range client.Follow[json.RawMessage](c.ctx, server, document, variables) {
		if err != nil {
			return c.api.explained(err)
		}
		event, err := decoded(data)
		if err != nil {
			return err
		}
		if err := c.showEvent(onlyMember(event), shown == 0); err != nil {
			return err
		}
		if shown++; shown == c.number("limit") {
			break
		}
	}
	return nil
}

// untilNextLook is the time between two looks at the end of the changes.
const untilNextLook = time.Second

// watchAll shows the changes of four kinds in their order, until the context
// ends or --limit is reached. It reads the list of changes again and again,
// because the streams of several kinds have no common order.
func watchAll(c *call) error {
	const query = `query N($after: String) {
		changes(filter: {kinds: [NAMESPACE, RESOURCE, RESOURCE_PROVIDER, CONSUMER]}, first: 200, after: $after) {
			edges { cursor change: node { kind key what changedAt } } pageInfo { hasNextPage }
		}
	}`
	if err := c.begin(); err != nil {
		return err
	}
	for isFirst, shown := true, 0; ; isFirst = false {
		page, err := c.send(&graphql.Request{OpName: "N", Query: query, Variables: c.variables})
		if c.ctx.Err() != nil {
			return nil
		}
		if err != nil && (isFirst || ExitStatus(err) != exitBusy) {
			return err
		}
		for _, change := range listOf(page, "changes.edges") {
			if err := c.showEvent(change, shown == 0); err != nil {
				return err
			}
			if shown++; shown == c.number("limit") {
				return nil
			}
			c.variables["after"] = memberOf(change, "cursor")
		}
		if valueAt(page, "changes.pageInfo.hasNextPage") != true {
			select {
			case <-c.ctx.Done():
			case <-time.After(untilNextLook):
			}
		}
	}
}

// begin sets the cursor that a watch begins after, unless the watch begins with
// the current answer.
func (c *call) begin() error {
	if cursor, ok := c.given["after"]; ok {
		c.variables["after"], c.told["after"] = cursor[0], "--after"
	}
	var from string
	switch {
	case c.is("kept"):
		from = "cursor"
	case c.variables["after"] == nil && c.verb.name != "capacity" && c.verb.name != "failure":
		from = "latest" // a stream that is cut before its first event then skips nothing
	default:
		return nil // the first event of capacity and failure is the current answer
	}
	position, err := c.query("LatestChange", map[string]any{})
	if err != nil {
		return err
	}
	c.variables["after"] = memberOf(position, from)
	return nil
}

// showEvent shows an event: a change as a row, capacity and failures as a table.
func (c *call) showEvent(row any, isFirst bool) error {
	switch c.verb.name {
	case "capacity":
		return c.list(capacityColumns(c.text("by")), listOf(row, "capacity.nodes"))
	case "failure":
		return c.list(c.columns(), listOf(row, "survives.nodes"))
	}
	return c.showNext(columnsOf(c.columns()), row, isFirst)
}

// showNext shows a row of an endless list. A table has the headings above the
// first row. JSON has one row per line, and YAML one document per row.
func (c *call) showNext(columns []column, row any, isFirst bool) error {
	var text bytes.Buffer
	if err := c.out.show(&text, columns, []any{row}, c.out.isData()); err != nil {
		return err
	}
	shown := text.String()
	switch {
	case c.out.form == "json" && c.out.isData():
		var line bytes.Buffer
		if err := json.Compact(&line, text.Bytes()); err != nil {
			return err
		}
		shown = line.String() + "\n"
	case c.out.isData():
		shown = "---\n" + shown
	case !isFirst && !c.out.quiet && c.out.form != "value":
		_, shown, _ = strings.Cut(shown, "\n")
	}
	return c.printf("%s", shown)
}
