package placementdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
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
// its allocations, or its problems. It has neither if only other consumers
// prevented the placing.
type PlacedOutcome struct {
	sqldb.RowOutcome[placement.Consumer]
	// Holds reports for each preference whether the candidate's root meets it.
	Holds []bool `json:",omitempty"`
	// Alternatives are the alternatives that the candidate has for its groups.
	Alternatives []placement.GroupAlternative `json:",omitempty"`
}

// maxRounds is the maximum number of choices of a place. Round n locks up to
// 2^n-2 spare candidates, and half as many following ones. So the last round
// usually fails only if all of them fill up between the choice and the locks.
const maxRounds = 8

// errLost means that other claims took the chosen candidates and the spare ones
// before the providers were locked.
var errLost = errors.New("other claims took the chosen candidates")

// errUnplaced means that a place wrote nothing: its outcomes say why.
var errUnplaced = errors.New("nothing was placed")

// Place chooses candidates for consumers without allocations and claims them,
// in one transaction. It returns the outcome of each consumer, in order. If
// there was no candidate for a consumer, Place also returns the world that had
// no room for it, otherwise nil. If dryRun is set, nothing is stored.
//
// The choice is made from the world, and judged on locked rows. If other claims
// were faster, Place chooses again from a newer world. After maxRounds rounds
// it returns ErrUnavailable.
func (s *PlacementStore) Place(ctx context.Context, input placement.Placing,
	dryRun bool) ([]PlacedOutcome, *placement.World, error) {
	if _, err := access.ViewerFrom(ctx).Authorize("place"); err != nil {
		return nil, nil, err
	}
	if err := s.CheckPlacing(ctx, &input, nil); err != nil {
		return nil, nil, err
	}
	p := &place{store: s, input: &input, isDone: s.IsDone(ctx), beyondLimits: mayExceedLimits(ctx, "place")}
	for p.round = 1; ; p.round++ {
		err := p.decide(ctx, dryRun)
		switch {
		case err == nil || errors.Is(err, errUnplaced) && (p.full == nil || p.isFinal):
			p.end(ctx, dryRun)
			return p.outcomes, p.full, nil
		case errors.Is(err, errLost):
			s.repeated.Add(1)
		case !errors.Is(err, errUnplaced):
			return nil, nil, err
		}
		if p.round == maxRounds {
			return nil, nil, problem.Refuse(problem.ErrUnavailable,
				"too many other claims took the chosen providers, try again").Because(err)
		}
		if err := s.ShowWorld(ctx, nil); err != nil {
			return nil, nil, err
		}
		p.isFresh = true
	}
}

// end sets the holders of the placed allocations. Except for a dry run and for
// the retry of a stored request, it keeps the refusals.
func (p *place) end(ctx context.Context, dryRun bool) {
	for _, outcome := range p.outcomes {
		if outcome.Row != nil {
			holding(outcome.Row)
		}
	}
	if dryRun {
		return
	}
	p.store.Wrote(ctx)
	if !p.isDone {
		p.store.keepRefusals(ctx, p.input, p.outcomes, p.full)
	}
}

// CheckPlacing refuses other problems and the problems of a placing, each at its
// path in the input. Before that, it reads the commits of other servers, which
// may have just created the names. Place refuses the problems, too. The retry of a
// stored request has no problems: its names may have been deleted since.
func (s *PlacementStore) CheckPlacing(ctx context.Context, input *placement.Placing, others problem.Problems) error {
	if s.IsDone(ctx) {
		return nil
	}
	problems := s.problemsOfPlacing(input)
	if len(problems) > 0 {
		if err := s.ShowWorld(ctx, nil); err != nil {
			return err
		}
		problems = s.problemsOfPlacing(input)
	}
	return append(others, problems...).Err()
}

