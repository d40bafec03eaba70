package graph

import (
	"context"
	"time"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/origin"
)

func (r *mutationResolver) SyncResources(ctx context.Context, input origin.Page) (*origin.Counts, error) {
	counts, err := r.Store.SyncResources(ctx, input)
	return &counts, err
}

func (r *mutationResolver) EndSync(ctx context.Context, input model.EndSyncInput) (*origin.Ended, error) {
	ended, err := r.Store.EndSync(ctx, origin.End{
		Origin: input.Origin, Region: input.Region, Kind: input.Kind, Pass: input.Pass, Failure: input.Failure.Value(),
		Reading: origin.Reading{Complete: input.Complete, Seen: input.Seen, Unknown: input.Unknown},
		Refused: input.Refused,
		Limits:  origin.Limits{Number: input.MaxGone, Share: input.MaxGoneShare, Allow: input.AllowGone},
		Delay:   time.Duration(input.DeleteAfter) * time.Second,
	})
	return &ended, err
}

func (r *queryResolver) Syncs(ctx context.Context) ([]*origin.State, error) {
	return r.Store.Syncs(ctx)
}
