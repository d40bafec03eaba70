package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"golang.org/x/sync/errgroup"
)

// row is what was measured of one work on one target.
type row struct {
	Work     string `json:"work"`
	Database string `json:"database,omitempty"`
	Server   string `json:"server"` // the binary's name, or the peer's
	Peer     bool   `json:"peer,omitempty"`
	Clients  int    `json:"clients"`
	// Operations is how many were timed.
	Operations int `json:"operations"`
	// Rows is the length of the list that the work is about, in one answer.
	Rows int `json:"rows"`
	// Bytes is the length of one answer.
	Bytes int `json:"bytes"`
	// PerSecond is the median of Rates, the requests a second of each round.
	PerSecond float64   `json:"perSecond"`
	Rates     []float64 `json:"rates"`
	// Median and P99 are by the clock of the client, in milliseconds.
	Median float64 `json:"medianMs"`
	P99    float64 `json:"p99Ms"`
	// ServerCPU and DatabaseCPU are the milliseconds on processors of one
	// operation, on average: of the server, and of the processes of PostgreSQL.
	// Nil is not measured; the database CPU of SQLite is in that of the server.
	ServerCPU   *float64 `json:"serverCpuMs,omitempty"`
	DatabaseCPU *float64 `json:"databaseCpuMs,omitempty"`
	// What the server counted in one operation, on average; nil where it does not
	// count.
	Statements     *float64 `json:"statements,omitempty"`
	Allocations    *float64 `json:"allocations,omitempty"`
	AllocatedBytes *float64 `json:"allocatedBytes,omitempty"`
}

// series is the timing of one work on one target while it goes on.
type series struct {
	work    work
	target  *target
	call    call   // of a peer
	answer  []byte // the first one
	exact   bool   // whether every answer is to be the first one
	rows    int
	next    int // number of the next request
	times   []time.Duration
	rates   []float64
	cpu     cpu
	counted counts
}

// cpu is time on processors.
type cpu struct{ server, database time.Duration }

// measure times all works on all targets, in rounds: in each, every work is timed
// on one target after the other, beginning with another one each time.
func (b *bench) measure(ctx context.Context) ([]row, error) {
	all := make([][]*series, len(b.works))
	for i, work := range b.works {
		var err error
		if all[i], err = b.prepare(ctx, work); err != nil {
			return nil, fmt.Errorf("%s: %w", work.name, err)
		}
	}
	for _, of := range all {
		for _, s := range of {
			if err := s.count(ctx); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.target, s.work.name, err)
			}
		}
	}
	if err := b.timeRounds(ctx, all); err != nil {
		return nil, err
	}
	var rows []row
	for _, of := range all {
		for _, s := range of {
			rows = append(rows, s.row())
			if err := b.profile(ctx, s); err != nil {
				return nil, fmt.Errorf("profile %s, %s: %w", s.target, s.work.name, err)
			}
		}
	}
	return rows, nil
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
					return fmt.Errorf("%s, %s: %w", s.target, s.work.name, err)
				}
			}
		}
		took := time.Since(began)
		longest = max(longest, took)
		if _, err := fmt.Fprintf(b.progress, "round %d of %d: %.0f s\n", round+1, b.rounds, took.Seconds()); err != nil {
			return err
		}
	}
	return nil
}