func (s *PlacementStore) problemsOfPlacing(input *placement.Placing) problem.Problems {
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
	// isFinal is whether the last choice saw a fresh world without choices of
	// others. If such a choice finds no candidate, there is no room.
	isFinal bool
	isDone  bool // whether an earlier request with the same idempotency key has stored the answer
	// beyondLimits is whether the place may exceed the limits of projects.
	beyondLimits bool
	choices      placement.Choices
	spares       []placement.Candidate // of choices, with the following ones
	// refused are the problems of consumers that have allocations already, or
	// whose candidate would exceed limits of their project. These consumers
	// take no candidate.
	refused  map[int]problem.Problems
	claimed  []*placement.Candidate // by index of the consumer: a chosen or a spare one
	scoring  *placement.Scoring
	outcomes []PlacedOutcome
	full     *placement.World // the world without room for some consumer, else nil
	held     [][]string       // the providers of each consumer that the policy or its group has
}

// decide makes one round: it chooses, claims, and sets the outcomes.
func (p *place) decide(ctx context.Context, dryRun bool) error {
	uuids := lists.Map(p.input.Consumers, func(c placement.NewConsumer) string { return c.UUID })
	w := &waitingClaim{mutation: "place", answer: &p.outcomes,
		concerned: concerned{consumers: uuids, fresh: true, holds: p.input.HoldFor != nil,
			projects: lists.Map(p.input.Consumers, func(c placement.NewConsumer) string { return c.ProjectID })}}
	w.concerned.peers, w.concerned.groups = p.peersConcerned()
	if err := p.store.checkSeen(ctx, nil, w.mutation, w.concerned); err != nil {
		return err
	}
	if err := p.seePeers(ctx); err != nil {
		return err
	}
	w.round, w.choose = p.round, func(world *placement.World, isGuess bool) (*placement.World, error) {
		return p.choose(w, world, isGuess)
	}
	w.judge = func(c *claimTx) error {
		tally, err := p.tally(c)
		if err != nil {
			return err
		}
		return p.judge(w, c, tally)
	}
	decide := p.store.claim
	if dryRun {
		decide = p.store.tryClaim
	}
	err := decide(ctx, w)
	if errors.Is(err, errUnplaced) && len(p.choices.Of) == 0 && p.isFinal {
		return p.refuseAll(ctx, w)
	}
	return err
}

// refuseAll judges a choice without candidates. The consumers alone matter, so
// it locks nothing.
func (p *place) refuseAll(ctx context.Context, w *waitingClaim) error {
	generations, err := sqldb.Pairs[string, int64](ctx, p.store.DB, p.store.Pool,
		`SELECT uuid, generation FROM consumers WHERE `+p.store.Listed("uuid", "$1", "text"),
		sqldb.JSONOf(w.concerned.consumers))
	if err != nil {
		return err
	}
	consumers := map[string]*placement.LedgerConsumer{}
	for uuid, generation := range generations {
		consumers[uuid] = &placement.LedgerConsumer{Generation: generation}
	}
	return p.judge(w, &claimTx{ledger: placement.NewLedger(consumers, nil)}, nil)
}

// choose chooses candidates, sets the providers and classes that the claim
// concerns, and returns the world after the choices, or errUnplaced. A guess is
// a world with choices that others may not get.
func (p *place) choose(w *waitingClaim, world *placement.World, isGuess bool) (*placement.World, error) {
	if p.isDone {
		return world, nil
	}
	asked := p.placingWith(p.held)
	choices, err := asked.Choose(world, 1<<p.round-2, &p.store.rankings)
	if err != nil {
		return nil, tooManySteps(err)
	}
	p.choices, p.isFinal, p.full = choices, p.isFresh && !isGuess, nil
	p.refused, p.claimed = nil, make([]*placement.Candidate, len(p.input.Consumers))
	if i := slices.Index(choices.Of, nil); i >= 0 {
		p.choices.Of, p.full = choices.Of[:i], choices.After // all later ones are nil, too
	}
	p.scoring = world.Scoring(p.input.Request.Preferences)
	if len(p.choices.Of) == 0 || p.full != nil && !p.isFinal {
		return nil, errUnplaced
	}
	var claims []placement.ConsumerClaim
	for _, candidate := range p.choices.Of {
		claims = append(claims, p.input.Consumers[0].Claim(candidate))
	}
	p.spares = slices.Concat(choices.Spares, choices.Following)
	for i := range p.spares {
		claims = append(claims, p.input.Consumers[0].Claim(&p.spares[i]))
	}
	w.concerned.providers, w.concerned.classes, w.concerned.mapped = providersOf(claims), classesOf(claims),
		mappedBy(claims)
	return choices.After, nil
}

