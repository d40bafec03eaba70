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

// claimTx is a transaction with the locked rows of its claims: consumers with
// their allocations, and providers with their inventories.
type claimTx struct {
	*sqldb.Tx
	ledger    *placement.Ledger
	asked     []string // uuids of the consumers of the claims
	projects  []string // of the claims, sorted
	isLimited bool     // whether some of the projects have limits
	// wasRefused is whether refusals of places are kept for some consumers.
	wasRefused bool
	consumers  map[string]*consumerRow    // by uuid
	providers  map[string]*lockedProvider // by uuid
	classes    map[string]bool            // which of the claimed resource classes exist
	mapped     map[string]bool            // which of the providers named only by mappings exist
	reshaped   map[string]bool            // providers with replaced inventories
	peers      *peers                     // the consumers of policies
	now        time.Time
	clock      time.Time // of the database, if a claim holds consumers
}

// consumerRow is an existing consumer at the time of the lock.
type consumerRow struct {
	id int64
	placement.Consumer
	allocations int // the number of its allocations
}

// lockedProvider is a provider at the time of the lock.
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

// providersOf returns the uuids of the providers that claims allocate from.
func providersOf(claims []placement.ConsumerClaim) []string {
	uuids := map[string]bool{}
	for i := range claims {
		for _, allocation := range claims[i].Allocations {
			uuids[allocation.Provider] = true
		}
	}
	return slices.Sorted(maps.Keys(uuids))
}

// mappedBy returns the uuids of the providers named in mappings of claims.
func mappedBy(claims []placement.ConsumerClaim) []string {
	var uuids []string
	for i := range claims {
		for _, mapping := range claims[i].Mappings {
			uuids = append(uuids, mapping.Providers...)
		}
	}
	return lists.Distinct(uuids)
}

// classesOf returns the names of the resource classes that claims allocate.
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

// concerned lists what claims concern: uuids of consumers and providers, names
// of resource classes, uuids of the providers in mappings, and projects whose
// limits may refuse the claims.
type concerned struct {
	consumers, providers, classes, mapped, projects []string
	// peers are the uuids of the consumers that policies concern. groups are the
	// groups in policies.
	peers  []string
	groups []*placement.ConsumerGroup
	// fresh means that no claim has a generation, so the consumers are probably
	// new.
	fresh bool
	// holds means that some claims hold consumers.
	holds bool
}

// size returns the number of consumers and providers.
func (c concerned) size() int {
	return len(c.consumers) + len(c.providers) + len(c.mapped) + len(c.peers)
}

// concernedBy returns what claims concern, without policies and holds.
func concernedBy(claims []placement.ConsumerClaim) concerned {
	held := slices.ContainsFunc(claims, func(claim placement.ConsumerClaim) bool { return claim.Generation != nil })
	return concerned{consumers: consumersOf(claims), providers: providersOf(claims),
		classes: classesOf(claims), mapped: mappedBy(claims),
		projects: projectsOf(claims), fresh: !held}
}

// lockForClaim locks the consumers of policies, then in order of uuid the
// consumers of claims, then in order of row id the providers that these use
// before or after the claims, then the limits of the claims' projects. It reads
// the allocations of the consumers, the inventories of the providers, and the
// use of projects with limits.
func (s *PlacementStore) lockForClaim(ctx context.Context, tx *sqldb.Tx, of concerned) (*claimTx, error) {
	c := &claimTx{Tx: tx, asked: of.consumers, projects: lists.Distinct(of.projects),
		consumers: map[string]*consumerRow{}, providers: map[string]*lockedProvider{}, now: s.Now()}
	if err := s.lockPeers(ctx, c, of.peers, of.groups); err != nil {
		return nil, err
	}
	inLedger, providersInLedger, err := s.lockConcerned(ctx, c, of)
	if err != nil {
		return nil, err
	}
	if c.classes, err = s.existingClasses(ctx, tx, of.classes); err != nil {
		return nil, err
	}
	if c.mapped, err = s.existingProviders(ctx, c, of.mapped); err != nil {
		return nil, err
	}
	if of.holds {
		if c.clock, err = s.timeOfHold(ctx, tx); err != nil {
			return nil, err
		}
	}
	c.ledger = placement.NewLedger(inLedger, providersInLedger)
	if c.isLimited {
		err = s.lockLimits(ctx, c)
	}
	return c, err
}

