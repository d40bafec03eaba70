package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/google/uuid"
)

// ProviderOutcome is the result for one provider of a bulk input: the provider,
// or the problems of its row.
type ProviderOutcome = sqldb.RowOutcome[placement.Provider]

// CreateResourceProvider creates a provider with its inventories, traits and
// aggregates. By default only administrators and services may call it.
func (s *PlacementStore) CreateResourceProvider(ctx context.Context,
	input placement.NewProvider) (*placement.World, *placement.Provider, error) {
	one := placement.NewProviders{Items: []placement.NewProvider{input}, Atomic: true}
	world, outcomes, err := s.createProviders(ctx, "createResourceProvider", one, func(int) string { return "input" })
	if err != nil {
		return nil, nil, err
	}
	return world, outcomes[0].Row, nil
}

// CreateResourceProviders creates providers in one transaction. An atomic input
// creates all or none; otherwise the valid ones are created. It returns the
// world afterwards and the outcome of each, in order. A parent must exist or
// precede its children in the input.
func (s *PlacementStore) CreateResourceProviders(ctx context.Context,
	input placement.NewProviders) (*placement.World, []ProviderOutcome, error) {
	if err := sqldb.CheckRows(len(input.Items), placement.MaxNewProviders); err != nil {
		return nil, nil, err
	}
	return s.createProviders(ctx, "createResourceProviders", input, sqldb.RowPath)
}

func (s *PlacementStore) createProviders(ctx context.Context, mutation string, input placement.NewProviders,
	path func(int) string) (*placement.World, []ProviderOutcome, error) {
	items, given := withUUIDs(input.Items)
	var outcomes []ProviderOutcome
	err := s.Write(ctx, mutation, func(tx *sqldb.Tx) (err error) {
		if err := tx.LockBuckets(ctx, uuidsKey, given); err != nil {
			return err
		}
		c, err := s.readForCreation(ctx, tx, items)
		if err != nil {
			return err
		}
		outcomes = s.admit(c, items, path)
		if err := sqldb.RefuseRows(input.Atomic, outcomes); err != nil {
			return err
		}
		return s.writeCreated(ctx, c, outcomes)
	}, &outcomes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", mutation, err)
	}
	return s.inTrees(ctx, outcomes), outcomes, nil
}

// inTrees replaces the written providers in outcomes by the ones with their
// root in the world after the write, see inTree. It returns this world.
func (s *PlacementStore) inTrees(ctx context.Context, outcomes []ProviderOutcome) *placement.World {
	var all []*placement.Provider
	for i := range outcomes {
		if outcomes[i].Row != nil {
			all = append(all, outcomes[i].Row)
		}
	}
	world := s.worldAfter(ctx, all)
	for i := range outcomes {
		if written := outcomes[i].Row; written != nil {
			outcomes[i].Row = inTree(world, written)
		}
	}
	return world
}

// withUUIDs returns new providers, each with a uuid, and the uuids that came
// with the input.
func withUUIDs(items []placement.NewProvider) (all []placement.NewProvider, given []string) {
	all = make([]placement.NewProvider, len(items))
	for i, item := range items {
		if item.UUID == nil {
			item.UUID = new(uuid.NewString())
		} else {
			given = append(given, *item.UUID)
		}
		all[i] = item
	}
	return all, given
}

// uuidsKey is the class of the advisory locks for creating providers on
// PostgreSQL. Providers of the same uuid are created one at a time, so that
// their row ids grow with the time of insertion. The world decides by row id
// which provider of a uuid is newer. Without the lock, a provider could draw
// its id before an earlier one of the uuid did, and would seem older. Generated
// uuids need no lock.
const uuidsKey = 7_261_006

// creation is a transaction that creates providers.
type creation struct {
	*sqldb.Tx
	existing placement.Existing
	// The row ids of referenced rows: parents and resources by uuid, the others
	// by name.
	parents, resources, traits, classes map[string]int64
	rows                                map[string]int64 // of the new providers, by uuid
	now                                 time.Time
}

// readForCreation reads the rows that new providers are checked against. It
// locks the rows that they refer to until the transaction ends.
func (s *PlacementStore) readForCreation(ctx context.Context, tx *sqldb.Tx,
	items []placement.NewProvider) (*creation, error) {
	of := placement.ReferencesOf(items)
	c := &creation{Tx: tx, now: s.Now(), parents: map[string]int64{}, rows: map[string]int64{},
		existing: placement.Existing{UUIDs: map[string]bool{}, Names: map[string]string{}, Linked: map[string]bool{}}}
	var err error
	if c.resources, err = s.linkedResources(ctx, tx, of.Resources); err != nil {
		return nil, err
	}
	if err := s.lockParents(ctx, c, of); err != nil {
		return nil, err
	}
	if err := s.readTaken(ctx, c, of); err != nil {
		return nil, err
	}
	if c.traits, err = s.rowsOf(ctx, tx, "traits", of.Traits); err != nil {
		return nil, err
	}
	if c.classes, err = s.rowsOf(ctx, tx, "resource_classes", of.ResourceClasses); err != nil {
		return nil, err
	}
	c.existing.Resources, c.existing.Traits, c.existing.ResourceClasses = setOf(c.resources), setOf(c.traits),
		setOf(c.classes)
	return c, nil
}

