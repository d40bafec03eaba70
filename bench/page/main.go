// Page generates the documents of measurements. It writes the drawings in
// docs/images and fills the marked parts of pages.
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

	"github.com/dustin/go-humanize"

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

// draw writes the documents of the folder from into the folder to. Both may be
// the same.
func draw(from, to string) error {
	files, err := readSizes(filepath.Join(from, "measured"))
	if err != nil {
		return err
	}
	attacks, err := measured.ReadFile(filepath.Join(from, "measured", "attacks.jsonl"))
	if err != nil {
		return err
	}
	parts := files.parts(attacks)
	drawings, err := files.plots()
	if err != nil {
		return err
	}
	for name, text := range drawings {
		if err := os.WriteFile(filepath.Join(to, "images", name+".svg"), text, 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"performance.md", "scale.md", "measured/works.md",
		"measured/scale.md", "measured/attacks.md"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		filled, err := fill(string(text), parts)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(to, name), []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var marked = regexp.MustCompile(`(?s)<!--Measured:([a-z]+)-->.*?<!--Measured-->`)

// fill returns a page with each part between its marks.
func fill(page string, parts map[string]string) (string, error) {
	var err error
	filled := marked.ReplaceAllStringFunc(page, func(old string) string {
		name := marked.FindStringSubmatch(old)[1]
		if parts[name] == "" || strings.Count(old, "<!--Measured:") > 1 {
			err = fmt.Errorf("the mark of %q has no end, or nothing to hold", name)
		}
		return "<!--Measured:" + name + "-->\n\n" + strings.TrimSpace(parts[name]) + "\n\n<!--Measured-->"
	})
	if filled == page && !marked.MatchString(page) {
		err = fmt.Errorf("it has no marks")
	}
	return filled, err
}

// sizes are the measurements of several sizes, the smallest first.
type sizes [][]measured.Line

// readSizes reads the files of a folder, the smallest size first. Each line gets
// the numbers of providers and resources in the first line of its file as figures.
func readSizes(folder string) (files sizes, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "[0-9]*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no [0-9]*.jsonl in %s", folder)
	}
	for _, path := range paths {
		lines, err := measured.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 || lines[0].Kind != "run" {
			return nil, fmt.Errorf("%s does not begin with a line of kind run", path)
		}
		for _, line := range lines {
			line.Figures["providers"], line.Figures["resources"] = lines[0].Figures["providers"],
				lines[0].Figures["resources"]
		}
		files = append(files, lines)
	}
	slices.SortFunc(files, func(a, b []measured.Line) int {
		return int(a[0].Figures["providers"] - b[0].Figures["providers"])
	})
	return files, nil
}

// main returns the file with most lines. Only that file has peers and several
// processes.
func (s sizes) main() []measured.Line {
	return slices.MaxFunc(s, func(a, b []measured.Line) int { return len(a) - len(b) })
}

// all returns the lines of a kind of all sizes.
func (s sizes) all(kind string) []measured.Line { return measured.Of(slices.Concat(s...), kind) }

func count(of measured.Line, figure string) string { return humanize.Comma(int64(of.Figures[figure])) }

// last returns the name of the last binary.
func last(lines []measured.Line) (name string) {
	for _, line := range measured.Of(lines, measured.Work) {
		if !line.Peer {
			name = line.Server
		}
	}
	return name
}

// medians returns a table of medians with a row for each given work and a column
// for each database and size. It omits empty columns.
func (s sizes) medians(works []string) string {
	lines := [][]string{{"work"}}
	for _, work := range works {
		lines = append(lines, []string{work})
	}
	for _, database := range []string{measured.Postgres, measured.SQLite} {
		for _, of := range s {
			column, some := []string{database + ", " + count(of[0], "providers")}, false
			for _, work := range works {
				text := "-"
				if line := measured.Find(of, work, database, last(of)); line != nil {
					text, some = measured.Short(line.Figures["medianMs"]), true
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

// works returns the works of the main size, then works of other sizes.
func (s sizes) works() (works []string) {
	for _, line := range append(measured.Of(s.main(), measured.Work), s.all(measured.Work)...) {
		if !line.Peer && !slices.Contains(works, line.Work) {
			works = append(works, line.Work)
		}
	}
	return works
}

// peers returns the table of the peers of works.
func (s sizes) peers() string {
	rows := [][]string{{"work", "peer", "requests/s", "times", "in CPU"}}
	for _, line := range measured.Of(s.main(), measured.Work) {
		peer := measured.Find(s.main(), line.Work, line.Database, "")
		if line.Peer || line.Database != measured.Postgres || peer == nil || line.Server != last(s.main()) {
			continue
		}
		row := []string{line.Work, peer.Server}
		for _, figure := range []string{"perSecond", "timesThePeer", "timesThePeersCpu"} {
			row = append(row, measured.Short(line.Figures[figure]))
		}
		rows = append(rows, row)
	}
	return measured.Grid(rows)
}

// parts returns the strings that belong between the marks of pages, by name.
func (s sizes) parts(attacks []measured.Line) map[string]string {
	key := []string{
		"candidates, first 10", "candidates, first 1000, full answer", "no candidates, 11 traits",
		"candidates on hosts with a pair of 50 %, first 10", "50 resources by a pair of 50 %",
		"50 resources by any of two pairs, by a member",
		"facets of the values of three keys", "metadata dialog", "claim",
	}
	var runs strings.Builder
	for _, of := range s {
		fmt.Fprintf(&runs, "- %s providers and %s resources, %s, %s rounds, load before it %.1f: `%s`\n",
			count(of[0], "providers"),
			count(of[0], "resources"), of[0].Notes["day"], count(of[0], "rounds"),
			of[0].Figures["loadBefore"], of[0].Notes["command"])
	}
	run, attacked := s.main()[0], attacks[0]
	return map[string]string{
		"runs": runs.String(),
		"machine": fmt.Sprintf("%s, %.0f processors, %s, %s. Clients share the processors with the servers.",
			run.Notes["system"], run.Figures["processors"], run.Notes["processor"], run.Notes["postgres"]),
		"medians": s.medians(s.works()), "key": s[1:].medians(key), "peers": s.peers(),
		"footprints": measured.Table(s.all(measured.Footprint), measured.Footprint),
		"tables":     measured.Table(s[len(s)-1], measured.Stored),
		"processes":  measured.Table(s.main(), measured.Processes), "lag": measured.Table(s.main(), measured.Lag),
		"followed": measured.Table(s.all(measured.Followed), measured.Followed),
		"chaos": fmt.Sprintf("Written by `%s` on %s: %s resources of %s items, %s providers, %.0f MiB for each server, medians of "+
			"%s rounds of %s s, on %s processors (%s). Other days are earlier runs.", attacked.Notes["command"],
			attacked.Notes["day"], count(attacked, "resources"), count(attacked, "items"), count(attacked, "providers"),
			attacked.Figures["memoryLimit"]/(1<<20), count(attacked, "rounds"), count(attacked, "roundSeconds"),
			count(attacked, "processors"), attacked.Notes["processor"]),
		"attacks": measured.Table(attacks, measured.Attack), "memory": measured.Table(attacks, measured.Memory),
		"verdicts": measured.Table(attacks, measured.Verdict), "faults": measured.Table(attacks, measured.Faults),
	}
}
