package placementdb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// World returns the placement world as the Reading of the context sees it.
// Without a Reading it returns the current world of this process. By default
// any role may read it.
func (s *PlacementStore) World(ctx context.Context) (*placement.World, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	held, err := s.ResidentOf(ctx, s.resident)
	if err != nil {
		return nil, fmt.Errorf("update the world in memory to the snapshot: %w", err)
	}
	return held.(*heldWorld).world, nil
}

// HeldWorld returns the current world of this process, regardless of a Reading,
// and a channel that is closed when there is another one. It does not check the
// viewer: if the viewer may not read placement, the caller may only use the
// world to learn when it changes.
func (s *PlacementStore) HeldWorld() (held *placement.World, next <-chan struct{}) {
	next = s.cache.Next()
	return s.cache.World(), next
}

// heldAt returns the world as the snapshot of a transaction sees it. before is
// a world held before the transaction began. So the snapshot sees everything in
// that world, including commits of this process.
func (s *PlacementStore) heldAt(ctx context.Context, on sqldb.Conn, before any) (any, error) {
	held := before.(*heldWorld)
	at, err := s.ChangeLog(on).Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	notes, err := s.readNotes(ctx, on, held.upTo.Oldest)
	if err != nil {
		return nil, err
	}
	p := decide(held, at, notes)
	if p.everything {
		r, err := s.readEverything(ctx, on, at, func() {})
		if err != nil {
			return nil, err
		}
		return &heldWorld{world: r.world(), upTo: at}, nil
	}
	if p.isEmpty() {
		if !sqldb.OnStandby(on) && (len(notes) > fewNotes || at.Oldest-held.upTo.Oldest > fewNotes) {
			s.cache.Apply(reading{at: at, only: held})
		}
		return &heldWorld{world: held.world, upTo: at}, nil
	}
	r, err := s.readPlanned(ctx, on, at, p)
	if err != nil {
		return nil, err
	}
	return &heldWorld{world: held.world.With(r.since(held.world, nil).Update), upTo: at}, nil
}

// fewNotes is the number of notes or transactions that the next operation may
// read again. Above it, heldAt moves the world of the process to the snapshot,
// provided that the notes changed nothing in the world.
const fewNotes = 32

// publish registers the update of the world with a transaction's changes. The
// update runs after the commit, before the writer gets its answer. If it fails,
// the writer gets ErrOutcomeUnknown although the change is committed.
func (s *PlacementStore) publish(tx *sqldb.Tx, commit ownCommit) {
	tx.After(func(ctx context.Context, outcome sqldb.Outcome) error {
		commit.transaction = tx.ID
		switch {
		case s.follower == nil:
			return s.publishInOrder(ctx, &commit, outcome)
		case outcome == sqldb.Uncertain:
			s.follower.reconcile(tx.ID)
			return nil
		}
		defer s.follower.notify()
		if s.cache.ApplyIfComplete(&commit) {
			return nil
		}
		return s.follower.catchUpTo(ctx, &commit)
	})
}

// PublishAll registers an update of the world from the database after the
// commit of a transaction. It is for transactions with too many changes to
// list.
func (s *PlacementStore) PublishAll(tx *sqldb.Tx) { s.publish(tx, ownCommit{more: true}) }

// publishInOrder updates the world on SQLite, where commits are published in the
// order of their numbers. It applies a complete commit as if a snapshot after it
// had been read. It reloads the world if the outcome is uncertain or changes are missing.
func (s *PlacementStore) publishInOrder(ctx context.Context, commit *ownCommit, outcome sqldb.Outcome) error {
	if outcome == sqldb.Committed && !commit.more && s.cache.Apply(commit.reading(s.cache.World())) {
		return nil
	}
	if _, err := s.loadWorld(context.WithoutCancel(ctx)); err != nil {
		return errBehind(err)
	}
	return nil
}

// errBehind returns the error for a writer whose commit the world lacks.
func errBehind(err error) error {
	return problem.Refuse(problem.ErrOutcomeUnknown,
		"the change was made, but its result cannot be read: the server is behind the database").Because(err)
}

