package graph

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// candidatesOfResource loads the candidates for what the metadata of resources
// asks for. What is selected below all of them is registered.
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

// candidatePage are the arguments of a page of candidates.
type candidatePage struct {
	Order placement.CandidateOrder
	After *placement.Position
	First int
}

// requestsOf returns what the metadata of resources asks of placement, and the
// capabilities that it requires of hosts. Metadata is one statement, the names of
// capabilities are another, and those that unknown ones may mean one more.
func requestsOf(ctx context.Context, s *store.Store, world *placement.World, ids []int64) (map[int64]*model.PlacementRequest, store.RequiredCapabilities, error) {
	items, err := s.MetadataOf(ctx, ids, nil)
	if err != nil {
		return nil, store.RequiredCapabilities{}, err
	}
	requests := map[int64]*model.PlacementRequest{}
	var required []resource.Requirement
	for _, id := range ids {
		requests[id] = model.RequestIn(world, items[id])
		required = append(required, requests[id].Requirements()...)
	}
	capabilities, err := s.Required(ctx, required)
	if err != nil {
		return nil, capabilities, err
	}
	unknown := capabilities.Names.Unknown(resource.CapabilitiesOf(required))
	for _, request := range requests {
		request.CheckCapabilities(unknown)
	}
	return requests, capabilities, nil
}

// searchForResources returns the candidates for the requests of resources. The
// hosts that these require are one statement.
func searchForResources(s *store.Store, ctx context.Context, ids []int64, of candidatePage) (map[int64]foundCandidates, error) {
	world, err := s.World(ctx)
	if errors.Is(err, problem.ErrForbidden) {
		return map[int64]foundCandidates{}, nil
	}
	if err != nil {
		return nil, err
	}
	requests, capabilities, err := requestsOf(ctx, s, world, ids)
	if err != nil {
		return nil, err
	}
	found := map[int64]foundCandidates{}
	var searched []int64
	var required [][]resource.Requirement
	for _, id := range ids {
		request := requests[id]
		if request.IsEmpty() {
			continue
		}
		if err := request.Refusal(); err != nil {
			found[id] = foundCandidates{err: err}
			continue
		}
		if searched = append(searched, id); len(request.Requirements()) > 0 {
			required = append(required, request.Requirements())
		}
	}
	hosts, err := s.HostsMeeting(ctx, required, capabilities)
	if err != nil {
		return nil, err
	}
	var all []*model.AllocationCandidateConnection
	for _, id := range searched {
		request := requests[id].Request()
		request.Order = of.Order
		if required := requests[id].Requirements(); len(required) > 0 {
			asked, err := json.Marshal(required)
			if err != nil {
				return nil, err
			}
			request.Hosts = &placement.Hosts{Filter: string(asked), Resources: hosts[0]}
			hosts = hosts[1:]
		}
		connection, err := model.CandidatesIn(world, &request, of.After, of.First)
		if found[id] = (foundCandidates{connection, err}); err == nil {
			all = append(all, connection)
		}
	}
	for _, connection := range all {
		connection.Beside = all
	}
	return found, nil
}
