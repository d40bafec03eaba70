package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
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

// column is a column of a table.
type column struct {
	name string // in JSON and for --columns
	path string // path of the value in the object, member after member
	// detail columns are in JSON and in tables of one object, not in tables of
	// several.
	detail bool
}

// uppers matches a capital letter.
var uppers = regexp.MustCompile(`\p{Lu}`)

// title returns the heading of a column: names in camel case as words.
func (c column) title() string {
	return strings.ToUpper(strings.TrimPrefix(uppers.ReplaceAllString(c.name, " $0"), " "))
}

// columnsOf parses columns: `name`, `name=path.to.it`, and `+name` for a column
// that tables of several objects omit. --quiet shows the first column.
func columnsOf(written string) (columns []column) {
	for _, word := range strings.Fields(written) {
		word, detail := strings.CutPrefix(word, "+")
		name, path, ok := strings.Cut(word, "=")
		if !ok {
			path = name
		}
		columns = append(columns, column{name: name, path: path, detail: detail})
	}
	return columns
}

// chosen returns the columns with these names, in the given order. A name is
// the name in JSON or the heading, ignoring case.
func chosen(columns []column, names []string) (out []column, err error) {
	for _, name := range names {
		i := slices.IndexFunc(columns, func(c column) bool {
			return strings.EqualFold(c.name, name) || strings.EqualFold(c.title(), name)
		})
		if i < 0 {
			known := lists.Map(columns, func(c column) string { return c.name })
			return nil, usagef("--columns: unknown column %q; the columns are %s", name, strings.Join(known, ", "))
		}
		out = append(out, columns[i])
	}
	return out, nil
}

// valueAt returns the part of a JSON value at a path, or nil. For a list it
// returns the list of its members' parts.
func valueAt(value any, path string) any {
	if path == "" {
		return value
	}
	switch of := value.(type) {
	case map[string]any:
		first, rest, _ := strings.Cut(path, ".")
		return valueAt(of[first], rest)
	case []any:
		return lists.Map(of, func(member any) any { return valueAt(member, path) })
	}
	return nil
}

// decoded parses JSON and keeps the digits of numbers.
func decoded(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return value, decoder.Decode(&value)
}

// record is an object of JSON whose members keep their order.
type record struct {
	columns []column
	values  []any
}

// cells returns the values as strings of cell, each changed by clean.
func (r record) cells(people bool, clean func(string) string) []string {
	return lists.Map(r.values, func(value any) string { return clean(cell(value, people)) })
}

// MarshalJSON returns the object.
func (r record) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	text.WriteByte('{')
	for i, of := range r.columns {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := errors.Join(encoder.Encode(of.name), text.WriteByte(':'), encoder.Encode(r.values[i])); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// cell returns a value as a string. For people, it shows times in UTC, and yes
// or no for booleans. Commas separate the members of a list. A member with two
// parts, such as a key and a value, becomes KEY=VALUE.
func cell(value any, people bool) string {
	switch of := value.(type) {
	case nil:
		return ""
	case string:
		if at, err := time.Parse(time.RFC3339Nano, of); err == nil && people {
			return at.UTC().Format(time.DateTime)
		}
		return of
	case bool:
		if people {
			return map[bool]string{true: "yes", false: "no"}[of]
		}
	case json.Number:
		if number, err := of.Float64(); err == nil && strings.ContainsAny(of.String(), "eE") {
			return strconv.FormatFloat(number, 'f', -1, 64)
		}
	case []any:
		return strings.Join(lists.Map(of, func(member any) string { return cell(pair(member), people) }), ", ")
	case map[string]any:
		text, _ := json.Marshal(of) // decoded JSON never fails
		return string(text)
	}
	return fmt.Sprint(value)
}

// pair formats an object with a pair of members as FIRST=SECOND: key and value,
// class and amount, total or use, project and role. An object with a name and at
// most one other member becomes the name. Anything else is returned unchanged.
func pair(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for _, names := range [][2]string{{"key", "value"}, {"name", "value"}, {"resourceClass", "amount"},
		{"resourceClass", "total"}, {"resourceClass", "used"}, {"projectId", "role"}} {
		first, ok := object[names[0]]
		second, both := object[names[1]]
		if ok && both {
			return fmt.Sprintf("%v=%v", first, second)
		}
	}
	if name, ok := object["name"]; ok && len(object) <= 2 {
		return name
	}
	return value
}