// loadWorld replaces the world by one read from the database. done is false,
// and the world stays, if it has commits of this process that do not fit the
// data read.
func (s *PlacementStore) loadWorld(ctx context.Context) (done bool, err error) {
	started := time.Now()
	var r reading
	err = s.ReadAt(ctx, func(on sqldb.Conn, at changelog.Snapshot) (err error) {
		if err := s.Bound(ctx, on, loadTimeout); err != nil {
			return err
		}
		r, err = s.readEverything(ctx, on, at, s.loading())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("load the providers: %w", err)
	}
	if !s.cache.Replace(r) {
		return false, nil
	}
	s.Log.Info("loaded the resource providers", "providers", len(r.states), "took", time.Since(started))
	return true, nil
}

// readEverything reads the world as a snapshot sees it. It calls seen for each
// row, except for names.
func (s *PlacementStore) readEverything(ctx context.Context, on sqldb.Conn,
	at changelog.Snapshot, seen func()) (reading, error) {
	names, err := s.readNames(ctx, on)
	if err != nil {
		return reading{}, err
	}
	states, err := s.readProviders(ctx, on, nil, seen)
	return reading{at: at, everything: true, states: states, names: &names}, err
}

// loading returns a function that counts rows and logs the progress at most
// once a second.
func (s *PlacementStore) loading() (seen func()) {
	rows, told := 0, time.Now()
	return func() {
		rows++
		if time.Since(told) >= time.Second {
			told = time.Now()
			s.Log.Info("loading the resource providers", "rows", rows)
		}
	}
}

// WorldAge returns the possible age of the placement world. It is 0 on SQLite,
// and while this process listens for commits and its last catch up is recent.
// Otherwise it is the time since the last successful catch up began.
func (s *PlacementStore) WorldAge() time.Duration {
	if s.follower == nil {
		return 0
	}
	return s.follower.age(time.Now())
}

// WhatIf returns the world with changes, which are not stored. It refuses to
// release or move a consumer that the viewer does not see, and drains move only
// consumers that the viewer sees. By default any role may call it.
func (s *PlacementStore) WhatIf(ctx context.Context, changes []placement.WhatIfChange) (*placement.Foreseen, error) {
	world, err := s.World(ctx)
	if err != nil {
		return nil, err
	}
	held, err := s.heldBefore(ctx, world, changes)
	if err != nil {
		return nil, err
	}
	after, problems := world.WhatIf("changes", changes, held, s.Now())
	return after, problemsIn(world, problems).Err()
}

// heldBefore returns the allocations of the consumers that changes release, move
// or drain, by consumer.
func (s *PlacementStore) heldBefore(ctx context.Context, world *placement.World,
	changes []placement.WhatIfChange) (map[string][]*placement.Allocation, error) {
	held := map[string][]*placement.Allocation{}
	if len(changes) > placement.MaxWhatIfChanges {
		return held, nil
	}
	var consumers []string
	var drained placement.Draining
	for _, change := range changes {
		if change.ReleaseConsumer != nil {
			consumers = append(consumers, *change.ReleaseConsumer)
		}
		if change.MoveConsumer != nil {
			consumers = append(consumers, change.MoveConsumer.Consumer)
		}
		drained.Providers = append(drained.Providers, change.DrainProviders...)
	}
	if members := drained.Members(world); len(members) > 0 {
		around, err := s.allocationsAround(ctx, members, nil)
		if err != nil {
			return nil, err
		}
		for _, a := range around {
			held[a.Consumer] = append(held[a.Consumer], a)
		}
	}
	if len(consumers) > 0 {
		named, err := s.AllocationsOfConsumers(ctx, consumers)
		if err != nil {
			return nil, err
		}
		maps.Copy(held, named)
	}
	return held, nil
}

// readProviders reads complete providers by row id, or all if ids is nil, with
// one statement per table. The caller must prevent concurrent changes. It calls
// seen for each row.
func (s *PlacementStore) readProviders(ctx context.Context, on sqldb.Conn, ids []int64,
	seen func()) ([]providerState, error) {
	var args []any
	where := func(string) string { return "" }
	if ids != nil {
		args = []any{sqldb.JSONOf(ids)}
		where = func(column string) string { return " WHERE " + s.Listed(column, "$1", "bigint") }
	}
	var states []providerState
	err := s.Query(ctx, on, `SELECT p.id, p.uuid, p.generation, p.version, COALESCE(parent.id, 0), COALESCE(parent.uuid, ''), COALESCE(r.uuid, ''), COALESCE(r.id, 0), p.created_at, p.updated_at`+listed("p.")+`
		FROM resource_providers p
		LEFT JOIN resource_providers parent ON parent.id = p.parent_id
		LEFT JOIN resources r ON r.id = p.resource_id`+where("p.id"), func(rows *sql.Rows) error {
		seen()
		var p providerState
		err := rows.Scan(append([]any{&p.Row, &p.UUID, &p.Generation, &p.Version, &p.parentRow, &p.Parent, &p.Resource,
			&p.ResourceRow, &p.CreatedAt, &p.UpdatedAt},
			fieldsOf(&p.Provider)...)...)
		p.CreatedAt, p.UpdatedAt = p.CreatedAt.UTC(), p.UpdatedAt.UTC()
		states = append(states, p)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b providerState) int { return cmp.Compare(a.Row, b.Row) })
	places := make(map[int64]int, len(states))
	for i := range states {
		places[states[i].Row] = i
	}
	names := shared{}
	inventories := gathered[placement.Inventory]{states: states, places: places}
	err = s.Query(ctx, on, `SELECT i.provider_id, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.capacity, i.used
		FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id`+where("i.provider_id"),
		func(rows *sql.Rows) error {
			seen()
			var id int64
			var i placement.Inventory
			err := rows.Scan(&id, &i.ResourceClass, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize,
				&i.AllocationRatio, &i.Capacity, &i.Used)
			i.ResourceClass = names.text(i.ResourceClass)
			inventories.add(id, i)
			return err
		}, args...)
	if err != nil {
		return nil, err
	}
	inventories.distribute(func(p *placement.Provider) *[]placement.Inventory { return &p.Inventories })
	traits, err := s.readTexts(ctx, on,
		`SELECT h.provider_id, t.name FROM provider_traits h JOIN traits t ON t.id = h.trait_id`+where("h.provider_id"),
		args, &gathered[string]{states: states, places: places}, seen, names)
	if err != nil {
		return nil, err
	}
	traits.distribute(func(p *placement.Provider) *[]string { return &p.Traits })
	aggregates, err := s.readTexts(ctx, on, `SELECT a.provider_id, a.aggregate FROM provider_aggregates a`+
		where("a.provider_id"), args, &gathered[string]{states: states, places: places}, seen, names)
	if err != nil {
		return nil, err
	}
	aggregates.distribute(func(p *placement.Provider) *[]string { return &p.Aggregates })
	for i := range states {
		sortLists(&states[i].Provider)
	}
	return states, nil
}

// readTexts reads one string of a provider from each row and adds it to into.
func (s *PlacementStore) readTexts(ctx context.Context, on sqldb.Conn, query string, args []any, into *gathered[string],
	seen func(), names shared) (*gathered[string], error) {
	return into, s.Query(ctx, on, query, func(rows *sql.Rows) error {
		seen()
		var id int64
		var text string
		err := rows.Scan(&id, &text)
		into.add(id, names.text(text))
		return err
	}, args...)
}

// shared holds strings that many providers have, each once in memory.
type shared map[string]string

// text returns the stored copy of a string.
func (s shared) text(given string) string {
	if held, ok := s[given]; ok {
		return held
	}
	s[given] = given
	return given
}

// gathered collects list members of providers, in any order. A world keeps the
// lists, so distribute allocates each with its exact length.
type gathered[T any] struct {
	states []providerState
	places map[int64]int // indexes in states, by row id
	items  []placed[T]
}

// placed is a list member of the provider at an index.
type placed[T any] struct {
	at   int
	item T
}

// add adds a member, unless no provider has the row id.
func (g *gathered[T]) add(row int64, item T) {
	if at, ok := g.places[row]; ok {
		g.items = append(g.items, placed[T]{at, item})
	}
}

// distribute appends each item to the list of its provider.
func (g *gathered[T]) distribute(list func(*placement.Provider) *[]T) {
	lengths := make([]int, len(g.states))
	for i := range g.items {
		lengths[g.items[i].at]++
	}
	for i := range g.items {
		at := g.items[i].at
		to := list(&g.states[at].Provider)
		if *to == nil {
			*to = make([]T, 0, lengths[at])
		}
		*to = append(*to, g.items[i].item)
	}
}

func sortLists(p *placement.Provider) {
	slices.SortFunc(p.Inventories, func(a, b placement.Inventory) int {
		return cmp.Compare(a.ResourceClass, b.ResourceClass)
	})
	slices.Sort(p.Traits)
	slices.Sort(p.Aggregates)
}

// readNames reads the names of all traits and resource classes.
func (s *PlacementStore) readNames(ctx context.Context, on sqldb.Conn) (placement.Names, error) {
	traits, err := sqldb.Column[string](ctx, s.DB, on, `SELECT name FROM traits`)
	if err != nil {
		return placement.Names{}, err
	}
	classes, err := sqldb.Column[string](ctx, s.DB, on, `SELECT name FROM resource_classes`)
	return placement.Names{Traits: traits, ResourceClasses: classes}, err
}
