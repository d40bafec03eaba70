package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// manyPoints is a limit that no work reaches.
const manyPoints = 1_000_000_000

// server is a Cadastre server in a process of its own.
type server struct {
	*local.Process
	*client
	host     string // and port
	profiles string // address of its profiles, if it knows how to serve them
	tokens   string // file of its tokens
	follower string // token of a viewer who follows
	member   string // token of a member of a project
}

// startServer starts a server on a database and waits until it is ready. Its
// files lie in the folder, with names that begin with the given one.
func startServer(ctx context.Context, folder, name, program, database string) (*server, error) {
	return startServerWith(ctx, folder, name, program, database, trial{})
}

// startServerWith is startServer with other settings.
func startServerWith(ctx context.Context, folder, name, program, database string, with trial) (*server, error) {
	token, follower, member := rand.Text(), rand.Text(), rand.Text()
	tokens := filepath.Join(folder, name+"-tokens.yaml")
	text := fmt.Sprintf(`tokens:
  - {token: %s, user: bench, project: bench, roles: [admin]}
  - {token: %s, user: follower, project: followers, roles: [reader]}
  - {token: %s, user: member, project: members, roles: [member]}
`, token, follower, member)
	if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
		return nil, err
	}
	port, err := pgserver.FreePort()
	if err != nil {
		return nil, err
	}
	profiles, err := pgserver.FreePort()
	if err != nil {
		return nil, err
	}
	address := local.Loopback(port)
	env := append(append(serverEnvironment(), "CADASTRE_PPROF_LISTEN="+local.Loopback(profiles)), with.env...)
	args := append([]string{"serve", "--listen", address, "--database", database, "--tokens", tokens}, with.args...)
	p, err := local.Start(filepath.Join(folder, name+".log"), "TERM", nil, env, program, args...)
	if err != nil {
		return nil, err
	}
	s := &server{Process: p, client: newClient("http://"+address, token), host: address, profiles: local.Loopback(profiles), tokens: tokens, follower: follower, member: member}
	if err := p.Await(local.StartTime, func() error { return s.ready(ctx) }); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// serverEnvironment returns the environment of the benchmark, with no limit that
// could stop it; those that count requests are large, so that they count. As
// variables, because a program that does not know one of them ignores it.
func serverEnvironment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CADASTRE_") && !strings.HasPrefix(variable, "GOGC=") && !strings.HasPrefix(variable, "GOMEMLIMIT=") {
			env = append(env, variable)
		}
	}
	for _, limit := range []string{"TOKENS", "ALIASES", "ROOT_FIELDS", "REPEATS", "LIST_MEMBERS", "COST", "PROJECT_WRITES"} {
		env = append(env, "CADASTRE_LIMIT_"+limit+"=0")
	}
	for _, limit := range []string{"BODY_BYTES", "PRINCIPAL_POINTS", "SERVICE_POINTS", "ADMIN_POINTS", "ADDRESS_POINTS"} {
		env = append(env, fmt.Sprintf("CADASTRE_LIMIT_%s=%d", limit, manyPoints))
	}
	return append(env, "CADASTRE_LIMIT_OPERATION_TIME="+requestTime.String(), "CADASTRE_WRITE_RATE=0")
}

// ready returns nil once the server is ready.
func (s *server) ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := s.http.Do(r)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// stop ends the server.
func (s *server) stop() error {
	s.close()
	return s.Process.Stop()
}
