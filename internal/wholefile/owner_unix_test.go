//go:build unix

package wholefile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/wholefile"
)

func TestReplaceKeepsTheOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 4711, 4712); err != nil {
		t.Skip("only the superuser may replace files of others")
	}
	if err := wholefile.Replace(path, []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if of := info.Sys().(*syscall.Stat_t); of.Uid != 4711 || of.Gid != 4712 || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is of %d:%d, %v", of.Uid, of.Gid, info.Mode())
	}
}
