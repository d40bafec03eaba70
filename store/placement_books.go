package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/placement"
)

// books are what claims concern, locked: consumers with their allocations, and
// providers with their inventories.
type books struct {
	ledger    *placement.Ledger
	consumers map[string]*consumerRow // by uuid
	providers map[string]*lockedProvider
	reshaped  map[string]bool // providers whose inventories were replaced
	failed    error           // of a look-up while the ledger judged
	now       time.Time
}

// consumerRow is a consumer as it was when the books were opened; id 0 says that
// it was not there.
type consumerRow struct {
	id int64
	placement.Consumer
	account placement.LedgerConsumer
}

// lockedProvider is a provider as it was when the books were opened.
type lockedProvider struct {
	id, version int64
	generation  int64
	inventories map[string]lockedInventory
}

type lockedInventory struct {
	id, class int64
	placement.Inventory
}

// claimed are the uuids of the consumers, given those of the providers in claims.
func claimed(claims []placement.ConsumerClaim) []string {
	uuids := make([]string, len(claims))
	for i := range claims {
		uuids[i] = claims[i].UUID
	}
	return uuids
}

func given(claims []placement.ConsumerClaim) []string {
	uuids := map[string]bool{}
	for i := range claims {
		for _, allocation := range claims[i].Allocations {
			uuids[allocation.Provider] = true
		}
	}
	return slices.Sorted(maps.Keys(uuids))
}

// openBooks locks the consumers, in the order of their uuids, then the providers
// that they use or are to use, in the order of their rows, and reads what they
// have.
func (s *Store) openBooks(ctx context.Context, tx *ent.Tx, consumers, providers []string) (*books, error) {
	b := &books{consumers: map[string]*consumerRow{}, providers: map[string]*lockedProvider{}, now: s.now()}
	accounts := map[string]*placement.LedgerConsumer{}
	owners := map[int64]*placement.LedgerConsumer{}
	err := s.query(ctx, tx, `SELECT `+consumerColumns+` FROM consumers c
		WHERE `+s.listed("c.uuid", "$1", "text")+` ORDER BY c.uuid`+s.locking("UPDATE"), func(rows *sql.Rows) error {
		id, c, err := scanConsumer(rows)
		if err != nil {
			return err
		}
		b.consumers[c.UUID] = &consumerRow{id: id, Consumer: *c}
		accounts[c.UUID] = &placement.LedgerConsumer{ProjectID: c.ProjectID, UserID: c.UserID, Type: c.Type, Generation: c.Generation,
			Allocations: map[placement.AllocationKey]int64{}}
		owners[id] = accounts[c.UUID]
		return nil
	}, jsonOf(consumers))
	if err != nil {
		return nil, err
	}
	if len(owners) > 0 {
		err = s.query(ctx, tx, `SELECT a.consumer_id, p.uuid, c.name, a.used FROM allocations a
			JOIN resource_providers p ON p.id = a.provider_id JOIN resource_classes c ON c.id = a.resource_class_id
			WHERE `+s.listed("a.consumer_id", "$1", "bigint"), func(rows *sql.Rows) error {
			var owner, used int64
			var share placement.AllocationKey
			if err := rows.Scan(&owner, &share.Provider, &share.ResourceClass, &used); err != nil {
				return err
			}
			owners[owner].Allocations[share] = used
			providers = append(providers, share.Provider)
			return nil
		}, jsonOf(slices.Sorted(maps.Keys(owners))))
		if err != nil {
			return nil, err
		}
	}
	for uuid, account := range accounts {
		b.consumers[uuid].account = *account
	}
	stalls, err := s.lockStalls(ctx, tx, b, providers)
	if err != nil {
		return nil, err
	}
	b.ledger = placement.NewLedger(accounts, stalls)
	return b, nil
}

// lockStalls locks providers and reads their inventories.
func (s *Store) lockStalls(ctx context.Context, tx *ent.Tx, b *books, uuids []string) (map[string]*placement.LedgerProvider, error) {
	stalls := map[string]*placement.LedgerProvider{}
	if len(uuids) == 0 {
		return stalls, nil
	}
	byRow := map[int64]string{}
	err := s.query(ctx, tx, `SELECT id, uuid, generation, version FROM resource_providers
		WHERE `+s.listed("uuid", "$1", "text")+` ORDER BY id`+s.locking("NO KEY UPDATE"), func(rows *sql.Rows) error {
		p := &lockedProvider{inventories: map[string]lockedInventory{}}
		var uuid string
		if err := rows.Scan(&p.id, &uuid, &p.generation, &p.version); err != nil {
			return err
		}
		b.providers[uuid], byRow[p.id] = p, uuid
		stalls[uuid] = &placement.LedgerProvider{Generation: p.generation, Inventories: map[string]placement.Inventory{}}
		return nil
	}, jsonOf(distinct(uuids)))
	if err != nil || len(byRow) == 0 {
		return stalls, err
	}
	err = s.readStalls(ctx, tx, b, slices.Sorted(maps.Keys(byRow)), func(uuid string, i placement.Inventory) {
		stalls[uuid].Inventories[i.ResourceClass] = i
	})
	return stalls, err
}

