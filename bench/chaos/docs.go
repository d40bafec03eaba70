package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The marks in a page around the table of attacks.
const (
	beginMark = "<!-- make chaos, begin -->"
	endMark   = "<!-- make chaos, end -->"
)

const docsHead = `| attack (size of the request) | SQLite: look-up, p99 in ms quiet → attacked, times | claim | PostgreSQL: look-up | claim | peak MiB |
|---|---|---|---|---|---|
`

// docsRow is a line of the table in a page: of one attack on all databases.
type docsRow struct {
	name  string
	cells [5]string // look-up and claim of each database, and the peak of both
	old   bool      // whether some are of an earlier run
}

// writeInto writes the table of attacks between the marks of a page. What was not
// measured stays as it was.
func (r *report) writeInto(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), beginMark)
	earlier, after, closed := strings.Cut(rest, endMark)
	if !ok || !closed {
		return errors.New(page + " has no place for the table: " + beginMark + " and " + endMark)
	}
	return os.WriteFile(page, []byte(before+beginMark+"\n\n"+r.docs(earlier)+"\n"+endMark+after), 0o644)
}

// docs returns the table of attacks and what it was measured on, given that of an
// earlier run.
func (r *report) docs(earlier string) string {
	rows := r.docsRows(earlier)
	out := &strings.Builder{}
	busiest := 0.0
	for _, row := range r.Rows {
		busiest = max(busiest, row.Beside)
	}
	fmt.Fprintf(out, "On %s, %d processors (%s), %d resources of %d items, %d providers, servers with %d MiB%s; medians of %d rounds of %v.\n"+
		"Before an attack, the load of the machine was %.1f at most. What takes longer than it may is bold.", r.Date.Format("2006-01-02"), r.Processors, r.Machine,
		r.World.Resources, r.World.Items, r.World.Providers, r.Limit>>20, r.limited(), r.Rounds, r.Round, busiest)
	if r.Flags != nil {
		fmt.Fprintf(out, " The servers had the flags `%s`.", strings.Join(r.Flags, " "))
	}
	out.WriteString("\n\n" + docsHead)
	for _, row := range rows {
		name := row.name
		if row.old {
			name += " *"
		}
		fmt.Fprintf(out, "| %s | %s |\n", name, strings.Join(row.cells[:], " | "))
	}
	for _, row := range rows {
		if row.old {
			out.WriteString("\n\\* Some of it is of an earlier run.\n")
			break
		}
	}
	r.writeMemory(out)
	r.writeFaults(out)
	if all := r.failures(true, mostOf503); len(all) > 0 {
		out.WriteString("\nWhat does not hold:\n\n- " + strings.Join(all, "\n- ") + "\n")
	} else {
		out.WriteString("\nEverything that the program judges holds.\n")
	}
	return out.String()
}

// limited says how the memory of the servers was limited.
func (r *report) limited() string {
	if r.Contained {
		return ", beyond which the system ends them"
	}
	return " by GOMEMLIMIT"
}

// docsRows returns the lines of the table, in the order of the attacks.
func (r *report) docsRows(earlier string) []docsRow {
	known := map[string]docsRow{}
	for line := range strings.Lines(earlier) {
		fields := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(fields) != 6 {
			continue
		}
		row := docsRow{name: strings.TrimSuffix(strings.TrimSpace(fields[0]), " *"), old: true}
		for i := range row.cells {
			row.cells[i] = strings.TrimSpace(fields[i+1])
		}
		name, _, _ := strings.Cut(row.name, " (")
		known[name] = row
	}
	var rows []docsRow
	for _, of := range attacks() {
		row, ok := known[of.name]
		measured, peak := 0, int64(0)
		for _, found := range r.Rows {
			if found.Attack != of.name {
				continue
			}
			first := 0
			if found.Database == postgres {
				first = 2
			}
			row.name, row.cells[first], row.cells[first+1] = of.name, found.LookUps.cell(found.Quiet.LookUps, found.Attacked.LookUps), found.Claims.cell(found.Quiet.Claims, found.Attacked.Claims)
			if found.Size > 0 {
				row.name += fmt.Sprintf(" (%d)", found.Size)
			}
			measured, peak = measured+1, max(peak, found.PeakBytes)
		}
		if measured > 0 {
			row.cells[4], row.old = fmt.Sprint(peak>>20), ok && measured < 2
		}
		if ok || measured > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// cell returns what the table of a page says of look-ups or claims.
func (r ratio) cell(quiet, attacked quantiles) string {
	text := fmt.Sprintf("%.0f → %.0f, %.1f", quiet.P99, attacked.P99, r.Times)
	if !r.holds() {
		return "**" + text + "**"
	}
	return text
}
