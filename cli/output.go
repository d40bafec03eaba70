package cli

import (
	"encoding/json"
	"fmt"
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

// show writes things in the form that was asked for: a table with a heading, or
// the JSON of them.
func show[T any](w io.Writer, form output, things []T, heading []string, row func(T) []string) error {
	if form.Output == "json" {
		if things == nil {
			things = []T{}
		}
		return showJSON(w, things)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(heading, "\t"))
	for _, thing := range things {
		cells := row(thing)
		for i, cell := range cells {
			cells[i] = printable(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

func showJSON[T any](w io.Writer, thing T) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(thing)
}

// printable is a text without what would move the cursor of a terminal.
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
