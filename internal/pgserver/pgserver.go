// Package pgserver finds the programs, the user and the port to run a PostgreSQL
// server on this machine, and its processes, for tests and benchmarks.
package pgserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNone means that PostgreSQL is not installed.
var ErrNone = errors.New("no PostgreSQL found: install its server (Debian: apt-get install postgresql; macOS: brew install postgresql)")

// Programs returns the folder with initdb and postgres: the one on the path,
// otherwise the newest of Debian's folders.
func Programs() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(initdb); err == nil {
			return filepath.Dir(resolved), nil
		}
	}
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(folder string) int {
		number, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		return number
	}
	slices.SortFunc(folders, func(a, b string) int { return version(b) - version(a) })
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	return "", ErrNone
}

// Processes returns the process ids of the server of a data folder and of its
// child processes, the server first.
func Processes(data string) ([]int, error) {
	lines, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(lines), "\n")
	server, err := strconv.Atoi(first)
	if err != nil {
		return nil, err
	}
	children, err := Children(server)
	return append([]int{server}, children...), err
}

// Children returns the ids of the child processes of a process. It works only
// on Linux.
func Children(pid int) (children []int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for field := range strings.FieldsSeq(string(text)) {
		child, invalid := strconv.Atoi(field)
		children, err = append(children, child), errors.Join(err, invalid)
	}
	return children, err
}

// User returns the user to run PostgreSQL as, because PostgreSQL refuses to run
// as root. If this program runs as root, it returns another user, and
// makes that user the owner of the folder. Otherwise it returns nil: PostgreSQL
// runs as the current user.
func User(folder string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		if err := os.Chown(folder, int(uid), int(gid)); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// FreePort chooses from [firstPort, firstPort+ports). These are below the
// ephemeral ports, so that no outgoing connection can take a port between its
// choice and its use.
const (
	firstPort = 15_000
	ports     = 17_000
)

// FreePort returns an unused port of the loopback address.
func FreePort() (port int, err error) {
	for range 100 {
		port = firstPort + rand.IntN(ports)
		listener, failed := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if failed == nil {
			return port, listener.Close()
		}
		err = failed
	}
	return 0, err
}
