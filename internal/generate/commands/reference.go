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
	common map[string]string // descriptions of common parameters by their labels
}

// referenceOf returns the reference of all commands. It describes a parameter
// of more than two commands once, before all commands. If several have the same
// label, it describes the most frequent one there.
func referenceOf(commands []cli.Command) string {
	r, uses := reference{common: map[string]string{}}, map[[2]string]int{}
	for _, command := range commands {
		for _, one := range command.Parameters {
			if uses[one]++; uses[one] > max(2, uses[[2]string{one[0], r.common[one[0]]}]) {
				r.common[one[0]] = one[1]
			}
		}
	}
	r.WriteString("\n## Common arguments and flags\n\n")
	for _, label := range slices.Sorted(maps.Keys(r.common)) {
		fmt.Fprintf(&r.Builder, "- `%s`: %s\n", label, r.common[label])
	}
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

// command writes the examples of a command and its arguments and flags. README
// and other pages explain the flags of serve.
func (r *reference) command(of cli.Command) {
	fmt.Fprintf(&r.Builder, "\n```sh\n%s\n```\n", strings.Join(of.Examples, "\n"))
	if of.Path == "serve" {
		return
	}
	common, rest := []string{}, [][2]string{}
	for _, one := range of.Parameters {
		if r.common[one[0]] == one[1] {
			common = append(common, "`"+one[0]+"`")
		} else {
			rest = append(rest, one)
		}
	}
	blank := "\n"
	for _, one := range rest {
		fmt.Fprintf(&r.Builder, "%s- `%s`: %s\n", blank, one[0], one[1])
		blank = ""
	}
	if len(common) > 0 {
		fmt.Fprintf(&r.Builder, "\n[Common](#common-arguments-and-flags): %s.\n", strings.Join(common, ", "))
	}
}
