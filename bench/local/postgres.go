package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	_ "github.com/lib/pq" // registers the driver "postgres"

	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// Cluster is a PostgreSQL server for this program alone.
type Cluster struct {
	*Process
	Version string
	Address string // host and port
	folder  string
	as      *syscall.Credential
	command []string
}

// startCluster starts a PostgreSQL server in a folder below the given one. It
// takes settings such as "shared_buffers=512MB". All others keep their
// defaults, so a commit is durable on disk.
func startCluster(ctx context.Context, folder string, settings ...string) (*Cluster, error) {
	programs, err := pgserver.Programs()
	if errors.Is(err, pgserver.ErrNone) {
		return nil, fmt.Errorf("%w, or do without: -db sqlite", err)
	}
	if err != nil {
		return nil, err
	}
	folder = filepath.Join(folder, "postgres")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	as, err := pgserver.User(folder)
	if err != nil {
		return nil, err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "--pgdata",
		filepath.Join(folder, "data"), "--username", "cadastre",
		"--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = folder, &syscall.SysProcAttr{Credential: as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	c := &Cluster{folder: folder, as: as}
	if err := Addresses(&c.Address); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(c.Address)
	c.command = []string{filepath.Join(programs, "postgres"), "-D", filepath.Join(folder, "data"), "-p", port,
		"-k", folder, "-c", "listen_addresses=127.0.0.1"}
	for _, setting := range settings {
		c.command = append(c.command, "-c", setting)
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	if c.Version, err = Text(ctx, c.URL("postgres"),
		"SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)"); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Start starts the cluster, also after it ended, always at the same port.
func (c *Cluster) Start(ctx context.Context) error {
	p, err := Start(filepath.Join(c.folder, "log"), "INT", c.as, os.Environ(), c.command...)
	if err != nil {
		return err
	}
	c.Process = p
	if err := p.Await(func() error { return Run(ctx, c.URL("postgres"), "SELECT 1") }); err != nil {
		return errors.Join(fmt.Errorf("start PostgreSQL: %w", err), c.Stop())
	}
	return nil
}

// URL returns the URL of a database of the cluster.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://cadastre@%s/%s?sslmode=disable", c.Address, database)
}

// Settle vacuums and checkpoints a database, so that PostgreSQL does not do so
// during a measurement.
func (c *Cluster) Settle(ctx context.Context, database string) error {
	return Run(ctx, c.URL(database), "VACUUM (ANALYZE)", "CHECKPOINT")
}

// Run runs statements in a database of PostgreSQL, one after the other.
func Run(ctx context.Context, url string, statements ...string) error {
	db, err := sql.Open("postgres", url)
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

// Text returns the one value that a query of a database of PostgreSQL returns.
func Text(ctx context.Context, url, query string, args ...any) (text string, err error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, query, args...).Scan(&text)
	return text, err
}
