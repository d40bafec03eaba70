package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the outcome of a run.
type report struct {
	Command   string            `json:"command"`
	Day       string            `json:"day"`
	Seed      uint64            `json:"seed"`
	Providers int               `json:"providers"`
	Small     int               `json:"providersOfSmallerWorld"`
	Resources int               `json:"resources"`
	Files     int               `json:"definitionFiles"`
	Rounds    int               `json:"rounds"`
	Machine   machine           `json:"machine"`
	Binaries  map[string]string `json:"binaries"` // version by name
	Missing   []string          `json:"missing,omitempty"`
	Rows      []row             `json:"rows"`
	Goals     []reached         `json:"goals,omitempty"`
	Followed  []followed        `json:"followed,omitempty"`

	Footprints []footprint `json:"footprints,omitempty"`
	Shared     []shared    `json:"shared,omitempty"`
	Tried      []tried     `json:"tried,omitempty"`
}

// machine is what the report says of where it was made.
type machine struct {
	System     string `json:"system"`
	Processors int    `json:"processors"`
	Model      string `json:"model,omitempty"`
	Postgres   string `json:"postgres,omitempty"`
	// Load is how many programs ran or wanted to before the benchmark began, on
	// average of a minute.
	Load float64 `json:"loadBefore"`
}

// reached is what became of a goal on the last of the binaries.
type reached struct {
	Work     string  `json:"work"`
	Database string  `json:"database"`
	Median   float64 `json:"medianMs"`
	Rate     float64 `json:"perSecond"`
	// First is the ratio of the rate to that of the first binary; 0 with one only.
	First float64 `json:"timesTheFirst,omitempty"`
	// Peer is the ratio of the rate to that of the peer, the median of the rounds,
	// and FirstPeer that of the first binary; 0 without the peer.
	PeerName  string  `json:"peer,omitempty"`
	Peer      float64 `json:"timesThePeer,omitempty"`
	FirstPeer float64 `json:"firstTimesThePeer,omitempty"`
	// PeerCPU is the processor time of one request of the peer, its database included,
	// to that of Cadastre.
	PeerCPU float64 `json:"timesThePeersCpu,omitempty"`
	Goal    string  `json:"goal"`
	Reached string  `json:"reached"` // yes, no, or unknown
}

func newReport(b *bench, rows []row) *report {
	r := &report{
		Command: b.command, Day: time.Now().UTC().Format(time.DateOnly),
		Seed: b.seed, Providers: b.size.providers, Small: b.smallProviders, Resources: b.size.resources, Rounds: b.rounds,
		Machine:  machine{System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(), Model: processorModel(), Load: b.loadBefore},
		Binaries: map[string]string{}, Missing: b.missing, Rows: rows,
	}
	for _, d := range b.large.definitions {
		r.Files += len(d.texts)
	}
	for _, program := range b.binaries {
		version, err := exec.Command(program.path, "version").Output()
		if r.Binaries[program.name] = strings.TrimSpace(string(version)); err != nil {
			r.Binaries[program.name] = err.Error()
		}
	}
	if b.cluster != nil {
		r.Machine.Postgres = b.cluster.Version
	}
	for _, work := range b.works {
		if work.goal != (goal{}) {
			r.Goals = append(r.Goals, r.reached(b, work)...)
		}
	}
	return r
}

// reached returns what became of the goal of a work, for each database.
func (r *report) reached(b *bench, work work) []reached {
	var all []reached
	for _, database := range b.databases {
		last, first := r.row(work.name, database, b.binaries[len(b.binaries)-1].name), r.row(work.name, database, b.binaries[0].name)
		peer := r.row(work.name, database, "")
		one := reached{Work: work.name, Database: database, Median: last.Median, Rate: last.PerSecond, Reached: "yes"}
		if len(b.binaries) > 1 {
			one.First = ratio(last, first)
		}
		if peer != nil {
			one.PeerName, one.Peer = peer.Server, ratio(last, peer)
			if own := last.allCPU(); own > 0 {
				one.PeerCPU = peer.allCPU() / own
			}
			if len(b.binaries) > 1 {
				one.FirstPeer = ratio(first, peer)
			}
		}
		one.judge(work, peer != nil)
		if work.goal.times > 0 {
			one.judgeThan(work.goal, last, r.row(work.goal.than, database, last.Server))
		}
		all = append(all, one)
	}
	return all
}