// rowsOf is rowsNamed without the invalid names. It sends no query if no name
// is left.
func (s *PlacementStore) rowsOf(ctx context.Context, tx *sqldb.Tx, table string,
	names []string) (map[string]int64, error) {
	names = slices.DeleteFunc(lists.Distinct(names), func(name string) bool {
		return len(placement.ValidateName("", name)) > 0
	})
	if len(names) == 0 {
		return nil, nil
	}
	return s.rowsNamed(ctx, tx, table, names)
}

func setOf(rows map[string]int64) map[string]bool {
	set := make(map[string]bool, len(rows))
	for key := range rows {
		set[key] = true
	}
	return set
}

// lockParents locks the existing parents of new providers against deletion, and
// records their row ids, uuids and names.
func (s *PlacementStore) lockParents(ctx context.Context, c *creation, of placement.References) error {
	if len(of.ParentUUIDs)+len(of.ParentNames) == 0 {
		return nil
	}
	return s.Query(ctx, c, `SELECT id, uuid, name FROM resource_providers WHERE id IN (
			SELECT id FROM resource_providers WHERE `+s.Listed("uuid", "$1", "text")+`
			UNION SELECT id FROM resource_providers WHERE `+s.Listed("name", "$2", "text")+
		`) ORDER BY id`+s.Locking("KEY SHARE"),
		func(rows *sql.Rows) error {
			var id int64
			var uuid, name string
			err := rows.Scan(&id, &uuid, &name)
			c.parents[uuid] = id
			c.existing.UUIDs[uuid], c.existing.Names[name] = true, uuid
			return err
		}, sqldb.JSONOf(of.ParentUUIDs), sqldb.JSONOf(of.ParentNames))
}

// readTaken reads which uuids, names and resources of new providers are already
// taken by other providers.
func (s *PlacementStore) readTaken(ctx context.Context, c *creation, of placement.References) error {
	linked := make([]int64, 0, len(c.resources))
	uuids := make(map[int64]string, len(c.resources))
	for uuid, id := range c.resources {
		linked, uuids[id] = append(linked, id), uuid
	}
	columns := `SELECT uuid, name, COALESCE(resource_id, 0) FROM resource_providers WHERE `
	return s.Query(ctx, c, columns+s.Listed("uuid", "$1", "text")+` UNION `+columns+s.Listed("name", "$2", "text")+
		` UNION `+columns+s.Listed("resource_id", "$3", "bigint"),
		func(rows *sql.Rows) error {
			var resource int64
			var uuid, name string
			err := rows.Scan(&uuid, &name, &resource)
			c.existing.UUIDs[uuid], c.existing.Names[name] = true, uuid
			if of, wanted := uuids[resource]; wanted {
				c.existing.Linked[of] = true
			}
			return err
		}, sqldb.JSONOf(of.UUIDs), sqldb.JSONOf(of.Names), sqldb.JSONOf(linked))
}

// linkedResources returns the row ids, by uuid, of the resources to link that
// the viewer sees. It locks them until the transaction ends.
func (s *PlacementStore) linkedResources(ctx context.Context, tx *sqldb.Tx, uuids []string) (map[string]int64, error) {
	if len(uuids) == 0 {
		return nil, nil
	}
	selector := entsql.Dialect(s.Pool.Dialect()).Select("id").From(entsql.Table("resources"))
	visible.Resources(ctx)(selector)
	paging.Among("uuid", uuids)(selector)
	query, args := selector.Query()
	seen, err := sqldb.Column[int64](ctx, s.DB, tx, query, args...)
	if err != nil || len(seen) == 0 {
		return nil, err
	}
	return sqldb.Pairs[string, int64](ctx, s.DB, tx, `SELECT uuid, id FROM resources WHERE `+
		s.Listed("id", "$1", "bigint")+` ORDER BY id`+s.Locking("KEY SHARE"), sqldb.JSONOf(seen))
}

