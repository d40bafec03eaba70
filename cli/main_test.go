package cli_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// asProgram is the variable that makes the test binary act as the program, for
// shells that run it.
const asProgram = "CADASTRE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		storetest.Main(m)
		return
	}
	err := cli.Run(context.Background(), cli.Program{Stdin: os.Stdin}, os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(cli.ExitStatus(err))
}

// console runs commands in this process against one server.
type console struct {
	t       *testing.T
	address string
	folder  string // of files for the commands
}

// serve starts a complete server on a database until the test ends. Its tokens
// are admin, and member and reader of the project demo.
func serve(t *testing.T, database string) console {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	limits := web.DefaultLimits()
	// a slow machine may need it for a large file
	limits.OperationTime = patience.Of(t, time.Minute)
	limits.PrincipalPoints, limits.AdminPoints, limits.AddressPoints = 0, 0, 0 // points are charged by time
	s, err := store.Open(t.Context(), store.Options{URL: database, Log: log, StatementTime: limits.OperationTime,
		Resources: store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := web.New(web.Options{
		Executor: graph.NewExecutor(&graph.Resolver{Store: s}, log), Log: log, Limits: limits,
		Authenticate: auth.New(auth.Tokens([]auth.Token{
			auth.NewToken("admin",
				access.Viewer{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}}),
			auth.NewToken("member",
				access.Viewer{UserID: "mel", ProjectID: "demo", Roles: []string{access.RoleMember}}),
			auth.NewToken("reader",
				access.Viewer{UserID: "rae", ProjectID: "demo", Roles: []string{access.RoleReader}}),
		})).Authenticate,
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, listener, handler, web.ServeOptions{Log: log}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("stop the server: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return console{t, "http://" + listener.Addr().String(), t.TempDir()}
}

// file writes a file below the folder of the console and returns its path.
func (c console) file(path, text string) string {
	c.t.Helper()
	path = filepath.Join(c.folder, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// run runs a command as the viewer of a token. It returns an error if the
// program would not exit with 0.
func (c console) run(token, stdin string, args ...string) (stdout, stderr string, err error) {
	c.t.Helper()
	var out, notes strings.Builder
	program := cli.Program{Stdin: strings.NewReader(stdin)}
	err = cli.Run(c.t.Context(), program, append(args, "--server", c.address, "--token", token), &out, &notes)
	return out.String(), notes.String(), err
}

var (
	blanks   = regexp.MustCompile(`[ \t]+`)
	trailing = regexp.MustCompile(` \n|\n `)
)

// prints runs a command that must succeed and print the text, column by column.
func (c console) prints(token, want string, args ...string) {
	c.t.Helper()
	stdout, stderr, err := c.run(token, "", args...)
	got := trailing.ReplaceAllString(blanks.ReplaceAllString(strings.TrimSpace(stdout), " "), "\n")
	if err != nil || got != want {
		c.t.Errorf("%q: error %v, prints\n%s\nand notes\n%s\nwant\n%s", args, err, got, stderr, want)
	}
}

// notes runs a command that must succeed and write the text among its notes.
func (c console) notes(token, want string, args ...string) {
	c.t.Helper()
	if _, stderr, err := c.run(token, "", args...); err != nil || !strings.Contains(stderr, want) {
		c.t.Errorf("%q: error %v, notes\n%s\nwant\n%s", args, err, stderr, want)
	}
}

// fails runs a command that must fail with want in its error. Its output and
// notes must contain each of the other strings.
func (c console) fails(token, want string, args []string, told ...string) {
	c.t.Helper()
	stdout, stderr, err := c.run(token, "", args...)
	if err == nil || !strings.Contains(err.Error(), want) {
		c.t.Errorf("%q: got the error %v, want %q\n%s%s", args, err, want, stdout, stderr)
	}
	for _, text := range told {
		if !strings.Contains(stdout+stderr, text) {
			c.t.Errorf("%q: prints\n%s\nand notes\n%s\nwant %q", args, stdout, stderr, text)
		}
	}
}

// command splits the words of a command and appends args unchanged.
func command(words string, args ...string) []string { return append(strings.Fields(words), args...) }

// refuse runs commands that must fail before they contact a server.
func refuse(t *testing.T, commands map[string]string) {
	t.Helper()
	for words, want := range commands {
		err := cli.Run(t.Context(), cli.Program{}, strings.Fields(words), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", words, err, want)
		}
	}
}
