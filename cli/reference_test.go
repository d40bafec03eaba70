package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/cli"
)

// generatedBelow is the line of docs/cli.md below which the reference is made.
const generatedBelow = "<!-- What follows is made by: go test ./cli -run TestReference -update -->\n"

// TestReference holds that the reference of commands in docs/cli.md is that of the
// grammar.
func TestReference(t *testing.T) {
	const page = "../docs/cli.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	written, _, ok := strings.Cut(string(text), generatedBelow)
	if !ok {
		t.Fatalf("%s has no line %s", page, generatedBelow)
	}
	want := written + generatedBelow + reference(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is not that of the grammar: go test ./cli -run TestReference -update", page)
	}
}

// reference returns what docs/cli.md says of the commands.
func reference(t *testing.T) string {
	all, err := cli.Commands()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	group, noun := "", ""
	for _, command := range all {
		if command.Group != group {
			group = command.Group
			fmt.Fprintf(&out, "\n## %s\n", group)
		}
		words := strings.Fields(command.Path)
		if words[0] != noun {
			noun = words[0]
			fmt.Fprintf(&out, "\n### %s\n", noun)
			if len(words) > 1 {
				fmt.Fprintf(&out, "\n%s\n", command.Node.Parent.Help)
			}
		}
		if len(words) > 1 {
			fmt.Fprintf(&out, "\n#### %s\n", command.Path)
		}
		fmt.Fprintf(&out, "\n%s\n\n```sh\n%s\n```\n", command.Help, strings.Join(command.Examples, "\n"))
		if noun != "serve" { // README and other pages explain its flags
			out.WriteString(flagTable(command.Node))
		}
	}
	return out.String()
}

// flagTable returns a table of the arguments and flags of a command, without those
// that all have.
func flagTable(node *kong.Node) string {
	var out strings.Builder
	row := func(name, help string) {
		if out.Len() == 0 {
			out.WriteString("\n| | |\n|---|---|\n")
		}
		fmt.Fprintf(&out, "| `%s` | %s |\n", name, strings.ReplaceAll(help, "|", "\\|"))
	}
	for _, argument := range node.Positional {
		row(strings.ReplaceAll(argument.Summary(), "|", "\\|"), argument.Help)
	}
	for _, flag := range node.Flags {
		if flag.Hidden || flag.Group != nil && (flag.Group.Key == "Server" || flag.Group.Key == "Output") {
			continue
		}
		row(strings.ReplaceAll(flag.String(), "|", "\\|"), flag.Help)
	}
	return out.String()
}
