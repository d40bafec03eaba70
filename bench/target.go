package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// bench is one run of the benchmark.
type bench struct {
	options
	folder       string
	progress     io.Writer
	works        []work
	deadline     time.Time // no round begins that would end later
	large, small *world
	nested       *world
	cluster      *local.Cluster // nil without PostgreSQL
	targets      []*target      // in the order in which they started
	missing      []string       // peers that are not timed, and why
}

// target is a program under test: a server of Cadastre, or a peer.
type target struct {
	name     string // of the binary, or of the peer
	peer     string // which peer; empty for a server of Cadastre
	database string // empty for a peer without one
	world    *world // nil for a peer without one
	address  string // host and port
	headers  string // lines in each request to a peer
	process  *local.Process
	once     bool           // whether it takes one request a connection
	family   bool           // whether children of the process do its work
	cluster  *local.Cluster // nil without PostgreSQL
	storage  string         // database in the cluster
	server   *local.Server  // nil for a peer
	tokens   map[string][]string
	operator *local.Client // fills the server and reads its metrics
}

func (t *target) String() string {
	if t.database == "" {
		return t.name
	}
	return t.name + " on " + t.database
}

// maxClients is the number of viewers of each role, one for each client: they
// share neither a token nor an address, so the limits of one viewer are not those
// of all.
const (
	maxClients  = 32
	projectsOf  = 8
	requestTime = 2 * time.Minute // for one request, the answer included
)

// addressOf returns the loopback address of a client.
func addressOf(client int) string { return fmt.Sprintf("127.0.1.%d", client+1) }

// start starts the cluster, every binary on every database for each world that a
// work needs, fills them, and starts the peers.
func (b *bench) start(ctx context.Context) (err error) {
	if slices.Contains(b.databases, postgres) {
		if b.cluster, err = local.StartCluster(ctx, b.folder, "shared_buffers=512MB", "max_wal_size=2GB", "max_connections=200"); err != nil {
			return err
		}
	}
	for _, w := range b.worlds() {
		if !slices.ContainsFunc(b.works, func(one work) bool { return b.worldOf(one) == w }) && (w != b.large || !b.hasParts()) {
			continue
		}
		for _, kind := range b.databases {
			for _, program := range b.binaries {
				if err := b.startServer(ctx, program, kind, w); err != nil {
					return err
				}
			}
		}
	}
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.startPeers(ctx)
}

func (b *bench) worlds() []*world { return []*world{b.large, b.small, b.nested} }

// worldOf returns the world of a work.
func (b *bench) worldOf(one work) *world {
	switch one.World {
	case smallWorld:
		return b.small
	case nestedWorld:
		return b.nested
	}
	return b.large
}

// startServer starts a binary on a new database.
func (b *bench) startServer(ctx context.Context, program binary, kind string, w *world) error {
	number := len(b.targets)
	t := &target{name: program.name, database: kind, world: w}
	url := "sqlite://" + filepath.Join(b.folder, fmt.Sprintf("cadastre-%d.db", number))
	if kind == postgres {
		t.cluster, t.storage = b.cluster, fmt.Sprintf("cadastre_%d", number)
		if err := b.cluster.CreateDatabase(ctx, t.storage); err != nil {
			return err
		}
		url = b.cluster.URL(t.storage)
	}
	file := filepath.Join(b.folder, fmt.Sprintf("tokens-%d.yaml", number))
	if err := t.makeTokens(file); err != nil {
		return err
	}
	if err := t.serve(ctx, local.Setup{Program: program.path, Folder: b.folder, Name: fmt.Sprintf("server-%d", number), Database: url, Tokens: file}); err != nil {
		return fmt.Errorf("start %s: %w", t, err)
	}
	b.targets = append(b.targets, t)
	return nil
}