// judge says whether what was measured reaches the goal of the work.
func (one *reached) judge(work work, met bool) {
	var goals []string
	if work.goal.median > 0 {
		goals = append(goals, fmt.Sprintf("%g ms", work.goal.median))
		if one.Median > work.goal.median {
			one.Reached = "no"
		}
	}
	if work.goal.rate > 0 {
		goals = append(goals, fmt.Sprintf("%g/s", work.goal.rate))
		if one.Rate < work.goal.rate {
			one.Reached = "no"
		}
	}
	if work.goal.ratio > 0 {
		also := ""
		if work.goal.cpu > 0 {
			also = fmt.Sprintf(", %gx in CPU", work.goal.cpu)
		}
		goals = append(goals, fmt.Sprintf("%gx %s%s", work.goal.ratio, work.compared.with, also))
		switch {
		case !met && one.Reached == "yes":
			one.Reached = "unknown"
		case met && (one.Peer < work.goal.ratio || one.PeerCPU > 0 && one.PeerCPU < work.goal.cpu):
			one.Reached = "no"
		}
	}
	one.Goal = strings.Join(goals, ", ")
}

// judgeThan says whether a row reaches the goal that another row sets.
func (one *reached) judgeThan(goal goal, row, than *row) {
	one.Goal = fmt.Sprintf("%g times the ms of %q", goal.times, goal.than)
	switch {
	case than == nil:
		one.Reached = "unknown"
	case row.Median > goal.times*than.Median:
		one.Reached = "no"
	}
}

// row returns the row of a work, by its name, on a database by a binary, or by the peer where
// that has no name; nil for none.
func (r *report) row(work, database, server string) *row {
	for i, row := range r.Rows {
		here := row.Database == database || row.Peer && row.Database == ""
		if row.Work == work && row.Peer == (server == "") && here && (row.Peer || row.Server == server) {
			return &r.Rows[i]
		}
	}
	return nil
}

// ratio returns how many times the rate of one is that of another: the median of
// the rounds, in each of which both met the same machine.
func ratio(one, other *row) float64 {
	ratios := make([]float64, min(len(one.Rates), len(other.Rates)))
	for i := range ratios {
		ratios[i] = one.Rates[i] / other.Rates[i]
	}
	return median(ratios)
}

// processorModel returns what the processors call themselves, if that is known.
func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "model name")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimLeft(line, "\t :")
}

// loadAverage returns how many programs run or want to, on average of a minute; 0
// where that is not known.
func loadAverage() (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	if err != nil {
		return 0
	}
	return load
}

// write writes the report as Markdown: what was measured where, the goals, and
// all rows.
func (r *report) write(to io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s, seed %d: %d rounds, %d providers and %d in the smaller world, %d resources, %d definition files; %s, %d processors",
		r.Day, r.Seed, r.Rounds, r.Providers, r.Small, r.Resources, r.Files, r.Machine.System, r.Machine.Processors)
	for _, detail := range []string{r.Machine.Model, r.Machine.Postgres} {
		if detail != "" {
			fmt.Fprintf(&out, ", %s", detail)
		}
	}
	fmt.Fprintln(&out, ".")
	for _, name := range slices.Sorted(maps.Keys(r.Binaries)) {
		if version := r.Binaries[name]; !strings.HasSuffix(version, " development") {
			fmt.Fprintf(&out, "The program %s is %s.\n", name, version)
		}
	}
	for _, missing := range r.Missing {
		fmt.Fprintf(&out, "Not timed: %s.\n", strings.ReplaceAll(missing, "\n", " "))
	}
	fmt.Fprintln(&out)
	if len(r.Goals) > 0 {
		if err := writeTable(&out, r.goalTable()); err != nil {
			return err
		}
		fmt.Fprintln(&out)
	}
	if len(r.Rows) > 0 {
		if err := writeTable(&out, r.rowTable()); err != nil {
			return err
		}
	}
	for _, table := range r.otherTables() {
		if len(table) == 1 {
			continue
		}
		fmt.Fprintln(&out)
		if err := writeTable(&out, table); err != nil {
			return err
		}
	}
	_, err := out.WriteTo(to)
	return err
}

