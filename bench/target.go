package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// bench is one run of the benchmark.
type bench struct {
	*local.Lab
	options
	works        []work
	deadline     time.Time // no round begins that would end later
	large, small *world
	nested       *world
	targets      []*target // in the order in which they started
	missing      []string  // peers that are not timed, with the reasons
}

// target is a program under test: a server of Cadastre, or a peer.
type target struct {
	name     string // of the binary, or of the peer
	peer     string // which peer; empty for a server of Cadastre
	database string // empty for a peer without one
	world    *world
	address  string // host and port
	headers  string // lines in each request to a peer
	process  *local.Process
	once     bool              // whether it accepts one request per connection
	cluster  *local.Cluster    // nil without PostgreSQL
	storage  string            // database in the cluster
	hashes   map[string]string // of metadata values, as Cadastre stores them
	server   *local.Server     // nil for a peer
	tokens   map[string][]string
	operator *local.Client // fills the server and reads its metrics
}

func (t *target) String() string {
	if t.database == "" {
		return t.name
	}
	return t.name + " on " + t.database
}

// maxClients is the number of viewers of each role, one for each client, in
// projectsOf projects. Clients share neither tokens nor addresses, so each client
// has separate limits.
const (
	maxClients  = 32
	projectsOf  = 8
	requestTime = 2 * time.Minute // for one request, the answer included
)

// loaders is the number of connections that fill a server.
const loaders = 4

// addressOf returns the loopback address of a client.
func addressOf(client int) string { return fmt.Sprintf("127.0.1.%d", client+1) }

// client returns the client of a role by its number, with one connection.
func (t *target) client(role string, number int) *local.Client {
	headers, from := t.headers, ""
	if t.server != nil {
		headers, from = local.Bearing(t.tokens[role][number]), addressOf(number)
	}
	c := local.NewClient(t.address, headers, from, 1, requestTime)
	c.Once = t.once
	return c
}

// connect returns n clients of a role. Each has one of the servers.
func connect(servers []*target, role string, n int) (clients []*local.Client) {
	for i := range n {
		clients = append(clients, servers[i%len(servers)].client(role, i))
	}
	return clients
}

// start starts the cluster, and every binary on every database for each world
// that a work or a part needs. Then it fills the servers and starts the peers.
func (b *bench) start(ctx context.Context) (err error) {
	if slices.Contains(b.databases, postgres) {
		if err := b.StartCluster(ctx, "shared_buffers=512MB", "max_wal_size=2GB", "max_connections=200"); err != nil {
			return err
		}
	}
	for _, w := range b.worlds() {
		isUsed := func(one work) bool { return b.worldOf(one) == w }
		if !slices.ContainsFunc(b.works, isUsed) && (w != b.large || len(b.parts()) == 0) {
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
	t := &target{name: program.name, database: kind, world: w, tokens: map[string][]string{}}
	url, err := b.NewDatabase(ctx, kind, fmt.Sprintf("cadastre_%d", number))
	if err != nil {
		return err
	}
	if kind == postgres {
		t.cluster, t.storage = b.Cluster, fmt.Sprintf("cadastre_%d", number)
	}
	var all []local.Token
	for _, role := range []string{admin, member, service, "reader"} {
		for i := range maxClients {
			one := local.Token{Token: rand.Text(), User: fmt.Sprintf("%s-%d", role, i),
				Project: fmt.Sprintf("%ss-%d", role, i%projectsOf), Role: role}
			t.tokens[role], all = append(t.tokens[role], one.Token), append(all, one)
		}
	}
	setup := local.Setup{Program: program.path, Folder: b.Folder, Name: fmt.Sprintf("server-%d", number), Database: url}
	setup.Args = []string{"--openstack-api", "placement"}
	setup.Tokens = filepath.Join(b.Folder, fmt.Sprintf("tokens-%d.yaml", number))
	if err = local.WriteTokens(setup.Tokens, all); err == nil {
		err = t.serve(ctx, setup)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", t, err)
	}
	b.targets = append(b.targets, t)
	return nil
}

// serve starts a server and makes it the target's. It does not stop an earlier
// server of the target.
func (t *target) serve(ctx context.Context, of local.Setup) error {
	s, err := local.StartServer(ctx, of)
	if err != nil {
		return err
	}
	t.server, t.process, t.address = s, s.Process, s.Host
	t.operator = local.NewClient(s.Host, local.Bearing(t.tokens[admin][maxClients-1]),
		addressOf(maxClients), loaders, requestTime)
	return nil
}

// stop ends the target.
func (t *target) stop() error {
	if t.operator != nil {
		t.operator.Close()
	}
	return t.process.Stop()
}

// stop ends every process, the last first, and removes the folder.
func (b *bench) stop() error {
	var err error
	for _, t := range slices.Backward(b.targets) {
		err = errors.Join(err, t.stop())
	}
	return errors.Join(err, b.Close())
}

// load writes the worlds into all servers concurrently.
func (b *bench) load(ctx context.Context) error {
	group, loading := errgroup.WithContext(ctx)
	for _, t := range b.targets {
		group.Go(func() error {
			started := time.Now()
			if err := t.world.load(loading, t.operator); err != nil {
				return fmt.Errorf("load the world into %s: %w", t, err)
			}
			b.Say("%s: loaded %d providers and %d resources in %.0f s", t,
				len(t.world.providers), len(t.world.resources), time.Since(started).Seconds())
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

// manyResources is the minimum number of resources for which servers keep
// resources in memory to count them. Each resource has eight items.
const manyResources = 2_500

// awaitMemory counts on every server, waits, and counts again. Servers load
// resources into memory after a count that found many of them. They read the
// sizes of their tables every 30 s.
func (b *bench) awaitMemory(ctx context.Context) error {
	if len(b.large.resources) < manyResources {
		return nil
	}
	count := local.Operation(`{ resources(first: 0) { facets(of: [{by: VISIBILITY}]) { key } } }`, nil)
	for _, wait := range []time.Duration{31 * time.Second, 5 * time.Second} {
		for _, t := range b.targets {
			if err := t.operator.Ask(ctx, count, nil); err != nil {
				return fmt.Errorf("count on %s: %w", t, err)
			}
		}
		if !pause.For(ctx, wait) {
			return ctx.Err()
		}
	}
	return nil
}

// cpu is time on processors.
type cpu struct{ server, database time.Duration }

// cpuOf returns the processor time of servers and their database.
func cpuOf(servers []*target) (sum cpu, err error) {
	for _, t := range servers {
		used, err := t.process.CPU()
		if err != nil {
			return sum, err
		}
		sum.server += used
	}
	if cluster := servers[0].cluster; cluster != nil {
		sum.database, err = cluster.CPU()
	}
	return sum, err
}

// servers returns the servers of a world.
func (b *bench) servers(w *world) (some []*target) {
	for _, t := range b.targets {
		if t.server != nil && t.world == w {
			some = append(some, t)
		}
	}
	return some
}

// lastOnPostgres returns the last binary's server of the large world on
// PostgreSQL; nil without one.
func (b *bench) lastOnPostgres() *target {
	for _, t := range slices.Backward(b.servers(b.large)) {
		if t.cluster != nil {
			return t
		}
	}
	return nil
}
