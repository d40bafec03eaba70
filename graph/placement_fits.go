package graph

import (
	"context"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// fitsOfResource loads how often the requests in the metadata of resources fit.
var fitsOfResource = dataloader.NewValue("Resource.fits", resourceID, fitsOfResources)

// foundFit is how often the request of one resource fits, or why it is refused.
type foundFit struct {
	fit          *placement.Fit
	err          error
	isByOperator bool // operators wrote all required capabilities
}

// fitsOfResources returns how often the requests of resources fit, by row id.
// It counts at most placement.MaxFitRequests requests and refuses the others.
func fitsOfResources(s *store.Store, ctx context.Context, ids []int64) (map[int64]foundFit, error) {
	found, counted := map[int64]foundFit{}, 0
	err := eachRequest(s, ctx, ids, func(world *placement.World, id int64, asked *model.PlacementRequest,
		request *placement.Request, err error) {
		if err == nil {
			if counted++; counted > placement.MaxFitRequests {
				err = problem.Refuse(problem.ErrTooComplex,
					"too many resources with a request, select at most %d", placement.MaxFitRequests)
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
		found[id] = foundFit{fit: &fit, isByOperator: asked.IsByOperator}
	})
	return found, err
}

// FitsNamed returns how many more consumers of the flavors with these names fit, by
// name. It leaves out names without a flavor that the viewer sees, and flavors
// without a valid request. Of several flavors with a name it counts the oldest.
// A viewer who may not read placement gets none. It also leaves out flavors that
// require capabilities and are not by operators: their projects, which may not know
// the capabilities, see the result in the capacity history.
func FitsNamed(ctx context.Context, s *store.Store, names []string) (map[string]placement.FlavorFit, error) {
	flavors, err := s.FirstNamed(ctx, typeFlavor, names)
	if err != nil {
		return nil, err
	}
	named := map[int64]*resource.Resource{}
	for _, flavor := range flavors {
		named[flavor.ID] = flavor
	}
	counted, err := fitsOfResources(s, ctx, slices.Sorted(maps.Keys(named)))
	if err != nil {
		return nil, err
	}
	fits := map[string]placement.FlavorFit{}
	for id, of := range counted {
		if of.err == nil && of.isByOperator {
			fits[named[id].Name] = placement.FlavorFit{Fit: of.fit, Flavor: named[id].UUID}
		}
	}
	return fits, nil
}

// typeFlavor is the resource type of flavors.
const typeFlavor = "OS::Nova::Flavor"

// fitsOne returns how many consumers of a request fit in a world; nil is the
// stored one.
func (r *Resolver) fitsOne(ctx context.Context, world *placement.World,
	request *model.PlacementRequestInput) (*placement.Fit, error) {
	fits, err := r.fitsEach(ctx, world, []*model.PlacementRequestInput{request}, []string{"request"})
	if err != nil {
		return nil, err
	}
	return fits[0], nil
}

// fitsOfAll returns how many consumers of each request fit in a world; nil is
// the stored one. It refuses more than placement.MaxFitRequests requests.
func (r *Resolver) fitsOfAll(ctx context.Context, world *placement.World,
	requests []*model.PlacementRequestInput) ([]*placement.Fit, error) {
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
func (r *Resolver) fitsEach(ctx context.Context, world *placement.World, asked []*model.PlacementRequestInput,
	paths []string) ([]*placement.Fit, error) {
	world, requests, err := r.plainRequests(ctx, world, asked, paths, nil)
	if err != nil {
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

// fitsTogether returns how many consumers of a mix of requests fit together in
// a world; nil is the stored one.
func (r *Resolver) fitsTogether(ctx context.Context, world *placement.World,
	mixed []*model.MixedRequestInput) (*placement.Mix, error) {
	world, requests, err := r.mixedRequests(ctx, world, mixed, placement.MaxFitRequests, nil)
	if err != nil {
		return nil, err
	}
	mix, err := placement.FitsTogether(ctx, world, requests)
	return &mix, err
}

// mixedRequests returns the world, the stored one for nil, and the requests of
// a mix. It refuses fewer than 1 and more than most requests. It reports the
// problems of all requests together with the given problems.
func (r *Resolver) mixedRequests(
	ctx context.Context, world *placement.World, mixed []*model.MixedRequestInput, most int, problems problem.Problems,
) (*placement.World, []placement.MixedRequest, error) {
	if len(mixed) < 1 || len(mixed) > most {
		problems.Add("requests", "has %d entries, 1 to %d are allowed", len(mixed), most)
		return nil, nil, problems.Err()
	}
	asked, paths := make([]*model.PlacementRequestInput, len(mixed)), make([]string, len(mixed))
	for i, of := range mixed {
		path := problem.Index("requests", i)
		asked[i], paths[i] = of.Request, path+".request"
		if of.Share < 1 || of.Share > placement.MaxMixShare {
			problems.Add(path+".share", "must be between 1 and %d", placement.MaxMixShare)
		}
	}
	world, requests, err := r.plainRequests(ctx, world, asked, paths, problems)
	if err != nil {
		return nil, nil, err
	}
	of := make([]placement.MixedRequest, len(mixed))
	for i := range of {
		of[i] = placement.MixedRequest{Request: requests[i], Share: mixed[i].Share}
	}
	return world, of, nil
}

// plainRequests returns the world to search, the stored one for nil, and
// requests with their hosts looked up. Paths holds the path of each request. It
// reports the problems of all requests together with the given problems.
func (r *Resolver) plainRequests(
	ctx context.Context, world *placement.World, asked []*model.PlacementRequestInput,
	paths []string, problems problem.Problems,
) (*placement.World, []placement.Request, error) {
	world, err := r.worldOr(ctx, world)
	if err != nil {
		return nil, nil, err
	}
	requests := make([]placement.Request, len(asked))
	for i, path := range paths {
		of := askedBy(asked[i])
		requests[i] = of.Request
		if requests[i].Hosts, err = r.hostsOf(ctx, path+".hosts", of.Hosts, &problems); err != nil {
			return nil, nil, err
		}
		for _, one := range r.Store.CheckPlain(world, &requests[i]) {
			one.Field = path + "." + one.Field
			problems = append(problems, one)
		}
	}
	return world, requests, problems.Err()
}

// drainPlan returns the plan of a draining in a foreseen world, nil is the stored
// one, and registers the rows of the plan.
func (r *Resolver) drainPlan(ctx context.Context, foreseen *placement.Foreseen,
	of *placement.Draining) (*model.DrainPlan, error) {
	world, plan, err := r.Store.DrainPlan(ctx, foreseen, of)
	if err != nil {
		return nil, err
	}
	drained := model.DrainPlanIn(world, plan)
	dataloader.RegisterLater(ctx, drained.Roots)
	dataloader.RegisterLater(ctx, drained.Moves)
	dataloader.RegisterLater(ctx, drained.Unplaced)
	return drained, nil
}

// rebalancePlan sets the requests of a rebalancing, returns its plan for a
// foreseen world, nil is the stored one, and registers the rows of the plan. It
// reports the problems of all arguments together.
func (r *Resolver) rebalancePlan(
	ctx context.Context, foreseen *placement.Foreseen, mixed []*model.MixedRequestInput, of *placement.Rebalancing,
) (*model.RebalancePlan, error) {
	world, err := r.Store.WorldOf(ctx, foreseen)
	if err != nil {
		return nil, err
	}
	problems := r.Store.CheckRebalancing(world, of)
	_, of.Requests, err = r.mixedRequests(ctx, world, mixed, placement.MaxRebalanceRequests, problems)
	if err != nil {
		return nil, err
	}
	found, err := r.Store.RebalancePlan(ctx, world, foreseen, of)
	if err != nil {
		return nil, err
	}
	plan := &model.RebalancePlan{RebalancePlan: found, World: world}
	dataloader.RegisterLater(ctx, plan.Roots)
	dataloader.RegisterLater(ctx, plan.Moves)
	return plan, nil
}