// admit checks new providers one after the other, each against the existing
// providers and the earlier ones in the list.
func (s *PlacementStore) admit(c *creation, items []placement.NewProvider, path func(int) string) []ProviderOutcome {
	outcomes := make([]ProviderOutcome, len(items))
	var refused []placement.Problem
	var of []int
	for i := range items {
		found := c.existing.Admit(&items[i], path(i))
		for range found {
			of = append(of, i)
		}
		if refused = append(refused, found...); len(found) == 0 {
			outcomes[i].Row = c.provider(&items[i])
		}
	}
	for i, one := range problemsIn(s.cache.World(), refused) {
		outcomes[of[i]].Problems = append(outcomes[of[i]].Problems, one)
	}
	return outcomes
}

// provider returns a new provider as it will be stored.
func (c *creation) provider(n *placement.NewProvider) *placement.Provider {
	made := n.Provider()
	created := &made
	created.Parent, created.ResourceRow = c.existing.ParentOf(n), c.resources[created.Resource]
	created.CreatedAt, created.UpdatedAt = c.now, c.now
	sortLists(created)
	return created
}

// writeCreated inserts the accepted providers, and records and publishes them.
func (s *PlacementStore) writeCreated(ctx context.Context, c *creation, outcomes []ProviderOutcome) error {
	var created []*placement.Provider
	for i := range outcomes {
		if outcomes[i].Row != nil {
			created = append(created, outcomes[i].Row)
		}
	}
	if len(created) == 0 {
		return nil
	}
	err := s.insertCreated(ctx, c, created)
	if sqldb.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", sqldb.ErrRetry, err) // another transaction has committed the duplicate
	}
	if err != nil {
		return err
	}
	states := make([]providerState, len(created))
	for i, p := range created {
		states[i] = providerState{parentRow: c.parents[p.Parent], Provider: *p}
		c.Record(ctx, sqldb.Event{Kind: "ResourceProvider", Key: p.UUID, After: providerFields(p)})
		c.Created("ResourceProvider", p.UUID)
	}
	s.publish(c.Tx, ownCommit{created: states})
	return nil
}

// insertCreated inserts new providers with their inventories, traits and
// aggregates. It sets their Row, and adds the row ids to c.rows and c.parents.
func (s *PlacementStore) insertCreated(ctx context.Context, c *creation, created []*placement.Provider) error {
	for chunk := range slices.Chunk(created, paging.RowsAtOnce) {
		rows := lists.Map(chunk, func(p *placement.Provider) []any { return rowOf(p, c.parents[p.Parent]) })
		err := s.Query(ctx, c, s.providerInsertion(), func(rows *sql.Rows) error {
			var id int64
			var uuid string
			err := rows.Scan(&id, &uuid)
			c.rows[uuid] = id
			return err
		}, sqldb.JSONOf(rows), c.now)
		if err != nil {
			return err
		}
	}
	if err := s.linkNewParents(ctx, c, created); err != nil {
		return err
	}
	for chunk := range slices.Chunk(created, paging.RowsAtOnce) {
		var below belowProviders
		for _, p := range chunk {
			below.add(p.Row, p, c.classes, c.traits)
		}
		if err := s.insertBelow(ctx, c, below); err != nil {
			return err
		}
	}
	return nil
}

// linkNewParents sets the Row of new providers, adds the row ids to c.parents,
// and stores the links to parents that are new, too.
func (s *PlacementStore) linkNewParents(ctx context.Context, c *creation, created []*placement.Provider) error {
	var links [][2]int64
	for _, p := range created {
		p.Row = c.rows[p.UUID]
		if p.Parent == "" || c.parents[p.Parent] != 0 {
			continue
		}
		parent := c.rows[p.Parent]
		if parent == 0 {
			return sqldb.ErrRetry // the parent was created after the parents were locked
		}
		links = append(links, [2]int64{p.Row, parent})
	}
	for uuid, row := range c.rows {
		c.parents[uuid] = row
	}
	if len(links) == 0 {
		return nil
	}
	return s.Execute(ctx, c, `UPDATE resource_providers SET parent_id = d.parent_id FROM `+s.Rows("$1", "d", "id bigint", "parent_id bigint")+`
		WHERE `+s.IsRow("resource_providers.id", "$1", "d", "id"), sqldb.JSONOf(links))
}

// belowProviders are the rows for inventories, traits and aggregates of new
// providers.
type belowProviders struct{ inventories, traits, aggregates [][]any }

// add adds the rows of a provider. classes and traits are row ids by name.
func (b *belowProviders) add(row int64, p *placement.Provider, classes, traits map[string]int64) {
	for _, i := range p.Inventories {
		b.inventories = append(b.inventories, inventoryRow(row, classes[i.ResourceClass], i))
	}
	for _, name := range p.Traits {
		b.traits = append(b.traits, []any{row, traits[name]})
	}
	for _, uuid := range p.Aggregates {
		b.aggregates = append(b.aggregates, []any{row, uuid})
	}
}

