package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"

	"github.com/cadastre-dev/cadastre/client"
)

type watchCommand struct {
	Resource  watchResourceCommand  `cmd:"" help:"Show what happens to resources, their metadata, tags and capabilities." example:"cadastre watch resource --kept --limit 3 ;; cadastre watch resource n1.large --kept --limit 1 -o json -c what,name"`
	Namespace watchNamespaceCommand `cmd:"" help:"Show what happens to namespaces and what is in them." example:"cadastre watch namespace --kept --limit 2 -c what,key"`
	Provider  watchProviderCommand  `cmd:"" help:"Show what happens to providers, their inventories, traits and aggregates, and to their use." example:"cadastre watch provider --kept --limit 2 -o csv -c what,name"`
	Capacity  watchCapacityCommand  `cmd:"" help:"Show the capacity of all providers together, now and whenever it is another." example:"cadastre watch capacity --class VCPU --limit 1"`
}

// watching is where to begin to watch, and where to end.
type watching struct {
	After *string `placeholder:"CURSOR" xor:"begin" help:"Begin behind the event of this cursor, which -c cursor shows."`
	Kept  bool    `xor:"begin" help:"Begin with the oldest change that is kept."`
	Limit int     `placeholder:"N" help:"End after so many events; 0, the default, is never."`
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

type watchCapacityCommand struct {
	common
	providerFilter
	By      string   `at:"groupBy" default:"resource-class" enum:"resource-class,aggregate,trait,root" help:"What the providers of a row have in common: ${enum}."`
	Classes []string `name:"class" at:"resourceClasses" of:"resource-class" sep:"none" placeholder:"CLASS" help:"Only of this resource class; can be given several times."`
	Limit   int      `placeholder:"N" help:"End after so many events; 0, the default, is never."`
}

func (c *watchCapacityCommand) Run(run *session) error {
	filter, err := c.filter(run, c)
	if err != nil {
		return err
	}
	server, err := run.api.connected(run.ctx)
	if err != nil {
		return err
	}
	shown := 0
	for event, err := range client.CapacityChanges(run.ctx, server, filter, client.CapacityGrouping(constant(c.By)), c.Classes, nil) {
		if err = run.api.explained(err); err == nil {
			err = list(run, capacityColumns(c.By), event.Capacity.Nodes)
		}
		if shown++; err != nil || shown == c.Limit {
			return err
		}
	}
	return nil
}

// watch finds what the arguments of a command name, and shows the changes of those
// as they come, a row for each, until the context ends or so many were shown. JSON
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
