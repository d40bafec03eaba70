package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// output is the flag of every command that shows things: a table for people, or
// JSON for programs.
type output struct {
	Output string `enum:"table,json" default:"table" short:"o" help:"Form of the answer: ${enum}."`
}

// show writes things in the form that the flag names: a table with a heading,
// or JSON.
func show[T any](w io.Writer, form output, things []T, heading []string, row func(T) []string) error {
	if form.Output == "json" {
		if things == nil {
			things = []T{}
		}
		return showJSON(w, things)
	}
	text := strings.Join(heading, "\t") + "\n"
	for _, thing := range things {
		cells := row(thing)
		for i, cell := range cells {
			cells[i] = printable(cell)
		}
		text += strings.Join(cells, "\t") + "\n"
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, text); err != nil {
		return err
	}
	return table.Flush()
}

func showJSON[T any](w io.Writer, thing T) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(thing)
}

// printable returns a text without the characters that control a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// progress returns a bar that shows how much of the work is done: on a
// terminal, when it takes longer than a second.
func (s *session) progress(what string, total int) *progress {
	var terminal io.Writer = io.Discard
	if file, ok := s.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		terminal = file
	}
	return &progress{run: s, started: time.Now(), bar: progressbar.NewOptions(total, progressbar.OptionSetWriter(terminal),
		progressbar.OptionSetDescription(what), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(false))}
}

// progress is a bar, on a terminal or on nothing.
type progress struct {
	run     *session
	bar     *progressbar.ProgressBar
	started time.Time
	pending int
}

func (p *progress) add(n int) {
	p.pending += n
	if time.Since(p.started) >= time.Second {
		_ = p.bar.Add(p.pending)
		p.pending = 0
	}
}

// notef writes a line above the bar.
func (p *progress) notef(format string, args ...any) {
	p.end()
	p.run.notef(format, args...)
}

func (p *progress) end() { _ = p.bar.Clear() }
