package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is what a run found.
type report struct {
	Date       time.Time     `json:"date"`
	Machine    string        `json:"machine"`
	Processors int           `json:"processors"`
	World      size          `json:"world"`
	Memory     []memoryAfter `json:"memory"`
	Limit      int64         `json:"memoryLimit"`
	Flags      []string      `json:"flags,omitempty"`
	Rows       []*row        `json:"attacks"`
	Verdicts   []judged      `json:"verdicts"` // after attacks
	Endured    []*endured    `json:"faults"`
	Skipped    []string      `json:"skipped,omitempty"`
	Unmeasured []string      `json:"unmeasured,omitempty"` // attacks, and why
	Contained  bool          `json:"contained"`            // whether the system ends servers that take more memory
	Rounds     int           `json:"rounds"`
	Round      time.Duration `json:"round"`
}

// judged is what the claims on a database came to.
type judged struct {
	Database string `json:"database"`
	verdict
}

func newReport(o options) *report {
	return &report{Date: time.Now().UTC(), Machine: processorModel(), Processors: runtime.NumCPU(), World: o.size, Limit: o.memory, Flags: o.flags, Rounds: o.rounds, Round: o.round}
}

// processorModel returns what the machine's processors are called, if it says so.
func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// load returns how many processes were ready to run in the last minute; 0 where
// the system does not say.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	number, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return number
}

// failures returns what must not be, of which is that others are told 503 for longer
// than a time; with strict also what took too long.
func (r *report) failures(strict bool, unavailable time.Duration) []string {
	all := slices.Clone(r.Unmeasured)
	for _, row := range r.Rows {
		all = append(all, row.failures(r.Limit, strict, unavailable)...)
	}
	for _, of := range r.Memory {
		if !of.holds() {
			all = append(all, fmt.Sprintf("%s: memory is %d MiB after %.0f s, %d before", of.Database, of.After>>20, of.Seconds, of.Before>>20))
		}
	}
	for _, of := range r.Verdicts {
		all = append(all, of.failed(of.Database)...)
	}
	for _, of := range r.Endured {
		all = append(all, of.Verdict.failed(of.Database)...)
		if len(of.Internal) > 0 {
			all = append(all, fmt.Sprintf("%s: %d INTERNAL, such as %s", of.Database, len(of.Internal), of.Internal[0]))
		}
		if of.Attacks["INTERNAL"] > 0 {
			all = append(all, fmt.Sprintf("%s: %d INTERNAL of attackers", of.Database, of.Attacks["INTERNAL"]))
		}
	}
	return all
}

// failures returns what must not be of one attack.
func (r *row) failures(limit int64, strict bool, unavailable time.Duration) []string {
	var all []string
	fails := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf("%s, %s: ", r.Database, r.Attack)+fmt.Sprintf(format, args...))
		}
	}
	fails(r.Unavailable > unavailable.Seconds(), "others were told 503 for %.1f s", r.Unavailable)
	fails(r.Ended > 0, "a server ended %d times", r.Ended)
	fails(limit > 0 && r.PeakBytes > limit, "%d MiB of memory", r.PeakBytes>>20)
	internal := r.Codes["INTERNAL"] + r.Attacker["INTERNAL"]
	fails(internal > 0, "%d INTERNAL", internal)
	fails(strict && !(r.LookUps.holds() && r.Claims.holds()), "look-ups take %.1f, claims %.1f times as long", r.LookUps.Times, r.Claims.Times)
	return all
}

// failed returns what is wrong with claims.
func (v verdict) failed(database string) []string {
	var all []string
	for what, list := range map[string][]string{"lost": v.Lost, "refused and made": v.Unasked, "over-allocated": v.OverAllocated, "miscounted": v.Miscounted} {
		for _, one := range list {
			all = append(all, fmt.Sprintf("%s: %s: %s", database, what, one))
		}
	}
	slices.Sort(all)
	return all
}

