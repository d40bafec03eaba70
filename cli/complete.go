package cli

import (
	"cmp"
	"context"
	"embed"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// completing is the command that shell scripts call for candidates:
// `cadastre __complete resource sh` prints `show`.
const completing = "__complete"

// completionTime bounds the request to a server, and maxCompletions the number
// of candidates.
const (
	completionTime = 2 * time.Second
	maxCompletions = 200
)

//go:embed completion.*
var completions embed.FS

func printCompletion(c *call) error {
	text, err := completions.ReadFile("completion." + c.text("shell"))
	if err != nil {
		return err
	}
	return c.printf("%s", text)
}

// complete prints the candidates for the last word of a command line, one per
// line. It prints none if the server does not answer.
func (s *session) complete(words []string) error {
	if len(words) == 0 {
		return nil
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	if word == `""` {
		word = "" // as PowerShell 7.3 and later pass it
	}
	of, _ := nounIn(before)
	parser, err := s.parser(newGrammar(func(one *noun) bool { return one == of }), func() {})
	if err != nil {
		return err
	}
	if s.parsed, err = kong.Trace(parser, before); err != nil {
		return err
	}
	l := &line{session: s, of: of, node: parser.Model.Node}
	for _, part := range s.parsed.Path {
		if part.Command != nil {
			l.node = part.Command
		}
		if part.Positional != nil {
			l.arguments = append(l.arguments, part.Positional)
		}
	}
	if err := s.parsed.Reset(); err != nil {
		return nil
	}
	_, _ = s.parsed.Apply() // the values before the last word
	_, err = io.WriteString(s.stdout, strings.Join(append(l.candidates(before, word), ""), "\n"))
	return err
}

// line is a parsed command line without its last word.
type line struct {
	*session
	of        *noun
	node      *kong.Node
	arguments []*kong.Positional
}

// candidates returns the candidates for a word that begin with it.
func (l *line) candidates(before []string, word string) (all []string) {
	name, value, ok := strings.Cut(word, "=")
	last := ""
	if len(before) > 0 && strings.HasPrefix(before[len(before)-1], "-") {
		last = before[len(before)-1]
	}
	switch flag, arguments := l.flag(last), l.node.Positional; {
	case flag != nil && !flag.IsBool():
		all = l.values(flag.Value, "--"+flag.Name, word)
	case ok && l.flag(name) != nil:
		for _, one := range l.values(l.flag(name).Value, "--"+l.flag(name).Name, value) {
			all = append(all, name+"="+one)
		}
	case strings.HasPrefix(word, "-"):
		all = l.flagNames()
	case len(arguments) > 0:
		argument := arguments[min(len(l.arguments), len(arguments)-1)]
		all = l.values(argument, "<"+argument.Name+">", word)
	case l.parsed.Error == nil:
		all = lists.Map(l.node.Children, func(child *kong.Node) string { return child.Name })
	}
	return slices.DeleteFunc(all, func(one string) bool { return !strings.HasPrefix(one, word) || one == "" })
}

// flag returns the flag with this name, such as --output or -o; nil for none.
func (l *line) flag(written string) *kong.Flag {
	for _, flag := range slices.Concat(l.node.AllFlags(true)...) {
		if written == "--"+flag.Name || flag.Short != 0 && written == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// flagNames returns the flags of the command.
func (l *line) flagNames() (names []string) {
	for _, flag := range slices.Concat(l.node.AllFlags(true)...) {
		names = append(names, "--"+flag.Name)
		if flag.Tag.Negatable != "" {
			names = append(names, "--no-"+flag.Name)
		}
	}
	slices.Sort(names)
	return names
}

// values returns the possible values of a flag or an argument with this label:
// the members of an enum, names from the server, or contexts.
func (l *line) values(of *kong.Value, label, word string) []string {
	if of.Enum != "" {
		return of.EnumSlice()
	}
	if l.of == nil {
		return nil
	}
	kind, c := "", l.newCall(cmp.Or(l.of.verbAt(l.node), &verb{of: l.of})) // the flags of the noun before a verb
	for _, p := range c.params {
		if p.label() == label {
			kind = p.kind
		}
	}
	if kind == "context" {
		saved, err := loadContexts()
		if err != nil {
			return nil
		}
		return slices.Sorted(maps.Keys(saved.Contexts))
	}
	ctx, cancel := context.WithTimeout(l.ctx, completionTime)
	defer cancel()
	asking := &session{ctx: ctx, program: l.program}
	remote := remoteOf(c)
	remote.timeout = completionTime
	if kind == "" || asking.choose(remote) != nil {
		return nil
	}
	names, err := asking.names(kind, word, l.arguments)
	if err != nil {
		return nil
	}
	return names
}

// names returns the names of a kind from the server. For a kind with many
// names, it returns only names that contain the word. If the word has 8
// characters or more, it also returns uuids that begin with it.
func (s *session) names(kind, word string, arguments []*kong.Positional) ([]string, error) {
	if kind == "capability" && len(arguments) > 0 {
		resourceType := stringsOf(arguments[0].Target)[0]
		found, err := s.query("ListCapabilities", map[string]any{"resourceType": resourceType,
			"includePrivate": false, "withValues": false})
		return lists.Map(listOf(found, ""), func(of any) string { return wordOf(of, "name") }), err
	}
	if uuidBeginning.MatchString(word) && kind != "provider" {
		found, err := s.named(kind, nil, maxLooked)
		return lists.Map(begunWith(word, found), func(of match) string { return of.uuid }), err
	}
	if kind == "consumer" {
		kind = "resource"
	}
	var filter map[string]any
	if part := nameLists[kind].contains; part != "" {
		filter = map[string]any{part: word}
	}
	found, err := s.named(kind, filter, maxCompletions)
	names := lists.Map(found, func(of match) string { return of.name })
	if uuidBeginning.MatchString(word) {
		names = append(names, lists.Map(found, func(of match) string { return of.uuid })...)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