// prepare asks every target of a work once and holds their answers to a read
// against each other: the bytes of servers, and the rows of peers.
func (b *bench) prepare(ctx context.Context, work work) ([]*series, error) {
	var all []*series
	var wanted json.RawMessage
	for _, t := range b.targets {
		if t.server == nil || t.world != b.worldOf(work) {
			continue
		}
		s := &series{work: work, target: t}
		if err := s.ask(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		data, err := dataOf(s.answer)
		if s.rows = 1; err == nil && work.list != nil {
			s.rows, err = length(data, work.list)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		all = append(all, s)
		if work.undo != nil {
			continue
		}
		if s.exact = true; wanted == nil {
			wanted = data
		}
		if !bytes.Equal(data, wanted) {
			return nil, fmt.Errorf("%s and %s answer differently: %s", all[0].target, t, difference(wanted, data))
		}
	}
	return b.preparePeers(ctx, work, all)
}

// preparePeers adds the peers of a work to its servers.
func (b *bench) preparePeers(ctx context.Context, work work, all []*series) ([]*series, error) {
	for _, t := range b.targets {
		if work.compared == nil || t.peer != work.compared.with || t.world != nil && t.world != b.worldOf(work) {
			continue
		}
		s, err := b.preparePeer(ctx, all[len(all)-1], t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// preparePeer asks a peer the question of a work and compares the rows of its
// answer with those of Cadastre's.
func (b *bench) preparePeer(ctx context.Context, own *series, peer *target) (*series, error) {
	s := &series{work: own.work, target: peer, exact: own.work.compared.exact, rows: own.rows}
	if n := own.work.compared.operations; n > 0 {
		s.work.operations = n
	}
	var err error
	if s.call, err = own.work.compared.call(ctx, peer); err != nil {
		return nil, err
	}
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	return s, own.work.compared.check(ctx, own, s.answer)
}

// ask sends a request that is not timed and keeps the answer.
func (s *series) ask(ctx context.Context) error {
	clients := s.connect(1)
	defer disconnect(clients)
	if _, _, err := s.send(ctx, clients, 1); err != nil {
		return err
	}
	s.answer = bytes.Clone(clients[0].answer.Bytes())
	return s.takeBack(ctx, s.next-1)
}

// round times one round of the work on its target, which was idle meanwhile: the
// first request of each client is not counted.
func (s *series) round(ctx context.Context) error {
	clients := s.connect(s.work.clients)
	defer disconnect(clients)
	first := s.next
	if _, _, err := s.send(ctx, clients, len(clients)); err != nil {
		return err
	}
	before, err := s.target.cpu()
	if err != nil {
		return err
	}
	times, took, err := s.send(ctx, clients, s.work.operations)
	if err != nil {
		return err
	}
	after, err := s.target.cpu()
	if err != nil {
		return err
	}
	s.times = append(s.times, times...)
	s.rates = append(s.rates, float64(len(times))/took.Seconds())
	s.cpu.server += after.server - before.server
	s.cpu.database += after.database - before.database
	return s.takeBack(ctx, first)
}

// connect returns so many clients of the target, one at least.
func (s *series) connect(count int) []*connection {
	clients := make([]*connection, max(1, count))
	for i := range clients {
		clients[i] = &connection{to: s.target}
	}
	return clients
}

func disconnect(clients []*connection) {
	for _, c := range clients {
		c.close()
	}
}

// send sends the next requests, each client one after the other, and returns how
// long each of them took, and all together.
func (s *series) send(ctx context.Context, clients []*connection, count int) ([]time.Duration, time.Duration, error) {
	messages, err := s.messages(count)
	if err != nil {
		return nil, 0, err
	}
	times := make([]time.Duration, count)
	var next atomic.Int64
	group, sending := errgroup.WithContext(ctx)
	began := time.Now()
	for _, c := range clients {
		group.Go(func() error {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				started := time.Now()
				answer, err := c.exchange(messages[n])
				times[n] = time.Since(started)
				if err := errors.Join(err, sending.Err()); err != nil {
					return err
				}
				if err := s.check(answer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return times, time.Since(began), err
}

// messages returns the next requests as they are sent.
func (s *series) messages(count int) ([][]byte, error) {
	all := make([][]byte, count)
	for i := range all {
		switch {
		case i > 0 && s.work.undo == nil: // a read is always the same
			all[i] = all[0]
		case s.target.server == nil:
			all[i] = s.target.message(s.call)
		default:
			body, err := s.work.request(s.target.world, s.next+i).body()
			if err != nil {
				return nil, err
			}
			all[i] = s.target.message(call{method: "POST", path: "/graphql", body: body, member: s.work.member})
		}
	}
	s.next += count
	return all, nil
}

// unpriced returns an answer without its price, which grows with the tables.
func unpriced(answer []byte) []byte {
	if end := bytes.LastIndex(answer, []byte(`,"extensions":`)); end >= 0 {
		return answer[:end]
	}
	return answer
}

// check returns an error for an answer that is not the right one.
func (s *series) check(answer []byte) error {
	if s.exact && s.answer != nil {
		if !bytes.Equal(unpriced(answer), unpriced(s.answer)) {
			return fmt.Errorf("the answer is another one than at first: %s", difference(s.answer, answer))
		}
		return nil
	}
	if s.target.server == nil {
		return nil
	}
	_, err := dataOf(answer)
	return err
}

// takeBack takes back what the requests from a number on did.
func (s *series) takeBack(ctx context.Context, first int) error {
	if s.work.undo == nil {
		return nil
	}
	for n := first; n < s.next; n++ {
		if err := s.target.server.ask(ctx, s.work.undo(s.target.world, n), nil); err != nil {
			return fmt.Errorf("take back: %w", err)
		}
	}
	return nil
}

// row returns what was measured.
func (s *series) row() row {
	slices.Sort(s.times)
	r := row{
		Work: s.work.name, Database: s.target.database, Server: s.target.name, Peer: s.target.peer != "", Clients: max(1, s.work.clients),
		Operations: len(s.times), Rows: s.rows, Bytes: len(s.answer), PerSecond: median(s.rates), Rates: s.rates,
		Median: milliseconds(quantile(s.times, 50)), P99: milliseconds(quantile(s.times, 99)),
		Statements: s.counted.statements, Allocations: s.counted.allocations, AllocatedBytes: s.counted.bytes,
	}
	if !local.MeasuresCPU() {
		return r
	}
	each := func(used time.Duration) *float64 {
		return new(milliseconds(max(0, used)) / float64(len(s.times))) // a process that ends is counted in whole ticks
	}
	r.ServerCPU = each(s.cpu.server)
	if s.target.cluster != nil {
		r.DatabaseCPU = each(s.cpu.database)
	}
	return r
}

// median returns the middle one of some numbers, the lower of two.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[(len(sorted)-1)/2]
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
