package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// errNoDisk means that the program cannot make a small file system on this
// machine, because the user may not mount one in a mount namespace.
var errNoDisk = errors.New("this user may not mount a file system in a separate namespace")

// disk is a small file system that only processes in its namespace see. It
// disappears when the process stops. Its data is in a file, not in memory,
// because servers have little memory.
type disk struct {
	*local.Process // holds the namespace
	folder         string
}

// newDisk makes a file system of a size in bytes.
func newDisk(folder string, bytes int64) (*disk, error) {
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	for _, program := range []string{"unshare", "nsenter", "mount", "mkfs.ext4"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoDisk, err)
		}
	}
	script := fmt.Sprintf("truncate -s %d %[2]q.img && mkfs.ext4 -q -m 0 %[2]q.img && mount -o loop %[2]q.img %[2]q && rm %[2]q.img && chmod 1777 %[2]q && touch %[2]q/mounted && exec sleep 86400", bytes, folder)
	p, err := local.Start(folder+".log", "KILL", nil, os.Environ(), "unshare", "--mount",
		"--propagation", "private", "sh", "-c", script)
	if err != nil {
		return nil, err
	}
	d := &disk{Process: p, folder: folder}
	if err := p.Await(func() error { _, err := os.Stat(d.path("mounted")); return err }); err != nil {
		return nil, errors.Join(errNoDisk, err, p.Stop())
	}
	return d, nil
}

// holder returns the id of the process whose namespace has the file system.
func (d *disk) holder() string { return strconv.Itoa(d.PID) }

// path returns where this process finds a file of the file system.
func (d *disk) path(name string) string {
	return filepath.Join("/proc", d.holder(), "root", d.folder, name)
}

// fill uses all remaining space. empty releases it.
func (d *disk) fill() error {
	file, err := os.Create(d.path("filler"))
	if err != nil {
		return err
	}
	zeros, err := os.Open("/dev/zero")
	if err == nil {
		_, err = io.Copy(file, zeros)
		err = errors.Join(err, zeros.Close())
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, file.Close())
}

// copyOut copies a SQLite database from the file system, which SQLite itself cannot
// read from outside its namespace.
func (d *disk) copyOut(name, to string) error {
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(d.path(name + suffix))
		if suffix != "" && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err := errors.Join(err, os.WriteFile(to+suffix, content, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) empty() error { return os.Remove(d.path("filler")) }
