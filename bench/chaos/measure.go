package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// row is the result of one attack on one database.
type row struct {
	database, attack string
	size             int // of the request, where there are several
	// quiet is beside a client that uses as much of a processor against a server that
	// refuses it. Both are medians of the rounds.
	quiet, attacked  kinds
	lookUps, claims  ratio
	unavailable      float64 // seconds: the longest time of 503 for an innocent
	codes, attackers map[string]int
	processor        float64 // that the attacker used
	peak             int64   // bytes of a server
	ended            int     // servers, which were started again
}

// kinds are the times of look-ups and claims, in milliseconds.
type kinds struct{ lookUps, claims quantiles }

type quantiles struct{ p50, p99 float64 }

// ratio is how many times as long the slowest of a hundred took, and how many
// times it may.
type ratio struct{ times, most float64 }

func (r ratio) holds() bool { return r.times <= r.most }

// Limits for the effect of an attack on an innocent project.
const (
	maxOfLookUps = 5
	maxOfClaims  = 10
	maxOf503     = time.Second
)

func millisecondsOf(of fared) quantiles {
	return quantiles{measured.Quantile(of.times, 50), measured.Quantile(of.times, 99)}
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

// measure attacks in rounds, with a quiet round after each, and returns how the
// innocents fared.
func (m *attackSide) measure(ctx context.Context, of attack) (*row, error) {
	out := &row{database: m.kind, attack: of.name, codes: map[string]int{}, attackers: map[string]int{}}
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
		toll, looked, claimed, err := m.beside(ctx, given)
		if err != nil {
			return nil, err
		}
		add(&lookUps, looked)
		add(&claims, claimed)
		attacked = append(attacked, kinds{millisecondsOf(looked), millisecondsOf(claimed)})
		out.processor = max(out.processor, toll.Processor)
		for code, count := range toll.Codes {
			out.attackers[code] += count
		}
		for _, s := range m.servers {
			_, peak := s.resident()
			out.peak = max(out.peak, peak)
		}
		m.settle(ctx, 10*time.Second)
		refused := given
		refused.Addresses, refused.Processor = []string{m.refusing.Host}, toll.Processor
		if _, looked, claimed, err = m.beside(ctx, refused); err != nil {
			return nil, err
		}
		quiet = append(quiet, kinds{millisecondsOf(looked), millisecondsOf(claimed)})
	}
	for _, codes := range []map[string]int{lookUps.codes, claims.codes} {
		for code, count := range codes {
			out.codes[code] += count
		}
	}
	out.attacked, out.quiet = medianOf(attacked), medianOf(quiet)
	out.lookUps = ratio{out.attacked.lookUps.p99 / out.quiet.lookUps.p99, maxOfLookUps}
	out.claims = ratio{out.attacked.claims.p99 / out.quiet.claims.p99, maxOfClaims}
	out.unavailable = max(longestUnavailable(lookUps.ended), longestUnavailable(claims.ended)).Seconds()
	return out, nil
}

// medianOf returns the medians of rounds, so that other load during one of them
// does not count.
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
		quantiles{median(func(k kinds) float64 { return k.lookUps.p50 }), median(func(k kinds) float64 { return k.lookUps.p99 })},
		quantiles{median(func(k kinds) float64 { return k.claims.p50 }), median(func(k kinds) float64 { return k.claims.p99 })},
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
	out.size = size
	count := 1
	if of.varied {
		count = varieties
	}
	for n := range count {
		given.Bodies = append(given.Bodies, of.request(m.world, size, n).Body())
	}
	return given, nil
}

// largest returns the largest size of an attack's request that is not too
// complex; where all are, that is the largest of all.
func (m *attackSide) largest(ctx context.Context, of attack) (int, error) {
	if of.most == 0 {
		return 0, nil
	}
	operator := local.NewClient(m.hosts()[0], m.tokens.admin, operatorAddress, 1, requestTime)
	defer operator.Close()
	fits, least := of.most, 0
	for fits > least {
		size := fits
		if least > 0 || fits < of.most {
			size = (least + fits + 1) / 2
		}
		switch got := operator.Send(ctx, of.request(m.world, size, 0).Body()); {
		case got.Code == "RATE_LIMITED":
			pause.For(ctx, time.Second)
		case slices.Contains([]string{"QUERY_TOO_COMPLEX", "BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED"}, got.Code):
			fits = size - 1
		case got.Code == local.Answered || got.Code == "TIMEOUT":
			least = size
		default:
			return 0, fmt.Errorf("%s of size %d: %d %s %.300s", of.name, size, got.Status, got.Code, got.Body)
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

// memory is the memory of the servers before and after all attacks, in bytes.
type memory struct {
	database                   string
	before, peak, after, limit int64
	seconds                    float64 // until after
}

// memoryReturns is how long memory may take to return, and by how much of the
// limit it may stay above what was before.
const (
	memoryReturns = 30 * time.Second
	mayStay       = 0.25
)

func (of memory) holds() bool {
	return of.limit == 0 || of.peak <= of.limit && float64(of.after) <= float64(of.before)+mayStay*float64(of.limit)
}

// most returns the most memory that one of the servers has.
func (c *cloud) most() (now int64) {
	for _, s := range c.servers {
		of, _ := s.resident()
		now = max(now, of)
	}
	return now
}

// all measures all attacks on a cloud.
func (m *attackSide) all(ctx context.Context, of []attack, progress io.Writer) (rows []*row, after memory, unmeasured []string, err error) {
	after = memory{database: m.kind, limit: m.memory}
	m.innocents.ask(ctx, m.round) // fills caches
	after.before = m.most()
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
		row.ended = ended
		rows, after.peak = append(rows, row), max(after.peak, row.peak)
		_, _ = fmt.Fprintf(progress, "%s, %s: look-ups %.1f and claims %.1f times as long\n", m.kind, one.name, row.lookUps.times, row.claims.times)
	}
	began := time.Now()
	for {
		after.after, after.seconds = m.most(), time.Since(began).Seconds()
		if time.Since(began) > memoryReturns || after.holds() || ctx.Err() != nil {
			return rows, after, unmeasured, ctx.Err()
		}
		pause.For(ctx, 500*time.Millisecond)
	}
}
