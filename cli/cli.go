// Package cli is the command line: its grammar, and the commands that are
// clients of a server. The program passes in a function that runs a server.
//
// commands.txt has all commands. Most commands have no code: parameters.go
// makes their flags from an operation of the package client and the
// descriptions of the schema, and call.go sends the operation and shows the
// columns of the noun. For the other commands, commands.go lists functions.
package cli

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
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
	call           *call   // nil for serve and completion
	wrong          []error // errors of the flags of serve that the parser skipped
}

// newParser returns the parser of `serve`. The parser calls exit after it has
// printed a help text.
func newParser(run *session, exit func()) (*kong.Kong, error) {
	return run.parser(newGrammar(func(*noun) bool { return false }), exit)
}

// parser returns the parser of a grammar.
func (s *session) parser(g *grammar, exit func()) (*kong.Kong, error) {
	return kong.New(g.root.Addr().Interface(), kong.Name("cadastre"), kong.PostBuild(hideKeys), kong.Bind(s),
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
	g := newGrammar(func(one *noun) bool { return one == of })
	parser, err := run.parser(g, func() { exited = true })
	if err != nil {
		return err
	}
	run.parsed, err = parser.Parse(args)
	switch {
	case exited: // the help was printed
		return nil
	case of != nil && of.name == "serve":
		return run.serve(args, err)
	case err != nil:
		return usagef("%w; see `cadastre --help`", err)
	}
	if err := checkNumbers(run.parsed); err != nil {
		return err
	}
	return run.execute(g, of)
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
	asksHelp := slices.Contains(args, "--help") || slices.Contains(args, "-h")
	isAlone := len(args) == i+1
	switch {
	case of.name == "watch" && !asksHelp && (isAlone || args[i+1][0] == '-'):
		args = slices.Insert(slices.Clone(args), i+1, "all")
	case isAlone:
		args = append(slices.Clone(args), "--help")
	}
	return of, args
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

// serve runs the server. If the parser refuses flags, serve notes the error of
// each.
func (s *session) serve(args []string, wrong error) error {
	if wrong != nil {
		parsed, err := s.parseServe(args)
		if err != nil || parsed == nil {
			return errors.Join(append(s.wrong, err)...)
		}
		s.parsed = parsed
	}
	return s.parsed.Run(s)
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
	examples := examplesOf(path)
	if examples == nil {
		return nil
	}
	_, err := io.WriteString(parsed.Stdout, "\nExamples:\n  $ "+strings.Join(examples, "\n  $ ")+"\n")
	return err
}

//go:embed examples.txt
var exampleLines string

// examplesOf returns the examples of a command: the lines of examples.txt below
// its name.
func examplesOf(path string) []string {
	_, lines, _ := strings.Cut("\n"+exampleLines, "\n# "+path+"\n")
	lines, _, _ = strings.Cut(lines, "\n\n")
	if lines = strings.TrimSpace(lines); lines == "" {
		return nil
	}
	return strings.Split(lines, "\n")
}

// Reference returns the reference of all commands for docs/cli.md.
func Reference() (string, error) {
	s := &session{stdout: io.Discard, stderr: io.Discard}
	parser, err := s.parser(newGrammar(func(*noun) bool { return true }), func() {})
	if err != nil {
		return "", err
	}
	commands := parser.Model.Leaves(true)
	uses := map[parameter]int{}
	for _, command := range commands {
		for _, one := range parametersOf(command) {
			uses[one]++
		}
	}
	r := commandPage{common: func(one parameter) bool { return uses[one] > 5 }}
	r.WriteString("\n## Common arguments and flags\n")
	maps.DeleteFunc(uses, func(one parameter, _ int) bool { return !r.common(one) })
	r.list(slices.SortedFunc(maps.Keys(uses), func(a, b parameter) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.help, b.help))
	}))
	group := ""
	for _, of := range parser.Model.Children {
		if of.Group.Title != group {
			group = of.Group.Title
			fmt.Fprintf(&r.Builder, "\n## %s\n", group)
		}
		fmt.Fprintf(&r.Builder, "\n### %s\n\n%s\n", of.Name, of.Help)
		if len(of.Children) == 0 {
			r.command(of.Name, of)
		}
		for _, command := range of.Children {
			fmt.Fprintf(&r.Builder, "\n#### %s %s\n\n%s\n", of.Name, command.Name, command.Help)
			r.command(of.Name+" "+command.Name, command)
		}
	}
	return r.String(), nil
}

// parameter is an argument or a flag of a command, with its help.
type parameter struct{ name, help string }

// parametersOf returns the arguments and flags of a command, except the global
// flags.
func parametersOf(command *kong.Node) (all []parameter) {
	for _, argument := range command.Positional {
		all = append(all, parameter{argument.Summary(), argument.Help})
	}
	for _, flag := range command.Flags {
		all = append(all, parameter{flag.String(), flag.Help})
	}
	return all
}

// commandPage is the text of the reference of commands.
type commandPage struct {
	strings.Builder
	common func(parameter) bool // whether the list of common parameters has it
}

// command writes the examples of a command and its arguments and flags. README
// and other pages explain the flags of serve.
func (r *commandPage) command(path string, command *kong.Node) {
	fmt.Fprintf(&r.Builder, "\n```sh\n%s\n```\n", strings.Join(examplesOf(path), "\n"))
	if path == "serve" {
		return
	}
	var common []string
	var rest []parameter
	for _, one := range parametersOf(command) {
		if r.common(one) {
			common = append(common, "`"+one.name+"`")
		} else {
			rest = append(rest, one)
		}
	}
	r.list(rest)
	if common != nil {
		fmt.Fprintf(&r.Builder, "\nCommon: %s.\n", strings.Join(common, ", "))
	}
}

// list writes a list of parameters.
func (r *commandPage) list(parameters []parameter) {
	if len(parameters) > 0 {
		r.WriteString("\n")
	}
	for _, one := range parameters {
		fmt.Fprintf(&r.Builder, "- `%s`: %s\n", one.name, one.help)
	}
}
