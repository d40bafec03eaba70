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

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// output is the form of an answer, set by the flags of a command.
type output struct {
	form    string   // table, json, yaml, csv or value; empty is the default table
	columns []string // of --columns; empty means the default ones
	quiet   bool     // only the first column, and no notes
}

// isData reports whether the form keeps the structure of objects: JSON or YAML.
func (o output) isData() bool { return (o.form == "json" || o.form == "yaml") && !o.quiet }

// isTable reports whether the answer is a table with the default columns.
func (o output) isTable() bool {
	return (o.form == "" || o.form == "table") && len(o.columns) == 0 && !o.quiet
}

// shows reports whether the output of several objects has the detail column
// with this name.
func (o output) shows(name string) bool {
	if len(o.columns) == 0 {
		return o.isData()
	}
	return slices.ContainsFunc(o.columns, func(chosen string) bool { return strings.EqualFold(chosen, name) })
}

// list shows objects, one per row.
func (c *call) list(columns string, rows []any) error {
	c.clear()
	return c.out.show(c.stdout, columnsOf(columns), rows, false)
}

// one shows an object with all its columns, one per row.
func (c *call) one(columns string, thing any) error {
	c.clear()
	return c.out.show(c.stdout, columnsOf(columns), []any{thing}, true)
}

// show shows objects in the form of the flags. A single one is an object in
// JSON, and a line for each column in a table. For several objects, forms other
// than JSON and YAML omit detail columns.
func (o output) show(w io.Writer, columns []column, things []any, single bool) (err error) {
	if len(o.columns) > 0 {
		if columns, err = chosen(columns, o.columns); err != nil {
			return err
		}
	} else if !single && !o.isData() {
		columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.detail })
	}
	if o.quiet {
		columns = columns[:1]
	}
	objects := lists.Map(things, func(thing any) record {
		return record{columns, lists.Map(columns, func(c column) any { return valueAt(thing, c.path) })}
	})
	var text strings.Builder
	switch {
	case o.isData() && single:
		err = o.showData(&text, objects[0])
	case o.isData():
		err = o.showData(&text, objects)
	case o.quiet || o.form == "value":
		separator := map[bool]string{true: "\n", false: " "}[single && !o.quiet]
		for _, object := range objects {
			text.WriteString(strings.Join(object.cells(false, printable), separator) + "\n")
		}
	case o.form == "csv":
		err = showCSV(&text, columns, objects)
	default:
		showTable(&text, columns, objects, single)
	}
	if err == nil {
		_, err = io.WriteString(w, text.String())
	}
	return err
}

// showData shows a value as JSON or YAML.
func (o output) showData(w io.Writer, value any) error {
	if o.form != "yaml" {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
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

func showCSV(w io.Writer, columns []column, objects []record) error {
	lines := [][]string{lists.Map(columns, func(c column) string { return c.name })}
	for _, object := range objects {
		lines = append(lines, object.cells(false, strings.Clone))
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// showTable shows a row for each object, or a line for each column of a single
// object. Lines have no trailing blanks.
func showTable(to *strings.Builder, columns []column, objects []record, single bool) {
	titles := lists.Map(columns, column.title)
	lines := [][]string{titles}
	for _, object := range objects {
		lines = append(lines, object.cells(true, printable))
	}
	if single {
		values := lines[1]
		lines = [][]string{{"FIELD", "VALUE"}}
		for i, value := range values {
			lines = append(lines, []string{titles[i], value})
		}
	}
	var aligned strings.Builder // never fails
	table := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		_, _ = fmt.Fprintln(table, strings.Join(line, "\t"))
	}
	_ = table.Flush()
	for line := range strings.Lines(aligned.String()) {
		to.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// printable replaces the control characters of a string.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// printf writes to standard output.
func (c *call) printf(format string, args ...any) error {
	c.clear()
	_, err := fmt.Fprintf(c.stdout, format, args...)
	return err
}

// notef writes a note to standard error, unless --quiet is set. It ignores
// errors of writing.
func (c *call) notef(format string, args ...any) {
	if !c.out.quiet {
		c.clear()
		_, _ = fmt.Fprintf(c.stderr, format, args...)
	}
}

// progress returns a progress bar. It appears on a terminal when the work takes
// longer than a second.
func (c *call) progress(what string, total int) *progress {
	var terminal io.Writer = io.Discard
	if file, ok := c.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		terminal = file
	}
	c.clear()
	c.bar = &progress{started: time.Now(), bar: progressbar.NewOptions(total,
		progressbar.OptionSetWriter(terminal), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(false))}
	return c.bar
}

// progress is a progress bar, invisible without a terminal.
type progress struct {
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

// clear removes the progress bar before other output. The bar returns with the
// next step.
func (c *call) clear() {
	if c.bar != nil {
		_ = c.bar.bar.Clear()
	}
}
