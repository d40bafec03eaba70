// Package cli is the command line: its grammar, and the commands that are
// clients of a server. The program passes in a function that runs a server.
//
// commands.txt has all commands. Most commands have no code: parameters.go
// makes their flags from an operation of the package client and the
// descriptions of the schema, and call.go sends the operation and shows the
// columns of the noun. For the other commands, commands.go lists functions.
package cli

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Program describes the program to the command line.
type Program struct {
	Version string
	// Commit is the commit of the build; empty if it is unknown.
	Commit string
	SDL    string
	// Stdin is the source of answers to questions; nil is empty.
	Stdin io.Reader
	// Serve runs a server until the context ends.
	Serve func(ctx context.Context, options ServeOptions) error
	// Check returns the options in effect of a server, without starting it, and
	// all problems with them; nil checks nothing.
	Check func(options ServeOptions) (ServeOptions, error)
	// Dump writes a database and returns a summary.
	Dump func(ctx context.Context, database string, to io.Writer) (string, error)
	// Restore loads a dump and returns a summary.
	Restore func(ctx context.Context, database string, from io.Reader) (string, error)
	// Migrations returns the migrations of the program as rows with version, name
	// and applied. With apply it applies the missing ones first.
	Migrations func(ctx context.Context, database string, apply bool) ([]map[string]any, error)
	// Doctor reports rows of a database that break an invariant. It returns a
	// summary, and how bad the worst finding is: 0 without one.
	Doctor func(ctx context.Context, database string, report func(finding map[string]any) error) (checked string, worst int, err error)
}

// inWords returns the version and the commit.
func (p Program) inWords() string {
	commit := p.Commit
	if commit == "" {
		commit = "unknown"
	}
	return fmt.Sprintf("cadastre %s (commit %s)", p.Version, commit)
}

// session is one run of the command line.
type session struct {
	ctx            context.Context
	program        Program
	stdout, stderr io.Writer
	parsed         *kong.Context
	out            output
	server         server
	api            *asking
	call           *call // nil for serve and completion
}

// parser returns the parser of a grammar. The parser calls exit after it has
// printed a help text.
func (s *session) parser(grammar any, exit func()) (*kong.Kong, error) {
	return kong.New(grammar, kong.Name("cadastre"), kong.PostBuild(hideKeys),
		kong.Description("One GraphQL API for metadata definitions, resources, capabilities and placement."),
		kong.Writers(s.stdout, s.stderr), kong.Vars{"version": s.program.inWords()},
		kong.Exit(func(int) { exit() }), kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}))
}

// Run runs the command that the arguments name. The program prints its error
// and exits with ExitStatus.
func Run(ctx context.Context, program Program, args []string, stdout, stderr io.Writer) error {
	run := &session{ctx: ctx, program: program, stdout: stdout, stderr: stderr}
	if len(args) > 0 && args[0] == completing {
		return run.complete(args[1:])
	}
	of, args := asked(args)
	exited := false
	parser, err := run.parser(newGrammar(func(one *noun) bool { return one == of }), func() { exited = true })
	if err != nil {
		return err
	}
	if of != nil && of.name == "serve" && !asksHelp(args) {
		return run.serve(parser, args)
	}
	run.parsed, err = parser.Parse(args)
	switch {
	case exited: // the help was printed
		return nil
	case err != nil:
		return usagef("%w; see `cadastre --help`", err)
	}
	if err := checkNumbers(run.parsed); err != nil {
		return err
	}
	return run.execute(of)
}

// asked returns the noun of the arguments, or nil, and the arguments in full:
// `help x` becomes `x --help`, a noun alone asks for help, and `watch` alone
// becomes `watch all`.
func asked(args []string) (*noun, []string) {
	if len(args) == 0 || args[0] == "help" {
		args = append(slices.Clone(args[min(1, len(args)):]), "--help")
	}
	of, i := nounIn(args)
	if of == nil || of.verbs == nil || of.verbNamed(".") != nil {
		return of, args
	}
	isAlone := len(args) == i+1
	switch {
	case of.name == "watch" && !asksHelp(args) && (isAlone || strings.HasPrefix(args[i+1], "-")):
		args = slices.Insert(slices.Clone(args), i+1, "all")
	case isAlone:
		args = append(slices.Clone(args), "--help")
	}
	return of, args
}

// asksHelp reports whether arguments ask for a help text or the version.
func asksHelp(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == "--help" || arg == "-h" || arg == "--version" })
}

// nounIn returns the noun among arguments and its index.
func nounIn(args []string) (*noun, int) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return nounNamed(args[i]), i
		}
		if takesNext(args[i]) {
			i++
		}
	}
	return nil, 0
}

// takesNext reports whether a flag before the command takes the next argument
// as its value.
func takesNext(flag string) bool {
	return slices.ContainsFunc(sets([]string{".server", ".output"}), func(p *param) bool {
		return !p.isBool() && (flag == "--"+p.flag || flag == "-"+p.attributes["short"])
	})
}

// selectedNode returns the command or noun of a command line, or the program
// without one.
func selectedNode(parsed *kong.Context) *kong.Node {
	if node := parsed.Selected(); node != nil {
		return node
	}
	return parsed.Model.Node
}

// printHelp prints the help of a command with its examples.
func printHelp(options kong.HelpOptions, parsed *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, parsed); err != nil {
		return err
	}
	path := ""
	for of := selectedNode(parsed); of != nil && of.Parent != nil; of = of.Parent {
		path = strings.TrimSpace(of.Name + " " + path)
	}
	examples := Examples(path)
	if examples == nil {
		return nil
	}
	_, err := io.WriteString(parsed.Stdout, "\nExamples:\n  $ "+strings.Join(examples, "\n  $ ")+"\n")
	return err
}

//go:embed examples.txt
var exampleLines string

// Examples returns the examples of a command: the lines of examples.txt below
// its name.
func Examples(path string) []string {
	_, lines, _ := strings.Cut("\n"+exampleLines, "\n# "+path+"\n")
	lines, _, _ = strings.Cut(lines, "\n\n")
	if lines = strings.TrimSpace(lines); lines == "" {
		return nil
	}
	return strings.Split(lines, "\n")
}

// Model returns the grammar of all commands, for docs/cli.md.
func Model() (*kong.Application, error) {
	s := &session{stdout: io.Discard, stderr: io.Discard}
	parser, err := s.parser(newGrammar(func(*noun) bool { return true }), func() {})
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}
