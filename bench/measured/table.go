package measured

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/goccy/go-yaml"
)

//go:embed columns.yaml
var columnsFile []byte

// Tables returns the tables of all kinds of lines.
func Tables(lines []Line) string {
	var out strings.Builder
	for _, kind := range []string{Work, Followed, Processes, Lag, Footprint, Stored, Attack, Memory, Verdict, Faults} {
		if table := Table(lines, kind); table != "" {
			fmt.Fprintf(&out, "## %s\n\n%s\n", kind, table)
		}
	}
	return out.String()
}

// Table returns lines of a kind as a Markdown table with the columns of
// columns.yaml; empty without lines.
func Table(lines []Line, kind string) string {
	var columns map[string][][]string
	if err := yaml.Unmarshal(columnsFile, &columns); err != nil {
		panic(err) // a file of this package
	}
	lines = Of(lines, kind)
	rows := make([][]string, len(lines)+1)
	for _, column := range columns[kind] {
		cells, found := []string{cmp.Or(column[0], column[1])}, false
		for _, line := range lines {
			cells = append(cells, line.cell(append(column, "")[1:3]))
			found = found || cells[len(cells)-1] != "-"
		}
		for i := range rows {
			if found {
				rows[i] = append(rows[i], cells[i])
			}
		}
	}
	return Grid(rows)
}

// cell returns the value of a line for a column. A column is the name of a
// figure or field, and a format.
func (l Line) cell(column []string) string {
	name, format := column[0], column[1]
	names := map[string]string{"work": l.Work, "database": l.Database, "server": l.Server,
		"goal": l.Goal, "reached": l.Reached}
	if text := cmp.Or(names[name], l.Notes[name]); text != "" {
		return text
	}
	number, ok := l.Figures[name]
	switch {
	case !ok:
		return "-"
	case format == ",":
		return humanize.Comma(int64(number))
	case format == "MiB":
		return fmt.Sprintf("%.1f", number/(1<<20))
	case format == "":
		return Short(number)
	}
	return fmt.Sprintf(format, number)
}

// Grid returns lines of cells as a Markdown table. The first line is the
// header. Without a second line Grid returns an empty string.
func Grid(lines [][]string) string {
	if len(lines) < 2 {
		return ""
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
	for _, cells := range lines {
		_, _ = fmt.Fprintf(table, "| %s\t|\n", strings.Join(cells, "\t| ")) // a builder never fails
	}
	_ = table.Flush()
	head, rows, _ := strings.Cut(out.String(), "\n")
	return head + "\n|" + strings.Repeat("---|", len(lines[0])) + "\n" + rows
}

// Short returns a number rounded to three digits, but to an integer from 1,000 on
// and to two decimals below 1.
func Short(number float64) string {
	switch {
	case number >= 1000:
		return humanize.Comma(int64(number + 0.5))
	case number >= 100:
		return fmt.Sprintf("%.0f", number)
	case number >= 10:
		return fmt.Sprintf("%.1f", number)
	}
	return fmt.Sprintf("%.2f", number)
}
