package placementdb

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// PlacedOutcome is the result for one consumer of a placing: the consumer with
// its allocations, or its problems. Where others prevented it from being placed,
// it has neither.
type PlacedOutcome struct {
	sqldb.RowOutcome[placement.Consumer]
	// Holds reports which preferences hold for the host.
	Holds []bool `json:",omitempty"`
	// Alternatives are the ones of the candidate.
	Alternatives []placement.GroupAlternative `json:",omitempty"`
}

// maxRounds is how often a place chooses. Each round locks twice as many spare
// candidates as the one before, so that the last ones fail only if all of these
// fill up between the choice and the locks.
const maxRounds = 8

// errLost means that other claims took the chosen candidates and the spare ones
// before the providers were locked.
var errLost = errors.New("other claims took the chosen candidates")

// errExists means that some consumers have allocations already, so that a place
// chooses again for the others.
var errExists = errors.New("some consumers have allocations already")

// errUnplaced means that a place wrote nothing: its outcomes say why.
var errUnplaced = errors.New("nothing was placed")

// Place chooses candidates for consumers without allocations and claims them,
// in one transaction. It returns the outcome of each consumer, in order, and
// where one found no candidate, the world without room for it. If dryRun is
// set, nothing is stored.
//
// The choice is made from the world, and judged on locked rows. If other claims
// were faster, Place chooses again from a newer world, up to maxRounds times.
func (s *PlacementStore) Place(ctx context.Context, input placement.Placing, dryRun bool) ([]PlacedOutcome, *placement.World, error) {
	if _, err := access.ViewerFrom(ctx).Authorize("place"); err != nil {
		return nil, nil, err
	}
	if err := s.CheckPlacing(&input).Err(); err != nil {
		return nil, nil, err
	}
	p := &place{store: s, input: &input, isDone: s.IsDone(ctx), beyondLimits: mayExceedLimits(ctx, "place"), existing: map[int]problem.Problems{}}
	for p.round = 1; ; p.round++ {
		err := p.decide(ctx, dryRun)
		switch {
		case err == nil || errors.Is(err, errUnplaced) && (p.full == nil || p.isFresh):
			p.end(ctx, dryRun)
			return p.outcomes, p.full, nil
		case errors.Is(err, errLost):
			s.repeated.Add(1)
		case !errors.Is(err, errUnplaced) && !errors.Is(err, errExists):
			return nil, nil, err
		}
		if p.round == maxRounds {
			return nil, nil, problem.Refuse(problem.ErrUnavailable, "too many other claims took the chosen providers, try again").Because(err)
		}
		if err := s.ShowWorld(ctx, nil); err != nil {
			return nil, nil, err
		}
		p.isFresh = true
	}
}

// end completes the outcomes, and keeps the refusals of a place that is stored.
func (p *place) end(ctx context.Context, dryRun bool) {
	for _, outcome := range p.outcomes {
		if outcome.Row != nil {
			holding(outcome.Row)
		}
	}
	if !dryRun && !p.isDone {
		p.store.keepRefusals(ctx, p.input, p.outcomes, p.full)
	}
}

// CheckPlacing returns the problems of a placing, each at its path in the
// input. Place refuses them, too.
func (s *PlacementStore) CheckPlacing(input *placement.Placing) problem.Problems {
	problems := problemsOf(input.Validate("input"))
	for _, one := range s.CheckRequest(s.cache.World(), &input.Request) {
		if strings.HasPrefix(one.Field, "shapes") || strings.HasPrefix(one.Field, "preferences") {
			one.Field = "input." + one.Field
		} else {
			one.Field = "input.request." + one.Field
		}
		problems = append(problems, one)
	}
	return problems
}

// ChosenAgain returns how often places of this process chose again, because
// other claims were faster.
func (s *PlacementStore) ChosenAgain() int64 { return s.repeated.Load() }

