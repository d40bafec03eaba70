//go:build unix

package wholefile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and group of the file that it replaces.
func keepOwner(made *os.File, old fs.FileInfo) error {
	of := old.Sys().(*syscall.Stat_t)
	return made.Chown(int(of.Uid), int(of.Gid))
}
