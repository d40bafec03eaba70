package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// errNoContainer means that no process can be given less memory on this machine
// than there is: that takes the right to make a control group.
var errNoContainer = errors.New("this user may not make a control group with a limit of memory")

// container is a control group of one server: the system ends what takes more
// memory than it may. The second version of control groups has other
// names of files.
type container struct{ folder string }

// newContainer makes a control group with a limit of memory in bytes.
func newContainer(name string, bytes int64) (*container, error) {
	const root = "/sys/fs/cgroup"
	c, limits := &container{}, map[string]string{}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0) // is refused where it is so already
		c.folder = filepath.Join(root, name)
		limits["memory.max"] = strconv.FormatInt(bytes, 10)
	} else {
		c.folder = filepath.Join(root, "memory", name)
		limits["memory.limit_in_bytes"] = strconv.FormatInt(bytes, 10)
	}
	if err := os.Mkdir(c.folder, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoContainer, err)
	}
	for file, limit := range limits {
		if err := os.WriteFile(filepath.Join(c.folder, file), []byte(limit), 0); err != nil {
			return nil, errors.Join(errNoContainer, err, c.remove())
		}
	}
	return c, nil
}

// wrap returns a command that runs another one in the container.
func (c *container) wrap(program string, args []string) (string, []string) {
	return "/bin/sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(c.folder, "cgroup.procs"), program}, args...)
}

// remove removes the container, whose processes have ended: the system may take a
// moment to know.
func (c *container) remove() (err error) {
	for range 50 {
		if err = os.Remove(c.folder); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