// goalTable returns the table of what is to be reached.
func (r *report) goalTable() [][]string {
	lines := [][]string{{"work", "database", "median ms", "requests/s", "times the first binary", "peer", "first binary, times the peer", "times the peer", "at least", "reached"}}
	for _, one := range r.Goals {
		lines = append(lines, []string{
			one.Work, one.Database, fmt.Sprintf("%.2f", one.Median), fmt.Sprintf("%.1f", one.Rate), orDash("%.2f", one.First),
			one.PeerName, orDash("%.2f", one.FirstPeer), orDash("%.2f", one.Peer), one.Goal, one.Reached,
		})
	}
	return lines
}

// rowTable returns the table of what was measured.
func (r *report) rowTable() [][]string {
	lines := [][]string{{"work", "database", "server", "rows", "requests/s", "median ms", "p99 ms", "server CPU ms", "database CPU ms", "bytes", "allocations", "allocated kB", "statements"}}
	for _, row := range r.Rows {
		kilobytes := row.AllocatedBytes
		if kilobytes != nil {
			kilobytes = new(*kilobytes / 1000)
		}
		lines = append(lines, []string{
			row.Work, row.Database, row.Server, fmt.Sprint(row.Rows), fmt.Sprintf("%.1f", row.PerSecond),
			fmt.Sprintf("%.2f", row.Median), fmt.Sprintf("%.2f", row.P99), measured("%.2f", row.ServerCPU), measured("%.2f", row.DatabaseCPU),
			fmt.Sprint(row.Bytes), measured("%.0f", row.Allocations), measured("%.1f", kilobytes), measured("%.2f", row.Statements),
		})
	}
	return lines
}

// followedTable returns the table of commits beside subscriptions.
func (r *report) followedTable() [][]string {
	lines := [][]string{{"database", "server", "subscriptions", "commits/s wanted", "alone", "beside", "median ms alone", "beside", "times", "p99 ms alone", "beside",
		"events/s", "lag median ms", "lag p99 ms", "MiB without", "MiB idle", "MiB at most"}}
	for _, one := range r.Followed {
		lines = append(lines, []string{
			one.Database, one.Server, fmt.Sprint(one.Subscriptions), orDash("%.0f", float64(one.Wanted)), fmt.Sprintf("%.1f", one.Alone.PerSecond), fmt.Sprintf("%.1f", one.Beside.PerSecond),
			fmt.Sprintf("%.2f", one.Alone.Median), fmt.Sprintf("%.2f", one.Beside.Median), fmt.Sprintf("%.2f", one.Slower),
			fmt.Sprintf("%.2f", one.Alone.P99), fmt.Sprintf("%.2f", one.Beside.P99),
			fmt.Sprintf("%.0f", one.Events), fmt.Sprintf("%.1f", one.LagMedian), fmt.Sprintf("%.1f", one.LagP99),
			fmt.Sprintf("%.0f", one.MemoryBefore), fmt.Sprintf("%.0f", one.MemoryIdle), fmt.Sprintf("%.0f", one.MemoryMost),
		})
	}
	return lines
}

// footprintTable returns the table of what servers take.
func (r *report) footprintTable() [][]string {
	lines := [][]string{{"database", "server", "providers", "resources", "ready in ms", "empty", "heap MiB", "empty", "bytes a provider-class pair", "resident MiB", "database MiB"}}
	for _, one := range r.Footprints {
		lines = append(lines, []string{
			one.Database, one.Server, thousands(r.Providers), thousands(r.Resources), fmt.Sprintf("%.0f", one.Start), fmt.Sprintf("%.0f", one.StartEmpty),
			mebibytes(one.Heap), mebibytes(one.HeapEmpty), fmt.Sprintf("%.0f", one.perPair()), mebibytes(one.Resident), mebibytes(float64(one.Stored)),
		})
	}
	return lines
}

