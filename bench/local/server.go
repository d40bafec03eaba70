package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// Setup is the configuration of a server of Cadastre. The server has the limits
// of a production server: measurements do not disable any.
type Setup struct {
	Program  string
	Folder   string // for logs
	Name     string // prefix of file names
	Database string // URL
	Tokens   string // file
	Env      []string
	Args     []string // flags of `serve`
	Before   []string // a command that runs the program, such as a shell; empty for none
}

// Server is a process of Cadastre.
type Server struct {
	*Process
	Setup
	Host     string // and port
	Profiles string // address of its profiles
	starts   int
}

// StartServer starts a server and waits until it is ready.
func StartServer(ctx context.Context, of Setup) (*Server, error) {
	s := &Server{Setup: of}
	if err := Addresses(&s.Host, &s.Profiles); err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// Start starts the server, also after it ended, always at the same address. It waits
// until the server is ready.
func (s *Server) Start(ctx context.Context) error {
	program, err := filepath.Abs(s.Program) // processes run in the folder of their log
	if err != nil {
		return err
	}
	command := slices.Concat(s.Before,
		[]string{program, "serve", "--listen", s.Host, "--database", s.Database, "--tokens", s.Tokens}, s.Args)
	s.starts++
	log := filepath.Join(s.Folder, fmt.Sprintf("%s-%d.log", s.Name, s.starts))
	env := slices.Concat(environment(), []string{"CADASTRE_PPROF_LISTEN=" + s.Profiles}, s.Env)
	p, err := Start(log, "TERM", nil, env, command...)
	if err != nil {
		return err
	}
	s.Process = p
	probe := NewClient(s.Host, "", "", 1, startTime)
	defer probe.Close()
	if err := p.Await(func() error { _, err := probe.get(ctx, "/readyz"); return err }); err != nil {
		return errors.Join(err, p.Stop())
	}
	return nil
}

// environment returns the variables of this process that do not configure a
// server or its runtime.
func environment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CADASTRE_") && !strings.HasPrefix(variable, "GO") {
			env = append(env, variable)
		}
	}
	return env
}

// Token is a token with its viewer.
type Token struct{ Token, User, Project, Role string }

// WriteTokens writes a file of tokens.
func WriteTokens(file string, all []Token) error {
	var text strings.Builder
	text.WriteString("tokens:\n")
	for _, of := range all {
		fmt.Fprintf(&text, "  - {token: %s, user: %s, project: %s, roles: [%s]}\n",
			of.Token, of.User, of.Project, of.Role)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// startTime is the maximum time until a server is ready. A start with a million
// providers on a busy machine takes minutes.
const startTime = 10 * time.Minute

// Addresses sets each of some addresses to the loopback address with an unused port.
func Addresses(into ...*string) error {
	for _, address := range into {
		port, err := pgserver.FreePort()
		if err != nil {
			return err
		}
		*address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	return nil
}
