package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// The databases that a cloud can have.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// viewers is how many readers, searchers and writers there are; each has a token,
// and some share a project.
const (
	viewers  = 200
	projects = 20
)

// Addresses of the clients, all of this machine: servers tell them apart.
const (
	calmAddress     = "127.0.0.2"
	greedyAddress   = "127.0.0.3"
	operatorAddress = "127.0.0.4"
	othersAddress   = "127.0.0.5"
)

// tokens are what the viewers send.
type tokens struct {
	file                  string
	admin                 string
	calm, calmService     string // of a project that does nothing wrong
	greedy, greedyService string // of one that attacks
	others                []string
	othersService         []string
}

// newTokens writes the file of the tokens.
func newTokens(folder string) (*tokens, error) {
	of := &tokens{file: filepath.Join(folder, "tokens.yaml")}
	var text strings.Builder
	text.WriteString("tokens:\n")
	add := func(user, project, role string) string {
		token := rand.Text()
		fmt.Fprintf(&text, "  - {token: %s, user: %s, project: %s, roles: [%s]}\n", token, user, project, role)
		return token
	}
	of.admin = add("operator", "operators", "admin")
	of.calm, of.calmService = add("calm", "calm", "member"), add("calm-service", "calm", "service")
	of.greedy, of.greedyService = add("greedy", "greedy", "member"), add("greedy-service", "greedy", "service")
	for i := range viewers {
		project := fmt.Sprint("project-", i%projects)
		of.others = append(of.others, add(fmt.Sprint("user-", i), project, "member"))
		of.othersService = append(of.othersService, add(fmt.Sprint("service-", i), project, "service"))
	}
	return of, os.WriteFile(of.file, []byte(text.String()), 0o600)
}

// server is a server of Cadastre in a process of its own, which is started again
// where it ends.
type server struct {
	*local.Process
	name    string
	log     string
	program string
	host    string // and port
	profile string // address of its profiles
	env     []string
	args    []string
	inside  string     // process whose file systems it sees; "" is this one
	within  *container // nil is none
}

// cloud is a database with its servers.
type cloud struct {
	kind     string
	folder   string
	program  string
	tokens   *tokens
	memory   int64
	contain  bool     // whether each server has a container of so much memory
	flags    []string // of servers, besides those that it gives
	cluster  *local.Cluster
	proxy    *proxy // before the cluster
	disk     *disk  // of a SQLite file that can become full; nil without
	servers  []*server
	database string
}

// newCloud prepares a database without servers.
func newCloud(ctx context.Context, kind, folder, program string, of *tokens, memory int64, contain bool, flags []string) (*cloud, error) {
	c := &cloud{kind: kind, folder: filepath.Join(folder, kind), program: program, tokens: of, memory: memory, contain: contain, flags: flags}
	if err := os.Mkdir(c.folder, 0o711); err != nil {
		return nil, err
	}
	if kind == sqlite {
		c.database = "sqlite://" + filepath.Join(c.folder, "cadastre.db")
		return c, nil
	}
	var err error
	if c.cluster, err = local.StartCluster(ctx, c.folder, "shared_buffers=256MB", "max_wal_size=1GB"); err != nil {
		return nil, err
	}
	c.database = c.cluster.URL("cadastre")
	if err := c.cluster.CreateDatabase(ctx, "cadastre"); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	if c.proxy, err = startProxy(c.cluster.Address()); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// proxied returns the URL of the database as it is behind the proxy.
func (c *cloud) proxied() string {
	if c.proxy == nil {
		return c.database
	}
	return strings.Replace(c.database, c.cluster.Address(), c.proxy.address(), 1)
}

// start starts so many servers, one for SQLite, on a database, under the limits
// that servers have by themselves besides the flags.
func (c *cloud) start(ctx context.Context, count int, database string, flags ...string) error {
	if c.kind == sqlite {
		count = 1
	}
	for i := range count {
		s, err := c.newServer(fmt.Sprintf("server-%d", i), database, flags...)
		if err == nil {
			err = s.start(ctx)
		}
		if err != nil {
			return err
		}
		c.servers = append(c.servers, s)
	}
	return nil
}

// newServer returns a server that has not been started.
func (c *cloud) newServer(name, database string, flags ...string) (*server, error) {
	port, err := pgserver.FreePort()
	if err != nil {
		return nil, err
	}
	profile, err := pgserver.FreePort()
	if err != nil {
		return nil, err
	}
	s := &server{name: name, log: filepath.Join(c.folder, name), program: c.program, host: local.Loopback(port), profile: local.Loopback(profile)}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CADASTRE_") && !strings.HasPrefix(variable, "GO") {
			s.env = append(s.env, variable)
		}
	}
	switch {
	case c.contain:
		if s.within, err = newContainer(fmt.Sprintf("cadastre-chaos-%d-%s-%s", os.Getpid(), c.kind, name), c.memory); err != nil {
			return nil, err
		}
	case c.memory > 0: // as the server itself would in a container of so much
		s.env = append(s.env, fmt.Sprint("GOMEMLIMIT=", c.memory*3/4))
	}
	if c.disk != nil {
		s.inside = c.disk.holder()
	}
	s.args = append([]string{"serve", "--listen", s.host, "--pprof-listen", s.profile, "--database", database, "--tokens", c.tokens.file, "--profile", "locked"}, c.flags...)
	s.args = append(s.args, flags...)
	return s, nil
}

