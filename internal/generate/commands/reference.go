package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/cli"
)

// reference is the text of the reference of commands.
type reference struct {
	strings.Builder
	common map[[2]string]bool // explained once, before all commands
}

// referenceOf returns the reference of all commands.
func referenceOf(commands []cli.Command) string {
	r := reference{common: commonOf(commands)}
	r.WriteString("\n## Common arguments and flags\n")
	r.list(slices.SortedFunc(maps.Keys(r.common), compare))
	group, noun := "", ""
	for _, of := range commands {
		if of.Group != group {
			group = of.Group
			fmt.Fprintf(&r.Builder, "\n## %s\n", group)
		}
		if of.Noun != noun {
			noun = of.Noun
			fmt.Fprintf(&r.Builder, "\n### %s\n\n%s\n", noun, of.About)
		}
		if of.Path != noun {
			fmt.Fprintf(&r.Builder, "\n#### %s\n\n%s\n", of.Path, of.Help)
		}
		r.command(of)
	}
	return r.String()
}

// commonOf returns the parameters of more than two commands. Of several with one
// label but different descriptions it returns the most frequent one, so that a
// label has one meaning.
func commonOf(commands []cli.Command) map[[2]string]bool {
	uses := map[[2]string]int{}
	for _, command := range commands {
		for _, one := range command.Parameters {
			uses[one]++
		}
	}
	best := map[string][2]string{}
	for _, one := range slices.SortedFunc(maps.Keys(uses), compare) {
		if label := one[0]; uses[one] > max(2, uses[best[label]]) {
			best[label] = one
		}
	}
	common := map[[2]string]bool{}
	for _, one := range best {
		common[one] = true
	}
	return common
}

func compare(a, b [2]string) int { return slices.Compare(a[:], b[:]) }

// command writes the examples of a command and its arguments and flags. README
// and other pages explain the flags of serve.
func (r *reference) command(of cli.Command) {
	fmt.Fprintf(&r.Builder, "\n```sh\n%s\n```\n", strings.Join(of.Examples, "\n"))
	if of.Path == "serve" {
		return
	}
	var common []string
	var rest [][2]string
	for _, one := range of.Parameters {
		if r.common[one] {
			common = append(common, "`"+one[0]+"`")
		} else {
			rest = append(rest, one)
		}
	}
	r.list(rest)
	if common != nil {
		fmt.Fprintf(&r.Builder, "\n[Common](#common-arguments-and-flags): %s.\n", strings.Join(common, ", "))
	}
}

// list writes a list of parameters.
func (r *reference) list(parameters [][2]string) {
	if len(parameters) > 0 {
		r.WriteString("\n")
	}
	for _, one := range parameters {
		fmt.Fprintf(&r.Builder, "- `%s`: %s\n", one[0], one[1])
	}
}
