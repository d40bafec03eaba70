package cli

import (
	"encoding/json"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
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