// unplaced returns the outcomes with the problems of refused consumers and of
// consumers without a candidate. If the placing is atomic, only the first
// consumer without a candidate has a problem for that.
func (p *place) unplaced() []PlacedOutcome {
	outcomes := make([]PlacedOutcome, len(p.input.Consumers))
	for i := range outcomes {
		switch {
		case p.refused[i] != nil:
			outcomes[i].Problems = p.refused[i]
		case p.full != nil && p.claimed[i] == nil:
			outcomes[i].Problems = problem.Problems{{Kind: problem.ErrCapacityExceeded,
				Field:   problem.Index("input.consumers", i),
				Message: p.noRoom()}}
			if p.input.Atomic {
				return outcomes
			}
		}
	}
	return outcomes
}

// noRoom returns the message for a consumer without a candidate.
func (p *place) noRoom() string {
	if p.input.Policy != nil {
		return "no provider that the policy allows has room for the request"
	}
	return "no provider has room for the request"
}

// judge claims candidates on a copy of the ledger, for one consumer after the
// other: the chosen one, or a spare one if that is taken. All consumers have
// one request, so a refused consumer leaves its candidate to the next one.
// judge keeps the copy unless it returns an error.
func (p *place) judge(w *waitingClaim, c *claimTx, tally *placement.Tally) error {
	trial, next := c.ledger.Trial(w.concerned.providers), p.choices.Of
	w.written, p.refused, p.full = []string{}, map[int]problem.Problems{}, nil
	clear(p.claimed)
	for i := range p.input.Consumers {
		if len(next) == 0 {
			none := p.input.Consumers[i].Claim(new(placement.Candidate))
			refusals := trial.Claim(&placement.Claim{Consumers: []placement.ConsumerClaim{none}}, "input", c.known())
			if len(refusals) > 0 {
				p.refused[i] = refusedConsumer(problem.Index("input.consumers", i), refusals)
			} else {
				p.full = p.choices.After
			}
			continue
		}
		claimed, refusals := p.claimFirst(trial, tally, i, next[0], c)
		switch {
		case claimed == nil:
			return errLost
		case len(refusals) == 0:
			w.written, p.claimed[i], next = append(w.written, p.input.Consumers[i].UUID), claimed, next[1:]
		default:
			p.refused[i] = refusedConsumer(problem.Index("input.consumers", i), refusals)
		}
	}
	p.outcomes = p.unplaced()
	if p.input.Atomic && (p.full != nil || len(p.refused) > 0) || len(w.written) == 0 {
		return errUnplaced
	}
	c.ledger, w.taken, w.isMisleading = trial, nil, len(next) > 0
	for i, claimed := range p.claimed {
		if claimed != nil {
			w.taken = append(w.taken, claimed)
			p.outcomes[i].Row = c.consumer(p.input.Consumers[i].UUID)
			p.outcomes[i].Holds, p.outcomes[i].Alternatives = p.scoring.Holds(claimed.Root), claimed.Alternatives
		}
	}
	return nil
}

// refusedConsumer returns the problems of a consumer that has allocations
// already, or whose candidate would exceed limits.
func refusedConsumer(field string, refusals []placement.Refusal) problem.Problems {
	if refusals[0].Kind == placement.GenerationConflict {
		return problem.Problems{{Kind: problem.ErrConcurrentUpdate,
			Field: field + ".uuid", Message: refusals[0].Message}}
	}
	problems := limitProblems(refusals)
	for i := range problems {
		problems[i].Field = field
	}
	return problems
}

