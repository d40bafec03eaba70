package placementdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// SetAllocations replaces the allocations of several consumers, all or none. It
// returns the consumers that have allocations afterwards, in the order of the
// claim.
func (s *PlacementStore) SetAllocations(ctx context.Context, claim placement.Claim) ([]*placement.Consumer, error) {
	if err := problemsOf(claim.Validate("input")).Err(); err != nil {
		return nil, err
	}
	if claim.AsFound && !access.ViewerFrom(ctx).At("setAllocations").May(access.RuleSync) {
		return nil, problem.Refuse(problem.ErrForbidden, "only a viewer who may sync can set allocations as found").
			On("input.asFound")
	}
	claim.BeyondLimits = mayExceedLimits(ctx, "setAllocations")
	var consumers []*placement.Consumer
	err := s.claim(sqldb.DryRun(ctx, claim.DryRun),
		&waitingClaim{mutation: "setAllocations", concerned: concernedBy(claim.Consumers), answer: &consumers,
			judge: func(c *claimTx) error {
				if refusals := c.ledger.Claim(&claim, "input", c.known()); len(refusals) > 0 {
					return refusalOf(s.cache.World(), refusals)
				}
				consumers = c.consumersAfter(claim.Consumers)
				return nil
			}})
	if err != nil {
		return nil, err
	}
	return holding(consumers...), nil
}

// DeleteAllocations deletes all allocations of a consumer, and returns the
// consumer as it was before. It returns ErrNotFound if there are none.
func (s *PlacementStore) DeleteAllocations(ctx context.Context, uuid string) (*placement.Consumer, error) {
	var consumer *placement.Consumer
	err := s.claim(ctx,
		&waitingClaim{mutation: "deleteAllocations", concerned: concerned{consumers: []string{uuid}}, answer: &consumer,
			judge: func(c *claimTx) error {
				consumer = c.consumer(uuid)
				if !c.ledger.Release(uuid) {
					return problem.Refuse(problem.ErrNotFound, "consumer %s has no allocations", uuid).
						On("input.consumer")
				}
				return nil
			}})
	if err != nil {
		return nil, err
	}
	return holding(consumer)[0], nil
}

// DeleteAllocationsForMany deletes all allocations of consumers. An atomic
// deletion deletes all or none; otherwise it skips consumers without
// allocations. It returns the outcome of each, in order: the consumer as it was
// before, or its problem.
func (s *PlacementStore) DeleteAllocationsForMany(ctx context.Context,
	deletion placement.Deletion) ([]ConsumerOutcome, error) {
	if err := problemsOf(deletion.Validate("input")).Err(); err != nil {
		return nil, err
	}
	var outcomes []ConsumerOutcome
	w := &waitingClaim{mutation: "deleteAllocationsForMany",
		concerned: concerned{consumers: deletion.Consumers}, answer: &outcomes}
	w.judge = func(c *claimTx) error {
		outcomes, w.written = make([]ConsumerOutcome, len(deletion.Consumers)), []string{}
		before := lists.Map(deletion.Consumers, c.consumer)
		for i, refusal := range c.ledger.Delete(&deletion, "input") {
			if refusal != nil {
				outcomes[i].Problems = problem.Problems{{Kind: problem.ErrNotFound,
					Field: refusal.Path, Message: refusal.Message}}
				continue
			}
			outcomes[i].Row, w.written = before[i], append(w.written, deletion.Consumers[i])
		}
		return sqldb.RefuseRows(deletion.Atomic, outcomes)
	}
	if err := s.claim(sqldb.DryRun(ctx, deletion.DryRun), w); err != nil {
		return nil, err
	}
	for _, outcome := range outcomes {
		if outcome.Row != nil {
			holding(outcome.Row)
		}
	}
	return outcomes, nil
}

// ConsumerOutcome is the result for one consumer of a bulk mutation: the
// consumer with its allocations, or its problems.
type ConsumerOutcome = sqldb.RowOutcome[placement.Consumer]

