package measured

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Column is a column of a table: a figure of each line, or one of its names.
type Column struct {
	Head, Name string
	Format     string // of a figure; empty is three digits that count
}

// Columns are the columns of each kind's table. Figures that a line lacks are
// dashes, and columns that all lines lack are left out.
func Columns(kind string) []Column {
	named := []Column{{"", "work", ""}, {"", "database", ""}, {"", "server", ""}}
	switch kind {
	case Work:
		return append(named, []Column{
			{"clients", "clients", "%.0f"}, {"rows", "rows", "%.0f"}, {"requests/s", "perSecond", ""}, {"median ms", "medianMs", "%.2f"}, {"p99 ms", "p99Ms", "%.2f"},
			{"server CPU ms", "serverCpuMs", "%.2f"}, {"database CPU ms", "databaseCpuMs", "%.2f"}, {"bytes", "bytes", "%.0f"},
			{"allocations", "allocations", "%.0f"}, {"allocated bytes", "allocatedBytes", "%.0f"}, {"statements", "statements", "%.2f"}, {"refused", "refused", "%.0f"},
			{"times the first", "timesTheFirst", "%.2f"}, {"times the peer", "timesThePeer", "%.2f"}, {"in CPU", "timesThePeersCpu", "%.2f"}, {"", "goal", ""}, {"", "reached", ""},
		}...)
	case Followed:
		return append(named[1:], []Column{
			{"hosts", "providers", ","}, {"subscriptions", "subscriptions", "%.0f"}, {"commits/s wanted", "wanted", "%.0f"}, {"alone", "alonePerSecond", ""}, {"beside", "besidePerSecond", ""},
			{"median ms alone", "aloneMedianMs", "%.2f"}, {"beside", "besideMedianMs", "%.2f"}, {"times", "timesTheMedian", "%.2f"},
			{"p99 ms alone", "aloneP99Ms", "%.2f"}, {"beside", "besideP99Ms", "%.2f"}, {"events/s", "eventsPerSecond", "%.0f"},
			{"lag median ms", "lagMedianMs", "%.1f"}, {"p99", "lagP99Ms", "%.1f"}, {"MiB without", "memoryWithout", "MiB"}, {"idle", "memoryIdle", "MiB"}, {"at most", "memoryMost", "MiB"},
		}...)
	case Footprint:
		return append(named[1:], []Column{
			{"providers", "providers", ","}, {"resources", "resources", ","}, {"ready in ms", "startMs", "%.0f"}, {"empty", "startEmptyMs", "%.0f"}, {"heap MiB", "heapBytes", "MiB"},
			{"empty", "heapEmptyBytes", "MiB"}, {"bytes a provider-class pair", "bytesOfPair", "%.0f"}, {"resident MiB", "residentBytes", "MiB"}, {"database MiB", "storedBytes", "MiB"},
		}...)
	case Stored:
		return []Column{{"table", "work", ""}, {"rows", "rows", ","}, {"MiB of rows", "bytes", "MiB"}, {"MiB of indexes", "indexBytes", "MiB"}, {"bytes a row", "bytesOfRow", "%.0f"}}
	case Processes:
		return []Column{
			named[0], {"processes", "processes", "%.0f"}, {"clients", "clients", "%.0f"}, {"requests/s", "perSecond", "%.0f"}, {"median ms", "medianMs", "%.2f"}, {"p99 ms", "p99Ms", "%.2f"},
			{"servers' CPU ms", "serverCpuMs", "%.2f"}, {"database CPU ms", "databaseCpuMs", "%.2f"},
		}
	case Lag:
		return []Column{
			{"processes", "processes", "%.0f"}, {"lag median ms", "lagMedianMs", "%.2f"}, {"p99", "lagP99Ms", "%.2f"}, {"beside claims, median ms", "besideMedianMs", "%.2f"}, {"p99", "besideP99Ms", "%.2f"},
			{"claims tried in races", "tried", "%.0f"}, {"that fit", "fit", "%.0f"}, {"served", "served", "%.0f"}, {"over-allocated inventories", "overallocated", "%.0f"},
		}
	case Attack:
		return append([]Column{{"attack", "work", ""}, named[1]}, []Column{
			{"size", "size", "%.0f"}, {"look-ups p99 ms quiet", "lookUpQuietP99Ms", "%.0f"}, {"attacked", "lookUpAttackedP99Ms", "%.0f"}, {"times", "lookUpTimes", "%.1f"},
			{"claims p99 ms quiet", "claimQuietP99Ms", "%.0f"}, {"attacked", "claimAttackedP99Ms", "%.0f"}, {"times", "claimTimes", "%.1f"},
			{"503 s", "secondsOf503", "%.1f"}, {"peak MiB", "peakBytes", "MiB"}, {"attacker", "attacker", ""}, {"innocents", "innocents", ""}, {"day", "day", ""}, {"", "reached", ""},
		}...)
	case Memory:
		return []Column{named[1], {"MiB before the attacks", "beforeBytes", "MiB"}, {"peak", "peakBytes", "MiB"}, {"after", "afterBytes", "MiB"}, {"seconds later", "seconds", "%.0f"}, {"day", "day", ""}}
	case Faults, Verdict:
		return []Column{
			named[1], {"requests", "requests", "%.0f"}, {"answers", "innocents", ""}, {"attackers' answers", "attacker", ""}, {"faults, and s until an answer", "faults", ""},
			{"claims", "claims", "%.0f"}, {"acknowledged", "acknowledged", "%.0f"}, {"lost", "lost", "%.0f"}, {"refused and made", "unasked", "%.0f"}, {"over-allocated", "overallocated", "%.0f"}, {"miscounted", "miscounted", "%.0f"}, {"day", "day", ""},
		}
	}
	return named
}

