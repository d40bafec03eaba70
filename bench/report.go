package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// report is the outcome of a run.
type report struct {
	Seed      uint64            `json:"seed"`
	Providers int               `json:"providers"`
	Resources int               `json:"resources"`
	Files     int               `json:"definitionFiles"`
	Rounds    int               `json:"rounds"`
	Machine   machine           `json:"machine"`
	Binaries  map[string]string `json:"binaries"` // path by name
	Rows      []row             `json:"rows"`
}

// machine is what the report says of where it was made.
type machine struct {
	System     string `json:"system"`
	Processors int    `json:"processors"`
}

func newReport(o options, w *world, rows []row) *report {
	r := &report{
		Seed: o.seed, Providers: o.size.providers, Resources: o.size.resources, Rounds: o.rounds,
		Machine:  machine{System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU()},
		Binaries: map[string]string{}, Rows: rows,
	}
	for _, d := range w.definitions {
		r.Files += len(d.texts)
	}
	for _, b := range o.binaries {
		r.Binaries[b.name] = b.path
	}
	return r
}

// writeTable writes the report as a Markdown table. With several binaries its last
// column compares the median with that of the first one on the same database.
func (r *report) writeTable(to io.Writer) error {
	_, err := fmt.Fprintf(to, "%d providers, %d resources, %d definition files, %d rounds, seed %d; %s, %d processors\n\n",
		r.Providers, r.Resources, r.Files, r.Rounds, r.Seed, r.Machine.System, r.Machine.Processors)
	if err != nil {
		return err
	}
	heads := []string{"work", "database", "binary", "rows", "median ms", "p99 ms", "server CPU ms", "database CPU ms", "bytes"}
	if len(r.Binaries) > 1 {
		heads = append(heads, "median, of the first")
	}
	rules := make([]string, len(heads))
	for i := range rules {
		rules[i] = "---"
	}
	lines := [][]string{heads, rules}
	first := map[[2]string]float64{} // median of the first binary, by work and database
	for _, row := range r.Rows {
		cells := []string{
			row.Work, row.Database, row.Binary, fmt.Sprint(row.Rows), fmt.Sprintf("%.2f", row.Median), fmt.Sprintf("%.2f", row.P99),
			measured(row.ServerCPU), measured(row.DatabaseCPU), fmt.Sprint(row.Bytes),
		}
		if len(r.Binaries) > 1 {
			of := [2]string{row.Work, row.Database}
			if _, ok := first[of]; !ok {
				first[of] = row.Median
			}
			cells = append(cells, fmt.Sprintf("%.2f", row.Median/first[of]))
		}
		lines = append(lines, cells)
	}
	table := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	for _, cells := range lines {
		if _, err := fmt.Fprintf(table, "| %s\t|\n", strings.Join(cells, "\t| ")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// measured returns a number of milliseconds, or a dash for none.
func measured(milliseconds *float64) string {
	if milliseconds == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *milliseconds)
}

// writeJSON writes the report to a file.
func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
