package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/pgproxy"
)

// The databases that a cloud can have.
const (
	sqlite   = measured.SQLite
	postgres = measured.Postgres
)

// requestTime bounds one request, the answer included.
const requestTime = 20 * time.Second

// viewers is the number of readers, searchers and writers, who share projects.
// Each has a token of a member and one of a service.
const (
	viewers  = 200
	projects = 20
)

// Loopback addresses of the clients, by which servers tell them apart.
const (
	calmAddress     = "127.0.0.2"
	greedyAddress   = "127.0.0.3"
	operatorAddress = "127.0.0.4"
	othersAddress   = "127.0.0.5"
)

// tokens are the tokens of the viewers.
type tokens struct {
	file, withoutGreedy   string // two files: in one of them the attacker is unknown
	admin                 string
	calm, calmService     string // of an innocent project
	greedy, greedyService string // of the attacker's project
	others, othersService []string
}

// newTokens makes the tokens and writes the two files.
func newTokens(folder string) (*tokens, error) {
	of := &tokens{file: filepath.Join(folder, "tokens.yaml"), withoutGreedy: filepath.Join(folder, "others.yaml")}
	var all, others []local.Token
	add := func(user, project, role string) string {
		one := local.Token{Token: rand.Text(), User: user, Project: project, Role: role}
		if all = append(all, one); project != "greedy" {
			others = append(others, one)
		}
		return one.Token
	}
	of.admin = add("operator", "operators", "admin")
	of.calm, of.calmService = add("calm", "calm", "member"), add("calm-service", "calm", "service")
	of.greedy, of.greedyService = add("greedy", "greedy", "member"), add("greedy-service", "greedy", "service")
	for i := range viewers {
		project := fmt.Sprint("project-", i%projects)
		of.others = append(of.others, add(fmt.Sprint("user-", i), project, "member"))
		of.othersService = append(of.othersService, add(fmt.Sprint("service-", i), project, "service"))
	}
	return of, errors.Join(local.WriteTokens(of.file, all), local.WriteTokens(of.withoutGreedy, others))
}

// server is a server with its control group; within is nil without one.
type server struct {
	*local.Server
	within *container
}

// cloud is a database with its servers.
type cloud struct {
	*local.Lab
	options
	report   *report
	world    *world
	ledger   *ledger
	kind     string
	tokens   *tokens
	proxy    *pgproxy.Proxy // in front of the cluster
	disk     *disk          // of a SQLite file, which can become full; nil without
	servers  []*server
	database string
}

// newCloud returns a cloud without a database and servers.
func newCloud(lab *local.Lab, o options, kind string) (*cloud, error) {
	w, err := newWorld(o.size)
	if err != nil {
		return nil, err
	}
	o.binary = lab.Program
	c := &cloud{Lab: lab, options: o, world: w, ledger: newLedger(), kind: kind}
	c.tokens, err = newTokens(lab.Folder)
	return c, err
}

// createDatabase makes the database. For PostgreSQL, it first starts the cluster
// and a proxy in front of it.
func (c *cloud) createDatabase(ctx context.Context) (err error) {
	if c.kind == postgres {
		if err := c.StartCluster(ctx, "shared_buffers=256MB", "max_wal_size=1GB"); err != nil {
			return err
		}
		if c.proxy, err = pgproxy.Start(c.Cluster.Address); err != nil {
			return err
		}
	}
	c.database, err = c.NewDatabase(ctx, c.kind, "cadastre")
	return err
}

// proxied returns the URL of the database through the proxy, if there is one.
func (c *cloud) proxied() string {
	if c.proxy == nil {
		return c.database
	}
	return strings.Replace(c.database, c.Cluster.Address, c.proxy.Address(), 1)
}

// start starts two servers on a database of PostgreSQL, or one on SQLite.
func (c *cloud) start(ctx context.Context, database string) error {
	for i := range map[string]int{sqlite: 1, postgres: 2}[c.kind] {
		if err := c.add(ctx, fmt.Sprintf("server-%d", i), database); err != nil {
			return err
		}
	}
	return nil
}

// add starts one more server.
func (c *cloud) add(ctx context.Context, name, database string) error {
	s, err := c.newServer(ctx, name, database, c.tokens.file)
	if err == nil {
		c.servers = append(c.servers, s)
	}
	return err
}

