package origin_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/origin"
)

// TestTurns has turns after passes and looks, at a random number of a half, which
// changes no wait.
func TestTurns(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	after := func(outcomes ...origin.Outcome) origin.Turn {
		turn := origin.Turn{Interval: 10 * time.Minute}
		for _, outcome := range outcomes {
			turn.Due = time.Time{}
			turn = turn.End(now, outcome, 0.5)
		}
		return turn
	}
	look := func(turn origin.Turn, passed time.Duration, isRunning bool, lag time.Duration) origin.Turn {
		return turn.Look(now.Add(passed), isRunning, &lag, 0.5)
	}
	failed, succeeded, taken := origin.Failed, origin.Succeeded, origin.Taken
	long := origin.Turn{Interval: 3 * time.Hour, Failures: 4}.End(now, failed, 0.5)
	for name, of := range map[string]struct {
		turn origin.Turn
		want time.Duration // from now; a past one means at any time
	}{
		"a pass":                      {after(succeeded), 10 * time.Minute},
		"a failure":                   {after(failed), 10 * time.Minute},
		"two failures":                {after(failed, failed), 20 * time.Minute},
		"three failures":              {after(failed, failed, failed), 40 * time.Minute},
		"many failures":               {after(failed, failed, failed, failed, failed, failed), time.Hour},
		"a pass after failures":       {after(failed, failed, failed, succeeded), 10 * time.Minute},
		"a failure after it":          {after(failed, failed, succeeded, failed), 10 * time.Minute},
		"failures at a long interval": {long, 3 * time.Hour},
		"another program's pass":      {after(taken), 15 * time.Second},
		"it counts as no failure":     {after(failed, taken, failed), 20 * time.Minute},
		"a restart after a pass": {look(origin.Turn{Interval: 10 * time.Minute}, 0, false, 4*time.Minute),
			6 * time.Minute},
		"a restart after an old pass": {look(origin.Turn{Interval: 10 * time.Minute}, 0, false, time.Hour),
			-50 * time.Minute},
		"a restart during a pass": {look(origin.Turn{Interval: 10 * time.Minute}, 0, true, 4*time.Minute),
			15 * time.Second},
		"a look after the own pass": {look(after(succeeded), 10*time.Minute, false, 10*time.Minute),
			10 * time.Minute},
		"a look that rounds": {look(after(succeeded), 10*time.Minute, false,
			10*time.Minute-time.Second), 10 * time.Minute},
		"a look after a later pass": {look(after(succeeded), 10*time.Minute, false, 3*time.Minute),
			17 * time.Minute},
		"a look after failures": {look(after(failed, failed), 20*time.Minute, false, time.Hour),
			20 * time.Minute},
		"another program succeeded": {look(after(failed, failed), 20*time.Minute, false, 5*time.Minute),
			25 * time.Minute},
		"a later failure after that": {look(after(failed, failed), 20*time.Minute, false, 15*time.Minute).
			End(now.Add(30*time.Minute), failed, 0.5), 40 * time.Minute},
		"a scope without a pass is due": {origin.Turn{Interval: time.Minute}.Look(now, false, nil, 0.5),
			time.Time{}.Sub(now)},
		"the least random number comes early": {origin.Turn{Interval: 10 * time.Minute}.End(now, succeeded, 0),
			9 * time.Minute},
		"the greatest random number is latest": {origin.Turn{Interval: 10 * time.Minute}.End(now, succeeded, 1),
			11 * time.Minute},
	} {
		if got := of.turn.Due.Sub(now); got != of.want {
			t.Errorf("%s: due after %v, want %v", name, got, of.want)
		}
	}
}

// programs repeat passes over one scope.
type programs struct {
	*rand.Rand
	t      *testing.T
	now    time.Time
	turns  []origin.Turn
	runs   int       // the program that makes a pass, -1 for none
	ends   time.Time // of that pass
	last   time.Time // the end of the last complete pass
	passes int       // complete ones
}

const (
	interval = 2 * time.Minute
	length   = 20 * time.Second // of a pass
)

// end ends the pass, if it is time. The first program can always read the cloud.
func (p *programs) end() {
	if p.runs < 0 || p.now.Before(p.ends) {
		return
	}
	outcome := origin.Failed
	if p.runs == 0 || p.IntN(2) == 0 {
		gap := p.now.Sub(p.last)
		if !p.last.IsZero() && (gap < interval*9/10 || gap > 2*interval*11/10+2*length) {
			p.t.Fatalf("%d programs: %v between passes", len(p.turns), gap)
		}
		outcome, p.last = origin.Succeeded, p.now
		p.passes++
	}
	p.turns[p.runs] = p.turns[p.runs].End(p.now, outcome, p.Float64())
	p.runs = -1
}

// look lets the programs look whose turn it is, and begin a pass.
func (p *programs) look() {
	for _, i := range p.Perm(len(p.turns)) {
		if i == p.runs || p.turns[i].Due.After(p.now) {
			continue
		}
		var lag *time.Duration
		if !p.last.IsZero() {
			lag = new(p.now.Sub(p.last).Truncate(time.Second))
		}
		if p.turns[i] = p.turns[i].Look(p.now, p.runs >= 0, lag, p.Float64()); p.turns[i].Due.After(p.now) {
			continue
		}
		if p.runs >= 0 {
			p.t.Fatal("two passes overlap")
		}
		p.runs, p.ends = i, p.now.Add(length)
	}
}

// TestProgramsShareAScope runs programs over one scope, with passes that fail and
// programs that start again. While one of them can read the cloud, no two passes
// overlap, and complete passes are at least 9/10 of an interval apart, and at most
// about two intervals.
func TestProgramsShareAScope(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(soak.Seed(t), 29))
	for range soak.Count(t, "CADASTRE_SOAK_TURNS", 100) {
		p := &programs{Rand: random, t: t, now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
			turns: make([]origin.Turn, 1+random.IntN(4)), runs: -1}
		for i := range p.turns {
			p.turns[i].Interval = interval
		}
		for range 4000 {
			p.now = p.now.Add(time.Second)
			p.end()
			if i := random.IntN(400); i > 0 && i < len(p.turns) && i != p.runs {
				p.turns[i] = origin.Turn{Interval: interval} // starts again
			}
			p.look()
		}
		if p.passes < 10 {
			t.Errorf("%d programs: %d passes", len(p.turns), p.passes)
		}
	}
}
