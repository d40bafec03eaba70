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

// privateMode is the mode of the files of a SQLite database: they hold what is
// private in the API, so nobody but the owner reads them.
const privateMode fs.FileMode = 0o600

// createPrivate creates an empty database file for its owner alone, unless there
// is one. SQLite gives the files beside it the same mode.
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

// sqliteFile is the file of a SQLite database, and its log, as they were opened. A
// server whose file is removed or replaced goes on with one that nobody finds
// again.
type sqliteFile struct {
	path   string
	opened fs.FileInfo
	mu     sync.Mutex
	log    fs.FileInfo // nil before keepLog
}

// identify returns the file at a path.
func identify(path string) (*sqliteFile, error) {
	opened, err := os.Stat(path)
	return &sqliteFile{path: path, opened: opened}, err
}

// check returns errVanished unless the files at the paths are those that were
// opened. That takes two microseconds.
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

// keepLog has check look at the log, too, which is there from now on.
func (f *sqliteFile) keepLog() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log, err = os.Stat(f.path + "-wal")
	return err
}

// sqliteConnector makes connections to a SQLite file, and to no other one that is
// there in its place.
type sqliteConnector struct {
	opens driver.Driver
	name  string
	file  *sqliteFile
}

var _ driver.Connector = (*sqliteConnector)(nil)

// Connect makes a connection. It opens nothing that stands in the place of the
// file: the last connection to that would take the log beside it along, which is
// the file's, when it is closed. So one that was opened while the file went stays
// open.
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

// Driver returns the driver of SQLite.
func (c *sqliteConnector) Driver() driver.Driver { return c.opens }

// closeToOthers takes the permissions of the files of a SQLite database from
// everybody but the owner. Its error is about files that belong to another user,
// of which it is for an operator to decide.
func (d *Database) closeToOthers() error {
	if d.dialectName != dialect.SQLite {
		return nil
	}
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		file := d.path + suffix
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm()&^privateMode == 0 {
			continue // not there, or private
		}
		if err := os.Chmod(file, info.Mode().Perm()&privateMode); err != nil {
			errs = append(errs, fmt.Errorf("others may open it: %w", err))
		}
	}
	return errors.Join(errs...)
}
