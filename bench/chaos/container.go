package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// errNoContainer means that the program cannot limit the memory of a process on
// this machine, because the user may not make a control group.
var errNoContainer = errors.New("this user may not create a control group with a memory limit")

// container is a control group of one server. The system kills a process that
// exceeds the memory limit. Versions 1 and 2 of control groups have different
// file names.
type container struct{ folder string }

// newContainer makes a control group with a limit of memory in bytes.
func newContainer(name string, bytes int64) (*container, error) {
	const root = "/sys/fs/cgroup"
	c, file := &container{filepath.Join(root, "memory", name)}, "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		// This fails if memory is already enabled.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
		c, file = &container{filepath.Join(root, name)}, "memory.max"
	}
	if err := os.Mkdir(c.folder, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoContainer, err)
	}
	if err := os.WriteFile(filepath.Join(c.folder, file), fmt.Append(nil, bytes), 0); err != nil {
		return nil, errors.Join(errNoContainer, err, c.remove())
	}
	return c, nil
}

// before returns a command that runs another one in the container.
func (c *container) before() []string {
	return []string{"/bin/sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(c.folder, "cgroup.procs")}
}

// remove removes the container after its processes have ended. It retries,
// because the system may notice their end a moment later.
func (c *container) remove() (err error) {
	for range 50 {
		if err = os.Remove(c.folder); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