// place is a placing with its state over all rounds.
type place struct {
	store   *PlacementStore
	input   *placement.Placing
	round   int
	isFresh bool // whether the world has all commits from before the round
	isDone  bool // whether the answer of the first request is stored
	// beyondLimits is whether limits of projects do not refuse it.
	beyondLimits bool
	// existing are the problems of consumers that have allocations already. No
	// candidate is chosen for them.
	existing map[int]problem.Problems
	// limited are the problems of consumers whose candidate would exceed limits
	// of their project.
	limited    map[int]problem.Problems
	candidates []*placement.Candidate // by consumer; nil for existing ones and without room
	claimed    []*placement.Candidate // by consumer: this candidate or a spare one
	scoring    *placement.Scoring
	spares     []placement.Candidate
	outcomes   []PlacedOutcome
	full       *placement.World // without room for some consumer, else nil
	held       [][]string       // the providers of each consumer that the policy names
}

// decide makes one round.
func (p *place) decide(ctx context.Context, dryRun bool) error {
	if err := p.seePeers(ctx); err != nil {
		return err
	}
	uuids := lists.Map(p.input.Consumers, func(c placement.NewConsumer) string { return c.UUID })
	w := &waitingClaim{mutation: "place", answer: &p.outcomes, concerned: concerned{consumers: uuids, fresh: true, holds: p.input.HoldFor != nil,
		projects: lists.Map(p.input.Consumers, func(c placement.NewConsumer) string { return c.ProjectID })}}
	w.concerned.peers, w.concerned.groups = p.peersConcerned()
	w.choose = func(world *placement.World) (*placement.World, error) { return p.choose(w, world) }
	w.judge = func(c *claimTx) error {
		tally, err := p.tally(c)
		if err != nil {
			return err
		}
		return p.judge(w, c, tally)
	}
	if dryRun {
		return p.store.tryClaim(ctx, w)
	}
	return p.store.claim(ctx, w)
}

// choose chooses candidates, and sets the consumers, providers and classes that
// the claim concerns.
func (p *place) choose(w *waitingClaim, world *placement.World) (*placement.World, error) {
	if p.isDone {
		return world, nil
	}
	asked := p.placingWith(p.held)
	asked.Consumers = asked.Consumers[len(p.existing):] // only their number counts
	choices, err := asked.Choose(world, 1<<p.round-2, &p.store.rankings)
	if err != nil {
		return nil, tooManySteps(err)
	}
	p.assign(&choices)
	p.scoring = world.Scoring(p.input.Request.Preferences)
	var claims []placement.ConsumerClaim
	for _, candidate := range p.candidates {
		if candidate != nil {
			claims = append(claims, p.input.Consumers[0].Claim(candidate))
		}
	}
	if len(claims) == 0 || p.full != nil && (p.input.Atomic || !p.isFresh) {
		p.outcomes = p.unplaced()
		return nil, errUnplaced
	}
	for i := range p.spares {
		claims = append(claims, p.input.Consumers[0].Claim(&p.spares[i]))
	}
	w.concerned.providers, w.concerned.classes, w.concerned.mapped = providersOf(claims), classesOf(claims), mappedBy(claims)
	return choices.After, nil
}

// assign gives the chosen candidates to the consumers in order.
func (p *place) assign(choices *placement.Choices) {
	p.candidates, p.spares, p.full, p.limited = make([]*placement.Candidate, len(p.input.Consumers)), choices.Spares, nil, nil
	p.claimed = slices.Clone(p.candidates)
	next := choices.Of
	for i := range p.candidates {
		if p.existing[i] == nil && len(next) > 0 {
			p.candidates[i], next = next[0], next[1:]
		}
	}
	if slices.Contains(choices.Of, nil) {
		p.full = choices.After
	}
}

// unplaced returns the outcomes if nothing is placed. If the placing is atomic,
// only the first consumer without a candidate has a problem.
func (p *place) unplaced() []PlacedOutcome {
	outcomes := make([]PlacedOutcome, len(p.input.Consumers))
	for i := range outcomes {
		switch {
		case p.existing[i] != nil:
			outcomes[i].Problems = p.existing[i]
		case p.limited[i] != nil:
			outcomes[i].Problems = p.limited[i]
		case p.full != nil && p.candidates[i] == nil:
			outcomes[i].Problems = problem.Problems{{Kind: problem.ErrCapacityExceeded, Field: problem.Index("input.consumers", i),
				Message: p.noRoom()}}
			if p.input.Atomic {
				return outcomes
			}
		}
	}
	return outcomes
}

