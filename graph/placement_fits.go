package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// fitsOfResource loads how often the requests in the metadata of resources fit.
var fitsOfResource = dataloader.NewValue("Resource.fits", resourceID, fitsOfResources)

// foundFit is how often the request of one resource fits, or why it is refused.
type foundFit struct {
	fit *placement.Fit
	err error
}

// fitsOfResources returns how often the requests of resources fit. It counts at
// most placement.MaxFitRequests and refuses the others.
func fitsOfResources(s *store.Store, ctx context.Context, ids []int64) (map[int64]foundFit, error) {
	found, counted := map[int64]foundFit{}, 0
	err := eachRequest(s, ctx, ids, func(world *placement.World, id int64, request *placement.Request, err error) {
		if err == nil {
			if counted++; counted > placement.MaxFitRequests {
				err = problem.Refuse(problem.ErrTooComplex, "too many resources with a request, select at most %d", placement.MaxFitRequests)
			}
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			found[id] = foundFit{err: err}
			return
		}
		fit := placement.Fits(world, request)
		found[id] = foundFit{fit: &fit}
	})
	return found, err
}

// fitsOne returns how many consumers of a request fit in a world; nil is the
// stored one.
func (r *Resolver) fitsOne(ctx context.Context, world *placement.World, request *model.PlacementRequestInput) (*placement.Fit, error) {
	fits, err := r.fitsEach(ctx, world, []*model.PlacementRequestInput{request}, []string{"request"})
	if err != nil {
		return nil, err
	}
	return fits[0], nil
}

// fitsOfAll returns how many consumers of each request fit in a world; nil is
// the stored one. It refuses too many requests.
func (r *Resolver) fitsOfAll(ctx context.Context, world *placement.World, requests []*model.PlacementRequestInput) ([]*placement.Fit, error) {
	var problems problem.Problems
	if len(requests) > placement.MaxFitRequests {
		problems.Add("requests", "has %d entries, at most %d are allowed", len(requests), placement.MaxFitRequests)
		return nil, problems.Err()
	}
	paths := make([]string, len(requests))
	for i := range paths {
		paths[i] = problem.Index("requests", i)
	}
	return r.fitsEach(ctx, world, requests, paths)
}

// fitsEach returns how many consumers of each request fit in a world; nil is the
// stored one. Paths holds the path of each request. It refuses all invalid
// requests together.
func (r *Resolver) fitsEach(ctx context.Context, world *placement.World, asked []*model.PlacementRequestInput, paths []string) ([]*placement.Fit, error) {
	world, err := r.worldOr(ctx, world)
	if err != nil {
		return nil, err
	}
	requests := make([]placement.Request, len(asked))
	var problems problem.Problems
	for i, path := range paths {
		of := askedBy(asked[i])
		requests[i] = of.Request
		if requests[i].Hosts, err = r.hostsOf(ctx, path+".hosts", of.Hosts, &problems); err != nil {
			return nil, err
		}
		for _, one := range r.Store.CheckRequest(world, &requests[i]) {
			one.Field = path + "." + one.Field
			problems = append(problems, one)
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	fits := make([]*placement.Fit, 0, len(requests))
	for i := range requests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fit := placement.Fits(world, &requests[i])
		fits = append(fits, &fit)
	}
	return fits, nil
}
