package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pageCommand makes the benchmark write the pages of reports that were kept:
//
//	go run ./bench page -from docs/measured -to docs
const pageCommand = "page"

// runPage writes the parts of pages that reports tell, and the drawings beside
// them.
func runPage(args []string, output io.Writer) error {
	flags := flag.NewFlagSet(pageCommand, flag.ContinueOnError)
	flags.SetOutput(output)
	from := flags.String("from", "docs/measured", "`folder` of the reports that -json wrote")
	to := flags.String("to", "docs", "`folder` of the pages, and of images/ with the drawings")
	if err := flags.Parse(args); err != nil {
		return err
	}
	reports, err := readReports(*from)
	if err != nil {
		return err
	}
	for _, p := range reports.plots() {
		if err := os.WriteFile(filepath.Join(*to, "images", p.file+".svg"), p.svg(), 0o644); err != nil {
			return err
		}
	}
	for _, page := range pagesOfReports() {
		path := filepath.Join(*to, page)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		filled, err := fill(string(text), reports.parts())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(path, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pagesOfReports returns the pages that have parts of reports.
func pagesOfReports() []string { return []string{"performance.md", "scale.md"} }

// The marks in a page around a part, by its name.
const (
	beginMark = "<!-- measured: %s -->"
	endMark   = "<!-- measured -->"
)

// fill returns a page with each of its parts in the place between its marks. A mark
// without a part, or without its end, is an error, and so is a page without marks.
func fill(page string, parts map[string]string) (string, error) {
	begin := regexp.MustCompile(strings.Replace(regexp.QuoteMeta(beginMark), "%s", "([a-z-]+)", 1))
	var out strings.Builder
	found := begin.FindAllStringSubmatchIndex(page, -1)
	if found == nil {
		return "", errors.New("it has no mark " + beginMark)
	}
	written := 0
	for _, at := range found {
		name := page[at[2]:at[3]]
		part, ok := parts[name]
		end := strings.Index(page[at[1]:], endMark)
		if !ok || end < 0 || at[0] < written {
			return "", fmt.Errorf("the mark of %q has no end, or there is no such part: there are %s", name, strings.Join(slices.Sorted(maps.Keys(parts)), ", "))
		}
		out.WriteString(page[written:at[1]] + "\n\n" + strings.TrimSpace(part) + "\n\n")
		written = at[1] + end
	}
	return out.String() + page[written:], nil
}

// reports are those of several sizes, the smallest first.
type reports []*report

// readReports reads the reports of a folder.
func readReports(folder string) (reports, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *.json file in %s", folder)
	}
	var all reports
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		one := &report{}
		if err := json.Unmarshal(text, one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *report) int { return a.Providers - b.Providers })
	return all, nil
}

// main returns the report with most parts, the first of several: that with peers
// and several processes.
func (all reports) main() *report {
	return slices.MaxFunc(all, func(a, b *report) int {
		of := func(r *report) int { return len(r.Rows) + 1000*len(r.Shared) }
		return of(a) - of(b)
	})
}

// parts returns what reports tell, by the names of the marks.
func (all reports) parts() map[string]string {
	main := all.main()
	parts := map[string]string{"runs": all.runs(), "arithmetic": all.arithmetic()}
	for name, table := range map[string][][]string{
		"goals": all.goals(), "peers": main.peerTable(), "sizes": all.sizes(), "costs": main.rowTable(),
		"settings": main.triedTable(), "shared": main.sharedTable(), "lag": main.lagTable(),
		"footprints": all.joined((*report).footprintTable), "tables": all.tables(), "followed": all.followed(),
	} {
		var out bytes.Buffer
		if err := writeTable(&out, table); err != nil {
			panic(err) // a buffer takes everything
		}
		parts[name] = out.String()
	}
	if len(main.Shared) > 0 {
		parts["shared"] = "![Requests a second by the number of processes](images/" + processesDrawing + ".svg)\n\n" + parts["shared"]
	}
	return parts
}

// joined returns a table of all reports, under the heads of the first.
func (all reports) joined(table func(*report) [][]string) [][]string {
	var lines [][]string
	for i, one := range all {
		of := table(one)
		if i > 0 {
			of = of[1:]
		}
		lines = append(lines, of...)
	}
	return lines
}

// followed returns the table of commits beside subscriptions, with the number of
// hosts in front.
func (all reports) followed() [][]string {
	return all.joined(func(r *report) [][]string {
		lines := r.followedTable()
		for i := range lines {
			lines[i] = slices.Insert(lines[i], 0, thousands(r.Providers))
		}
		lines[0][0] = "hosts"
		return lines
	})
}

// runs returns when and how the reports were made.
func (all reports) runs() string {
	var out strings.Builder
	for _, r := range all {
		fmt.Fprintf(&out, "- %s providers and %s resources, on %s, in %s, load before it %.1f: `%s`\n",
			thousands(r.Providers), thousands(r.Resources), r.Day, rounds(r.Rounds), r.Machine.Load, r.Command)
	}
	m := all.main().Machine
	fmt.Fprintf(&out, "\n%s, %d processors, %s, %s.", m.System, m.Processors, m.Model, m.Postgres)
	for _, missing := range all.main().Missing {
		fmt.Fprintf(&out, " Not timed: %s.", strings.ReplaceAll(missing, "\n", " "))
	}
	return out.String()
}

func rounds(number int) string {
	if number == 1 {
		return "one round"
	}
	return fmt.Sprintf("%d rounds", number)
}

// thousands returns a number with commas.
func thousands(number int) string {
	text := fmt.Sprint(number)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// cell is what a table has of a measured row.
func (r *row) cell() string { return fmt.Sprintf("%s ms", shortest(r.Median)) }

// shortest returns a number with three digits that count.
func shortest(number float64) string {
	switch {
	case number >= 100:
		return fmt.Sprintf("%.0f", number)
	case number >= 10:
		return fmt.Sprintf("%.1f", number)
	}
	return fmt.Sprintf("%.2f", number)
}

// databasesOf returns the databases of a report, PostgreSQL first.
func databasesOf(r *report) []string {
	var some []string
	for _, database := range []string{postgres, sqlite} {
		if slices.ContainsFunc(r.Rows, func(one row) bool { return one.Database == database && !one.Peer }) {
			some = append(some, database)
		}
	}
	return some
}

// last returns the name of the last binary in a report.
func (r *report) last() string {
	for _, one := range slices.Backward(r.Rows) {
		if !one.Peer {
			return one.Server
		}
	}
	return ""
}

// goals returns the table of what is to be reached, at every size of 10,000 or
// more.
func (all reports) goals() [][]string {
	lines := [][]string{{"work", "goal"}}
	places := map[string]int{}
	for _, r := range all {
		if r.Providers < 10_000 && len(all) > 1 {
			continue
		}
		for _, database := range databasesOf(r) {
			lines[0] = append(lines[0], fmt.Sprintf("%s, %s", database, thousands(r.Providers)))
			for _, one := range r.Goals {
				if one.Database != database {
					continue
				}
				if places[one.Work] == 0 {
					places[one.Work] = len(lines)
					lines = append(lines, []string{one.Work, one.Goal})
				}
				at := &lines[places[one.Work]]
				for len(*at) < len(lines[0])-1 {
					*at = append(*at, "-")
				}
				*at = append(*at, one.cell())
			}
		}
	}
	return filled(lines)
}

// cell is what a table has of a goal: without an outcome where that takes a peer.
func (one reached) cell() string {
	cell := fmt.Sprintf("%s ms, %s/s", shortest(one.Median), shortest(one.Rate))
	if one.Reached == "unknown" {
		return cell
	}
	return cell + ": " + one.Reached
}

// filled returns lines with a dash for each cell that lacks at their ends.
func filled(lines [][]string) [][]string {
	for i := range lines {
		for len(lines[i]) < len(lines[0]) {
			lines[i] = append(lines[i], "-")
		}
	}
	return lines
}

// sizes returns the table of all works by the size of the world.
func (all reports) sizes() [][]string {
	head := []string{"work"}
	var works []string
	for _, r := range all {
		for _, one := range r.Rows {
			if !one.Peer && !slices.Contains(works, one.Work) {
				works = append(works, one.Work)
			}
		}
	}
	lines := [][]string{head}
	for _, work := range works {
		lines = append(lines, []string{work})
	}
	for _, database := range []string{postgres, sqlite} {
		for _, r := range all {
			if !slices.Contains(databasesOf(r), database) {
				continue
			}
			lines[0] = append(lines[0], fmt.Sprintf("%s, %s", database, thousands(r.Providers)))
			for i, work := range works {
				cell := "-"
				if one := r.row(work, database, r.last()); one != nil {
					cell = one.cell()
				}
				lines[i+1] = append(lines[i+1], cell)
			}
		}
	}
	return lines
}

// peerTable returns the table of works beside what others take for the same.
func (r *report) peerTable() [][]string {
	lines := [][]string{{"work", "peer", "Cadastre on", "requests/s", "the peer's", "times in requests/s", "CPU ms", "the peer's", "times in CPU"}}
	for _, one := range r.Goals {
		own, peer := r.row(one.Work, one.Database, r.last()), r.row(one.Work, one.Database, "")
		if own == nil || peer == nil {
			continue
		}
		lines = append(lines, []string{
			one.Work, peer.Server, one.Database, shortest(own.PerSecond), shortest(peer.PerSecond), shortest(one.Peer),
			shortest(own.allCPU()), shortest(peer.allCPU()), shortest(one.PeerCPU),
		})
	}
	return lines
}

// allCPU returns the milliseconds on processors of one operation, the database's
// included.
func (r *row) allCPU() (sum float64) {
	for _, part := range []*float64{r.ServerCPU, r.DatabaseCPU} {
		if part != nil {
			sum += *part
		}
	}
	return sum
}
