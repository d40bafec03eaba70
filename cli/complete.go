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
	of, _ := nounIn(before)
	g := newGrammar(func(one *noun) bool { return one == of })
	parser, err := s.parser(g, func() {})
	if err != nil {
		return err
	}
	parsed, err := kong.Trace(parser, before)
	if err != nil {
		return err
	}
	l := &line{session: s, grammar: g, parsed: parsed, node: parsed.Model.Node}
	for _, part := range parsed.Path {
		if part.Command != nil {
			l.node = part.Command
		}
		if part.Positional != nil {
			l.arguments = append(l.arguments, part.Positional)
		}
	}
	if err := parsed.Reset(); err != nil {
		return nil
	}
	_, _ = parsed.Apply() // the values before the last word
	_, err = io.WriteString(s.stdout, strings.Join(append(l.candidates(before, word), ""), "\n"))
	return err
}

// line is a parsed command line without its last word.
type line struct {
	*session
	grammar   *grammar
	parsed    *kong.Context
	node      *kong.Node
	arguments []*kong.Positional
}

// candidates returns the candidates for a word.
func (l *line) candidates(before []string, word string) []string {
	if len(before) > 0 && strings.HasPrefix(before[len(before)-1], "-") {
		if flag := l.flag(before[len(before)-1]); flag != nil && !flag.IsBool() {
			return beginning(word, l.values(flag.Value, word))
		}
	}
	name, value, ok := strings.Cut(word, "=")
	switch flag := l.flag(name); {
	case ok && flag != nil:
		values := beginning(value, l.values(flag.Value, value))
		return lists.Map(values, func(one string) string { return name + "=" + one })
	case strings.HasPrefix(word, "-"):
		return beginning(word, l.flagNames())
	case len(l.node.Positional) > 0:
		return beginning(word, l.values(l.node.Positional[min(len(l.arguments), len(l.node.Positional)-1)], word))
	case l.parsed.Error != nil:
		return nil
	}
	return beginning(word, lists.Map(l.node.Children, func(child *kong.Node) string { return child.Name }))
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

// beginning returns the strings that begin with a word.
func beginning(word string, texts []string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return !strings.HasPrefix(text, word) || text == "" })
}

// values returns the possible values of a flag or an argument: the members of
// an enum, names from the server, or contexts.
func (l *line) values(of *kong.Value, word string) []string {
	if of.Enum != "" {
		return of.EnumSlice()
	}
	kind := ""
	c := &call{session: l.session, given: map[string][]string{}}
	for _, p := range slices.Concat(l.grammar.shared, slices.Concat(slices.Collect(maps.Values(l.grammar.params))...)) {
		value := l.grammar.root.FieldByIndex(p.index)
		if value.Addr().Pointer() == of.Target.Addr().Pointer() {
			kind = p.kind
		}
		if slices.Contains(l.grammar.shared, p) && !isAbsent(value) {
			c.given[p.key] = stringsOf(value)
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
