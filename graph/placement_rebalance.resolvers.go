package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

func (r *queryResolver) RebalancePlan(ctx context.Context, requests []*model.MixedRequestInput, providers []string, strategy placement.CandidateOrder, seed int, maxMoves int) (*model.RebalancePlan, error) {
	return r.rebalancePlan(ctx, nil, requests,
		&placement.Rebalancing{Providers: providers, Strategy: strategy, Seed: seed, MaxMoves: maxMoves})
}

func (r *rebalanceMoveResolver) Consumer(ctx context.Context, obj *model.RebalanceMove) (*model.Consumer, error) {
	return rebalancedConsumer.Load(ctx, r.Store, obj)
}
