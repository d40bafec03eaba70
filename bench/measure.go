package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// series is the timing of one work on one target.
type series struct {
	work    work
	target  *target
	call    call   // to a peer
	answer  []byte // the first one
	exact   bool   // whether every answer must equal the first one
	refused string // code of a refusal, with which nothing is timed
	waits   int    // answers that the rate or a lack of room delayed
	rows    int
	next    int // number of the next request
	times   []time.Duration
	rates   []float64
	cpu     cpu
	counted map[string]float64
}

// measure times all works on all targets, in rounds: in each, every work is timed
// on one target after the other, beginning with another one each time.
func (b *bench) measure(ctx context.Context) ([]measured.Line, error) {
	all := make([][]*series, len(b.works))
	for i, work := range b.works {
		var err error
		if all[i], err = b.prepare(ctx, work); err != nil {
			return nil, fmt.Errorf("%s: %w", work.Name, err)
		}
	}
	for _, of := range all {
		for _, s := range of {
			if err := s.count(ctx); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.target, s.work.Name, err)
			}
		}
	}
	if err := b.timeRounds(ctx, all); err != nil {
		return nil, err
	}
	var lines []measured.Line
	for _, of := range all {
		for _, s := range of {
			lines = append(lines, s.line())
		}
	}
	return lines, nil
}

// timeRounds times rounds until there are as many as wanted, or the next one would
// end too late.
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
		took := time.Since(began)
		longest = max(longest, took)
		b.say("round %d of %d: %.0f s", round+1, b.rounds, took.Seconds())
	}
	return nil
}

