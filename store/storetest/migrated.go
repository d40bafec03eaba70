package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/cadastre-dev/cadastre/store"
)

// leave opens a store on an empty database and closes it, which migrates the
// database.
func leave(url string) error {
	s, err := store.Open(context.Background(), store.Options{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}

// migratedSQLite returns the content of a migrated database file.
var migratedSQLite = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "cadastre-sqlite-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "cadastre.db")
	err = leave("sqlite://" + path)
	if _, logged := os.Stat(path + "-wal"); err == nil && logged == nil {
		err = errors.New("a store that was closed leaves a part of its database in the log")
	}
	file, reading := os.ReadFile(path)
	if err = errors.Join(err, reading, os.RemoveAll(folder)); err != nil {
		return nil, fmt.Errorf("make a database for tests: %w", err)
	}
	return file, nil
})

// likeMigrated returns the clause that makes CREATE DATABASE copy a migrated
// database, which the first call creates. From PostgreSQL 15 on it requests
// FILE_COPY, which takes less than half of the time of writing all pages to the
// WAL.
func (c *cluster) likeMigrated() (string, error) {
	c.migrating.Do(func() {
		name := randomName("template_")
		if c.err = c.run("CREATE DATABASE " + name); c.err != nil {
			return
		}
		c.template, c.like = name, "TEMPLATE "+name
		if c.err = leave(withDatabase(c.url, name)); c.err != nil {
			return
		}
		var version int // the major one
		query := "SELECT current_setting('server_version_num')::int / 10000"
		if c.err = c.database().QueryRow(query).Scan(&version); version >= 15 {
			c.like += " STRATEGY FILE_COPY"
		}
	})
	return c.like, c.err
}

// end drops the template database, and stops the server if the tests started it.
func (c *cluster) end() {
	if c.template != "" {
		_ = c.run("DROP DATABASE " + c.template + " WITH (FORCE)")
	}
	_ = c.database().Close()
	c.stop()
}

// database returns the server's default database. Its connections stay open,
// because a new one takes the server as long as a statement.
func (c *cluster) database() *sql.DB {
	c.opening.Do(func() { c.admin, _ = sql.Open("postgres", c.url) }) // Open fails only for unknown drivers
	return c.admin
}

// run runs a statement in the server's default database.
func (c *cluster) run(statement string) error {
	_, err := c.database().Exec(statement)
	return err
}
