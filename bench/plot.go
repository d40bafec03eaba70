package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
)

// plot is a drawing of costs against a size, both on logarithmic axes.
type plot struct {
	file, title string
	x, y        string // what the axes are
	lines       []line
}

// line is the cost of one thing.
type line struct {
	name   string
	dashed bool
	color  int
	points []point
}

type point struct{ x, y float64 }

// The measures of a drawing, in pixels, and the colors of its lines, which are
// told from each other on white and on black.
const (
	plotWidth, plotHeight    = 900, 380
	plotLeft, plotTop        = 66, 62
	plotRight, plotBottom    = 530, 330
	legendLeft, legendHeight = 556, 21
)

func plotColors() []string {
	return []string{"#3b82d0", "#d9730d", "#2f9e5b", "#c94f7c", "#8a63d2", "#a3851a", "#159a9c", "#c0392b", "#7f8c8d", "#5d8a1f", "#b06ab3", "#4c6a92"}
}

const plotStyle = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 15px; font-weight: 600; }
.paper { fill: #ffffff; } .grid { stroke: #d8dee4; } .lines path { fill: none; stroke-width: 2; }
@media (prefers-color-scheme: dark) { text { fill: #d1d7e0; } .paper { fill: #0d1117; } .grid { stroke: #30363d; } }
</style>
`

// axis is a logarithmic axis: the numbers that are written beside it, of which the
// first and the last are its ends.
type axis []float64

// powersFor returns the axis of the powers of ten between which some numbers are.
func powersFor(numbers []float64) axis {
	from, to := int(math.Floor(math.Log10(slices.Min(numbers))+1e-9)), int(math.Ceil(math.Log10(slices.Max(numbers))-1e-9))
	var a axis
	for power := from; power <= max(to, from+1); power++ {
		a = append(a, math.Pow10(power))
	}
	return a
}

// eachOf returns the axis of some numbers, each of which is written.
func eachOf(numbers []float64) axis {
	a := axis(slices.Compact(slices.Sorted(slices.Values(numbers))))
	if len(a) == 1 {
		a = append(a, 10*a[0])
	}
	return a
}

// at returns where a number is on the axis, which is drawn from one place to
// another.
func (a axis) at(number float64, first, last int) float64 {
	from, to := math.Log10(a[0]), math.Log10(a[len(a)-1])
	return float64(first) + (math.Log10(number)-from)/(to-from)*float64(last-first)
}

// svg returns the drawing: the same for the same numbers.
func (p plot) svg() []byte {
	var xs, ys []float64
	for _, one := range p.lines {
		for _, at := range one.points {
			xs, ys = append(xs, at.x), append(ys, at.y)
		}
	}
	x, y := eachOf(xs), powersFor(ys)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n%s", plotWidth, plotHeight, html.EscapeString(p.title), plotStyle)
	fmt.Fprintf(&out, `<rect class="paper" width="%d" height="%d"/><text class="title" x="%d" y="24">%s</text>`+"\n", plotWidth, plotHeight, plotLeft, html.EscapeString(p.title))
	for _, number := range x {
		at := x.at(number, plotLeft, plotRight)
		fmt.Fprintf(&out, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, plotTop, at, plotBottom, at, plotBottom+18, numberText(number))
	}
	for _, number := range y {
		at := y.at(number, plotBottom, plotTop)
		fmt.Fprintf(&out, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", plotLeft, at, plotRight, at, plotLeft-6, at+4, numberText(number))
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle">%s</text><text x="%d" y="46">%s</text>`+"\n"+`<g class="lines">`+"\n",
		(plotLeft+plotRight)/2, plotBottom+38, html.EscapeString(p.x), plotLeft, html.EscapeString(p.y))
	named := 0
	for i, one := range p.lines {
		one.draw(&out, x, y)
		if i == 0 || one.color != p.lines[i-1].color { // the next is the same of another database
			one.drawName(&out, plotTop+legendHeight*named)
			named++
		}
	}
	fmt.Fprint(&out, "</g>\n</svg>\n")
	return out.Bytes()
}

// draw draws a line and its points.
func (l line) draw(out *bytes.Buffer, x, y axis) {
	path, command := "", "M"
	for _, at := range l.points {
		left, top := x.at(at.x, plotLeft, plotRight), y.at(at.y, plotBottom, plotTop)
		path += fmt.Sprintf("%s%.1f %.1f", command, left, top)
		command = " L"
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, left, top, l.paint())
	}
	dashes := ""
	if l.dashed {
		dashes = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(out, `<path d="%s" stroke="%s"%s/>`+"\n", path, l.paint(), dashes)
}

// drawName draws the name of a line at a height of the legend.
func (l line) drawName(out *bytes.Buffer, top int) {
	fmt.Fprintf(out, `<path d="M%d %d h26" stroke="%s"/><text x="%d" y="%d">%s</text>`+"\n", legendLeft, top, l.paint(), legendLeft+32, top+4, html.EscapeString(l.name))
}

func (l line) paint() string { return plotColors()[l.color%len(plotColors())] }

// numberText returns a number as people write it.
func numberText(number float64) string {
	if number >= 1000 {
		return thousands(int(number))
	}
	return fmt.Sprintf("%g", number)
}
