package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

// row is what one attack did on one database.
type row struct {
	Database string `json:"database"`
	Attack   string `json:"attack"`
	Size     int    `json:"size,omitempty"` // of the request, where there are several
	// Beside is how many processes of others were ready to run, as the load of the
	// machine before the attack.
	Beside float64 `json:"loadBefore"`
	// Quiet is beside a client that uses as much of a processor against a server
	// that refuses it. Both are medians of the rounds.
	Quiet, Attacked   kinds
	LookUps, Claims   ratio
	Unavailable       float64        `json:"secondsOf503"` // the longest time that an innocent was told 503
	Codes             map[string]int `json:"innocents"`
	Attacker          map[string]int `json:"attacker"`
	AttackerProcessor float64        `json:"attackerProcessor"`
	PeakBytes         int64          `json:"peakBytes"`
	Ended             int            `json:"ended,omitempty"` // servers, which were started again
	Metrics           map[string]float64
}

// kinds are the times of look-ups and claims, in milliseconds.
type kinds struct{ LookUps, Claims quantiles }

type quantiles struct{ P50, P99 float64 }

// ratio is how many times as long the slowest of a hundred took, and how many
// times it may.
type ratio struct{ Times, Most float64 }

func (r ratio) holds() bool { return r.Times <= r.Most }

// What an innocent project may notice of an attack.
const (
	mostOfLookUps = 5
	mostOfClaims  = 10
	mostOf503     = time.Second
)

func millisecondsOf(of fared) quantiles {
	return quantiles{P50: quantile(of.times, 50).Seconds() * 1000, P99: quantile(of.times, 99).Seconds() * 1000}
}

// betweenRequests is how long an attacker's connection does nothing after a refusal.
const betweenRequests = 50 * time.Millisecond

// attacked returns the addresses that are attacked. Where it is measured how
// innocents fare that is one server, which they ask, too: servers share the
// processors of this machine, and each lets an attacker have half of them.
func (m *attackSide) attacked() []string {
	if m.innocents == nil {
		return m.hosts()
	}
	return m.hosts()[:1]
}

// attackSide is an attack on a cloud as it is measured.
type attackSide struct {
	*cloud
	world     *world
	innocents *innocents
	refusing  *server // refuses every attacker
	round     time.Duration
	rounds    int
}

// measure attacks in rounds, each of which is followed by a quiet one, and
// returns what the innocents noticed.
func (m *attackSide) measure(ctx context.Context, of attack) (*row, error) {
	out := &row{Database: m.kind, Attack: of.name, Codes: map[string]int{}, Attacker: map[string]int{}, Beside: load()}
	given, err := m.ordersOf(ctx, of, out)
	if err != nil {
		return nil, err
	}
	var lookUps, claims fared
	var attacked, quiet []kinds // in each round
	for range m.rounds {
		for _, s := range m.servers {
			s.resetPeak()
		}
		before := m.metricsOf(ctx)
		watching, stop := context.WithCancel(ctx)
		most := make(chan metrics, 1)
		go func() { most <- m.watch(watching) }()
		toll, looked, claimed, err := m.beside(ctx, given)
		stop()
		if err != nil {
			return nil, err
		}
		add(&lookUps, looked)
		add(&claims, claimed)
		attacked = append(attacked, kinds{millisecondsOf(looked), millisecondsOf(claimed)})
		out.AttackerProcessor = max(out.AttackerProcessor, toll.Processor)
		for code, count := range toll.Codes {
			out.Attacker[code] += count
		}
		out.Metrics = tells(before, m.metricsOf(ctx), <-most)
		for _, s := range m.servers {
			_, peak := s.memory()
			out.PeakBytes = max(out.PeakBytes, peak)
		}
		m.settle(ctx, 10*time.Second)
		refused := given
		refused.Addresses, refused.Processor = []string{m.refusing.host}, toll.Processor
		if _, looked, claimed, err = m.beside(ctx, refused); err != nil {
			return nil, err
		}
		quiet = append(quiet, kinds{millisecondsOf(looked), millisecondsOf(claimed)})
	}
	for _, codes := range []map[string]int{lookUps.codes, claims.codes} {
		for code, count := range codes {
			out.Codes[code] += count
		}
	}
	out.Attacked, out.Quiet = medianOf(attacked), medianOf(quiet)
	out.LookUps = ratio{out.Attacked.LookUps.P99 / out.Quiet.LookUps.P99, mostOfLookUps}
	out.Claims = ratio{out.Attacked.Claims.P99 / out.Quiet.Claims.P99, mostOfClaims}
	out.Unavailable = max(longestUnavailable(lookUps.ended), longestUnavailable(claims.ended)).Seconds()
	return out, nil
}

