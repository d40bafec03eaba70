package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// Limits for the effect of an attack on an innocent project: the factor by
// which the slowest of a hundred requests may slow down, and the maximum time
// of 503s.
const (
	maxOfLookUps = 5
	maxOfClaims  = 10
	maxOf503     = time.Second
)

// attackSide measures attacks on a cloud.
type attackSide struct {
	*cloud
	innocents *innocents // nil if they are not measured
	refusing  *server    // refuses every attacker
}

// measure attacks in rounds, with a quiet round after each. In a quiet round
// the attacker's client uses as much processor time against a server that
// refuses it. The figures of innocents are medians of the rounds, so that other
// load in one round has no effect.
func (m *attackSide) measure(ctx context.Context, of attack) (line measured.Line, p promises, err error) {
	p.of = m.kind + ", " + of.Name
	figures, codes, attackers := map[string]float64{}, counts{}, counts{}
	line = measured.Line{Kind: measured.Attack, Work: of.Name, Database: m.kind, Figures: figures}
	given, size, err := m.ordersOf(ctx, of)
	if err != nil {
		return line, p, err
	}
	if size > 0 {
		figures["size"] = float64(size)
	}
	rounds := map[string][]both{}
	for range m.rounds {
		for _, s := range m.servers {
			s.ResetPeak()
		}
		toll, fared, err := m.attackWhile(ctx, given)
		if err != nil {
			return line, p, err
		}
		rounds["Attacked"] = append(rounds["Attacked"], fared)
		attackers.add(toll.Codes)
		figures["attackerProcessor"] = max(figures["attackerProcessor"], toll.Processor)
		for _, f := range fared {
			codes.add(f.codes)
			figures["secondsOf503"] = max(figures["secondsOf503"], longestUnavailable(f.ended).Seconds())
		}
		_, peak := m.most()
		figures["peakBytes"] = max(figures["peakBytes"], peak)
		m.settle(ctx, 10*time.Second)
		refused := given
		refused.Addresses, refused.Processor = []string{m.refusing.Host}, toll.Processor
		if _, fared, err = m.attackWhile(ctx, refused); err != nil {
			return line, p, err
		}
		rounds["Quiet"] = append(rounds["Quiet"], fared)
	}
	for side, of := range rounds {
		for _, kind := range []string{"lookUp", "claim"} {
			figures[kind+side+"P50Ms"], figures[kind+side+"P99Ms"] = medianOf(of, kind, 50), medianOf(of, kind, 99)
		}
	}
	lookUps, claims := figures["lookUpAttackedP99Ms"]/figures["lookUpQuietP99Ms"],
		figures["claimAttackedP99Ms"]/figures["claimQuietP99Ms"]
	figures["lookUpTimes"], figures["claimTimes"] = lookUps, claims
	line.Notes = map[string]string{"attacker": attackers.String(), "innocents": codes.String()}
	p.hold(figures["secondsOf503"] <= m.unavailable.Seconds(), "others got 503 for %.1f s", figures["secondsOf503"])
	p.hold(m.memory == 0 || figures["peakBytes"] <= float64(m.memory), "%.0f bytes of memory", figures["peakBytes"])
	p.hold(codes["INTERNAL"]+attackers["INTERNAL"] == 0, "%d INTERNAL", codes["INTERNAL"]+attackers["INTERNAL"])
	if lookUps > maxOfLookUps || claims > maxOfClaims {
		p.slow = []string{fmt.Sprintf("%s: look-ups take %.1f, claims %.1f times as long", p.of, lookUps, claims)}
	}
	return line, p, nil
}

// medianOf returns the median over rounds of a percentile of the times of a
// kind of request, in milliseconds.
func medianOf(rounds []both, kind string, percent int) float64 {
	return measured.Median(lists.Map(rounds, func(one both) float64 {
		return measured.Quantile(one[kind].times, percent)
	}))
}

// attackWhile measures the innocents during an attack. The attack starts
// earlier, so that all of its connections are active: to open 2,000 takes two
// processors 0.6 s, most of it in the attacker.
func (m *attackSide) attackWhile(ctx context.Context, given orders) (of toll, round both, err error) {
	const earlier = time.Second
	given.For = m.round + earlier + 300*time.Millisecond
	attacked := make(chan error, 1)
	go func() {
		var err error
		of, err = attackIn(ctx, given)
		attacked <- err
	}()
	pause.For(ctx, earlier)
	round = m.innocents.ask(ctx, m.round)
	return of, round, <-attacked
}

// The number of different requests of an attack, and the idle time of an
// attacker's connection after a refusal.
const (
	varieties       = 200
	betweenRequests = 50 * time.Millisecond
)

