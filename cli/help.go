package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/cadastre-dev/cadastre/internal/lists"
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
func (s *session) printHelp(l *line) error {
	h := &help{width: helpWidth}
	if file, ok := s.stdout.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			h.width = min(width, maxHelpWidth)
		}
	}
	switch {
	case l.of == nil:
		h.begin("cadastre <command> [flags]", "One GraphQL API for metadata definitions, resources, capabilities and placement.")
		h.flags(nil)
		h.commands(nil)
	case l.verb == nil && l.serve == nil:
		h.begin("cadastre "+l.of.name+" <command> [flags]", l.of.help)
		h.flags(l.params)
		h.commands(l.of)
	default:
		usage, path, text := "cadastre "+l.of.name, l.of.name, l.of.help
		if l.verb != nil {
			usage, path, text = "cadastre "+l.verb.path(), l.verb.path(), l.verb.help
		}
		h.begin(usage+summary(l.params)+" [flags]", text)
		h.arguments(l.params)
		h.flags(l.params)
		if examples := examplesOf(path); examples != nil {
			h.WriteString("\nExamples:\n  $ " + strings.Join(examples, "\n  $ ") + "\n")
		}
	}
	return s.printf("%s", h.String())
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

// arguments writes the arguments of a command.
func (h *help) arguments(params []*param) {
	var rows [][2]string
	for _, p := range params {
		if p.isArgument {
			rows = append(rows, [2]string{p.form(), p.help})
		}
	}
	if rows != nil {
		h.WriteString("\nArguments:\n")
		h.table(rows)
	}
}

// entry is a line of a help text, below the title of its group.
type entry struct{ group, form, help string }

// entries writes lines by their groups.
func (h *help) entries(all []entry) {
	var groups []string
	rows := map[string][][2]string{}
	for _, one := range all {
		if !slices.Contains(groups, one.group) {
			groups = append(groups, one.group)
		}
		rows[one.group] = append(rows[one.group], [2]string{one.form, one.help})
	}
	for _, group := range groups {
		h.WriteString("\n" + group + "\n")
		h.table(rows[group])
	}
}

// flags writes the flags of a command, first the ones without a group.
func (h *help) flags(params []*param) {
	var first, rest []entry
	for _, p := range slices.Concat(everywhere, params) {
		if p.isArgument || p.isKeyOnly() {
			continue
		}
		one := entry{cmp.Or(p.attributes["group"], "Flags:"), p.formWithShort(), p.helpWithEnv()}
		if p.attributes["group"] != "" {
			rest = append(rest, one)
			continue
		}
		if p.attributes["short"] == "" {
			one.form = "    " + one.form
		}
		first = append(first, one)
	}
	h.entries(append(first, rest...))
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
	var all []entry
	if of != nil {
		path = "cadastre " + of.name + " <command>"
		all = lists.Map(of.verbs, func(v *verb) entry { return entry{of.group, v.path(), v.help} })
	} else {
		all = lists.Map(nouns(), func(of *noun) entry { return entry{of.group, of.name, of.help} })
	}
	h.entries(all)
	_, _ = fmt.Fprintf(h, "\nRun \"%s --help\" for more information on a command.\n", path)
}

// table writes two columns. A first column that is too wide has its own line.
func (h *help) table(rows [][2]string) {
	const indent, between = 2, 4
	most, left := h.width*3/8, 0
	for _, row := range rows {
		if n := len(row[0]); n <= most {
			left = max(left, n)
		}
	}
	pad := strings.Repeat(" ", indent+left+between)
	for _, row := range rows {
		lines := wrap(row[1], h.width-len(pad))
		if len(row[0]) > left {
			lines = slices.Insert(lines, 0, "")
		}
		first := fmt.Sprintf("%*s%-*s%s", indent, "", left+between, row[0], lines[0])
		h.WriteString(strings.TrimRight(first, " ") + "\n")
		for _, next := range lines[1:] {
			h.WriteString(pad + next + "\n")
		}
	}
}

// wrap returns a string in lines of at most some bytes, where words allow it.
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

// order returns 0 for an argument, and 1 for a flag.
func (p *param) order() int {
	if p.isArgument {
		return 0
	}
	return 1
}

// Command is a command, for the reference of commands.
type Command struct {
	Group, Noun, About string // the first word, and the help of all its commands
	Path, Help         string // all words
	Examples           []string
	Parameters         [][2]string // arguments and flags with their help, except the flags of every command
}

// Commands returns all commands in the order of the table.
func Commands() (all []Command) {
	for _, of := range nouns() {
		one := Command{Group: of.group, Noun: of.name, About: of.help, Path: of.name, Help: of.help, Examples: examplesOf(of.name)}
		if of.verbs == nil {
			all = append(all, one)
		}
		for _, v := range of.verbs {
			one.Path, one.Help, one.Examples = v.path(), v.help, examplesOf(v.path())
			params := v.params()
			slices.SortStableFunc(params, func(a, b *param) int { return a.order() - b.order() })
			one.Parameters = lists.Map(params, func(p *param) [2]string { return [2]string{p.formWithShort(), p.help} })
			all = append(all, one)
		}
	}
	return all
}