// line returns a row of the table of attacks.
func (r *row) line() string {
	mark := func(of ratio) string {
		if of.holds() {
			return fmt.Sprintf("%.1f", of.Times)
		}
		return fmt.Sprintf("**%.1f**", of.Times)
	}
	name := r.Attack
	if r.Size > 0 {
		name += fmt.Sprintf(" (%d)", r.Size)
	}
	return fmt.Sprintf("| %s | %s | %.1f / %.1f | %.1f / %.1f | %s | %.0f / %.0f | %.0f / %.0f | %s | %.1f | %d | %s | %s |", r.Database, name,
		r.Quiet.LookUps.P50, r.Quiet.LookUps.P99, r.Attacked.LookUps.P50, r.Attacked.LookUps.P99, mark(r.LookUps),
		r.Quiet.Claims.P50, r.Quiet.Claims.P99, r.Attacked.Claims.P50, r.Attacked.Claims.P99, mark(r.Claims),
		r.Unavailable, r.PeakBytes>>20, counts(r.Attacker), counts(r.Codes))
}

// counts returns counts as a text, the most frequent first.
func counts(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		if of[a] != of[b] {
			return of[b] - of[a]
		}
		return strings.Compare(a, b)
	})
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(all, ", ")
}

const attackHead = `
| database | attack | look-up quiet, p50 / p99 ms | attacked | times | claim quiet, p50 / p99 ms | attacked | times | 503 s | peak MiB | the attacker is told | the innocents are told |
|---|---|---|---|---|---|---|---|---|---|---|---|
`

// write writes the report as tables.
func (r *report) write(to io.Writer) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s, %d processors (%s), %d resources x %d items, %d providers, %d MiB", r.Date.Format(time.DateOnly), r.Processors, r.Machine, r.World.Resources, r.World.Items, r.World.Providers, r.Limit>>20)
	if len(r.Flags) > 0 {
		fmt.Fprintf(out, ", %s", strings.Join(r.Flags, " "))
	}
	out.WriteString("\n")
	if len(r.Rows) > 0 {
		out.WriteString(attackHead)
	}
	for _, row := range r.Rows {
		out.WriteString(row.line() + "\n")
	}
	r.writeMetrics(out)
	r.writeMemory(out)
	r.writeFaults(out)
	_, err := io.WriteString(to, out.String())
	return err
}

// writeMetrics writes what the servers' own metrics say of each attack.
func (r *report) writeMetrics(out *strings.Builder) {
	if len(r.Rows) > 0 {
		out.WriteString("\n| database | attack | what the servers' metrics say |\n|---|---|---|\n")
	}
	for _, row := range r.Rows {
		var all []string
		for _, name := range sortedNames(row.Metrics) {
			if strings.Contains(name, `project="calm"`) {
				continue
			}
			all = append(all, fmt.Sprintf("`%s` %.4g", strings.TrimPrefix(name, "cadastre_"), row.Metrics[name]))
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", row.Database, row.Attack, strings.Join(all, ", "))
	}
}

func (r *report) writeMemory(out *strings.Builder) {
	if len(r.Memory) > 0 {
		out.WriteString("\n| database | MiB before the attacks | peak | after them | s later |\n|---|---|---|---|---|\n")
	}
	for _, of := range r.Memory {
		fmt.Fprintf(out, "| %s | %d | %d | %d | %.0f |\n", of.Database, of.Before>>20, of.Peak>>20, of.After>>20, of.Seconds)
	}
}

func (r *report) writeFaults(out *strings.Builder) {
	if len(r.Endured) > 0 {
		out.WriteString("\n| database | requests | answers | the attackers' | faults, times, and s until somebody was answered | claims | lost | refused and made | over-allocated | miscounted |\n|---|---|---|---|---|---|---|---|---|---|\n")
	}
	for _, of := range r.Endured {
		var faults []string
		for _, one := range of.Faults {
			faults = append(faults, fmt.Sprintf("%s %d x, %.1f s", one.Fault, one.Times, one.Recovered))
		}
		v := of.Verdict
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %d | %d | %d | %d | %d |\n", of.Database, of.Requests, counts(of.Codes), counts(of.Attacks), strings.Join(faults, "; "),
			v.Claims, len(v.Lost), len(v.Unasked), len(v.OverAllocated), len(v.Miscounted))
	}
	for _, of := range r.Verdicts {
		fmt.Fprintf(out, "\n%s: %d claims beside attacks, of %d consumers something was acknowledged; lost %d, refused and made %d, over-allocated %d, miscounted %d\n",
			of.Database, of.Claims, of.Acknowledged, len(of.Lost), len(of.Unasked), len(of.OverAllocated), len(of.Miscounted))
	}
	for _, text := range r.Skipped {
		fmt.Fprintf(out, "\nnot done: %s\n", text)
	}
}

// writeJSON writes the report to a file.
func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}
