package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/cli"
)

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

// reference is the text of the reference of commands.
type reference struct {
	strings.Builder
	common map[parameter]bool // the parameters of more than five commands
}

// referenceOf returns the reference of all commands.
func referenceOf(grammar *kong.Application) string {
	uses := map[parameter]int{}
	for _, command := range grammar.Leaves(true) {
		for _, one := range parametersOf(command) {
			uses[one]++
		}
	}
	r := reference{common: map[parameter]bool{}}
	for one, n := range uses {
		if n > 5 {
			r.common[one] = true
		}
	}
	r.WriteString("\n## Common arguments and flags\n")
	r.list(slices.SortedFunc(maps.Keys(r.common), func(a, b parameter) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.help, b.help))
	}))
	group := ""
	for _, of := range grammar.Children {
		if of.Group.Title != group {
			group = of.Group.Title
			fmt.Fprintf(&r.Builder, "\n## %s\n", group)
		}
		fmt.Fprintf(&r.Builder, "\n### %s\n\n%s\n", of.Name, of.Help)
		if len(of.Children) == 0 {
			r.command(of.Name, of)
		}
		for _, command := range of.Children {
			path := of.Name + " " + command.Name
			fmt.Fprintf(&r.Builder, "\n#### %s\n\n%s\n", path, command.Help)
			r.command(path, command)
		}
	}
	return r.String()
}

// command writes the examples of a command and its arguments and flags. README
// and other pages explain the flags of serve.
func (r *reference) command(path string, command *kong.Node) {
	fmt.Fprintf(&r.Builder, "\n```sh\n%s\n```\n", strings.Join(cli.Examples(path), "\n"))
	if path == "serve" {
		return
	}
	var common []string
	var rest []parameter
	for _, one := range parametersOf(command) {
		if r.common[one] {
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
func (r *reference) list(parameters []parameter) {
	if len(parameters) > 0 {
		r.WriteString("\n")
	}
	for _, one := range parameters {
		fmt.Fprintf(&r.Builder, "- `%s`: %s\n", one.name, one.help)
	}
}