// claimFirst claims the chosen candidate for a consumer, or the first spare one
// that fits and that the policy allows. It returns the candidate, nil if others
// took all. With refusals, the consumer is refused and the candidate stays
// free.
func (p *place) claimFirst(ledger *placement.Ledger, tally *placement.Tally, i int, chosen *placement.Candidate,
	c *claimTx) (claimed *placement.Candidate, refusals []placement.Refusal) {
	candidates := []*placement.Candidate{chosen}
	for k := range p.spares {
		candidates = append(candidates, &p.spares[k])
	}
	for _, candidate := range candidates {
		if tally != nil && !tally.Allows(candidate) {
			continue
		}
		claim := placement.Claim{Consumers: []placement.ConsumerClaim{p.input.Consumers[i].Claim(candidate)},
			BeyondLimits: p.beyondLimits}
		if p.input.HoldFor != nil {
			claim.Consumers[0].ExpiresAt = new(c.clock.Add(time.Duration(*p.input.HoldFor) * time.Second))
		}
		refusals = ledger.Claim(&claim, "input", c.known())
		switch {
		case len(refusals) == 0:
			if tally != nil {
				tally.Place(candidate)
			}
			return candidate, nil
		case refusals[0].Kind == placement.GenerationConflict || refusals[0].Kind == placement.LimitExceeded:
			return candidate, refusals
		}
	}
	return nil, nil
}

// tryClaim decides one claim in a transaction that is rolled back. It does not
// use a trial of package sqldb, since claims that commit meanwhile abort those.
func (s *PlacementStore) tryClaim(ctx context.Context, w *waitingClaim) error {
	if w.choose != nil {
		if _, err := w.choose(s.cache.World(), false); err != nil {
			return err
		}
	}
	err := s.Write(sqldb.DryRun(ctx, true), w.mutation, func(tx *sqldb.Tx) error {
		c, err := s.lockForClaim(ctx, tx, w.concerned)
		if err == nil {
			err = s.checkSeen(ctx, c, w.mutation, w.concerned)
		}
		if err != nil {
			return err
		}
		return w.judge(c)
	})
	if err == nil {
		s.seeOthers(ctx)
	}
	return err
}

// policyKey is the class of the advisory locks of consumers and groups in
// policies. On PostgreSQL places whose policies concern a common consumer, or
// groups of the same project, are decided one after the other: the later one
// reads where the earlier one placed. Locks of rows are not enough, since new
// consumers have no row, and two hosts have no row in common.
const policyKey = 7_261_007

// peers are the consumers of policies as a transaction sees them.
type peers struct {
	providers map[string][]string // uuids, by consumer
	// groups are the uuids of the consumers of groups, by groupKey.
	groups map[string][]string
}

// groupKey returns the key of a group in peers.groups.
func groupKey(g *placement.ConsumerGroup) string { return sqldb.JSONOf(g) }

// peersOf reads the consumers with the given uuids and the consumers of groups,
// with the uuids of their providers. checkSeen has checked visibility. It reads at
// most placement.MaxConsumers+1 consumers of a group; see checkGroup.
func (s *PlacementStore) peersOf(ctx context.Context, on sqldb.Conn, uuids []string,
	groups []*placement.ConsumerGroup) (*peers, error) {
	found := &peers{providers: map[string][]string{}, groups: map[string][]string{}}
	read := func(consumers string, args ...any) (members []string, err error) {
		err = s.Query(ctx, on, `SELECT DISTINCT o.uuid, p.uuid FROM `+consumers+` o
			JOIN allocations a ON a.consumer_id = o.id JOIN resource_providers p ON p.id = a.provider_id
			ORDER BY o.uuid, p.uuid`, func(rows *sql.Rows) error {
			var uuid, provider string
			err := rows.Scan(&uuid, &provider)
			if len(members) == 0 || members[len(members)-1] != uuid {
				members, found.providers[uuid] = append(members, uuid), nil
			}
			found.providers[uuid] = append(found.providers[uuid], provider)
			return err
		}, args...)
		return members, err
	}
	if len(uuids) > 0 {
		if _, err := read(`(SELECT id, uuid FROM consumers WHERE `+s.Listed("uuid", "$1", "text")+`)`,
			sqldb.JSONOf(uuids)); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		where, args := "project_id = $1", []any{g.ProjectID}
		for _, one := range []struct {
			column string
			value  *string
		}{{"user_id", g.UserID}, {"consumer_type", g.Type}} {
			if one.value != nil {
				args = append(args, *one.value)
				where += fmt.Sprintf(" AND %s = $%d", one.column, len(args))
			}
		}
		members, err := read(fmt.Sprintf(`(SELECT id, uuid FROM consumers WHERE %s LIMIT %d)`,
			where, placement.MaxConsumers+1), args...)
		if err != nil {
			return nil, err
		}
		found.groups[groupKey(g)] = members
	}
	return found, nil
}

