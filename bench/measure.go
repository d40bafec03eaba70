package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// series is the timing of one work on one target.
type series struct {
	timing
	work      work
	target    *target
	answer    []byte       // the first one
	exact     bool         // whether every answer must equal the first one
	refused   string       // code of a refusal; a refused work is not timed
	waits     int64        // answers after which a client sent its request again
	conflicts atomic.Int64 // of operations of several requests
	rows      int
	next      int // number of the next operation
	counted   map[string]float64
}

// measure times all works on all targets, in rounds. A round times every work
// on one target after the other. The first target changes from round to round.
func (b *bench) measure(ctx context.Context) (lines []measured.Line, err error) {
	var all [][]*series
	for _, work := range b.works {
		of, err := b.prepare(ctx, work)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", work.Name, err)
		}
		for _, s := range of {
			if err := s.count(ctx); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.target, work.Name, err)
			}
		}
		all = append(all, of)
	}
	if err := b.timeRounds(ctx, all); err != nil {
		return nil, err
	}
	for _, of := range all {
		for _, s := range of {
			lines = append(lines, s.line())
		}
	}
	return lines, nil
}

// timeRounds times rounds until it has the configured number of rounds, or
// until the next round would end too late.
func (b *bench) timeRounds(ctx context.Context, all [][]*series) error {
	var longest time.Duration
	for round := range b.rounds {
		began := time.Now()
		if round > 0 && began.Add(longest).After(b.deadline) {
			b.rounds = round
			break
		}
		for _, of := range all {
			for i := range of {
				s := of[(round+i)%len(of)]
				if err := s.round(ctx); err != nil {
					return fmt.Errorf("%s, %s: %w", s.target, s.work.Name, err)
				}
			}
		}
		longest = max(longest, time.Since(began))
		b.Say("round %d of %d: %.0f s", round+1, b.rounds, time.Since(began).Seconds())
	}
	return nil
}

