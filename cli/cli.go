// Package cli is the command line: its grammar, and the commands that are
// clients of a server. Serving itself is a function that the program hands
// over.
//
// The table in nouns.go has all commands. Most have no code: grammar.go makes their
// flags from an operation of the package client and the descriptions of the schema,
// and call.go sends the operation and shows the columns of the noun. The others are
// structs with the tags of kong, or functions that the table names.
package cli

import (
	"context"
	_ "embed"
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
	// Check returns the options in effect of a server, which it does not start, and
	// everything that is wrong with them; nil checks nothing.
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

// newParser returns the parser of the command line, which calls exit after it
// has printed a help.
func newParser(run *session, exit func()) (*kong.Kong, error) {
	return kong.New(newGrammar(grammar()), kong.Name("cadastre"),
		kong.Description("One GraphQL API for metadata definitions, resources, capabilities and placement."),
		kong.Writers(run.stdout, run.stderr), kong.DefaultEnvars("CADASTRE"),
		kong.PostBuild(onlyTheServer), kong.PostBuild(hideKeys), kong.PostBuild(sayExclusive),
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
	args = withCommandFirst(parser.Model.Node, args)
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
	if c := run.newCall(parsed.Selected()); c != nil {
		return c.execute()
	}
	return parsed.Run(run)
}

// withCommandFirst returns the arguments with the flags before the command after
// it: `--token x resource list` is `resource list --token x`. A `watch` alone is
// `watch all`.
func withCommandFirst(root *kong.Node, args []string) []string {
	n := leadingFlags(root, args)
	flags, rest, words := args[:n], args[n:], 0
	for node := root; words < len(rest); words++ {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool {
			return child.Name == rest[words] || slices.Contains(child.Aliases, rest[words])
		})
		if i < 0 {
			break
		}
		node = node.Children[i]
	}
	asksHelp := slices.Contains(rest, "--help") || slices.Contains(rest, "-h")
	if words == 1 && rest[0] == "watch" && !asksHelp && (len(rest) == 1 || strings.HasPrefix(rest[1], "-")) {
		flags = append([]string{"all"}, flags...)
	}
	return slices.Concat(rest[:words], flags, rest[words:])
}

// leadingFlags returns how many arguments before the command are flags that all
// clients have, and their values.
func leadingFlags(root *kong.Node, args []string) (n int) {
	client := &commandLine{node: root.Children[slices.IndexFunc(root.Children, func(of *kong.Node) bool { return of.Name == "whoami" })]}
	for n < len(args) && strings.HasPrefix(args[n], "-") {
		name, _, hasValue := strings.Cut(args[n], "=")
		if len(name) > 2 && name[1] != '-' {
			name, hasValue = name[:2], true // -ojson
		}
		flag := client.flag(name)
		if flag == nil || flag.Name == "help" || flag.Name == "version" {
			break
		}
		if n++; !flag.IsBool() && !hasValue {
			n++
		}
	}
	return min(n, len(args))
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

//go:embed examples.txt
var exampleLines string

// examplesOf returns the examples of a command: the lines of examples.txt below its
// name.
func examplesOf(node *kong.Node) []string {
	path := ""
	for of := node; of != nil && of.Parent != nil; of = of.Parent {
		path = strings.TrimSpace(of.Name + " " + path)
	}
	_, lines, _ := strings.Cut("\n"+exampleLines, "\n# "+path+"\n")
	lines, _, _ = strings.Cut(lines, "\n\n")
	if lines = strings.TrimSpace(lines); lines == "" {
		return nil
	}
	return strings.Split(lines, "\n")
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
