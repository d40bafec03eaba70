// Command trace replays a published trace of a cloud through the API. See gpu and
// azure for the files of the traces.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/google/uuid"
)

type object = local.Object

// token is the token of all clients.
const token = "trace"

var strategies = []string{"RANDOM", "SPREAD", "PACK", "LEAST_FRAGMENTING"}

type options struct {
	program, data, trace    string
	databases, strategies   []string
	seeds, clients, percent int
	moves, kills            int
}

func main() { local.Main("trace", command) }

func command(ctx context.Context, args []string) error {
	o := options{databases: []string{measured.SQLite}}
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	flags.StringVar(&o.program, "program", "", "server program (default: a build of this tree)")
	flags.StringVar(&o.data, "data", "", "`folder` of the trace")
	flags.StringVar(&o.trace, "trace", "gpu", "gpu or azure")
	flags.Func("db", "databases as a `LIST` with commas (default sqlite)",
		local.List(&o.databases, []string{measured.SQLite, measured.Postgres}))
	flags.Func("strategies", "strategies as a `LIST` with commas (default all; PACK of the trace azure)",
		local.List(&o.strategies, strategies))
	flags.IntVar(&o.seeds, "seeds", 10, "gpu: `number` of samples")
	flags.IntVar(&o.clients, "clients", 1, "gpu: `number` of clients that place at once")
	flags.IntVar(&o.percent, "demand", 130, "gpu: GPUs that the tasks ask for, in per cent of all")
	flags.IntVar(&o.moves, "moves", 0, "gpu: `number` of moves of a rebalancing in the end, at most 100")
	flags.IntVar(&o.kills, "kills", 5, "azure: `number` of times that a second replay kills the server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return run(ctx, o, os.Stdout)
}

// cloud starts servers on empty databases.
type cloud struct {
	*local.Lab
	options
	out io.Writer
}

// run replays the trace on each database by each strategy.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	lab, err := local.NewLab(ctx, "trace", o.program, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	if slices.Contains(o.databases, measured.Postgres) {
		if err := lab.StartCluster(ctx, "shared_buffers=256MB", "max_wal_size=1GB"); err != nil {
			return err
		}
	}
	return (&cloud{Lab: lab, options: o, out: out}).replayAll(ctx)
}

func (c *cloud) replayAll(ctx context.Context) error {
	replay, by := c.gpu, strategies
	if c.trace == "azure" {
		replay, by = c.azure, []string{"PACK"}
	} else if c.trace != "gpu" {
		return fmt.Errorf("unknown trace %q", c.trace)
	}
	if c.strategies != nil {
		by = c.strategies
	}
	for _, database := range c.databases {
		for _, strategy := range by {
			if err := replay(ctx, database, strategy); err != nil {
				return fmt.Errorf("%s, %s: %w", database, strategy, err)
			}
		}
	}
	return nil
}

// start starts a server on a new database.
func (c *cloud) start(ctx context.Context, kind, name string, clients int) (*local.Server, *local.Client, error) {
	tokens := filepath.Join(c.Folder, "tokens.json")
	all := []local.Token{{Token: token, User: "trace", Project: "trace", Role: "service"}}
	if err := local.WriteTokens(tokens, all); err != nil {
		return nil, nil, err
	}
	url, err := c.NewDatabase(ctx, kind, name)
	if err != nil {
		return nil, nil, err
	}
	server, err := local.StartServer(ctx, local.Setup{
		Program: c.Program, Folder: c.Folder, Name: kind + "_" + name, Database: url, Tokens: tokens,
	})
	if err != nil {
		return nil, nil, err
	}
	return server, local.NewClient(server.Host, local.Bearing(token), "", clients, time.Minute), nil
}

func id(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

func consumer(name, kind string) object {
	return object{"uuid": id(name), "projectId": "trace", "userId": "trace", "type": kind}
}

func amount(class string, units int) object { return object{"resourceClass": class, "amount": units} }

func inventory(class string, total int) object { return object{"resourceClass": class, "total": total} }

// answer is the data of the answer to the mutation place.
type answer struct{ Place struct{ Results []result } }

// result is the outcome of a consumer.
type result struct {
	Consumer *struct{ Allocations []allocation }
	Errors   []struct{ Code, Message string }
}

// allocationFields selects an allocation.
const allocationFields = "allocations { provider { uuid } resourceClass used }"

type provider struct{ UUID string }

type allocation struct {
	Provider      provider
	ResourceClass string
	Used          int
}

// placing returns the call of the mutation place that selects the given fields
// of each consumer.
func placing(fields string, input object) local.Call {
	return local.Operation(`mutation($input: PlaceInput!) { place(input: $input) {
		results { consumer { `+fields+` } errors { code message } } } }`, object{"input": input})
}

// fits reports whether the consumer was placed. Any problem but a lack of room is
// an error.
func (r result) fits() (bool, error) {
	if r.Consumer == nil && (len(r.Errors) != 1 || r.Errors[0].Code != "CAPACITY_EXCEEDED") {
		return false, fmt.Errorf("place: %+v", r.Errors)
	}
	return r.Consumer != nil, nil
}
