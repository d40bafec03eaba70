// Package measured holds measurements: lines of JSON, and tables of them.
package measured

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/goccy/go-yaml"
	"github.com/prometheus/procfs"
)

// Line is one measurement.
type Line struct {
	// run, work, followed, footprint, table, processes, lag, attack, memory, faults, verdict
	Kind     string `json:"kind"`
	Work     string `json:"work,omitempty"`     // or the attack or table
	Database string `json:"database,omitempty"` // empty without one
	Server   string `json:"server,omitempty"`   // name of the binary, or of the peer
	Peer     bool   `json:"peer,omitempty"`
	// Goal is the goal of a work, for the last binary. Reached is whether it
	// reaches the goal (yes, no or unknown) or the code of a refusal. In lines
	// of chaos it is whether all promises hold.
	Goal    string             `json:"goal,omitempty"`
	Reached string             `json:"reached,omitempty"`
	Notes   map[string]string  `json:"notes,omitempty"`
	Figures map[string]float64 `json:"figures"`
	Rates   []float64          `json:"rates,omitempty"` // requests a second of each round
}

// The kinds of lines.
const (
	run       = "run" // the first line of a file
	Work      = "work"
	Followed  = "followed"
	Footprint = "footprint"
	Stored    = "table"
	Processes = "processes"
	Lag       = "lag"
	Attack    = "attack"
	Memory    = "memory"
	Faults    = "faults"
	Verdict   = "verdict" // of the ledger after attacks
)

// The databases that a server can use.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// NewRun returns the first line of a file: the day, the machine and its load.
func NewRun(command string) Line {
	processor, load := machine()
	return Line{Kind: run, Notes: map[string]string{
		"command": command, "day": time.Now().UTC().Format(time.DateOnly), "processor": processor,
		"system": runtime.GOOS + "/" + runtime.GOARCH,
	}, Figures: map[string]float64{"processors": float64(runtime.NumCPU()), "loadBefore": load}}
}

// machine returns the name of the machine's processors, and its load in the last
// minute; zero values if the system does not report them.
func machine() (processor string, load float64) {
	system, err := procfs.NewDefaultFS()
	if err != nil {
		return "", 0
	}
	if processors, err := system.CPUInfo(); err == nil && len(processors) > 0 {
		processor = processors[0].ModelName
	}
	if average, err := system.LoadAvg(); err == nil {
		load = average.Load1
	}
	return processor, load
}

// WriteFile writes lines of JSON to a file.
func WriteFile(path string, lines []Line) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// ReadFile reads lines of JSON.
func ReadFile(path string) (lines []Line, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var line Line
		if err := decoder.Decode(&line); err == io.EOF {
			return lines, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		lines = append(lines, line)
	}
}

// Merge writes lines to a file. They replace earlier lines of the same
// measurement.
func Merge(path string, lines []Line) error {
	old, err := ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, line := range lines {
		same := func(of Line) bool {
			return of.Kind == line.Kind && of.Work == line.Work && of.Database == line.Database
		}
		if i := slices.IndexFunc(old, same); i >= 0 {
			old[i] = line
		} else {
			old = append(old, line)
		}
	}
	return WriteFile(path, old)
}

// Of returns the lines of a kind.
func Of(lines []Line, kind string) (some []Line) {
	for _, line := range lines {
		if line.Kind == kind {
			some = append(some, line)
		}
	}
	return some
}

// Find returns the line of a work on a database for a server, or for the peer
// if server is empty. It returns nil if there is none.
func Find(lines []Line, work, database, server string) *Line {
	for i, line := range lines {
		here := line.Database == database || line.Peer && line.Database == ""
		if line.Kind == Work && line.Work == work && here && line.Peer == (server == "") &&
			(line.Peer || line.Server == server) {
			return &lines[i]
		}
	}
	return nil
}

// Median returns the median of numbers, the lower one of two. It returns 0 for
// an empty list.
func Median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[(len(sorted)-1)/2]
}

// Quantile returns a percentile in milliseconds: the smallest time such that at
// least percent % of all times do not exceed it. It returns 0 for an empty list.
func Quantile(times []time.Duration, percent int) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)*percent+99)/100-1].Seconds() * 1000
}

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
