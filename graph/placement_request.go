package graph

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// candidatesOfResource loads the candidates for requests in the metadata of
// resources. It registers the roots of all candidates.
var candidatesOfResource = dataloader.NewRowsBy("Resource.allocationCandidates", resourceID, searchForResources,
	func(found foundCandidates) []*model.ResourceProvider {
		if found.connection == nil {
			return nil
		}
		return found.connection.Roots()
	})

// foundCandidates are the candidates of one resource, or why there are none.
type foundCandidates struct {
	connection *model.AllocationCandidateConnection
	err        error
}

// candidatePage holds the arguments of a page of candidates.
type candidatePage struct {
	Order        placement.CandidateOrder
	Distinct     placement.CandidateDistinct
	Alternatives int
	After        *placement.Position
	First        int
}

// judgedRequests are requests of resources whose capabilities are checked with
// the rights of one viewer.
type judgedRequests struct {
	ctx          context.Context // with that viewer
	ids          []int64         // ids of the resources
	of           map[int64]*model.PlacementRequest
	capabilities store.RequiredCapabilities // the required capabilities that the viewer may know of
}

// requestsOf returns the placement requests in the metadata of resources. The
// first group is checked with the rights of the viewer. The second group holds
// requests that operators wrote, for a viewer with fewer rights. Metadata takes
// one statement. Each group takes one more for the names of capabilities, and
// one for suggestions in place of unknown names.
func requestsOf(ctx context.Context, s *store.Store, world *placement.World, ids []int64) ([2]judgedRequests, error) {
	viewer := access.ViewerFrom(ctx)
	judged := [2]judgedRequests{{ctx: ctx}, {ctx: access.WithViewer(ctx, viewer.Operator())}}
	items, err := s.MetadataOf(ctx, ids, nil)
	if err != nil {
		return judged, err
	}
	seesAll := viewer.May(access.RuleCapabilitiesPrivate) && resource.ReachOf(viewer).All
	for i := range judged {
		judged[i].of = map[int64]*model.PlacementRequest{}
	}
	for _, id := range ids {
		by, request := 0, model.RequestIn(world, items[id])
		if request.IsByOperator && !seesAll {
			by = 1
		}
		judged[by].ids = append(judged[by].ids, id)
		judged[by].of[id] = request
	}
	for i := range judged {
		if err := judged[i].check(s, i == 0); err != nil {
			return judged, err
		}
	}
	return judged, nil
}

// check adds a problem for each unknown capability. If suggests is set, it
// suggests known ones that the viewer may see.
func (j *judgedRequests) check(s *store.Store, suggests bool) error {
	var required []resource.Requirement
	for _, id := range j.ids {
		required = append(required, j.of[id].Requirements...)
	}
	var err error
	if j.capabilities, err = s.Required(j.ctx, required); err != nil {
		return err
	}
	if !suggests {
		j.capabilities.Names.All = nil
	}
	unknown := j.capabilities.Names.Unknown(resource.CapabilitiesOf(required))
	for _, id := range j.ids {
		j.of[id].CheckCapabilities(unknown)
	}
	return nil
}

// hosts returns, for each request, the resources that meet its requirements for
// the resource of a root provider. Keys and values are row ids. A refused
// request, or one without requirements, has no entry. It takes one statement.
func (j *judgedRequests) hosts(s *store.Store) (map[int64][]int64, error) {
	var asking []int64
	var required [][]resource.Requirement
	for _, id := range j.ids {
		if request := j.of[id]; len(request.Requirements) > 0 && request.Refusal() == nil {
			asking, required = append(asking, id), append(required, request.Requirements)
		}
	}
	found, err := s.HostsMeeting(j.ctx, required, j.capabilities)
	if err != nil {
		return nil, err
	}
	hosts := map[int64][]int64{}
	for i, id := range asking {
		hosts[id] = found[i]
	}
	return hosts, nil
}

// searchForResources returns the candidates for the requests of resources, by
// row id. A resource without a request has no entry.
func searchForResources(s *store.Store, ctx context.Context, ids []int64,
	of candidatePage) (map[int64]foundCandidates, error) {
	found := map[int64]foundCandidates{}
	var all []*model.AllocationCandidateConnection
	err := eachRequest(s, ctx, ids, func(world *placement.World, id int64, _ *model.PlacementRequest,
		request *placement.Request, err error) {
		var connection *model.AllocationCandidateConnection
		if err == nil {
			request.Order = of.Order
			request.Distinct, request.Alternatives = of.Distinct, of.Alternatives
			connection, err = model.CandidatesIn(world, request, of.After, of.First)
		}
		if found[id] = (foundCandidates{connection, err}); err == nil {
			all = append(all, connection)
		}
	})
	for _, connection := range all {
		connection.Beside = all
	}
	return found, err
}

// eachRequest calls do for each resource whose metadata has a request: with the
// world, the metadata's request, and the request to search, or its refusal. It does
// nothing for a viewer who may not read placement.
func eachRequest(s *store.Store, ctx context.Context, ids []int64,
	do func(*placement.World, int64, *model.PlacementRequest, *placement.Request, error)) error {
	world, err := s.World(ctx)
	if errors.Is(err, problem.ErrForbidden) {
		return nil
	}
	if err != nil {
		return err
	}
	judged, err := requestsOf(ctx, s, world, ids)
	if err != nil {
		return err
	}
	for _, requests := range judged {
		hosts, err := requests.hosts(s)
		if err != nil {
			return err
		}
		for _, id := range requests.ids {
			if !requests.of[id].IsEmpty() {
				request, err := requestFor(requests.of[id], hosts[id])
				do(world, id, requests.of[id], request, err)
			}
		}
	}
	return nil
}