// otherTables returns the tables of what is no work.
func (r *report) otherTables() [][][]string {
	return [][][]string{r.followedTable(), r.sharedTable(), r.lagTable(), r.triedTable(), r.footprintTable()}
}

// sharedTable returns the table of works on several processes.
func (r *report) sharedTable() [][]string {
	lines := [][]string{{"work", "processes", "clients", "requests/s", "median ms", "p99 ms", "servers' CPU ms", "database CPU ms"}}
	if len(r.Shared) == 0 {
		return lines
	}
	for i := range r.Shared[0].Works {
		for _, one := range r.Shared {
			row := one.Works[i]
			name, _, _ := strings.Cut(row.Work, ", 32 clients")
			lines = append(lines, []string{
				name, fmt.Sprint(one.Processes), fmt.Sprint(one.Clients), fmt.Sprintf("%.0f", row.PerSecond), fmt.Sprintf("%.2f", row.Median),
				fmt.Sprintf("%.2f", row.P99), fmt.Sprintf("%.2f", row.ServerCPU), fmt.Sprintf("%.2f", row.DatabaseCPU),
			})
		}
	}
	return lines
}

// lagTable returns the table of what several processes show of each other.
func (r *report) lagTable() [][]string {
	lines := [][]string{{"processes", "lag median ms", "p99", "beside claims, median ms", "p99", "claims tried in races", "that fit", "served", "over-allocated inventories"}}
	for _, one := range r.Shared {
		lines = append(lines, []string{
			fmt.Sprint(one.Processes), fmt.Sprintf("%.2f", one.Lag.Median), fmt.Sprintf("%.2f", one.Lag.P99), fmt.Sprintf("%.2f", one.LagBeside.Median), fmt.Sprintf("%.2f", one.LagBeside.P99),
			fmt.Sprint(one.Tried), fmt.Sprint(one.Fit), fmt.Sprint(one.Claimed), fmt.Sprint(one.Overallocated),
		})
	}
	return lines
}

// triedTable returns the table of a mixed load under settings.
func (r *report) triedTable() [][]string {
	lines := [][]string{{"database", "settings", "requests/s", "median ms", "p99 ms", "server CPU ms", "database CPU ms", "collections/s", "resident MiB at most"}}
	for _, one := range r.Tried {
		database := "-"
		if one.Database == postgres {
			database = fmt.Sprintf("%.2f", one.DatabaseCPU)
		}
		lines = append(lines, []string{
			one.Database, one.Settings, fmt.Sprintf("%.0f", one.PerSecond), fmt.Sprintf("%.2f", one.Median), fmt.Sprintf("%.2f", one.P99),
			fmt.Sprintf("%.2f", one.ServerCPU), database, fmt.Sprintf("%.1f", one.Cycles), mebibytes(one.Resident),
		})
	}
	return lines
}

func mebibytes(bytes float64) string { return fmt.Sprintf("%.1f", bytes/(1<<20)) }

// writeTable writes lines of cells as a Markdown table; the first are the heads.
func writeTable(to io.Writer, lines [][]string) error {
	rule := make([]string, len(lines[0]))
	for i := range rule {
		rule[i] = "---"
	}
	table := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	for _, cells := range slices.Insert(slices.Clone(lines), 1, rule) {
		if _, err := fmt.Fprintf(table, "| %s\t|\n", strings.Join(cells, "\t| ")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// measured returns a number, or a dash for none.
func measured(format string, number *float64) string {
	if number == nil {
		return "-"
	}
	return fmt.Sprintf(format, *number)
}

// orDash returns a number, or a dash for 0.
func orDash(format string, number float64) string {
	if number == 0 {
		return "-"
	}
	return fmt.Sprintf(format, number)
}

// writeJSON writes the report to a file.
func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