// ordersOf returns the orders of an attack and the size of its requests: the
// largest requests that are not too complex. If innocents are measured, the
// attack is on the one server that they use. Servers share the processors of
// this machine, and each server lets an attacker use half of them. Without
// innocents, requests have all sizes.
func (m *attackSide) ordersOf(ctx context.Context, of attack) (orders, int, error) {
	given := orders{
		Addresses: m.hosts(), From: greedyAddress, Token: m.tokens.greedy,
		Manner: of.Manner, Connections: of.Connections, Pause: betweenRequests,
	}
	if of.Service {
		given.Token = m.tokens.greedyService
	}
	if given.Manner == guessing {
		given.From = calmAddress
	}
	count, size := 1, 0
	if of.Varied {
		count = varieties
	}
	if m.innocents == nil { // any size
		count = max(count, min(of.Most, varieties))
	} else {
		given.Addresses = given.Addresses[:1]
		var err error
		if size, err = m.largest(ctx, of); err != nil {
			return given, 0, err
		}
	}
	for n := range count {
		sized := size
		if m.innocents == nil {
			sized = 1 + n%max(1, of.Most)
		}
		given.Bodies = append(given.Bodies, m.world.ask(of.Question, values{Size: sized, N: n}).Body)
	}
	return given, size, nil
}

// largest returns the largest size of an attack's request that is not too
// complex. If requests of every size are too complex, it returns the maximum
// size.
func (m *attackSide) largest(ctx context.Context, of attack) (int, error) {
	operator := local.NewClient(m.hosts()[0], local.Bearing(m.tokens.admin), operatorAddress, 1, requestTime)
	defer operator.Close()
	var failed error
	fits := func(size int) bool {
		_, err := operator.Insist(ctx, m.world.ask(of.Question, values{Size: size}), nil)
		var got local.Answer
		switch errors.As(err, &got); got.Code {
		case "QUERY_TOO_COMPLEX", "BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED":
			return false
		case "TIMEOUT":
			return true
		}
		failed = cmp.Or(failed, err)
		return true
	}
	if of.Most == 0 || fits(of.Most) {
		return of.Most, failed
	}
	less := 1 + sort.Search(of.Most-1, func(i int) bool { return fits(of.Most - 1 - i) })
	if failed != nil {
		return 0, fmt.Errorf("%s: %w", of.Name, failed)
	}
	return cmp.Or(of.Most-less, of.Most), nil
}

// Memory must return within memoryReturns to its size before the attacks. It may
// exceed that size by the fraction mayStay of the limit.
const (
	memoryReturns = 30 * time.Second
	mayStay       = 0.25
)

// most returns the largest memory of any server, in bytes, and the largest peak.
func (c *cloud) most() (now, peak float64) {
	for _, s := range c.servers {
		of, most := s.Memory()
		now, peak = max(now, of), max(peak, most)
	}
	return now, peak
}

// all measures some attacks on a cloud, and the memory after them, and adds the
// results to the report. It restarts servers that an attack has ended.
func (m *attackSide) all(ctx context.Context, of []attack) error {
	r := m.report
	m.innocents.ask(ctx, m.round) // fills caches
	before, _ := m.most()
	peak, limit := 0.0, float64(m.memory)
	for _, one := range of {
		line, promises, err := m.measure(ctx, one)
		ended, again := m.startAgain(ctx)
		if again != nil || ctx.Err() != nil {
			return errors.Join(err, again, ctx.Err())
		}
		promises.hold(ended == 0, "%d servers ended", ended)
		if err != nil {
			promises.hold(false, "%v", err)
			r.broken = append(r.broken, promises.broken...)
			continue
		}
		r.add(line, promises)
		peak = max(peak, line.Figures["peakBytes"])
		m.Say("%s, %s: look-ups %.1f and claims %.1f times as long", m.kind, one.Name,
			line.Figures["lookUpTimes"], line.Figures["claimTimes"])
	}
	for began := time.Now(); ; {
		after, _ := m.most()
		p := promises{of: m.kind}
		p.hold(limit == 0 || peak <= limit && after <= before+mayStay*limit,
			"memory is %.0f bytes after all attacks, %.0f before", after, before)
		if len(p.broken) == 0 || time.Since(began) > memoryReturns || !pause.For(ctx, 500*time.Millisecond) {
			r.add(measured.Line{Kind: measured.Memory, Database: m.kind, Figures: map[string]float64{
				"beforeBytes": before, "peakBytes": peak, "afterBytes": after, "seconds": time.Since(began).Seconds(),
			}}, p)
			return ctx.Err()
		}
	}
}
