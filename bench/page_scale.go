package main

import (
	"fmt"
	"slices"
	"strings"
)

// tables returns the largest tables at the largest size with PostgreSQL.
func (all reports) tables() [][]string {
	lines := [][]string{{"table", "rows", "MiB of rows", "MiB of indexes", "bytes a row"}}
	of := all.stored()
	if len(of) == 0 {
		return lines
	}
	for _, one := range of[len(of)-1].Tables {
		lines = append(lines, []string{
			"`" + one.Name + "`", thousands(int(one.Rows)), mebibytes(float64(one.Bytes)), mebibytes(float64(one.Indexes)), fmt.Sprintf("%.0f", one.perRow()),
		})
	}
	return lines
}

// perRow returns how many bytes a row takes, with its places in indexes.
func (t table) perRow() float64 { return float64(t.Bytes+t.Indexes) / float64(max(1, t.Rows)) }

// sizedFootprint is a footprint of the last binary on PostgreSQL with the size of
// its world.
type sizedFootprint struct {
	footprint
	providers int
}

// stored returns the footprints on PostgreSQL, the smallest world first.
func (all reports) stored() []sizedFootprint {
	var some []sizedFootprint
	for _, r := range all {
		for _, one := range r.Footprints {
			if one.Database == postgres {
				some = append(some, sizedFootprint{one, r.Providers})
			}
		}
	}
	return some
}

// What the arithmetic supposes of a cloud: how many consumers a host gets and
// loses on a day, and how many days the log of changes and the audit log are kept.
const (
	consumersOfHostADay = 10
	daysKept            = 90
	secondsOfDay        = 24 * 60 * 60
)

// arithmetic returns what two large clouds take, from the measured figures.
func (all reports) arithmetic() string {
	measured := all.stored()
	if len(measured) == 0 || len(all.main().Shared) == 0 {
		return "There is no report of PostgreSQL with several processes."
	}
	one := all.main().Shared[0]
	sizes := []int{100_000, 1_000_000}
	head := []string{"figure", "from"}
	for _, size := range sizes {
		head = append(head, thousands(size))
	}
	lines := [][]string{head}
	add := func(what, from string, of func(size int) string) {
		cells := []string{what, from}
		for _, size := range sizes {
			cells = append(cells, of(size))
		}
		lines = append(lines, cells)
	}
	scaled := func(format string, unit float64, of func(footprint) float64) func(int) string {
		return func(size int) string { return scale(measured, size, format, unit, of) }
	}
	add("heap of a process", "measured after a start", scaled("%.0f MiB", 1<<20, func(f footprint) float64 { return f.Heap }))
	add("a process just after its start", "measured", scaled("%.0f MiB", 1<<20, func(f footprint) float64 { return f.Resident }))
	add("a busy process at most, without a limit", "5 times the heap, by GOGC 400", scaled("%.1f GiB", 1<<30, func(f footprint) float64 { return 5 * f.Heap }))
	add("a start", "measured", scaled("%.1f s", 1000, func(f footprint) float64 { return f.Start }))
	add("the database", "measured", scaled("%.2f GiB", 1<<30, func(f footprint) float64 { return float64(f.Stored) }))

	commits := func(size int) float64 { return float64(2 * consumersOfHostADay * size) }
	perCommit := func(format string, unit, each float64) func(int) string {
		return func(size int) string { return fmt.Sprintf(format, commits(size)*each/unit) }
	}
	add("commits of claims on a day", fmt.Sprintf("%d consumers come and go on each host", consumersOfHostADay), perCommit("%.0f million", 1e6, 1))
	add("the same a second, on average", "a day has 86,400 s", perCommit("%.0f", secondsOfDay, 1))
	add("notes to followers a second", "one for each commit; a server gathers them for 20 ms", perCommit("%.0f", secondsOfDay, 1))
	add("rows of the log of changes on a day", fmt.Sprintf("%.1f for each commit", one.Changes), perCommit("%.0f million", 1e6, one.Changes))
	add("events of the audit log on a day", fmt.Sprintf("%.1f for each commit", one.Events), perCommit("%.0f million", 1e6, one.Events))
	add("write-ahead log on a day", fmt.Sprintf("%.1f kB for each commit", one.Log/1000), perCommit("%.0f GB", 1e9, one.Log))
	for _, name := range []string{"changes", "audit_events"} {
		rows := map[string]float64{"changes": one.Changes, "audit_events": one.Events}[name]
		if each := rowOf(measured[len(measured)-1].Tables, name); each > 0 {
			add(fmt.Sprintf("`%s` after %d days", name, daysKept), fmt.Sprintf("%.0f bytes a row with its indexes", each), perCommit("%.0f GB", 1e9, daysKept*rows*each))
		}
	}
	claims := slices.IndexFunc(one.Works, func(row sharedRow) bool { return row.Work == claimsOfDifferent })
	ceiling := one.Works[claims].PerSecond
	add("of what one primary commits on this machine", fmt.Sprintf("%.0f claims a second, 32 clients of one process", ceiling), func(size int) string {
		return fmt.Sprintf("%.1f %%", 100*commits(size)/secondsOfDay/ceiling)
	})
	var out strings.Builder
	if err := writeTable(&out, lines); err != nil {
		panic(err) // a builder takes everything
	}
	return out.String()
}