// makeTokens writes the file of tokens of the target's viewers.
func (t *target) makeTokens(file string) error {
	t.tokens = map[string][]string{}
	var all []local.Token
	for _, role := range []string{admin, member, service, "reader"} {
		for i := range maxClients {
			one := local.Token{Token: rand.Text(), User: fmt.Sprintf("%s-%d", role, i), Project: fmt.Sprintf("%ss-%d", role, i%projectsOf), Role: role}
			t.tokens[role] = append(t.tokens[role], one.Token)
			all = append(all, one)
		}
	}
	return local.WriteTokens(file, all)
}

// serve starts a server of the target, in place of any that it had.
func (t *target) serve(ctx context.Context, of local.Setup) error {
	s, err := local.NewServer(of)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	t.server, t.process, t.address = s, s.Process, s.Host
	t.operator = local.NewClient(s.Host, t.tokens[admin][maxClients-1], addressOf(maxClients), loaders, requestTime)
	return nil
}

// stop ends the target.
func (t *target) stop() error {
	if t.operator != nil {
		t.operator.Close()
	}
	return t.process.Stop()
}

// stop ends every process, the last first.
func (b *bench) stop() error {
	var err error
	for _, t := range slices.Backward(b.targets) {
		err = errors.Join(err, t.stop())
	}
	if b.cluster != nil {
		err = errors.Join(err, b.cluster.Stop())
	}
	return err
}

// load writes the worlds into all servers at once.
func (b *bench) load(ctx context.Context) error {
	group, loading := errgroup.WithContext(ctx)
	for _, t := range b.targets {
		group.Go(func() error {
			started := time.Now()
			if err := t.world.load(loading, t.operator); err != nil {
				return fmt.Errorf("load the world into %s: %w", t, err)
			}
			b.say("%s: loaded %d providers and %d resources in %.0f s", t, len(t.world.providers), len(t.world.resources), time.Since(started).Seconds())
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, t := range b.targets {
		if t.cluster != nil {
			if err := t.cluster.Settle(ctx, t.storage); err != nil {
				return err
			}
		}
	}
	return b.awaitMemory(ctx)
}

// say writes a line of progress; an unwritable standard error stops nothing.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, format+"\n", args...)
}

// manyResources is the number of resources from which servers keep them in memory
// to count them: each has eight items.
const manyResources = 2_500

// awaitMemory counts on every server, waits, and counts again. Servers load
// resources into memory after a count that found many of them. They read the
// sizes of their tables every 30 s.
func (b *bench) awaitMemory(ctx context.Context) error {
	if len(b.large.resources) < manyResources {
		return nil
	}
	count := local.Request{Query: `{ resources(first: 0) { facets(of: [{by: VISIBILITY}]) { key } } }`}
	for _, wait := range []time.Duration{31 * time.Second, 5 * time.Second} {
		for _, t := range b.targets {
			if err := t.operator.Ask(ctx, count, nil); err != nil {
				return fmt.Errorf("count on %s: %w", t, err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	return nil
}

// cpu is time on processors.
type cpu struct{ server, database time.Duration }

// cpu returns the processor time that the target has used.
func (t *target) cpu() (used cpu, err error) {
	if !local.MeasuresCPU() {
		return used, nil
	}
	of := local.CPUOf
	if t.family {
		of = local.CPUOfFamily
	}
	if used.server, err = of(t.process.PID); err != nil || t.cluster == nil {
		return used, err
	}
	used.database, err = local.CPUOfFamily(t.cluster.PID)
	return used, err
}

func (c *cpu) add(before, after cpu) {
	c.server += after.server - before.server
	c.database += max(0, after.database-before.database) // an ended process is counted in whole ticks
}

// lastOnPostgres returns the last binary's server of the large world on
// PostgreSQL; nil without one.
func (b *bench) lastOnPostgres() (last *target) {
	for _, t := range b.targets {
		if t.server != nil && t.cluster != nil && t.world == b.large {
			last = t
		}
	}
	return last
}