// noRoom says that a consumer has no candidate.
func (p *place) noRoom() string {
	if p.input.Policy != nil {
		return "no provider that the policy allows has room for the request"
	}
	return "no provider has room for the request"
}

// judge claims the chosen candidates on a copy of the ledger, or spare ones
// where these are taken. It keeps the copy if all chosen consumers are placed.
func (p *place) judge(w *waitingClaim, c *claimTx, tally *placement.Tally) error {
	trial, exist := c.ledger.Trial(), false
	w.written, p.limited = []string{}, map[int]problem.Problems{}
	for i, candidate := range p.candidates {
		if candidate == nil {
			continue
		}
		delete(p.existing, i) // of a transaction that the database aborted
		refusals := p.claimFirst(trial, tally, i, c)
		field := problem.Index("input.consumers", i)
		switch {
		case len(refusals) == 0:
			w.written = append(w.written, p.input.Consumers[i].UUID)
		case refusals[0].Kind == placement.GenerationConflict:
			exist = true
			p.existing[i] = problem.Problems{{Kind: problem.ErrConcurrentUpdate, Field: field + ".uuid", Message: refusals[0].Message}}
		case refusals[0].Kind == placement.LimitExceeded:
			p.limited[i] = limitProblems(refusals)
			for k := range p.limited[i] {
				p.limited[i][k].Field = field
			}
		default:
			return errLost
		}
	}
	p.outcomes = p.unplaced()
	switch {
	case p.input.Atomic && (exist || len(p.limited) > 0), len(w.written) == 0 && !exist:
		return errUnplaced
	case exist: // others may have the room
		return errExists
	}
	c.ledger = trial
	for i, candidate := range p.candidates {
		if candidate != nil && p.limited[i] == nil {
			p.outcomes[i].Row = c.consumer(p.input.Consumers[i].UUID)
			p.outcomes[i].Holds, p.outcomes[i].Alternatives = p.scoring.Holds(p.claimed[i].Root), p.claimed[i].Alternatives
		}
	}
	return nil
}

// claimFirst claims the chosen candidate of a consumer, or the first spare one
// that fits and that the policy allows.
func (p *place) claimFirst(ledger *placement.Ledger, tally *placement.Tally, i int, c *claimTx) (refusals []placement.Refusal) {
	refusals = []placement.Refusal{{Kind: placement.CapacityExceeded}}
	candidates := []*placement.Candidate{p.candidates[i]}
	for k := range p.spares {
		candidates = append(candidates, &p.spares[k])
	}
	for _, candidate := range candidates {
		if tally != nil && !tally.Allows(candidate) {
			continue
		}
		claim := placement.Claim{Consumers: []placement.ConsumerClaim{p.input.Consumers[i].Claim(candidate)}, BeyondLimits: p.beyondLimits}
		if p.input.HoldFor != nil {
			claim.Consumers[0].ExpiresAt = new(c.clock.Add(time.Duration(*p.input.HoldFor) * time.Second))
		}
		p.claimed[i] = candidate
		refusals = ledger.Claim(&claim, "input", c.known())
		if len(refusals) == 0 && tally != nil {
			tally.Place(candidate)
		}
		if len(refusals) == 0 || refusals[0].Kind == placement.GenerationConflict || refusals[0].Kind == placement.LimitExceeded {
			return refusals
		}
	}
	return refusals
}

// tryClaim decides one claim in a transaction that is rolled back. It is not a
// trial of package sqldb: claims that commit meanwhile would abort its snapshot.
func (s *PlacementStore) tryClaim(ctx context.Context, w *waitingClaim) error {
	if w.choose != nil {
		if _, err := w.choose(s.cache.World()); err != nil {
			return err
		}
	}
	return s.Write(sqldb.DryRun(ctx, true), w.mutation, func(tx *sqldb.Tx) error {
		c, err := s.lockForClaim(ctx, tx, w.concerned)
		if err != nil {
			return err
		}
		return w.judge(c)
	})
}
