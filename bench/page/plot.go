package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"text/template"

	"github.com/dustin/go-humanize"
	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/bench/measured"
)

//go:embed plots.yaml
var plotsFile []byte

//go:embed plot.svg
var drawing string

// plot is a drawing of costs against a size, on logarithmic axes: a row of
// plots.yaml.
type plot struct {
	File, Title, Kind string
	By, X, Y          string // figure for the horizontal position, and titles of the axes
	Works             []string
	Figures           []struct {
		Name, Figure string
		Divisor      float64
	}
}

// line is the cost of one thing. Lines of one name have one color.
type line struct {
	Name   string
	Dashed bool
	Color  int
	Points []point
	Legend int // position of its name; 0 for none
}

type point struct{ X, Y float64 }

// plots returns the drawings by their files.
func (s sizes) plots() (map[string][]byte, error) {
	var all []plot
	if err := yaml.Unmarshal(plotsFile, &all); err != nil {
		return nil, fmt.Errorf("plots.yaml: %w", err)
	}
	drawn := map[string][]byte{}
	for _, p := range all {
		var err error
		if drawn[p.File], err = p.svg(s.lines(p)); err != nil {
			return nil, err
		}
	}
	return drawn, nil
}

// lines returns the lines of a drawing: for each name and database, PostgreSQL
// first, a point for each measurement.
func (s sizes) lines(p plot) (all []line) {
	from := s.all(cmp.Or(p.Kind, measured.Work))
	if p.By != "" {
		from = measured.Of(s.main(), p.Kind)
		for _, of := range from {
			if !slices.Contains(p.Works, of.Work) {
				p.Works = append(p.Works, of.Work)
			}
		}
	}
	add := func(i int, name, figure string, divisor float64, has func(measured.Line) bool) {
		for _, database := range []string{measured.Postgres, measured.SQLite} {
			one := line{Name: name, Dashed: database == measured.SQLite, Color: i}
			for _, of := range from {
				if of.Database == database && !of.Peer && has(of) {
					one.Points = append(one.Points,
						point{of.Figures[cmp.Or(p.By, "providers")], of.Figures[figure] / divisor})
				}
			}
			if len(one.Points) > 0 {
				all = append(all, one)
			}
		}
	}
	figure := "medianMs"
	if p.By != "" {
		figure = "perSecond"
	}
	for i, work := range p.Works {
		add(i, work, figure, 1, func(of measured.Line) bool { return of.Work == work })
	}
	for i, of := range p.Figures {
		add(i, of.Name, of.Figure, of.Divisor, func(measured.Line) bool { return true })
	}
	return all
}

// The dimensions of a drawing, in pixels.
const (
	left, top, right, bottom = 66, 62, 530, 330
	legendHeight             = 21
)

// paint returns the color of lines. All colors are legible on white and on black.
func paint(color int) string {
	all := []string{"#3b82d0", "#d9730d", "#2f9e5b", "#c94f7c", "#8a63d2", "#a3851a", "#159a9c", "#c0392b"}
	return all[color%len(all)]
}

// axis is a logarithmic axis. Its first and last numbers are its ends.
type axis []float64

// axes returns the axes of lines. x has each size, y powers of ten.
func axes(lines []line) (x, y axis) {
	var xs, ys []float64
	for _, one := range lines {
		for _, at := range one.Points {
			xs, ys = append(xs, at.X), append(ys, at.Y)
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

// at returns the position of a number on the axis, between first and last.
func (a axis) at(number float64, first, last int) float64 {
	from, to := math.Log10(a[0]), math.Log10(a[len(a)-1])
	return float64(first) + (math.Log10(number)-from)/(to-from)*float64(last-first)
}

// mark is the label of a number of an axis.
type mark struct {
	At   float64
	Text string
}

func (a axis) marks(first, last int) (all []mark) {
	for _, number := range a {
		text := fmt.Sprintf("%g", number)
		if number >= 1000 {
			text = humanize.Comma(int64(number))
		}
		all = append(all, mark{a.at(number, first, last), text})
	}
	return all
}

// svg returns the drawing. Equal numbers give equal drawings.
func (p plot) svg(lines []line) ([]byte, error) {
	x, y := axes(lines)
	at, color := top, -1
	for i := range lines {
		for j, of := range lines[i].Points {
			lines[i].Points[j] = point{x.at(of.X, left, right), y.at(of.Y, bottom, top)}
		}
		if lines[i].Color != color { // the next line is the same thing on another database
			lines[i].Legend, color = at, lines[i].Color
			at += legendHeight
		}
	}
	px := func(number float64) string { return fmt.Sprintf("%.1f", number) }
	file, err := template.New("").Funcs(template.FuncMap{"px": px}).Parse(drawing)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = file.Execute(&out, map[string]any{
		"Title": p.Title, "X": cmp.Or(p.X, "providers, and as many resources"),
		"Y":     cmp.Or(p.Y, "ms, median: lines are PostgreSQL, dashes SQLite"),
		"Lines": lines, "Paint": paint, "XGrid": x.marks(left, right), "YGrid": y.marks(bottom, top),
		"Left": left, "Top": top, "Right": right, "Bottom": bottom,
	})
	return out.Bytes(), err
}
