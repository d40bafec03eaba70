package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// output collects the output of the program. Tests may read it at any time.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// serving is a server, in this process or in a separate one.
type serving struct {
	address        string
	stdout, stderr *output
	ended          chan struct{} // closed when the server has ended
	err            error         // the reason, once it has ended
}

func newServing() *serving {
	return &serving{stdout: &output{}, stderr: &output{}, ended: make(chan struct{})}
}

// start calls run, which returns when the server has ended, and waits until the
// server is ready.
func (s *serving) start(t *testing.T, run func() error) {
	t.Helper()
	go func() {
		s.err = run()
		close(s.ended)
	}()
	s.address = s.logged(t, "serving")
}

// logged waits for the log line with this message, and returns its address.
func (s *serving) logged(t *testing.T, message string) string {
	t.Helper()
	pattern, found := regexp.MustCompile(`msg=`+message+` address=(\S+)`), []string(nil)
	logged := patience.Until(t, time.Minute, func() bool {
		select {
		case <-s.ended:
			t.Fatalf("the server ended: %v\n%s", s.err, s.stderr)
		default:
		}
		found = pattern.FindStringSubmatch(s.stderr.String())
		return found != nil
	})
	if !logged {
		t.Fatalf("the log has no line %s:\n%s", message, s.stderr)
	}
	return "http://" + found[1]
}

// boot runs `cadastre serve` in this process, on a free port, until the test
// ends or stop is called.
func boot(t *testing.T, args ...string) (s *serving, stop func()) {
	t.Helper()
	s = newServing()
	ctx, cancel := context.WithCancel(context.Background())
	stop = sync.OnceFunc(func() {
		cancel()
		if <-s.ended; s.err != nil {
			t.Errorf("serve ended with %v\n%s", s.err, s.stderr)
		}
	})
	t.Cleanup(stop)
	s.start(t, func() error {
		return run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), s.stdout, s.stderr)
	})
	return s, stop
}

// linked is the program that all tests share.
var linked = sync.OnceValues(func() (string, error) { return buildAt("build/cadastre") })

// built returns the path of the program, built as users build it.
func built(t *testing.T) string {
	t.Helper()
	program, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// buildAt builds the program at a path and returns the absolute path.
func buildAt(path string) (string, error) {
	if out, err := exec.Command("go", "build", "-buildvcs=auto", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Abs(path)
}

// spawn runs `cadastre serve` in a separate process, on a free port, until the
// test ends.
func spawn(t *testing.T, program string, args ...string) (*serving, *os.Process) {
	t.Helper()
	s, command := newServing(), exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	command.Stdout, command.Stderr = s.stdout, s.stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-s.ended
	})
	s.start(t, command.Wait)
	return s, command.Process
}

// configured returns the flag for a settings file with this content.
func configured(t *testing.T, settings string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cadastre.yaml")
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config=" + path
}

// unlimited are settings that admit every request.
const unlimited = "limits: {principal-points: 0, service-points: 0, admin-points: 0, address-points: 0}\n"

// tokenFile writes a token file and returns its path. Each entry is one line.
func tokenFile(t *testing.T, entries ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte("tokens:\n  - "+strings.Join(entries, "\n  - ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// anAdmin is the token file entry of an administrator with the token secret.
const anAdmin = "{token: secret, user: ada, project: operations, roles: [admin]}"

// ask sends a query and returns the status and the answer.
func ask(t *testing.T, address, token, query string) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/graphql", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return fetch(t, request)
}

// get fetches a page and returns the status and the page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fetch(t, request)
}

// fetch sends a request and returns the status and the body of the answer.
func fetch(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(answer))
}
