// Package wholefile replaces files in one step.
package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Alone calls a function that reads and replaces a file, and excludes other
// programs that use Alone. Meanwhile the folder of the file also has a lock
// file.
func Alone(path string, edit func() error) error {
	lock := flock.New(path + ".lock")
	for isOurs := false; !isOurs; {
		if err := lock.Lock(); err != nil {
			return fmt.Errorf("lock %s: %w", path, err)
		}
		locked, lockedErr := lock.Stat()
		found, foundErr := os.Stat(lock.Path())
		isOurs = lockedErr == nil && foundErr == nil && os.SameFile(locked, found)
		if !isOurs { // the previous holder has removed the lock file
			_ = lock.Close()
		}
	}
	err := edit()
	_ = os.Remove(lock.Path()) // before others lock it
	return errors.Join(err, lock.Close())
}

// Replace writes a file, so that a program that reads it meanwhile finds the old
// or the new text. The file keeps its owner and group, and gets the mode. If
// Replace fails, the old file stays.
func Replace(path string, text []byte, mode fs.FileMode) error {
	made, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = made.Write(text)
	if old, missing := os.Stat(path); missing == nil {
		err = errors.Join(err, keepOwner(made, old))
	}
	if err = errors.Join(err, made.Chmod(mode), made.Sync(), made.Close()); err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(made.Name()))
	}
	return nil
}