// claim authorizes the viewer, queues a claim, and returns its error once it is
// decided. Claims that wait at the same time share a transaction. A dry run is
// not queued and has a separate transaction.
func (s *PlacementStore) claim(ctx context.Context, w *waitingClaim) error {
	// check here, since claims of several viewers share a transaction
	if err := s.checkSeen(ctx, nil, w.mutation, w.concerned); err != nil {
		return err
	}
	if sqldb.IsDryRun(ctx) {
		return s.tryClaim(ctx, w)
	}
	viewer := access.ViewerFrom(ctx)
	w.ctx, w.claimant = ctx, claimant{viewer.UserID, viewer.ProjectID}
	err := s.claims.decide(ctx, w, s.decideClaims)
	if !errors.Is(err, errUnplaced) && !errors.Is(err, errLost) { // then Place continues
		s.Wrote(ctx) // even if another request's transaction decided it
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.mutation, err)
	}
	s.Committed(ctx)
	return nil
}

// checkSeen authorizes a viewer. It refuses a mutation that concerns consumers of
// other projects if the viewer does not see them: a policy can permit single fields.
// It judges the locked consumers of a transaction, or before the locks if c is nil:
// other claims may create a consumer, or change its project, until it is locked.
func (s *PlacementStore) checkSeen(ctx context.Context, c *claimTx, mutation string, of concerned) error {
	viewer, err := access.ViewerFrom(ctx).Authorize(mutation)
	if viewer = viewer.At(""); err != nil || viewer.May(access.RulePlacementWrite) || visible.SeesEveryConsumer(ctx) {
		return err
	}
	uuids, on := slices.Concat(of.consumers, of.peers), sqldb.Conn(s.Pool)
	if c != nil {
		on = c
	}
	hidden, err := sqldb.Column[string](ctx, s.DB, on, `SELECT uuid FROM consumers WHERE project_id <> $2 AND `+
		s.Listed("uuid", "$1", "text")+` ORDER BY uuid LIMIT 1`,
		sqldb.JSONOf(uuids), viewer.ProjectID)
	if err != nil {
		return fmt.Errorf("look for consumers of other projects: %w", err)
	}
	if c != nil { // earlier claims of the transaction have written only the ledger
		for _, uuid := range uuids {
			if is := c.ledger.Consumer(uuid); is.Generation != 0 && is.ProjectID != viewer.ProjectID {
				hidden = append(hidden, uuid)
			}
		}
	}
	if len(hidden) > 0 {
		return problem.Refuse(problem.ErrNotFound, "consumer %s does not exist", hidden[0])
	}
	groups := lists.Map(of.groups, func(g *placement.ConsumerGroup) string { return g.ProjectID })
	if len(lists.Without(slices.Concat(of.projects, groups), []string{viewer.ProjectID})) > 0 {
		return viewer.Require(access.RuleConsumersReadAny, "a claim for other projects")
	}
	return nil
}

// claimTransactions is the maximum number of concurrent claim transactions on
// PostgreSQL. New lowers it to half of the connections, so that claims that
// wait for a lock leave the others to readers. On SQLite writers wait for each
// other anyway.
const claimTransactions = 4

// decideClaims checks claims one after the other and writes the accepted ones
// in one transaction. It sets the err of each refused claim. The returned error
// concerns all claims, such as an error of the database.
func (s *PlacementStore) decideClaims(ctx context.Context, claims []*waitingClaim) error {
	world := s.cache.World()
	if claims = chooseForAll(world, claims); len(claims) == 0 {
		return nil
	}
	// Write authorizes only this viewer: claim has authorized each one already.
	first := access.WithViewer(ctx, access.ViewerFrom(claims[0].ctx))
	return s.Write(sqldb.NotOnce(first), claims[0].mutation, func(tx *sqldb.Tx) error {
		chosen := len(claims)
		claims, err := replayClaims(tx, claims)
		if err != nil || len(claims) == 0 {
			return err
		}
		c, err := s.lockForClaim(ctx, tx, concernedByAll(claims))
		if err != nil {
			return err
		}
		accepted, err := s.judgeAll(c, claims, world, len(claims) < chosen)
		if err != nil {
			return err
		}
		if err := s.stillAbsent(ctx, c); err != nil || !accepted {
			return err
		}
		return s.writeAndPublish(ctx, c)
	})
}