// newServer starts a server with the default limits, and with the limit of
// memory if there is one.
func (c *cloud) newServer(ctx context.Context, name, database, tokens string) (*server, error) {
	s := &server{}
	setup := local.Setup{
		Program: c.binary, Folder: c.Folder, Name: c.kind + "-" + name, Database: database, Tokens: tokens,
		Args: append([]string{"--profile", "locked"}, c.flags...),
	}
	var err error
	if c.memory > 0 {
		s.within, err = newContainer(fmt.Sprintf("cadastre-chaos-%d-%s-%s", os.Getpid(), c.kind, name), c.memory)
	}
	if errors.Is(err, errNoContainer) { // limit the memory as the server itself would in a container of that size
		c.report.skip("control groups: %v", err)
		setup.Env = append(setup.Env, fmt.Sprint("GOMEMLIMIT=", c.memory*3/4))
	} else if err != nil {
		return nil, err
	}
	if s.within != nil {
		setup.Before = s.within.before()
	}
	if c.disk != nil {
		setup.Before = append(setup.Before, "nsenter", "--target", c.disk.holder(), "--mount", "--")
	}
	if s.Server, err = local.StartServer(ctx, setup); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the server, and its control group with it.
func (s *server) Stop() error {
	var err error
	if s.Server != nil && s.Process != nil {
		err = s.Process.Stop()
	}
	if s.within != nil {
		err = errors.Join(err, s.within.remove())
		s.within = nil
	}
	return err
}

// startAgain restarts the servers that have ended and returns their number.
func (c *cloud) startAgain(ctx context.Context) (ended int, err error) {
	for _, s := range c.servers {
		select {
		case <-s.Ended():
			ended++
			err = errors.Join(err, s.Start(ctx))
		default:
		}
	}
	return ended, err
}

// hosts returns the addresses of the servers.
func (c *cloud) hosts() []string {
	return lists.Map(c.servers, func(s *server) string { return s.Host })
}

// stopServers ends the servers.
func (c *cloud) stopServers() error {
	var err error
	for _, s := range c.servers {
		err = errors.Join(err, s.Stop())
	}
	c.servers = nil
	return err
}

// stop ends the servers, the proxy and the disk.
func (c *cloud) stop() error {
	err := c.stopServers()
	if c.proxy != nil {
		c.proxy.Close()
	}
	if c.disk != nil {
		err = errors.Join(err, c.disk.Stop())
	}
	return err
}

// fill writes the world through one more server, which it then ends.
func (c *cloud) fill(ctx context.Context) (err error) {
	s, err := c.newServer(ctx, "operator", c.database, c.tokens.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	operator := local.NewClient(s.Host, local.Bearing(c.tokens.admin), operatorAddress, fillers, 2*time.Minute)
	defer operator.Close()
	return c.world.fill(ctx, operator)
}

// settle waits until no server works on a request, but not longer than atMost.
func (c *cloud) settle(ctx context.Context, atMost time.Duration) {
	for began := time.Now(); time.Since(began) < atMost && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		busy := 0.0
		for _, s := range c.servers {
			probe := local.NewClient(s.Host, local.Bearing(c.tokens.admin), operatorAddress, 1, requestTime)
			all, _ := probe.Metrics(ctx)
			probe.Close()
			for name, value := range all {
				if strings.HasPrefix(name, "cadastre_") && strings.HasSuffix(name, "_in_use") {
					busy += value
				}
			}
		}
		if busy == 0 {
			return
		}
	}
}

// errNoContainer means that the program cannot limit the memory of a process on
// this machine, because the user may not make a control group.
var errNoContainer = errors.New("this user may not create a control group with a memory limit")

// container is a control group of one server. The system kills a process that
// exceeds the memory limit. Versions 1 and 2 of control groups have different
// file names.
type container struct{ folder string }

// newContainer makes a control group with a limit of memory in bytes.
func newContainer(name string, bytes int64) (*container, error) {
	const root = "/sys/fs/cgroup"
	c, file := &container{filepath.Join(root, "memory", name)}, "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		// This fails if memory is already enabled.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
		c, file = &container{filepath.Join(root, name)}, "memory.max"
	}
	if err := os.Mkdir(c.folder, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoContainer, err)
	}
	if err := os.WriteFile(filepath.Join(c.folder, file), fmt.Append(nil, bytes), 0); err != nil {
		return nil, errors.Join(errNoContainer, err, c.remove())
	}
	return c, nil
}

// before returns a command that runs another one in the container.
func (c *container) before() []string {
	return []string{"/bin/sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(c.folder, "cgroup.procs")}
}

// remove removes the container after its processes have ended. It retries,
// because the system may notice their end a moment later.
func (c *container) remove() (err error) {
	for range 50 {
		if err = os.Remove(c.folder); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
