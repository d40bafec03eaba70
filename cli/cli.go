// Package cli is the command line: its grammar, and the commands that are
// clients of a server. Serving itself is a function that the program hands
// over.
//
// The struct commands is the one table of nouns and verbs: kong makes the grammar
// of it. A command says in tags which field of its operation each flag is (see
// input.go), sends one operation of the package client, and shows rows whose
// columns its noun has in one place (see columns.go).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
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
	// Check returns everything that is wrong with the options of a server, which it
	// does not start; nil checks nothing.
	Check func(options ServeOptions) error
}

// commands is the grammar of the command line.
type commands struct {
	Serve serveCommand `cmd:"" group:"Server" help:"Serve the GraphQL API and the IDE." example:"cadastre serve --demo"`

	Query queryCommand `cmd:"" group:"Any operation" help:"Send a GraphQL document and show the answer." example:"cadastre query '{ viewer { userId roles } }' ;; cadastre query 'query($type: String!) { resources(filter: {types: [$type]}, first: 2) { totalCount nodes { name } } }' -v type=physical:host ;; cadastre query --paginate 'query($after: String) { traits(first: 100, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }' -o value -c name"`

	Namespace namespaceCommand `cmd:"" group:"Definitions" help:"Namespaces: named sets of definitions."`

	Property     propertyCommand     `cmd:"" group:"Definitions" help:"Properties: which metadata keys exist and what they may hold."`
	Object       objectCommand       `cmd:"" group:"Definitions" help:"Objects: properties that are used together."`
	Tag          tagCommand          `cmd:"" group:"Definitions" help:"Tags that namespaces define."`
	Association  associationCommand  `cmd:"" group:"Definitions" help:"Which resource types namespaces apply to."`
	ResourceType resourceTypeCommand `cmd:"" group:"Definitions" help:"Resource types."`
	Metadefs     metadefsCommand     `cmd:"" group:"Definitions" help:"Load, export and unload definition files."`

	Resource   resourceCommand   `cmd:"" group:"Resources" help:"Resources."`
	Capability capabilityCommand `cmd:"" group:"Resources" help:"What hosts and other resources can do, and who discovers it."`
	Metadata   metadataCommand   `cmd:"" group:"Resources" help:"What people and services wrote on resources."`

	Candidates    candidatesCommand    `cmd:"" group:"Placement" help:"Find where a request fits, in the manner of openstack allocation candidate list." example:"cadastre candidates --resource VCPU=2 --resource MEMORY_MB=2048 --limit 2 ;; cadastre candidates --resource VCPU=4 --required 'in:HW_CPU_X86_AVX512F,HW_CPU_X86_AVX2' --required '!HW_CPU_HYPERTHREADING' --explain ;; cadastre candidates --resource VCPU=4 --group _NET --resource SRIOV_NET_VF=1 --required CUSTOM_PHYSNET_PUBLIC --limit 1 ;; cadastre candidates --from-flavor n1.large --limit 1 -o json"`
	Provider      providerCommand      `cmd:"" group:"Placement" help:"Providers: what has inventories, such as hosts, in trees."`
	Inventory     inventoryCommand     `cmd:"" group:"Placement" help:"How much providers have of a resource class."`
	Trait         traitCommand         `cmd:"" group:"Placement" help:"Traits: what providers can be asked for."`
	ResourceClass resourceClassCommand `cmd:"" group:"Placement" help:"Resource classes: what inventories are of."`
	Aggregate     aggregateCommand     `cmd:"" group:"Placement" help:"Aggregates: sets of providers."`
	Allocation    allocationCommand    `cmd:"" group:"Placement" help:"What consumers use of providers."`
	Consumer      consumerCommand      `cmd:"" group:"Placement" help:"Who uses resources, such as instances."`
	Usage         usageCommand         `cmd:"" group:"Placement" help:"What is used in all."`
	Capacity      capacityCommand      `cmd:"" group:"Placement" help:"What there is in all, and how much of it is free."`

	Audit auditCommand `cmd:"" group:"Other" help:"Who changed what."`
	Watch watchCommand `cmd:"" group:"Other" help:"What happens, as it happens, until you press Ctrl-C."`

	Login      loginCommand      `cmd:"" group:"Other" help:"Keep a server and a token for later commands, in a file of mode 0600: $$CADASTRE_CONFIG, or cadastre/contexts.yaml in the user's folder for settings." example:"cadastre login demo --server 127.0.0.1:8080 --token demo-member ;; echo demo-member | cadastre login ;; cadastre login prod --server cadastre.example.org --os-cloud prod"`
	Whoami     whoamiCommand     `cmd:"" group:"Other" help:"Show who you are to the server." example:"cadastre whoami"`
	Context    contextCommand    `cmd:"" group:"Other" help:"The servers that you are logged in at."`
	Completion completionCommand `cmd:"" group:"Other" help:"Print a script that completes commands, flags and names in a shell." example:"cadastre completion bash ;; cadastre completion zsh ;; cadastre completion fish"`

	Schema  schemaCommand  `cmd:"" group:"Other" help:"Print the GraphQL schema." example:"cadastre schema"`
	Help    helpCommand    `cmd:"" group:"Other" help:"Explain a command." example:"cadastre help metadata set"`
	Version versionCommand `cmd:"" group:"Other" help:"Print the version and the commit." example:"cadastre version"`

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

// newParser returns the parser of the command line, which calls exit after it
// has printed a help.
func newParser(run *session, exit func()) (*kong.Kong, error) {
	return kong.New(&commands{}, kong.Name("cadastre"),
		kong.Description("One GraphQL API for metadata definitions, resources, capabilities and placement."),
		kong.Writers(run.stdout, run.stderr), kong.DefaultEnvars("CADASTRE"), kong.PostBuild(onlyTheServer), kong.PostBuild(sayExclusive),
		kong.Vars{"version": run.program.inWords()}, kong.Exit(func(int) { exit() }), kong.Bind(run),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}), kong.Help(printHelp))
}