// rowOf returns how many bytes a row of a table takes, 0 for one that is too small
// to tell.
func rowOf(tables []table, name string) float64 {
	for _, one := range tables {
		if one.Name == name {
			return one.perRow()
		}
	}
	return 0
}

// scale returns a measured figure at a size or, where that was not measured, what
// the two largest sizes imply when it grows evenly.
func scale(measured []sizedFootprint, size int, format string, unit float64, of func(footprint) float64) string {
	for _, one := range measured {
		if one.providers == size {
			return fmt.Sprintf(format, of(one.footprint)/unit)
		}
	}
	if len(measured) < 2 {
		return "-"
	}
	a, b := measured[len(measured)-2], measured[len(measured)-1]
	slope := (of(b.footprint) - of(a.footprint)) / float64(b.providers-a.providers)
	return "about " + fmt.Sprintf(format, (of(b.footprint)+slope*float64(size-b.providers))/unit)
}

// processesDrawing is the name of the drawing of several processes.
const processesDrawing = "scale-processes"

// plots returns the drawings of reports: of works by the size of the world, of what
// servers take, and of several processes.
func (all reports) plots() []plot {
	var plots []plot
	for _, group := range []struct {
		file, title string
		works       []string
	}{
		{"candidates", "Candidates", []string{
			"candidates, first 10", "candidates, first 1000, full answer", "candidates on hosts with a pair of 0.5 %, first 10", "candidates on hosts with a pair of 50 %, first 10",
			"no candidates, 11 traits", "no candidates, 11 traits, explained", "no candidates, amounts too large",
		}},
		{"resources", "Resources, of an administrator", []string{
			"100 resources with metadata", "50 resources by a pair of 0.5 %", "50 resources by a pair of 50 %", "50 resources by any of two pairs", "50 resources without a pair",
			"number of resources with a pair of 50 %", "explained filter of resources",
		}},
		{"facets", "Facets, of an administrator and of a member", []string{
			"facet of metadata keys", "facets of the values of three keys", "facet of a key with as many values as resources",
			"facet of metadata keys, by a member", "facets of the values of three keys, by a member", "facet of a key with as many values as resources, by a member",
		}},
		{"claims", "Claims and definitions", []string{"claim", "claim, 4 clients", "claim, 32 clients", "claim of one provider, 32 clients", "metadata dialog", "20 namespaces with properties, 32 clients"}},
	} {
		plots = append(plots, all.plotOf(group.file, group.title, group.works))
	}
	return append(slices.DeleteFunc(plots, func(p plot) bool { return len(p.lines) == 0 }), all.footprintPlots()...)
}

// plotOf returns the drawing of the medians of some works.
func (all reports) plotOf(file, title string, works []string) plot {
	p := plot{file: "performance-" + file, title: title, x: "providers, and as many resources", y: "ms, median: lines are PostgreSQL, dashes SQLite"}
	for i, work := range works {
		for _, database := range []string{postgres, sqlite} {
			one := line{name: work, dashed: database == sqlite, color: i}
			for _, r := range all {
				if row := r.row(work, database, r.last()); row != nil {
					one.points = append(one.points, point{float64(r.Providers), row.Median})
				}
			}
			if len(one.points) > 0 {
				p.lines = append(p.lines, one)
			}
		}
	}
	return p
}

// footprintPlots returns the drawings of what servers take by the size of the
// world, and of several processes.
func (all reports) footprintPlots() []plot {
	taken := plot{file: "scale-footprint", title: "What a server takes", x: "providers, and as many resources", y: "ms or MiB: lines are PostgreSQL, dashes SQLite"}
	for i, figure := range []struct {
		name string
		of   func(footprint) float64
	}{
		{"start, ms", func(f footprint) float64 { return f.Start }},
		{"heap after a start, MiB", func(f footprint) float64 { return f.Heap / (1 << 20) }},
		{"process after a start, MiB", func(f footprint) float64 { return f.Resident / (1 << 20) }},
		{"database, MiB", func(f footprint) float64 { return float64(f.Stored) / (1 << 20) }},
	} {
		for _, database := range []string{postgres, sqlite} {
			one := line{name: figure.name, dashed: database == sqlite, color: i}
			for _, r := range all {
				for _, f := range r.Footprints {
					if f.Database == database {
						one.points = append(one.points, point{float64(r.Providers), figure.of(f)})
					}
				}
			}
			if len(one.points) > 0 {
				taken.lines = append(taken.lines, one)
			}
		}
	}
	plots := []plot{taken}
	if len(taken.lines) == 0 {
		plots = nil
	}
	shared := plot{file: processesDrawing, title: "Several processes on one PostgreSQL", x: "processes", y: "requests/s, 32 clients"}
	for _, of := range all.main().Shared {
		for i, row := range of.Works {
			if i == len(shared.lines) {
				name, _, _ := strings.Cut(row.Work, ", 32 clients")
				shared.lines = append(shared.lines, line{name: name, color: i})
			}
			shared.lines[i].points = append(shared.lines[i].points, point{float64(of.Processes), row.PerSecond})
		}
	}
	if len(shared.lines) > 0 {
		plots = append(plots, shared)
	}
	return plots
}
