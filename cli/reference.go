package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Reference returns what docs/cli.md says of all commands.
func Reference() (string, error) {
	s := &session{stdout: io.Discard, stderr: io.Discard}
	parser, err := s.parser(newGrammar(func(*noun) bool { return true }), func() {})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	group := ""
	for _, of := range parser.Model.Children {
		if of.Group.Title != group {
			group = of.Group.Title
			fmt.Fprintf(&out, "\n## %s\n", group)
		}
		fmt.Fprintf(&out, "\n### %s\n\n%s\n", of.Name, of.Help)
		if len(of.Children) == 0 {
			writeCommand(&out, of.Name, of)
		}
		for _, command := range of.Children {
			fmt.Fprintf(&out, "\n#### %s %s\n\n%s\n", of.Name, command.Name, command.Help)
			writeCommand(&out, of.Name+" "+command.Name, command)
		}
	}
	return out.String(), nil
}

// writeCommand writes the examples of a command and a table of its arguments
// and flags, without those that all have, and without those of serve, which
// README and other pages explain.
func writeCommand(out *strings.Builder, path string, command *kong.Node) {
	heading := "\n| | |\n|---|---|\n"
	row := func(name, help string) {
		escaped := strings.NewReplacer("|", "\\|")
		fmt.Fprintf(out, "%s| `%s` | %s |\n", heading, escaped.Replace(name), escaped.Replace(help))
		heading = ""
	}
	fmt.Fprintf(out, "\n```sh\n%s\n```\n", strings.Join(examplesOf(path), "\n"))
	if path == "serve" {
		return
	}
	for _, argument := range command.Positional {
		row(argument.Summary(), argument.Help)
	}
	for _, flag := range command.Flags {
		row(flag.String(), flag.Help)
	}
}
