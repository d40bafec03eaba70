package placementdb

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// claimTx is a transaction with what its claims concern, locked: consumers with
// their allocations, and providers with their inventories.
type claimTx struct {
	*sqldb.Tx
	ledger    *placement.Ledger
	consumers map[string]*consumerRow    // by uuid
	providers map[string]*lockedProvider // by uuid
	classes   map[string]bool            // the resource classes that exist, of those asked for
	mapped    map[string]bool            // the providers that exist, of those that mappings alone name
	reshaped  map[string]bool            // providers whose inventories were replaced
	now       time.Time
}

// consumerRow is a consumer as it was when it was locked; row id 0 says that it
// was not there.
type consumerRow struct {
	id int64
	placement.Consumer
	held placement.LedgerConsumer
}

// lockedProvider is a provider as it was when it was locked.
type lockedProvider struct {
	id, version int64
	generation  int64
	inventories map[string]lockedInventory
}

type lockedInventory struct {
	id, class int64
	placement.Inventory
}

// consumersOf returns the uuids of the consumers of claims.
func consumersOf(claims []placement.ConsumerClaim) []string {
	uuids := make([]string, len(claims))
	for i := range claims {
		uuids[i] = claims[i].UUID
	}
	return uuids
}

// providersOf returns the uuids of the providers that claims take from.
func providersOf(claims []placement.ConsumerClaim) []string {
	uuids := map[string]bool{}
	for i := range claims {
		for _, allocation := range claims[i].Allocations {
			uuids[allocation.Provider] = true
		}
	}
	return slices.Sorted(maps.Keys(uuids))
}

// mappedBy returns the uuids of the providers that mappings of claims name.
func mappedBy(claims []placement.ConsumerClaim) []string {
	var uuids []string
	for i := range claims {
		for _, mapping := range claims[i].Mappings {
			uuids = append(uuids, mapping.Providers...)
		}
	}
	return sqldb.Distinct(uuids)
}

