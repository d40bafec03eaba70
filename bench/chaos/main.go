// Chaos attacks servers of Cadastre and breaks what they depend on, on this
// machine: two servers on a PostgreSQL and one on a SQLite file, each with the
// default limits of servers.
//
//	go -C bench run ./chaos                               all attacks, then faults
//	go -C bench run ./chaos -attacks 'contains' -for 0    some attacks and no faults
//	go -C bench run ./chaos -attacks none -for 5m         faults alone
//
// Attacks are those of one viewer of one project. During each, an innocent project
// looks things up and claims. Then it does the same beside the attacker's client,
// which uses as much of a processor against a server that refuses it. The report
// has the ratio of the 99th percentiles.
//
// Faults are those of servers, databases, connections and disks, while hundreds of
// viewers read, search and write, and one attacks. At the end the database is
// compared with what was acknowledged.
//
// The tables go to the standard output and, with -json, the measurements to a file
// of JSON lines. The program fails where something is lost, over-allocated or
// INTERNAL, where memory exceeds its limit or does not return, where a server ends
// by itself, and where anyone but the attacker gets 503 for longer than a second;
// with -strict, also where the innocents wait too long.
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
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// options are the flags.
type options struct {
	args       []string
	binary     string // server program; empty is a build of this tree
	databases  []string
	only, skip *regexp.Regexp // of the names of attacks; nil is all, and none
	round      time.Duration
	rounds     int
	size       size
	memory     int64 // of each server, in bytes; 0 is no limit
	faults     time.Duration
	clients    int
	think      time.Duration
	seed       uint64
	flags      []string // of the servers
	json       string
	docs       string // folder of the measurements and their page; empty is none
	strict     bool
	loose      bool // whether GOMEMLIMIT alone limits memory
	timeout    time.Duration
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == attackCommand {
		if err := runAttacker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
			os.Exit(1)
		}
		return
	}
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
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(args []string, output io.Writer) (options, error) {
	o := options{args: args, databases: []string{sqlite, postgres}}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.binary, "binary", "", "server `program`; a build of this tree when absent")
	flags.Func("db", "databases as a `LIST` with commas (default sqlite,postgres)", func(text string) error {
		o.databases = strings.Split(text, ",")
		for _, name := range o.databases {
			if name != sqlite && name != postgres {
				return errors.New("want some of sqlite, postgres")
			}
		}
		return nil
	})
	for name, into := range map[string]**regexp.Regexp{"attacks": &o.only, "skip": &o.skip} {
		flags.Func(name, "attacks to measure, or to skip, by a regular `EXPRESSION` for their names", func(text string) (err error) {
			*into, err = regexp.Compile(text)
			return err
		})
	}
	flags.DurationVar(&o.round, "round", 4*time.Second, "`time` of an attack in a round, and of the quiet after it")
	flags.IntVar(&o.rounds, "rounds", 3, "`number` of rounds")
	flags.IntVar(&o.size.Resources, "resources", 5000, "`number` of resources")
	flags.IntVar(&o.size.Items, "items", 20, "`number` of metadata items of each")
	flags.IntVar(&o.size.Providers, "providers", 2000, "`number` of resource providers")
	flags.Int64Var(&o.memory, "memory", 512<<20, "`bytes` of memory of a server; 0 is all that there is")
	flags.DurationVar(&o.faults, "for", time.Minute, "`time` of faults on each database; 0 is none")
	flags.IntVar(&o.clients, "clients", viewers, "`number` of readers, searchers and writers beside faults")
	flags.DurationVar(&o.think, "think", 400*time.Millisecond, "`time` of each of them between two requests, on average")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of what is random")
	flags.Func("server", "a `FLAG` of the servers, once for each", func(text string) error {
		o.flags = append(o.flags, text)
		return nil
	})
	flags.StringVar(&o.json, "json", "", "`file` for the measurements as JSON lines")
	flags.StringVar(&o.docs, "docs", "", "`folder` whose measurements of attacks are replaced, and their page written")
	flags.BoolVar(&o.loose, "uncontained", false, "limit the memory of servers by GOMEMLIMIT alone, and not by a control group where one can be made")
	flags.BoolVar(&o.strict, "strict", false, "fail where innocents take longer than they may")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "`time` after which the program gives up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds < 1 || o.round < time.Second || o.size.Resources < 1 || o.size.Items < 1 || o.size.Providers < 2*scarce || o.clients < 10 {
		return o, fmt.Errorf("-rounds, -resources and -items must be 1 or more, -round 1s, -clients 10, -providers %d", 2*scarce)
	}
	return o, nil
}

