package placementdb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// lockProvider locks the provider of a mutation and returns its state. It returns
// ErrNotFound for an unknown provider, and ErrConcurrentUpdate if the generation
// differs.
func (s *PlacementStore) lockProvider(ctx context.Context, r *replacing,
	uuid string, generation *int64) (*providerState, error) {
	if err := s.lockReplaced(ctx, r, []string{uuid}, nil); err != nil {
		return nil, err
	}
	one := placement.Replacement{Provider: &uuid, Generation: generation}
	before, err := r.provider(&one, map[int64]bool{})
	return before, problem.Under(err, "input")
}

// changeProvider runs a mutation that locks, writes and records one provider. It
// returns the provider afterwards, with its world.
func (s *PlacementStore) changeProvider(ctx context.Context, mutation string,
	change func(r *replacing) error) (*placement.World, *placement.Provider, error) {
	var written *placement.Provider
	err := s.Write(ctx, mutation, func(tx *sqldb.Tx) error {
		r := &replacing{Tx: tx, now: s.Now()}
		if err := change(r); err != nil {
			return err
		}
		written = &r.replaced[0].after.Provider
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
// since its result may name providers of these commits. After a commit, publish
// does this.
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

// CheckPlain is CheckRequest for a request that must not have alternatives.
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
