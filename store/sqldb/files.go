package sqldb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

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
