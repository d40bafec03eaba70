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
	"github.com/cadastre-dev/cadastre/text"
)

// lockProvider locks the provider of a mutation and returns its row id. It
// returns ErrNotFound for an unknown provider, and ErrConcurrentUpdate if the
// generation differs.
func (s *PlacementStore) lockProvider(ctx context.Context, tx *providerTx,
	uuid string, generation *int64) (int64, error) {
	var id, current, version int64
	err := s.Query(ctx, tx, `SELECT id, generation, version FROM resource_providers WHERE uuid = $1`+
		s.Locking("NO KEY UPDATE"),
		func(rows *sql.Rows) error { return rows.Scan(&id, &current, &version) }, uuid)
	switch {
	case err != nil:
		return 0, err
	case id == 0:
		return 0, problem.Refuse(problem.ErrNotFound, "resource provider %s does not exist", uuid).On("input.provider")
	case generation != nil && *generation != current:
		return 0, problem.Refuse(problem.ErrConcurrentUpdate, "resource provider %s has generation %d, not %d", uuid,
			current, *generation).On("input.generation")
	}
	return id, s.keepBefore(ctx, tx, uuid, id, version)
}

// providerTx is a transaction that changes one provider.
type providerTx struct {
	*sqldb.Tx
	before *placement.Provider // at the time of the lock; nil for a new one
}

// keepBefore records the state of a provider that was just locked. It takes the
// state from the world, or from the database if another server has changed it
// since.
func (s *PlacementStore) keepBefore(ctx context.Context, tx *providerTx, uuid string, id, version int64) error {
	held, found := s.cache.World().Provider(uuid)
	if found && held.Row == id && held.Version == version {
		tx.before = held
		return nil
	}
	states, err := s.readProviders(ctx, tx, []int64{id}, func() {})
	if err == nil {
		tx.before = &states[0].Provider
	}
	return err
}

// bump increments the generation and the version of a locked provider. Every
// transaction that notes a provider in the change log must increment its version
// by exactly one, even if it changes nothing. From the version the world knows
// which state a commit was built on.
func (s *PlacementStore) bump(ctx context.Context, tx *sqldb.Tx, id int64) error {
	return s.Execute(ctx, tx,
		`UPDATE resource_providers SET generation = generation + 1, version = version + 1, updated_at = $1 WHERE id = $2`, s.Now(), id)
}

// changeProvider runs a mutation of one provider. It returns the provider
// afterwards, with its world. write must lock the provider and return its row
// id.
func (s *PlacementStore) changeProvider(ctx context.Context, mutation string,
	write func(tx *providerTx) (id int64, err error)) (*placement.World, *placement.Provider, error) {
	var written *placement.Provider
	err := s.Write(ctx, mutation, func(begun *sqldb.Tx) error {
		tx := &providerTx{Tx: begun}
		id, err := write(tx)
		if err != nil {
			return err
		}
		states, err := s.readProviders(ctx, tx, []int64{id}, func() {})
		if err != nil {
			return err
		}
		written = &states[0].Provider
		event := sqldb.Event{Kind: "ResourceProvider", Key: written.UUID, After: providerFields(written)}
		if tx.before != nil {
			event.Before = providerFields(tx.before)
		}
		tx.Record(ctx, event)
		tx.Changed("ResourceProvider", written.UUID)
		s.publish(begun, ownCommit{written: states})
		return nil
	}, &written)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", mutation, err)
	}
	world := s.worldAfter(ctx, []*placement.Provider{written})
	return world, inTree(world, written), nil
}

// inTree returns a provider as a commit left it, with its root in a later
// world.
func inTree(world *placement.World, written *placement.Provider) *placement.Provider {
	if now, found := world.Provider(written.UUID); found && now.Row == written.Row && now.Version == written.Version {
		return now
	}
	placed := *written
	placed.Root = placed.UUID
	if parent, found := world.Provider(placed.Parent); found {
		placed.Root = parent.Root
	}
	return &placed
}

