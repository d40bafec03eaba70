package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/cadastre-dev/cadastre/client"
)

// event is an event of a stream, or the error that ends it.
type event struct {
	data json.RawMessage
	err  error
}

// watch follows the subscriptions of a command and shows their events as they
// come, until the context ends or --limit is reached.
func watch(c *call) error {
	server, err := c.api.connected(c.ctx, nil)
	if err != nil {
		return err
	}
	if cursor, ok := c.given["after"]; ok {
		c.variables["after"], c.told["after"] = cursor[0], "--after"
	}
	if err := c.begin(); err != nil {
		return err
	}
	if names := c.given[c.verb.name]; names != nil {
		c.variables["uuids"], c.variables["names"] = names, names // each subscription declares one of them
	}
	ctx, cancel := context.WithCancel(c.ctx)
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	merged := make(chan event)
	for _, name := range c.verb.send {
		streams.Go(func() { c.follow(ctx, server, operationNamed(name), merged) })
	}
	for shown := 1; ; shown++ {
		select {
		case <-ctx.Done():
			return nil
		case of := <-merged:
			err := c.api.explained(of.err)
			if err == nil {
				err = c.showEvent(of.data, shown == 1)
			}
			if err != nil || shown == c.number("limit") {
				return err
			}
		}
	}
}

// begin sets the cursor that a watch begins after, unless --after has set it or
// the watch begins with the current answer.
func (c *call) begin() error {
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

// follow sends the events of a subscription, and its error, until ctx ends.
func (c *call) follow(ctx context.Context, server *client.Client, of operation, events chan<- event) {
	document, variables := of.document(c.variables)
	for data, err := range client.Follow[json.RawMessage](ctx, server, document, variables) {
		select {
		case events <- event{data, err}:
		case <-ctx.Done():
		}
	}
}

// showEvent shows an event: a change as a row, capacity and failures as a table.
func (c *call) showEvent(data json.RawMessage, isFirst bool) error {
	decoded, err := decoded(data)
	if err != nil {
		return err
	}
	row := onlyMember(decoded)
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
