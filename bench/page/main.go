// Page draws the documents of measurements: docs/measured/works.md and scale.md,
// the drawings in docs/images, and what stands between marks in docs/performance.md
// and docs/scale.md.
//
//	go -C bench run ./page            from ../docs/measured into ../docs
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/bench/measured"
)

func main() {
	docs := flag.String("docs", "../docs", "`folder` of the documents, with measured/ and images/")
	flag.Parse()
	if err := draw(*docs, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// draw writes the documents of a folder into a folder, which may be the same.
func draw(from, to string) error {
	files, err := measured.ReadSizes(filepath.Join(from, "measured"))
	if err != nil {
		return err
	}
	s := sizes(files)
	for _, p := range s.plots() {
		if err := os.WriteFile(filepath.Join(to, "images", p.file+".svg"), p.svg(), 0o644); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"works": s.works(), "scale": s.scale()} {
		if err := os.WriteFile(filepath.Join(to, "measured", name+".md"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"performance.md", "scale.md"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		filled, err := fill(string(text), s.parts())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(to, name), []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var marked = regexp.MustCompile(`(?s)<!-- measured: ([a-z]+) -->.*?<!-- measured -->`)

// fill returns a page with each part between its marks.
func fill(page string, parts map[string]string) (string, error) {
	var err error
	filled := marked.ReplaceAllStringFunc(page, func(old string) string {
		name := marked.FindStringSubmatch(old)[1]
		if parts[name] == "" || strings.Count(old, "<!-- measured: ") > 1 {
			err = fmt.Errorf("the mark of %q has no end, or nothing to hold", name)
		}
		return "<!-- measured: " + name + " -->\n\n" + strings.TrimSpace(parts[name]) + "\n\n<!-- measured -->"
	})
	if filled == page && !marked.MatchString(page) {
		err = fmt.Errorf("it has no marks")
	}
	return filled, err
}

// sizes are the measurements of several sizes, the smallest first.
type sizes [][]measured.Line

// main returns the measurements with most lines: those with peers and several
// processes.
func (s sizes) main() []measured.Line {
	return slices.MaxFunc(s, func(a, b []measured.Line) int { return len(a) - len(b) })
}

// all returns the lines of a kind of all sizes.
func (s sizes) all(kind string) (lines []measured.Line) {
	for _, of := range s {
		lines = append(lines, measured.Of(of, kind)...)
	}
	return lines
}

func providers(of []measured.Line) string {
	return measured.Thousands(int(of[0].Figures["providers"]))
}

// last returns the name of the last binary.
func last(lines []measured.Line) (name string) {
	for _, line := range lines {
		if line.Kind == measured.Work && !line.Peer {
			name = line.Server
		}
	}
	return name
}

// pivot returns a table with a row for each work that is wanted and a column for
// each database and size. A column or row without any cell is left out.
func (s sizes) pivot(works []string, cell func(*measured.Line) string, heads ...string) string {
	lines := [][]string{append([]string{"work"}, heads...)}
	for _, work := range works {
		lines = append(lines, []string{work})
	}
	for _, database := range []string{measured.Postgres, measured.SQLite} {
		for _, of := range s {
			column, some := []string{database + ", " + providers(of)}, false
			for _, work := range works {
				text := "-"
				if line := measured.Find(of, work, database, last(of)); line != nil {
					if found := cell(line); found != "" {
						text, some = found, true
					}
				}
				column = append(column, text)
			}
			for i := range lines {
				if some {
					lines[i] = append(lines[i], column[i])
				}
			}
		}
	}
	return measured.Grid(lines)
}

// names returns the works of the main size, then works of other sizes.
func (s sizes) names(wanted func(measured.Line) bool) (names []string) {
	for _, line := range append(measured.Of(s.main(), measured.Work), s.all(measured.Work)...) {
		if !line.Peer && wanted(line) && !slices.Contains(names, line.Work) {
			names = append(names, line.Work)
		}
	}
	return names
}

func median(line *measured.Line) string { return measured.Short(line.Figures["medianMs"]) }

// works returns the page of all works.
func (s sizes) works() string {
	var out strings.Builder
	out.WriteString("# Works\n\nThe measurements behind [performance](../performance.md), drawn by `go -C bench run ./page` from `docs/measured/`.\n\n")
	for _, of := range s {
		run := of[0]
		fmt.Fprintf(&out, "- %s providers and %s resources, %s, %d rounds, load before it %.1f: `%s`\n", providers(of), measured.Thousands(int(run.Figures["resources"])),
			run.Notes["day"], int(run.Figures["rounds"]), run.Figures["loadBefore"], run.Notes["command"])
	}
	run := s.main()[0]
	fmt.Fprintf(&out, "\n%s, %.0f processors, %s, %s. Clients share the processors with the servers.\n", run.Notes["system"], run.Figures["processors"], run.Notes["processor"], run.Notes["postgres"])
	out.WriteString("\n## Medians by the size of the world\n\nMilliseconds. With several clients they include waiting for each other.\n\n")
	out.WriteString(s.pivot(s.names(func(measured.Line) bool { return true }), median))
	for _, p := range s.plots()[1:4] {
		fmt.Fprintf(&out, "\n![%s](../images/%s.svg)\n", p.title, p.file)
	}
	out.WriteString("\n## Goals\n\nA goal in times the peer is unknown where the peer was not timed.\n\n")
	goals := [][]string{{"work", "goal"}}
	for _, name := range s.names(func(line measured.Line) bool { return line.Goal != "" }) {
		for _, line := range s.all(measured.Work) {
			if line.Work == name && line.Goal != "" {
				goals = append(goals, []string{name, line.Goal})
				break
			}
		}
	}
	out.WriteString(measured.Grid(goals) + "\n")
	out.WriteString(s.pivot(s.names(func(line measured.Line) bool { return line.Goal != "" }), func(line *measured.Line) string {
		if line.Goal == "" {
			return ""
		}
		return line.Reached
	}))
	out.WriteString("\n## Costs of a request, at " + providers(s.main()) + "\n\n" + measured.Table(s.main(), measured.Work))
	return out.String()
}

// scale returns the page of what servers take.
func (s sizes) scale() string {
	return "# Servers\n\nThe measurements behind [scale](../scale.md), drawn by `go -C bench run ./page` from `docs/measured/`.\n\n" +
		"## Start, memory and database\n\n" + measured.Table(s.all(measured.Footprint), measured.Footprint) +
		"\n## The largest tables, at " + providers(s[len(s)-1]) + "\n\n" + measured.Table(s[len(s)-1], measured.Stored) +
		"\n## Several processes on one PostgreSQL\n\n" + measured.Table(s.main(), measured.Processes) +
		"\n## Lag and races\n\n" + measured.Table(s.main(), measured.Lag) +
		"\n## Commits beside subscriptions\n\n" + measured.Table(s.all(measured.Followed), measured.Followed)
}

// parts returns what stands between the marks of pages.
func (s sizes) parts() map[string]string {
	key := []string{
		"candidates, first 10", "candidates, first 1000, full answer", "no candidates, 11 traits", "candidates on hosts with a pair of 50 %, first 10",
		"50 resources by a pair of 50 %", "50 resources by any of two pairs, by a member", "facets of the values of three keys", "metadata dialog", "claim",
	}
	peers := [][]string{{"work", "peer", "requests/s", "times", "in CPU"}}
	for _, line := range measured.Of(s.main(), measured.Work) {
		peer := measured.Find(s.main(), line.Work, line.Database, "")
		if line.Peer || line.Database != measured.Postgres || peer == nil || line.Server != last(s.main()) {
			continue
		}
		peers = append(peers, []string{line.Work, peer.Server, measured.Short(line.Figures["perSecond"]),
			measured.Short(line.Figures["timesThePeer"]), measured.Short(line.Figures["timesThePeersCpu"])})
	}
	return map[string]string{"key": s[1:].pivot(key, median), "peers": measured.Grid(peers), "footprints": measured.Table(s.all(measured.Footprint), measured.Footprint)}
}
