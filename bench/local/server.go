package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// Setup is how a server of Cadastre is run. It has the limits of a server in
// production: nothing is switched off for a measurement.
type Setup struct {
	Program  string
	Folder   string // for logs
	Name     string // that names of files begin with
	Database string // URL
	Tokens   string // file
	Env      []string
	Args     []string // flags of `serve`
	// Wrap returns the command that runs another command; nil runs it as it is.
	Wrap func(program string, args []string) (string, []string)
}

// Server is a process of Cadastre.
type Server struct {
	*Process
	Setup
	Host     string // and port
	Profiles string // address of its profiles
	starts   int
}

// NewServer returns a server that has not been started.
func NewServer(of Setup) (*Server, error) {
	port, err := pgserver.FreePort()
	if err != nil {
		return nil, err
	}
	profiles, err := pgserver.FreePort()
	if err != nil {
		return nil, err
	}
	return &Server{Setup: of, Host: Loopback(port), Profiles: Loopback(profiles)}, nil
}

// Start starts the server, the first time or again, and waits until it is ready.
func (s *Server) Start(ctx context.Context) error {
	args := append([]string{"serve", "--listen", s.Host, "--pprof-listen", s.Profiles, "--database", s.Database, "--tokens", s.Tokens}, s.Args...)
	program := s.Program
	if s.Wrap != nil {
		program, args = s.Wrap(program, args)
	}
	s.starts++
	log := filepath.Join(s.Folder, fmt.Sprintf("%s-%d.log", s.Name, s.starts))
	p, err := Start(log, "TERM", nil, append(environment(), s.Env...), program, args...)
	if err != nil {
		return err
	}
	s.Process = p
	probe := NewClient(s.Host, "", "", 1, StartTime)
	defer probe.Close()
	if err := p.Await(StartTime, func() error { _, err := probe.Get(ctx, "/readyz"); return err }); err != nil {
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

// Kill ends the server as the system ends a process that takes too much memory.
func (s *Server) Kill() error { return s.Signal(syscall.SIGKILL) }

// Token is a token with its viewer.
type Token struct{ Token, User, Project, Role string }

// WriteTokens writes a file of tokens.
func WriteTokens(file string, all []Token) error {
	var text strings.Builder
	text.WriteString("tokens:\n")
	for _, of := range all {
		fmt.Fprintf(&text, "  - {token: %s, user: %s, project: %s, roles: [%s]}\n", of.Token, of.User, of.Project, of.Role)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// Folder makes a temporary folder that the user of PostgreSQL may pass through.
func Folder(name string) (string, error) {
	folder, err := os.MkdirTemp("", name)
	if err != nil {
		return "", err
	}
	return folder, os.Chmod(folder, 0o711)
}