func (s *PlacementStore) insertBelow(ctx context.Context, on sqldb.Conn, below belowProviders) error {
	return s.executeEach(ctx, on, []rowsStatement{
		{below.inventories, s.insertInventories()}, {below.traits, s.insertProviderTraits()},
		{below.aggregates, s.insertProviderAggregates()}})
}

// rowsStatement is a statement with rows as its parameter.
type rowsStatement struct {
	rows [][]any
	text string
}

// executeEach runs the statements that have rows.
func (s *PlacementStore) executeEach(ctx context.Context, on sqldb.Conn, statements []rowsStatement) error {
	for _, one := range statements {
		if len(one.rows) == 0 {
			continue
		}
		if err := s.Execute(ctx, on, one.text, sqldb.JSONOf(one.rows)); err != nil {
			return err
		}
	}
	return nil
}

func (s *PlacementStore) insertInventories() string {
	return `INSERT INTO inventories (provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, capacity, used)
		SELECT d.provider_id, d.class, d.total, d.reserved, d.min_unit, d.max_unit, d.step_size, d.ratio, d.capacity, 0
		FROM ` + s.Rows("$1", "d", "provider_id bigint", "class bigint", "total integer", "reserved integer",
		"min_unit integer", "max_unit integer", "step_size integer", "ratio double precision", "capacity bigint")
}

// inventoryRow returns a row for insertInventories.
func inventoryRow(provider, class int64, i placement.Inventory) []any {
	return []any{provider, class, i.Total, i.Reserved, i.MinUnit, i.MaxUnit, i.StepSize, i.AllocationRatio,
		placement.Capacity(i.Total, i.Reserved, i.AllocationRatio)}
}

func (s *PlacementStore) insertProviderTraits() string {
	return `INSERT INTO provider_traits (provider_id, trait_id) SELECT d.provider_id, d.trait_id FROM ` +
		s.Rows("$1", "d", "provider_id bigint", "trait_id bigint")
}

func (s *PlacementStore) insertProviderAggregates() string {
	return `INSERT INTO provider_aggregates (provider_id, aggregate) SELECT d.provider_id, d.aggregate FROM ` +
		s.Rows("$1", "d", "provider_id bigint", "aggregate text")
}

// InsertProviders inserts providers with their inventories, traits and
// aggregates in a transaction. Their order does not matter, but each parent
// must be among them. The traits, resource classes and resources that they
// refer to must exist. Used is ignored and starts at 0. The caller must call
// PublishAll.
func (s *PlacementStore) InsertProviders(ctx context.Context, tx *sqldb.Tx, providers []placement.Provider) error {
	var traits, classes, resources []string
	uuids := map[string]bool{}
	for i := range providers {
		uuids[providers[i].UUID] = true
		traits = append(traits, providers[i].Traits...)
		for _, inventory := range providers[i].Inventories {
			classes = append(classes, inventory.ResourceClass)
		}
		if providers[i].Resource != "" {
			resources = append(resources, providers[i].Resource)
		}
	}
	c := &creation{Tx: tx, now: s.Now(), parents: map[string]int64{}, rows: map[string]int64{}}
	var err error
	if c.traits, err = s.rowsNamed(ctx, tx, "traits", lists.Distinct(traits)); err != nil {
		return err
	}
	if c.classes, err = s.rowsNamed(ctx, tx, "resource_classes", lists.Distinct(classes)); err != nil {
		return err
	}
	c.resources, err = sqldb.Pairs[string, int64](ctx, s.DB, tx,
		`SELECT uuid, id FROM resources WHERE `+s.Listed("uuid", "$1", "text"), sqldb.JSONOf(resources))
	if err != nil {
		return err
	}
	created := make([]*placement.Provider, len(providers))
	for i, p := range providers {
		if p.Parent != "" && !uuids[p.Parent] {
			return fmt.Errorf("the parent of provider %s is not among the providers", p.UUID)
		}
		p.ResourceRow = c.resources[p.Resource]
		created[i] = &p
		tx.Created("ResourceProvider", p.UUID)
	}
	return s.insertCreated(ctx, c, created)
}

// InsertClaims writes claims as a part of a transaction; all must fit. The
// caller must call PublishAll.
func (s *PlacementStore) InsertClaims(ctx context.Context, tx *sqldb.Tx, claims []placement.Claim) error {
	var consumers []placement.ConsumerClaim
	for i := range claims {
		consumers = append(consumers, claims[i].Consumers...)
	}
	c, err := s.lockForClaim(ctx, tx, concernedBy(consumers))
	if err != nil {
		return err
	}
	for i := range claims {
		if refusals := c.ledger.Claim(&claims[i], "input", c.known()); len(refusals) > 0 {
			return refusalOf(s.cache.World(), refusals)
		}
	}
	return s.writeClaim(ctx, c)
}
