package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// row is what was measured of one work on one target.
type row struct {
	Work     string `json:"work"`
	Database string `json:"database"`
	Binary   string `json:"binary"`
	// Operations is how many were timed.
	Operations int `json:"operations"`
	// Rows is the length of the list that the work is about, in one answer.
	Rows int `json:"rows"`
	// Bytes is the length of one answer.
	Bytes int `json:"bytes"`
	// Median and P99 are by the clock of the client, in milliseconds.
	Median float64 `json:"medianMs"`
	P99    float64 `json:"p99Ms"`
	// ServerCPU and DatabaseCPU are the milliseconds on processors of one
	// operation, on average: of the server, and of the processes of PostgreSQL.
	// Nil is not measured; the database CPU of SQLite is in that of the server.
	ServerCPU   *float64 `json:"serverCpuMs,omitempty"`
	DatabaseCPU *float64 `json:"databaseCpuMs,omitempty"`
}

// series is the timing of one work on one target while it goes on.
type series struct {
	work   work
	target *target
	want   []byte // the answer, for a read
	rows   int
	bytes  int // of the last answer
	next   int // number of the next request
	times  []time.Duration
	cpu    cpu
}

// cpu is time on processors.
type cpu struct{ server, database time.Duration }

// measure times all works on all targets, in rounds: in each, every work is timed
// on one target after the other, beginning with another one each time.
func measure(ctx context.Context, targets []*target, w *world, rounds int, progress io.Writer) ([]row, error) {
	works := works()
	all := make([][]*series, len(works))
	for i, work := range works {
		var err error
		if all[i], err = prepare(ctx, targets, w, work); err != nil {
			return nil, fmt.Errorf("%s: %w", work.name, err)
		}
	}
	for round := range rounds {
		for _, of := range all {
			for i := range of {
				s := of[(round+i)%len(of)]
				if err := s.round(ctx, w); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", s.target, s.work.name, err)
				}
			}
		}
		if (round+1)%10 == 0 {
			if _, err := fmt.Fprintf(progress, "%d of %d rounds\n", round+1, rounds); err != nil {
				return nil, err
			}
		}
	}
	var rows []row
	for _, of := range all {
		for _, s := range of {
			rows = append(rows, s.row())
		}
	}
	return rows, nil
}

// prepare asks every target once and holds their answers to a read against each
// other.
func prepare(ctx context.Context, targets []*target, w *world, work work) ([]*series, error) {
	var all []*series
	var wanted json.RawMessage
	for _, t := range targets {
		s := &series{work: work, target: t}
		answers, err := s.run(ctx, w, 1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		data, err := dataOf(answers[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		if s.rows, err = length(data, work.list); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		s.times, s.cpu = nil, cpu{}
		all = append(all, s)
		if work.undo != nil {
			continue
		}
		if s.want = answers[0]; wanted == nil {
			wanted = data
		}
		if !bytes.Equal(data, wanted) {
			return nil, fmt.Errorf("%s and %s answer differently: %s", targets[0], t, difference(wanted, data))
		}
	}
	return all, nil
}

// round times one round of the work on its target, which was idle meanwhile: the
// first request is not counted.
func (s *series) round(ctx context.Context, w *world) error {
	times, used := s.times, s.cpu
	if _, err := s.run(ctx, w, 1); err != nil {
		return err
	}
	s.times, s.cpu = times, used
	answers, err := s.run(ctx, w, s.work.operations)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		s.bytes = len(answer)
		if _, err := dataOf(answer); err != nil {
			return err
		}
		if s.want != nil && !bytes.Equal(answer, s.want) {
			return fmt.Errorf("the answer is another one than at first: %s", difference(s.want, answer))
		}
	}
	return nil
}

// run sends the next requests, one after the other, adds what they took, takes
// back what they did, and returns their answers.
func (s *series) run(ctx context.Context, w *world, count int) ([][]byte, error) {
	first := s.next
	s.next += count
	var bodies, answers [][]byte
	for n := first; n < s.next; n++ {
		body, err := s.work.request(w, n).body()
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	before, err := s.target.cpu()
	if err != nil {
		return nil, err
	}
	for _, body := range bodies {
		started := time.Now()
		answer, err := s.target.server.post(ctx, body)
		if err != nil {
			return nil, err
		}
		s.times = append(s.times, time.Since(started))
		answers = append(answers, answer)
	}
	after, err := s.target.cpu()
	if err != nil {
		return nil, err
	}
	s.cpu.server += after.server - before.server
	s.cpu.database += after.database - before.database
	for n := first; s.work.undo != nil && n < s.next; n++ {
		if err := s.target.server.ask(ctx, s.work.undo(w, n), nil); err != nil {
			return nil, fmt.Errorf("take back: %w", err)
		}
	}
	return answers, nil
}

// cpu returns what the target's processes used so far.
func (t *target) cpu() (used cpu, err error) {
	if !measuresCPU() {
		return used, nil
	}
	if used.server, err = cpuOf(t.server.pid); err != nil || t.cluster == nil {
		return used, err
	}
	used.database, err = cpuOfFamily(t.cluster.pid)
	return used, err
}

// row returns what was measured.
func (s *series) row() row {
	slices.Sort(s.times)
	r := row{
		Work: s.work.name, Database: s.target.database, Binary: s.target.binary,
		Operations: len(s.times), Rows: s.rows, Bytes: s.bytes,
		Median: milliseconds(quantile(s.times, 50)), P99: milliseconds(quantile(s.times, 99)),
	}
	if !measuresCPU() {
		return r
	}
	each := func(used time.Duration) *float64 {
		return new(milliseconds(used) / float64(len(s.times)))
	}
	r.ServerCPU = each(s.cpu.server)
	if s.target.cluster != nil {
		r.DatabaseCPU = each(s.cpu.database)
	}
	return r
}

// quantile returns the least of sorted times that a percentage of them does not
// exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// length returns the length of a list somewhere in the data of an answer; a list
// without elements is an error, for nothing would be measured.
func length(data json.RawMessage, path []string) (int, error) {
	for _, name := range path {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		data = fields[name]
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return 0, fmt.Errorf("read the list at %v: %w", path, err)
	}
	if len(elements) == 0 {
		return 0, fmt.Errorf("the list at %v is empty", path)
	}
	return len(elements), nil
}

// difference shows where two texts begin to differ.
func difference(a, b []byte) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	const around = 100
	excerpt := func(text []byte) []byte { return text[max(0, at-around):min(len(text), at+around)] }
	return fmt.Sprintf("at byte %d\n%s\n%s", at, excerpt(a), excerpt(b))
}
