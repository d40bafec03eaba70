package placementdb

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// policyKey is the class of the advisory locks of consumers in policies. On
// PostgreSQL places whose policies concern a common consumer are decided one
// after the other: the later one reads where the earlier one placed. Locks of
// rows are not enough, since new consumers have none and two hosts no common
// row.
const policyKey = 7_261_007

// peersOf reads the uuids of the providers of consumers that policies name, by
// consumer. Callers may place, so they see all consumers.
func (s *PlacementStore) peersOf(ctx context.Context, on sqldb.Conn, uuids []string) (map[string][]string, error) {
	found := map[string][]string{}
	err := s.Query(ctx, on, `SELECT DISTINCT o.uuid, p.uuid FROM consumers o
		JOIN allocations a ON a.consumer_id = o.id JOIN resource_providers p ON p.id = a.provider_id
		WHERE `+s.Listed("o.uuid", "$1", "text"), func(rows *sql.Rows) error {
		var uuid, provider string
		err := rows.Scan(&uuid, &provider)
		found[uuid] = append(found[uuid], provider)
		return err
	}, sqldb.JSONOf(uuids))
	return found, err
}

// lockPeers locks the consumers of policies and reads them.
func (s *PlacementStore) lockPeers(ctx context.Context, c *claimTx, uuids []string) (err error) {
	if len(uuids) == 0 {
		return nil
	}
	if err := c.LockBuckets(ctx, policyKey, uuids); err != nil {
		return err
	}
	c.peers, err = s.peersOf(ctx, c, uuids)
	return err
}

// peersConcerned returns the consumers that the policy and its lock concern:
// the named ones and the ones to place.
func (p *place) peersConcerned() []string {
	if p.input.Policy == nil {
		return nil
	}
	uuids := lists.Map(p.input.Consumers, func(c placement.NewConsumer) string { return c.UUID })
	return lists.Distinct(append(uuids, p.input.Policy.Consumers...))
}

// seePeers reads the consumers that the policy names, for the choice.
func (p *place) seePeers(ctx context.Context) error {
	if p.input.Policy == nil || len(p.input.Policy.Consumers) == 0 || p.isDone {
		return nil
	}
	peers, err := p.store.peersOf(ctx, p.store.Pool, p.input.Policy.Consumers)
	p.held = slices.Collect(maps.Values(peers))
	return err
}

// policyWith returns the policy with the providers of the consumers that it
// names; nil without a policy.
func (p *place) policyWith(held [][]string) *placement.Policy {
	if p.input.Policy == nil {
		return nil
	}
	policy := *p.input.Policy
	policy.Held = held
	return &policy
}

// tally returns the tally of the policy with the locked consumers and the ones
// of earlier claims of the transaction; nil without a policy.
func (p *place) tally(c *claimTx) *placement.Tally {
	if p.input.Policy == nil {
		return nil
	}
	written := lists.Set(c.ledger.Written(), lists.Itself)
	held := lists.Map(p.input.Policy.Consumers, func(uuid string) []string {
		if !written[uuid] {
			return c.peers[uuid]
		}
		return lists.Map(c.ledger.Consumer(uuid).SortedKeys(), func(key placement.AllocationKey) string { return key.Provider })
	})
	return p.store.cache.World().Tally(p.policyWith(held))
}