// judgeAll judges claims one after the other, and reports whether it accepted
// any. A claim is misled if it chose in a world with candidates that an earlier
// claim then did not get. It chooses again in a world with only the candidates
// of the claims accepted so far.
func (s *PlacementStore) judgeAll(c *claimTx, claims []*waitingClaim, world *placement.World,
	isMisled bool) (accepted bool, err error) {
	var taken []*placement.Candidate
	for _, w := range claims {
		if w.choose != nil && isMisled {
			if _, w.err = w.choose(world.Taking(taken...), false); w.err != nil {
				continue
			}
		}
		before := s.contentsOf(c, w.concerned.consumers)
		if w.err = s.checkSeen(w.ctx, c, w.mutation, w.concerned); w.err == nil {
			w.err = w.judge(c)
		}
		isMisled = isMisled || w.choose != nil && (w.err != nil || w.isMisleading)
		if w.err != nil {
			continue
		}
		accepted, taken = true, append(taken, w.taken...)
		if err := c.Keep(w.ctx, w.answer); err != nil {
			return false, err
		}
		consumers := w.concerned.consumers
		if w.written != nil {
			consumers = w.written
		}
		s.recordConsumers(w.ctx, c, w.mutation, consumers, before)
	}
	return accepted, nil
}

// chooseForAll lets claims choose one after the other, the ones that chose most
// often first. Each chooses in the world after the choices before it.
// chooseForAll sets the err of each refused claim, and returns the others in
// this order.
func chooseForAll(world *placement.World, claims []*waitingClaim) (others []*waitingClaim) {
	isGuess := false
	byRounds := func(a, b *waitingClaim) int { return cmp.Compare(b.round, a.round) }
	for _, w := range slices.SortedStableFunc(slices.Values(claims), byRounds) {
		if w.choose != nil {
			after, err := w.choose(world, isGuess)
			if w.err = err; err != nil {
				continue
			}
			world, isGuess = after, true
		}
		others = append(others, w)
	}
	return others
}

// writeAndPublish writes the ledger's changes, deletes the kept refusals of the
// written consumers, and publishes the resulting states to the world. Unless
// states must be read after the write, it uses WriteLast.
func (s *PlacementStore) writeAndPublish(ctx context.Context, c *claimTx) error {
	if err := s.forgetRefusals(ctx, c); err != nil {
		return err
	}
	known, unknown := s.statesAfter(c)
	write := c.WriteLast
	if len(unknown) > 0 {
		write = c.WriteParts
	}
	if err := write(ctx, c.now, s.partsOf(c)); err != nil {
		return err
	}
	_, err := s.publishClaim(ctx, c, known, unknown)
	return err
}

// concernedByAll returns the union of what several claims concern. It is fresh
// only if all are.
func concernedByAll(claims []*waitingClaim) (all concerned) {
	all.fresh = true
	for _, w := range claims {
		all.fresh, all.holds = all.fresh && w.concerned.fresh, all.holds || w.concerned.holds
		all.consumers = append(all.consumers, w.concerned.consumers...)
		all.providers = append(all.providers, w.concerned.providers...)
		all.classes = append(all.classes, w.concerned.classes...)
		all.mapped = append(all.mapped, w.concerned.mapped...)
		all.peers, all.groups = append(all.peers, w.concerned.peers...), append(all.groups, w.concerned.groups...)
		all.projects = append(all.projects, w.concerned.projects...)
	}
	return all
}

// replayClaims answers the claims of retried requests from their stored
// results, and returns the others. It sets the err of a claim whose idempotency
// key is refused.
func replayClaims(tx *sqldb.Tx, claims []*waitingClaim) (others []*waitingClaim, err error) {
	for _, w := range claims {
		replayed, err := tx.Replay(w.ctx, w.answer)
		w.err = nil
		switch {
		case sqldb.IsOfTheKey(err):
			w.err = err
		case err != nil:
			return nil, err
		case !replayed:
			others = append(others, w)
		}
	}
	return others, nil
}

// recordConsumers records an audit event for each consumer. before is the
// result of contentsOf before the mutation.
func (s *PlacementStore) recordConsumers(ctx context.Context, c *claimTx, mutation string,
	consumers []string, before map[string]any) {
	after := s.contentsOf(c, consumers)
	for _, uuid := range consumers {
		c.RecordFor(ctx, mutation, sqldb.Event{Kind: "Consumer", Key: uuid, Before: before[uuid], After: after[uuid]})
	}
}

