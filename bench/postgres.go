package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	_ "github.com/lib/pq" // registers the driver "postgres"
)

// errNoPostgres means that the programs of PostgreSQL are not on the machine.
var errNoPostgres = errors.New("no PostgreSQL found: install its server (Debian: apt-get install postgresql; macOS: brew install postgresql), or say -db sqlite")

// cluster is a PostgreSQL server that belongs to the benchmark.
type cluster struct {
	*process
	port    int
	version string
}

// startCluster starts a PostgreSQL server in a folder below the given one, with
// enough memory and otherwise as it comes: what is committed is on the disk.
func startCluster(ctx context.Context, folder string) (*cluster, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	folder = filepath.Join(folder, "postgres")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	as, err := unprivileged(folder)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "--pgdata", data, "--username", "cadastre",
		"--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = folder, &syscall.SysProcAttr{Credential: as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := startProcess(filepath.Join(folder, "log"), "INT", as, os.Environ(),
		filepath.Join(programs, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", folder,
		"-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=512MB", "-c", "max_wal_size=2GB")
	if err != nil {
		return nil, err
	}
	c := &cluster{process: p, port: port}
	if err := p.await(startTime, func() error { return c.run(ctx, "postgres", "SELECT 1") }); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), c.stop())
	}
	if c.version, err = c.text(ctx, "postgres", "SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)"); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// url returns the URL of a database of the cluster.
func (c *cluster) url(database string) string {
	return fmt.Sprintf("postgres://cadastre@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

func (c *cluster) createDatabase(ctx context.Context, name string) error {
	return c.run(ctx, "postgres", "CREATE DATABASE "+name)
}

// settle does what a database does by itself some time after it was filled, so
// that it does not do so while something is timed.
func (c *cluster) settle(ctx context.Context, database string) error {
	return c.run(ctx, database, "VACUUM (ANALYZE)", "CHECKPOINT")
}

// run runs statements in a database, one after the other.
func (c *cluster) run(ctx context.Context, database string, statements ...string) error {
	db, err := sql.Open("postgres", c.url(database))
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), db.Close())
		}
	}
	return db.Close()
}

// text returns the one value that a query of a database returns, as text.
func (c *cluster) text(ctx context.Context, database, query string, args ...any) (text string, err error) {
	db, err := sql.Open("postgres", c.url(database))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, query, args...).Scan(&text)
	return text, err
}

// postgresPrograms returns the folder with initdb and postgres: on the path, or
// where Debian keeps them, the newest first.
func postgresPrograms() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(initdb); err == nil {
			return filepath.Dir(resolved), nil
		}
	}
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(folder string) int {
		number, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		return number
	}
	slices.SortFunc(folders, func(a, b string) int { return version(b) - version(a) })
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	return "", errNoPostgres
}

// unprivileged returns the user to run PostgreSQL as, which refuses to run as
// root: postgres or nobody, who gets the folder, when the benchmark is root's, and
// otherwise nil, which is the user of the benchmark.
func unprivileged(folder string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		if err := os.Chown(folder, int(uid), int(gid)); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}
