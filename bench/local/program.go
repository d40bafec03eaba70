package local

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Module is the package of the program.
const Module = "github.com/cadastre-dev/cadastre"

// StartTime bounds the time until a server is ready: with a million providers on a
// busy machine that takes minutes.
const StartTime = 10 * time.Minute

// Build builds the server of this tree, in the server's own module, with
// variables of the environment: without C is how it is released.
func Build(ctx context.Context, path string, variables ...string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", Module).Output()
	if err != nil {
		return fmt.Errorf("find the server's module: %w", err)
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	command.Dir, command.Env = strings.TrimSpace(string(root)), append(os.Environ(), variables...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return nil
}

// Loopback returns the loopback address with a port.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
