// Bench times Cadastre. It starts servers, fills them with deterministic worlds
// through the API and times works, the rows of works.yaml. Rounds are interleaved
// over binaries, databases and peers, so that other load on the machine meets all
// of them alike. Servers have their default limits, as in production.
//
//	go -C bench run .                                          this tree, SQLite and PostgreSQL
//	go -C bench run . -binary before=/old -binary after=/new   two versions side by side
//	go -C bench run . -db postgres -works 'clients' -rounds 5  some works, sooner
//
// A peer is another program that answers the same question from the same rows:
// PostGraphile, the reference placement, and a handler that only writes the
// answer. Peers that are on the machine are timed in the same rounds. Before
// anything is timed, every server must give the same answer to each read, and
// every peer the same rows.
//
// The tables go to the standard output and, with -json, the measurements to a
// file of JSON lines, from which bench/page draws the documents.
// CADASTRE_TEST_DEFINITIONS can name a folder with further definition files.
// Processor times are read from /proc, so only Linux has them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// The databases that a server can keep its world in.
const (
	sqlite   = measured.SQLite
	postgres = measured.Postgres
)

// options are the flags.
type options struct {
	binaries       []binary // empty for a build of this tree
	databases      []string
	peers          []string
	choice         local.Choice  // of works and parts
	rounds         int           // maximum
	operations     int           // maximum of a work in a round
	within         time.Duration // no round begins that would end later
	size           size
	smallProviders int // providers of the smaller world, trees of the nested one
	seed           uint64
	json           string // file of JSON lines; empty is none
	following      following
	sharing        sharing
	timeout        time.Duration
}

// binary is a server program and its name in reports.
type binary struct{ name, path string }

func main() { local.Main("bench", command) }

// command runs the benchmark, or the floor, which the benchmark starts.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == floorCommand {
		return runFloor(ctx, args[1:])
	}
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	lines, err := run(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	lines[0].Notes["command"] = commandOf(args)
	fmt.Print(measured.Tables(lines))
	if o.json == "" {
		return nil
	}
	return measured.WriteFile(o.json, lines)
}

