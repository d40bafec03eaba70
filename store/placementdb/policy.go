package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

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
