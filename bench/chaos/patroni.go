package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// Times of Patroni. ttl is the smallest that Patroni accepts.
const (
	patroniTTL  = 20 * time.Second
	patroniLoop = 5 * time.Second
)

// node is a PostgreSQL under Patroni. The network reaches it, and it reaches
// etcd, through gates.
type node struct {
	*local.Process // of Patroni
	name, folder   string
	postgres, rest int
	toPostgres     *gate
	toREST, toEtcd *gate
}

// patroni is a cluster with etcd, HAProxy and PgBouncer.
type patroni struct {
	folder, programs string
	as               *syscall.Credential
	etcdPort, peers  int
	etcd             *local.Process
	nodes            []*node
	haproxy, bouncer *local.Process
	haPort, poolPort int
}

// startPatroni starts a cluster of some nodes, with an empty database.
func startPatroni(ctx context.Context, folder string, nodes int) (p *patroni, err error) {
	p = &patroni{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	if err := checkInstalled(); err != nil {
		return p, err
	}
	if p.programs, err = pgserver.Programs(); err != nil {
		return p, err
	}
	if p.as, err = pgserver.User(folder); err != nil {
		return p, err
	}
	err = choosePorts(&p.etcdPort, &p.peers, &p.haPort, &p.poolPort)
	if err == nil {
		err = p.startEtcd()
	}
	if err != nil {
		return p, err
	}
	for i := range nodes {
		one, err := p.newNode(fmt.Sprint("node", i))
		if err != nil {
			return p, err
		}
		p.nodes = append(p.nodes, one)
	}
	for i, one := range p.nodes {
		if err := p.startNode(one); err != nil {
			return p, err
		}
		if i == 0 {
			if _, err := p.await(ctx, func(m []member) bool { return leaderOf(m) != "" }); err != nil {
				return p, err
			}
		}
	}
	if _, err = p.healthy(ctx); err == nil {
		err = p.startProxies()
	}
	if err == nil {
		err = p.createDatabase(ctx)
	}
	return p, err
}

// checkInstalled returns an error if a program of the cluster is missing.
func checkInstalled() error {
	for _, program := range []string{"etcd", "patroni", "haproxy", "pgbouncer"} {
		if _, err := exec.LookPath(program); err != nil {
			const packages = "etcd-server patroni python3-etcd haproxy pgbouncer postgresql"
			return fmt.Errorf("%w (Debian: apt-get install --no-install-recommends %s)", err, packages)
		}
	}
	return nil
}

func choosePorts(into ...*int) (err error) {
	for _, port := range into {
		if *port, err = pgserver.FreePort(); err != nil {
			return err
		}
	}
	return nil
}

func (p *patroni) run(name, signal string, args ...string) (*local.Process, error) {
	log := filepath.Join(p.folder, fmt.Sprintf("%s-%d.log", name, time.Now().UnixNano()))
	return local.Start(log, signal, p.as, os.Environ(), args[0], args[1:]...)
}

func (p *patroni) startEtcd() (err error) {
	client, peer := "http://"+local.Loopback(p.etcdPort), "http://"+local.Loopback(p.peers)
	p.etcd, err = p.run("etcd", "TERM", "etcd", "--enable-v2", "--data-dir", filepath.Join(p.folder, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err != nil {
		return err
	}
	return p.etcd.Await(func() error { return get(client+"/health", nil) })
}

func (p *patroni) newNode(name string) (of *node, err error) {
	of = &node{name: name, folder: filepath.Join(p.folder, name)}
	if err := os.Mkdir(of.folder, 0o700); err != nil {
		return nil, err
	}
	if _, err := pgserver.User(of.folder); err != nil {
		return nil, err
	}
	if err := choosePorts(&of.postgres, &of.rest); err != nil {
		return nil, err
	}
	for into, port := range map[**gate]int{&of.toPostgres: of.postgres, &of.toREST: of.rest, &of.toEtcd: p.etcdPort} {
		if *into, err = newGate(local.Loopback(port)); err != nil {
			return nil, err
		}
	}
	return of, os.WriteFile(of.config(), []byte(p.settings(of)), 0o644)
}

func (n *node) config() string { return n.folder + ".yaml" }

func (n *node) gates() []*gate { return []*gate{n.toPostgres, n.toREST, n.toEtcd} }

// settings returns the configuration of Patroni for a node. It uses version 2 of
// etcd's API: with version 3, Patroni 3.0.2 lets a primary that was suspended take
// the lock of the leader back from its successor, and acknowledged writes are lost.
func (p *patroni) settings(n *node) string {
	return fmt.Sprintf(`scope: cadastre
name: %[1]s
restapi: {listen: "127.0.0.1:%[2]d", connect_address: "127.0.0.1:%[3]d"}
etcd: {proxy: "http://127.0.0.1:%[4]d"}
bootstrap:
  dcs:
    ttl: %[9]d
    loop_wait: %[10]d
    retry_timeout: 5
    master_start_timeout: 0
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 200, shared_buffers: 128MB, wal_keep_size: 1GB, wal_log_hints: "on"}
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, {auth: trust}]
postgresql:
  listen: "127.0.0.1:%[5]d"
  connect_address: "127.0.0.1:%[6]d"
  data_dir: %[7]s/data
  bin_dir: %[8]s
  pgpass: %[7]s/pgpass
  parameters: {unix_socket_directories: %[7]s}
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
  authentication:
    superuser: {username: postgres, password: none, sslmode: disable}
    replication: {username: replicator, password: none, sslmode: disable}
`, n.name, n.rest, n.toREST.port(), n.toEtcd.port(), n.postgres, n.toPostgres.port(), n.folder, p.programs,
		int(patroniTTL.Seconds()), int(patroniLoop.Seconds()))
}

func (p *patroni) startNode(n *node) (err error) {
	n.Process, err = p.run(n.name, "TERM", "patroni", n.config())
	return err
}

// startProxies starts HAProxy before the primary, and PgBouncer before HAProxy.
func (p *patroni) startProxies() (err error) {
	var servers strings.Builder
	for _, n := range p.nodes {
		fmt.Fprintf(&servers, "  server %s 127.0.0.1:%d check port %d\n", n.name, n.toPostgres.port(), n.toREST.port())
	}
	files := map[string]string{
		"haproxy.cfg": fmt.Sprintf(`defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 2s
listen primary
  bind 127.0.0.1:%d
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
%s`, p.haPort, servers.String()),
		"pgbouncer.ini": fmt.Sprintf(`[databases]
cadastre = host=127.0.0.1 port=%d dbname=cadastre user=cadastre
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 60
server_connect_timeout = 2
server_login_retry = 1
ignore_startup_parameters = statement_timeout,jit,default_transaction_isolation
`, p.haPort, p.poolPort),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	p.haproxy, err = p.run("haproxy", "TERM", "haproxy", "-db", "-f", filepath.Join(p.folder, "haproxy.cfg"))
	if err != nil {
		return err
	}
	p.bouncer, err = p.run("pgbouncer", "INT", "pgbouncer", filepath.Join(p.folder, "pgbouncer.ini"))
	return err
}

// url returns the URL of a database on some ports.
func (p *patroni) url(user, database string, ports ...int) string {
	var hosts []string
	for _, port := range ports {
		hosts = append(hosts, local.Loopback(port))
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", user, strings.Join(hosts, ","), database)
}

// direct returns the URL of the nodes, proxied the one of HAProxy, and pooled the
// one of PgBouncer.
func (p *patroni) direct() string {
	var ports []int
	for _, n := range p.nodes {
		ports = append(ports, n.toPostgres.port())
	}
	return p.url("cadastre", "cadastre", ports...)
}

func (p *patroni) proxied() string { return p.url("cadastre", "cadastre", p.haPort) }

func (p *patroni) pooled() string { return p.url("cadastre", "cadastre", p.poolPort) }

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

// insist runs a statement behind HAProxy, and again until it succeeds.
func (p *patroni) insist(ctx context.Context, database, statement string) error {
	db, err := sql.Open("postgres", p.url("postgres", database, p.haPort))
	if err != nil {
		return err
	}
	for range 40 {
		if _, err = db.ExecContext(ctx, statement); err == nil || !pause.For(ctx, 500*time.Millisecond) {
			break
		}
	}
	return errors.Join(err, db.Close())
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

// get reads JSON from an address.
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

// await waits until the members of the cluster are as wanted.
func (p *patroni) await(ctx context.Context, wanted func([]member) bool) ([]member, error) {
	var last []member
	for began := time.Now(); time.Since(began) < 3*time.Minute && pause.For(ctx, 200*time.Millisecond); {
		for _, n := range p.nodes {
			var of struct{ Members []member }
			if get("http://"+local.Loopback(n.rest)+"/cluster", &of) == nil {
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
		return leaderOf(members) != "" && running == len(p.nodes) && synchronous == min(1, len(p.nodes)-1)
	})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.nodes, func(n *node) bool { return n.name == leaderOf(members) })
	return p.nodes[i], nil
}

// database returns the processes of a node's PostgreSQL, the server first.
func (n *node) database() ([]int, error) {
	text, err := os.ReadFile(filepath.Join(n.folder, "data", "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	server, err := strconv.Atoi(line)
	if err != nil {
		return nil, err
	}
	children, err := local.Children(server)
	return append([]int{server}, children...), err
}

// stop ends everything.
func (p *patroni) stop() error {
	var err error
	for _, one := range []*local.Process{p.bouncer, p.haproxy} {
		if one != nil {
			err = errors.Join(err, one.Stop())
		}
	}
	for _, n := range p.nodes {
		if n.Process != nil {
			err = errors.Join(err, n.Process.Stop())
		}
		if all, failed := n.database(); failed == nil { // Patroni was killed
			_ = syscall.Kill(all[0], syscall.SIGQUIT)
		}
		for _, one := range n.gates() {
			one.close()
		}
	}
	if p.etcd != nil {
		err = errors.Join(err, p.etcd.Stop())
	}
	return err
}
