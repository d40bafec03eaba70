package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/internal/pgproxy"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// Times of Patroni. ttl is the smallest that Patroni accepts.
const (
	patroniTTL  = 20 * time.Second
	patroniLoop = 5 * time.Second
)

// node is a PostgreSQL under Patroni. The network reaches it, and it reaches
// etcd, through proxies.
type node struct {
	*local.Process             // of Patroni
	Name, Folder               string
	Postgres, REST             string // addresses
	ToPostgres, ToREST, ToEtcd *pgproxy.Proxy
}

// patroni is a cluster with etcd, HAProxy and PgBouncer.
type patroni struct {
	folder               string
	Programs             string // the folder of PostgreSQL's programs
	as                   *syscall.Credential
	etcd, proxy, bouncer *local.Process
	Nodes                []*node
	// Addresses.
	etcdClients, etcdPeers, HAProxy, PgBouncer string
}

// The files of configuration, as templates.
//
//go:embed patroni
var configurations embed.FS

// configure writes a file of configuration.
func configure(path, name string, data any) error {
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	files := template.New(name).Funcs(template.FuncMap{"port": port})
	filled, err := files.ParseFS(configurations, "patroni/"+name)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := filled.Execute(&text, data); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// startPatroni starts a cluster of some nodes, with an empty database.
func startPatroni(ctx context.Context, folder string, nodes int) (*patroni, error) {
	p := &patroni{folder: folder}
	startNodes := func(ctx context.Context) error { return p.startNodes(ctx, nodes) }
	for _, step := range []func(context.Context) error{
		p.prepare, p.startEtcd, startNodes, p.startProxies, p.createDatabase,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, p.stop())
		}
	}
	return p, nil
}

// prepare finds the programs and chooses the user and the addresses.
func (p *patroni) prepare(context.Context) (err error) {
	for _, program := range []string{"etcd", "patroni", "haproxy", "pgbouncer"} {
		if _, err := exec.LookPath(program); err != nil {
			const packages = "etcd-server patroni python3-etcd haproxy pgbouncer postgresql"
			return fmt.Errorf("%w (Debian: apt-get install --no-install-recommends %s)", err, packages)
		}
	}
	if p.Programs, err = pgserver.Programs(); err != nil {
		return err
	}
	if p.as, err = pgserver.User(p.folder); err != nil {
		return err
	}
	return local.Addresses(&p.etcdClients, &p.etcdPeers, &p.HAProxy, &p.PgBouncer)
}

func (p *patroni) run(name, signal string, args ...string) (*local.Process, error) {
	log := filepath.Join(p.folder, fmt.Sprintf("%s-%d.log", name, time.Now().UnixNano()))
	return local.Start(log, signal, p.as, os.Environ(), args...)
}