// classesOf returns the names of the resource classes that claims take.
func classesOf(claims []placement.ConsumerClaim) []string {
	names := map[string]bool{}
	for i := range claims {
		for _, allocation := range claims[i].Allocations {
			for _, amount := range allocation.Resources {
				names[amount.ResourceClass] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// concerned is what claims concern: uuids of consumers and providers, names of
// resource classes, and uuids of the providers that mappings name.
type concerned struct{ consumers, providers, classes, mapped []string }

// concernedBy returns what claims concern.
func concernedBy(claims []placement.ConsumerClaim) concerned {
	return concerned{consumersOf(claims), providersOf(claims), classesOf(claims), mappedBy(claims)}
}

// lockForClaim locks the consumers of claims, in the order of their uuids, then
// the providers that they use or are to use, in the order of their row ids, and
// reads what they have.
func (s *PlacementStore) lockForClaim(ctx context.Context, tx *sqldb.Tx, of concerned) (*claimTx, error) {
	c := &claimTx{Tx: tx, consumers: map[string]*consumerRow{}, providers: map[string]*lockedProvider{}, now: s.Now()}
	inLedger, used, err := s.lockConsumers(ctx, c, of.consumers)
	if err != nil {
		return nil, err
	}
	providersInLedger, err := s.lockProviders(ctx, c, slices.Concat(of.providers, used))
	if err != nil {
		return nil, err
	}
	if c.classes, err = s.existingClasses(ctx, tx, of.classes); err != nil {
		return nil, err
	}
	if c.mapped, err = s.existingProviders(ctx, c, of.mapped); err != nil {
		return nil, err
	}
	c.ledger = placement.NewLedger(inLedger, providersInLedger)
	return c, nil
}

// lockConsumers locks consumers and reads their allocations. It returns them for
// the ledger, and the uuids of the providers that they use.
func (s *PlacementStore) lockConsumers(ctx context.Context, c *claimTx, uuids []string) (map[string]*placement.LedgerConsumer, []string, error) {
	inLedger := map[string]*placement.LedgerConsumer{}
	byRow := map[int64]*placement.LedgerConsumer{}
	err := s.Query(ctx, c, `SELECT `+consumerColumns+`, c.mappings FROM consumers c
		WHERE `+s.Listed("c.uuid", "$1", "text")+` ORDER BY c.uuid`+s.Locking("UPDATE"), func(rows *sql.Rows) error {
		var mappings *string
		id, consumer, err := scanConsumer(rows, &mappings)
		if err != nil {
			return err
		}
		kept, err := mappingsOf(mappings)
		if err != nil {
			return err
		}
		c.consumers[consumer.UUID] = &consumerRow{id: id, Consumer: *consumer}
		byRow[id] = &placement.LedgerConsumer{ProjectID: consumer.ProjectID, UserID: consumer.UserID, Type: consumer.Type,
			Generation: consumer.Generation, Allocations: map[placement.AllocationKey]int64{}, Mappings: kept}
		inLedger[consumer.UUID] = byRow[id]
		return nil
	}, sqldb.JSONOf(uuids))
	if err != nil || len(byRow) == 0 {
		return inLedger, nil, err
	}
	var providers []string
	err = s.Query(ctx, c, `SELECT a.consumer_id, p.uuid, c.name, a.used FROM allocations a
		JOIN resource_providers p ON p.id = a.provider_id JOIN resource_classes c ON c.id = a.resource_class_id
		WHERE `+s.Listed("a.consumer_id", "$1", "bigint"), func(rows *sql.Rows) error {
		var consumer, used int64
		var key placement.AllocationKey
		if err := rows.Scan(&consumer, &key.Provider, &key.ResourceClass, &used); err != nil {
			return err
		}
		byRow[consumer].Allocations[key] = used
		providers = append(providers, key.Provider)
		return nil
	}, sqldb.JSONOf(slices.Sorted(maps.Keys(byRow))))
	for uuid, consumer := range inLedger {
		c.consumers[uuid].held = *consumer
	}
	return inLedger, providers, err
}

// lockProviders locks providers and reads their inventories. It returns them for
// the ledger.
func (s *PlacementStore) lockProviders(ctx context.Context, c *claimTx, uuids []string) (map[string]*placement.LedgerProvider, error) {
	inLedger := map[string]*placement.LedgerProvider{}
	if len(uuids) == 0 {
		return inLedger, nil
	}
	err := s.Query(ctx, c, `SELECT id, uuid, generation, version FROM resource_providers
		WHERE `+s.Listed("uuid", "$1", "text")+` ORDER BY id`+s.Locking("NO KEY UPDATE"), func(rows *sql.Rows) error {
		p := &lockedProvider{inventories: map[string]lockedInventory{}}
		var uuid string
		if err := rows.Scan(&p.id, &uuid, &p.generation, &p.version); err != nil {
			return err
		}
		c.providers[uuid] = p
		inLedger[uuid] = &placement.LedgerProvider{Generation: p.generation, Inventories: map[string]placement.Inventory{}}
		return nil
	}, sqldb.JSONOf(sqldb.Distinct(uuids)))
	if err != nil || len(c.providers) == 0 {
		return inLedger, err
	}
	if err := s.readInventories(ctx, c, slices.Collect(maps.Keys(c.providers))); err != nil {
		return nil, err
	}
	for uuid, provider := range c.providers {
		for class, inventory := range provider.inventories {
			inLedger[uuid].Inventories[class] = inventory.Inventory
		}
	}
	return inLedger, nil
}

// readInventories reads the inventories of locked providers.
func (s *PlacementStore) readInventories(ctx context.Context, c *claimTx, providers []string) error {
	byRow := lists.Index(providers, func(uuid string) (int64, *lockedProvider) { return c.providers[uuid].id, c.providers[uuid] })
	return s.Query(ctx, c, `SELECT i.provider_id, i.id, i.resource_class_id, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size,
		i.allocation_ratio, i.capacity, i.used FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
		WHERE `+s.Listed("i.provider_id", "$1", "bigint"), func(rows *sql.Rows) error {
		var provider int64
		var i lockedInventory
		if err := rows.Scan(&provider, &i.id, &i.class, &i.ResourceClass, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize,
			&i.AllocationRatio, &i.Capacity, &i.Used); err != nil {
			return err
		}
		byRow[provider].inventories[i.ResourceClass] = i
		return nil
	}, sqldb.JSONOf(slices.Sorted(maps.Keys(byRow))))
}

// existingClasses returns which of some resource classes exist. The world may
// lack some that do.
func (s *PlacementStore) existingClasses(ctx context.Context, tx *sqldb.Tx, names []string) (map[string]bool, error) {
	exist := make(map[string]bool, len(names))
	var unknown []string
	world := s.cache.World()
	for _, name := range names {
		if exist[name] = world.HasResourceClass(name); !exist[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return exist, nil
	}
	rows, err := s.rowsNamed(ctx, tx, "resource_classes", unknown)
	for name := range rows {
		exist[name] = true
	}
	return exist, err
}

// existingProviders returns which of the providers that mappings name exist, but
// for those that are locked. One may be gone when the mappings are read.
func (s *PlacementStore) existingProviders(ctx context.Context, c *claimTx, uuids []string) (map[string]bool, error) {
	others := slices.DeleteFunc(slices.Clone(uuids), func(uuid string) bool { return c.providers[uuid] != nil })
	if len(others) == 0 {
		return nil, nil
	}
	found, err := sqldb.Column[string](ctx, s.DB, c, `SELECT uuid FROM resource_providers WHERE `+s.Listed("uuid", "$1", "text"), sqldb.JSONOf(others))
	return lists.Set(found, lists.Itself), err
}

// known returns what exists of what was asked for when the claims were locked.
func (c *claimTx) known() placement.Known {
	return placement.Known{
		ResourceClass: func(name string) bool { return c.classes[name] },
		Provider:      func(uuid string) bool { return c.mapped[uuid] },
	}
}

// stillAbsent makes sure before a refusal that consumers which were not there
// when the rows were locked, and so could not be locked, are not there now that
// the providers are: else the refusal would mix two moments.
func (s *PlacementStore) stillAbsent(ctx context.Context, c *claimTx, claims []placement.ConsumerClaim) error {
	var absent []string
	for _, uuid := range consumersOf(claims) {
		if c.consumers[uuid] == nil {
			absent = append(absent, uuid)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	found, err := sqldb.Column[int64](ctx, s.DB, c, `SELECT id FROM consumers WHERE `+s.Listed("uuid", "$1", "text"), sqldb.JSONOf(absent))
	if err == nil && len(found) > 0 {
		return sqldb.ErrRetry
	}
	return err
}

// writeClaim writes what the ledger says.
func (s *PlacementStore) writeClaim(ctx context.Context, c *claimTx) error {
	if err := s.writeConsumers(ctx, c); err != nil {
		return err
	}
	if err := s.writeUse(ctx, c); err != nil {
		return err
	}
	return s.writeProviders(ctx, c)
}

// writeConsumers writes the consumers and their allocations.
func (s *PlacementStore) writeConsumers(ctx context.Context, c *claimTx) error {
	var fresh, kept [][]any
	var gone, rewritten []int64
	for _, uuid := range c.ledger.Written() {
		consumer, row := c.ledger.Consumer(uuid), c.consumers[uuid]
		c.noteConsumer(uuid, row, consumer)
		switch {
		case consumer.Generation == 0 && row == nil:
			continue
		case consumer.Generation == 0:
			gone = append(gone, row.id)
		case row == nil:
			fresh = append(fresh, []any{uuid, consumer.ProjectID, consumer.UserID, consumer.Type, consumer.Generation, mappingsText(consumer.Mappings)})
		default:
			kept = append(kept, []any{row.id, consumer.ProjectID, consumer.UserID, consumer.Type, consumer.Generation, mappingsText(consumer.Mappings)})
			rewritten = append(rewritten, row.id)
		}
	}
	if old := slices.Concat(gone, rewritten); len(old) > 0 {
		if err := s.Execute(ctx, c, `DELETE FROM allocations WHERE `+s.Listed("consumer_id", "$1", "bigint"), sqldb.JSONOf(old)); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		if err := s.Execute(ctx, c, `DELETE FROM consumers WHERE `+s.Listed("id", "$1", "bigint"), sqldb.JSONOf(gone)); err != nil {
			return err
		}
	}
	if len(kept) > 0 {
		err := s.Execute(ctx, c, `UPDATE consumers SET project_id = d.project_id, user_id = d.user_id, consumer_type = d.consumer_type,
			generation = d.generation, mappings = d.mappings, updated_at = `+s.Time("$2")+` FROM `+
			s.Rows("$1", "d", "id bigint", "project_id text", "user_id text", "consumer_type text", "generation bigint", "mappings text")+`
			WHERE `+s.IsRow("consumers.id", "$1", "d", "id"), sqldb.JSONOf(kept), c.now)
		if err != nil {
			return err
		}
	}
	if len(fresh) > 0 {
		if err := s.insertConsumers(ctx, c, fresh); err != nil {
			return err
		}
	}
	return s.insertAllocations(ctx, c)
}

// noteConsumer notes a consumer that is written: the members of its project see
// it.
func (c *claimTx) noteConsumer(uuid string, before *consumerRow, after placement.LedgerConsumer) {
	var saw, sees *change.Audience
	if before != nil {
		saw = change.ToProjects(before.ProjectID)
	}
	if after.Generation != 0 {
		sees = change.ToProjects(after.ProjectID)
	}
	c.SawBefore("Consumer", uuid, saw)
	c.SeenBy("Consumer", uuid, sees)
	c.Changed("Consumer", uuid)
}

// insertConsumers writes consumers that were not there, in the order of their
// uuids.
func (s *PlacementStore) insertConsumers(ctx context.Context, c *claimTx, fresh [][]any) error {
	inserted := 0
	err := s.Query(ctx, c, `INSERT INTO consumers (uuid, project_id, user_id, consumer_type, generation, mappings, created_at, updated_at)
		SELECT d.uuid, d.project_id, d.user_id, d.consumer_type, d.generation, d.mappings, `+s.Time("$2")+`, `+s.Time("$2")+` FROM `+
		s.Rows("$1", "d", "uuid text", "project_id text", "user_id text", "consumer_type text", "generation bigint", "mappings text")+`
		WHERE true ON CONFLICT (uuid) DO NOTHING RETURNING id, uuid`, func(rows *sql.Rows) error {
		row := &consumerRow{Consumer: placement.Consumer{CreatedAt: c.now}}
		err := rows.Scan(&row.id, &row.UUID)
		c.consumers[row.UUID] = row
		inserted++
		return err
	}, sqldb.JSONOf(fresh), c.now)
	if err == nil && inserted < len(fresh) {
		return sqldb.ErrRetry
	}
	return err
}

func (s *PlacementStore) insertAllocations(ctx context.Context, c *claimTx) error {
	var allocations [][4]int64
	for _, uuid := range c.ledger.Written() {
		consumer := c.ledger.Consumer(uuid)
		for _, key := range consumer.SortedKeys() {
			provider := c.providers[key.Provider]
			allocations = append(allocations, [4]int64{c.consumers[uuid].id, provider.id, provider.inventories[key.ResourceClass].class, consumer.Allocations[key]})
		}
	}
	if len(allocations) == 0 {
		return nil
	}
	return s.Execute(ctx, c, `INSERT INTO allocations (consumer_id, provider_id, resource_class_id, used)
		SELECT d.consumer_id, d.provider_id, d.resource_class_id, d.used FROM `+
		s.Rows("$1", "d", "consumer_id bigint", "provider_id bigint", "resource_class_id bigint", "used bigint"), sqldb.JSONOf(allocations))
}

// writeUse changes the use of the inventories. The condition holds whenever the
// ledger allowed the claims; it stands in the statement so that the database
// itself refuses more than capacity, whatever came before.
func (s *PlacementStore) writeUse(ctx context.Context, c *claimTx) error {
	var changes [][2]int64
	for _, provider := range slices.Sorted(maps.Keys(c.providers)) {
		inventories := c.ledger.Provider(provider).Inventories
		for _, class := range slices.Sorted(maps.Keys(inventories)) {
			was := c.providers[provider].inventories[class]
			if change := inventories[class].Used - was.Used; change != 0 {
				changes = append(changes, [2]int64{was.id, change})
			}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	changed, err := sqldb.Column[int64](ctx, s.DB, c, `UPDATE inventories SET used = inventories.used + d.change FROM `+s.Rows("$1", "d", "id bigint", "change bigint")+`
		WHERE `+s.IsRow("inventories.id", "$1", "d", "id")+` AND inventories.used + d.change >= 0
		AND (d.change <= 0 OR inventories.used + d.change <= inventories.capacity) RETURNING inventories.id`, sqldb.JSONOf(changes))
	if err == nil && len(changed) < len(changes) {
		return sqldb.ErrRetry
	}
	return err
}

// writeProviders moves the providers' generations and versions.
func (s *PlacementStore) writeProviders(ctx context.Context, c *claimTx) error {
	if len(c.providers) == 0 {
		return nil
	}
	uuids := slices.Sorted(maps.Keys(c.providers))
	moves := lists.Map(uuids, func(uuid string) [2]int64 { return [2]int64{c.providers[uuid].id, c.ledger.Provider(uuid).Increments} })
	c.Changed("ResourceProvider", uuids...)
	return s.Execute(ctx, c, `UPDATE resource_providers SET generation = generation + d.increments, version = version + 1, updated_at = `+s.Time("$2")+`
		FROM `+s.Rows("$1", "d", "id bigint", "increments bigint")+` WHERE `+s.IsRow("resource_providers.id", "$1", "d", "id"), sqldb.JSONOf(moves), c.now)
}

// publishClaim has the world brought up to what claims did to their providers,
// and returns these, by uuid.
func (s *PlacementStore) publishClaim(ctx context.Context, c *claimTx) (map[string]*placement.Provider, error) {
	var commit ownCommit
	var unknown []int64
	world := s.cache.World()
	for _, uuid := range slices.Sorted(maps.Keys(c.providers)) {
		locked, after := c.providers[uuid], c.ledger.Provider(uuid)
		held, found := world.Provider(uuid)
		if !found || c.reshaped[uuid] || held.Version != locked.version || held.Row != locked.id {
			unknown = append(unknown, locked.id)
			continue
		}
		// The world has the state before this write: what changes is known here.
		next := *held
		next.Version, next.UpdatedAt = held.Version+1, c.now
		next.Generation = locked.generation + after.Increments
		next.Inventories = slices.Clone(held.Inventories)
		for i := range next.Inventories {
			next.Inventories[i].Used = after.Inventories[next.Inventories[i].ResourceClass].Used
		}
		state := providerState{Provider: next}
		if parent, found := world.Provider(next.Parent); found {
			state.parentRow = parent.Row
		}
		commit.written = append(commit.written, state)
	}
	if len(unknown) > 0 {
		states, err := s.readProviders(ctx, c, unknown, func() {})
		if err != nil {
			return nil, err
		}
		commit.written = append(commit.written, states...)
	}
	s.publish(c.Tx, commit)
	written := make(map[string]*placement.Provider, len(commit.written))
	for i := range commit.written {
		written[commit.written[i].UUID] = &commit.written[i].Provider
	}
	return written, nil
}
