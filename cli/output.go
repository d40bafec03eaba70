package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// output are the flags of every command that shows things.
type output struct {
	Output  string   `enum:",table,json,yaml,csv,value" default:"" short:"o" placeholder:"FORM" group:"Output" help:"Form of the answer: table, json, yaml, csv or value, which is values alone; table when absent."`
	Columns []string `short:"c" sep:"," placeholder:"COLUMN" group:"Output" help:"Only these columns, in this order: those of the table, or any that -o json shows."`
	Quiet   bool     `short:"q" group:"Output" help:"Only the first column, usually a uuid or a name, and no notes."`
}

// isData reports whether the form keeps the structure of things: JSON or YAML.
func (o output) isData() bool { return (o.Output == "json" || o.Output == "yaml") && !o.Quiet }

// isTable reports whether the answer is for people.
func (o output) isTable() bool { return o.Output == "table" && len(o.Columns) == 0 && !o.Quiet }

// shows reports whether a detail column is shown of many things.
func (s *session) shows(name string) bool {
	if len(s.out.Columns) == 0 {
		return s.out.isData()
	}
	return slices.ContainsFunc(s.out.Columns, func(chosen string) bool { return strings.EqualFold(chosen, name) })
}

// list shows things, a row for each.
func list[T any](run *session, columns []column, things []T) error {
	if things == nil {
		things = []T{}
	}
	rows := make([]any, len(things))
	for i, thing := range things {
		row, err := generic(thing)
		if err != nil {
			return err
		}
		rows[i] = row
	}
	return run.out.show(run.stdout, columns, rows, false)
}

// one shows a thing with all its columns, a row for each column.
func one[T any](run *session, columns []column, thing T) error {
	row, err := generic(thing)
	if err != nil {
		return err
	}
	return run.out.show(run.stdout, columns, []any{row}, true)
}

// show shows things in the form that the flags name. A single one is an object in
// JSON and has a line for each column in a table; of many, a table has no details.
func (o output) show(w io.Writer, columns []column, things []any, single bool) error {
	switch {
	case len(o.Columns) > 0:
		picked, err := chosen(columns, o.Columns)
		if err != nil {
			return err
		}
		columns = picked
	case !single && !o.isData():
		columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.detail })
	}
	if o.Quiet {
		columns = columns[:1]
	}
	objects := records(columns, things)
	switch {
	case o.isData() && single:
		return o.showData(w, objects[0])
	case o.isData():
		return o.showData(w, objects)
	case o.Quiet || o.Output == "value" && !single:
		return showLines(w, objects, " ")
	case o.Output == "value":
		return showLines(w, objects, "\n")
	case o.Output == "csv":
		return showCSV(w, columns, objects)
	case single:
		return showSingle(w, columns, objects[0])
	}
	return showTable(w, columns, objects)
}

// showData shows a value as JSON or YAML.
func (o output) showData(w io.Writer, value any) error {
	if o.Output != "yaml" {
		return showJSON(w, value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML(text); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func showJSON[T any](w io.Writer, thing T) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(thing)
}

// showLines shows the values of each object, separated by a text.
func showLines(w io.Writer, objects []record, separator string) error {
	var text strings.Builder
	for _, object := range objects {
		cells := make([]string, len(object.values))
		for i, value := range object.values {
			cells[i] = printable(cell(value, false))
		}
		text.WriteString(strings.Join(cells, separator) + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func showCSV(w io.Writer, columns []column, objects []record) error {
	table := csv.NewWriter(w)
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.name
	}
	err := table.Write(row)
	for _, object := range objects {
		for i, value := range object.values {
			row[i] = cell(value, false)
		}
		if err == nil {
			err = table.Write(row)
		}
	}
	table.Flush()
	if err == nil {
		err = table.Error()
	}
	return err
}

func showTable(w io.Writer, columns []column, objects []record) error {
	var text strings.Builder
	for i, c := range columns {
		if i > 0 {
			text.WriteByte('\t')
		}
		text.WriteString(c.title())
	}
	text.WriteByte('\n')
	for _, object := range objects {
		for i, value := range object.values {
			if i > 0 {
				text.WriteByte('\t')
			}
			text.WriteString(printable(cell(value, true)))
		}
		text.WriteByte('\n')
	}
	return align(w, text.String())
}

// showSingle shows an object, a line for each column.
func showSingle(w io.Writer, columns []column, object record) error {
	text := "FIELD\tVALUE\n"
	for i, c := range columns {
		text += c.title() + "\t" + printable(cell(object.values[i], true)) + "\n"
	}
	return align(w, text)
}

// align writes lines whose cells are separated by tabs, without blanks at their
// ends.
func align(w io.Writer, text string) error {
	var aligned strings.Builder
	table := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, text); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	lines := strings.Split(aligned.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
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

// printf writes what the command is run for.
func (s *session) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(s.stdout, format, args...)
	return err
}

// notef writes a note for people, unless --quiet is set. The command goes on where
// nobody can read it.
func (s *session) notef(format string, args ...any) {
	if !s.out.Quiet {
		_, _ = fmt.Fprintf(s.stderr, format, args...)
	}
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
