package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// ErrNoPostgres means that neither CADASTRE_TEST_POSTGRES names a server nor
// PostgreSQL's programs are on the machine.
var ErrNoPostgres = errors.New("no PostgreSQL found: install its server (Debian: apt-get install postgresql; macOS: brew install postgresql) or set CADASTRE_TEST_POSTGRES to the URL of one")

// cluster is a PostgreSQL server for one test process.
type cluster struct {
	url   string
	stop  func()
	crash func() error // crashes the server and restarts it
	// signal sends a signal to all processes of the server.
	signal func(syscall.Signal) error

	folder, data, programs string
	port                   int
	as                     *syscall.SysProcAttr
	control                func(args ...string) error // runs pg_ctl

	migrating sync.Once
	template  string // the migrated database to copy
	like      string // the clause of CREATE DATABASE that copies it
	err       error
}

// startCluster returns the server of CADASTRE_TEST_POSTGRES. Without the
// variable it starts one in a new folder on a free loopback port. Its locale
// does not sort by code point, so that tests detect a missing collation.
func startCluster(t testing.TB) (*cluster, error) {
	if url := os.Getenv("CADASTRE_TEST_POSTGRES"); url != "" {
		return &cluster{url: url, stop: func() {}}, nil
	}
	programs, err := pgserver.Programs()
	if errors.Is(err, pgserver.ErrNone) {
		return nil, ErrNoPostgres
	}
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "cadastre-postgres-")
	if err != nil {
		return nil, err
	}
	account, err := pgserver.User(folder)
	if err != nil {
		return nil, err
	}
	as := &syscall.SysProcAttr{Credential: account}
	data := filepath.Join(folder, "data")
	initdb := exec.Command(filepath.Join(programs, "initdb"), "--pgdata", data, "--username", "cadastre",
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8",
		"--locale-provider", "icu", "--icu-locale", "en-US", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = folder, as
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return serve(t, programs, folder, data, as)
}

// serve starts a server on a data folder. Folder is deleted at its end.
func serve(t testing.TB, programs, folder, data string, as *syscall.SysProcAttr) (*cluster, error) {
	port, err := pgserver.FreePort()
	if err != nil {
		return nil, err
	}
	// The shell stops the server when this process closes the shell's input, or
	// ends in any way.
	const guard = `"$@" & server=$!; read -r _; kill -INT $server; wait $server; rm -rf "$0"`
	server := exec.Command("/bin/sh", "-c", guard, folder,
		filepath.Join(programs, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", folder,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "max_connections=300", "-c", "shared_buffers=64MB", "-c", "log_min_messages=fatal")
	server.Dir, server.SysProcAttr = folder, as
	var output bytes.Buffer
	server.Stdout, server.Stderr = &output, &output
	input, err := server.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	control := func(args ...string) error {
		command := exec.Command(filepath.Join(programs, "pg_ctl"), append([]string{"-D", data, "-w", "-s"}, args...)...)
		command.Dir, command.SysProcAttr = folder, as
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("pg_ctl %v: %w\n%s", args, err, out)
		}
		return nil
	}
	crashed := false
	c := &cluster{
		folder: folder, data: data, programs: programs, port: port, as: as, control: control,
		crash: func() error {
			if err := control("stop", "-m", "immediate"); err != nil {
				return err
			}
			crashed = true
			return control("start", "-l", filepath.Join(folder, "log"), "-o", fmt.Sprintf(
				"-p %d -k %s -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=300", port, folder))
		},
		signal: func(s syscall.Signal) error { return signalAll(data, s) },
		url:    fmt.Sprintf("postgres://cadastre@127.0.0.1:%d/postgres?sslmode=disable", port),
		stop: func() {
			if crashed {
				_ = control("stop", "-m", "immediate")
			}
			_ = input.Close()
			_ = server.Wait()
			_ = os.RemoveAll(folder)
		},
	}
	if err := awaitServer(filepath.Join(programs, "pg_isready"), port, patience.Of(t, 30*time.Second)); err != nil {
		c.stop()
		return nil, fmt.Errorf("%w\n%s", err, io.LimitReader(&output, 4096))
	}
	return c, nil
}

// signalAll sends a signal to the server of a data folder and its child
// processes, until there are no new ones.
func signalAll(data string, s syscall.Signal) error {
	lines, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(lines), "\n")
	server, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	sent := map[int]bool{}
	for others := []int{server}; len(others) > 0; {
		for _, id := range others {
			if err := syscall.Kill(id, s); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
			sent[id] = true
		}
		started, err := startedBy(server)
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(started, func(id int) bool { return sent[id] })
	}
	return nil
}

// startedBy returns the child processes of a process.
func startedBy(process int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var started []int
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		id, rest, _ := strings.Cut(string(text), " ")
		fields := strings.Fields(rest[strings.LastIndex(rest, ")")+1:]) // state, parent, ...
		if id, err := strconv.Atoi(id); err == nil && fields[1] == strconv.Itoa(process) {
			started = append(started, id)
		}
	}
	return started, nil
}

// awaitServer waits until the server accepts connections, at most for limit.
func awaitServer(ready string, port int, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		err := exec.Command(ready, "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-d", "postgres").Run()
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
