package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"sync"

	"github.com/cadastre-dev/cadastre/client"
)

// watchVerbs are the commands that follow changes.
func watchVerbs() []verb {
	return []verb{
		{name: "all", help: "Show every change; this is what watch alone does.", command: watchAllCommand{}},
		{name: "resource", help: "Show changes of resources, their metadata, tags and capabilities.", command: watchResourceCommand{}},
		{name: "namespace", help: "Show changes of namespaces and what is in them.", command: watchNamespaceCommand{}},
		{name: "provider", help: "Show changes of providers, their inventories, traits, aggregates and allocations.", command: watchProviderCommand{}},
		{name: "capacity", help: "Show the capacity of all providers together, now and whenever it changes.", send: "ListCapacity", flags: capacityFlags + " -first",
			extra: untilLimit{}, run: watchCapacity},
	}
}

// watching is where to begin to watch, and where to end.
type watching struct {
	After *string `placeholder:"CURSOR" xor:"begin" help:"Begin behind the event of this cursor, which -c cursor shows."`
	Kept  bool    `xor:"begin" help:"Begin with the oldest change that is kept."`
	Limit int     `placeholder:"N" help:"End after this number of events (default 0, never)."`
}

type watchAllCommand struct {
	common
	watching
}

func (c *watchAllCommand) Run(run *session) error {
	return watch(run, c, c.watching, new([]string), everyChange, "changedAt=change.changedAt kind=change.kind what=change.what key=change.key +cursor")
}

// everyChange returns the changes of resources, namespaces and providers, as each of
// the three streams sends them.
func everyChange(ctx context.Context, server *client.Client, _ []string, after *string) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var streams sync.WaitGroup
		defer streams.Wait()
		defer cancel()
		events := make(chan change)
		follow(ctx, &streams, events, client.ResourceChanges(ctx, server, nil, after))
		follow(ctx, &streams, events, client.NamespaceChanges(ctx, server, nil, after))
		follow(ctx, &streams, events, client.ProviderChanges(ctx, server, nil, after))
		for {
			select {
			case <-ctx.Done():
				return
			case of := <-events:
				if !yield(of.event, of.err) {
					return
				}
			}
		}
	}
}

// change is an event of a stream, or the error that ends it.
type change struct {
	event any
	err   error
}

// follow sends the events of a stream to a channel until ctx is done.
func follow[T any](ctx context.Context, streams *sync.WaitGroup, to chan<- change, events iter.Seq2[T, error]) {
	streams.Go(func() {
		for event, err := range events {
			select {
			case to <- change{event, err}:
			case <-ctx.Done():
				return
			}
		}
	})
}

type watchResourceCommand struct {
	common
	watching
	Resources []string `arg:"" optional:"" name:"resource" ref:"resource" help:"Only these; all that you see when absent."`
}

func (c *watchResourceCommand) Run(run *session) error {
	return watch(run, c, c.watching, &c.Resources, client.ResourceChanges, "changedAt=change.changedAt what=change.what uuid=change.key name=resource.name +revision=resource.revision +cursor")
}

type watchNamespaceCommand struct {
	common
	watching
	Namespaces []string `arg:"" optional:"" name:"namespace" of:"namespace" help:"Only these; all that you see when absent."`
}

func (c *watchNamespaceCommand) Run(run *session) error {
	return watch(run, c, c.watching, &c.Namespaces, client.NamespaceChanges, "changedAt=change.changedAt what=change.what key=change.key +revision=namespace.revision +cursor")
}

type watchProviderCommand struct {
	common
	watching
	Providers []string `arg:"" optional:"" name:"provider" ref:"provider" help:"Only these; all when absent."`
}

func (c *watchProviderCommand) Run(run *session) error {
	return watch(run, c, c.watching, &c.Providers, client.ProviderChanges, "changedAt=change.changedAt what=change.what uuid=change.key name=resourceProvider.name +generation=resourceProvider.generation +cursor")
}

// untilLimit is the flag of how long to watch.
type untilLimit struct {
	Limit int `placeholder:"N" help:"End after this number of events (default 0, never)."`
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
	if err := into(&wanted, c.variables); err != nil {
		return err
	}
	shown, columns := 0, columnsOf(capacityColumns(c.text("by")))
	for event, err := range client.CapacityChanges(c.ctx, server, wanted.Filter, wanted.GroupBy, wanted.ResourceClasses, nil) {
		if err = c.api.explained(err); err == nil {
			err = list(c.session, columns, event.Capacity.Nodes)
		}
		if shown++; err != nil || shown == embedded[untilLimit](c).Limit {
			return err
		}
	}
	return nil
}

// watch finds what the arguments of a command name, and shows the changes of those
// as they come, a row for each, until the context ends or the limit is reached. JSON
// has an object on a line for each, and YAML a document.
func watch[T any](run *session, command any, w watching, names *[]string, changes func(context.Context, *client.Client, []string, *string) iter.Seq2[T, error], columns string) error {
	if err := run.resolve(command); err != nil {
		return err
	}
	server, err := run.api.connected(run.ctx)
	if err != nil {
		return err
	}
	after := w.After
	if w.Kept {
		answer, err := client.LatestChange(run.ctx, run.api, nil)
		if err != nil {
			return err
		}
		after = &answer.Changes.Cursor
	}
	shown, table := 0, columnsOf(columns)
	for event, err := range changes(run.ctx, server, *names, after) {
		if err != nil {
			return run.api.explained(err)
		}
		if err := showEvent(run, table, event, shown == 0); err != nil {
			return err
		}
		if shown++; shown == w.Limit {
			return nil
		}
	}
	return nil
}

// showEvent shows an event, in a table below its headings where it is the first.
func showEvent(run *session, columns []column, event any, isFirst bool) error {
	row, err := generic(event)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	form := run.out
	if err := form.show(&text, columns, []any{row}, form.isData()); err != nil {
		return err
	}
	shown := text.Bytes()
	switch {
	case form.Output == "json" && form.isData():
		text = bytes.Buffer{}
		err = json.Compact(&text, bytes.TrimSpace(shown))
		shown = append(text.Bytes(), '\n')
	case form.isData():
		shown = append([]byte("---\n"), shown...)
	case !isFirst && !form.Quiet && form.Output != "value":
		_, shown, _ = bytes.Cut(shown, []byte("\n"))
	}
	if err != nil {
		return err
	}
	_, err = run.stdout.Write(shown)
	return err
}
