package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"

	"github.com/cadastre-dev/cadastre/bench/measured"
)

// plot is a drawing of costs against a size, on logarithmic axes.
type plot struct {
	file, title string
	x, y        string // titles of the axes
	lines       []line
}

// line is the cost of one thing. Lines of one name have one color.
type line struct {
	name   string
	dashed bool
	color  int
	points []point
}

type point struct{ x, y float64 }

// plots returns the drawings: of works and of what servers take by the size of the
// world, and of several processes.
func (s sizes) plots() (all []plot) {
	for _, p := range []struct {
		file, title string
		works       []string
	}{
		{"performance-candidates", "Candidates", []string{
			"candidates, first 10", "candidates, first 1000, full answer", "candidates on hosts with a pair of 0.5 %, first 10", "candidates on hosts with a pair of 50 %, first 10",
			"no candidates, 11 traits", "no candidates, 11 traits, explained", "no candidates, amounts too large",
		}},
		{"performance-resources", "Resources, of an administrator", []string{
			"100 resources with metadata", "50 resources by a pair of 0.5 %", "50 resources by a pair of 50 %", "50 resources by any of two pairs", "50 resources without a pair",
			"number of resources with a pair of 50 %", "explained filter of resources",
		}},
		{"performance-facets", "Facets, of an administrator and of a member", []string{
			"facet of metadata keys", "facets of the values of three keys", "facet of a key with as many values as resources",
			"facet of metadata keys, by a member", "facets of the values of three keys, by a member", "facet of a key with as many values as resources, by a member",
		}},
		{"performance-claims", "Claims and definitions", []string{"claim", "claim, 4 clients", "claim, 32 clients", "claim of one provider, 32 clients", "metadata dialog", "20 namespaces with properties, 32 clients"}},
	} {
		all = append(all, plot{p.file, p.title, "providers, and as many resources", "ms, median: lines are PostgreSQL, dashes SQLite", s.lines(measured.Work, p.works, func(l measured.Line, i int) (float64, bool) {
			return l.Figures["medianMs"], !l.Peer && l.Work == p.works[i]
		})})
	}
	figures := []string{"startMs", "heapBytes", "residentBytes", "storedBytes"}
	all = append(all, plot{"scale-footprint", "What a server takes", "providers, and as many resources", "ms or MiB: lines are PostgreSQL, dashes SQLite",
		s.lines(measured.Footprint, []string{"start, ms", "heap after a start, MiB", "process after a start, MiB", "database, MiB"}, func(l measured.Line, i int) (float64, bool) {
			if i == 0 {
				return l.Figures[figures[i]], true
			}
			return l.Figures[figures[i]] / (1 << 20), true
		})})
	processes := plot{file: "scale-processes", title: "Several processes on one PostgreSQL", x: "processes", y: "requests/s, 32 clients"}
	for _, of := range measured.Of(s.main(), measured.Processes) {
		i := slices.IndexFunc(processes.lines, func(l line) bool { return l.name == of.Work })
		if i < 0 {
			i = len(processes.lines)
			processes.lines = append(processes.lines, line{name: of.Work, color: i})
		}
		processes.lines[i].points = append(processes.lines[i].points, point{of.Figures["processes"], of.Figures["perSecond"]})
	}
	return append(all, processes)
}

// lines returns a line for each name and database: of the figure of each size.
func (s sizes) lines(kind string, names []string, figure func(measured.Line, int) (float64, bool)) (all []line) {
	for i, name := range names {
		for _, database := range []string{measured.Postgres, measured.SQLite} {
			one := line{name: name, dashed: database == measured.SQLite, color: i}
			for _, of := range s.all(kind) {
				if y, ok := figure(of, i); ok && of.Database == database {
					one.points = append(one.points, point{of.Figures["providers"], y})
				}
			}
			if len(one.points) > 0 {
				all = append(all, one)
			}
		}
	}
	return all
}

// The measures of a drawing, in pixels, and the colors of its lines, which differ
// on white and on black.
const (
	width, height            = 900, 380
	left, top, right, bottom = 66, 62, 530, 330
	legend, legendHeight     = 556, 21
	style                    = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 15px; font-weight: 600; }
