// Package cli is the command line: what cadastre is told to do, and how it
// speaks to people. It runs a server only through the functions it is handed,
// and reaches one only through the typed client; it knows no rule and no SQL.
package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/Khan/genqlient/graphql"
	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/client"
)

// Program is what the command line can start, and what it is told of itself.
type Program struct {
	Version string
	SDL     string
	// Stdin is where answers to questions come from; nil answers none.
	Stdin io.Reader
	// Serve runs a server until the context ends.
	Serve func(ctx context.Context, options ServeOptions) error
}

// commands is the grammar of the command line.
type commands struct {
	Serve      serveCommand      `cmd:"" help:"Serve the GraphQL API and the IDE."`
	Metadefs   metadefsCommand   `cmd:"" help:"Work with metadata definitions."`
	Capability capabilityCommand `cmd:"" help:"Discover capabilities and say who does."`
	Metadata   metadataCommand   `cmd:"" help:"Read and write the metadata of resources."`
	Schema     schemaCommand     `cmd:"" help:"Print the GraphQL schema."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// Run runs the command that the arguments name. Its error says what to do; the
// program then ends with a status that is not zero.
func Run(ctx context.Context, program Program, args []string, stdout, stderr io.Writer) error {
	run := &session{ctx: ctx, program: program, stdout: stdout, stderr: stderr}
	exited := false
	parser, err := kong.New(&commands{}, kong.Name("cadastre"),
		kong.Description("One GraphQL API for metadata definitions, resources, capabilities and placement."),
		kong.Writers(stdout, stderr), kong.DefaultEnvars("CADASTRE"), kong.UsageOnError(),
		kong.Exit(func(int) { exited = true }), kong.Bind(run))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if exited { // the help was printed
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; `cadastre --help` tells what there is", err)
	}
	return parsed.Run(run)
}

// session is one run of the command line.
type session struct {
	ctx            context.Context
	program        Program
	stdout, stderr io.Writer
}

type schemaCommand struct{}

func (schemaCommand) Run(run *session) error {
	_, err := io.WriteString(run.stdout, run.program.SDL)
	return err
}

type versionCommand struct{}

func (versionCommand) Run(run *session) error {
	_, err := fmt.Fprintln(run.stdout, "cadastre", run.program.Version)
	return err
}

// remote are the flags of every command that speaks to a server.
type remote struct {
	Server string `default:"http://127.0.0.1:8080" help:"Address of the server."`
	Token  string `help:"Token to show to the server."`
}

func (r remote) client() graphql.Client { return client.New(r.Server, r.Token) }
