// Bench times Cadastre: deterministic worlds, written through the GraphQL API
// into servers of its own, and a few works on them, each timed in rounds that are
// interleaved over binaries, databases and peers, so that what else the machine
// does meets all of them alike.
//
//	go run ./bench                                          this tree, SQLite and PostgreSQL
//	go run ./bench -binary before=/old -binary after=/new   two versions side by side
//	go run ./bench -db postgres -works 'clients' -rounds 5  some works, sooner
//
// A peer is another program that answers the same question from the same rows:
// PostGraphile, the reference placement, and a handler that only writes the
// answer. Those that are on the machine are timed in the same rounds. Before
// anything is timed, every server must give the same answer to each read, and
// every peer the same rows.
//
// The report is tables on the standard output, and with -json a file. Of such
// files the command `page` writes the tables and drawings of the documents. The folder that
// CADASTRE_TEST_DEFINITIONS names, if any, holds further definition files. Times
// of the processor are read from /proc, so only Linux has them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// The databases that a server can keep its world in.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// options are the flags.
type options struct {
	binaries       []binary // none is a build of this tree
	databases      []string
	peers          []string
	only           *regexp.Regexp // of the names of those to time; nil is all
	skipped        *regexp.Regexp // of the names of those not to time; nil is none
	rounds         int            // at most
	operations     int            // of a work in a round, at most
	within         time.Duration  // no round begins that would end later
	size           size
	smallProviders int // providers of the smaller world
	seed           uint64
	json           string // file for the report; none when empty
	profiles       string // folder for profiles; none when empty
	following      following
	sharing        sharing
	timeout        time.Duration
	command        string // what the report says to run
}