// Run runs the command that the arguments name. Its error is for people: the
// program prints it and ends with the status that ExitStatus returns.
func Run(ctx context.Context, program Program, args []string, stdout, stderr io.Writer) error {
	run := &session{ctx: ctx, program: program, stdout: stdout, stderr: stderr}
	if len(args) > 0 && args[0] == completing {
		return run.complete(args[1:])
	}
	exited := false
	parser, err := newParser(run, func() { exited = true })
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(withHelp(args))
	if exited { // the help was printed
		return nil
	}
	if err != nil {
		if incomplete := new(kong.ParseError); errors.As(err, &incomplete) && isBareNoun(incomplete.Context) {
			return Run(ctx, program, append(slices.Clone(args), "--help"), stdout, stderr)
		}
		if usage := (usageError{}); errors.As(err, &usage) {
			return err
		}
		if args[0] == "serve" {
			if parsed, err := run.parseServe(args); err != nil || parsed == nil {
				return errors.Join(append(run.wrong, err)...)
			} else {
				run.parsed = parsed
				return parsed.Run(run)
			}
		}
		return usagef("%w; see `cadastre --help`", err)
	}
	run.parsed = parsed
	return parsed.Run(run)
}

// isBareNoun reports whether a command line names nothing, or a noun without a
// verb, and nothing else is wrong with it.
func isBareNoun(parsed *kong.Context) bool {
	if parsed == nil || parsed.Error != nil {
		return false
	}
	for _, part := range parsed.Path {
		if part.Flag != nil || part.Positional != nil {
			return false
		}
	}
	return len(parsed.Args) <= 1 && len(selectedNode(parsed).Children) > 0
}

// selectedNode returns the command or the noun that a command line names, the
// program where it names none.
func selectedNode(parsed *kong.Context) *kong.Node {
	if node := parsed.Selected(); node != nil {
		return node
	}
	return parsed.Model.Node
}

// withHelp returns the arguments of `help x` as those of `x --help`.
func withHelp(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	if args[0] == "help" {
		return append(append([]string{}, args[1:]...), "--help")
	}
	return args
}

// session is one run of the command line.
type session struct {
	ctx            context.Context
	program        Program
	stdout, stderr io.Writer
	parsed         *kong.Context
	out            output
	told           map[string]string // flags by the paths of fields that no tag names
	isDefaultForm  bool              // neither a flag nor the environment says the form of the answer
	server         server
	api            *asking
	wrong          []error // what is wrong with flags of serve that were left out
}

type schemaCommand struct{}

func (schemaCommand) Run(run *session) error {
	return run.printf("%s", run.program.SDL)
}

type versionCommand struct{}

func (versionCommand) Run(run *session) error {
	return run.printf("%s\n", run.program.inWords())
}

// helpCommand is in the grammar so that it is listed; Run sees the word before
// the grammar does.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

func (helpCommand) Run(*session) error { return nil }

// printHelp prints the help of a command with its examples.
func printHelp(options kong.HelpOptions, parsed *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, parsed); err != nil {
		return err
	}
	text := ""
	for _, example := range examplesOf(selectedNode(parsed)) {
		text += "\n  $ " + example
	}
	if text == "" {
		return nil
	}
	_, err := io.WriteString(parsed.Stdout, "\nExamples:"+text+"\n")
	return err
}

// examplesOf returns the examples of a command. They are separated by " ;; ".
func examplesOf(node *kong.Node) []string {
	if node.Tag == nil || !node.Tag.Has("example") {
		return nil
	}
	return strings.Split(node.Tag.Get("example"), " ;; ")
}

// sayExclusive says in the help of each flag which others it cannot be used
// together with.
func sayExclusive(parser *kong.Kong) error {
	var walk func(node *kong.Node)
	walk = func(node *kong.Node) {
		groups := map[string][]string{}
		for _, flag := range node.Flags {
			for _, group := range flag.Xor {
				groups[group] = append(groups[group], "--"+flag.Name)
			}
		}
		for _, flag := range node.Flags {
			var others []string
			for _, group := range flag.Xor {
				for _, name := range groups[group] {
					if name != "--"+flag.Name {
						others = append(others, name)
					}
				}
			}
			if len(others) > 0 {
				flag.Help += " Not together with " + strings.Join(others, " or ") + "."
			}
		}
		for _, child := range node.Children {
			walk(child)
		}
	}
	walk(parser.Model.Node)
	return nil
}