// prepare asks every target of a work once and compares their answers to a read:
// the bytes of servers, and the rows of peers.
func (b *bench) prepare(ctx context.Context, work work) (all []*series, _ error) {
	var first *series // that was not refused
	for _, t := range b.servers(b.worldOf(work)) {
		s := &series{work: work, target: t, rows: 1}
		all = append(all, s)
		if err := s.askServer(ctx, first); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		if first == nil && s.refused == "" {
			first = s
		}
	}
	for _, t := range b.targets {
		if work.Peer == nil || first == nil || t.peer != work.Peer.With || t.world != b.worldOf(work) {
			continue
		}
		s, err := askPeer(ctx, first, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// askPeer asks a peer the question of a work and compares the rows of its answer
// with Cadastre's.
func askPeer(ctx context.Context, own *series, peer *target) (*series, error) {
	s := &series{work: own.work, target: peer, rows: own.rows}
	s.exact = !s.work.Peer.Every && s.work.Undo == nil
	s.work.Operations, s.work.Question = cmp.Or(own.work.Peer.Operations, own.work.Operations), own.work.Peer.Question
	if err := s.ask(ctx); err != nil || s.work.Undo != nil {
		return s, err
	}
	return s, sameAnswer(ctx, own, s)
}

// askServer asks a server and compares its answer to a read with the first
// server's.
func (s *series) askServer(ctx context.Context, first *series) error {
	if err := s.ask(ctx); err != nil || s.refused != "" {
		return err
	}
	if s.work.List != "" {
		rows, err := rowsOf(s.work.rows(), s.answer)
		if err != nil {
			return err
		}
		if s.rows = len(rows); s.rows == 0 && !s.work.MayBeEmpty {
			return fmt.Errorf("the list at %s is empty", s.work.List)
		}
	}
	s.exact = s.work.Undo == nil
	if s.exact && first != nil && !bytes.Equal(unpriced(s.answer), unpriced(first.answer)) {
		return fmt.Errorf("%s and %s answer differently: %s", first.target,
			s.target, difference(first.answer, s.answer))
	}
	return nil
}

// ask sends an operation that is not timed, keeps the last answer or the code
// of a refusal, and undoes the operation.
func (s *series) ask(ctx context.Context) error {
	d := s.drive(1, 1)
	defer d.close()
	d.check = func(answer []byte, err error) error {
		s.answer = bytes.Clone(answer)
		return err
	}
	_, _, err := d.run(ctx)
	var refused local.Answer
	if errors.As(err, &refused) && refused.Status > 0 && refused.Code != local.Answered {
		s.refused = refused.Code
		return nil
	}
	if err != nil {
		return err
	}
	return s.takeBack(ctx, s.next-1)
}

// round times one round of the work on its target. Before it, the clients send
// operations that are not timed, as many as there are clients.
func (s *series) round(ctx context.Context) error {
	if s.refused != "" {
		return nil
	}
	first := s.next
	d := s.drive(s.work.Clients, s.work.Clients)
	defer d.close()
	if _, _, err := d.run(ctx); err != nil {
		return err
	}
	d.next = s.operations(s.work.Operations)
	if err := s.add(ctx, []*target{s.target}, d); err != nil {
		return err
	}
	for _, c := range d.clients {
		s.waits += c.Delayed.Load()
	}
	return s.takeBack(ctx, first)
}

// maxRound ends a round of reads that the rate limit of a viewer makes long.
const maxRound = 20 * time.Second

// drive returns a drive of the next requests by some clients, whose connections
// the caller closes.
func (s *series) drive(clients, count int) drive {
	d := drive{clients: connect([]*target{s.target}, s.work.As, clients), next: s.operations(count), check: s.check,
		conflicts: &s.conflicts}
	for _, c := range d.clients {
		if s.work.Path != "" && s.target.server != nil {
			c.Headers += microversion
		}
	}
	return d
}

func (d drive) close() {
	for _, c := range d.clients {
		c.Close()
	}
}

// operations returns a function that returns the next operations, one by one. It
// ends early if reads take longer than maxRound.
func (s *series) operations(count int) func() []operation {
	all := make([]operation, count)
	for i := range all {
		if all[i] = all[0]; i == 0 || s.work.Undo != nil { // a read is always the same
			all[i] = operation{s.target.call(s.work.Question, s.next+i)}
			if s.work.Then != nil {
				all[i] = append(all[i], s.target.call(*s.work.Then, s.next+i))
			}
		}
	}
	s.next += count
	var next atomic.Int64
	began := time.Now()
	return func() []operation {
		n := int(next.Add(1)) - 1
		if n >= count || n > 0 && s.work.Undo == nil && time.Since(began) > maxRound {
			return nil
		}
		return all[n : n+1]
	}
}

// check returns the error of an answer, or an error for an answer that differs
// from the first one although all must be equal.
func (s *series) check(answer []byte, err error) error {
	if err == nil && s.exact && s.answer != nil && !bytes.Equal(unpriced(answer), unpriced(s.answer)) {
		return fmt.Errorf("the answer differs from the first answer: %s", difference(s.answer, answer))
	}
	return err
}

// takeBack undoes the requests from a number on.
func (s *series) takeBack(ctx context.Context, first int) error {
	if s.work.Undo == nil {
		return nil
	}
	by := s.target.operator
	if by == nil {
		by = s.target.client("", 0)
		defer by.Close()
	}
	for n := first; n < s.next; n++ {
		if _, err := by.Insist(ctx, s.target.call(*s.work.Undo, n), nil); err != nil {
			return fmt.Errorf("undo a request: %w", err)
		}
	}
	return nil
}

// line returns the measurement.
func (s *series) line() measured.Line {
	line := measured.Line{
		Kind: measured.Work, Work: s.work.Name, Database: s.target.database, Server: s.target.name,
		Peer: s.target.peer != "", Rates: s.rates, Figures: map[string]float64{"clients": float64(s.work.Clients)},
	}
	if s.refused != "" {
		line.Reached = "refused: " + s.refused
		return line
	}
	maps.Copy(line.Figures, s.figures(s.target))
	maps.Copy(line.Figures, s.counted)
	line.Figures["rows"], line.Figures["bytes"] = float64(s.rows), float64(len(s.answer))
	if s.waits > 0 {
		line.Figures["refused"] = float64(s.waits)
	}
	if s.work.Then != nil {
		line.Figures["conflicts"] = float64(s.conflicts.Load())
	}
	return line
}

// Numbers of operations to count. Reading the counters also allocates, and the
// amount varies, so short operations are counted in large numbers.
const (
	minCounted  = 20
	maxCounted  = 1_000
	countedTime = 100 * time.Millisecond
)

// count counts the statements and allocations of operations that it does not
// time.
func (s *series) count(ctx context.Context) error {
	if s.target.server == nil || s.refused != "" {
		return nil
	}
	first := s.next
	d := s.drive(s.work.Clients, max(s.work.Clients, minCounted))
	defer d.close()
	times, took, err := d.run(ctx)
	if err != nil {
		return err
	}
	d.next = s.operations(min(max(int(countedTime/(took/time.Duration(len(times)))), minCounted), maxCounted))
	var read [5]map[string]float64
	const last = len(read) - 1
	for i := range read {
		if i == last {
			if times, _, err = d.run(ctx); err != nil {
				return err
			}
		}
		if read[i], err = s.target.operator.Metrics(ctx); err != nil {
			return err
		}
	}
	s.counted = map[string]float64{}
	for figure, metric := range map[string]string{
		"statements": "cadastre_sql_statements_total", "allocations": "go_memstats_mallocs_total",
		"allocatedBytes": "go_memstats_alloc_bytes_total",
	} {
		if _, ok := read[0][metric]; ok {
			cost := math.Inf(1) // of reading the counters itself, without other work of the server
			for i := range last - 1 {
				cost = min(cost, read[i+1][metric]-read[i][metric])
			}
			s.counted[figure] = (read[last][metric] - read[last-1][metric] - cost) / float64(len(times))
		}
	}
	return s.takeBack(ctx, first)
}
