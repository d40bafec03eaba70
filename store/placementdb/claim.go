package placementdb

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// SetAllocations replaces the allocations of consumers, all of them or none, and
// returns the consumers that have any afterwards, in the order of the claim. Claims
// that wait share a transaction, each judged by itself.
func (s *PlacementStore) SetAllocations(ctx context.Context, claim placement.Claim) ([]*placement.Consumer, error) {
	if err := problemsOf(claim.Validate("input")).Err(); err != nil {
		return nil, err
	}
	if _, err := access.ViewerFrom(ctx).Authorize("setAllocations"); err != nil {
		return nil, err // here, for claims of several viewers share a transaction
	}
	w := &waitingClaim{ctx: ctx, claim: claim}
	err := s.claims.decide(ctx, w, s.decideClaims)
	s.Wrote(ctx) // whoever decided it
	if err != nil {
		return nil, fmt.Errorf("setAllocations: %w", err)
	}
	s.Committed(ctx)
	return holding(w.consumers...), nil
}

// claimTransactions is how many transactions of claims run at once on PostgreSQL. On
// SQLite writers wait for each other anyway.
const claimTransactions = 4

// decideClaims judges claims one after the other and writes those that hold, in
// one transaction. A refusal is set on its claim; the error is one of the
// database and concerns all claims.
func (s *PlacementStore) decideClaims(ctx context.Context, claims []*waitingClaim) error {
	return s.Write(sqldb.NotOnce(ctx), "setAllocations", func(tx *sqldb.Tx) error {
		claims, err := replayClaims(tx, claims)
		if err != nil || len(claims) == 0 {
			return err
		}
		var consumers []placement.ConsumerClaim
		for _, w := range claims {
			consumers = append(consumers, w.claim.Consumers...)
		}
		c, err := s.lockForClaim(ctx, tx, concernedBy(consumers))
		if err != nil {
			return err
		}
		accepted := false
		for _, w := range claims {
			w.err, w.consumers = nil, nil
			if refusals := c.ledger.Claim(&w.claim, "input", c.known()); len(refusals) > 0 {
				w.err = refusalOf(s.cache.World(), refusals)
				if err := s.stillAbsent(ctx, c, w.claim.Consumers); err != nil {
					return err
				}
				continue
			}
			accepted = true
			w.consumers = c.consumersAfter(w.claim.Consumers)
			if err := tx.Keep(w.ctx, &w.consumers); err != nil {
				return err
			}
			recordConsumers(w.ctx, tx, consumersOf(w.claim.Consumers))
		}
		if !accepted {
			return nil
		}
		if err := s.writeClaim(ctx, c); err != nil {
			return err
		}
		_, err = s.publishClaim(ctx, c)
		return err
	})
}

// replayClaims answers the claims of requests that were made before, and returns
// the others. A refusal is set on its claim.
func replayClaims(tx *sqldb.Tx, claims []*waitingClaim) (others []*waitingClaim, err error) {
	for _, w := range claims {
		w.err, w.consumers = nil, nil
		replayed, err := tx.Replay(w.ctx, &w.consumers)
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

// DeleteAllocations takes all allocations of a consumer away and returns the
// consumer as it was.
func (s *PlacementStore) DeleteAllocations(ctx context.Context, uuid string) (*placement.Consumer, error) {
	var consumer *placement.Consumer
	err := s.Write(ctx, "deleteAllocations", func(tx *sqldb.Tx) error {
		c, err := s.lockForClaim(ctx, tx, concerned{consumers: []string{uuid}})
		if err != nil {
			return err
		}
		if !c.ledger.Release(uuid) {
			return problem.Refuse(problem.ErrNotFound, "consumer %s has no allocations", uuid).On("input.consumer")
		}
		consumer = c.released(uuid)
		recordConsumers(ctx, tx, []string{uuid})
		if err := s.writeClaim(ctx, c); err != nil {
			return err
		}
		_, err = s.publishClaim(ctx, c)
		return err
	}, &consumer)
	if err != nil {
		return nil, fmt.Errorf("deleteAllocations: %w", err)
	}
	return holding(consumer)[0], nil
}

// recordConsumers records that consumers were written: by uuid only.
func recordConsumers(ctx context.Context, tx *sqldb.Tx, consumers []string) {
	for _, uuid := range consumers {
		tx.Record(ctx, sqldb.Event{Kind: "Consumer", Key: uuid})
	}
}

// consumersAfter returns the consumers of claims that exist after them.
func (c *claimTx) consumersAfter(claims []placement.ConsumerClaim) []*placement.Consumer {
	var consumers []*placement.Consumer
	for i := range claims {
		uuid := claims[i].UUID
		after := c.ledger.Consumer(uuid)
		if after.Generation == 0 {
			continue
		}
		consumer := &placement.Consumer{UUID: uuid, ProjectID: after.ProjectID, UserID: after.UserID,
			Type: after.Type, Generation: after.Generation, CreatedAt: c.now, UpdatedAt: c.now}
		hold(consumer, after)
		if row := c.consumers[uuid]; row != nil {
			consumer.CreatedAt = row.CreatedAt
		}
		consumers = append(consumers, consumer)
	}
	return consumers
}

// released returns a consumer as it was when it was locked, with what it had.
func (c *claimTx) released(uuid string) *placement.Consumer {
	row := c.consumers[uuid]
	consumer := row.Consumer
	hold(&consumer, row.held)
	return &consumer
}

// hold sets the mappings of a consumer, and its allocations by provider and
// class.
func hold(consumer *placement.Consumer, of placement.LedgerConsumer) {
	consumer.Held, consumer.Mappings = []*placement.Allocation{}, of.Mappings
	for _, key := range of.SortedKeys() {
		consumer.Held = append(consumer.Held, &placement.Allocation{Consumer: consumer.UUID, Provider: key.Provider,
			ResourceClass: key.ResourceClass, Used: of.Allocations[key], Holder: consumer})
	}
}

// holding returns consumers, each set as the holder of its allocations.
func holding(consumers ...*placement.Consumer) []*placement.Consumer {
	for _, consumer := range consumers {
		for _, allocation := range consumer.Held {
			allocation.Holder = consumer
		}
	}
	return consumers
}

// refusalOf returns the error that refusals of one kind come to. A world has the
// names that an unknown one may mean.
func refusalOf(world *placement.World, refusals []placement.Refusal) error {
	first := refusals[0]
	switch first.Kind {
	case placement.UnknownReference:
		return problemsIn(world, lists.Map(refusals, func(r placement.Refusal) placement.Problem { return r.Problem })).Err()
	case placement.GenerationConflict:
		return problem.Refuse(problem.ErrConcurrentUpdate, "%s", first.Message).On(first.Path)
	case placement.InventoryInUse:
		return problem.Refuse(problem.ErrInUse, "%s", first.Message).On(first.Path)
	default:
		return problem.Refuse(problem.ErrCapacityExceeded, "%s", first.Message).On(first.Path)
	}
}