// contentsOf returns the audit fields, by uuid, of the consumers that exist in
// the ledger; nil if audit events do not show allocations.
func (s *PlacementStore) contentsOf(c *claimTx, consumers []string) map[string]any {
	if !s.auditAllocations {
		return nil
	}
	contents := map[string]any{}
	for _, uuid := range consumers {
		is := c.ledger.Consumer(uuid)
		if is.Generation == 0 {
			continue
		}
		contents[uuid] = sqldb.Fields{"projectId": is.ProjectID, "userId": is.UserID,
			"type": is.Type, "expiresAt": is.ExpiresAt,
			"allocations": lists.Map(is.SortedKeys(), func(key placement.AllocationKey) sqldb.Fields {
				return sqldb.Fields{"provider": key.Provider,
					"resourceClass": key.ResourceClass, "used": is.Allocations[key]}
			})}
	}
	return contents
}

// consumersAfter returns the claims' consumers that exist afterwards, in the
// order of the claims.
func (c *claimTx) consumersAfter(claims []placement.ConsumerClaim) []*placement.Consumer {
	var consumers []*placement.Consumer
	for i := range claims {
		if consumer := c.consumer(claims[i].UUID); consumer.Generation != 0 {
			consumers = append(consumers, consumer)
		}
	}
	return consumers
}

// consumer returns a consumer from the ledger. Its Generation is 0 if it does
// not exist.
func (c *claimTx) consumer(uuid string) *placement.Consumer {
	is := c.ledger.Consumer(uuid)
	consumer := &placement.Consumer{UUID: uuid, ProjectID: is.ProjectID, UserID: is.UserID,
		Type: is.Type, Generation: is.Generation, CreatedAt: c.now, UpdatedAt: c.now, ExpiresAt: is.ExpiresAt}
	if row := c.consumers[uuid]; row != nil && !is.Created {
		consumer.CreatedAt = row.CreatedAt
		if is.Generation == row.Generation {
			consumer.UpdatedAt = row.UpdatedAt
		}
	}
	hold(consumer, is)
	return consumer
}

// hold sets the mappings of a consumer, and its allocations in the order of
// provider and class.
func hold(consumer *placement.Consumer, of placement.LedgerConsumer) {
	consumer.Held, consumer.Mappings = []*placement.Allocation{}, of.Mappings
	for _, key := range of.SortedKeys() {
		consumer.Held = append(consumer.Held, &placement.Allocation{Consumer: consumer.UUID, Provider: key.Provider,
			ResourceClass: key.ResourceClass, Used: of.Allocations[key], Holder: consumer})
	}
}

// holding sets each consumer as the holder of its allocations, and returns the
// consumers.
func holding(consumers ...*placement.Consumer) []*placement.Consumer {
	for _, consumer := range consumers {
		for _, allocation := range consumer.Held {
			allocation.Holder = consumer
		}
	}
	return consumers
}

// refusalOf converts refusals of one kind to an error. Of generation conflicts,
// inventories in use and exceeded capacities it reports only the first. The
// world supplies suggestions for unknown names.
func refusalOf(world *placement.World, refusals []placement.Refusal) error {
	first := refusals[0]
	switch first.Kind {
	case placement.UnknownReference:
		return problemsIn(world, lists.Map(refusals, func(r placement.Refusal) placement.Problem { return r.Problem })).
			Err()
	case placement.GenerationConflict:
		return problem.Refuse(problem.ErrConcurrentUpdate, "%s", first.Message).On(first.Path)
	case placement.NotHeld:
		return problem.Problems(lists.Map(refusals, func(r placement.Refusal) problem.Problem {
			return problem.Problem{Kind: problem.ErrNotFound, Field: r.Path, Message: r.Message}
		})).Err()
	case placement.LimitExceeded:
		return limitProblems(refusals).Err()
	case placement.InventoryInUse:
		return problem.Refuse(problem.ErrInUse, "%s", first.Message).On(first.Path)
	default:
		return problem.Refuse(problem.ErrCapacityExceeded, "%s", first.Message).On(first.Path)
	}
}
