package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
)

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