// lockPeers locks the consumers and the groups of policies and reads them. The
// groups of a project have one lock.
func (s *PlacementStore) lockPeers(ctx context.Context, c *claimTx, uuids []string,
	groups []*placement.ConsumerGroup) (err error) {
	if len(uuids) == 0 {
		return nil
	}
	names := slices.Concat(uuids,
		lists.Map(groups, func(g *placement.ConsumerGroup) string { return "project " + g.ProjectID }))
	if err := c.LockBuckets(ctx, policyKey, names); err != nil {
		return err
	}
	c.peers, err = s.peersOf(ctx, c, uuids, groups)
	return err
}

// peersConcerned returns the consumers to lock for the policy, which are the
// named ones and the ones to place, and its group. Without a policy there are
// none.
func (p *place) peersConcerned() (uuids []string, groups []*placement.ConsumerGroup) {
	if p.input.Policy == nil {
		return nil, nil
	}
	uuids = lists.Map(p.input.Consumers, func(c placement.NewConsumer) string { return c.UUID })
	if p.input.Policy.Group != nil {
		groups = append(groups, p.input.Policy.Group)
	}
	return lists.Distinct(append(uuids, p.input.Policy.Consumers...)), groups
}

// seePeers reads the providers of the policy's consumers into held, for the
// choice.
func (p *place) seePeers(ctx context.Context) error {
	if p.input.Policy == nil || p.isDone {
		return nil
	}
	_, groups := p.peersConcerned()
	if len(p.input.Policy.Consumers)+len(groups) == 0 {
		return nil
	}
	seen, err := p.store.peersOf(ctx, p.store.Pool, p.input.Policy.Consumers, groups)
	if err != nil {
		return err
	}
	p.held = slices.Collect(maps.Values(seen.providers))
	return p.checkGroup(seen)
}

// checkGroup refuses a policy whose group has too many consumers.
func (p *place) checkGroup(seen *peers) error {
	if g := p.input.Policy.Group; g != nil && len(seen.groups[groupKey(g)]) > placement.MaxConsumers {
		return problem.Invalid("input.policy.group", "has more than %d consumers", placement.MaxConsumers)
	}
	return nil
}

// placingWith returns the placing with the providers of the consumers of its
// policy.
func (p *place) placingWith(held [][]string) placement.Placing {
	placing := *p.input
	if placing.Policy != nil {
		policy := *placing.Policy
		placing.Policy, policy.Held = &policy, held
	}
	return placing
}

// tally returns the tally of the policy with the locked consumers and the ones
// of earlier claims of the transaction; nil without a policy.
func (p *place) tally(c *claimTx) (*placement.Tally, error) {
	if p.input.Policy == nil {
		return nil, nil
	}
	if err := p.checkGroup(c.peers); err != nil {
		return nil, err
	}
	counted := lists.Set(p.input.Policy.Consumers, lists.Itself)
	group := p.input.Policy.Group
	if group != nil {
		for _, uuid := range c.peers.groups[groupKey(group)] {
			counted[uuid] = true
		}
	}
	written := lists.Set(c.ledger.Written(), lists.Itself)
	var held [][]string
	for uuid := range counted {
		if !written[uuid] {
			held = append(held, c.peers.providers[uuid])
		}
	}
	for uuid := range written {
		of := c.ledger.Consumer(uuid)
		if slices.Contains(p.input.Policy.Consumers, uuid) || group != nil && group.Has(&of) {
			held = append(held,
				lists.Map(of.SortedKeys(), func(key placement.AllocationKey) string { return key.Provider }))
		}
	}
	world := p.store.cache.World()
	isUnknown := func(provider string) bool {
		_, known := world.Provider(provider)
		return !known
	}
	if slices.ContainsFunc(slices.Concat(held...), isUnknown) {
		return nil, errLost // another server has created the provider: choose again in a newer world
	}
	placing := p.placingWith(held)
	return placing.Tally(world), nil
}