// medianOf returns the medians of what was found in rounds: what else the machine
// did in one of them does not count.
func medianOf(rounds []kinds) kinds {
	median := func(of func(kinds) float64) float64 {
		var all []float64
		for _, one := range rounds {
			all = append(all, of(one))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return kinds{
		quantiles{median(func(k kinds) float64 { return k.LookUps.P50 }), median(func(k kinds) float64 { return k.LookUps.P99 })},
		quantiles{median(func(k kinds) float64 { return k.Claims.P50 }), median(func(k kinds) float64 { return k.Claims.P99 })},
	}
}

// add adds how requests of another round fared. Rounds do not touch.
func add(to *fared, of fared) {
	if to.codes == nil {
		to.codes = map[string]int{}
	}
	to.times = append(to.times, of.times...)
	for code, count := range of.codes {
		to.codes[code] += count
	}
	if len(to.ended) > 0 && len(of.ended) > 0 {
		to.ended = append(to.ended, ending{at: of.ended[0].at})
	}
	to.ended = append(to.ended, of.ended...)
}

// beside has the innocents ask while an attacker attacks. The attack begins a
// little earlier, so that all of it is under way.
func (m *attackSide) beside(ctx context.Context, given orders) (of toll, lookUps, claims fared, err error) {
	const earlier = 300 * time.Millisecond
	given.For = m.round + 2*earlier
	attacked := make(chan error, 1)
	go func() {
		var err error
		of, err = attackIn(ctx, given)
		attacked <- err
	}()
	pause.For(ctx, earlier)
	lookUps, claims = m.innocents.ask(ctx, m.round)
	return of, lookUps, claims, <-attacked
}

// varieties is how many requests of an attack differ from each other.
const varieties = 200

// ordersOf returns the orders of an attack, with the largest requests that are
// not too complex.
func (m *attackSide) ordersOf(ctx context.Context, of attack, out *row) (orders, error) {
	given := orders{Addresses: m.attacked(), From: greedyAddress, Token: m.tokens.greedy, Manner: of.manner, Connections: of.connections, Pause: betweenRequests}
	if of.service {
		given.Token = m.tokens.greedyService
	}
	if given.Manner == "" {
		given.Manner = asking
	}
	if given.Connections == 0 {
		given.Connections = atOnce
	}
	if given.Manner == guessing {
		given.From = calmAddress
	}
	size, err := m.largest(ctx, of)
	if err != nil {
		return given, err
	}
	out.Size = size
	count := 1
	if of.varied {
		count = varieties
	}
	for n := range count {
		given.Bodies = append(given.Bodies, of.request(m.world, size, n).body())
	}
	return given, nil
}

// largest returns the largest size of an attack's request that is not too
// complex; where all are, that is the largest of all.
func (m *attackSide) largest(ctx context.Context, of attack) (int, error) {
	if of.most == 0 {
		return 0, nil
	}
	operator := newParty(m.hosts()[0], m.tokens.admin, operatorAddress, 1)
	defer operator.close()
	fits, least := of.most, 0
	for fits > least {
		size := fits
		if least > 0 || fits < of.most {
			size = (least + fits + 1) / 2
		}
		switch got := operator.send(ctx, of.request(m.world, size, 0).body()); {
		case got.code == "RATE_LIMITED":
			pause.For(ctx, time.Second)
		case slices.Contains([]string{"QUERY_TOO_COMPLEX", "BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED"}, got.code):
			fits = size - 1
		case got.code == answered || got.code == "TIMEOUT":
			least = size
		default:
			return 0, fmt.Errorf("%s of size %d: %d %s %.300s", of.name, size, got.status, got.code, got.body)
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	if fits == 0 {
		return of.most, nil
	}
	return fits, nil
}

// memoryAfter is what servers have of memory before and after all attacks.
type memoryAfter struct {
	Database string  `json:"database"`
	Before   int64   `json:"before"`
	Peak     int64   `json:"peak"`
	After    int64   `json:"after"`
	Seconds  float64 `json:"seconds"` // until that
	Limit    int64   `json:"limit"`
}

// memoryReturns is how long memory may take to return, and by how much of the
// limit it may stay above what was before.
const (
	memoryReturns = 30 * time.Second
	mayStay       = 0.25
)

func (of memoryAfter) holds() bool {
	return of.Limit == 0 || of.Peak <= of.Limit && float64(of.After) <= float64(of.Before)+mayStay*float64(of.Limit)
}

// most returns the most memory that one of the servers has.
func (c *cloud) most() (now int64) {
	for _, s := range c.servers {
		of, _ := s.memory()
		now = max(now, of)
	}
	return now
}

// all measures all attacks on a cloud.
func (m *attackSide) all(ctx context.Context, of []attack, progress io.Writer) (rows []*row, after memoryAfter, unmeasured []string, err error) {
	after = memoryAfter{Database: m.kind, Limit: m.memory}
	m.innocents.ask(ctx, m.round) // so that what is kept is kept
	after.Before = m.most()
	for _, one := range of {
		row, err := m.measure(ctx, one)
		ended, again := m.startAgain(ctx)
		if again != nil || ctx.Err() != nil {
			return rows, after, unmeasured, errors.Join(err, again, ctx.Err())
		}
		if err != nil {
			unmeasured = append(unmeasured, fmt.Sprintf("%s, %s: %v, and %d servers ended", m.kind, one.name, err, ended))
			continue
		}
		row.Ended = ended
		rows, after.Peak = append(rows, row), max(after.Peak, row.PeakBytes)
		if _, err := fmt.Fprintln(progress, row.line()); err != nil {
			return rows, after, unmeasured, err
		}
	}
	began := time.Now()
	for {
		after.After, after.Seconds = m.most(), time.Since(began).Seconds()
		if time.Since(began) > memoryReturns || after.holds() || ctx.Err() != nil {
			return rows, after, unmeasured, ctx.Err()
		}
		pause.For(ctx, 500*time.Millisecond)
	}
}
