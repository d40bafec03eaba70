package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"golang.org/x/sync/errgroup"
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
	loadBefore   float64        // of the machine before the first server
	missing      []string       // peers that are not timed, and why
}

// target is a program under test: a server of Cadastre, or a peer.
type target struct {
	name     string // of the binary, or of the peer
	peer     string // which peer; empty for a server of Cadastre
	database string // empty for a peer without one
	world    *world // nil for a peer without one
	address  string // host and port
	headers  string // lines that each of its requests has
	member   string // the same of a member of a project; empty for a peer
	program  string // path of a server's program
	url      string // of a server's database
	file     string // what the files of a server are called
	process  *local.Process
	once     bool           // whether it takes one request a connection
	family   bool           // whether children of the process do its work
	cluster  *local.Cluster // nil without PostgreSQL
	storage  string         // its database in the cluster
	server   *server        // nil for a peer
}

func (t *target) String() string {
	if t.database == "" {
		return t.name
	}
	return t.name + " on " + t.database
}

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

// worlds returns every world, those that no work is about included.
func (b *bench) worlds() []*world { return []*world{b.large, b.small, b.nested} }

// worldOf returns the world that a work is about.
func (b *bench) worldOf(one work) *world {
	switch one.in {
	case smallWorld:
		return b.small
	case nestedWorld:
		return b.nested
	}
	return b.large
}

// startServer starts a binary on a database of its own.
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
	t.program, t.url, t.file = program.path, url, fmt.Sprintf("server-%d", number)
	server, err := startServer(ctx, b.folder, t.file, t.program, t.url)
	if err != nil {
		return fmt.Errorf("start %s: %w", t, err)
	}
	t.serve(server)
	b.targets = append(b.targets, t)
	return nil
}

// serve makes a server the one of the target.
func (t *target) serve(s *server) {
	as := func(token string) string {
		return "Content-Type: application/json\r\nAuthorization: Bearer " + token + "\r\n"
	}
	t.server, t.process, t.address, t.headers, t.member = s, s.Process, s.host, as(s.token), as(s.member)
}

// stop ends every process, the last first.
func (b *bench) stop() error {
	var err error
	for _, t := range slices.Backward(b.targets) {
		if t.server != nil {
			t.server.close()
		}
		err = errors.Join(err, t.process.Stop())
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
			if err := t.world.load(loading, t.server.client); err != nil {
				return fmt.Errorf("load the world into %s: %w", t, err)
			}
			_, err := fmt.Fprintf(b.progress, "%s: loaded %d providers and %d resources in %.0f s\n", t, len(t.world.providers), len(t.world.resources), time.Since(started).Seconds())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, t := range b.targets {
		if t.cluster == nil {
			continue
		}
		if err := t.cluster.Settle(ctx, t.storage); err != nil {
			return err
		}
	}
	return b.awaitMemory(ctx)
}

// manyResources is from how many resources of the world on servers keep them in
// memory to count them: there are eight items on each.
const manyResources = 2_500

// awaitMemory has servers keep in memory what they count, as they do when they have
// been asked to count while they knew of so much: they read the sizes of their tables
// every 30 s, where those are needed, and load in seconds.
func (b *bench) awaitMemory(ctx context.Context) error {
	if len(b.large.resources) < manyResources {
		return nil
	}
	for _, wait := range []time.Duration{31 * time.Second, 5 * time.Second} {
		for _, t := range b.targets {
			if err := t.server.client.ask(ctx, request{Query: facets, Variables: object{"of": []object{{"by": "VISIBILITY"}}}}, nil); err != nil {
				return fmt.Errorf("have %s count: %w", t, err)
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

// cpu returns what the target's processes used so far.
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
