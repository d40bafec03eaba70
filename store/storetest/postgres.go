package storetest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// errNoPostgres means that neither CADASTRE_TEST_POSTGRES names a server nor
// PostgreSQL's programs are on the machine.
var errNoPostgres = errors.New("no PostgreSQL found: install its server (Debian: apt-get install postgresql; macOS: brew install postgresql) or set CADASTRE_TEST_POSTGRES to the URL of one")

// cluster is a PostgreSQL server for a test process, or for one test.
type cluster struct {
	url   string
	stop  func()
	crash func() error // crashes the server and restarts it

	folder, data, programs string
	port                   int
	as                     *syscall.SysProcAttr

	opening   sync.Once
	admin     *sql.DB // of the default database
	migrating sync.Once
	template  string // the migrated database to copy
	like      string // the clause of CREATE DATABASE that copies it
	err       error
}

// startCluster returns the server of CADASTRE_TEST_POSTGRES. Without the
// variable it starts one on new data.
func startCluster(t testing.TB) (*cluster, error) {
	if url := os.Getenv("CADASTRE_TEST_POSTGRES"); url != "" {
		return &cluster{url: url, stop: func() {}}, nil
	}
	c, err := newCluster()
	if err != nil {
		return nil, err
	}
	if err := c.serve(t); err != nil {
		return nil, err
	}
	return c, nil
}

// newCluster makes new data, and starts no server yet. The locale does not sort
// by code point, so that tests detect a missing collation.
func newCluster() (*cluster, error) {
	programs, err := pgserver.Programs()
	if errors.Is(err, pgserver.ErrNone) {
		return nil, errNoPostgres
	}
	if err != nil {
		return nil, err
	}
	c, err := inNewFolder(programs)
	if err != nil {
		return nil, err
	}
	return c, c.program(filepath.Join(programs, "initdb"), "--pgdata", c.data, "--username", "cadastre",
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8",
		"--locale-provider", "icu", "--icu-locale", "en-US", "--no-sync")
}

// inNewFolder returns a cluster without data.
func inNewFolder(programs string) (*cluster, error) {
	folder, err := os.MkdirTemp("", "cadastre-postgres-")
	if err != nil {
		return nil, err
	}
	account, err := pgserver.User(folder)
	if err != nil {
		return nil, err
	}
	return &cluster{
		folder: folder, data: filepath.Join(folder, "data"), programs: programs,
		as: &syscall.SysProcAttr{Credential: account},
	}, nil
}

// program runs a program as the user of the server.
func (c *cluster) program(path string, args ...string) error {
	command := exec.Command(path, args...)
	command.Dir, command.SysProcAttr = c.folder, c.as
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", path, args, err, out)
	}
	return nil
}

// control runs pg_ctl.
func (c *cluster) control(args ...string) error {
	return c.program(filepath.Join(c.programs, "pg_ctl"), append([]string{"-D", c.data, "-w", "-s"}, args...)...)
}

// serve starts a server on the data. When the server ends, the cluster's folder
// is deleted.
func (c *cluster) serve(t testing.TB) error {
	port, err := pgserver.FreePort()
	if err != nil {
		return err
	}
	// The shell stops the server when this process closes the shell's input, or
	// ends in any way.
	const guard = `"$@" & server=$!; read -r _; kill -INT $server; wait $server; rm -rf "$0"`
	server := exec.Command("/bin/sh", "-c", guard, c.folder,
		filepath.Join(c.programs, "postgres"), "-D", c.data, "-p", strconv.Itoa(port), "-k", c.folder,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "max_connections=300", "-c", "shared_buffers=64MB", "-c", "log_min_messages=fatal")
	server.Dir, server.SysProcAttr = c.folder, c.as
	var output bytes.Buffer
	server.Stdout, server.Stderr = &output, &output
	input, err := server.StdinPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	crashed := false
	c.port, c.url = port, fmt.Sprintf("postgres://cadastre@127.0.0.1:%d/postgres?sslmode=disable", port)
	c.crash = func() error {
		if err := c.control("stop", "-m", "immediate"); err != nil {
			return err
		}
		crashed = true
		return c.control("start", "-l", filepath.Join(c.folder, "log"), "-o", fmt.Sprintf(
			"-p %d -k %s -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=300", port, c.folder))
	}
	c.stop = func() {
		if crashed {
			_ = c.control("stop", "-m", "immediate")
		}
		_ = input.Close()
		_ = server.Wait()
		_ = os.RemoveAll(c.folder)
	}
	if err := c.await(patience.Of(t, 30*time.Second)); err != nil {
		c.stop()
		return fmt.Errorf("%w\n%s", err, &output)
	}
	return nil
}

// signalAll sends a signal to the server of a data folder and its child
// processes, until there are no new ones.
func signalAll(data string, s syscall.Signal) error {
	others, err := pgserver.Processes(data)
	if err != nil {
		return err
	}
	server := others[0]
	sent := map[int]bool{}
	for len(others) > 0 {
		for _, id := range others {
			if err := syscall.Kill(id, s); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
			sent[id] = true
		}
		started, err := pgserver.Children(server)
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(started, func(id int) bool { return sent[id] })
	}
	return nil
}

// await waits until the server accepts connections, at most for limit.
func (c *cluster) await(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		err := c.run("SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the PostgreSQL server did not become ready: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// withSearchPath returns a database URL with a search_path.
func withSearchPath(of, schema string) string {
	address, err := url.Parse(of)
	if err != nil {
		return of
	}
	settings := address.Query()
	settings.Set("search_path", schema)
	address.RawQuery = settings.Encode()
	return address.String()
}

// withDatabase returns the URL of another database on the same server.
func withDatabase(of, name string) string {
	address, err := url.Parse(of)
	if err != nil {
		return of
	}
	address.Path = "/" + name
	return address.String()
}
