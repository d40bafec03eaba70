package chart

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the program that `make build` builds.
const program = "../../cadastre"

// image is the image of deploy/Dockerfile.
type image struct {
	env              map[string]string
	user, entrypoint string
}

func readImage(t *testing.T) image {
	t.Helper()
	of := image{env: map[string]string{}}
	for line := range strings.Lines(read(t, "../../deploy/Dockerfile")) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "ENV":
			for _, variable := range strings.Fields(rest) {
				name, value, _ := strings.Cut(variable, "=")
				of.env[name] = value
			}
		case "USER":
			of.user, _, _ = strings.Cut(rest, ":")
		case "ENTRYPOINT":
			of.entrypoint = strings.Trim(rest, `["]`)
		}
	}
	return of
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// container is a container of the image. The files of its mounts are elsewhere on
// this machine.
type container struct {
	args   []string
	env    map[string]string
	mounts map[string]string // paths on this machine by paths in the container
}

// here returns text with the paths of this machine.
func (c container) here(text string) string {
	for path, of := range c.mounts {
		text = strings.ReplaceAll(text, path, of)
	}
	return text
}

// command returns the program with these arguments, in the environment of the
// container. Only its addresses are other ones: free ports of the loopback.
func (c container) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	env := readImage(t).env
	maps.Copy(env, c.env)
	for name, value := range env {
		if strings.HasSuffix(name, "LISTEN") {
			env[name] = "127.0.0.1:0"
		} else {
			env[name] = c.here(value)
		}
	}
	env["CADASTRE_PROFILE"] = "locked" // the default on the addresses of a container
	command := exec.CommandContext(ctx, program)
	for _, arg := range args {
		command.Args = append(command.Args, c.here(arg))
	}
	for name, value := range env {
		command.Env = append(command.Env, name+"="+value)
	}
	return command
}

var listening = regexp.MustCompile(`msg=(serving|measuring) address=(\S+)`)

// start starts the server of the container, and returns its addresses by what
// they are for, and a function that ends it.
func (c container) start(t *testing.T) (addresses map[string]string, end func()) {
	t.Helper()
	command := c.command(context.Background(), t, c.args...)
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("make build builds the program: %v", err)
	}
	end = sync.OnceFunc(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	addresses = map[string]string{}
	var text strings.Builder
	for lines := bufio.NewScanner(log); addresses["serving"] == "" && lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			addresses[found[1]] = found[2]
		}
	}
	if addresses["serving"] == "" {
		t.Fatalf("%v: %v\n%s", command.Args, command.Wait(), text.String())
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	t.Cleanup(end)
	return addresses, end
}

var variable = regexp.MustCompile(`\$(CADASTRE_\w+)`)

// checkVariables fails the test for a variable that the program does not know.
func checkVariables(t *testing.T, env map[string]string) {
	t.Helper()
	var known []string
	for _, args := range [][]string{{"serve", "--demo", "--print-config"}, {"login", "--help"}} {
		out, err := exec.Command(program, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range variable.FindAllStringSubmatch(string(out), -1) {
			known = append(known, found[1])
		}
	}
	for name := range env {
		if !slices.Contains(known, name) {
			t.Errorf("the program does not know %s", name)
		}
	}
}

// get returns the status of the answer at an address.
func get(t *testing.T, client *http.Client, address string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

// secrets writes the files of the server's Secret.
func secrets(t *testing.T, folder, database string) {
	t.Helper()
	write(t, folder, "cadastre.yaml", fmt.Sprintf("database: %s\n", database))
	write(t, folder, "tokens.yaml", "tokens: [{token: right, user: health, project: health, roles: [reader]}]\n")
}

// portOf returns the port of an address to listen on.
func portOf(t *testing.T, address string) int32 {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(port)
}
