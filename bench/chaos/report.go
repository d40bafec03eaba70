package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/bench/measured"
)

// report is the result of a run.
type report struct {
	options
	head       measured.Line
	rows       []*row
	memory     []memory
	verdicts   map[string]verdict // after attacks, by database
	endured    []*endured
	skipped    []string // what this machine does not allow
	unmeasured []string // attacks, and why
	contained  bool     // whether control groups limit memory
}

func newReport(o options) *report {
	r := &report{options: o, head: measured.NewRun(commandOf(o)), verdicts: map[string]verdict{}}
	maps.Copy(r.head.Figures, map[string]float64{
		"resources": float64(o.size.Resources), "items": float64(o.size.Items), "providers": float64(o.size.Providers),
		"memoryLimit": float64(o.memory), "rounds": float64(o.rounds), "roundSeconds": o.round.Seconds(),
	})
	return r
}

// commandOf returns the command of a report.
func commandOf(o options) string { return strings.Join(append([]string{"make chaos"}, o.args...), " ") }

// failures returns broken promises, such as 503 for innocents for longer than a
// time, and if strict also slow answers.
func (r *report) failures(strict bool, unavailable time.Duration) []string {
	all := slices.Clone(r.unmeasured)
	for _, row := range r.rows {
		all = append(all, row.failures(r.options.memory, strict, unavailable)...)
	}
	for _, of := range r.memory {
		if !of.holds() {
			all = append(all, fmt.Sprintf("%s: memory is %d MiB after %.0f s, %d before", of.database, of.after>>20, of.seconds, of.before>>20))
		}
	}
	for _, database := range slices.Sorted(maps.Keys(r.verdicts)) {
		all = append(all, r.verdicts[database].failed(database)...)
	}
	for _, of := range r.endured {
		all = append(all, of.verdict.failed(of.database)...)
		if len(of.internal) > 0 {
			all = append(all, fmt.Sprintf("%s: %d INTERNAL, such as %s", of.database, len(of.internal), of.internal[0]))
		}
		if of.attacks["INTERNAL"] > 0 {
			all = append(all, fmt.Sprintf("%s: %d INTERNAL of attackers", of.database, of.attacks["INTERNAL"]))
		}
	}
	return all
}

// failures returns the broken promises of one attack.
func (r *row) failures(limit int64, strict bool, unavailable time.Duration) (all []string) {
	fails := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf("%s, %s: ", r.database, r.attack)+fmt.Sprintf(format, args...))
		}
	}
	fails(r.unavailable > unavailable.Seconds(), "others got 503 for %.1f s", r.unavailable)
	fails(r.ended > 0, "a server ended %d times", r.ended)
	fails(limit > 0 && r.peak > limit, "%d MiB of memory", r.peak>>20)
	internal := r.codes["INTERNAL"] + r.attackers["INTERNAL"]
	fails(internal > 0, "%d INTERNAL", internal)
	fails(strict && !(r.lookUps.holds() && r.claims.holds()), "look-ups take %.1f, claims %.1f times as long", r.lookUps.times, r.claims.times)
	return all
}

// failed returns the wrong claims.
func (v verdict) failed(database string) (all []string) {
	for what, list := range map[string][]string{"lost": v.Lost, "refused and made": v.Unasked, "over-allocated": v.OverAllocated, "miscounted": v.Miscounted} {
		for _, one := range list {
			all = append(all, fmt.Sprintf("%s: %s: %s", database, what, one))
		}
	}
	slices.Sort(all)
	return all
}

func (v verdict) figures() map[string]float64 {
	return map[string]float64{
		"claims": float64(v.Claims), "acknowledged": float64(v.Acknowledged), "lost": float64(len(v.Lost)), "unasked": float64(len(v.Unasked)),
		"overallocated": float64(len(v.OverAllocated)), "miscounted": float64(len(v.Miscounted)),
	}
}

