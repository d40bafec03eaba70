package cli

import (
	"context"
	"embed"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"golang.org/x/term"
)

// The widths of a help text in columns: without a terminal, and at most.
const (
	helpWidth    = 80
	maxHelpWidth = 120
)

// help is a help text that is being written.
type help struct {
	strings.Builder
	width int
}

// printHelp prints the help of the command that a line names, with examples.
func (c *call) printHelp(l *line) error {
	h := &help{width: helpWidth}
	if file, ok := c.stdout.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			h.width = min(width, maxHelpWidth)
		}
	}
	switch {
	case l.of == nil:
		h.begin("cadastre <command> [flags]",
			"One GraphQL API for metadata definitions, resources, capabilities and placement.")
		h.parameters(nil)
		h.commands(nil)
	case l.verb == nil:
		h.begin("cadastre "+l.of.name+" <command> [flags]", l.of.help)
		h.parameters(l.params)
		h.commands(l.of)
	default:
		h.begin("cadastre "+l.verb.path()+summary(l.params)+" [flags]", l.verb.help)
		h.parameters(l.params)
		if examples := examplesOf(l.verb.path()); examples != nil {
			h.WriteString("\nExamples:\n  $ " + strings.Join(examples, "\n  $ ") + "\n")
		}
	}
	return c.printf("%s", h.String())
}

// summary returns the arguments of a command, and the flags that it needs.
func summary(params []*param) (text string) {
	for _, p := range params {
		if p.isArgument || p.isRequiredAlone() {
			text += " " + p.form()
		}
	}
	return text
}

func (h *help) begin(usage, text string) {
	_, _ = fmt.Fprintf(h, "Usage: %s\n\n%s\n", usage, strings.Join(wrap(text, h.width), "\n"))
}

// entry is a line of a help text, below the title of its group.
type entry struct{ group, form, help string }

// entries writes lines below the titles of their groups. A group is at the
// place of its first line.
func (h *help) entries(all []entry) {
	rows := lists.Group(all, func(one entry) (string, entry) { return one.group, one })
	for _, one := range all {
		if of := rows[one.group]; of != nil {
			h.WriteString("\n" + one.group + "\n")
			h.table(of)
			delete(rows, one.group)
		}
	}
}

// parameters writes the arguments of a command, then its flags without a group,
// then its other flags.
func (h *help) parameters(params []*param) {
	var arguments, flags, grouped []entry
	for _, p := range slices.Concat(everywhere, params) {
		one := entry{p.attributes["group"], p.formWithShort(), p.helpWithEnv()}
		switch {
		case p.isArgument:
			one.group = "Arguments:"
			arguments = append(arguments, one)
		case p.isKeyOnly():
		case one.group != "":
			grouped = append(grouped, one)
		default:
			one.group = "Flags:"
			if p.attributes["short"] == "" {
				one.form = "    " + one.form
			}
			flags = append(flags, one)
		}
	}
	h.entries(slices.Concat(arguments, flags, grouped))
}

// helpWithEnv returns the help of a flag with its environment variable.
func (p *param) helpWithEnv() string {
	if env := p.attributes["env"]; env != "" {
		return strings.TrimSuffix(p.help, ".") + " ($" + env + ")."
	}
	return p.help
}

// commands writes the nouns, or the verbs of a noun.
func (h *help) commands(of *noun) {
	path := "cadastre <command>"
	all := lists.Map(nouns(), func(of *noun) entry { return entry{of.group, of.name, of.help} })
	if of != nil {
		path = "cadastre " + of.name + " <command>"
		all = lists.Map(of.verbs, func(v *verb) entry { return entry{of.group, v.path(), v.help} })
	}
	h.entries(all)
	_, _ = fmt.Fprintf(h, "\nRun \"%s --help\" for more information on a command.\n", path)
}

// table writes two columns. A first column that is too wide has its own line.
func (h *help) table(rows []entry) {
	const indent, between = 2, 4
	most, left := h.width*3/8, 0
	for _, row := range rows {
		if n := len(row.form); n <= most {
			left = max(left, n)
		}
	}
	pad := strings.Repeat(" ", indent+left+between)
	for _, row := range rows {
		lines := wrap(row.help, h.width-len(pad))
		if len(row.form) > left {
			lines = slices.Insert(lines, 0, "")
		}
		first := fmt.Sprintf("%*s%-*s%s", indent, "", left+between, row.form, lines[0])
		h.WriteString(strings.TrimRight(first, " ") + "\n")
		for _, next := range lines[1:] {
			h.WriteString(pad + next + "\n")
		}
	}
}

// wrap returns a string in lines of at most width bytes, where words allow it.
func wrap(text string, width int) (lines []string) {
	at := ""
	for _, word := range strings.Fields(text) {
		if at != "" && len(at)+1+len(word) > width {
			lines, at = append(lines, at), ""
		}
		at = strings.TrimPrefix(at+" "+word, " ")
	}
	return append(lines, at)
}

//go:embed examples.txt
var exampleLines string

// examplesOf returns the examples of a command: the lines of examples.txt below
// its name.
func examplesOf(path string) []string {
	_, lines, _ := strings.Cut("\n"+exampleLines, "\n# "+path+"\n")
	lines, _, _ = strings.Cut(lines, "\n\n")
	if lines = strings.TrimSpace(lines); lines == "" {
		return nil
	}
	return strings.Split(lines, "\n")
}

// Command is a command, for the reference of commands.
type Command struct {
	Group, Noun, About string // its group, its first word, and the help of that noun
	Path, Help         string // all words
	Examples           []string
	Parameters         [][2]string // arguments and flags with their help, except the flags that its noun shares
}

// Commands returns all commands in the order of the table.
func Commands() (all []Command) {
	for _, of := range nouns() {
		for _, v := range of.verbs {
			isFlag := lists.Group(v.params(), func(p *param) (bool, [2]string) {
				return !p.isArgument, [2]string{p.formWithShort(), p.help}
			})
			all = append(all, Command{Group: of.group, Noun: of.name, About: of.help, Path: v.path(), Help: v.help,
				Examples: examplesOf(v.path()), Parameters: slices.Concat(isFlag[false], isFlag[true])})
		}
	}
	return all
}

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
