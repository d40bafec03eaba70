package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/bench/measured"
)

// report is the result of a run.
type report struct {
	promises
	lines   []measured.Line
	skipped []string // parts that this machine does not allow
}

func newReport(o options) *report {
	head := measured.NewRun("make chaos " + strings.Join(o.args, " "))
	maps.Copy(head.Figures, map[string]float64{
		"resources": float64(o.size.Resources), "items": float64(o.size.Items), "providers": float64(o.size.Providers),
		"memoryLimit": float64(o.memory), "rounds": float64(o.rounds), "roundSeconds": o.round.Seconds(),
	})
	return &report{lines: []measured.Line{head}}
}

// skip notes a part that is not done, once.
func (r *report) skip(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.skipped, text) {
		r.skipped = append(r.skipped, text)
	}
}

// promises are the promises that a measurement breaks.
type promises struct {
	of     string // database and attack
	broken []string
	slow   []string // broken limits of times, which count only with -strict
}

// err returns the broken promises as an error.
func (p *promises) err() (err error) {
	for _, one := range p.broken {
		err = errors.Join(err, errors.New(one))
	}
	return err
}

// hold records a promise unless it holds.
func (p *promises) hold(holds bool, format string, args ...any) {
	if !holds {
		p.broken = append(p.broken, p.of+": "+fmt.Sprintf(format, args...))
	}
}

// add adds a measurement with the promises that it breaks.
func (r *report) add(line measured.Line, of promises) {
	r.broken, r.slow = append(r.broken, of.broken...), append(r.slow, of.slow...)
	if line.Reached = "yes"; len(of.broken)+len(of.slow) > 0 {
		line.Reached = "no"
	}
	if line.Notes == nil {
		line.Notes = map[string]string{}
	}
	line.Notes["day"] = r.lines[0].Notes["day"]
	r.lines = append(r.lines, line)
}

// promises returns the promises that wrong claims break.
func (v verdict) promises(database string) promises {
	p := promises{of: database}
	for i, list := range [][]string{v.Lost, v.Unasked, v.OverAllocated, v.Miscounted, v.Found} {
		for _, one := range list {
			p.hold(false, "%s: %s",
				[]string{"lost", "refused and made", "over-allocated", "miscounted", "found by the doctor"}[i], one)
		}
	}
	return p
}

func (v verdict) figures() map[string]float64 {
	return map[string]float64{
		"claims": float64(v.Claims), "acknowledged": float64(v.Acknowledged), "lost": float64(len(v.Lost)),
		"unasked": float64(len(v.Unasked)), "overallocated": float64(len(v.OverAllocated)),
		"miscounted": float64(len(v.Miscounted)),
		"found":      float64(len(v.Found)),
	}
}