// start starts the server, or starts it again, and waits until it is ready.
func (s *server) start(ctx context.Context) error {
	program, args := s.program, s.args
	if s.inside != "" {
		program, args = "nsenter", append([]string{"--target", s.inside, "--mount", "--", program}, args...)
	}
	if s.within != nil {
		program, args = s.within.wrap(program, args)
	}
	p, err := local.Start(fmt.Sprintf("%s-%d.log", s.log, time.Now().UnixNano()), "TERM", nil, s.env, program, args...)
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	s.Process = p
	if err := p.Await(local.StartTime, func() error { return s.ready(ctx) }); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// Stop ends the server, and its container with it.
func (s *server) Stop() error {
	var err error
	if s.Process != nil {
		err = s.Process.Stop()
	}
	if s.within != nil {
		err = errors.Join(err, s.within.remove())
		s.within = nil
	}
	return err
}

// startAgain starts the servers again that have ended by themselves, and returns
// how many did.
func (c *cloud) startAgain(ctx context.Context) (ended int, err error) {
	for _, s := range c.servers {
		select {
		case <-s.Ended():
			ended++
			err = errors.Join(err, s.start(ctx))
		default:
		}
	}
	return ended, err
}

// ready returns nil once the server says that it is ready.
func (s *server) ready(ctx context.Context) error {
	p := newParty(s.host, "", operatorAddress, 1)
	defer p.close()
	_, err := p.get(ctx, "/readyz")
	return err
}

// kill ends the server as the system does it to programs that take too much.
func (s *server) kill() error { return s.Signal(syscall.SIGKILL) }

// hosts returns the addresses of the servers.
func (c *cloud) hosts() []string {
	var hosts []string
	for _, s := range c.servers {
		hosts = append(hosts, s.host)
	}
	return hosts
}

// stopServers ends the servers, and the cloud has none.
func (c *cloud) stopServers() error {
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.Stop())
	}
	c.servers = nil
	return errors.Join(errs...)
}

// stop ends everything.
func (c *cloud) stop() error {
	err := c.stopServers()
	if c.proxy != nil {
		c.proxy.stop()
	}
	if c.cluster != nil {
		err = errors.Join(err, c.cluster.Stop())
	}
	if c.disk != nil {
		err = errors.Join(err, c.disk.stop())
	}
	return err
}

// unlimited are the flags of a server that fills or judges.
func unlimited() []string {
	return []string{"--limit-cost", "0", "--limit-admin-points", "1000000000", "--limit-address-points", "0", "--write-rate", "0", "--limit-body-bytes", "16777216", "--limit-list-members", "0"}
}

// besides runs something with one server without limits, as an operator.
func (c *cloud) besides(ctx context.Context, do func(*party) error) (err error) {
	s, err := c.newServer("operator", c.database, unlimited()...)
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	operator := newParty(s.host, c.tokens.admin, operatorAddress, fillingAtOnce)
	defer operator.close()
	return do(operator)
}
