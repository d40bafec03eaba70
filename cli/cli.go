// Package cli is the command line: its grammar, and the commands that are
// clients of a server. Serving itself is a function that the program hands
// over.
package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/client"
)

// Program is what the command line knows of the program that it belongs to.
type Program struct {
	Version string
	// Commit is the commit that the program was built from; empty is not known.
	Commit string
	SDL    string
	// Stdin is where answers to questions are read from; nil is empty.
	Stdin io.Reader
	// Serve runs a server until the context ends.
	Serve func(ctx context.Context, options ServeOptions) error
}

// commands is the grammar of the command line.
type commands struct {
	Serve      serveCommand      `cmd:"" help:"Serve the GraphQL API and the IDE."`
	Metadefs   metadefsCommand   `cmd:"" help:"Work with metadata definitions."`
	Capability capabilityCommand `cmd:"" help:"List and register capabilities, and set who discovers them."`
	Metadata   metadataCommand   `cmd:"" help:"Read and write the metadata of resources."`
	Schema     schemaCommand     `cmd:"" help:"Print the GraphQL schema."`
	Version    versionCommand    `cmd:"" help:"Print the version and the commit."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version and the commit."`
}

// inWords returns the version and the commit.
func (p Program) inWords() string {
	commit := p.Commit
	if commit == "" {
		commit = "unknown"
	}
	return fmt.Sprintf("cadastre %s (commit %s)", p.Version, commit)
}

// Run runs the command that the arguments name. Its error is for people: the
// program prints it and ends with the status 1.
func Run(ctx context.Context, program Program, args []string, stdout, stderr io.Writer) error {
	run := &session{ctx: ctx, program: program, stdout: stdout, stderr: stderr}
	exited := false
	parser, err := kong.New(&commands{}, kong.Name("cadastre"),
		kong.Description("One GraphQL API for metadata definitions, resources, capabilities and placement."),
		kong.Writers(stdout, stderr), kong.DefaultEnvars("CADASTRE"), kong.PostBuild(onlyTheServer), kong.Vars{"version": program.inWords()},
		kong.Exit(func(int) { exited = true }), kong.Bind(run))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if exited { // the help was printed
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; see `cadastre --help`", err)
	}
	return parsed.Run(run)
}

// session is one run of the command line.
type session struct {
	ctx            context.Context
	program        Program
	stdout, stderr io.Writer
}

// printf writes what the command is run for.
func (s *session) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(s.stdout, format, args...)
	return err
}

// notef writes a note for people. The command goes on where nobody can read it.
func (s *session) notef(format string, args ...any) { _, _ = fmt.Fprintf(s.stderr, format, args...) }

type schemaCommand struct{}

func (schemaCommand) Run(run *session) error {
	return run.printf("%s", run.program.SDL)
}

type versionCommand struct{}

func (versionCommand) Run(run *session) error {
	return run.printf("%s\n", run.program.inWords())
}

// remote are the flags of every command that is a client of a server.
type remote struct {
	Server  string        `default:"http://127.0.0.1:8080" help:"Address of the server, with or without the scheme and /graphql; without a scheme it is http for this machine and https for others."`
	Token   string        `help:"Token to send to the server."`
	Timeout time.Duration `default:"60s" min:"1ms" help:"How long a request may take."`
}

// Validate returns an error for flags that are wrong. The command line calls it.
func (r remote) Validate(parsed *kong.Context) error {
	if _, err := client.Endpoint(r.Server); err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	return checkNumbers(parsed)
}

func (r remote) client() graphql.Client {
	return client.New(r.Server, client.WithToken(r.Token), client.WithTimeout(r.Timeout))
}

// onlyTheServer takes the environment variables of all flags of clients, except
// those that say which server is asked, by whom, and in which form the answer is
// shown: none decides what a command does.
func onlyTheServer(parser *kong.Kong) error {
	var walk func(node *kong.Node)
	walk = func(node *kong.Node) {
		for _, flag := range node.Flags {
			if !slices.Contains([]string{"server", "token", "timeout", "output"}, flag.Name) {
				flag.Envs, flag.Tag.Envs = nil, nil
			}
		}
		for _, child := range node.Children {
			if child.Name != "serve" {
				walk(child)
			}
		}
	}
	walk(parser.Model.Node)
	return nil
}