// lines returns the measurements.
func (r *report) lines() []measured.Line {
	all := []measured.Line{r.head}
	add := func(kind, work, database string, holds bool, notes map[string]string, figures map[string]float64) {
		reached := "yes"
		if !holds {
			reached = "no"
		}
		day := map[string]string{"day": r.head.Notes["day"]}
		maps.Copy(day, notes)
		all = append(all, measured.Line{Kind: kind, Work: work, Database: database, Reached: reached, Notes: day, Figures: figures})
	}
	for _, of := range r.rows {
		figures := map[string]float64{
			"lookUpQuietP99Ms": of.quiet.lookUps.p99, "lookUpAttackedP99Ms": of.attacked.lookUps.p99, "lookUpTimes": of.lookUps.times,
			"lookUpQuietP50Ms": of.quiet.lookUps.p50, "lookUpAttackedP50Ms": of.attacked.lookUps.p50,
			"claimQuietP99Ms": of.quiet.claims.p99, "claimAttackedP99Ms": of.attacked.claims.p99, "claimTimes": of.claims.times,
			"secondsOf503": of.unavailable, "peakBytes": float64(of.peak), "attackerProcessor": of.processor,
		}
		if of.size > 0 {
			figures["size"] = float64(of.size)
		}
		add(measured.Attack, of.attack, of.database, len(of.failures(r.options.memory, true, maxOf503)) == 0,
			map[string]string{"attacker": measured.Counts(of.attackers), "innocents": measured.Counts(of.codes)}, figures)
	}
	for _, of := range r.memory {
		add(measured.Memory, "", of.database, of.holds(), nil, map[string]float64{"beforeBytes": float64(of.before), "peakBytes": float64(of.peak), "afterBytes": float64(of.after), "seconds": of.seconds})
	}
	for _, of := range r.endured {
		var faults []string
		for _, one := range of.faults {
			faults = append(faults, fmt.Sprintf("%s %d x, %.1f s", one.fault, one.times, one.recovered))
		}
		figures := of.verdict.figures()
		figures["requests"] = float64(of.requests)
		add(measured.Faults, "", of.database, len(of.verdict.failed("")) == 0,
			map[string]string{"innocents": measured.Counts(of.codes), "attacker": measured.Counts(of.attacks), "faults": strings.Join(faults, "; ")}, figures)
	}
	for _, database := range slices.Sorted(maps.Keys(r.verdicts)) {
		add(measured.Verdict, "", database, len(r.verdicts[database].failed("")) == 0, nil, r.verdicts[database].figures())
	}
	return all
}

// The files of the measurements and their page, in a folder.
const (
	linesFile = "attacks.jsonl"
	pageFile  = "attacks.md"
)

// writeInto replaces the measurements of a folder that were measured again, and
// writes their page. It keeps the text below the mark of the page.
func (r *report) writeInto(folder string) error {
	old, err := measured.ReadFile(filepath.Join(folder, linesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := merged(old, r.lines())
	if err := measured.WriteFile(filepath.Join(folder, linesFile), lines); err != nil {
		return err
	}
	path := filepath.Join(folder, pageFile)
	page, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, kept, _ := strings.Cut(string(page), keptMark)
	return os.WriteFile(path, []byte(pageOf(lines)+keptMark+kept), 0o644)
}

// merged returns old lines with newer ones in place of their predecessors, attacks
// in their order.
func merged(old, lines []measured.Line) []measured.Line {
	all := slices.DeleteFunc(slices.Clone(old), func(line measured.Line) bool {
		return slices.ContainsFunc(lines, func(again measured.Line) bool {
			return again.Kind == line.Kind && again.Work == line.Work && again.Database == line.Database
		})
	})
	all = append(all, lines...)
	order := func(line measured.Line) int {
		kinds := []string{measured.Run, measured.Attack, measured.Memory, measured.Verdict, measured.Faults}
		return 1000*slices.Index(kinds, line.Kind) + slices.IndexFunc(attacks(), func(a attack) bool { return a.name == line.Work })
	}
	slices.SortStableFunc(all, func(a, b measured.Line) int {
		if by := order(a) - order(b); by != 0 {
			return by
		}
		return strings.Compare(b.Database, a.Database)
	})
	return all
}

const keptMark = "<!-- what follows is kept -->\n"

// pageOf returns the page of measurements.
func pageOf(lines []measured.Line) string {
	of := lines[0]
	return "# Attacks and faults\n\n" + fmt.Sprintf("The measurements behind [robustness](../robustness.md), written by `%s` on %s: %.0f resources of %.0f items, %.0f providers, "+
		"%.0f MiB for each server, medians of %.0f rounds of %.0f s, on %.0f processors (%s). Rows of another day are from earlier runs.\n",
		of.Notes["command"], of.Notes["day"], of.Figures["resources"], of.Figures["items"], of.Figures["providers"], of.Figures["memoryLimit"]/(1<<20),
		of.Figures["rounds"], of.Figures["roundSeconds"], of.Figures["processors"], of.Notes["processor"]) + tables(lines)
}

// tables returns the tables of measurements.
func tables(lines []measured.Line) string {
	var out strings.Builder
	for _, part := range []struct{ kind, title string }{
		{measured.Attack, "Attacks"}, {measured.Memory, "Memory"}, {measured.Verdict, "Claims beside attacks"}, {measured.Faults, "Faults"},
	} {
		if table := measured.Table(lines, part.kind); table != "" {
			fmt.Fprintf(&out, "\n## %s\n\n%s", part.title, table)
		}
	}
	return out.String() + "\n"
}