// prepare asks every target of a work once and compares their answers to a read:
// the bytes of servers, and the rows of peers.
func (b *bench) prepare(ctx context.Context, work work) (all []*series, err error) {
	var first *series // that was not refused
	for _, t := range b.targets {
		if t.server == nil || t.world != b.worldOf(work) {
			continue
		}
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
		if work.Peer == nil || first == nil || t.peer != work.Peer.With || t.world != nil && t.world != b.worldOf(work) {
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

// askServer asks a server and compares its answer to a read with the first
// server's.
func (s *series) askServer(ctx context.Context, first *series) error {
	if err := s.ask(ctx); err != nil || s.refused != "" {
		return err
	}
	data, err := dataOf(s.answer)
	if err == nil && s.work.List != "" {
		s.rows, err = length(data, s.work.List)
	}
	if err == nil && s.rows == 0 && !s.work.MayBeEmpty {
		err = fmt.Errorf("the list at %s is empty", s.work.List)
	}
	if err != nil || s.work.Undo != nil {
		return err
	}
	s.exact = true
	if first != nil && !bytes.Equal(unpriced(s.answer), unpriced(first.answer)) {
		return fmt.Errorf("%s and %s answer differently: %s", first.target, s.target, difference(first.answer, s.answer))
	}
	return nil
}

// askPeer asks a peer the question of a work and compares the rows of its answer
// with Cadastre's.
func askPeer(ctx context.Context, own *series, peer *target) (*series, error) {
	s := &series{work: own.work, target: peer, rows: own.rows, exact: peer.peer != placementPeer}
	if n := own.work.Peer.Operations; n > 0 {
		s.work.Operations = n
	}
	var err error
	if s.call, err = own.work.Peer.call(ctx, peer); err != nil {
		return nil, err
	}
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	return s, sameAnswer(ctx, own, s)
}

// ask sends a request that is not timed and keeps the answer.
func (s *series) ask(ctx context.Context) error {
	clients := s.connect(1)
	defer disconnect(clients)
	_, _, err := s.send(ctx, clients, 1)
	var refused refusal
	if errors.As(err, &refused) && refused.code != local.Answered {
		s.refused = refused.code
		return nil
	}
	if err != nil {
		return err
	}
	s.answer = bytes.Clone(clients[0].answer.Bytes())
	return s.takeBack(ctx, s.next-1)
}

// round times one round of the work on its target. The first request of each
// client is not timed.
func (s *series) round(ctx context.Context) error {
	if s.refused != "" {
		return nil
	}
	clients := s.connect(s.work.Clients)
	defer disconnect(clients)
	first := s.next
	if _, _, err := s.send(ctx, clients, len(clients)); err != nil {
		return err
	}
	before, err := s.target.cpu()
	if err != nil {
		return err
	}
	times, took, err := s.send(ctx, clients, s.work.Operations)
	if err != nil {
		return err
	}
	after, err := s.target.cpu()
	if err != nil {
		return err
	}
	s.times = append(s.times, times...)
	s.rates = append(s.rates, float64(len(times))/took.Seconds())
	s.cpu.add(before, after)
	for _, c := range clients {
		s.waits += c.refused
	}
	return s.takeBack(ctx, first)
}

// connect returns clients of the target.
func (s *series) connect(count int) []*connection {
	clients := make([]*connection, count)
	for i := range clients {
		clients[i] = s.target.connect(s.work.As, i)
	}
	return clients
}

func disconnect(clients []*connection) {
	for _, c := range clients {
		c.close()
	}
}

// maxRound ends a round of reads that the rate limit of a viewer makes long.
const maxRound = 20 * time.Second

// send sends the next requests by all clients at once, each client one after the
// other, and returns how long each of them took, and all together. It sends fewer
// reads where they take longer than maxRound.
func (s *series) send(ctx context.Context, clients []*connection, count int) ([]time.Duration, time.Duration, error) {
	calls := make([]call, count)
	for i := range calls {
		switch {
		case s.target.server == nil:
			calls[i] = s.call
		case i > 0 && s.work.Undo == nil: // a read is always the same
			calls[i] = calls[0]
		default:
			calls[i] = asking(s.work.request(s.target.world, s.next+i))
		}
	}
	s.next += count
	var mu sync.Mutex
	var times []time.Duration
	var next atomic.Int64
	group, sending := errgroup.WithContext(ctx)
	began := time.Now()
	for _, c := range clients {
		group.Go(func() error {
			for n := int(next.Add(1)) - 1; n < count && (n == 0 || s.work.Undo != nil || time.Since(began) < maxRound); n = int(next.Add(1)) - 1 {
				took, answer, err := c.timed(calls[n])
				mu.Lock()
				times = append(times, took)
				mu.Unlock()
				if err == nil {
					err = errors.Join(sending.Err(), s.check(answer))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return times, time.Since(began), err
}

// check returns an error for an answer that differs from the first one.
func (s *series) check(answer []byte) error {
	if s.exact && s.answer != nil && !bytes.Equal(unpriced(answer), unpriced(s.answer)) {
		return fmt.Errorf("the answer is another one than at first: %s", difference(s.answer, answer))
	}
	return nil
}

// takeBack takes back the requests from a number on.
func (s *series) takeBack(ctx context.Context, first int) error {
	if s.work.Undo == nil {
		return nil
	}
	for n := first; n < s.next; n++ {
		if err := s.target.operator.Ask(ctx, s.work.Undo.request(s.target.world, n), nil); err != nil {
			return fmt.Errorf("take back: %w", err)
		}
	}
	return nil
}

// line returns the measurement.
func (s *series) line() measured.Line {
	line := measured.Line{Kind: measured.Work, Work: s.work.Name, Database: s.target.database, Server: s.target.name, Peer: s.target.peer != "", Rates: s.rates,
		Figures: map[string]float64{"clients": float64(s.work.Clients), "rows": float64(s.rows), "bytes": float64(len(s.answer))}}
	if s.refused != "" {
		line.Reached, line.Figures = "refused: "+s.refused, map[string]float64{"clients": float64(s.work.Clients)}
		return line
	}
	line.Figures["operations"], line.Figures["perSecond"] = float64(len(s.times)), measured.Median(s.rates)
	line.Figures["medianMs"], line.Figures["p99Ms"] = measured.Quantile(s.times, 50), measured.Quantile(s.times, 99)
	if s.waits > 0 {
		line.Figures["refused"] = float64(s.waits)
	}
	for name, number := range s.counted {
		line.Figures[name] = number
	}
	if local.MeasuresCPU() {
		line.Figures["serverCpuMs"] = measured.Milliseconds(s.cpu.server) / float64(len(s.times))
		if s.target.cluster != nil {
			line.Figures["databaseCpuMs"] = measured.Milliseconds(s.cpu.database) / float64(len(s.times))
		}
	}
	return line
}

// How many operations are counted: reading the counters allocates, too, and not
// always the same, so that short operations are counted in large numbers.
const (
	minCounted  = 20
	maxCounted  = 1_000
	countedTime = 100 * time.Millisecond
)

// count counts statements and allocations of some operations, which are not timed.
func (s *series) count(ctx context.Context) error {
	if s.target.server == nil || s.refused != "" {
		return nil
	}
	clients := s.connect(s.work.Clients)
	defer disconnect(clients)
	first := s.next
	warm := max(len(clients), minCounted)
	times, took, err := s.send(ctx, clients, warm)
	if err != nil {
		return err
	}
	operations := min(max(int(countedTime/(took/time.Duration(len(times)))), minCounted), maxCounted)
	var read [3]map[string]float64
	for i := range read {
		if i == 2 {
			if times, _, err = s.send(ctx, clients, operations); err != nil {
				return err
			}
		}
		if read[i], err = s.target.operator.Metrics(ctx); err != nil {
			return err
		}
	}
	s.counted = map[string]float64{}
	for figure, metric := range map[string]string{"statements": "cadastre_sql_statements_total", "allocations": "go_memstats_mallocs_total", "allocatedBytes": "go_memstats_alloc_bytes_total"} {
		if _, ok := read[0][metric]; ok { // without the cost of reading the counters itself
			s.counted[figure] = (read[2][metric] - 2*read[1][metric] + read[0][metric]) / float64(len(times))
		}
	}
	return s.takeBack(ctx, first)
}

// length returns the length of a list in the data of an answer, at a path with
// dots.
func length(data json.RawMessage, path string) (int, error) {
	for name := range strings.SplitSeq(path, ".") {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		data = fields[name]
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return 0, fmt.Errorf("read the list at %s: %w", path, err)
	}
	return len(elements), nil
}

// difference shows two texts around their first difference.
func difference(a, b []byte) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	const around = 100
	excerpt := func(text []byte) []byte { return text[max(0, min(len(text), at-around)):min(len(text), at+around)] }
	return fmt.Sprintf("at byte %d\n%s\n%s", at, excerpt(a), excerpt(b))
}