// lockConcerned locks consumers and providers, and returns them for the ledger.
// If all consumers are expected to be new, it first tries to lock only the
// providers, in one statement that finds no provider if a consumer exists.
func (s *PlacementStore) lockConcerned(ctx context.Context, c *claimTx,
	of concerned) (map[string]*placement.LedgerConsumer, map[string]*placement.LedgerProvider, error) {
	if of.fresh {
		providers, err := s.lockProviders(ctx, c, of.providers, true)
		if err != nil || len(providers) > 0 {
			return map[string]*placement.LedgerConsumer{}, providers, err
		}
	}
	consumers, used, err := s.lockConsumers(ctx, c, of.consumers)
	if err != nil {
		return nil, nil, err
	}
	providers, err := s.lockProviders(ctx, c, slices.Concat(of.providers, used), false)
	return consumers, providers, err
}

// lockConsumers locks consumers and reads their allocations. It returns the
// consumers for the ledger, and the uuids of the providers that they use.
func (s *PlacementStore) lockConsumers(ctx context.Context, c *claimTx,
	uuids []string) (map[string]*placement.LedgerConsumer, []string, error) {
	inLedger := map[string]*placement.LedgerConsumer{}
	byRow := map[int64]*placement.LedgerConsumer{}
	err := s.Query(ctx, c, `SELECT `+consumerColumns+`, c.mappings, COALESCE(c.expires_at <= `+s.databaseClock()+`, false) FROM consumers c
		WHERE `+s.Listed("c.uuid", "$1", "text")+` ORDER BY c.uuid`+s.Locking("UPDATE"), func(rows *sql.Rows) error {
		var mappings *string
		var hasEnded bool
		id, consumer, err := scanConsumer(rows, &mappings, &hasEnded)
		if err != nil {
			return err
		}
		kept, err := mappingsOf(mappings)
		if err != nil {
			return err
		}
		c.consumers[consumer.UUID] = &consumerRow{id: id, Consumer: *consumer}
		byRow[id] = &placement.LedgerConsumer{ProjectID: consumer.ProjectID,
			UserID: consumer.UserID, Type: consumer.Type,
			Generation: consumer.Generation, Allocations: map[placement.AllocationKey]int64{}, Mappings: kept,
			ExpiresAt: consumer.ExpiresAt, HasEnded: hasEnded}
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
		c.consumers[uuid].allocations = len(consumer.Allocations)
	}
	return inLedger, providers, err
}

// lockProviders locks providers, reads their inventories, and returns both for
// the ledger. With unlessExist it neither locks nor returns any if one of the
// consumers of the claims exists. It also finds out whether the projects have
// limits, and whether refusals are kept for the consumers. FOR KEY SHARE locks
// the table of limits against SetLimits, even without a row, before the
// statement takes its snapshot.
//
// The statement that locks also reads, and sees the inventories as of its
// start. It may wait for the lock on a provider that another transaction
// writes. Then the locked version differs from the version seen, and the
// inventories are read again. That suffices, since every transaction that
// changes inventories increments the version.
func (s *PlacementStore) lockProviders(ctx context.Context, c *claimTx, uuids []string,
	unlessExist bool) (map[string]*placement.LedgerProvider, error) {
	inLedger := map[string]*placement.LedgerProvider{}
	if len(uuids) == 0 {
		return inLedger, nil
	}
	args, unless := []any{sqldb.JSONOf(lists.Distinct(uuids)), sqldb.JSONOf(c.projects), sqldb.JSONOf(c.asked)}, ""
	if unlessExist {
		unless = ` AND NOT EXISTS (SELECT 1 FROM consumers WHERE ` + s.Listed("consumers.uuid", "$3", "text") + `)`
	}
	var late []string
	err := s.Query(ctx, c, `WITH p AS MATERIALIZED (SELECT id, uuid, generation, version FROM resource_providers
			WHERE `+s.Listed("uuid", "$1", "text")+unless+` ORDER BY id`+s.Locking("NO KEY UPDATE")+`)
		SELECT p.id, p.uuid, p.generation, p.version, (SELECT seen.version FROM resource_providers seen WHERE seen.id = p.id),
			EXISTS (SELECT 1 FROM project_limits WHERE `+s.Listed("project_id", "$2", "text")+s.Locking("KEY SHARE")+`),
			EXISTS (SELECT 1 FROM place_refusals WHERE `+s.Listed("consumer", "$3", "text")+`), `+inventoryColumns+`
		FROM p LEFT JOIN inventories i ON i.provider_id = p.id LEFT JOIN resource_classes c ON c.id = i.resource_class_id`, func(rows *sql.Rows) error {
		var locked lockedProvider
		var uuid string
		var seen int64
		inventory, err := scanInventory(rows, &locked.id, &uuid, &locked.generation,
			&locked.version, &seen, &c.isLimited, &c.wasRefused)
		if err != nil {
			return err
		}
		p := c.providers[uuid]
		if p == nil {
			p, locked.inventories = &locked, map[string]lockedInventory{}
			c.providers[uuid] = p
			if seen != p.version {
				late = append(late, uuid)
			}
		}
		if inventory != nil {
			p.inventories[inventory.ResourceClass] = *inventory
		}
		return nil
	}, args...)
	if err == nil && len(late) > 0 {
		err = s.readInventories(ctx, c, late)
	}
	if err != nil {
		return nil, err
	}
	for uuid, provider := range c.providers {
		inLedger[uuid] = &placement.LedgerProvider{Generation: provider.generation,
			Inventories: map[string]placement.Inventory{}}
		for class, inventory := range provider.inventories {
			inLedger[uuid].Inventories[class] = inventory.Inventory
		}
	}
	return inLedger, nil
}

// readInventories reads the inventories of locked providers.
func (s *PlacementStore) readInventories(ctx context.Context, c *claimTx, providers []string) error {
	byRow := map[int64]*lockedProvider{}
	for _, uuid := range providers {
		p := c.providers[uuid]
		byRow[p.id], p.inventories = p, map[string]lockedInventory{}
	}
	return s.Query(ctx, c, `SELECT i.provider_id, `+inventoryColumns+`
		FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
		WHERE `+s.Listed("i.provider_id", "$1", "bigint"), func(rows *sql.Rows) error {
		var provider int64
		inventory, err := scanInventory(rows, &provider)
		if err == nil {
			byRow[provider].inventories[inventory.ResourceClass] = *inventory
		}
		return err
	}, sqldb.JSONOf(slices.Sorted(maps.Keys(byRow))))
}

const inventoryColumns = `i.id, i.resource_class_id, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size,
		i.allocation_ratio, i.capacity, i.used`

// scanInventory scans the columns before inventoryColumns into first, and
// returns the inventory, or nil if inventoryColumns are NULL.
func scanInventory(rows *sql.Rows, first ...any) (*lockedInventory, error) {
	var id, class, capacity, used sql.Null[int64]
	var total, reserved, minUnit, maxUnit, stepSize sql.Null[int32]
	var name sql.Null[string]
	var ratio sql.Null[float64]
	err := rows.Scan(append(first, &id, &class, &name, &total, &reserved, &minUnit, &maxUnit,
		&stepSize, &ratio, &capacity, &used)...)
	if err != nil || !id.Valid {
		return nil, err
	}
	return &lockedInventory{id: id.V, class: class.V, Inventory: placement.Inventory{
		ResourceClass: name.V, Total: total.V, Reserved: reserved.V, MinUnit: minUnit.V, MaxUnit: maxUnit.V,
		StepSize: stepSize.V, AllocationRatio: ratio.V, Capacity: capacity.V, Used: used.V,
	}}, nil
}

// existingClasses returns which of the resource classes exist. It asks the
// database only about classes that the world lacks.
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

// existingProviders returns which of the providers named by mappings exist,
// except the locked ones. It locks none, so the mappings may later name deleted
// providers.
func (s *PlacementStore) existingProviders(ctx context.Context, c *claimTx, uuids []string) (map[string]bool, error) {
	others := slices.DeleteFunc(slices.Clone(uuids), func(uuid string) bool { return c.providers[uuid] != nil })
	if len(others) == 0 {
		return nil, nil
	}
	found, err := sqldb.Column[string](ctx, s.DB, c,
		`SELECT uuid FROM resource_providers WHERE `+s.Listed("uuid", "$1", "text"), sqldb.JSONOf(others))
	return lists.Set(found, lists.Itself), err
}

// known returns functions for the ledger that report whether a claimed resource
// class exists, and whether a provider named only by mappings exists.
func (c *claimTx) known() placement.Known {
	return placement.Known{
		ResourceClass: func(name string) bool { return c.classes[name] },
		Provider:      func(uuid string) bool { return c.mapped[uuid] },
	}
}

// stillAbsent returns ErrRetry if a consumer exists now that did not exist when
// the rows were locked. A missing row cannot be locked, so another transaction
// may have created it before the providers were locked, and the decision would
// mix two moments. Consumers that this transaction creates need no check: their
// INSERT detects the conflict.
func (s *PlacementStore) stillAbsent(ctx context.Context, c *claimTx) error {
	absent := slices.DeleteFunc(slices.Clone(c.asked), func(uuid string) bool {
		return c.consumers[uuid] != nil || c.ledger.Consumer(uuid).Generation != 0
	})
	if len(absent) == 0 || len(c.providers) == 0 {
		return nil
	}
	found, err := sqldb.Column[int64](ctx, s.DB, c, `SELECT id FROM consumers WHERE `+s.Listed("uuid", "$1", "text"),
		sqldb.JSONOf(absent))
	if err == nil && len(found) > 0 {
		return sqldb.ErrRetry
	}
	return err
}

// partsOf returns the parts that write the ledger's changes: deletions first.
func (s *PlacementStore) partsOf(c *claimTx) []sqldb.Part {
	return append(s.consumerParts(c), s.allocationsPart(c), s.usePart(c), s.providersPart(c))
}

// writeClaim writes the ledger's changes.
func (s *PlacementStore) writeClaim(ctx context.Context, c *claimTx) error {
	return c.WriteParts(ctx, c.now, s.partsOf(c))
}

// consumerParts returns the parts that write consumers, delete previous
// allocations, and delete consumers without allocations. Deletions have a part
// only if there is something to delete. consumerParts also notes the consumers
// as changed.
func (s *PlacementStore) consumerParts(c *claimTx) []sqldb.Part {
	var fresh, kept [][]any
	var gone, emptied []int64
	allocations := 0
	for _, uuid := range c.ledger.Written() {
		consumer, row := c.ledger.Consumer(uuid), c.consumers[uuid]
		c.noteConsumer(uuid, row, consumer)
		if row != nil {
			emptied, allocations = append(emptied, row.id), allocations+row.allocations
		}
		fields := []any{consumer.ProjectID, consumer.UserID, consumer.Type, consumer.Generation,
			mappingsText(consumer.Mappings), timeText(consumer.ExpiresAt)}
		switch {
		case consumer.Generation == 0 && row != nil:
			gone = append(gone, row.id)
		case consumer.Generation == 0: // it was created and deleted in the same transaction
		case row == nil:
			fresh = append(fresh, append([]any{uuid}, fields...))
		default:
			kept = append(kept, slices.Concat([]any{row.id}, fields, []any{consumer.Created}))
		}
	}
	var parts []sqldb.Part
	if len(emptied) > 0 {
		parts = append(parts,
			sqldb.Part{Name: emptiedPart, Text: `DELETE FROM allocations WHERE ` +
				s.Listed("consumer_id", "{rows}", "bigint") +
				` RETURNING id`, Rows: allocations, JSON: sqldb.JSONOf(emptied)})
	}
	if len(gone) > 0 {
		parts = append(parts, sqldb.PartOf("gone",
			`DELETE FROM consumers WHERE `+s.Listed("id", "{rows}", "bigint")+` RETURNING id`, gone))
	}
	return append(parts, s.keptPart(kept), s.freshPart(fresh))
}

// emptiedPart is the name of the part that deletes former allocations.
const emptiedPart = "emptied"

// consumerColumnsWritten returns the columns of consumers that claims write,
// each with its type.
func consumerColumnsWritten() []string {
	return []string{"project_id text", "user_id text", "consumer_type text", "generation bigint",
		"mappings text", "expires_at timestamptz"}
}

// keptPart returns the part that updates existing consumers.
func (s *PlacementStore) keptPart(kept [][]any) sqldb.Part {
	return sqldb.PartOf("kept", `UPDATE consumers SET project_id = d.project_id, user_id = d.user_id, consumer_type = d.consumer_type,
			generation = d.generation, mappings = d.mappings, expires_at = d.expires_at, updated_at = {at},
			created_at = CASE WHEN d.created THEN {at} ELSE created_at END
			FROM `+s.Rows("{rows}", "d", slices.Concat([]string{"id bigint"}, consumerColumnsWritten(), []string{"created boolean"})...)+`
			WHERE `+s.IsRow("consumers.id", "{rows}", "d", "id")+` RETURNING consumers.id`, kept)
}

// freshPart returns the part that inserts new consumers.
func (s *PlacementStore) freshPart(fresh [][]any) sqldb.Part {
	returned := "id"
	if s.Postgres() {
		returned = "id, uuid"
	}
	return sqldb.PartOf("fresh", `INSERT INTO consumers (uuid, project_id, user_id, consumer_type, generation, mappings, expires_at, created_at, updated_at)
			SELECT d.uuid, d.project_id, d.user_id, d.consumer_type, d.generation, d.mappings, d.expires_at, {at}, {at}
			FROM `+s.Rows("{rows}", "d", append([]string{"uuid text"}, consumerColumnsWritten()...)...)+
		` WHERE true ON CONFLICT (uuid) DO NOTHING RETURNING `+returned, fresh)
}

// noteConsumer notes a written consumer in the change log, for its projects
// before and after. before is nil if the consumer did not exist. The Generation
// of after is 0 if the consumer is deleted.
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

// allocationsPart returns the part that inserts allocations. The row id of a
// new consumer comes from the part that inserts it, on SQLite from the table.
func (s *PlacementStore) allocationsPart(c *claimTx) sqldb.Part {
	var allocations [][]any
	afterwards := ""
	for _, uuid := range c.ledger.Written() {
		var id any
		if row := c.consumers[uuid]; row != nil {
			id = row.id
			if s.Postgres() { // PostgreSQL orders parts only if one reads another
				afterwards = ` AND (SELECT count(*) FROM ` + emptiedPart + `) IS NOT NULL`
			}
		}
		consumer := c.ledger.Consumer(uuid)
		for _, key := range consumer.SortedKeys() {
			provider := c.providers[key.Provider]
			allocations = append(allocations,
				[]any{id, uuid, provider.id, provider.inventories[key.ResourceClass].class, consumer.Allocations[key]})
		}
	}
	fresh := "consumers"
	if s.Postgres() {
		fresh = "fresh"
	}
	return sqldb.PartOf("allocated", `INSERT INTO allocations (consumer_id, provider_id, resource_class_id, used)
		SELECT COALESCE(d.consumer_id, f.id), d.provider_id, d.resource_class_id, d.used FROM `+
		s.Rows("{rows}", "d", "consumer_id bigint", "uuid text", "provider_id bigint", "resource_class_id bigint", "used bigint")+`
		LEFT JOIN `+fresh+` f ON f.uuid = d.uuid WHERE COALESCE(d.consumer_id, f.id) IS NOT NULL`+
		afterwards+` RETURNING id`, allocations)
}

// usePart returns the part that changes the use of inventories. The ledger has
// checked the capacity already. The condition makes the database check it, too,
// except for claims with AsFound.
func (s *PlacementStore) usePart(c *claimTx) sqldb.Part {
	var changes [][3]int64
	for _, provider := range slices.Sorted(maps.Keys(c.providers)) {
		inventories := c.ledger.Provider(provider).Inventories
		for _, class := range slices.Sorted(maps.Keys(inventories)) {
			was := c.providers[provider].inventories[class]
			if change := inventories[class].Used - was.Used; change != 0 {
				isFound := int64(0)
				if c.ledger.IsFound(placement.AllocationKey{Provider: provider, ResourceClass: class}) {
					isFound = 1
				}
				changes = append(changes, [3]int64{was.id, change, isFound})
			}
		}
	}
	return sqldb.PartOf("used", `UPDATE inventories SET used = inventories.used + d.change FROM `+s.Rows("{rows}", "d", "id bigint", "change bigint", "found bigint")+`
		WHERE `+s.IsRow("inventories.id", "{rows}", "d", "id")+` AND inventories.used + d.change >= 0
		AND (d.change <= 0 OR d.found = 1 OR inventories.used + d.change <= inventories.capacity) RETURNING inventories.id`, changes)
}

// providersPart returns the part that increments the version of each locked
// provider by one, and the generation by the Increments of the ledger. It notes
// the providers as changed.
func (s *PlacementStore) providersPart(c *claimTx) sqldb.Part {
	uuids := slices.Sorted(maps.Keys(c.providers))
	moves := lists.Map(uuids, func(uuid string) [2]int64 {
		return [2]int64{c.providers[uuid].id, c.ledger.Provider(uuid).Increments}
	})
	c.Changed("ResourceProvider", uuids...)
	return sqldb.PartOf("moved", `UPDATE resource_providers SET generation = generation + d.increments, version = version + 1, updated_at = {at}
		FROM `+s.Rows("{rows}", "d", "id bigint", "increments bigint")+` WHERE `+s.IsRow("resource_providers.id", "{rows}", "d", "id")+`
		RETURNING resource_providers.id`, moves)
}

// stateAfter returns the state of a provider after the claims. It returns false
// if the provider was reshaped, or if the world does not have the locked state.
func (c *claimTx) stateAfter(world *placement.World, uuid string) (providerState, bool) {
	locked, after := c.providers[uuid], c.ledger.Provider(uuid)
	held, found := world.Provider(uuid)
	if !found || c.reshaped[uuid] || held.Version != locked.version || held.Row != locked.id {
		return providerState{}, false
	}
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
	return state, true
}

// statesAfter returns the states of the providers after the claims, as far as
// stateAfter knows them, and the row ids of the other providers.
func (s *PlacementStore) statesAfter(c *claimTx) (states []providerState, unknown []int64) {
	world := s.cache.World()
	for _, uuid := range slices.Sorted(maps.Keys(c.providers)) {
		if state, known := c.stateAfter(world, uuid); known {
			states = append(states, state)
		} else {
			unknown = append(unknown, c.providers[uuid].id)
		}
	}
	return states, unknown
}

// publishClaim registers the update of the world with the providers' states
// after the claims; see publish. It reads the states of the unknown row ids, so
// the claims must have been written. It returns all these providers by uuid.
func (s *PlacementStore) publishClaim(ctx context.Context, c *claimTx, known []providerState,
	unknown []int64) (map[string]*placement.Provider, error) {
	commit := ownCommit{written: known}
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
