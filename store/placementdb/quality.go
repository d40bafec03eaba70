package placementdb

import (
	"context"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// SetProviderTraits replaces the traits of a provider.
func (s *PlacementStore) SetProviderTraits(ctx context.Context, input placement.ProviderTraits) (*placement.World, *placement.Provider, error) {
	return s.changeProvider(ctx, "setProviderTraits", func(tx *providerTx) (int64, error) {
		problems := problemsOf(input.Validate("input"))
		if err := problems.Err(); err != nil {
			return 0, err
		}
		known, err := s.rowsNamed(ctx, tx, "traits", input.Traits)
		if err != nil {
			return 0, err
		}
		var wanted []int64
		var unknown []placement.Problem
		for i, name := range input.Traits {
			if known[name] == 0 {
				unknown = append(unknown, placement.UnknownTrait(problem.Index("input.traits", i), name))
			}
			wanted = append(wanted, known[name])
		}
		if err := problemsIn(s.cache.World(), unknown).Err(); err != nil {
			return 0, err
		}
		id, err := s.lockProvider(ctx, tx, input.Provider, input.Generation)
		if err != nil {
			return 0, err
		}
		changed, err := s.replaceTraits(ctx, tx.Tx, id, sqldb.Distinct(wanted))
		if err != nil {
			return 0, err
		}
		return id, s.bump(ctx, tx.Tx, id, changed)
	})
}

// replaceTraits makes a locked provider have the traits of these rows, and
// reports whether that changed anything.
func (s *PlacementStore) replaceTraits(ctx context.Context, tx *sqldb.Tx, provider int64, wanted []int64) (bool, error) {
	held, err := sqldb.Column[int64](ctx, s.DB, tx, `SELECT trait_id FROM provider_traits WHERE provider_id = $1 ORDER BY trait_id`, provider)
	if err != nil {
		return false, err
	}
	added, dropped := sqldb.Without(wanted, held), sqldb.Without(held, wanted)
	if len(dropped) > 0 {
		if err := s.Execute(ctx, tx, `DELETE FROM provider_traits WHERE provider_id = $1 AND `+s.Listed("trait_id", "$2", "bigint"), provider, sqldb.JSONOf(dropped)); err != nil {
			return false, err
		}
	}
	if len(added) > 0 {
		creates := lists.Map(added, func(trait int64) *ent.ProviderTraitCreate {
			return tx.ProviderTrait.Create().SetProviderID(provider).SetTraitID(trait)
		})
		if err := tx.ProviderTrait.CreateBulk(creates...).Exec(ctx); err != nil {
			return false, err
		}
	}
	return len(added)+len(dropped) > 0, nil
}

// SetProviderAggregates replaces the aggregates of a provider.
func (s *PlacementStore) SetProviderAggregates(ctx context.Context, input placement.ProviderAggregates) (*placement.World, *placement.Provider, error) {
	if err := problemsOf(input.Validate("input")).Err(); err != nil {
		return nil, nil, err
	}
	return s.changeProvider(ctx, "setProviderAggregates", func(tx *providerTx) (int64, error) {
		id, err := s.lockProvider(ctx, tx, input.Provider, input.Generation)
		if err != nil {
			return 0, err
		}
		if err := s.replaceAggregates(ctx, tx.Tx, id, input.Aggregates); err != nil {
			return 0, err
		}
		return id, s.bump(ctx, tx.Tx, id, true)
	})
}

// replaceAggregates makes a locked provider be in these aggregates and no others.
func (s *PlacementStore) replaceAggregates(ctx context.Context, tx *sqldb.Tx, provider int64, aggregates []string) error {
	if err := s.Execute(ctx, tx, `DELETE FROM provider_aggregates WHERE provider_id = $1`, provider); err != nil {
		return err
	}
	if len(aggregates) == 0 {
		return nil
	}
	creates := lists.Map(aggregates, func(uuid string) *ent.ProviderAggregateCreate {
		return tx.ProviderAggregate.Create().SetProviderID(provider).SetAggregate(uuid)
	})
	return tx.ProviderAggregate.CreateBulk(creates...).Exec(ctx)
}
