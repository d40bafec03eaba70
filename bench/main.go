// Bench times Cadastre: one deterministic world, written through the GraphQL API
// into servers of its own, and a few works on it, each timed in rounds that are
// interleaved over binaries and databases, so that what else the machine does
// meets all of them alike.
//
//	go run ./bench                                          this tree, SQLite and PostgreSQL
//	go run ./bench -binary before=/old -binary after=/new   two versions side by side
//
// Before anything is timed, every server must give the same answer to each read.
// The report is a table on the standard output and, with -json, a file. The
// folder that CADASTRE_TEST_DEFINITIONS names, if any, holds further definition
// files. Times of the processor are read from /proc, so only Linux has them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// The databases that a server can keep its world in.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// module is the package of the program.
const module = "github.com/cadastre-dev/cadastre"

// options are the flags.
type options struct {
	binaries  []binary // none is a build of this tree
	databases []string
	rounds    int
	size      size
	seed      uint64
	json      string // file for the report; none when empty
	timeout   time.Duration
}

// binary is a server program and what the report calls it.
type binary struct{ name, path string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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
	if err := r.writeTable(os.Stdout); err != nil || o.json == "" {
		return err
	}
	return r.writeJSON(o.json)
}

// parse reads the flags.
func parse(args []string, output io.Writer) (options, error) {
	o := options{databases: []string{sqlite, postgres}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Func("binary", "a server program as `NAME=PATH`, once for each; a build of this tree when absent", func(text string) error {
		name, path, ok := strings.Cut(text, "=")
		if !ok || name == "" || path == "" {
			return errors.New("want NAME=PATH")
		}
		if slices.ContainsFunc(o.binaries, func(b binary) bool { return b.name == name }) {
			return fmt.Errorf("the name %q is taken", name)
		}
		o.binaries = append(o.binaries, binary{name: name, path: path})
		return nil
	})
	flags.Func("db", "databases as a `LIST` with commas (default sqlite,postgres)", func(text string) error {
		o.databases = strings.Split(text, ",")
		for i, kind := range o.databases {
			if kind != sqlite && kind != postgres || slices.Contains(o.databases[:i], kind) {
				return fmt.Errorf("want %s, %s or both", sqlite, postgres)
			}
		}
		return nil
	})
	flags.IntVar(&o.rounds, "rounds", 30, "`number` of rounds")
	flags.IntVar(&o.size.providers, "providers", 10_000, "`number` of resource providers")
	flags.IntVar(&o.size.resources, "resources", 10_000, "`number` of resources")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the world")
	flags.StringVar(&o.json, "json", "", "`file` to write the report to as JSON, too")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Minute, "`time` after which the benchmark gives up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds < 1 || o.size.providers < minSize || o.size.resources < minSize {
		return o, fmt.Errorf("-rounds must be 1 or more, -providers and -resources %d or more", minSize)
	}
	return o, nil
}

// run starts the servers, fills them, checks that they agree, and times the
// works. It ends every process that it started before it returns.
func run(ctx context.Context, o options, progress io.Writer) (r *report, err error) {
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
		if err := build(ctx, path); err != nil {
			return nil, err
		}
		o.binaries = []binary{{name: "tree", path: path}}
	}
	definitions, err := readDefinitions(os.Getenv("CADASTRE_TEST_DEFINITIONS"))
	if err != nil {
		return nil, err
	}
	var own *cluster
	if slices.Contains(o.databases, postgres) {
		if own, err = startCluster(ctx, folder); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, own.stop()) }()
	}
	w := newWorld(o.seed, o.size, definitions)
	targets, err := startTargets(ctx, o, folder, own)
	defer func() { err = errors.Join(err, stopTargets(targets)) }()
	if err != nil {
		return nil, err
	}
	if err := loadTargets(ctx, targets, own, w, progress); err != nil {
		return nil, err
	}
	rows, err := measure(ctx, targets, w, o.rounds, progress)
	if err != nil {
		return nil, err
	}
	return newReport(o, w, rows), nil
}

// build builds the server of this tree, without C as it is released.
func build(ctx context.Context, path string) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", path, module)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return nil
}

// target is a server under test: one binary on one database.
type target struct {
	binary   string
	database string
	name     string // the database in the cluster; empty on SQLite
	server   *server
	cluster  *cluster // nil on SQLite
}

func (t *target) String() string { return t.binary + " on " + t.database }

// startTargets starts every binary on every database. It returns those that
// started beside an error, too.
func startTargets(ctx context.Context, o options, folder string, own *cluster) ([]*target, error) {
	var targets []*target
	for _, kind := range o.databases {
		for _, b := range o.binaries {
			t := &target{binary: b.name, database: kind}
			number := len(targets)
			url := "sqlite://" + filepath.Join(folder, fmt.Sprintf("cadastre-%d.db", number))
			if kind == postgres {
				t.cluster, t.name = own, fmt.Sprintf("cadastre_%d", number)
				if err := own.createDatabase(ctx, t.name); err != nil {
					return targets, err
				}
				url = own.url(t.name)
			}
			var err error
			if t.server, err = startServer(ctx, folder, fmt.Sprintf("server-%d", number), b.path, url); err != nil {
				return targets, fmt.Errorf("start %s: %w", t, err)
			}
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// stopTargets ends the servers, the last first.
func stopTargets(targets []*target) error {
	var err error
	for _, t := range slices.Backward(targets) {
		err = errors.Join(err, t.server.stop())
	}
	return err
}

// loadTargets writes the world into all servers at once.
func loadTargets(ctx context.Context, targets []*target, own *cluster, w *world, progress io.Writer) error {
	group, loading := errgroup.WithContext(ctx)
	for _, t := range targets {
		group.Go(func() error {
			started := time.Now()
			if err := w.load(loading, t.server.client); err != nil {
				return fmt.Errorf("load the world into %s: %w", t, err)
			}
			_, err := fmt.Fprintf(progress, "%s: loaded %d providers and %d resources in %.0f s\n", t, len(w.providers), len(w.resources), time.Since(started).Seconds())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, t := range targets {
		if t.cluster == nil {
			continue
		}
		if err := own.settle(ctx, t.name); err != nil {
			return err
		}
	}
	return nil
}
