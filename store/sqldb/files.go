package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"entgo.io/ent/dialect"
)

// privateMode is the mode of the files of a SQLite database. They contain
// private data of the API, so only the owner may read them.
const privateMode fs.FileMode = 0o600

// createPrivate creates an empty database file with privateMode, unless it
// exists. SQLite gives its WAL and shared-memory files the same mode.
func createPrivate(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// sqliteFile identifies the database file and the WAL that were opened. If they
// are removed or replaced, SQLite keeps using the old files, and later writes
// are lost.
type sqliteFile struct {
	path   string
	opened fs.FileInfo
	mu     sync.Mutex
	log    fs.FileInfo // nil before keepLog
}

// identify returns the sqliteFile for the file that is at a path now.
func identify(path string) (*sqliteFile, error) {
	opened, err := os.Stat(path)
	return &sqliteFile{path: path, opened: opened}, err
}

// check returns errVanished unless the files at the paths are the opened ones.
// It takes about two microseconds. Without a file, on PostgreSQL, it returns nil.
func (f *sqliteFile) check() error {
	if f == nil {
		return nil
	}
	if now, err := os.Stat(f.path); err != nil || !os.SameFile(now, f.opened) {
		return errVanished
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.log == nil {
		return nil
	}
	if now, err := os.Stat(f.path + "-wal"); err != nil || !os.SameFile(now, f.log) {
		return errVanished
	}
	return nil
}

// keepLog makes check cover the WAL, too, which exists from now on.
func (f *sqliteFile) keepLog() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log, err = os.Stat(f.path + "-wal")
	return err
}

// sqliteConnector opens connections to one SQLite file, and refuses a file that
// replaced it.
type sqliteConnector struct {
	opens driver.Driver
	name  string
	file  *sqliteFile
}

var _ driver.Connector = (*sqliteConnector)(nil)

// Connect opens a connection. It never opens a file that replaced the original:
// closing the last connection to the replacement would delete the WAL of the
// original. If the file vanishes during the open, Connect leaves the connection
// open for the same reason.
func (c *sqliteConnector) Connect(context.Context) (driver.Conn, error) {
	if err := c.file.check(); err != nil {
		return nil, err
	}
	conn, err := c.opens.Open(c.name)
	if vanished := c.file.check(); vanished != nil {
		return nil, vanished
	}
	return conn, err
}

// Driver returns the SQLite driver.
func (c *sqliteConnector) Driver() driver.Driver { return c.opens }

// closeToOthers removes the permissions of group and others from the files of a
// SQLite database. It fails for files of another user. That is for an operator
// to decide.
func (d *Database) closeToOthers() error {
	if d.dialectName != dialect.SQLite {
		return nil
	}
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		file := d.path + suffix
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm()&^privateMode == 0 {
			continue // missing or private
		}
		if err := os.Chmod(file, info.Mode().Perm()&privateMode); err != nil {
			errs = append(errs, fmt.Errorf("remove the permissions of other users: %w", err))
		}
	}
	return errors.Join(errs...)
}