// parse reads the flags.
func parse(args []string, output io.Writer) (options, error) {
	o := options{databases: []string{sqlite, postgres}, peers: peers()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Func("binary", "a server program as `NAME=PATH`; can be given several times (default: a build of this tree)",
		o.addBinary)
	flags.Func("db", "databases as a `LIST` with commas (default sqlite,postgres)",
		local.List(&o.databases, []string{sqlite, postgres}))
	flags.Func("peers", "peers as a `LIST` with commas, or none (default "+strings.Join(o.peers, ",")+", if installed)",
		local.List(&o.peers, peers()))
	o.choice.AddFlags(flags, "works", "works and parts")
	flags.IntVar(&o.rounds, "rounds", 10, "maximum `number` of rounds")
	flags.IntVar(&o.operations, "operations", 10_000, "maximum `number` of requests of a work in a round")
	flags.DurationVar(&o.within, "within", 12*time.Minute, "`time` by which the last round must end")
	flags.IntVar(&o.size.providers, "providers", 10_000, "`number` of resource providers")
	flags.IntVar(&o.size.resources, "resources", 10_000, "`number` of resources")
	flags.IntVar(&o.smallProviders, "small", 1_000,
		"`number` of resource providers of the smaller world, and of trees of seven providers in the nested one")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the world")
	flags.StringVar(&o.json, "json", "", "`file` for the measurements as JSON lines")
	flags.IntVar(&o.following.subscriptions, "subscriptions", 1_000,
		"`number` of subscriptions during which commits are timed")
	flags.IntVar(&o.following.commits, "commits", 500,
		"`number` of commits a second, with and without subscriptions; 0 means no limit")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Minute, "`time` after which the benchmark gives up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if min(o.rounds, o.operations) < 1 || min(o.size.providers, o.size.resources, o.smallProviders) < minSize ||
		min(o.following.subscriptions, o.following.commits) < 0 || len(o.databases) == 0 {
		return o,
			fmt.Errorf("-rounds and -operations must be 1 or more, -providers, -resources and -small %d or more, -subscriptions and -commits 0 or more, and -db a database", minSize)
	}
	o.sharing = defaultSharing(o.rounds)
	o.following.writers, o.following.rounds, o.following.each = 8, min(o.rounds, 4), 5*time.Second
	chosen, err := o.chosen()
	if err == nil && len(chosen) == 0 && len(o.parts()) == 0 {
		err = errors.New("-works matches no work")
	}
	return o, err
}

// addBinary adds a program with its name.
func (o *options) addBinary(text string) error {
	name, path, ok := strings.Cut(text, "=")
	if !ok || name == "" || path == "" {
		return errors.New("want NAME=PATH")
	}
	if slices.ContainsFunc(o.binaries, func(b binary) bool { return b.name == name }) {
		return fmt.Errorf("the name %q is taken", name)
	}
	o.binaries = append(o.binaries, binary{name: name, path: path})
	return nil
}

// commandOf returns the command of a report, without the paths of this machine.
func commandOf(args []string) string {
	command := []string{"go -C bench run ."}
	for _, arg := range args {
		if name, path, ok := strings.Cut(arg, "="); ok && filepath.IsAbs(path) {
			arg = name + "=PROGRAM"
		}
		if strings.ContainsAny(arg, " |*?$()^") {
			arg = "'" + arg + "'"
		}
		command = append(command, arg)
	}
	return strings.Join(command, " ")
}

// chosen returns the works to time.
func (o options) chosen() ([]work, error) {
	all, _, err := works()
	if err != nil {
		return nil, err
	}
	var chosen []work
	for _, w := range all {
		if o.choice.Has(w.Name) {
			w.Operations = min(w.Operations, o.operations)
			chosen = append(chosen, w)
		}
	}
	return chosen, nil
}

// part is a measurement, other than a work, on the servers of the large world.
type part struct {
	name    string // for -works
	measure func(*bench, context.Context, *target) ([]measured.Line, error)
}

// parts returns the parts to measure. The last one restarts servers.
func (o options) parts() []part {
	all := []part{
		{"commits beside subscriptions", (*bench).follow}, {"several processes", (*bench).share},
		{"footprint", (*bench).footprint},
	}
	if o.following.subscriptions == 0 {
		all = all[1:]
	}
	return slices.DeleteFunc(all, func(p part) bool { return !o.choice.Has(p.name) })
}

// run starts the servers, fills them, checks that they agree, and measures. It
// ends every process that it started before it returns.
func run(ctx context.Context, o options, progress io.Writer) (lines []measured.Line, err error) {
	started := time.Now()
	definitions, err := readDefinitions(os.Getenv("CADASTRE_TEST_DEFINITIONS"))
	if err != nil {
		return nil, err
	}
	chosen, err := o.chosen()
	if err != nil {
		return nil, err
	}
	if len(o.binaries) == 0 {
		o.binaries = []binary{{name: "tree"}} // which the lab builds
	}
	lab, err := local.NewLab(ctx, "cadastre-bench-", o.binaries[0].path, progress)
	if err != nil {
		return nil, err
	}
	o.binaries[0].path = lab.Program
	b := &bench{Lab: lab, options: o, works: chosen, deadline: started.Add(o.within)}
	defer func() { err = errors.Join(err, b.stop()) }()
	head := measured.NewRun("")
	b.large = newWorld(o.seed, o.size, definitions)
	b.small = newWorld(o.seed, size{providers: o.smallProviders}, nil)
	b.nested = newNestedWorld(o.seed, o.smallProviders)
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	if lines, err = b.measure(ctx); err != nil {
		return nil, err
	}
	b.judge(lines)
	for _, part := range o.parts() {
		for _, t := range b.servers(b.large) {
			more, err := part.measure(b, ctx, t)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t, part.name, err)
			}
			if lines = append(lines, more...); len(more) > 0 {
				b.Say("%s: %s", t, part.name)
			}
		}
	}
	b.describe(&head)
	return append([]measured.Line{head}, lines...), nil
}

// describe adds the sizes and programs to the first line.
func (b *bench) describe(head *measured.Line) {
	maps.Copy(head.Figures, map[string]float64{
		"seed": float64(b.seed), "rounds": float64(b.rounds), "providers": float64(b.size.providers),
		"resources": float64(b.size.resources), "small": float64(b.smallProviders),
	})
	if b.Cluster != nil {
		head.Notes["postgres"] = b.Cluster.Version
	}
	if len(b.missing) > 0 {
		head.Notes["notTimed"] = strings.Join(b.missing, "; ")
	}
	for _, program := range b.binaries {
		version, err := exec.Command(program.path, "version").Output()
		if head.Notes["binary "+program.name] = strings.TrimSpace(string(version)); err != nil {
			head.Notes["binary "+program.name] = err.Error()
		}
	}
}
