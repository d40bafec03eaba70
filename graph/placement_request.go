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
	After *placement.Position
	First int
}

// searchForResources returns the candidates for the requests of resources. Their
// metadata is one statement, and what they require of hosts one more, with one
// for the names of capabilities.
func searchForResources(s *store.Store, ctx context.Context, ids []int64, of candidatePage) (map[int64]foundCandidates, error) {
	world, err := s.World(ctx)
	if errors.Is(err, problem.ErrForbidden) {
		return map[int64]foundCandidates{}, nil
	}
	if err != nil {
		return nil, err
	}
	items, err := s.MetadataOf(ctx, ids, nil)
	if err != nil {
		return nil, err
	}
	found := map[int64]foundCandidates{}
	requests := map[int64]*model.PlacementRequest{}
	var required [][]resource.Requirement
	for _, id := range ids {
		request := model.RequestIn(world, items[id])
		if request.IsEmpty() {
			continue
		}
		if err := request.Refusal(); err != nil {
			found[id] = foundCandidates{err: err}
			continue
		}
		if requests[id] = request; len(request.Requirements()) > 0 {
			required = append(required, request.Requirements())
		}
	}
	rows, err := s.HostsMeeting(ctx, required)
	if err != nil {
		return nil, err
	}
	var all []*model.AllocationCandidateConnection
	for _, id := range ids {
		if requests[id] == nil {
			continue
		}
		request := requests[id].Request()
		if required := requests[id].Requirements(); len(required) > 0 {
			asked, err := json.Marshal(required)
			if err != nil {
				return nil, err
			}
			request.Hosts = &placement.Hosts{Filter: string(asked), Rows: rows[0]}
			rows = rows[1:]
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
