// Package wholefile replaces files in one step.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file, so that a program that reads it meanwhile finds the old
// or the new text. If it fails, the old file stays.
func Replace(path string, text []byte, mode fs.FileMode) error {
	made, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = made.Write(text)
	if err = errors.Join(err, made.Chmod(mode), made.Sync(), made.Close()); err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(made.Name()))
	}
	return nil
}
