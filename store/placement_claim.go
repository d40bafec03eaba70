package store

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
)

// SetAllocations replaces the allocations of consumers, all of them or none, and
// gives the consumers that have any afterwards, in the order of the claim. Claims
// that wait for one provider share a transaction, each judged by itself.
func (s *Store) SetAllocations(ctx context.Context, claim placement.Claim) ([]*placement.Consumer, error) {
	if err := access.MayWritePlacement(access.ViewerFrom(ctx), "set allocations"); err != nil {
		return nil, err
	}
	if err := problemsOf(claim.Validate("input")).Err(); err != nil {
		return nil, err
	}
	w := &waitingClaim{ctx: ctx, claim: claim}
	if err := s.claims.settle(ctx, s.claimKey(&claim), w, s.settleClaims); err != nil {
		return nil, fmt.Errorf("setAllocations: %w", err)
	}
	return w.consumers, nil
}

// claimLanes is how many transactions of claims run at once on PostgreSQL. More
// would wait for each other in the database instead of travelling together.
const claimLanes = 4

// claimKey says with which other claims a claim shares a transaction when they
// wait: those whose first provider has the same lane, so always those for the
// same provider; on SQLite, where writers wait for each other anyway, all.
func (s *Store) claimKey(claim *placement.Claim) int {
	if !s.postgres() {
		return 0
	}
	first := claim.Consumers[0].UUID
	if providers := given(claim.Consumers); len(providers) > 0 {
		first = providers[0]
	}
	return int(crc32.ChecksumIEEE([]byte(first)) % claimLanes)
}

// errAllRefused rolls back a transaction in which there is nothing to write.
var errAllRefused = errors.New("every claim was refused")

// settleClaims judges claims one after the other and writes those that hold, in
// one transaction. Refusals are in the claims; the error is one of the database
// and concerns them all.
func (s *Store) settleClaims(ctx context.Context, claims []*waitingClaim) error {
	_, err := s.changePlacement(ctx, func(tx *ent.Tx, t *touched) error {
		var consumers []placement.ConsumerClaim
		for _, w := range claims {
			consumers = append(consumers, w.claim.Consumers...)
		}
		b, err := s.openBooks(ctx, tx, claimed(consumers), given(consumers))
		if err != nil {
			return err
		}
		var events []attributed
		accepted := false
		for _, w := range claims {
			w.err, w.consumers = nil, nil
			if objections := b.ledger.Claim(&w.claim, "input", s.knowsClass(ctx, tx, b)); len(objections) > 0 {
				w.err = refusalOf(objections)
				if err := s.stillAbsent(ctx, tx, b, w.claim.Consumers); err != nil {
					return err
				}
				continue
			}
			accepted = true
			w.consumers = b.consumersOf(w.claim.Consumers)
			events = append(events, claimEvents(w.ctx, "setAllocations", claimed(w.claim.Consumers))...)
		}
		if !accepted {
			return errAllRefused
		}
		if err := s.closeBooks(ctx, tx, b, t); err != nil {
			return err
		}
		return s.recordAll(ctx, tx, events)
	})
	if errors.Is(err, errAllRefused) {
		return nil
	}
	return err
}

// DeleteAllocations takes all allocations of a consumer away, and gives the
// consumer as it was.
func (s *Store) DeleteAllocations(ctx context.Context, uuid string) (*placement.Consumer, error) {
	if err := access.MayWritePlacement(access.ViewerFrom(ctx), "delete allocations"); err != nil {
		return nil, err
	}
	var consumer *placement.Consumer
	_, err := s.changePlacement(ctx, func(tx *ent.Tx, t *touched) error {
		b, err := s.openBooks(ctx, tx, []string{uuid}, nil)
		if err != nil {
			return err
		}
		if !b.ledger.Release(uuid) {
			return problem.Refuse(problem.ErrNotFound, "consumer %s has no allocations", uuid).On("input.consumer")
		}
		consumer = b.released(uuid)
		if err := s.closeBooks(ctx, tx, b, t); err != nil {
			return err
		}
		return s.recordAll(ctx, tx, claimEvents(ctx, "deleteAllocations", []string{uuid}))
	})
	if err != nil {
		return nil, fmt.Errorf("deleteAllocations: %w", err)
	}
	return consumer, nil
}

// claimEvents are the consumers' part of a write for the audit log: by id only.
func claimEvents(ctx context.Context, action string, consumers []string) []attributed {
	events := make([]attributed, len(consumers))
	for i, uuid := range consumers {
		events[i] = attributed{ctx: ctx, change: change{action: action, kind: "Consumer", key: uuid}}
	}
	return events
}

// consumersOf are the consumers of claims that exist after them.
func (b *books) consumersOf(claims []placement.ConsumerClaim) []*placement.Consumer {
	var consumers []*placement.Consumer
	for i := range claims {
		uuid := claims[i].UUID
		account := b.ledger.Consumer(uuid)
		if account.Generation == 0 {
			continue
		}
		consumer := &placement.Consumer{UUID: uuid, ProjectID: account.ProjectID, UserID: account.UserID,
			Type: account.Type, Generation: account.Generation, CreatedAt: b.now, UpdatedAt: b.now}
		if row := b.consumers[uuid]; row != nil {
			consumer.CreatedAt = row.CreatedAt
		}
		consumers = append(consumers, consumer)
	}
	return consumers
}

// released is a consumer as it was when the books were opened, with what it had.
func (b *books) released(uuid string) *placement.Consumer {
	row := b.consumers[uuid]
	consumer := row.Consumer
	consumer.Released = []*placement.Allocation{}
	for _, share := range row.account.SortedKeys() {
		consumer.Released = append(consumer.Released, &placement.Allocation{Consumer: uuid, Provider: share.Provider,
			ResourceClass: share.ResourceClass, Used: row.account.Allocations[share]})
	}
	return &consumer
}

// knowsClass tells whether a class exists. The world may not have heard of it
// yet.
func (s *Store) knowsClass(ctx context.Context, tx *ent.Tx, b *books) func(string) bool {
	return func(class string) bool {
		if s.resident.world.Load().HasResourceClass(class) {
			return true
		}
		rows, err := s.rowsNamed(ctx, tx, "resource_classes", []string{class})
		b.failed = errors.Join(b.failed, err)
		return rows[class] != 0
	}
}

// refusalOf is the refusal that objections of one kind are due.
func refusalOf(objections []placement.Refusal) error {
	first := objections[0]
	switch first.Kind {
	case placement.UnknownProvider, placement.UnknownResourceClass:
		var problems problem.Problems
		for _, objection := range objections {
			problems.Add(objection.Path, "%s", objection.Message)
		}
		return problems.Err()
	case placement.GenerationConflict:
		return problem.Refuse(problem.ErrConcurrentUpdate, "%s", first.Message).On(first.Path)
	case placement.InventoryInUse:
		return problem.Refuse(problem.ErrInUse, "%s", first.Message).On(first.Path)
	default:
		return problem.Refuse(problem.ErrCapacityExceeded, "%s", first.Message).On(first.Path)
	}
}