// binary is a server program and what the report calls it.
type binary struct{ name, path string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == floorCommand {
		if err := runFloor(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == pageCommand {
		if err := runPage(os.Args[2:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = runAndReport(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runAndReport runs the benchmark and writes its report.
func runAndReport(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	r, err := run(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	if err := r.write(os.Stdout); err != nil {
		return err
	}
	if o.json == "" {
		return nil
	}
	return r.writeJSON(o.json)
}

// parse reads the flags.
func parse(args []string, output io.Writer) (options, error) {
	o := options{databases: []string{sqlite, postgres}, peers: peers(), command: commandOf(args)}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Func("binary", "a server program as `NAME=PATH`, once for each; a build of this tree when absent", o.addBinary)
	flags.Func("db", "databases as a `LIST` with commas (default sqlite,postgres)", func(text string) (err error) {
		o.databases, err = someOf([]string{sqlite, postgres}, text)
		return err
	})
	flags.Func("peers", "peers as a `LIST` with commas, or none (default "+strings.Join(o.peers, ",")+", those that are on the machine)", func(text string) (err error) {
		if o.peers = nil; text != "none" {
			o.peers, err = someOf(peers(), text)
		}
		return err
	})
	flags.Func("works", "time only works whose names match a regular `EXPRESSION`", func(text string) (err error) {
		o.only, err = regexp.Compile(text)
		return err
	})
	flags.Func("skip", "time no works whose names match a regular `EXPRESSION`", func(text string) (err error) {
		o.skipped, err = regexp.Compile(text)
		return err
	})
	flags.IntVar(&o.rounds, "rounds", 10, "`number` of rounds, at most")
	flags.IntVar(&o.operations, "operations", 10_000, "`number` of requests of a work in a round, at most")
	flags.DurationVar(&o.within, "within", 12*time.Minute, "`time` for all: no round begins that would end later")
	flags.IntVar(&o.size.providers, "providers", 10_000, "`number` of resource providers")
	flags.IntVar(&o.size.resources, "resources", 10_000, "`number` of resources")
	flags.IntVar(&o.smallProviders, "small", 1_000, "`number` of resource providers of the smaller world, and of trees of seven in the nested one")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the world")
	flags.StringVar(&o.json, "json", "", "`file` to write the report to as JSON, too")
	flags.StringVar(&o.profiles, "profile", "", "`folder` for a CPU profile of each work, taken after the rounds")
	flags.IntVar(&o.following.subscriptions, "subscriptions", 1_000, "`number` of subscriptions beside which commits are timed")
	flags.IntVar(&o.following.commits, "commits", 500, "`number` of commits a second beside them; 0 is as many as there can be")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Minute, "`time` after which the benchmark gives up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if min(o.rounds, o.operations) < 1 || min(o.size.providers, o.size.resources, o.smallProviders) < minSize || min(o.following.subscriptions, o.following.commits) < 0 {
		return o, fmt.Errorf("-rounds and -operations must be 1 or more, -providers, -resources and -small %d or more, -subscriptions and -commits 0 or more", minSize)
	}
	o.sharing = defaultSharing(o.rounds)
	o.following.writers, o.following.rounds, o.following.each = 8, min(o.rounds, 4), 5*time.Second
	if len(o.chosen()) == 0 && !o.hasParts() {
		return o, errors.New("-works matches no work")
	}
	return o, nil
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

// someOf reads a list of names, each of which must be among all and there once.
func someOf(all []string, text string) ([]string, error) {
	names := strings.Split(text, ",")
	for i, name := range names {
		if !slices.Contains(all, name) || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("want some of %s", strings.Join(all, ", "))
		}
	}
	return names, nil
}

// commandOf returns the command of a report, which says nothing of where this
// machine keeps other programs.
func commandOf(args []string) string {
	command := []string{"go run ./bench"}
	for _, arg := range args {
		if name, path, ok := strings.Cut(arg, "="); ok && filepath.IsAbs(path) {
			arg = name + "=PROGRAM"
		}
		if strings.ContainsAny(arg, " |*?$()") {
			arg = "'" + arg + "'"
		}
		command = append(command, arg)
	}
	return strings.Join(command, " ")
}

// chosen returns the works to time.
func (o options) chosen() []work {
	var chosen []work
	for _, w := range works() {
		if o.isChosen(w.name) {
			w.operations = min(w.operations, o.operations)
			chosen = append(chosen, w)
		}
	}
	return chosen
}

// isChosen reports whether a work or another part of the benchmark is to be measured.
func (o options) isChosen(name string) bool {
	return (o.only == nil || o.only.MatchString(name)) && (o.skipped == nil || !o.skipped.MatchString(name))
}

// hasParts reports whether anything is measured of the large world besides works.
func (o options) hasParts() bool {
	return o.isFollowed() || slices.ContainsFunc([]string{footprintName, processesName, settingsName}, o.isChosen)
}

// parts measures what is no work.
func (b *bench) parts(ctx context.Context, r *report) (err error) {
	if r.Followed, err = b.follow(ctx); err != nil {
		return err
	}
	if r.Shared, err = b.share(ctx); err != nil {
		return err
	}
	if r.Tried, err = b.tryAll(ctx); err != nil {
		return err
	}
	r.Footprints, err = b.footprints(ctx)
	return err
}

// run starts the servers, fills them, checks that they agree, and times the
// works. It ends every process that it started before it returns.
func run(ctx context.Context, o options, progress io.Writer) (r *report, err error) {
	started := time.Now()
	folder, err := os.MkdirTemp("", "cadastre-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := os.Chmod(folder, 0o711); err != nil { // the user of PostgreSQL passes through
		return nil, err
	}
	if len(o.binaries) == 0 {
		path := filepath.Join(folder, "cadastre")
		if err := local.Build(ctx, path, "CGO_ENABLED=0"); err != nil {
			return nil, err
		}
		o.binaries = []binary{{name: "tree", path: path}}
	}
	definitions, err := readDefinitions(os.Getenv("CADASTRE_TEST_DEFINITIONS"))
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, folder: folder, progress: progress, works: o.chosen(), deadline: started.Add(o.within)}
	defer func() { err = errors.Join(err, b.stop()) }()
	b.loadBefore = loadAverage()
	b.large = newWorld(o.seed, o.size, definitions)
	b.small = newWorld(o.seed, size{providers: o.smallProviders}, nil)
	b.nested = newNestedWorld(o.seed, o.smallProviders)
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	rows, err := b.measure(ctx)
	if err != nil {
		return nil, err
	}
	r = newReport(b, rows)
	return r, b.parts(ctx, r)
}
