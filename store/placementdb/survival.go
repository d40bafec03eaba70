package placementdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// Survival returns a page of the losses of the trees, aggregates or capability
// values of the providers that match a filter in a foreseen world; nil is the
// stored one. It also returns how many losses of the whole list leave a
// consumer without a place. Only consumers that the viewer sees count. See
// ResourceProviders for problems. By default any role may call it.
func (s *PlacementStore) Survival(
	ctx context.Context, foreseen *placement.Foreseen,
	filter placement.ProviderFilter, together placement.FailingTogether,
	request page.Request, problems problem.Problems,
) (of WorldPage[*placement.Failure], unsurvived int, err error) {
	world, err := s.WorldOf(ctx, foreseen)
	if err != nil {
		return of, 0, err
	}
	found, problems := providersFrom(world, "filter", filter, problems)
	var all []*placement.Failure
	if len(problems) == 0 {
		isAll := reflect.ValueOf(filter).IsZero()
		if all, err = s.losses(ctx, world, foreseen, found(""), isAll, together); err != nil {
			return of, 0, tooManySteps(err)
		}
	}
	unsurvived = sort.Search(len(all), func(i int) bool { return len(all[i].Unplaced) == 0 })
	key := func(f *placement.Failure) string { return fmt.Sprintf("%08x", placement.MaxAmount-len(f.Unplaced)) }
	from := func(at page.Position) iter.Seq[*placement.Failure] {
		first := sort.Search(len(all), func(i int) bool {
			return cmp.Or(strings.Compare(key(all[i]), at.Key), strings.Compare(all[i].Name(), at.ID)) >= 0
		})
		return slices.Values(all[first:])
	}
	page, err := page.OfSorted("survival", page.Order{Field: string(together.By)}, from, request, problems, key,
		(*placement.Failure).Name)
	return WorldPage[*placement.Failure]{Page: page, World: world, Total: lengthOf(all)}, unsurvived, err
}

// losses returns all losses of some providers of a world, sorted. The losses of all
// providers of the stored world are cached for viewers who see all consumers.
func (s *PlacementStore) losses(
	ctx context.Context, world *placement.World, foreseen *placement.Foreseen,
	providers iter.Seq[*placement.Provider], isAll bool, together placement.FailingTogether,
) ([]*placement.Failure, error) {
	if foreseen == nil && isAll && visible.SeesEveryConsumer(ctx) {
		return s.survivals.Survive(world, together, func(around []string) ([]*placement.Allocation, error) {
			return s.allocationsAround(ctx, around, nil)
		})
	}
	failures := world.Failures(together, slices.Collect(providers))
	allocations, err := s.allocationsAround(ctx, foreseen.Around(failures.Providers()), nil)
	if err != nil {
		return nil, err
	}
	return failures.Survive(foreseen.Allocations(allocations))
}

// WorldOf returns the world of a Foreseen, or the stored world for nil.
func (s *PlacementStore) WorldOf(ctx context.Context, foreseen *placement.Foreseen) (*placement.World, error) {
	if foreseen != nil {
		return foreseen.World, nil
	}
	return s.World(ctx)
}

// DrainPlan returns the moves of the consumers off the trees of some providers
// of a foreseen world, with the world that the plan is for; nil is the stored
// one. It moves only consumers that the viewer sees, and does not list the moves
// of consumers that are not stored. By default any role may call it.
func (s *PlacementStore) DrainPlan(ctx context.Context, foreseen *placement.Foreseen,
	draining *placement.Draining) (*placement.World, *placement.DrainPlan, error) {
	world, err := s.WorldOf(ctx, foreseen)
	if err != nil {
		return nil, nil, err
	}
	if err := problemsIn(world, draining.Validate(world)).Err(); err != nil {
		return nil, nil, err
	}
	allocations, generations, err := s.foreseenAround(ctx, foreseen, draining.Members(world))
	if err != nil {
		return nil, nil, err
	}
	plan, err := draining.Plan(world, allocations)
	if errors.Is(err, placement.ErrTooManyConsumers) {
		return nil, nil, problem.Invalid("providers", "%v", err)
	}
	if err != nil {
		return nil, nil, tooManySteps(err)
	}
	plan.Moves = slices.DeleteFunc(plan.Moves, func(m placement.Move) bool { return !placement.IsStored(m.Consumer) })
	for i := range plan.Moves {
		plan.Moves[i].Generation = generations[plan.Moves[i].Consumer]
	}
	return world, &plan, nil
}

