package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// profiledTime is how long a profile of a work takes.
const profiledTime = 5 * time.Second

var (
	notInFileName = regexp.MustCompile(`[^a-z0-9.]+`)
	typeArguments = regexp.MustCompile(`\[go\.shape.*\]`) // of generic functions, which are long
)

// profile writes a CPU profile of a work on a server into the folder for them,
// and what takes most as text. A server that serves no profiles has none.
func (b *bench) profile(ctx context.Context, s *series) error {
	if b.profiles == "" || s.target.server == nil {
		return nil
	}
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return err
	}
	done := make(chan struct{})
	sent := make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				sent <- nil
				return
			default:
			}
			if err := s.again(ctx); err != nil {
				sent <- err
				return
			}
		}
	}()
	profile, err := s.target.server.profile(ctx)
	close(done)
	if err := <-sent; err != nil {
		return err
	}
	if errors.Is(err, syscall.ECONNREFUSED) { // of a version that serves none
		return nil
	}
	if err != nil {
		return err
	}
	name := notInFileName.ReplaceAllString(strings.ToLower(s.work.name+" "+s.target.String()), "-")
	path := filepath.Join(b.profiles, name+".pb.gz")
	if err := os.WriteFile(path, profile, 0o644); err != nil {
		return err
	}
	var text []byte
	for _, order := range [][]string{{"-flat", "-nodecount=30"}, {"-cum", "-nodecount=100"}} {
		command := append(append([]string{"tool", "pprof", "-top"}, order...), path)
		top, err := exec.CommandContext(ctx, "go", command...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("go tool pprof: %w\n%s", err, top)
		}
		text = append(append(text, typeArguments.ReplaceAll(top, []byte("[...]"))...), '\n')
	}
	return os.WriteFile(filepath.Join(b.profiles, name+".txt"), text, 0o644)
}

// again runs one round of the work, which is not timed.
func (s *series) again(ctx context.Context) error {
	clients := s.connect(s.work.clients)
	defer disconnect(clients)
	first := s.next
	if _, _, err := s.send(ctx, clients, s.work.operations); err != nil {
		return err
	}
	return s.takeBack(ctx, first)
}

// profile returns a CPU profile of the server.
func (s *server) profile(ctx context.Context) ([]byte, error) {
	address := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", s.profiles, profiledTime.Seconds())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New("read the profile: " + response.Status)
	}
	return io.ReadAll(response.Body)
}
