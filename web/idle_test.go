//go:build unix

package web_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/web"
)

const (
	manyConnections = 10_000
	fewConnections  = 2_000
	// otherFiles is the number of open files of a process besides connections.
	otherFiles = 200
)

// idleClients is the environment variable that makes TestHoldIdleConnections
// the client that holds connections to a server: "address number".
const idleClients = "CADASTRE_TEST_IDLE_CLIENTS"

// TestTenThousandIdleConnections holds idle connections that have had one
// request each. The clients are in a separate process, and their number depends
// on the limit of open files. The server answers other clients, closes no
// connection, and no goroutine remains. The test runs alone, before the
// parallel tests continue.
func TestTenThousandIdleConnections(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	// The runtime has already raised the soft limit to the hard one.
	number := min(manyConnections, int(min(files.Cur, 1<<20))-otherFiles)
	if number < fewConnections {
		t.Skipf("a process may open %d files only: ulimit -n %d is needed for %d connections", files.Cur,
			manyConnections+otherFiles, manyConnections)
	}
	before := goleak.IgnoreCurrent()
	t.Run("server", func(t *testing.T) {
		s := startServing(t, nil, web.ServeOptions{IdleTime: patience.Of(t, 5*time.Minute)})
		began := time.Now()
		clients := startIdleClients(t, s, number)
		clients.await(t, "open")
		opened := time.Since(began)
		var slowest time.Duration
		for range 100 {
			began := time.Now()
			if got := s.query("{ namespaces(first: 10) { nodes { name } } }"); got.status != http.StatusOK ||
				got.code() != "" {
				t.Errorf("got %d %s", got.status, got.body)
			}
			slowest = max(slowest, time.Since(began))
		}
		if slowest > patience.Of(t, 5*time.Second) {
			t.Errorf("a request took %v", slowest)
		}
		clients.stop(t)
		t.Logf("%d connections opened in %v; the slowest of 100 queries took %v", number, opened, slowest)
	})
	leavesNothing(t, before)
}

// idleProcess is a process that runs TestHoldIdleConnections.
type idleProcess struct {
	command *exec.Cmd
	input   io.WriteCloser
	lines   *bufio.Scanner
}

// startIdleClients starts a process that holds a number of connections to a
// server. The process exits after some minutes.
func startIdleClients(t *testing.T, s *server, number int) *idleProcess {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-test.run", "^TestHoldIdleConnections$", "-test.timeout",
		patience.Of(t, 2*time.Minute).String())
	command.Env = append(os.Environ(),
		fmt.Sprintf("%s=%s %d", idleClients, strings.TrimPrefix(s.url, "http://"), number))
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return &idleProcess{command, input, bufio.NewScanner(output)}
}

// await reads the output of the process up to a line.
func (p *idleProcess) await(t *testing.T, want string) {
	t.Helper()
	var read []string
	for p.lines.Scan() {
		if p.lines.Text() == want {
			return
		}
		read = append(read, p.lines.Text())
	}
	t.Errorf("the clients did not print %q but\n%s", want, strings.Join(read, "\n"))
}

// stop makes the clients use their connections once more, and ends them.
func (p *idleProcess) stop(t *testing.T) {
	t.Helper()
	if err := p.input.Close(); err != nil {
		t.Error(err)
	}
	p.await(t, "all were kept")
	for p.lines.Scan() { // to the end, because Wait closes the output
		continue
	}
	if err := p.command.Wait(); err != nil {
		t.Error(err)
	}
}

// TestHoldIdleConnections is the client process. It opens the connections,
// prints a message, and sends a request over each of them when its input ends.
func TestHoldIdleConnections(t *testing.T) {
	asked := os.Getenv(idleClients)
	if asked == "" {
		t.Skip("TestTenThousandIdleConnections runs it in a process of its own")
	}
	var address string
	var number int
	if _, err := fmt.Sscan(asked, &address, &number); err != nil {
		t.Fatal(err)
	}
	connections := make([]net.Conn, number)
	each := func(do func(i int) error) error {
		const workers = 16
		var all sync.WaitGroup
		failed := make([]error, workers)
		for worker := range workers {
			all.Go(func() {
				for i := worker; i < number && failed[worker] == nil; i += workers {
					failed[worker] = do(i)
				}
			})
		}
		all.Wait()
		return errors.Join(failed...)
	}
	if err := each(func(i int) (err error) {
		if connections[i], err = net.Dial("tcp", address); err != nil {
			return err
		}
		return alive(t, connections[i])
	}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	if err := each(func(i int) error {
		return errors.Join(alive(t, connections[i]), connections[i].Close())
	}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("all were kept")
}

// alive sends a request over a connection and reads its answer.
func alive(t *testing.T, connection net.Conn) error {
	if err := connection.SetDeadline(time.Now().Add(patience.Of(t, 30*time.Second))); err != nil {
		return err
	}
	if _, err := io.WriteString(connection, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New(response.Status))
	}
	return errors.Join(err, response.Body.Close())
}