// requestFor returns the request in metadata, on the hosts that meet its
// requirements.
func requestFor(asked *model.PlacementRequest, hosts []int64) (*placement.Request, error) {
	if err := asked.Refusal(); err != nil {
		return nil, err
	}
	request := *asked.Request
	if required := asked.Requirements; len(required) > 0 {
		text, err := json.Marshal(required)
		if err != nil {
			return nil, err
		}
		request.Hosts = &placement.Hosts{Filter: string(text), Resources: hosts}
	}
	return &request, nil
}

// placingOf returns the placing of an input, with its hosts and the values of
// its capability looked up. If one of these is invalid, the error has all
// problems of the input. Otherwise the caller checks the rest.
func (r *Resolver) placingOf(ctx context.Context, input *model.PlaceInput) (placement.Placing, error) {
	asked := inOrder(*askedBy(input.Request), input.Preferences.Value(),
		input.Strategy, input.Seed, input.Shapes.Value())
	placing := placement.Placing{Request: asked.Request, Consumers: model.Values(input.Consumers), Atomic: input.Atomic,
		HoldFor: input.HoldFor.Value(), Policy: input.Policy.Value()}
	var problems problem.Problems
	var err error
	if placing.Request.Hosts, err = r.hostsOf(ctx, "input.request.hosts", asked.Hosts, &problems); err != nil {
		return placing, err
	}
	if placing.Request.Preferences, err = r.preferencesOf(ctx, "input.preferences",
		asked.Preferences, &problems); err != nil {
		return placing, err
	}
	if policy := placing.Policy; policy != nil && policy.Spread != nil && policy.Spread.Capability != nil {
		spread := *policy.Spread
		placing.Policy = &placement.Policy{Consumers: policy.Consumers, Group: policy.Group,
			Hosts: policy.Hosts, Spread: &spread}
		if spread.HostValues, err = r.Store.HostValues(ctx, "input.policy.spread.capability",
			*spread.Capability, &problems); err != nil {
			return placing, err
		}
	}
	if len(problems) > 0 {
		return placing, r.Store.CheckPlacing(ctx, &placing, problems)
	}
	return placing, nil
}

func askedBy(of *model.PlacementRequestInput) *model.CandidatesAsked {
	return candidatesAsked(of.Resources.Value(), of.RequiredAll.Value(),
		of.RequiredAny.Value(), of.RequiredAnySets.Value(),
		of.Forbidden.Value(), of.MemberOf.Value(), of.InTree.Value(),
		of.FirstOf.Value(), of.Groups.Value(), of.GroupPolicy,
		of.SameSubtree.Value(), of.RootRequired.Value(), of.RootForbidden.Value(),
		of.Tolerates.Value(), of.Hosts.Value())
}

// placedResults returns the outcomes of consumers to place, and registers the
// placed consumers.
func placedResults(ctx context.Context, request *placement.Request,
	outcomes []store.PlacedOutcome) []*model.PlaceResult {
	return lists.Map(outcomes, func(outcome store.PlacedOutcome) *model.PlaceResult {
		result := &model.PlaceResult{Consumer: registered(ctx, model.ConsumerOf(outcome.Row)),
			Errors: rowErrors(outcome.Problems), Terms: []*model.PreferenceTerm{},
			Alternatives: []*placement.GroupAlternative{}}
		if outcome.Row != nil {
			terms, score := model.TermsOf(request.Preferences, outcome.Holds)
			result.Score, result.Terms = &score, terms
			result.Alternatives = lists.Map(outcome.Alternatives,
				func(a placement.GroupAlternative) *placement.GroupAlternative { return &a })
		}
		return result
	})
}

// preferencesOf returns preferences with their hosts looked up. It adds the
// problems of filters, with paths below path. Of more than
// placement.MaxPreferences it looks up none, so that the caller can refuse
// them.
func (r *Resolver) preferencesOf(ctx context.Context, path string, asked []*model.PreferenceInput,
	problems *problem.Problems) ([]placement.Preference, error) {
	preferences := make([]placement.Preference, len(asked))
	if len(asked) > placement.MaxPreferences {
		return preferences, nil
	}
	for i, one := range asked {
		p := &preferences[i]
		*p = placement.Preference{Trait: valueOf(one.Trait.Value()),
			Aggregate: valueOf(one.Aggregate.Value()), Weight: one.Weight}
		filter := one.Hosts.Value()
		hosts, err := r.hostsOf(ctx, problem.Index(path, i)+".hosts", filter, problems)
		if err != nil {
			return nil, err
		}
		if p.Hosts = hosts; filter != nil && hosts == nil { // invalid
			p.Hosts = &placement.Hosts{}
		}
	}
	return preferences, nil
}

// hostsOf returns the hosts whose resources match a filter, or nil for a nil or
// an invalid filter. It adds the filter's problems, with paths below path.
func (r *Resolver) hostsOf(ctx context.Context, path string, filter *resource.Filter,
	problems *problem.Problems) (*placement.Hosts, error) {
	if filter == nil {
		return nil, nil
	}
	resources, err := r.Store.Hosts(ctx, path, *filter)
	var invalid *problem.InvalidInput
	if errors.As(err, &invalid) {
		*problems = append(*problems, invalid.Problems...)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(filter)
	return &placement.Hosts{Filter: string(asked), Resources: resources}, err
}