.paper { fill: #ffffff; } .grid { stroke: #d8dee4; } .lines path { fill: none; stroke-width: 2; }
@media (prefers-color-scheme: dark) { text { fill: #d1d7e0; } .paper { fill: #0d1117; } .grid { stroke: #30363d; } }
</style>
`
)

func colors() []string {
	return []string{"#3b82d0", "#d9730d", "#2f9e5b", "#c94f7c", "#8a63d2", "#a3851a", "#159a9c", "#c0392b"}
}

// axis is a logarithmic axis: the numbers beside it. The first and the last are
// its ends.
type axis []float64

// axes returns the axes of lines: each size, and powers of ten.
func axes(lines []line) (x, y axis) {
	var xs, ys []float64
	for _, one := range lines {
		for _, at := range one.points {
			xs, ys = append(xs, at.x), append(ys, at.y)
		}
	}
	if x = slices.Compact(slices.Sorted(slices.Values(xs))); len(x) == 1 {
		x = append(x, 10*x[0])
	}
	from, to := int(math.Floor(math.Log10(slices.Min(ys))+1e-9)), int(math.Ceil(math.Log10(slices.Max(ys))-1e-9))
	for power := from; power <= max(to, from+1); power++ {
		y = append(y, math.Pow10(power))
	}
	return x, y
}

// at returns where a number is on the axis, between two places.
func (a axis) at(number float64, first, last int) float64 {
	from, to := math.Log10(a[0]), math.Log10(a[len(a)-1])
	return float64(first) + (math.Log10(number)-from)/(to-from)*float64(last-first)
}

// svg returns the drawing: the same for the same numbers.
func (p plot) svg() []byte {
	x, y := axes(p.lines)
	var out bytes.Buffer
	text := func(class string, atX, atY float64, text string) {
		fmt.Fprintf(&out, `<text %s x="%.1f" y="%.1f">%s</text>`, class, atX, atY, html.EscapeString(text))
	}
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n%s", width, height, html.EscapeString(p.title), style)
	fmt.Fprintf(&out, `<rect class="paper" width="%d" height="%d"/>`, width, height)
	text(`class="title"`, left, 24, p.title)
	grid := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(&out, "\n"+`<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x1, y1, x2, y2)
	}
	for _, number := range x {
		at := x.at(number, left, right)
		grid(at, top, at, bottom)
		text(`text-anchor="middle"`, at, bottom+18, measured.Thousands(int(number)))
	}
	for _, number := range y {
		at := y.at(number, bottom, top)
		grid(left, at, right, at)
		text(`text-anchor="end"`, left-6, at+4, numberText(number))
	}
	text(`text-anchor="middle"`, (left+right)/2, bottom+38, p.x)
	text("", left, 46, p.y)
	out.WriteString("\n" + `<g class="lines">` + "\n")
	named := 0
	for i, one := range p.lines {
		paint := colors()[one.color%len(colors())]
		path, command, dashes := "", "M", ""
		for _, of := range one.points {
			atX, atY := x.at(of.x, left, right), y.at(of.y, bottom, top)
			path += fmt.Sprintf("%s%.1f %.1f", command, atX, atY)
			command = " L"
			fmt.Fprintf(&out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, atX, atY, paint)
		}
		if one.dashed {
			dashes = ` stroke-dasharray="6 4"`
		}
		fmt.Fprintf(&out, `<path d="%s" stroke="%s"%s/>`, path, paint, dashes)
		if i == 0 || one.color != p.lines[i-1].color { // the next is the same of another database
			at := float64(top + legendHeight*named)
			fmt.Fprintf(&out, `<path d="M%d %.1f h26" stroke="%s"/>`, legend, at, paint)
			text("", legend+32, at+4, one.name)
			named++
		}
		out.WriteString("\n")
	}
	out.WriteString("</g>\n</svg>\n")
	return out.Bytes()
}

// numberText returns a number as people write it.
func numberText(number float64) string {
	if number >= 1000 {
		return measured.Thousands(int(number))
	}
	return fmt.Sprintf("%g", number)
}