// worldAfter returns the world after a commit of this process, or after a dry run
// as it would be with the written providers.
func (s *PlacementStore) worldAfter(ctx context.Context, written []*placement.Provider) *placement.World {
	isDryRun := sqldb.IsDryRun(ctx)
	if isDryRun {
		s.seeOthers(ctx)
	}
	world, err := s.World(ctx)
	if err != nil {
		world = s.cache.World() // it has the commit; other reads report the error themselves
	}
	if !isDryRun {
		return world
	}
	return world.With(placement.Update{Providers: lists.Map(written, func(p *placement.Provider) placement.Provider {
		return *p
	})})
}

// seeOthers updates the world to the commits of other servers after a dry run,
// which may name their providers. A commit does this by publish.
func (s *PlacementStore) seeOthers(ctx context.Context) {
	if s.follower == nil {
		return
	}
	if err := s.ShowWorld(ctx, nil); err != nil {
		s.Log.WarnContext(ctx, "cannot update the world in memory for a dry run", "error", err)
	}
}

// providerFields returns the fields of a provider for the audit log.
func providerFields(p *placement.Provider) sqldb.Fields {
	fields := sqldb.Fields{
		"generation": p.Generation, "parent": sqldb.TextOrNil(p.Parent), "resource": sqldb.TextOrNil(p.Resource),
		"traits": append([]string{}, p.Traits...), "aggregates": append([]string{}, p.Aggregates...),
		"inventories": lists.Map(p.Inventories, func(v placement.Inventory) sqldb.Fields {
			return sqldb.Fields{"resourceClass": v.ResourceClass, "total": v.Total,
				"reserved": v.Reserved, "minUnit": v.MinUnit,
				"maxUnit": v.MaxUnit, "stepSize": v.StepSize, "allocationRatio": v.AllocationRatio}
		}),
	}
	maps.Copy(fields, ownFields(p))
	return fields
}

// rowsNamed returns the row ids of a table by name. It locks the rows against
// deletion until the transaction ends.
func (s *PlacementStore) rowsNamed(ctx context.Context, on sqldb.Conn, table string,
	names []string) (map[string]int64, error) {
	return sqldb.Pairs[string, int64](ctx, s.DB, on,
		`SELECT name, id FROM `+table+` WHERE `+s.Listed("name", "$1", "text")+s.Locking("KEY SHARE"),
		sqldb.JSONOf(names))
}

// CheckRequest returns the problems of a request for candidates.
func (s *PlacementStore) CheckRequest(world *placement.World, request *placement.Request) problem.Problems {
	return problemsIn(world, placement.Validate(world, request))
}

// CheckPlain returns the problems of a request without alternatives.
func (s *PlacementStore) CheckPlain(world *placement.World, request *placement.Request) problem.Problems {
	return append(s.CheckRequest(world, request), problemsOf(request.CheckPlain())...)
}

// problemsIn converts problems of placement's rules to problems of an input. It
// adds suggestions from the world to unknown traits and resource classes.
func problemsIn(world *placement.World, found []placement.Problem) problem.Problems {
	problems := problemsOf(found)
	var traits, classes text.Speller
	if slices.ContainsFunc(found, func(one placement.Problem) bool { return one.Trait+one.ResourceClass != "" }) {
		names := world.Names()
		traits, classes = text.NewSpeller(names.Traits), text.NewSpeller(names.ResourceClasses)
	}
	for i, one := range found {
		switch {
		case one.Trait != "":
			problems[i].Message += traits.DidYouMean(one.Trait)
		case one.ResourceClass != "":
			problems[i].Message += classes.DidYouMean(one.ResourceClass)
		}
	}
	return problems
}

// problemsOf converts problems of placement's rules to problems of an input.
func problemsOf(violations []placement.Problem) problem.Problems {
	var problems problem.Problems
	for _, violation := range violations {
		one := problem.Problem{Field: violation.Path, Message: violation.Message}
		if violation.Taken {
			one.Kind = problem.ErrAlreadyExists
		}
		problems = append(problems, one)
	}
	return problems
}