// CheckRebalancing returns the problems of a rebalancing in a world, except the
// ones of its requests.
func (s *PlacementStore) CheckRebalancing(world *placement.World, of *placement.Rebalancing) problem.Problems {
	return problemsIn(world, of.Validate(world))
}

// foreseenAround returns all allocations of the consumers that the viewer sees
// and that have an allocation on any of the providers, as the changes of a
// foreseen world leave them, and the stored generations of these consumers. It
// may return further consumers.
func (s *PlacementStore) foreseenAround(ctx context.Context, foreseen *placement.Foreseen,
	providers []string) ([]*placement.Allocation, map[string]int64, error) {
	generations := map[string]int64{}
	stored, err := s.allocationsAround(ctx, foreseen.Around(providers), generations)
	return foreseen.Allocations(stored), generations, err
}

// RebalancePlan returns moves in a world after which more consumers of the
// requests fit. The world is the one of foreseen, or the stored one for nil. The
// rebalancing must have no problems in the world. Only stored consumers that the
// viewer sees are moved. By default any role may call it.
func (s *PlacementStore) RebalancePlan(ctx context.Context, world *placement.World, foreseen *placement.Foreseen,
	of *placement.Rebalancing) (*placement.RebalancePlan, error) {
	allocations, generations, err := s.foreseenAround(ctx, foreseen, of.Members(world))
	if err != nil {
		return nil, err
	}
	isForeseen := func(a *placement.Allocation) bool { return !placement.IsStored(a.Consumer) }
	plan, err := of.Plan(ctx, world, slices.DeleteFunc(allocations, isForeseen))
	if err != nil {
		return nil, tooManySteps(err)
	}
	for i := range plan.Moves {
		plan.Moves[i].Generation = generations[plan.Moves[i].Consumer]
	}
	return &plan, nil
}

// tooManySteps converts ErrTooComplex of a search to a refusal. It returns
// other errors unchanged.
func tooManySteps(err error) error {
	if errors.Is(err, placement.ErrTooComplex) {
		return problem.Refuse(problem.ErrTooComplex, "the search takes too many steps; request less at once").
			Because(err)
	}
	return err
}

// allocationsAround returns all allocations of the consumers that the viewer
// sees and that have an allocation on any of the providers; nil means all
// providers. It adds the consumers' generations to a map, unless that is nil.
func (s *PlacementStore) allocationsAround(ctx context.Context, providers []string,
	generations map[string]int64) ([]*placement.Allocation, error) {
	seen, args := visible.ConsumerClause(ctx, "o.project_id", 1)
	if providers != nil {
		args = append(args, sqldb.JSONOf(providers))
		seen += ` AND a.consumer_id IN (SELECT x.consumer_id FROM allocations x
			JOIN resource_providers y ON y.id = x.provider_id
			WHERE ` + s.Listed("y.uuid", fmt.Sprintf("$%d", len(args)), "text") + `)`
	}
	var found []*placement.Allocation
	names := shared{}
	err := s.Query(ctx, s.Pool, `SELECT o.uuid, p.uuid, c.name, a.used, o.generation FROM allocations a
		JOIN consumers o ON o.id = a.consumer_id JOIN resource_providers p ON p.id = a.provider_id
		JOIN resource_classes c ON c.id = a.resource_class_id WHERE `+seen, func(rows *sql.Rows) error {
		a := new(placement.Allocation)
		var generation int64
		err := rows.Scan(&a.Consumer, &a.Provider, &a.ResourceClass, &a.Used, &generation)
		a.Consumer, a.Provider, a.ResourceClass = names.text(a.Consumer),
			names.text(a.Provider), names.text(a.ResourceClass)
		if generations != nil {
			generations[a.Consumer] = generation
		}
		found = append(found, a)
		return err
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("list the allocations of consumers on providers: %w", err)
	}
	return found, nil
}