func (p *patroni) startEtcd(context.Context) (err error) {
	client, peer := "http://"+p.etcdClients, "http://"+p.etcdPeers
	p.etcd, err = p.run("etcd", "TERM", "etcd", "--enable-v2", "--data-dir", filepath.Join(p.folder, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err != nil {
		return err
	}
	return p.etcd.Await(func() error { return get(client+"/health", nil) })
}

// startNodes starts the nodes, the first leader before the others.
func (p *patroni) startNodes(ctx context.Context, count int) error {
	for i := range count {
		one, err := p.newNode(fmt.Sprint("node", i))
		if err != nil {
			return err
		}
		p.Nodes = append(p.Nodes, one)
		if err := p.startNode(one); err != nil {
			return err
		}
		if _, err := p.await(ctx, func(m []member) bool { return leaderOf(m) != "" }); err != nil {
			return err
		}
	}
	_, err := p.healthy(ctx)
	return err
}

func (p *patroni) newNode(name string) (of *node, err error) {
	of = &node{Name: name, Folder: filepath.Join(p.folder, name)}
	if err := os.Mkdir(of.Folder, 0o700); err != nil {
		return nil, err
	}
	if _, err := pgserver.User(of.Folder); err != nil {
		return nil, err
	}
	if err := local.Addresses(&of.Postgres, &of.REST); err != nil {
		return nil, err
	}
	for into, address := range map[**pgproxy.Proxy]string{
		&of.ToPostgres: of.Postgres, &of.ToREST: of.REST, &of.ToEtcd: p.etcdClients,
	} {
		if *into, err = pgproxy.Start(address); err != nil {
			return nil, err
		}
	}
	return of, configure(of.config(), "patroni.yaml", struct {
		*node
		Programs  string
		TTL, Loop time.Duration
	}{of, p.Programs, patroniTTL, patroniLoop})
}

func (n *node) config() string { return n.Folder + ".yaml" }

func (n *node) proxies() []*pgproxy.Proxy { return []*pgproxy.Proxy{n.ToPostgres, n.ToREST, n.ToEtcd} }

func (p *patroni) startNode(n *node) (err error) {
	n.Process, err = p.run(n.Name, "TERM", "patroni", n.config())
	return err
}

// startProxies starts HAProxy in front of the nodes, and PgBouncer in front of
// HAProxy.
func (p *patroni) startProxies(context.Context) (err error) {
	haproxy, bouncer := filepath.Join(p.folder, "haproxy.cfg"), filepath.Join(p.folder, "pgbouncer.ini")
	err = errors.Join(configure(haproxy, "haproxy.cfg", p), configure(bouncer, "pgbouncer.ini", p))
	if err != nil {
		return err
	}
	if p.proxy, err = p.run("haproxy", "TERM", "haproxy", "-db", "-f", haproxy); err != nil {
		return err
	}
	p.bouncer, err = p.run("pgbouncer", "INT", "pgbouncer", bouncer)
	return err
}

// url returns the URL of a database on some hosts.
func (p *patroni) url(user, database string, hosts ...string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", user, strings.Join(hosts, ","), database)
}

// direct returns the URL of the nodes, proxied the one of HAProxy, and pooled the
// one of PgBouncer.
func (p *patroni) direct() string {
	hosts := lists.Map(p.Nodes, func(n *node) string { return n.ToPostgres.Address() })
	return p.url("cadastre", "cadastre", hosts...)
}

func (p *patroni) proxied() string { return p.url("cadastre", "cadastre", p.HAProxy) }

func (p *patroni) pooled() string { return p.url("cadastre", "cadastre", p.PgBouncer) }

// createDatabase creates the role and the database on the primary.
func (p *patroni) createDatabase(ctx context.Context) error {
	for _, of := range []struct{ database, statement string }{
		{"postgres", "CREATE ROLE cadastre LOGIN"},
		{"postgres", "GRANT pg_read_all_stats TO cadastre"},
		{"postgres", "ALTER ROLE cadastre SET statement_timeout = '10s'"},
		{"postgres", "ALTER ROLE cadastre SET jit = off"},
		{"postgres", "CREATE DATABASE cadastre OWNER cadastre"},
		{"cadastre", "CREATE EXTENSION pg_trgm"},
	} {
		if err := p.insist(ctx, of.database, of.statement); err != nil {
			return err
		}
	}
	return nil
}

// insist runs a statement through HAProxy, up to 40 times until it succeeds.
func (p *patroni) insist(ctx context.Context, database, statement string) (err error) {
	for range 40 {
		err = local.Run(ctx, p.url("postgres", database, p.HAProxy), statement)
		if err == nil || !pause.For(ctx, 500*time.Millisecond) {
			break
		}
	}
	return err
}

// member is a node as Patroni sees it.
type member struct{ Name, Role, State string }

func leaderOf(members []member) (name string) {
	isLeader := func(m member) bool { return m.Role == "leader" && m.State == "running" }
	if i := slices.IndexFunc(members, isLeader); i >= 0 {
		name = members[i].Name
	}
	return name
}

// get reads JSON from an address. If into is nil, any answer is enough.
func get(address string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil || into == nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// await waits until the members of the cluster are as wanted, at most 3 minutes.
func (p *patroni) await(ctx context.Context, wanted func([]member) bool) ([]member, error) {
	var last []member
	for began := time.Now(); time.Since(began) < 3*time.Minute && pause.For(ctx, 200*time.Millisecond); {
		for _, n := range p.Nodes {
			var of struct{ Members []member }
			if get("http://"+n.REST+"/cluster", &of) == nil {
				if last = of.Members; wanted(last) {
					return last, nil
				}
			}
		}
	}
	return last, fmt.Errorf("Patroni's members are %+v", last)
}

// healthy waits until there is one leader, all others follow it, and one of them
// is synchronous. It returns the leader.
func (p *patroni) healthy(ctx context.Context) (*node, error) {
	members, err := p.await(ctx, func(members []member) bool {
		synchronous, running := 0, 0
		for _, one := range members {
			if one.Role == "sync_standby" {
				synchronous++
			}
			if one.State == "running" || one.State == "streaming" {
				running++
			}
		}
		return leaderOf(members) != "" && running == len(p.Nodes) && synchronous == min(1, len(p.Nodes)-1)
	})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.Nodes, func(n *node) bool { return n.Name == leaderOf(members) })
	return p.Nodes[i], nil
}

// database returns the processes of a node's PostgreSQL, the server first.
func (n *node) database() ([]int, error) {
	return pgserver.Processes(filepath.Join(n.Folder, "data"))
}

// stop ends everything.
func (p *patroni) stop() error {
	var err error
	for _, one := range []*local.Process{p.bouncer, p.proxy} {
		if one != nil {
			err = errors.Join(err, one.Stop())
		}
	}
	for _, n := range p.Nodes {
		if n.Process != nil {
			err = errors.Join(err, n.Process.Stop())
		}
		if all, failed := n.database(); failed == nil { // Patroni was killed
			_ = syscall.Kill(all[0], syscall.SIGQUIT)
		}
		for _, one := range n.proxies() {
			one.Close()
		}
	}
	if p.etcd != nil {
		err = errors.Join(err, p.etcd.Stop())
	}
	return err
}
