package cli

import (
	"context"
	"embed"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// completing is the word with which the scripts of shells ask what a command line
// goes on with: `cadastre __complete resource sh` prints `show`.
const completing = "__complete"

// completionTime is how long a shell waits for what a server knows, and
// maxCompletions how many values are offered.
const (
	completionTime = 2 * time.Second
	maxCompletions = 200
)

//go:embed completion.*
var completions embed.FS

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"The shell: ${enum}."`
}

func (c *completionCommand) Run(run *session) error {
	text, err := completions.ReadFile("completion." + c.Shell)
	if err != nil {
		return err
	}
	return run.printf("%s", text)
}

// complete prints what the last word of a command line goes on with, a line each.
// What cannot be told, for example because no server answers, is left out.
func (s *session) complete(words []string) error {
	parser, err := newParser(s, func() {})
	if err != nil || len(words) == 0 {
		return err
	}
	line := &commandLine{node: parser.Model.Node, flags: map[string]string{}}
	last := words[len(words)-1]
	words = withCommandFirst(parser.Model.Node, words)
	for _, word := range words[:len(words)-1] {
		line.read(word)
	}
	var out strings.Builder
	for _, candidate := range line.candidates(s, last) {
		out.WriteString(candidate + "\n")
	}
	_, err = io.WriteString(s.stdout, out.String())
	return err
}

// commandLine is a command line as far as it was read.
type commandLine struct {
	node      *kong.Node
	arguments []string
	flags     map[string]string
	awaits    *kong.Flag // the flag whose value comes next
}

// read reads a word.
func (l *commandLine) read(word string) {
	if l.awaits != nil {
		l.flags[l.awaits.Name], l.awaits = word, nil
		return
	}
	if strings.HasPrefix(word, "-") && word != "-" {
		name, value, ok := strings.Cut(word, "=")
		flag := l.flag(name)
		switch {
		case flag == nil:
		case ok:
			l.flags[flag.Name] = value
		case !flag.IsBool():
			l.awaits = flag
		}
		return
	}
	for _, child := range l.node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			l.node = child
			return
		}
	}
	l.arguments = append(l.arguments, word)
}

// flag returns the flag that is written so; nil where there is none.
func (l *commandLine) flag(written string) *kong.Flag {
	for _, level := range l.node.AllFlags(true) {
		for _, flag := range level {
			if written == "--"+flag.Name || flag.Short != 0 && written == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

// candidates returns what a word goes on with.
func (l *commandLine) candidates(s *session, word string) []string {
	switch name, value, ok := strings.Cut(word, "="); {
	case l.awaits != nil:
		return beginning(word, l.values(s, l.awaits.Value, word))
	case ok && strings.HasPrefix(word, "--"):
		flag := l.flag(name)
		if flag == nil {
			return nil
		}
		var out []string
		for _, one := range beginning(value, l.values(s, flag.Value, value)) {
			out = append(out, name+"="+one)
		}
		return out
	case strings.HasPrefix(word, "-"):
		return beginning(word, l.flagNames())
	}
	var names []string
	for _, child := range l.node.Children {
		if !child.Hidden && len(l.arguments) == 0 {
			names = append(names, child.Name)
		}
	}
	if n := len(l.node.Positional); n > 0 {
		return beginning(word, l.values(s, l.node.Positional[min(len(l.arguments), n-1)], word))
	}
	return beginning(word, names)
}

// flagNames returns the flags of the command.
func (l *commandLine) flagNames() (names []string) {
	for _, level := range l.node.AllFlags(true) {
		for _, flag := range level {
			names = append(names, "--"+flag.Name)
			if flag.Tag.Negatable != "" {
				names = append(names, "--no-"+flag.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// beginning returns the texts that begin with a word.
func beginning(word string, texts []string) (out []string) {
	for _, text := range texts {
		if strings.HasPrefix(text, word) && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// values returns what a flag or an argument can be: the members of an enum, names
// that the server knows, or contexts.
func (l *commandLine) values(s *session, of *kong.Value, word string) []string {
	kind := of.Tag.Get("of") + of.Tag.Get("ref")
	switch {
	case of.Enum != "":
		return of.EnumSlice()
	case kind == "context" || of.Name == "context":
		saved, err := loadContexts()
		if err != nil {
			return nil
		}
		return slices.Sorted(maps.Keys(saved.Contexts))
	case kind == "":
		return nil
	}
	where, err := l.remote().where()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, completionTime)
	defer cancel()
	asked := &session{ctx: ctx, program: s.program, server: where}
	asked.api = &asking{run: asked}
	names, err := asked.names(kind, word, l.arguments)
	if err != nil {
		return nil
	}
	return names
}

// remote returns the server that the flags of the line name.
func (l *commandLine) remote() remote {
	value := func(name string) string {
		if given, ok := l.flags[name]; ok {
			return given
		}
		if flag := l.flag("--" + name); flag != nil {
			return environment(flag)
		}
		return ""
	}
	return remote{Server: value("server"), Token: value("token"), Context: value("context"), OSCloud: value("os-cloud"), CACert: value("ca-cert"), Timeout: completionTime}
}

// names returns the names of a kind of things that the server knows: those with
// the text in them where there can be very many.
func (s *session) names(kind, word string, arguments []string) ([]string, error) {
	if kind == "capability" {
		if len(arguments) == 0 {
			return nil, nil
		}
		return s.capabilityNames(arguments[0])
	}
	if kind == "consumer" {
		kind = "resource"
	}
	var filter map[string]any
	if part, ok := map[string]string{"trait": "startsWith", "resource": "nameContains", "provider": "search"}[kind]; ok {
		filter = map[string]any{part: word}
	}
	if namesQuery[kind] == "" || kind == "aggregate" {
		return nil, nil
	}
	found, err := s.named(kind, filter, maxCompletions)
	names := lists.Map(found, func(of match) string { return of.name })
	slices.Sort(names)
	return slices.Compact(names), err
}

// capabilityNames returns the names of the capabilities of a resource type.
func (s *session) capabilityNames(resourceType string) (names []string, err error) {
	answer, err := client.ListCapabilities(s.ctx, s.api, resourceType, false, false)
	if err != nil || answer.ResourceType == nil {
		return nil, err
	}
	for _, of := range answer.ResourceType.Capabilities {
		names = append(names, of.Name)
	}
	return names, nil
}