// readStalls reads the inventories of locked providers, by their rows.
func (s *Store) readStalls(ctx context.Context, tx *ent.Tx, b *books, rows []int64, each func(provider string, i placement.Inventory)) error {
	of := map[int64]string{}
	for uuid, provider := range b.providers {
		of[provider.id] = uuid
	}
	return s.query(ctx, tx, `SELECT i.provider_id, i.id, i.resource_class_id, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size,
		i.allocation_ratio, i.capacity, i.used FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
		WHERE `+s.listed("i.provider_id", "$1", "bigint"), func(rows *sql.Rows) error {
		var provider int64
		var i lockedInventory
		if err := rows.Scan(&provider, &i.id, &i.class, &i.ResourceClass, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize,
			&i.AllocationRatio, &i.Capacity, &i.Used); err != nil {
			return err
		}
		b.providers[of[provider]].inventories[i.ResourceClass] = i
		each(of[provider], i.Inventory)
		return nil
	}, jsonOf(rows))
}

// errMoved says that something that could not be locked came to be meanwhile, so
// that the transaction must start anew.
var errMoved = errors.New("another transaction was faster")

// stillAbsent holds before a refusal that consumers which were not there when the
// books were opened, and could not be locked, are not there now that the
// providers are locked: else the refusal would mix two moments.
func (s *Store) stillAbsent(ctx context.Context, tx *ent.Tx, b *books, claims []placement.ConsumerClaim) error {
	if b.failed != nil {
		return b.failed
	}
	var absent []string
	for _, uuid := range claimed(claims) {
		if b.consumers[uuid] == nil {
			absent = append(absent, uuid)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	come := false
	err := s.query(ctx, tx, `SELECT id FROM consumers WHERE `+s.listed("uuid", "$1", "text"), func(rows *sql.Rows) error {
		come = true
		return rows.Scan(new(int64))
	}, jsonOf(absent))
	if err == nil && come {
		return errMoved
	}
	return err
}

// closeBooks writes what the ledger says, and notes what that does to the world.
func (s *Store) closeBooks(ctx context.Context, tx *ent.Tx, b *books, t *touched) error {
	if err := s.writeConsumers(ctx, tx, b); err != nil {
		return err
	}
	if err := s.writeUse(ctx, tx, b); err != nil {
		return err
	}
	return s.writeStalls(ctx, tx, b, t)
}

// writeConsumers writes the consumers and their allocations.
func (s *Store) writeConsumers(ctx context.Context, tx *ent.Tx, b *books) error {
	var fresh, kept [][]any
	var gone, rewritten []int64
	for _, uuid := range b.ledger.Written() {
		account, row := b.ledger.Consumer(uuid), b.consumers[uuid]
		switch {
		case account.Generation == 0 && row == nil:
			continue
		case account.Generation == 0:
			gone = append(gone, row.id)
		case row == nil:
			fresh = append(fresh, []any{uuid, account.ProjectID, account.UserID, account.Type, account.Generation})
		default:
			kept = append(kept, []any{row.id, account.ProjectID, account.UserID, account.Type, account.Generation})
			rewritten = append(rewritten, row.id)
		}
	}
	if old := slices.Concat(gone, rewritten); len(old) > 0 {
		if err := s.execute(ctx, tx, `DELETE FROM allocations WHERE `+s.listed("consumer_id", "$1", "bigint"), jsonOf(old)); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		if err := s.execute(ctx, tx, `DELETE FROM consumers WHERE `+s.listed("id", "$1", "bigint"), jsonOf(gone)); err != nil {
			return err
		}
	}
	if len(kept) > 0 {
		err := s.execute(ctx, tx, `UPDATE consumers SET project_id = d.project_id, user_id = d.user_id, consumer_type = d.consumer_type,
			generation = d.generation, updated_at = `+s.at("$2")+` FROM `+
			s.given("$1", "d", "id bigint", "project_id text", "user_id text", "consumer_type text", "generation bigint")+`
			WHERE consumers.id = d.id`, jsonOf(kept), b.now)
		if err != nil {
			return err
		}
	}
	if len(fresh) > 0 {
		if err := s.insertConsumers(ctx, tx, b, fresh); err != nil {
			return err
		}
	}
	return s.insertAllocations(ctx, tx, b)
}

// insertConsumers writes consumers that were not there, in the order of their
// uuids.
func (s *Store) insertConsumers(ctx context.Context, tx *ent.Tx, b *books, fresh [][]any) error {
	inserted := 0
	err := s.query(ctx, tx, `INSERT INTO consumers (uuid, project_id, user_id, consumer_type, generation, created_at, updated_at)
		SELECT d.uuid, d.project_id, d.user_id, d.consumer_type, d.generation, `+s.at("$2")+`, `+s.at("$2")+` FROM `+
		s.given("$1", "d", "uuid text", "project_id text", "user_id text", "consumer_type text", "generation bigint")+`
		WHERE true ON CONFLICT (uuid) DO NOTHING RETURNING id, uuid`, func(rows *sql.Rows) error {
		row := &consumerRow{Consumer: placement.Consumer{CreatedAt: b.now}}
		err := rows.Scan(&row.id, &row.UUID)
		b.consumers[row.UUID] = row
		inserted++
		return err
	}, jsonOf(fresh), b.now)
	if err == nil && inserted < len(fresh) {
		return errMoved
	}
	return err
}

func (s *Store) insertAllocations(ctx context.Context, tx *ent.Tx, b *books) error {
	var allocations [][4]int64
	for _, uuid := range b.ledger.Written() {
		account := b.ledger.Consumer(uuid)
		for _, share := range account.SortedKeys() {
			provider := b.providers[share.Provider]
			allocations = append(allocations, [4]int64{b.consumers[uuid].id, provider.id, provider.inventories[share.ResourceClass].class, account.Allocations[share]})
		}
	}
	if len(allocations) == 0 {
		return nil
	}
	return s.execute(ctx, tx, `INSERT INTO allocations (consumer_id, provider_id, resource_class_id, used)
		SELECT d.consumer_id, d.provider_id, d.resource_class_id, d.used FROM `+
		s.given("$1", "d", "consumer_id bigint", "provider_id bigint", "resource_class_id bigint", "used bigint"), jsonOf(allocations))
}

// writeUse changes the use of the inventories. The condition holds whenever the
// ledger allowed the claims; it stands in the statement so that the database
// itself refuses more than capacity, whatever came before.
func (s *Store) writeUse(ctx context.Context, tx *ent.Tx, b *books) error {
	var changes [][2]int64
	for _, provider := range slices.Sorted(maps.Keys(b.providers)) {
		inventories := b.ledger.Provider(provider).Inventories
		for _, class := range slices.Sorted(maps.Keys(inventories)) {
			was := b.providers[provider].inventories[class]
			if change := inventories[class].Used - was.Used; change != 0 {
				changes = append(changes, [2]int64{was.id, change})
			}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	changed := 0
	err := s.query(ctx, tx, `UPDATE inventories SET used = inventories.used + d.change FROM `+s.given("$1", "d", "id bigint", "change bigint")+`
		WHERE inventories.id = d.id AND inventories.used + d.change >= 0
		AND (d.change <= 0 OR inventories.used + d.change <= inventories.capacity) RETURNING inventories.id`,
		func(rows *sql.Rows) error {
			changed++
			return rows.Scan(new(int64))
		}, jsonOf(changes))
	if err == nil && changed < len(changes) {
		return errMoved
	}
	return err
}

// writeStalls moves the providers' generations and versions.
func (s *Store) writeStalls(ctx context.Context, tx *ent.Tx, b *books, t *touched) error {
	if len(b.providers) == 0 {
		return nil
	}
	var steps [][2]int64
	for _, uuid := range slices.Sorted(maps.Keys(b.providers)) {
		steps = append(steps, [2]int64{b.providers[uuid].id, b.ledger.Provider(uuid).Increments})
	}
	err := s.execute(ctx, tx, `UPDATE resource_providers SET generation = generation + d.steps, version = version + 1, updated_at = `+s.at("$2")+`
		FROM `+s.given("$1", "d", "id bigint", "steps bigint")+` WHERE resource_providers.id = d.id`, jsonOf(steps), b.now)
	if err != nil {
		return err
	}
	world := s.resident.world.Load()
	for _, uuid := range slices.Sorted(maps.Keys(b.providers)) {
		locked := b.providers[uuid]
		held, found := world.Provider(uuid)
		if !found || b.reshaped[uuid] || held.Version != locked.version || s.resident.row(uuid) != locked.id {
			t.ids = append(t.ids, locked.id)
			continue
		}
		// The world has the state before this write: what changes is known here.
		next := *held
		next.Version, next.UpdatedAt = held.Version+1, b.now
		next.Generation = locked.generation + b.ledger.Provider(uuid).Increments
		next.Inventories = slices.Clone(held.Inventories)
		for i := range next.Inventories {
			next.Inventories[i].Used = b.ledger.Provider(uuid).Inventories[next.Inventories[i].ResourceClass].Used
		}
		t.states = append(t.states, providerRow{id: locked.id, Provider: next})
	}
	return nil
}