// Table returns lines of a kind as a Markdown table; empty without lines.
func Table(lines []Line, kind string) string {
	lines = Of(lines, kind)
	var heads []string
	rows := make([][]string, len(lines))
	for _, column := range Columns(kind) {
		cells, found := make([]string, len(lines)), false
		for i, line := range lines {
			cells[i] = line.cell(column)
			found = found || cells[i] != "-"
		}
		if !found {
			continue
		}
		heads = append(heads, cmp.Or(column.Head, column.Name))
		for i := range rows {
			rows[i] = append(rows[i], cells[i])
		}
	}
	return Grid(append([][]string{heads}, rows...))
}

// cell returns the text of a line in a column.
func (l Line) cell(column Column) string {
	names := map[string]string{"work": l.Work, "database": l.Database, "server": l.Server, "goal": l.Goal, "reached": l.Reached}
	if text := cmp.Or(names[column.Name], l.Notes[column.Name]); text != "" {
		return text
	}
	number, ok := l.Figures[column.Name]
	switch {
	case !ok:
		return "-"
	case column.Format == ",":
		return Thousands(int(number))
	case column.Format == "MiB":
		return fmt.Sprintf("%.1f", number/(1<<20))
	case column.Format == "":
		return Short(number)
	}
	return fmt.Sprintf(column.Format, number)
}

// Grid returns lines of cells as a Markdown table, the first as its head; empty
// without a second line.
func Grid(lines [][]string) string {
	if len(lines) < 2 {
		return ""
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
	for _, cells := range lines {
		_, _ = fmt.Fprintf(table, "| %s\t|\n", strings.Join(cells, "\t| ")) // a builder takes everything
	}
	_ = table.Flush()
	head, rows, _ := strings.Cut(out.String(), "\n")
	return head + "\n|" + strings.Repeat("---|", len(lines[0])) + "\n" + rows
}

// Short returns a number with three digits that count.
func Short(number float64) string {
	switch {
	case number >= 1000:
		return Thousands(int(number + 0.5))
	case number >= 100:
		return fmt.Sprintf("%.0f", number)
	case number >= 10:
		return fmt.Sprintf("%.1f", number)
	}
	return fmt.Sprintf("%.2f", number)
}

// Thousands returns a number with commas.
func Thousands(number int) string {
	text := fmt.Sprint(number)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Counts returns names with their counts, the largest first.
func Counts(of map[string]int) string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, of[name])
	}
	return strings.Join(names, ", ")
}
