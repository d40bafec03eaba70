package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/cadastre-dev/cadastre/client"
)

// event is an event of a stream, or the error that ends it.
type event struct {
	data any
	err  error
}

// changes returns the changes of the resources, namespaces or providers with
// these uuids or names, or of all without any.
func changes(ctx context.Context, server *client.Client, kind string, names []string, after *string) iter.Seq[event] {
	switch kind {
	case "resource":
		return events(client.ResourceChanges(ctx, server, names, after))
	case "namespace":
		return events(client.NamespaceChanges(ctx, server, names, after))
	}
	return events(client.ProviderChanges(ctx, server, names, after))
}

func events[T any](stream iter.Seq2[T, error]) iter.Seq[event] {
	return func(yield func(event) bool) {
		for data, err := range stream {
			if !yield(event{data, err}) {
				return
			}
		}
	}
}

// allChanges returns the changes of resources, namespaces and providers. It
// merges three streams.
func allChanges(ctx context.Context, server *client.Client, after *string) iter.Seq[event] {
	return func(yield func(event) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var streams sync.WaitGroup
		defer streams.Wait()
		defer cancel()
		merged := make(chan event)
		for _, kind := range []string{"resource", "namespace", "provider"} {
			streams.Go(func() {
				for of := range changes(ctx, server, kind, nil, after) {
					select {
					case merged <- of:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		for {
			select {
			case <-ctx.Done():
				return
			case of := <-merged:
				if !yield(of) {
					return
				}
			}
		}
	}
}

// watchChanges shows changes as they come, one per row, until the context ends
// or the limit is reached. JSON has one object per line, and YAML one document
// per change.
func watchChanges(c *call) error {
	server, err := c.api.connected(c.ctx)
	if err != nil {
		return err
	}
	after := (*string)(nil)
	if cursor, ok := c.given["after"]; ok {
		after = &cursor[0]
	}
	if c.is("kept") {
		latest, err := c.query("LatestChange", map[string]any{})
		if err != nil {
			return err
		}
		cursor := cell(memberOf(latest, "cursor"), false)
		after = &cursor
	}
	stream := allChanges(c.ctx, server, after)
	if c.verb.name != "all" {
		stream = changes(c.ctx, server, c.verb.name, c.given[c.verb.name], after)
	}
	shown := 0
	return c.eachEvent(stream, func(text []byte) error {
		row, err := decoded(text)
		if err != nil {
			return err
		}
		shown++
		return c.showEvent(row, shown == 1)
	})
}

func watchCapacity(c *call) error {
	server, err := c.api.connected(c.ctx)
	if err != nil {
		return err
	}
	var wanted struct {
		Filter          *client.ResourceProviderFilter
		GroupBy         client.CapacityGrouping
		ResourceClasses []string
	}
	text, err := json.Marshal(c.variables)
	if err = errors.Join(err, json.Unmarshal(text, &wanted)); err != nil {
		return err
	}
	stream := client.CapacityChanges(c.ctx, server, wanted.Filter, wanted.GroupBy, wanted.ResourceClasses, nil)
	return c.eachEvent(events(stream), func(text []byte) error {
		of, err := decoded(text)
		if err != nil {
			return err
		}
		return c.list(capacityColumns(c.text("by")), listOf(of, "capacity.nodes"))
	})
}

// eachEvent shows the events of a stream, as JSON, until the context ends or
// --limit is reached.
func (c *call) eachEvent(stream iter.Seq[event], show func(text []byte) error) error {
	shown := 0
	for of := range stream {
		if of.err != nil {
			return c.api.explained(of.err)
		}
		text, err := json.Marshal(of.data)
		if err == nil {
			err = show(text)
		}
		if shown++; err != nil || shown == c.number("limit") {
			return err
		}
	}
	return nil
}

// showEvent shows an event. In a table, the first event has the headings above
// it.
func (c *call) showEvent(row any, isFirst bool) error {
	var text bytes.Buffer
	if err := c.out.show(&text, columnsOf(c.columns()), []any{row}, c.out.isData()); err != nil {
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
