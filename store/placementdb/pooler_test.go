package placementdb_test

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pgserver"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// pooled starts PgBouncer in transaction mode before a database, and returns the
// URL of the database through it.
func pooled(t *testing.T, database string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("needs pgbouncer")
	}
	of, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	port, err := pgserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	for name, text := range map[string]string{
		"users.txt": fmt.Sprintf("%q \"\"\n", of.User.Username()),
		"pgbouncer.ini": fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s/users.txt
pool_mode = transaction
default_pool_size = 4
ignore_startup_parameters = statement_timeout,jit,default_transaction_isolation
`, of.Hostname(), of.Port(), port, folder),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, filepath.Join(folder, "pgbouncer.ini"))
	if user, err := pgserver.User(folder); err == nil && user != nil { // it refuses to run as root
		command.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	}
	command.Stderr = io.Discard
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	of.Host = fmt.Sprintf("127.0.0.1:%d", port)
	storetest.Within(t, 20*time.Second, "PgBouncer answers", func() bool {
		return storetest.Database(t, of.String()).Ping() == nil
	})
	return of.String()
}

// Through a pooler in transaction mode two servers see each other's commits by
// polling, and by notifications past it.
func TestServersBehindAPoolerFollowEachOther(t *testing.T) {
	t.Parallel()
	direct := storetest.Postgres(t)
	through := pooled(t, direct)
	for _, c := range []struct {
		name, listen string
		listening    bool
	}{{"polling", "", false}, {"listening", direct, true}} {
		open := func() *store.Store {
			s, err := store.Open(t.Context(),
				store.Options{URL: through, ListenURL: c.listen, Unprepared: true, Connections: 8})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		one, other := open(), open()
		uuid := storetest.UUID(len(c.name))
		storetest.RoomyProvider(t, one, uuid)
		storetest.Within(t, 10*time.Second, "the other server has the provider", func() bool {
			world, err := other.World(storetest.AsAdmin())
			if err != nil {
				return false
			}
			_, ok := world.Provider(uuid)
			return ok
		})
		if c.listening {
			storetest.Within(t, 10*time.Second, "the server hears itself", one.Listening)
		} else if one.Listening() || other.Listening() {
			t.Errorf("%s: a server takes a pooled connection to be listening", c.name)
		}
		if err := other.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
