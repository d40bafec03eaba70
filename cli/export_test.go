package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// Command is a command of the grammar, for tests.
type Command struct {
	Path     string // its words
	Help     string
	Group    string
	Examples []string
	Node     *kong.Node
}

// Commands returns all commands in the order of the grammar.
func Commands() ([]Command, error) {
	parser, err := newParser(&session{stdout: &strings.Builder{}, stderr: &strings.Builder{}}, func() {})
	if err != nil {
		return nil, err
	}
	var all []Command
	var walk func(node *kong.Node, path string)
	walk = func(node *kong.Node, path string) {
		if node.Leaf() && !node.Hidden {
			command := Command{Path: path, Help: node.Help, Examples: examplesOf(node), Node: node}
			for of := node; of != nil && command.Group == ""; of = of.Parent {
				if of.Group != nil {
					command.Group = of.Group.Title
				}
			}
			all = append(all, command)
		}
		for _, child := range node.Children {
			walk(child, strings.TrimSpace(path+" "+child.Name))
		}
	}
	walk(parser.Model.Node, "")
	return all, nil
}
