// Chaos attacks servers of Cadastre and breaks their surroundings on this machine:
// two servers on a PostgreSQL and one on a SQLite file, each with the default limits
// of servers.
//
//	go -C bench run ./chaos                               all attacks, then faults
//	go -C bench run ./chaos -attacks 'contains' -for 0    some attacks and no faults
//	go -C bench run ./chaos -attacks none -for 5m         faults alone
//	go -C bench run ./chaos -attacks none -other FILE     an upgrade and the way back among the faults
//
// One viewer of one project attacks. During each attack an innocent project looks
// things up and claims. Then it does the same while the attacker's client uses as
// much of a processor against a server that refuses it. The report has the
// ratio of the 99th percentiles.
//
// Faults hit servers, databases, connections and disks, while hundreds of viewers
// read, search and write, and one attacks. Each fault happens at least once. At the
// end the program compares the database with the acknowledged claims.
//
// The tables go to the standard output and, with -json, the measurements to a file
// of JSON lines, from which bench/page draws the page of attacks. The program fails
// if a claim is lost, if an inventory is over-allocated, for INTERNAL, if memory
// exceeds its limit or does not return, if a server crashes, and if anyone but the
// attacker gets 503 for longer than a second; with -strict, also if the innocents
// wait too long.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/store/upkeep"
)

// options are the flags.
type options struct {
	args        []string
	binary      string // server program; empty for a build of this tree
	other       string // another version of it, with the same schema
	databases   []string
	choice      local.Choice // of attacks
	round       time.Duration
	rounds      int
	size        size
	memory      int64 // of each server, in bytes; 0 is no limit
	faults      time.Duration
	clients     int
	think       time.Duration
	seed        uint64
	flags       []string // of the servers
	json        string
	strict      bool
	unavailable time.Duration // maximum time that innocents may get 503
	timeout     time.Duration
	failovers   int           // rounds; 0 means attacks and faults instead
	nodes       int           // of Patroni
	within      time.Duration // time after which no round begins; 0 is no limit
}

func main() { local.Main("chaos", command) }

// parse reads the flags.
func parse(args []string, output io.Writer) (options, error) {
	o := options{args: args, databases: []string{sqlite, postgres}, unavailable: maxOf503}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.binary, "binary", "", "server `program` (default: a build of this tree)")
	flags.StringVar(&o.other, "other", "",
		"`program` of another version, which replaces the servers in turn as a further fault")
	flags.Func("db", "databases as a `LIST` with commas (default sqlite,postgres)",
		local.List(&o.databases, o.databases))
	o.choice.AddFlags(flags, "attacks", "attacks")
	flags.DurationVar(&o.round, "round", 4*time.Second, "`time` of an attack in a round, and of the pause after it")
	flags.IntVar(&o.rounds, "rounds", 3, "`number` of rounds")
	flags.IntVar(&o.size.Resources, "resources", 5000, "`number` of resources")
	flags.IntVar(&o.size.Items, "items", 20, "`number` of metadata items of each resource")
	flags.IntVar(&o.size.Providers, "providers", 2000, "`number` of resource providers")
	flags.Int64Var(&o.memory, "memory", 512<<20, "`bytes` of memory of a server; 0 means no limit")
	flags.DurationVar(&o.faults, "for", time.Minute, "`time` of faults on each database; 0 means no faults")
	flags.IntVar(&o.clients, "clients", viewers, "`number` of readers, searchers and writers during faults")
	flags.DurationVar(&o.think, "think", 400*time.Millisecond, "average `time` of a client between two requests")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of random numbers")
	flags.Func("server", "a `FLAG` of the servers; can be given several times", func(text string) error {
		o.flags = append(o.flags, text)
		return nil
	})
	flags.StringVar(&o.json, "json", "", "`file` of JSON lines, in which repeated measurements are replaced")
	flags.BoolVar(&o.strict, "strict", false, "fail if innocent clients are slower than allowed")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "`time` after which the program gives up")
	flags.IntVar(&o.failovers, "failovers", 0,
		"`number` of fail-overs of a PostgreSQL with Patroni, which replace all attacks and faults")
	flags.IntVar(&o.nodes, "nodes", 3, "`number` of nodes of the PostgreSQL with Patroni")
	flags.DurationVar(&o.within, "within", 0, "`time` after which no further fail-over begins; 0 means no limit")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds < 1 || o.round < time.Second || o.size.Resources < 1 || o.size.Items < 1 ||
		o.size.Providers < 2*scarce || o.clients < 10 {
		return o, fmt.Errorf("-rounds, -resources and -items need at least 1, -round 1s, -clients 10 and -providers %d",
			2*scarce)
	}
	return o, nil
}

