package cli

import (
	"context"
	"embed"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

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
func (c *call) complete(words []string) error {
	if len(words) == 0 {
		return nil
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	if word == `""` {
		word = "" // as PowerShell 7.3 and later pass it
	}
	c.line = parse(before)
	_ = c.line.finish() // the values before the last word
	_, err := io.WriteString(c.stdout, strings.Join(append(c.candidates(before, word), ""), "\n"))
	return err
}

// candidates returns the candidates for a word that begin with it.
func (c *call) candidates(before []string, word string) (all []string) {
	l := c.line
	name, value, ok := strings.Cut(word, "=")
	last := ""
	if len(before) > 0 && strings.HasPrefix(before[len(before)-1], "-") {
		last = before[len(before)-1]
	}
	flag, _ := l.flagNamed(last)
	written, _ := l.flagNamed(name)
	arguments := slices.DeleteFunc(slices.Clone(l.params), func(p *param) bool { return !p.isArgument })
	switch {
	case flag != nil && !flag.isBool():
		all = c.values(flag, word)
	case ok && written != nil:
		for _, one := range c.values(written, value) {
			all = append(all, name+"="+one)
		}
	case strings.HasPrefix(word, "-"):
		all = l.flagNames()
	case len(arguments) > 0:
		all = c.values(arguments[min(len(l.arguments), len(arguments)-1)], word)
	case l.wrong == nil && l.verb == nil:
		all = l.known()
	}
	return slices.DeleteFunc(all, func(one string) bool { return !strings.HasPrefix(one, word) || one == "" })
}

// values returns the possible values of a flag or an argument: the members of an
// enum, names from the server, or contexts.
func (c *call) values(of *param, word string) []string {
	if members := of.attributes["enum"]; members != "" {
		return strings.Split(members, ",")
	}
	if of.kind == "context" {
		saved, err := loadContexts()
		if err != nil {
			return nil
		}
		return slices.Sorted(maps.Keys(saved.Contexts))
	}
	ctx, cancel := context.WithTimeout(c.ctx, completionTime)
	defer cancel()
	asking := &call{ctx: ctx, program: c.program, line: c.line}
	asking.take(&verb{})
	if of.kind == "" || asking.choose() != nil {
		return nil
	}
	asking.server.timeout = completionTime
	names, err := asking.names(of.kind, word, c.line.arguments)
	if err != nil {
		return nil
	}
	return names
}

// names returns the names of objects of a kind from the server. If the kind has
// a filter for names, it returns only names that match the word. If the word
// may be the beginning of a uuid, it returns uuids instead; of providers it
// returns both.
func (c *call) names(kind, word string, arguments []string) ([]string, error) {
	if kind == "capability" && len(arguments) > 0 {
		found, err := c.query("ListCapabilities", map[string]any{"resourceType": arguments[0],
			"includePrivate": false, "withValues": false})
		return lists.Map(listOf(found, ""), func(of any) string { return wordOf(of, "name") }), err
	}
	if uuidBeginning.MatchString(word) && kind != "provider" {
		found, err := c.named(kind, nil, maxLooked)
		return lists.Map(begunWith(word, found), func(of match) string { return of.uuid }), err
	}
	if kind == "consumer" {
		kind = "resource"
	}
	var filter map[string]any
	if part := nameLists[kind].contains; part != "" {
		filter = map[string]any{part: word}
	}
	found, err := c.named(kind, filter, maxCompletions)
	names := lists.Map(found, func(of match) string { return of.name })
	if uuidBeginning.MatchString(word) {
		names = append(names, lists.Map(found, func(of match) string { return of.uuid })...)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