// chosen returns the attacks to measure.
func (o options) chosen() []attack {
	return slices.DeleteFunc(attacks(), func(a attack) bool {
		return o.only != nil && !o.only.MatchString(a.name) || o.skip != nil && o.skip.MatchString(a.name)
	})
}

func runAndReport(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	r, err := run(ctx, o, os.Stderr)
	if r == nil {
		return err
	}
	fmt.Print(tables(r.lines()))
	for _, text := range r.skipped {
		fmt.Println("not done:", text)
	}
	if o.json != "" {
		err = errors.Join(err, measured.WriteFile(o.json, r.lines()))
	}
	if o.docs != "" {
		err = errors.Join(err, r.writeInto(o.docs))
	}
	for _, failure := range r.failures(o.strict, maxOf503) {
		err = errors.Join(err, errors.New(failure))
	}
	return err
}

// run attacks and breaks one database after the other, and ends every process
// that it started before it returns.
func run(ctx context.Context, o options, progress io.Writer) (r *report, err error) {
	folder, err := local.Folder("cadastre-chaos-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if o.binary == "" {
		o.binary = filepath.Join(folder, "cadastre")
		if err := local.Build(ctx, o.binary, "CGO_ENABLED=0"); err != nil {
			return nil, err
		}
	} else if o.binary, err = filepath.Abs(o.binary); err != nil {
		return nil, err
	}
	tokens, err := newTokens(folder)
	if err != nil {
		return nil, err
	}
	r = newReport(o)
	if o.memory > 0 && !o.loose {
		one, err := newContainer(fmt.Sprint("cadastre-chaos-", os.Getpid()), o.memory)
		if r.contained = err == nil; r.contained {
			err = one.remove()
		}
		if errors.Is(err, errNoContainer) {
			r.skipped = append(r.skipped, fmt.Sprintf("control groups: %v", err))
		} else if err != nil {
			return nil, err
		}
	}
	for _, kind := range o.databases {
		if err := runOn(ctx, o, kind, folder, tokens, r, progress); err != nil {
			return r, fmt.Errorf("%s: %w", kind, err)
		}
	}
	return r, nil
}

// runOn attacks and breaks one database.
func runOn(ctx context.Context, o options, kind, folder string, of *tokens, r *report, progress io.Writer) (err error) {
	c, err := newCloud(ctx, o, kind, folder, of, r.contained)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if kind == sqlite && o.faults > 0 {
		if c.disk, err = newDisk(filepath.Join(c.folder, "disk"), 1<<30); errors.Is(err, errNoDisk) {
			r.skipped = append(r.skipped, fmt.Sprintf("full disk: %v", err))
		} else if err != nil {
			return err
		} else {
			c.database = "sqlite://" + filepath.Join(c.disk.folder, "cadastre.db")
		}
	}
	w := &world{o.size}
	began := time.Now()
	if err := c.besides(ctx, func(operator *local.Client) error { return w.fill(ctx, operator) }); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	_, _ = fmt.Fprintf(progress, "%s: filled in %.0f s\n", kind, time.Since(began).Seconds())
	l := newLedger()
	if of := o.chosen(); len(of) > 0 {
		if err := attackOn(ctx, o, c, w, l, of, r, progress); err != nil {
			return err
		}
	}
	if o.faults == 0 {
		return nil
	}
	if err := c.start(ctx, c.proxied()); err != nil {
		return err
	}
	crowd := &crowd{cloud: c, world: w, ledger: l, seed: o.seed, clients: o.clients, think: o.think}
	endured, err := crowd.endure(ctx, o.faults, progress)
	r.endured = append(r.endured, endured)
	return err
}

// attackOn measures attacks on one database.
func attackOn(ctx context.Context, o options, c *cloud, w *world, l *ledger, of []attack, r *report, progress io.Writer) (err error) {
	if err := c.start(ctx, c.database); err != nil {
		return err
	}
	// The attacker's token is unknown to the server that refuses it.
	disk := c.disk
	c.disk = nil
	refusing, err := c.newServer(ctx, "refusing", "sqlite://"+filepath.Join(c.folder, "refusing.db"), c.tokens.withoutGreedy)
	c.disk = disk
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, refusing.Stop()) }()
	m := &attackSide{cloud: c, world: w, innocents: newInnocents(w, c, l), refusing: refusing, round: o.round, rounds: o.rounds}
	defer m.innocents.close()
	rows, after, unmeasured, err := m.all(ctx, of, progress)
	r.rows, r.memory, r.unmeasured = append(r.rows, rows...), append(r.memory, after), append(r.unmeasured, unmeasured...)
	if err != nil {
		return err
	}
	if err := c.stopServers(); err != nil {
		return err
	}
	return c.besides(ctx, func(operator *local.Client) (err error) {
		r.verdicts[c.kind], err = l.judge(ctx, operator)
		return err
	})
}