// chosen returns the attacks to measure.
func (o options) chosen(all []attack) []attack {
	return slices.DeleteFunc(slices.Clone(all), func(a attack) bool { return !o.choice.Has(a.Name) })
}

// command runs the program, or the attacker, which the program starts.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == attackCommand {
		return runAttacker(os.Stdin, os.Stdout)
	}
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.failovers > 0 {
		return failOver(ctx, o, os.Stderr)
	}
	r, err := run(ctx, o, os.Stderr)
	if r == nil {
		return err
	}
	fmt.Print(measured.Tables(r.lines))
	for _, text := range r.skipped {
		fmt.Println("not done:", text)
	}
	if o.json != "" {
		err = errors.Join(err, measured.Merge(o.json, r.lines))
	}
	if o.strict {
		r.broken = append(r.broken, r.slow...)
	}
	return errors.Join(err, r.err())
}

// run attacks and breaks one database after the other, and ends every process
// that it started before it returns.
func run(ctx context.Context, o options, progress io.Writer) (r *report, err error) {
	lab, err := local.NewLab(ctx, "cadastre-chaos-", o.binary, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	r = newReport(o)
	for _, kind := range o.databases {
		c, err := newCloud(lab, o, kind)
		if err == nil {
			c.report = r
			err = errors.Join(c.suffer(ctx), c.stop())
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", kind, err)
		}
	}
	return r, nil
}

// suffer attacks and breaks one database.
func (c *cloud) suffer(ctx context.Context) (err error) {
	if err := c.createDatabase(ctx); err != nil {
		return err
	}
	if c.kind == sqlite && c.faults > 0 {
		if c.disk, err = newDisk(filepath.Join(c.Folder, "disk"), 1<<30); errors.Is(err, errNoDisk) {
			c.report.skip("full disk: %v", err)
		} else if err != nil {
			return err
		} else {
			c.database = "sqlite://" + filepath.Join(c.disk.folder, "cadastre.db")
		}
	}
	began := time.Now()
	if err := c.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	c.Say("%s: filled in %.0f s", c.kind, time.Since(began).Seconds())
	if of := c.chosen(c.world.asked.Attacks); len(of) > 0 {
		if err := c.attackedBy(ctx, of); err != nil {
			return err
		}
	}
	if c.faults == 0 {
		return nil
	}
	if err := c.start(ctx, c.proxied()); err != nil {
		return err
	}
	return (&crowd{cloud: c}).endure(ctx)
}

// attackedBy measures attacks on the database.
func (c *cloud) attackedBy(ctx context.Context, of []attack) (err error) {
	if err := c.start(ctx, c.database); err != nil {
		return err
	}
	// The attacker's token is unknown to the server that refuses it.
	database := "sqlite://" + filepath.Join(c.Folder, c.kind+"-refusing.db")
	refusing, err := c.newServer(ctx, "refusing", database, c.tokens.withoutGreedy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, refusing.Stop()) }()
	m := &attackSide{cloud: c, innocents: newInnocents(c), refusing: refusing}
	defer m.innocents.close()
	if err := m.all(ctx, of); err != nil {
		return err
	}
	judged, err := c.judge(ctx)
	if err == nil {
		line := measured.Line{Kind: measured.Verdict, Database: c.kind, Figures: judged.figures()}
		c.report.add(line, judged.promises(c.kind))
	}
	return err
}

// judge ends the servers, compares the database with the ledger, and adds the
// findings of the doctor.
func (c *cloud) judge(ctx context.Context) (of verdict, err error) {
	if err := c.stopServers(); err != nil {
		return of, err
	}
	url := c.database
	if c.disk != nil {
		copied := filepath.Join(c.Folder, "judged.db")
		if err := c.disk.copyOut(filepath.Base(url), copied); err != nil {
			return of, err
		}
		url = "sqlite://" + copied
	}
	driver, source := "postgres", url
	if c.kind == sqlite {
		driver, source = "sqlite", strings.TrimPrefix(url, "sqlite://")
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return of, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if of, err = c.ledger.judge(ctx, db); err != nil {
		return of, err
	}
	_, err = upkeep.Check(ctx, url, func(found upkeep.Finding) error {
		if found.Kind != upkeep.Late {
			of.Found = append(of.Found, fmt.Sprintf("%+v", found))
		}
		return nil
	})
	return of, err
}
